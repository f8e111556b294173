//! Secrets that show by their shape: providers' prefixes, JWTs, PEM blocks, `Bearer x`, `NAME=value`, and what `fields` knows.
//!
//! Promises: one pass over the text for the literals that every shape begins with or holds; bytes are looked at one by one only near a hit,
//! and no stretch more than a few times, whatever the text is. A span never holds a quote or half an escape of a JSON string.
//! Does not: know values, or judge how random a text is.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind, Span as Window, packed};

use super::{
    REDACTED, fields,
    text::{Span, begins_word, byte, goes_on, is_unicode_escape, run, run_back, run_with_escapes},
};

/// A shape that begins with, or holds, a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `sk-` and what follows: the only prefix that ends ordinary words.
    Sk,
    /// A prefix and at least so many letters, digits and underscores.
    Word(usize),
    /// A prefix and at least so many letters, digits, underscores and dashes.
    Dashed(usize),
    /// `AKIA` and 16 capitals or digits.
    Aws,
    /// A JSON web token.
    Jwt,
    /// A private key in PEM.
    Pem,
    /// `Bearer x`.
    Bearer,
    /// `NAME=value`, or as `Field`.
    Name,
    /// `"name": "value"` and `name=value`, in any case.
    Field,
    /// `://user:password@`.
    Address,
}

/// The literals; what is `bear` here is searched in every mixture of cases.
const LITERALS: [(&str, Shape); 36] = [
    // Our own API keys.
    ("rlk_", Shape::Dashed(30)),
    ("sk-", Shape::Sk),
    ("ghp_", Shape::Word(20)),
    ("gho_", Shape::Word(20)),
    ("ghu_", Shape::Word(20)),
    ("ghs_", Shape::Word(20)),
    ("ghr_", Shape::Word(20)),
    ("github_pat_", Shape::Word(20)),
    ("hf_", Shape::Word(30)),
    ("glpat-", Shape::Dashed(20)),
    ("AIza", Shape::Dashed(30)),
    ("AKIA", Shape::Aws),
    ("ASIA", Shape::Aws),
    ("xoxa-", Shape::Dashed(10)),
    ("xoxb-", Shape::Dashed(10)),
    ("xoxe-", Shape::Dashed(10)),
    ("xoxp-", Shape::Dashed(10)),
    ("xoxr-", Shape::Dashed(10)),
    ("xoxs-", Shape::Dashed(10)),
    ("eyJ", Shape::Jwt),
    ("-----BEGIN ", Shape::Pem),
    ("bear", Shape::Bearer),
    ("KEY", Shape::Name),
    ("TOKEN", Shape::Name),
    ("SECRET", Shape::Name),
    ("PASSWORD", Shape::Name),
    ("PASSWD", Shape::Field),
    ("UTHORIZ", Shape::Field),
    ("key", Shape::Field),
    ("Key", Shape::Field),
    ("token", Shape::Field),
    ("Token", Shape::Field),
    ("ecret", Shape::Field),
    ("assw", Shape::Field),
    ("uthoriz", Shape::Field),
    ("://", Shape::Address),
];

/// The part of an environment-like name that is looked at on either side of its secret word.
const NAME_BYTES_MAX: usize = 64;

/// Finds literals: vector instructions where the processor has them, else an automaton.
enum Finder {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
    /// Nothing is looked for.
    Nothing,
}

/// A finder of shapes.
pub struct Patterns {
    finder: Finder,
    literals: Vec<(String, Shape)>,
}

impl Patterns {
    /// The finder of all shapes.
    pub fn new() -> Self {
        let literals: Vec<(String, Shape)> =
            LITERALS.iter().flat_map(|(literal, shape)| cases(literal, *shape).into_iter().map(|form| (form, *shape))).collect();
        let forms = || literals.iter().map(|(form, _)| form.as_str());
        let packed = packed::Config::new().match_kind(packed::MatchKind::LeftmostFirst).builder().extend(forms()).build();
        let automaton =
            || AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(forms()).map_or(Finder::Nothing, Finder::Automaton);
        Self { finder: packed.map_or_else(automaton, Finder::Packed), literals }
    }

    /// Whether nothing is looked for.
    pub const fn is_none(&self) -> bool {
        matches!(self.finder, Finder::Nothing)
    }

    /// A finder of nothing.
    pub const fn none() -> Self {
        Self { finder: Finder::Nothing, literals: Vec::new() }
    }

    /// Where secrets stand in `text`, in order and without overlap.
    pub fn spans(&self, text: &str) -> Vec<Span> {
        let mut scan = Scan { bytes: text.as_bytes(), resumed: 0, hopeless: Hopeless::default() };
        let mut spans = Vec::new();
        let mut at = 0;
        while let Some((hit, pattern)) = self.next(scan.bytes, at) {
            let found = self.literals.get(pattern).and_then(|(literal, shape)| scan.secret(hit, literal.len(), *shape));
            let found = found.map(|range| with_key(scan.bytes, range));
            // From the byte after a hit that was none: "sk-----BEGIN" holds two literals.
            at = found.as_ref().map_or(hit + 1, |range| range.end);
            if let Some(Range { start, end }) = found {
                scan.resumed = end;
                spans.push(Span { start, end, with: REDACTED });
            }
        }
        spans
    }

    fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let found = match &self.finder {
            Finder::Packed(packed) => packed.find_in(bytes, Window { start: from, end: bytes.len() }),
            Finder::Automaton(automaton) => automaton.find(Input::new(bytes).range(from..)),
            Finder::Nothing => None,
        }?;
        Some((found.start(), found.pattern().as_usize()))
    }
}

/// A literal as it is; `bear` in every mixture of cases, since a scheme's case does not matter and the finder's does.
fn cases(literal: &str, shape: Shape) -> Vec<String> {
    if shape != Shape::Bearer {
        return vec![literal.to_owned()];
    }
    let grow = |forms: Vec<String>, letter: char| -> Vec<String> {
        forms.iter().flat_map(|form| [format!("{form}{letter}"), format!("{form}{}", letter.to_ascii_uppercase())]).collect()
    };
    literal.chars().fold(vec![String::new()], grow)
}

/// Ends of runs in which a shape was found wanting: a later start in the same run is shorter still. It keeps hostile text linear.
#[derive(Default)]
struct Hopeless {
    sk: usize,
    /// With the length that was wanted.
    token: (usize, usize),
    jwt: usize,
}

/// One pass over one text.
struct Scan<'a> {
    bytes: &'a [u8],
    /// Where the last secret ended: what follows it is a word of its own, since a second pass would see it so.
    resumed: usize,
    hopeless: Hopeless,
}

impl Scan<'_> {
    fn secret(&mut self, hit: usize, literal: usize, shape: Shape) -> Option<Range<usize>> {
        let body = hit + literal;
        match shape {
            Shape::Sk => self.sk(hit, body),
            Shape::Word(min) => self.token(hit, body, min, |byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            Shape::Dashed(min) => self.token(hit, body, min, is_base64url),
            Shape::Aws => self.aws(hit, body),
            Shape::Jwt => self.jwt(hit),
            Shape::Pem => pem(self.bytes, hit, body),
            Shape::Bearer => self.bearer(hit),
            Shape::Name => name_value(self.bytes, hit, body).or_else(|| fields::value(self.bytes, hit, body)),
            Shape::Field => fields::value(self.bytes, hit, body),
            Shape::Address => fields::password_of_address(self.bytes, body),
        }
    }

    fn begins(&self, at: usize) -> bool {
        at == self.resumed || begins_word(self.bytes, at)
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// `sk-`, at the beginning of a word, and a body that no word has: "task-1", "sk-learn" and "risk-free" are none.
    fn sk(&mut self, hit: usize, body: usize) -> Option<Range<usize>> {
        if hit < self.hopeless.sk || !self.begins(hit) {
            return None;
        }
        let end = run(self.bytes, body, is_base64url);
        let random =
            |part: &[u8]| part.len() >= 16 || (part.len() >= 8 && has(part, u8::is_ascii_digit) && has(part, u8::is_ascii_alphabetic));
        let secret = end - body >= 16 && self.slice(body..end).split(|byte| b"-_".contains(byte)).any(random);
        self.hopeless.sk = end;
        secret.then_some(hit..end)
    }

    /// A distinctive prefix with a long body that is no mere snake_case name.
    fn token(&mut self, hit: usize, body: usize, min: usize, takes: impl Fn(u8) -> bool) -> Option<Range<usize>> {
        let (hopeless_to, hopeless_min) = self.hopeless.token;
        if hit < hopeless_to && min >= hopeless_min {
            return None;
        }
        let end = run(self.bytes, body, takes);
        let secret = end - body >= min && has(self.slice(body..end), |byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        self.hopeless.token = (end, min);
        secret.then_some(hit..end)
    }

    fn aws(&self, hit: usize, body: usize) -> Option<Range<usize>> {
        let end = run(self.bytes, body, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        (end - body >= 16).then_some(hit..end)
    }

    /// Three parts in base64url; the first two are JSON objects, so each begins with `eyJ` (the second where it has no space).
    fn jwt(&mut self, hit: usize) -> Option<Range<usize>> {
        if hit < self.hopeless.jwt {
            return None;
        }
        let header = run(self.bytes, hit, is_base64url);
        self.hopeless.jwt = header;
        let payload = run(self.bytes, header + 1, is_base64url);
        let signature = run(self.bytes, payload + 1, is_base64url);
        let dots = byte(self.bytes, header) == Some(b'.') && byte(self.bytes, payload) == Some(b'.');
        let long = header - hit >= 12 && payload.saturating_sub(header) > 8 && signature.saturating_sub(payload) > 8;
        let sure = self.begins(hit) || goes_on(self.bytes, header + 1, b"eyJ");
        (dots && long && sure).then_some(hit..signature)
    }

    /// The token of `Bearer x`, the word staying. "Bearer of bad news" has none.
    fn bearer(&self, hit: usize) -> Option<Range<usize>> {
        let word = self.bytes.get(hit..hit + 6)?;
        if !word.eq_ignore_ascii_case(b"bearer") || !self.begins(hit) {
            return None;
        }
        let start = run(self.bytes, hit + 6, |byte| byte == b' ' || byte == b'\t');
        let end = run_with_escapes(self.bytes, start, |byte| is_base64url(byte) || b".~+/=".contains(&byte));
        // A sentence's full stop is not the token's.
        let stops = self.slice(start..end).iter().rev().take_while(|byte| **byte == b'.').count();
        let token = self.slice(start..end - stops);
        let secret = start > hit + 6 && (is_token(token) || (token.len() >= 4 && self.is_header(hit)));
        secret.then_some(start..end - stops)
    }

    /// Whether what stands at `at` is the value of an `Authorization` header, in any notation.
    fn is_header(&self, at: usize) -> bool {
        let name_end = run_back(self.bytes, at, 12, |byte| b":=\"'\\ ".contains(&byte));
        name_end.checked_sub(13).is_some_and(|from| self.slice(from..name_end).eq_ignore_ascii_case(b"authorization"))
    }
}

fn has(bytes: &[u8], what: impl Fn(&u8) -> bool) -> bool {
    bytes.iter().any(what)
}

/// Whether no ordinary word looks so: a digit in it, one piece longer than words are, or a very long row of pieces.
fn is_token(token: &[u8]) -> bool {
    let one_piece = token.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let odd = token.len() >= 32 || (token.len() >= 18 && one_piece) || (token.len() >= 6 && has(token, u8::is_ascii_digit));
    odd && has(token, u8::is_ascii_alphanumeric)
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The value of `NAME=value`, the name staying.
fn name_value(bytes: &[u8], hit: usize, body: usize) -> Option<Range<usize>> {
    let of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let name_start = run_back(bytes, hit, NAME_BYTES_MAX, of_name);
    let window = bytes.get(..bytes.len().min(body + NAME_BYTES_MAX))?;
    let name_end = run(window, body, of_name);
    if byte(bytes, name_end) != Some(b'=') {
        return None;
    }
    let start = value_start(bytes, name_end + 1);
    let end = quoted_end(bytes, name_end + 1, start).unwrap_or_else(|| run_with_escapes(bytes, start, of_value));
    let (name, value) = (bytes.get(name_start..name_end)?, bytes.get(start..end)?);
    (!is_harmless(name, value)).then_some(start..end)
}

fn of_value(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !b"\"'`\\".contains(&byte)
}

/// Where a value ends that began with a quote and has spaces: at the same quote, on the same line.
fn quoted_end(bytes: &[u8], before: usize, start: usize) -> Option<usize> {
    let opening = bytes.get(before..start).filter(|opening| !opening.is_empty())?;
    let end = run_with_escapes(bytes, start, |byte| byte == b' ' || of_value(byte));
    goes_on(bytes, end, opening).then_some(end)
}

/// Where the value begins: after an opening quote, which a JSON string's closing quote must not be taken for.
fn value_start(bytes: &[u8], at: usize) -> usize {
    let slashes_end = run(bytes, at, |byte| byte == b'\\');
    let quote = byte(bytes, slashes_end);
    let opens = match (quote, (slashes_end - at) % 2) {
        // Neither can end a JSON string.
        (Some(b'\'' | b'`'), _) => true,
        // `\"` and `\\\"` stand inside a string.
        (Some(b'"'), 1) => true,
        // A bare quote ends a JSON string, and then only these can follow.
        (Some(b'"'), _) => {
            slashes_end == at && byte(bytes, at + 1).is_some_and(|next| !next.is_ascii_whitespace() && !b",:}]".contains(&next))
        }
        _ => false,
    };
    if opens { slashes_end + 1 } else { at }
}

/// Whether the value of a name is plainly no secret: nothing, one character, a comparison, a switch, a count of tokens, the `KEY=VALUE` of a
/// help text, or already redacted.
fn is_harmless(name: &[u8], value: &[u8]) -> bool {
    const SWITCHES: [&[u8]; 10] = [b"true", b"false", b"none", b"null", b"nil", b"yes", b"no", b"on", b"off", b"undefined"];
    let count = value.len() <= 7 && value.iter().all(u8::is_ascii_digit);
    let counted = memchr::memmem::find(name, b"TOKENS").is_some()
        || [&b"MAX_"[..], b"MIN_", b"NUM_", b"N_"].iter().any(|start| name.starts_with(start));
    value.is_empty()
        || value.starts_with(b"=")
        || value == REDACTED.as_bytes()
        || SWITCHES.iter().any(|switch| value.eq_ignore_ascii_case(switch))
        || value.len() == 1
        || (count && counted)
        || (name == b"KEY" && value.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"val")))
}

/// The range with all of a private key that begins in it: a key is the one secret with spaces, which end every other (`PRIVATE_KEY=-----BEGIN ...`).
fn with_key(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    const BEGIN: &[u8] = b"-----BEGIN";
    let key = bytes.get(range.clone()).and_then(|found| memchr::memmem::find(found, BEGIN));
    let key = key.map(|at| range.start + at).filter(|at| goes_on(bytes, at + BEGIN.len(), b" "));
    let end = key.and_then(|at| pem(bytes, at, at + BEGIN.len() + 1)).map_or(range.end, |key| key.end);
    range.start..end.max(range.end)
}

/// A private key from its first line to its last, or to where it was cut off.
fn pem(bytes: &[u8], hit: usize, body: usize) -> Option<Range<usize>> {
    let label_end = label(bytes, body)?;
    let mut block = Block { at: label_end, kept: label_end, token: label_end, payload: false, prose: false };
    while !goes_on(bytes, block.at, b"-----") {
        let Some((length, blank)) = unit(bytes, block.at) else { break };
        if blank {
            block.close_token();
            block.token = block.at + length;
        }
        block.at += length;
    }
    if goes_on(bytes, block.at, b"-----END ") {
        let end = label(bytes, block.at + 9);
        return Some(hit..end.unwrap_or(block.at));
    }
    block.close_last();
    block.payload.then_some(hit..block.kept)
}

/// How far a key's lines reach.
struct Block {
    at: usize,
    /// The end of what is surely key.
    kept: usize,
    /// Where the line under way began.
    token: usize,
    payload: bool,
    prose: bool,
}

impl Block {
    /// A key's lines are long; a short one after them is another text, or the last line, which only `END` can tell.
    fn close_token(&mut self) {
        let long = self.at - self.token >= 16;
        if long && !self.prose {
            self.kept = self.at;
            self.payload = true;
        } else if self.payload && self.at > self.token {
            self.prose = true;
        }
    }

    /// The line at which the text was cut belongs to the key, however short.
    fn close_last(&mut self) {
        self.close_token();
        if self.payload && self.token >= self.kept && self.at > self.token {
            let cut_line = self.at - self.token < 16;
            self.kept = if cut_line { self.at } else { self.kept };
        }
    }
}

/// The end of `RSA PRIVATE KEY-----` at `at`.
fn label(bytes: &[u8], at: usize) -> Option<usize> {
    let window = bytes.get(..bytes.len().min(at + NAME_BYTES_MAX))?;
    let end = run(window, at, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let private = memchr::memmem::find(bytes.get(at..end)?, b"PRIVATE KEY").is_some();
    (private && goes_on(bytes, end, b"-----")).then_some(end + 5)
}

/// The length of the next piece of a PEM body at `at`, and whether it is blank. Escapes are whole pieces; a bare quote is none.
fn unit(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let first = byte(bytes, at)?;
    if first.is_ascii_whitespace() {
        return Some((1, true));
    }
    if first.is_ascii_alphanumeric() || b"+/=:,.-()".contains(&first) {
        return Some((1, false));
    }
    let slashes_end = run(bytes, at, |byte| byte == b'\\');
    let slashes = slashes_end - at;
    match byte(bytes, slashes_end)? {
        b'n' | b'r' | b't' if slashes > 0 => Some((slashes + 1, true)),
        b'"' if slashes % 2 == 1 => Some((slashes + 1, true)),
        b'/' if slashes > 0 => Some((slashes + 1, false)),
        b'u' if slashes > 0 && is_unicode_escape(bytes, slashes_end - 1) => Some((slashes + 5, false)),
        _ => None,
    }
}
