//! Secrets in text become `[REDACTED]` (decision 65).
//!
//! Promises: known values first, then patterns; text without a secret is not copied; a second pass changes nothing; valid JSON stays
//! valid JSON (no quote is eaten, no escape is cut) and a text keeps its number of lines.
//! Does not: look inside encodings other than plain text and JSON strings (base64, percent-encoding, archives).

mod escapes;
mod fields;
mod known;
mod patterns;
mod text;

use std::{borrow::Cow, fmt};

pub use escapes::plain_escapes;
use known::Known;
use patterns::Patterns;
use text::Span;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// An environment value shorter than this is no secret: it would take ordinary words with it.
const ENVIRONMENT_BYTES_MIN: usize = 8;

/// A secret that is gone can show another (a key inside a quoted value hid where the quote ends). The second round finds nothing as a rule.
const ROUNDS_MAX: usize = 4;

/// What makes an environment name the name of a secret.
const SECRET_WORDS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Replaces secrets in text. Cheap to share, usable from several threads.
pub struct Redactor {
    known: Known,
    patterns: Patterns,
}

impl fmt::Debug for Redactor {
    // The known values are what must never be printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor that knows these values and the patterns. Values of fewer than 6 bytes are left out: they would ruin every text.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        Self { known: Known::new(known), patterns: Patterns::new() }
    }

    /// A redactor that knows the secrets of this process' environment, `extra` values and the patterns.
    #[must_use]
    pub fn from_environment(extra: impl IntoIterator<Item = String>) -> Self {
        // `vars` would panic on a variable that is not UTF-8; such a value cannot stand in our text either.
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::new(secrets_of(environment).into_iter().chain(extra))
    }

    /// A redactor that knows the patterns and no values.
    #[must_use]
    pub fn patterns_only() -> Self {
        Self::new([])
    }

    /// What replaces secrets in logs as they come in: those of the environment too, or none where the operator says so (`redaction.at_import`).
    #[must_use]
    pub fn at_import(on: bool) -> Self {
        if on { Self::from_environment(Vec::new()) } else { Self::off() }
    }

    /// A redactor that replaces nothing, for an operator who keeps the store as private as the logs (`redaction.at_import = false`).
    #[must_use]
    pub fn off() -> Self {
        Self { known: Known::new([]), patterns: Patterns::none() }
    }

    /// The value beside `name`, redacted: whole where the name says that it is a secret.
    #[must_use]
    pub fn redact_value<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if !self.patterns.is_none() && fields::is_secret_name(name.as_bytes()) && fields::is_secret_value(value.as_bytes()) {
            return Cow::Borrowed(REDACTED);
        }
        self.redact(value)
    }

    /// JSON text with every secret replaced, however its characters are escaped.
    #[must_use]
    pub fn redact_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        match plain_escapes(json) {
            Cow::Borrowed(json) => self.redact(json),
            Cow::Owned(json) => Cow::Owned(self.redact(&json).into_owned()),
        }
    }

    /// `text` with every secret replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Known values first: a pattern that cut one in half would leave the other half unknown.
        let mut text = rewrite(text, self.known.spans(text)).map_or(Cow::Borrowed(text), Cow::Owned);
        for _ in 0..ROUNDS_MAX {
            let Some(next) = rewrite(&text, self.patterns.spans(&text)) else { break };
            text = Cow::Owned(next);
        }
        text
    }
}

/// The values of `environment` that are secrets by their names.
fn secrets_of(environment: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        SECRET_WORDS.iter().any(|word| name.contains(word))
    };
    environment
        .into_iter()
        .filter(|(name, value)| value.trim().len() >= ENVIRONMENT_BYTES_MIN && secret(name))
        .map(|(_, value)| value)
        .collect()
}

/// `text` with `spans` replaced; none when there are none. The spans are in order and do not overlap.
fn rewrite(text: &str, spans: Vec<Span>) -> Option<String> {
    if spans.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for span in spans {
        out.push_str(text.get(copied..span.start).unwrap_or_default());
        out.push_str(span.with);
        // A transcript's line feeds are its line numbers: a secret of several lines gives as many back.
        let hidden = text.get(span.start..span.end).unwrap_or_default();
        out.extend(memchr::memchr_iter(b'\n', hidden.as_bytes()).map(|_| '\n'));
        copied = span.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

#[cfg(test)]
mod tests;
