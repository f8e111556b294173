//! The signature of a failure: what makes two failed attempts fail "for the same reason".
//!
//! Promises: numbers, times, ids, quoted text, the directories of absolute paths and spacing do not tell two reasons apart; an error and a
//! failure are never one cause; the hash is the same on every machine.
//! Does not: judge whether the reason is true.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
use sha2::{Digest as _, Sha256};

use super::{attempt::Attempt, hex::hex_of_first, outcome::Outcome};

/// Characters of a normalised reason: enough to tell causes apart, short enough to stand in a table.
const REASON_CHARS: usize = 200;
/// Characters of the raw reason that are looked at: what comes later cannot reach the first 200.
const LOOKED_AT_BYTES: usize = 8192;

/// Why an attempt failed, normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// A short stable hash of the rest.
    pub hash: String,
    /// The evaluation's id.
    pub evaluation: String,
    /// How its attempts ended: failed or errored.
    pub outcome: Outcome,
    /// The first failed check; none for an errored attempt, or where no check says that it failed.
    pub check: Option<String>,
    /// The normalised reason; empty where none was given.
    pub reason: String,
}

/// The signature of a failed or errored attempt; none for any other outcome.
#[must_use]
pub fn of(attempt: &Attempt) -> Option<Signature> {
    let failed = attempt.checks.iter().find(|check| check.passed == Some(false));
    let (check, reason) = match attempt.outcome {
        Outcome::InfraError => (None, attempt.error.as_deref()),
        Outcome::Fail => (failed.map(|check| check.name.clone()), failed.and_then(|check| check.reason.as_deref())),
        Outcome::Pass | Outcome::Unscored | Outcome::Cancelled => return None,
    };
    let reason = normalise(reason.or(attempt.limit.as_deref()).unwrap_or(""));
    let (evaluation, outcome) = (attempt.evaluation.clone(), attempt.outcome);
    Some(Signature { hash: hash(outcome, &evaluation, check.as_deref(), &reason), evaluation, outcome, check, reason })
}

fn hash(outcome: Outcome, evaluation: &str, check: Option<&str>, reason: &str) -> String {
    let mut digest = Sha256::new();
    // Lengths keep the parts apart; a missing check is not an empty one.
    for part in [Some(outcome.word()), Some(evaluation), check, Some(reason)] {
        digest.update(part.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
        digest.update(part.unwrap_or("").as_bytes());
    }
    hex_of_first(6, &digest.finalize())
}

static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""[^"\n]*"|`[^`\n]*`|\B'[^'\n]*'\B"#).ok());
// Hexadecimal ids have a digit; words such as "deadbeef" without one are left alone, and so are plain numbers (they become # below).
static IDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u:\b)(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|[0-9a-f]{7,})(?-u:\b)").ok()
});

// An absolute path, with what stands before it: the slashes of an address or of a relative path follow something else.
static PATHS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(^|[\s(\[{<=,:;|])((?:/[^\s/\\:"'`<>()\[\]{}|,;*?=]+)+/?)|(?-u:\b)([a-z]:(?:[/\\]+[^\s/\\:"'`<>()\[\]{}|,;*?=]+)+[/\\]?)"#,
    )
    .ok()
});
// A number whole: sign, thousands, fraction, exponent. A sign after a word is a hyphen.
static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let exponent = "(?:e[+-]?[0-9]+)?";
    Regex::new(&format!(r"(?:\B[+-])?(?:(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)*{exponent}|\B\.[0-9]+{exponent})")).ok()
});

/// A reason without what differs from try to try.
#[must_use]
pub fn normalise(reason: &str) -> String {
    let end = reason.floor_char_boundary(LOOKED_AT_BYTES.min(reason.len()));
    let mut text = reason.get(..end).unwrap_or(reason).to_lowercase();
    // A pattern is tried where a byte that it needs is there: a search costs more than many a reason has bytes.
    replace(&QUOTED, &mut text, |byte| matches!(byte, b'"' | b'`' | b'\''), "\"*\"");
    replace(&PATHS, &mut text, |byte| matches!(byte, b'/' | b'\\'), last);
    // An id without a digit stays as it is.
    replace(&IDS, &mut text, |byte| byte.is_ascii_digit(), id);
    replace(&NUMBERS, &mut text, |byte| byte.is_ascii_digit(), "#");
    let mut out = String::with_capacity(text.len());
    for mapped in text.chars() {
        let mapped = if mapped.is_whitespace() || mapped.is_control() { ' ' } else { mapped };
        if !(matches!(mapped, '#' | ' ') && out.ends_with(mapped)) {
            out.push(mapped);
        }
    }
    out.trim().chars().take(REASON_CHARS).collect::<String>().trim_end().to_owned()
}

/// Replaces what the pattern finds, where one of its bytes is there.
fn replace(pattern: &LazyLock<Option<Regex>>, text: &mut String, needs: impl Fn(u8) -> bool, with: impl regex::Replacer) {
    if !text.bytes().any(needs) {
        return;
    }
    let Some(pattern) = pattern.as_ref() else { return };
    if let Cow::Owned(replaced) = pattern.replace_all(text, with) {
        *text = replaced;
    }
}

/// The last component of a path: a machine's directories say nothing of the failure.
fn last(found: &regex::Captures<'_>) -> String {
    let part = |number| found.get(number).map_or("", |part| part.as_str());
    let last = part(2).rsplit('/').chain(part(3).rsplit(['/', '\\'])).find(|part| !part.is_empty()).unwrap_or("");
    format!("{}{last}", part(1))
}

fn id(found: &regex::Captures<'_>) -> String {
    let text = found.get(0).map_or("", |whole| whole.as_str());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let keep = digits == 0 || digits == text.len();
    if keep { text.to_owned() } else { "*".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_try_to_try_is_left_out() {
        let rows = [
            ("Expected 12 got 7", "expected # got #"),
            ("request req 3f2504e0-4f89-11d3-9a0c-0305e82c3301 timed out\n  after 30s", "request req * timed out after #s"),
            ("no column \"total_1\" in `orders`", "no column \"*\" in \"*\""),
            ("commit 703f368a is gone at 0xdeadbeef", "commit * is gone at *"),
            ("it doesn't say 'why'", "it doesn't say \"*\""),
            ("the facade deadbeef", "the facade deadbeef"),
            ("  Überlauf\t1.5  ", "überlauf #"),
            ("", ""),
            // Numbers are whole.
            ("took 31.2s", "took #s"),
            ("took 9s", "took #s"),
            ("-1.5e-3", "#"),
            ("7", "#"),
            ("(+.5, -7, 1,204.5 and 1e9)", "(#, #, # and #)"),
            ("gpt-4 v1.2.3", "gpt-# v#"),
            ("[1,2]", "[#,#]"),
            // Times with and without milliseconds.
            ("at 2026-11-30 12:00:01,234: no", "at #-#-# #:#:#: no"),
            ("at 2026-11-30 12:00:01: no", "at #-#-# #:#:#: no"),
            ("2026-11-30T12:00:01.234Z", "#-#-#t#:#:#z"),
            ("2026-11-30T12:00:01Z", "#-#-#t#:#:#z"),
            // Absolute paths.
            ("no file /tmp/a1/b.py:12", "no file b.py:#"),
            ("no file /var/x/b.py:7", "no file b.py:#"),
            (r"no file C:\Users\x y\b.py", r"no file x y\b.py"),
            (r"in d:/w/b.py, path=/srv/b.py:/opt/c/ (/b.py)", "in b.py, path=b.py:c (b.py)"),
            ("https://a.b/c/d and/or src/a/b.py ./a/b 3/4 // /", "https://a.b/c/d and/or src/a/b.py ./a/b #/# // /"),
        ];
        for (raw, normal) in rows {
            assert_eq!(normalise(raw), normal, "{raw}");
        }
        assert_eq!(normalise(&"é ".repeat(9000)).chars().count(), 199);
    }

    #[test]
    fn the_hash_is_stable_and_keeps_the_parts_apart() {
        let hash = |evaluation, check, reason| hash(Outcome::Fail, evaluation, check, reason);
        assert_eq!(hash("a", None, "b"), hash("a", None, "b"));
        assert_eq!(hash("a", None, "b").len(), 12);
        assert_ne!(hash("a", None, "b"), hash("a", Some(""), "b"));
        assert_ne!(hash("ab", None, ""), hash("a", None, "b"));
        assert_ne!(hash("a", None, "b"), super::hash(Outcome::InfraError, "a", None, "b"));
    }
}
