//! What a command printed, as an agent is told it.
//!
//! Promises: JSON stands on one line, its numbers as they were written; a refusal ends in its exit code; for strangers it has no path of the
//! server's and no traceback.
//! Does not: look for secrets; the gate does, in whatever leaves.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
use serde_json::value::RawValue;

use super::child::Ended;
use crate::telemetry::redaction::plain_escapes;

/// `text` as JSON without the spaces between its parts; an object, or one that holds it as `result`.
///
/// # Errors
/// Why it is no JSON.
pub fn json(text: &str) -> Result<Box<RawValue>, String> {
    let whole: &RawValue = serde_json::from_str(text.trim()).map_err(|error| error.to_string())?;
    let compact = compacted(&plain_escapes(whole.get()));
    let object = if compact.starts_with('{') { compact } else { format!("{{\"result\":{compact}}}") };
    RawValue::from_string(object).map_err(|error| error.to_string())
}

/// `json`, which is valid, without spaces between its parts. Values are not read: a number keeps all its digits.
fn compacted(json: &str) -> String {
    let (mut out, mut within, mut escaped) = (String::with_capacity(json.len()), false, false);
    for character in json.chars() {
        if within || !character.is_ascii_whitespace() {
            out.push(character);
        }
        within = if escaped { within } else { within != (character == '"') };
        escaped = within && !escaped && character == '\\';
    }
    out
}

/// The text of a command that refused: its last words, what else is to be said, and its exit code. For strangers where `public`: then without
/// `places`, other paths, and tracebacks.
#[must_use]
pub fn refusal(ended: &Ended, within_s: u64, public: Option<&[String]>) -> String {
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let words = if stderr.trim().is_empty() { String::from_utf8_lossy(&ended.stdout) } else { stderr };
    let mut text = match public {
        Some(places) => published(last_of(&words), places),
        None => last_of(&words).to_owned(),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if ended.late {
        text.push_str(&format!("it did not end within {within_s} s and was stopped\n"));
    }
    text.push_str(&format!("exit code {}", ended.code));
    text
}

/// Bytes of a refusal's words, whichever pipe they came from.
const WORDS_BYTES_MAX: usize = 65_536;

fn last_of(words: &str) -> &str {
    let from = words.ceil_char_boundary(words.len().saturating_sub(WORDS_BYTES_MAX));
    words.get(from..).unwrap_or_default()
}

/// Without what tells of the server.
fn published(words: &str, places: &[String]) -> String {
    let mut text = Cow::Borrowed(words);
    // The longest first: one may lie in another. A shorter path then stands there, which goes with what follows it.
    for place in places {
        if text.contains(place.as_str()) {
            text = text.replace(place.as_str(), "/...").into();
        }
    }
    let kept: Vec<String> = without_tracebacks(&text).map(without_paths).collect();
    let mut out = kept.join("\n");
    if text.ends_with('\n') && !out.is_empty() {
        out.push('\n');
    }
    out
}

const PATH: &str = "[path]";

/// A path from `/` or `~` in quotes, which may have spaces; then one of words. What stands behind a word, a dot or another slash is part of a URL
/// or of a relative path.
static PATHS: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let quoted = Regex::new(r#"(["'`])(?:file://)?~?/[^"'`\n]+"#).ok()?;
    let plain = Regex::new(r#"(^|[^A-Za-z0-9_/.\-~<])(?:file://)?~?/[^\s/"'`:;,)\]}>|][^\s"'`:;,)\]}>|]*"#).ok()?;
    Some([quoted, plain])
});

/// `line` without paths; nothing of it where they could not be told (the patterns are constants, and a test holds that they are read).
fn without_paths(line: &str) -> String {
    let Some([quoted, plain]) = &*PATHS else { return String::new() };
    let line = quoted.replace_all(line, format!("${{1}}{PATH}"));
    plain.replace_all(&line, format!("${{1}}{PATH}")).into_owned()
}

/// The lines that are none of a traceback: of Python from its first line to the exception, and single frames of other languages.
fn without_tracebacks(text: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    text.lines().filter(move |line| {
        let begins = line.trim_start_matches([' ', '|', '+', '-']).starts_with("Traceback (most recent call last)");
        let indented = line.starts_with([' ', '\t']);
        let between = ["During handling of the above", "The above exception was"].iter().any(|words| line.starts_with(words));
        within = begins || between || (within && (indented || line.trim().is_empty()));
        let frame = indented && ["at ", "File \"", "#"].iter().any(|mark| line.trim_start().starts_with(mark));
        !within && !frame
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Ended {
        Ended { code, late: false, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn json_stands_on_one_line_and_keeps_its_numbers() {
        let text = "{\n  \"a b\": [ 12345678901234567890123, 1.10 ],\n \"q\": \"x \\\" , y\\\\\" }\n";
        assert_eq!(json(text).unwrap().get(), "{\"a b\":[12345678901234567890123,1.10],\"q\":\"x \\\" , y\\\\\"}");
        assert_eq!(json("[1, 2]").unwrap().get(), "{\"result\":[1,2]}");
        assert_eq!(json("\"\\u0041\"").unwrap().get(), "{\"result\":\"A\"}");
        for wrong in ["", "{", "{} {}", "NaN", "{\"a\": Infinity}"] {
            assert!(json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_is_the_last_words_and_the_exit_code() {
        assert_eq!(refusal(&ended(2, "out", "no goal x\n"), 60, None), "no goal x\nexit code 2");
        assert_eq!(refusal(&ended(2, "out", " \n"), 60, None), "out\nexit code 2");
        assert_eq!(refusal(&ended(137, "", ""), 60, None), "exit code 137");
        let late = Ended { late: true, ..ended(124, "", "slow") };
        assert_eq!(refusal(&late, 60, None), "slow\nit did not end within 60 s and was stopped\nexit code 124");
        let long = refusal(&ended(1, &"é".repeat(40_000), ""), 60, None);
        assert!(long.len() < 66_000 && long.starts_with('é') && long.ends_with("\nexit code 1"));
    }

    #[test]
    fn strangers_read_no_path_and_no_traceback() {
        let places = ["/srv/data x/project".to_owned()];
        let told = |words: &str| refusal(&ended(1, "", words), 60, Some(&places));
        let python = "reading\nTraceback (most recent call last):\n  File \"/srv/app/cli.py\", line 3, in <module>\n    main()\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no goal 'x' in /srv/app/goals.toml\n";
        assert_eq!(told(python), "reading\nValueError: no goal 'x' in [path]\nexit code 1");
        let node = "Error: bad\n    at main (/srv/app/cli.js:1:2)\n    at node:internal/main\n";
        assert_eq!(told(node), "Error: bad\nexit code 1");
        for (words, kept) in [
            ("cannot open '/srv/data x/project/a b.json'", "cannot open '[path]'"),
            ("in /srv/data x/project: no", "in [path]: no"),
            ("error:/etc/passwd:12: bad", "error:[path]:12: bad"),
            ("--file=/srv/x", "--file=[path]"),
            ("see ~/.cache/x and file:///srv/y", "see [path] and [path]"),
            ("see https://evals.example/docs/a or a/b, 1 / 2, </b>", "see https://evals.example/docs/a or a/b, 1 / 2, </b>"),
            ("(/a) [/b/c]", "([path]) [[path]]"),
        ] {
            assert_eq!(told(words), format!("{kept}\nexit code 1"));
        }
    }
}
