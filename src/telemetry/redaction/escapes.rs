//! JSON text without the escapes that hide plain characters.
//!
//! JSON lets `postgres:\/\/` and `token\u003d` stand for what a pattern knows a secret by. Patterns look at plain text, so these go first.
//!
//! Promises: `\/` and `\u00XX` of printable ASCII other than `"` and `\` become what they mean; everything else stays byte for byte, so the
//! JSON means the same; text without them is not copied.
//! Does not: look into JSON that stands inside a text of JSON (its backslashes are escaped once more).

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Of `\u00XX`, what follows the backslash.
const UNICODE_LEN: usize = 5;

/// `json` with the escapes of plain characters written out.
#[must_use]
pub fn plain_escapes(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    // Most texts have neither, and finding that out is two fast looks.
    if memmem::find(bytes, b"\\u00").is_none() && memmem::find(bytes, b"\\/").is_none() {
        return Cow::Borrowed(json);
    }
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let backslash = at + found;
        let escape = bytes.get(backslash + 1..).unwrap_or_default();
        let Some((plain, length)) = plain(escape) else {
            // What is escaped is passed over with its backslash: of `\\u0041` the second one begins nothing.
            at = backslash + 2;
            continue;
        };
        out.push_str(json.get(copied..backslash).unwrap_or_default());
        out.push(plain);
        at = backslash + 1 + length;
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The plain character that `escape` (what follows a backslash) begins with, and how long that is.
fn plain(escape: &[u8]) -> Option<(char, usize)> {
    if escape.first() == Some(&b'/') {
        return Some(('/', 1));
    }
    let digits = escape.get(..UNICODE_LEN)?.strip_prefix(b"u00")?;
    let code = digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))?;
    let character = char::from_u32(code)?;
    let plain = matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
    plain.then_some((character, UNICODE_LEN))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn plain_characters_are_written_out_and_nothing_else() {
        for (json, plain) in [
            (r#"{"k":"postgres:\/\/bob:x@db\/x"}"#, r#"{"k":"postgres://bob:x@db/x"}"#),
            (r#""token\u003dx""#, r#""token=x""#),
            (r#""\u0073k-ant\u002Dapi03\u002d""#, r#""sk-ant-api03-""#),
            (r#""\u0020\u007e\/""#, r#"" ~/""#),
            // A quote, a backslash, what is not printable, not ASCII or no escape.
            (r#""\u0022\u005c\u005C\u001f\u007f\u00e9\u0100\ud83d""#, r#""\u0022\u005c\u005C\u001f\u007f\u00e9\u0100\ud83d""#),
            (r#""\\u0041 \\/ \\\u0041 \\\/""#, r#""\\u0041 \\/ \\A \\/""#),
            (r"\u004", r"\u004"),
            (r"\u00+1 \u00é \", r"\u00+1 \u00é \"),
        ] {
            assert_eq!(plain_escapes(json), plain, "{json}");
        }
    }

    #[test]
    fn what_has_nothing_to_do_is_not_copied() {
        for json in ["", r#"{"a":"b\n\"c\" \\"}"#, r#""\\/ \u00e9""#] {
            assert!(matches!(plain_escapes(json), Cow::Borrowed(_)), "{json}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_json_means_the_same(parts in prop::collection::vec(
            r#"(\\u00[0-9a-fA-F]{2}|\\/|\\\\|\\"|\\n|\\u[1-9a-c][0-9a-f]{3}|[a-z/u0 é])"#, 0..40,
        )) {
            let json = format!("{{\"k\":\"{}\"}}", parts.concat());
            let before: Value = serde_json::from_str(&json).unwrap();
            let plain = plain_escapes(&json);
            prop_assert_eq!(&before, &serde_json::from_str::<Value>(&plain).unwrap());
            // Once is enough.
            prop_assert_eq!(plain_escapes(&plain), plain.as_ref());
        }
    }
}
