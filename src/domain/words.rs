//! Words: what a text is searched by, and the question that is asked of it.
//!
//! Promises: a question and a text are taken apart by the same rule, so that what is written is found: letters and digits in lower case, anything
//! else parts them, a Chinese or Japanese character is a word of its own. A question is data: no character of it is an operator but the
//! quotation mark and the star, and neither can be wrong.
//! Does not: know where texts are kept.

use std::collections::BTreeSet;

/// Characters of a word that count; what is longer (an image in base64) is its beginning.
const WORD_MAX: usize = 64;
/// Words of a question at most: more narrow nothing.
const QUESTION_MAX: usize = 16;
/// Characters that an excerpt shows before and after the first word that was found.
const BEFORE: usize = 60;
const AFTER: usize = 140;
/// Keys of transcripts whose values name or date things for machines: nobody asks for them, and each is another word.
const UNREAD: &[&str] = &[
    "id",
    "uuid",
    "event_id",
    "span_id",
    "parent_id",
    "parent_span_id",
    "message_id",
    "tool_call_id",
    "timestamp",
    "completed",
    "working_start",
    "encrypted_content",
    "signature",
];

/// Hands each word of `text` to `take`, with where it begins and ends in it.
pub fn each_word(text: &str, mut take: impl FnMut(&str, usize, usize)) {
    let mut word = String::new();
    let (mut begin, mut length) = (0, 0);
    for (at, character) in text.char_indices() {
        let alone = is_alone(character);
        if !alone && is_part(character) {
            if length == 0 {
                begin = at;
            }
            if length < WORD_MAX {
                push_lower(&mut word, character);
            }
            length += 1;
            continue;
        }
        if length > 0 {
            take(&word, begin, at);
            word.clear();
            length = 0;
        }
        if alone {
            word.push(character);
            take(&word, at, at + character.len_utf8());
            word.clear();
        }
    }
    if length > 0 {
        take(&word, begin, text.len());
    }
}

fn push_lower(word: &mut String, character: char) {
    if character.is_ascii() { word.push(character.to_ascii_lowercase()) } else { word.extend(character.to_lowercase()) }
}

fn is_part(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_alphanumeric()
    } else {
        character.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&character)
    }
}

/// Whether the character is of a script that puts no spaces between words.
const fn is_alone(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

/// Hands each text of a transcript's line to `take`: the values of its JSON that are texts, but for names and dates for machines; the line
/// itself where it is no JSON.
pub fn each_text(line: &str, mut take: impl FnMut(&str)) {
    if !line.trim_start().starts_with(['{', '[']) {
        take(line);
        return;
    }
    let (mut rest, mut text, mut unread) = (line, String::new(), false);
    while let Some((_, after)) = rest.split_once('"') {
        text.clear();
        rest = string(after, &mut text);
        match rest.trim_start().strip_prefix(':') {
            Some(_) => unread = UNREAD.contains(&text.as_str()),
            None if unread => unread = false,
            None => take(&text),
        }
    }
}

/// Reads a JSON string, whose quotation mark is before `rest`, into `text`; what comes behind it.
fn string<'a>(mut rest: &'a str, text: &mut String) -> &'a str {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(before);
        let mut characters = from.chars();
        if characters.next() == Some('"') {
            return characters.as_str();
        }
        match characters.next() {
            Some('n' | 't' | 'r' | 'b' | 'f') => text.push(' '),
            Some('u') => {
                let code: String = characters.clone().take(4).collect();
                let read = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                // Half of a pair is no letter of any script that is told apart here.
                text.push(read.unwrap_or(' '));
                code.chars().for_each(|_| {
                    characters.next();
                });
            }
            Some(other) => text.push(other),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    ""
}

/// A word that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// In lower case.
    pub text: String,
    /// Whether words that begin so are meant too.
    pub beginning: bool,
}

impl Word {
    fn is(&self, word: &str) -> bool {
        if self.beginning { word.starts_with(&self.text) } else { word == self.text }
    }
}

/// What is asked: words that must all stand in a text, some of them side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    words: Vec<Word>,
    phrases: Vec<Vec<Word>>,
}

impl Question {
    /// Reads a question: words, `beginning*`, and `"words side by side"`. What holds several words without a space (`infra_error`) means them
    /// side by side.
    ///
    /// # Errors
    /// Where it holds no word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut question = Self::default();
        for (number, part) in text.split('"').enumerate() {
            if number % 2 == 1 {
                question.add(part);
            } else {
                part.split_whitespace().for_each(|piece| question.add(piece));
            }
        }
        question.words.truncate(QUESTION_MAX);
        question.words.dedup();
        if question.words.is_empty() { Err("it holds no word; give letters or digits".to_owned()) } else { Ok(question) }
    }

    fn add(&mut self, piece: &str) {
        let mut words = Vec::new();
        each_word(piece, |word, _, _| words.push(Word { text: word.to_owned(), beginning: false }));
        if piece.trim_end().ends_with('*')
            && let Some(last) = words.last_mut()
        {
            last.beginning = true;
        }
        self.words.extend(words.iter().cloned());
        if words.len() > 1 {
            words.truncate(QUESTION_MAX);
            self.phrases.push(words);
        }
    }

    /// The words, each of which must be there.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Whether it is more than its words: whether some must stand side by side.
    #[must_use]
    pub fn has_phrases(&self) -> bool {
        !self.phrases.is_empty()
    }

    /// Whether `texts` together hold every word, and each phrase in one of them.
    #[must_use]
    pub fn found_in<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> bool {
        let mut look = Look::new(self);
        texts.into_iter().for_each(|text| look.see(text));
        look.all()
    }

    /// What stands around the first phrase in `text`, or else the first word; none where there is none.
    #[must_use]
    pub fn excerpt(&self, text: &str) -> Option<String> {
        self.found_at(text).map(|(excerpt, _)| excerpt)
    }

    /// The same, and whether it is of all that is asked to stand side by side rather than of one word.
    #[must_use]
    pub fn found_at(&self, text: &str) -> Option<(String, bool)> {
        let mut seen: Vec<(String, usize, usize)> = Vec::new();
        let longest = self.phrases.iter().map(Vec::len).max().unwrap_or(0);
        let (mut phrase, mut word) = (None, None);
        each_word(text, |found, begin, end| {
            if phrase.is_some() {
                return;
            }
            if word.is_none() && self.words.iter().any(|word| word.is(found)) {
                word = Some((begin, end));
            }
            if longest > 0 {
                seen.push((found.to_owned(), begin, end));
                if seen.len() > longest {
                    seen.remove(0);
                }
                phrase = self.phrases.iter().find_map(|wanted| ends_with(&seen, wanted)).map(|begin| (begin, end));
            }
        });
        let whole = phrase.is_some() || self.phrases.is_empty();
        phrase.or(word).map(|(begin, end)| (around(text, begin, end), whole))
    }
}

/// Where the words seen last begin, if they are `wanted`.
fn ends_with(seen: &[(String, usize, usize)], wanted: &[Word]) -> Option<usize> {
    let tail = seen.get(seen.len().checked_sub(wanted.len())?..)?;
    let same = tail.iter().zip(wanted).all(|((found, ..), word)| word.is(found));
    tail.first().filter(|_| same).map(|(_, begin, _)| *begin)
}

/// Some of `text` around what stands from `begin` to `end`, on one line.
fn around(text: &str, begin: usize, end: usize) -> String {
    let (before, rest) = text.split_at_checked(begin).unwrap_or((text, ""));
    let (found, after) = rest.split_at_checked(end.saturating_sub(begin)).unwrap_or((rest, ""));
    let first = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let last = after.char_indices().nth(AFTER).map_or(after.len(), |(at, _)| at);
    let shown = format!("{}{}{}", before.get(first..).unwrap_or(before), found, after.get(..last).unwrap_or(after));
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{line}{}", if first > 0 { "..." } else { "" }, if last < after.len() { "..." } else { "" })
}

/// A question on its way through texts.
pub struct Look<'a> {
    question: &'a Question,
    words: Vec<bool>,
    phrases: Vec<bool>,
}

impl<'a> Look<'a> {
    /// Nothing is found yet.
    #[must_use]
    pub fn new(question: &'a Question) -> Self {
        Self { question, words: vec![false; question.words.len()], phrases: vec![false; question.phrases.len()] }
    }

    /// Looks at one more text.
    pub fn see(&mut self, text: &str) {
        let mut seen: Vec<(String, usize, usize)> = Vec::new();
        let longest = self.question.phrases.iter().map(Vec::len).max().unwrap_or(0);
        each_word(text, |found, begin, end| {
            for (word, there) in self.question.words.iter().zip(&mut self.words) {
                *there |= word.is(found);
            }
            if longest > 0 {
                seen.push((found.to_owned(), begin, end));
                if seen.len() > longest {
                    seen.remove(0);
                }
                for (wanted, there) in self.question.phrases.iter().zip(&mut self.phrases) {
                    *there |= ends_with(&seen, wanted).is_some();
                }
            }
        });
    }

    /// Whether all was found.
    #[must_use]
    pub fn all(&self) -> bool {
        self.words.iter().chain(&self.phrases).all(|there| *there)
    }
}

/// The distinct words of texts, up to a bound.
#[derive(Debug, Default)]
pub struct WordSet {
    words: BTreeSet<Box<str>>,
    bytes: usize,
}

impl WordSet {
    /// Bytes of one row's words at most: a transcript of random texts must not fill memory, nor the index.
    const BYTES_MAX: usize = 1024 * 1024;

    /// Adds the words of a text.
    pub fn add(&mut self, text: &str) {
        each_word(text, |word, _, _| {
            if self.bytes < Self::BYTES_MAX && !self.words.contains(word) {
                self.bytes += word.len() + 1;
                self.words.insert(word.into());
            }
        });
    }

    /// Adds the words of a transcript's line.
    pub fn add_line(&mut self, line: &str) {
        each_text(line, |text| self.add(text));
    }

    /// All of them, with spaces between; empties the set.
    pub fn take(&mut self) -> String {
        let mut out = String::with_capacity(self.bytes);
        for word in std::mem::take(&mut self.words) {
            out.push_str(&word);
            out.push(' ');
        }
        self.bytes = 0;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_word(text, |word, begin, end| {
            assert!(!text.get(begin..end).unwrap().is_empty());
            out.push(word.to_owned());
        });
        out
    }

    fn texts(line: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_text(line, |text| out.push(text.to_owned()));
        out
    }

    #[test]
    fn a_text_is_its_letters_and_digits() {
        assert_eq!(words("KeyError: 'foo_bar' (line 12)"), ["keyerror", "foo", "bar", "line", "12"]);
        assert_eq!(words("Äpfel, ÉTÉ—naïve"), ["äpfel", "été", "naïve"]);
        assert_eq!(words("東京 tower"), ["東", "京", "tower"]);
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(64)]);
        assert_eq!(words(" ,;"), Vec::<String>::new());
    }

    #[test]
    fn a_line_is_the_texts_of_its_values() {
        let line = r#"{"role":"user","id":"abc","content":[{"type":"text","text":"one\ntwo \"q\" \u00e9 \\x"}],"uuid": "u","n":5}"#;
        assert_eq!(texts(line), ["user", "text", "one two \"q\" é \\x"]);
        assert_eq!(texts("plain \"text\""), ["plain \"text\""]);
        assert_eq!(texts(r#"{"id":5,"a":"b""#), ["b"]);
        for torn in [r#"{"a":"b\"#, r#"{"a":"b\u00"#, "{\"", "[", r#"{"a":"\ud83d\ude00x"}"#] {
            texts(torn);
        }
    }

    #[test]
    fn questions_are_words_beginnings_and_phrases() {
        let found = |question: &str, text: &str| Question::parse(question).unwrap().found_in([text]);
        assert!(found("error TIMEOUT", "Timeout: an error") && !found("error timeout", "an error"));
        assert!(found("time*", "timeouts") && !found("time", "timeouts"));
        assert!(found("\"an error\"", "not an ERROR") && !found("\"an error\"", "an other error"));
        assert!(found("infra_error", "x infra-error y") && !found("infra_error", "error infra"));
        assert!(Question::parse("\"a b").unwrap().has_phrases());
        for none in ["", " ", "\"\"", "*", "---", "( ) ^ :"] {
            assert!(Question::parse(none).is_err(), "{none}");
        }
        // What would be syntax elsewhere is words here.
        for odd in ["a AND OR NOT (", "col:x", "NEAR(a b)", "\"", "a\"", "^a -b", "a' OR 1=1 --"] {
            assert!(Question::parse(odd).is_err() || !Question::parse(odd).unwrap().words().is_empty(), "{odd}");
        }
    }

    #[test]
    fn an_excerpt_stands_around_what_was_found() {
        let question = Question::parse("\"the needle\"").unwrap();
        let text = format!("needle {} the needle {}", "hay ".repeat(40), "stack ".repeat(60));
        let excerpt = question.excerpt(&text).unwrap();
        assert!(excerpt.starts_with("...") && excerpt.ends_with("...") && excerpt.contains("hay the needle stack"), "{excerpt}");
        assert_eq!(question.excerpt("a\nneedle").as_deref(), Some("a needle"));
        assert_eq!(question.excerpt("hay"), None);
    }
}
