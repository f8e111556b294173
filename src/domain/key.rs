//! Case ids and attempt keys (decision 60).
//!
//! Promises: two different cases never share an id, and two attempts of a run never share a key; keys are looked up whole, never parsed.
//! Does not: know which run an attempt belongs to.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::hex::hex_of_first;

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

/// Bytes of a group's id that are kept; of a longer one as many, and a digest of the whole, so that two never become one.
const GROUP_BYTES: usize = 200;

/// The id of a group of cases as text, as [`case_id`]; none for null, an empty text, a list and an object, by which nothing can be grouped.
#[must_use]
pub fn group_id(raw: &Value) -> Option<String> {
    let scalar = matches!(raw, Value::String(_) | Value::Number(_) | Value::Bool(_));
    if scalar { group_text(&case_id(raw)) } else { None }
}

/// An id of a group as it is kept: none where it is empty, shortened where it is long.
#[must_use]
pub fn group_text(id: &str) -> Option<String> {
    if id.len() <= GROUP_BYTES {
        return (!id.is_empty()).then(|| id.to_owned());
    }
    let digest = hex_of_first(16, &Sha256::digest(id.as_bytes()));
    Some(format!("{}...{digest}", id.get(..id.floor_char_boundary(GROUP_BYTES)).unwrap_or_default()))
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
    fn groups_have_ids_as_cases_have() {
        let id = |raw: Value| group_id(&raw);
        assert_eq!((id(json!("a b")), id(json!(7)), id(json!("7"))), (Some("a b".into()), Some("7".into()), Some("\"7\"".into())));
        assert_eq!((id(json!(null)), id(json!("")), id(json!([1])), id(json!({"a": 1}))), (None, None, None, None));
        let long = |end: &str| id(json!(format!("{}{end}", "é".repeat(150)))).unwrap();
        assert!(long("a").len() < 240 && long("a") != long("b") && long("a") == long("a"));
    }

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
