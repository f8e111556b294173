//! Run references: a run id, `latest`, `latest~N`, a unique prefix of an id, or a Git sha prefix of 4 to 40 hexadecimal digits.
//!
//! The order is decision 56's: `latest` and `latest~N` are the newest runs whatever runs are called, so that no run's id can take over the
//! default; then an exact id wins over the beginnings of others. A run whose id reads as a reference ([`is_latest`]) cannot be named by it; ids
//! that are given by hand may not.
//!
//! Promises: one reading for every tool; clear sentences for none, ambiguous and malformed, on one line whatever the reference holds.
//! Does not: look anything up; `tools::resolve` asks the questions that this leaves.

use super::{attempt::shorten, text::clean};

/// Bytes of a reference that a sentence repeats.
const SHOWN_BYTES: usize = 120;

/// A reference, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The run `n` before the newest, recorded and scratch together.
    Latest(u32),
    /// An id, else a prefix of one, else (4 to 40 hexadecimal digits) a sha prefix.
    Name(String),
}

/// Why a reference names no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It is no reference at all.
    #[error("\"{0}\" is no run reference; give latest, latest~N, a run id, the beginning of one, or 4 to 40 digits of a Git sha")]
    Malformed(String),
    /// Nothing matches.
    #[error("no run matches \"{0}\"; runs_list shows the runs")]
    NoMatch(String),
    /// There are no runs at all.
    #[error("there are no runs yet; put logs in logs/, name their directory in runlore.toml, or import them with `runlore import PATH`")]
    Empty,
    /// A prefix of several ids.
    #[error("\"{reference}\" is the beginning of {} run ids: {}; give more of it", if *.more { "more than 5" } else { "several" }, .candidates.join(", "))]
    Ambiguous {
        /// The reference.
        reference: String,
        /// Up to five of the ids.
        candidates: Vec<String>,
        /// Whether there are more.
        more: bool,
    },
}

impl Reference {
    /// Reads a reference. Empty text is `latest`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.is_empty() || text == "latest" {
            return Self::Latest(0);
        }
        match back(text) {
            // More than can be counted is beyond the end too.
            Some(back) => Self::Latest(back.parse().unwrap_or(u32::MAX)),
            None => Self::Name(text.to_owned()),
        }
    }
}

/// Whether `id` would always be read as `latest` or `latest~N`.
#[must_use]
pub fn is_latest(id: &str) -> bool {
    matches!(Reference::parse(id), Reference::Latest(_))
}

/// The digits of `latest~N`.
fn back(text: &str) -> Option<&str> {
    text.strip_prefix("latest~").filter(|back| !back.is_empty() && back.bytes().all(|byte| byte.is_ascii_digit()))
}

impl ReferenceError {
    /// Why `text`, which names no run, does not.
    #[must_use]
    pub fn none(text: &str) -> Self {
        let malformed = text.starts_with("latest~") && back(text).is_none();
        if malformed { Self::Malformed(shown(text)) } else { Self::NoMatch(shown(text)) }
    }

    /// That `text` is the beginning of the ids of `candidates`, and of others where there are `more`.
    #[must_use]
    pub fn ambiguous(text: &str, candidates: &[&str], more: bool) -> Self {
        Self::Ambiguous { reference: shown(text), candidates: candidates.iter().map(|id| shown(id)).collect(), more }
    }
}

/// Cut before it is cleaned, so that no escape is cut in half.
fn shown(text: &str) -> String {
    clean(&shorten(text, SHOWN_BYTES))
}

/// `name` as a sha prefix in lower case, if it can be one.
#[must_use]
pub fn sha_prefix(name: &str) -> Option<String> {
    ((4..=40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_ascii_lowercase())
}

/// Whether two shas name one commit: one is a prefix of the other, ignoring case, and both have at least 4 digits.
#[must_use]
pub fn same_commit(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short.len() >= 4 && long.get(..short.len()).is_some_and(|head| head.eq_ignore_ascii_case(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read() {
        assert_eq!(Reference::parse(""), Reference::Latest(0));
        assert_eq!(Reference::parse("latest~12"), Reference::Latest(12));
        assert_eq!(Reference::parse("latest~99999999999"), Reference::Latest(u32::MAX));
        for name in ["703F368", "latest~", "latest~-1", "latest~x", "latests", "Latest", "a\nb"] {
            assert_eq!(Reference::parse(name), Reference::Name(name.into()));
            assert!(!is_latest(name));
        }
        assert!(["latest", "latest~0", "latest~12", "latest~99999999999"].into_iter().all(is_latest));
        assert_eq!(sha_prefix("703F368"), Some("703f368".into()));
        assert_eq!(sha_prefix("abc"), None);
    }

    #[test]
    fn what_names_nothing_is_told_on_one_line() {
        for wrong in ["latest~", "latest~-1", "latest~x", "latest~\n"] {
            let said = ReferenceError::none(wrong);
            assert!(matches!(said, ReferenceError::Malformed(_)), "{wrong:?}");
            assert!(!said.to_string().chars().any(super::super::text::hidden), "{said}");
        }
        for none in ["latest~99999999999", "latest~7", "nothing", "a\nb", "\u{1b}[2J", "\u{202e}cba"] {
            let said = ReferenceError::none(none);
            assert!(matches!(said, ReferenceError::NoMatch(_)), "{none}");
            assert!(!said.to_string().chars().any(super::super::text::hidden), "{said}");
        }
        assert!(ReferenceError::none(&"x".repeat(100_000)).to_string().len() < 300);
    }

    #[test]
    fn an_ambiguous_reference_lists_its_candidates() {
        let error = ReferenceError::ambiguous("a", &["ab", "a\nc"], false);
        assert_eq!(error.to_string(), "\"a\" is the beginning of several run ids: ab, a\\u{a}c; give more of it");
    }

    #[test]
    fn short_and_long_shas_match() {
        assert!(same_commit("703f368", "703F3681234"));
        assert!(!same_commit("703f368", "703f369"));
        assert!(!same_commit("", "703f369"));
    }
}
