//! Looking around a place in text that may be the inside of a JSON string.
//!
//! Promises: constant or linear work, never a panic, whatever the bytes are.
//! Does not: parse JSON. Whether text is JSON is not known here, so every answer is right for both.

use std::ops::Range;

/// A stretch of text and what takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// What is written instead.
    pub with: &'static str,
}

/// The byte at `at`, where there is one.
pub fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Whether `bytes` go on with `with` at `at`.
pub fn goes_on(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(with))
}

/// The end of the run of bytes from `from` that `takes` takes.
pub fn run(bytes: &[u8], from: usize, takes: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !takes(*byte)).unwrap_or(rest.len())
}

/// As [`run`], and an escaped character that is no white space, quote or backslash counts as taken: `\/`, and `\u0026` as some writers
/// escape `&`, `<`, `>` and `+`.
pub fn run_with_escapes(bytes: &[u8], from: usize, takes: impl Fn(u8) -> bool) -> usize {
    let mut end = run(bytes, from, &takes);
    while let Some(length) = taken_escape(bytes, end) {
        end = run(bytes, end + length, &takes);
    }
    end
}

fn taken_escape(bytes: &[u8], at: usize) -> Option<usize> {
    if goes_on(bytes, at, b"\\/") {
        return Some(2);
    }
    let digits = bytes.get(at + 4..at + 6).filter(|_| goes_on(bytes, at, b"\\u00"))?;
    let code = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (code.is_ascii_graphic() && !b"\"'`\\".contains(&code)).then_some(6)
}

/// The start of the run of bytes before `to` that `takes` takes, at most `max` long.
pub fn run_back(bytes: &[u8], to: usize, max: usize, takes: impl Fn(u8) -> bool) -> usize {
    let before = bytes.get(to.saturating_sub(max)..to).unwrap_or_default();
    to - before.iter().rev().position(|byte| !takes(*byte)).unwrap_or(before.len())
}

/// How many backslashes stand in a row before `to`.
pub fn backslashes_before(bytes: &[u8], to: usize) -> usize {
    to - run_back(bytes, to, to, |byte| byte == b'\\')
}

/// Whether a word can begin at `at`: no letter or digit stands before it, or one that is the end of a JSON escape (`\n`, `\u00e9`).
pub fn begins_word(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|at| byte(bytes, at)) else { return true };
    if !before.is_ascii_alphanumeric() {
        return true;
    }
    let two_before = at.checked_sub(2).and_then(|at| byte(bytes, at));
    let escaped_letter = b"nrtbf".contains(&before) && two_before == Some(b'\\');
    escaped_letter || at.checked_sub(6).is_some_and(|from| is_unicode_escape(bytes, from))
}

/// Whether `\uXXXX` stands at `at`.
pub fn is_unicode_escape(bytes: &[u8], at: usize) -> bool {
    goes_on(bytes, at, b"\\u") && bytes.get(at + 2..at + 6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// `range` widened so that it cuts no JSON escape in two: `\` and `n` go together or stay together.
pub fn whole_escapes(text: &str, range: Range<usize>, floor: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = escape_over(bytes, range.start).map_or(range.start, |(from, _)| from).max(floor);
    let end = escape_over(bytes, range.end).map_or(range.end, |(_, to)| text.ceil_char_boundary(to.min(text.len())));
    start..end.max(range.end)
}

/// The JSON escape that begins before `at` and ends after it.
fn escape_over(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let from = (at.saturating_sub(5)..at).rev().find(|from| byte(bytes, *from) == Some(b'\\'))?;
    // An even row of backslashes is so many escaped backslashes, each whole.
    if backslashes_before(bytes, from + 1).is_multiple_of(2) {
        return None;
    }
    let long = if byte(bytes, from + 1) == Some(b'u') { 6 } else { 2 };
    (from + long > at).then_some((from, from + long))
}
