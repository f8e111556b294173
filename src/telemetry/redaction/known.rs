//! Values that are known to be secret: of the configuration, the environment, the caller.
//!
//! Promises: each value is found as it is and as JSON writes it, once or twice escaped (a tool call's arguments are JSON inside JSON), with
//! or without non-ASCII characters escaped; of values that begin alike the longest is taken.
//! Does not: find a part of a value, or a value in another encoding.

use aho_corasick::{AhoCorasick, MatchKind};

use super::{
    REDACTED,
    text::{Span, byte, whole_escapes},
};

/// A shorter value would be found in every text; and nothing shorter than this is JSON's `true`, `false` or `null` either.
const BYTES_MIN: usize = 6;

/// A finder of known values.
pub struct Known {
    finder: Option<AhoCorasick>,
}

impl Known {
    /// A finder of `values`; surrounding white space is not part of a value.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut forms: Vec<String> =
            values.into_iter().filter(|value| usable(value.trim())).flat_map(|value| forms(value.trim())).collect();
        forms.sort_unstable();
        forms.dedup();
        // Too many or too long values for an automaton cannot be, short of gigabytes of them; the patterns still hold then.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms).ok();
        Self { finder: finder.filter(|_| !forms.is_empty()) }
    }

    /// Where known values stand in `text`.
    pub fn spans(&self, text: &str) -> Vec<Span> {
        let Some(finder) = &self.finder else { return Vec::new() };
        let mut spans = Vec::new();
        let mut floor = 0;
        for found in finder.find_iter(text) {
            let range = whole_escapes(text, found.range(), floor);
            let Some(span) = span(text.as_bytes(), range.start, range.end) else { continue };
            // A widened span can reach into the next match, which then begins where this one ends.
            if span.start < span.end {
                floor = span.end;
                spans.push(span);
            }
        }
        spans
    }
}

/// Whether a value can be looked for: a part of the replacement would be found in it again and again.
fn usable(value: &str) -> bool {
    value.len() >= BYTES_MIN && !REDACTED.contains(value) && !value.contains(REDACTED)
}

/// The forms in which a value stands in text.
fn forms(value: &str) -> Vec<String> {
    let escaped = escape(value);
    let ascii = to_ascii(&escaped);
    let (escaped_twice, ascii_twice) = (escape(&escaped), escape(&ascii));
    let mut forms = vec![value.to_owned(), escaped, ascii, escaped_twice, ascii_twice];
    // What a shell or a container hands over often has other line ends than the file had.
    if value.contains('\n') {
        forms.push(value.replace('\n', "\r\n"));
    }
    forms
}

/// `text` as the inside of a JSON string.
fn escape(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// The inside of a JSON string with non-ASCII characters escaped, as Python's `json.dumps` writes it.
fn to_ascii(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    for character in escaped.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            out.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// The span of a match. A value of digits can be found as (a part of) a bare JSON number, where only a number may stand.
fn span(bytes: &[u8], start: usize, end: usize) -> Option<Span> {
    let whole = bytes.get(start..end)?;
    if !whole.iter().all(|byte| is_number_byte(*byte)) {
        return Some(Span { start, end, with: REDACTED });
    }
    let before = start.checked_sub(1).and_then(|at| byte(bytes, at));
    let after = byte(bytes, end);
    let digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    // Inside a longer number it is another number: a time in milliseconds holds many an eight-digit value.
    if digit(before) || digit(after) {
        return None;
    }
    Some(Span { start, end, with: if stands_bare(bytes, start, end) { "0" } else { REDACTED } })
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

/// Whether what stands from `start` to `end` can be (a part of) a JSON number: between `:`, `[` or `,` and `,`, `]` or `}`.
fn stands_bare(bytes: &[u8], start: usize, end: usize) -> bool {
    let skipped = |byte: &&u8| !is_number_byte(**byte) && !byte.is_ascii_whitespace();
    let before = bytes.get(..start).unwrap_or_default().iter().rev().find(skipped);
    let after = bytes.get(end..).unwrap_or_default().iter().find(skipped);
    before.is_none_or(|byte| b":[,".contains(byte))
        && after.is_none_or(|byte| b",]}".contains(byte))
        && (before.is_some() || after.is_some())
}
