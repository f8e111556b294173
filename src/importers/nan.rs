//! What Python writes as JSON and strict JSON has not: bare `NaN`, `Infinity`, `-Infinity`, and escapes of half a surrogate pair.
//!
//! Promises: constants outside strings become `null`, half pairs become U+FFFD, everything else stays byte for byte; text with none of them
//! is not copied; strings are never touched but for half pairs.
//! Does not: check that the rest is JSON.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

/// `bytes` as strict JSON has them.
pub(super) fn strict(mut bytes: Vec<u8>) -> Vec<u8> {
    if memmem::find(&bytes, b"\\ud").is_some() || memmem::find(&bytes, b"\\uD").is_some() {
        mend_surrogates(&mut bytes);
    }
    let changed = match without_constants(&bytes) {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    };
    changed.unwrap_or(bytes)
}

/// Bare constants as `null`.
fn without_constants(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(bytes, b"NaN").is_none() && memmem::find(bytes, b"Infinity").is_none() {
        return Cow::Borrowed(bytes);
    }
    // Only `NaN` grows, by one byte each: room for all of them spares a copy of a long entry.
    let mut out = Vec::with_capacity(bytes.len() + memmem::find_iter(bytes, b"NaN").count());
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let (kept, used) = match first {
            b'"' => {
                let length = string_length(rest);
                (rest.get(..length).unwrap_or(rest), length)
            }
            b'N' if rest.starts_with(b"NaN") => (b"null".as_slice(), 3),
            b'I' if rest.starts_with(b"Infinity") => (b"null".as_slice(), 8),
            b'-' if rest.starts_with(b"-Infinity") => (b"null".as_slice(), 9),
            _ => (rest.get(..1).unwrap_or(rest), 1),
        };
        out.extend_from_slice(kept);
        rest = rest.get(used..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// How many bytes the string takes that `bytes` begin with, quotes included; all of them where it never ends.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            _ => at += 2,
        }
    }
    bytes.len()
}

/// Makes `\ud83d` that no `\udxxx` follows, and the other way round, into `\ufffd`: as long, so in place.
fn mend_surrogates(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        let Some(unit) = escape_at(bytes, at) else {
            at += 2;
            continue;
        };
        let follows = escape_at(bytes, at + 6);
        match unit {
            0xD800..=0xDBFF if matches!(follows, Some(0xDC00..=0xDFFF)) => at += 12,
            0xD800..=0xDFFF => {
                if let Some(place) = bytes.get_mut(at..at + 6) {
                    place.copy_from_slice(b"\\ufffd");
                }
                at += 6;
            }
            _ => at += 6,
        }
    }
}

/// The unit of the `\uXXXX` at `at`.
fn escape_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at.checked_add(6)?)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        String::from_utf8(strict(text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn constants_outside_strings_become_null() {
        assert_eq!(shown(r#"[NaN,{"a":-Infinity,"NaN":Infinity},"NaN",1]"#), r#"[null,{"a":null,"NaN":null},"NaN",1]"#);
        assert_eq!(shown(r#"["say \"NaN","\\",NaN]"#), r#"["say \"NaN","\\",null]"#);
        assert_eq!(shown(r#"{"a":-1,"b":"-Infinity"}"#), r#"{"a":-1,"b":"-Infinity"}"#);
        assert_eq!(shown("NaN"), "null");
    }

    #[test]
    fn half_pairs_become_the_replacement_and_whole_ones_stay() {
        assert_eq!(
            shown(r#"["\ud83d\ude00","\ud83d","x\udc00y","\ud83d\ud83d\ude00","\\ud83d","\uD83D"]"#),
            r#"["\ud83d\ude00","\ufffd","x\ufffdy","\ufffd\ud83d\ude00","\\ud83d","\ufffd"]"#
        );
    }

    #[test]
    fn damaged_text_ends() {
        for text in ["\"NaN", "\"\\", "NaN\"\\", "\\ud8", "-Infinit NaN", "\"\\ud83"] {
            let _ = shown(text);
        }
    }
}
