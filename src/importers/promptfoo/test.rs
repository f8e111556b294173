//! What a test of promptfoo is: its identity, and what of it a reader knows it by.
//!
//! Promises: two tests that differ in variables, assertions or anything else of the test case have different identities, wherever their rows
//! stand; the order of members does not count; nothing is made of a secret (text is redacted first), so tests that differ in a secret
//! alone are one.
//! Does not: give ids (`cases` does).

use serde_json::{Map, Value, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::paths::bare;
use crate::{
    domain::hex::hex,
    importers::{
        inspect::{build::text_of, header::digest},
        nan::strict,
        raw::{fields, list, read, text},
    },
    telemetry::redaction::Redactor,
};

/// Test cases of more bytes are told apart by a digest of them as they are written, and are known by nothing else.
const READ_BYTES_MAX: usize = 1024 * 1024;
/// Variables that promptfoo sets while it runs: they differ from run to run.
const RUNTIME_VARS: [&str; 2] = ["sessionId", "sessionIds"];
/// A text that is part of an id is cut at this many characters, and a digest of all of it follows.
const TEXT_CHARS_MAX: usize = 72;
const DIGEST_CHARS: usize = 8;

/// Half a SHA-256 of bytes.
pub(super) type Mark = [u8; 16];

/// A test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    /// A digest of everything that makes it what it is.
    pub(super) identity: String,
    /// What its author calls it; empty where it has no name.
    pub(super) description: String,
    /// Its variables, short.
    pub(super) vars: String,
    /// A digest of its variables.
    pub(super) dataset: String,
    /// A digest of its assertions; none where only its variables are known.
    pub(super) scorer: Option<String>,
    /// Where only its variables are known: what the old table knows it by.
    pub(super) cells: Option<Mark>,
}

impl Test {
    /// The test of a row: its `testCase` and its `vars`, as they stand in the file.
    pub(super) fn read(case: &[u8], vars: &[u8], redactor: &Redactor) -> Self {
        let mut case = match value(case, redactor) {
            Value::Object(case) => case,
            Value::Null => Map::new(),
            other => Map::from_iter([("case".to_owned(), other)]),
        };
        let known = !case.is_empty();
        // What a test is run with is no part of what it asks, and repeats differ in it.
        case.remove("options");
        if let Some(Value::Object(metadata)) = case.get_mut("metadata") {
            metadata.retain(|key, _| !key.starts_with('_'));
        }
        let spelled = variables(case.remove("vars"), || value(vars, redactor));
        let description = match case.get("description") {
            Some(Value::String(text)) => short(&one_line(text)),
            _ => String::new(),
        };
        let scored: Vec<String> = ["assert", "threshold"].iter().filter_map(|key| case.get(*key)).map(Value::to_string).collect();
        let shown = short(&one_line(&bare(&spell(&spelled))));
        let all = Value::Object(spelled).to_string();
        Self {
            identity: digest([Value::Object(case).to_string().as_str(), all.as_str()].into_iter()),
            description,
            vars: shown,
            dataset: digest(std::iter::once(all.as_str())),
            scorer: known.then(|| digest(scored.iter().map(String::as_str))),
            cells: (!known).then(|| cells_of(vars)),
        }
    }
}

/// A value as it may be looked at. What is too long, too deep or no JSON stands for itself by a digest.
fn value(bytes: &[u8], redactor: &Redactor) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let read = || {
        let (json, _) = text_of(strict(bytes.to_vec()));
        serde_json::from_str(&redactor.redact_json(&json)).ok()
    };
    let short = bytes.len() <= READ_BYTES_MAX;
    short.then(read).flatten().unwrap_or_else(|| Value::String(hex(&mark([bytes]))))
}

/// The variables of a test: those of its case, with the value of the row where the case has a list of values to go through. The row's own
/// are read only where they are needed: as a rule they repeat the case's.
fn variables(of_case: Option<Value>, of_row: impl FnOnce() -> Value) -> Map<String, Value> {
    let row = || match of_row() {
        Value::Object(row) => row,
        Value::Null => Map::new(),
        other => Map::from_iter([("vars".to_owned(), other)]),
    };
    match of_case {
        Some(Value::Object(case)) if !case.is_empty() && !case.values().any(Value::is_array) => case,
        Some(Value::Object(mut case)) if !case.is_empty() => {
            let mut row = row();
            for (name, value) in case.iter_mut().filter(|(_, value)| value.is_array()) {
                if let Some(one) = row.remove(name) {
                    *value = one;
                }
            }
            case
        }
        _ => {
            let mut row = row();
            row.retain(|name, _| !is_runtime(name));
            row
        }
    }
}

fn is_runtime(name: &str) -> bool {
    name.starts_with('_') || RUNTIME_VARS.contains(&name)
}

fn spell(vars: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    vars.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `text` on one line, without what a terminal would act on.
pub(super) fn one_line(text: &str) -> String {
    text.split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn short(text: &str) -> String {
    cut(text, TEXT_CHARS_MAX)
}

/// `text` up to `chars_max` characters; a longer one ends in a digest of all of it.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1 + DIGEST_CHARS)).collect();
    let digest: String = digest(std::iter::once(text)).chars().take(DIGEST_CHARS).collect();
    format!("{}~{digest}", kept.trim_end())
}

/// What the old table knows a row's variables by. Never kept, so secrets need not go first.
fn cells_of(vars: &[u8]) -> Mark {
    let (json, _) = text_of(strict(vars.to_vec()));
    let raw = serde_json::from_str::<&RawValue>(&json).ok();
    let cell = |raw: &RawValue| match read::<Value>(Some(raw)) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => raw.get().to_owned(),
    };
    let asked = fields(raw).0.into_iter().filter(|(name, _)| !is_runtime(name));
    mark_cells(asked.map(|(name, raw)| (name.into_owned(), cell(raw))))
}

/// The cells of a row of the old table, under the table's names.
pub(super) fn cells_of_row(names: &[String], cells: &[u8]) -> Mark {
    let (json, _) = text_of(strict(cells.to_vec()));
    let raw = serde_json::from_str::<&RawValue>(&json).ok();
    let cells = list(raw).0;
    mark_cells(names.iter().cloned().zip(cells.into_iter().map(|cell| text(Some(cell)).unwrap_or_default().into_owned())))
}

/// The table has a cell for each variable of any test; one that a test does not have is empty.
fn mark_cells(cells: impl Iterator<Item = (String, String)>) -> Mark {
    let mut cells: Vec<(String, String)> = cells.filter(|(_, cell)| !cell.is_empty()).collect();
    cells.sort();
    mark(cells.iter().flat_map(|(name, cell)| [name.as_bytes(), cell.as_bytes()]))
}

/// Half a SHA-256 over parts, each with its length.
pub(super) fn mark<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Mark {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut mark = Mark::default();
    mark.iter_mut().zip(hasher.finalize()).for_each(|(to, from)| *to = from);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(case: &str, vars: &str) -> Test {
        Test::read(case.as_bytes(), vars.as_bytes(), &Redactor::patterns_only())
    }

    #[test]
    fn what_a_test_asks_makes_it_and_how_it_is_run_does_not() {
        let base = test(r#"{"vars":{"a":1,"b":"x"},"assert":[{"type":"equals","value":"y"}],"options":{}}"#, r#"{"a":1,"b":"x"}"#);
        let same = test(
            r#"{"options":{"provider":"p"},"assert":[{"value":"y","type":"equals"}],"vars":{"b":"x","a":1}}"#,
            r#"{"a":1,"b":"x","_conversation":[],"sessionId":"s"}"#,
        );
        assert_eq!(base, same);
        for other in [
            test(r#"{"vars":{"a":1,"b":"x"},"assert":[{"type":"equals","value":"z"}]}"#, ""),
            test(r#"{"vars":{"a":"1","b":"x"},"assert":[{"type":"equals","value":"y"}]}"#, ""),
            test(r#"{"vars":{"a":1,"b":"x"},"assert":[{"type":"equals","value":"y"}],"threshold":0.5}"#, ""),
            test("", r#"{"a":1,"b":"x"}"#),
        ] {
            assert_ne!(base.identity, other.identity);
        }
        assert_eq!((base.vars.as_str(), base.description.as_str()), ("a=1, b=x", ""));
    }

    #[test]
    fn a_list_to_go_through_is_told_by_the_row() {
        let case = r#"{"vars":{"q":["one","two"],"mode":"ok"}}"#;
        let (one, two) = (test(case, r#"{"q":"one","mode":"ok"}"#), test(case, r#"{"q":"two","mode":"ok"}"#));
        assert_eq!((one.vars.as_str(), two.vars.as_str()), ("mode=ok, q=one", "mode=ok, q=two"));
        assert_ne!(one.identity, two.identity);
    }

    #[test]
    fn nothing_is_made_of_a_secret() {
        let secret = |last: char| test(&format!(r#"{{"vars":{{"k":"sk-proj-{}{last}"}}}}"#, "a1B2c3D4e5F6".repeat(4)), "");
        assert_eq!(secret('x'), secret('y'));
        assert!(!secret('x').vars.contains("a1B2"));
    }

    #[test]
    fn what_cannot_be_read_is_told_apart_all_the_same() {
        let deep = |last: &str| format!(r#"{{"vars":{{"a":{}{last}{}}}}}"#, "[".repeat(200), "]".repeat(200));
        let long = |last: &str| format!(r#"{{"vars":{{"a":"{}{last}"}}}}"#, "x".repeat(READ_BYTES_MAX));
        assert_ne!(test(&deep("1"), "").identity, test(&deep("2"), "").identity);
        assert_ne!(test(&long("1"), "").identity, test(&long("2"), "").identity);
        assert!(test(&long("1"), r#"{"a":1}"#).vars.len() < 80);
    }

    #[test]
    fn the_old_table_knows_a_row_by_its_cells() {
        let row = test("", r#"{"q":"x","n":5,"o":{"a":1},"_conversation":[]}"#);
        let names = ["n", "gone", "o", "q"].map(str::to_owned);
        assert_eq!(row.cells, Some(cells_of_row(&names, br#"["5","","{\"a\":1}","x"]"#)));
        assert_ne!(row.cells, Some(cells_of_row(&names, br#"["5","","{\"a\":1}","y"]"#)));
        assert_eq!(test(r#"{"vars":{}}"#, "").cells, None);
    }
}
