//! Texts of XML and what stands in them: references, characters that XML forbids, seconds, times, names that are too long.
//!
//! Promises: only the five entities that need no DTD and character references are resolved; what is no character becomes U+FFFD.
//! Does not: read elements.

use std::borrow::Cow;

use chrono::DateTime;
use sha2::{Digest as _, Sha256};

use crate::domain::{hex::hex_of_first, time::Timestamp};

/// Hexadecimal digits that end a name which was cut.
const MARK_CHARS: usize = 8;
/// A reference is a short word; what is longer is none.
const REFERENCE_BYTES_MAX: usize = 64;

/// The value of an attribute as it is meant.
pub(super) fn unescape(raw: &str) -> Result<Cow<'_, str>, String> {
    // Nearly every value: nothing in it means anything else.
    if raw.bytes().fold(true, |plain, byte| plain & (byte >= 0x20 && byte != b'&' && byte != b'<' && byte != 0xEF)) {
        return Ok(Cow::Borrowed(raw));
    }
    // As a rule a quote is missing before, and the value swallowed what comes after.
    if raw.contains('<') {
        return Err("an attribute has a \"<\" in it".to_owned());
    }
    let Some(first) = memchr::memchr(b'&', raw.as_bytes()) else { return Ok(clean(Cow::Borrowed(raw))) };
    let (before, mut rest) = raw.split_at_checked(first).unwrap_or((raw, ""));
    let mut out = String::with_capacity(raw.len());
    out.push_str(before);
    while let Some(after) = rest.strip_prefix('&') {
        let (name, after) = after.split_once(';').ok_or("an \"&\" begins no reference")?;
        out.push(resolve(name)?);
        let (plain, next) = after.find('&').and_then(|at| after.split_at_checked(at)).unwrap_or((after, ""));
        out.push_str(plain);
        rest = next;
    }
    Ok(clean(Cow::Owned(out)))
}

/// The character that `&name;` stands for.
pub(super) fn resolve(name: &str) -> Result<char, String> {
    match name {
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "amp" => return Ok('&'),
        "apos" => return Ok('\''),
        "quot" => return Ok('"'),
        _ => {}
    }
    let Some(number) = name.strip_prefix('#') else {
        let name: String = name.chars().take(REFERENCE_BYTES_MAX).collect();
        return Err(format!("it names the entity \"{}\", and entities of a DTD are not read", name.escape_debug()));
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    if digits.is_empty() || digits.len() > REFERENCE_BYTES_MAX || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err("a character reference is no number".to_owned());
    }
    let character = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    Ok(character.filter(|character| !forbidden(*character)).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Whether XML 1.0 forbids the character, however it is written.
fn forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

/// `text` without characters that XML forbids.
pub(super) fn clean(text: Cow<'_, str>) -> Cow<'_, str> {
    // One look at the bytes without a branch; few texts have a byte that may begin such a character.
    let may = |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n' && byte != b'\r') || byte == 0xEF;
    if !text.bytes().fold(false, |seen, byte| seen | may(byte)) || !text.contains(forbidden) {
        return text;
    }
    Cow::Owned(text.replace(forbidden, "\u{FFFD}"))
}

/// Seconds as milliseconds: `1.5`, with separators of thousands `1,234.5`, with a decimal comma `0,5`.
pub(super) fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let plain = match (text.rfind(','), text.rfind('.')) {
        (None, _) => Cow::Borrowed(text),
        (Some(comma), Some(point)) if comma > point => text.replace('.', "").replace(',', ".").into(),
        (Some(_), None) if !thousands(text) => text.replace(',', ".").into(),
        (Some(_), _) => text.replace(',', "").into(),
    };
    let seconds: f64 = plain.parse().ok()?;
    // Casting a float saturates, and what is no length of time is turned away before.
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds * 1000.0).round() as u64)
}

/// Whether the commas part thousands: three digits after each, and no zero before.
fn thousands(text: &str) -> bool {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    !first.starts_with('0') && parts.all(|part| part.len() == 3)
}

/// A time as the many writers of JUnit XML spell it. Without an offset it is the local time of an unknown place, and is taken as UTC.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let spelled = || {
        let other = DateTime::parse_from_rfc2822(text).or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"));
        other.ok().and_then(|time| Timestamp::of_millis(time.timestamp_millis()))
    };
    Timestamp::parse(text).or_else(spelled)
}

/// `name`, of which no more than `bytes_max` bytes are kept: a digest of all of it ends a longer one.
pub(super) fn capped(name: &str, bytes_max: usize) -> String {
    if name.len() <= bytes_max {
        return name.to_owned();
    }
    let end = name.floor_char_boundary(bytes_max.saturating_sub(MARK_CHARS + 1));
    let kept = name.split_at_checked(end).map_or("", |(kept, _)| kept);
    format!("{kept}~{}", hex_of_first(MARK_CHARS / 2, &Sha256::digest(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_entities_refused() {
        let shown = |raw: &str| unescape(raw).map(Cow::into_owned);
        assert_eq!(shown("a &lt;b&gt; &amp;&quot;&apos;&#10;&#x65E5;").as_deref(), Ok("a <b> &\"'\n日"));
        // XML 1.0 has none of these, written out or not.
        assert_eq!(
            shown("&#0;|&#x1B;|\u{1}|&#xD800;|&#99999999999;|\u{FFFF}").as_deref(),
            Ok("\u{FFFD}|\u{FFFD}|\u{FFFD}|\u{FFFD}|\u{FFFD}|\u{FFFD}")
        );
        for wrong in ["&lol;", "&lt", "& ", "&#;", "&#x;", "&#1a;", "&#-1;", "&;", "a<b"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_read_with_separators() {
        for (text, wanted) in [
            ("0.001", Some(1)),
            ("1,234.5", Some(1_234_500)),
            ("1,234,567", Some(1_234_567_000)),
            ("1.234,5", Some(1_234_500)),
            ("0,5", Some(500)),
            ("0,123", Some(123)),
            (" 3 ", Some(3000)),
            ("1e-3", Some(1)),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("", None),
            ("fast", None),
        ] {
            assert_eq!(millis(text), wanted, "{text}");
        }
    }

    #[test]
    fn times_are_read_in_every_spelling() {
        for (text, wanted) in [
            ("2026-11-30T11:09:07.364483+00:00", Some("2026-11-30T11:09:07.364Z")),
            ("2020-09-10T13:34:55", Some("2020-09-10T13:34:55Z")),
            ("Sat, 03 Dec 2022 23:10:07 GMT", Some("2022-12-03T23:10:07Z")),
            ("2024-01-01T01:00:00+0100", Some("2024-01-01T00:00:00Z")),
            ("yesterday", None),
        ] {
            assert_eq!(time(text).map(Timestamp::rfc3339).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn long_names_end_in_a_digest() {
        let long = |end: &str| capped(&format!("{}{end}", "é".repeat(100)), 50);
        assert!(long("a").len() <= 50 && long("a") != long("b"));
        assert_eq!(capped("short", 50), "short");
    }
}
