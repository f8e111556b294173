//! Case ids and attempt keys (decision 60).
//!
//! Promises: two different cases never share an id, and two attempts of a run never share a key; keys are looked up whole, never parsed.
//! Does not: know which run an attempt belongs to.

use serde_json::Value;

/// A case's id as text: integer `7` is `7`, the string "7" is `"7"` (quoted), other strings stand as they are.
///
/// A string is quoted when it would otherwise read as a number or as a quoted string, so the two kinds never collide.
#[must_use]
pub fn case_id(raw: &Value) -> String {
    match raw {
        Value::String(text) if needs_quotes(text) => Value::String(text.clone()).to_string(),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn needs_quotes(text: &str) -> bool {
    text.starts_with('"')
        || text.starts_with(['{', '['])
        || matches!(text, "true" | "false")
        || text.parse::<f64>().is_ok_and(|_| text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)))
}

/// The key `<evaluation>[/<case>][@<arm>]#<n>`: unique in its run once [`distinct`] has seen its siblings.
///
/// `case` is empty where the evaluation has no dataset; `arm` is given only where the run has several arms; `n` counts from 1.
#[must_use]
pub fn attempt_key(evaluation: &str, case: &str, arm: Option<&str>, n: u32) -> String {
    let mut key = String::with_capacity(evaluation.len() + case.len() + arm.map_or(0, str::len) + 8);
    escape(evaluation, false, &mut key);
    if !case.is_empty() {
        key.push('/');
        escape(case, true, &mut key);
    }
    if let Some(arm) = arm {
        key.push('@');
        escape(arm, false, &mut key);
    }
    key.push('#');
    key.push_str(&n.to_string());
    key
}

/// Percent-encodes what separates the parts of a key: `%`, `#`, `@` always, `/` in a case.
fn escape(text: &str, slash: bool, out: &mut String) {
    // Most have nothing to be escaped, and every attempt of every import comes by here.
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'#' | b'@') || (slash && byte == b'/')) {
        return out.push_str(text);
    }
    for character in text.chars() {
        match character {
            '%' => out.push_str("%25"),
            '#' => out.push_str("%23"),
            '@' => out.push_str("%40"),
            '/' if slash => out.push_str("%2F"),
            other => out.push(other),
        }
    }
}

/// Makes keys distinct in place: a key that repeats gets `~2`, `~3`, ... in order.
///
/// Possible only where an evaluation's id holds a `/` that reads as another's case (`a/b` without a case, `a` with case `b`).
pub fn distinct(keys: &mut [String]) {
    let mut seen = std::collections::HashMap::<String, u32>::new();
    for key in keys {
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        if *count > 1 {
            key.push('~');
            key.push_str(&count.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn typed_ids_do_not_collide() {
        let shown: Vec<String> = [
            json!(7),
            json!("7"),
            json!("007"),
            json!("a/b"),
            json!("\"7\""),
            json!(1.5),
            json!("1.5"),
            json!("1e5"),
            json!(true),
            json!("true"),
            json!("nan"),
            json!(""),
        ]
        .iter()
        .map(case_id)
        .collect();
        assert_eq!(shown, ["7", "\"7\"", "\"007\"", "a/b", "\"\\\"7\\\"\"", "1.5", "\"1.5\"", "\"1e5\"", "true", "\"true\"", "nan", ""]);
    }

    #[test]
    fn parts_are_escaped() {
        assert_eq!(attempt_key("suite/a", "x/y#1@z%", Some("m@1"), 2), "suite/a/x%2Fy%231%40z%25@m%401#2");
        assert_eq!(attempt_key("math", "", None, 1), "math#1");
    }

    #[test]
    fn repeated_keys_are_numbered() {
        let mut keys = vec![attempt_key("a/b", "", None, 1), attempt_key("a", "b", None, 1)];
        distinct(&mut keys);
        assert_eq!(keys, ["a/b#1", "a/b#1~2"]);
    }
}
