//! Text of others on its way to a terminal: what steers or deceives is shown as an escape.
//!
//! Promises: no control character, no mark that turns the direction of text and no invisible one passes; what is harmless passes unchanged.
//! Does not: shorten, translate, or touch what goes out as JSON to a program.

use std::borrow::Cow;

/// Whether a terminal would act on `character`, or show text otherwise than it is.
#[must_use]
pub fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Zero width and direction marks.
            '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{FEFF}' | '\u{2060}'..='\u{206F}'
            // Line and paragraph separators, embeddings and overrides.
            | '\u{2028}'..='\u{202E}'
            // Annotations, tags, and the noncharacters that `tools::render` keeps for itself.
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}' | '\u{FDD0}'..='\u{FDEF}')
}

/// `text` on one line, with each [`hidden`] character as `\u{..}`.
#[must_use]
pub fn clean(text: &str) -> String {
    escaped(text, |_| false).into_owned()
}

/// The same, but for line breaks: for a text whose lines are ours.
#[must_use]
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\n')
}

fn escaped(text: &str, keep: fn(char) -> bool) -> Cow<'_, str> {
    let wrong = |character: char| hidden(character) && !keep(character);
    if !text.chars().any(wrong) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if wrong(character) { out.extend(character.escape_unicode()) } else { out.push(character) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_deceives_is_escaped() {
        for code in [0x0, 0x7, 0x1b, 0x7f, 0x9b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xfdd0, 0xe0041] {
            let character = char::from_u32(code).unwrap();
            assert_eq!(clean(&format!("a{character}b")), format!("a\\u{{{code:x}}}b"));
        }
    }

    #[test]
    fn what_is_harmless_stays() {
        for text in ["", "plain", "é 路 👩\u{200d}💻 العربية", "\\u{1b}"] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn our_own_line_breaks_stay() {
        assert_eq!(clean_lines("a\nb\u{1b}[2J\r"), "a\nb\\u{1b}[2J\\u{d}");
        assert_eq!(clean("a\nb"), "a\\u{a}b");
    }
}
