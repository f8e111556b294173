//! Run references: `latest`, `latest~N`, a run id, a unique prefix of one, or a Git sha prefix of 4 to 40 hexadecimal digits (decision 56).
//!
//! Promises: one reading for every tool; clear sentences for none, ambiguous and malformed.
//! Does not: look anything up; the store answers the questions that [`Reference::parse`] leaves.

/// A reference, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The run `n` before the newest, recorded and scratch together.
    Latest(u32),
    /// An exact id, else a prefix of one, else (4 to 40 hexadecimal digits) a sha prefix.
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
    #[error("there are no runs yet; import logs with `runlore import PATH`")]
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
    ///
    /// # Errors
    /// [`ReferenceError::Malformed`] for `latest~` without a number, control characters, or more than 512 bytes.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let malformed = || ReferenceError::Malformed(super::attempt::shorten(text, 80));
        if text.len() > 512 || text.chars().any(char::is_control) {
            return Err(malformed());
        }
        if text.is_empty() || text == "latest" {
            return Ok(Self::Latest(0));
        }
        match text.strip_prefix("latest~") {
            Some(back) if !back.is_empty() && back.bytes().all(|byte| byte.is_ascii_digit()) => {
                back.parse().map(Self::Latest).map_err(|_| ReferenceError::NoMatch(text.to_owned()))
            }
            Some(_) => Err(malformed()),
            None => Ok(Self::Name(text.to_owned())),
        }
    }
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
        assert_eq!(Reference::parse(""), Ok(Reference::Latest(0)));
        assert_eq!(Reference::parse("latest~12"), Ok(Reference::Latest(12)));
        assert_eq!(Reference::parse("703F368"), Ok(Reference::Name("703F368".into())));
        assert_eq!(sha_prefix("703F368"), Some("703f368".into()));
        assert_eq!(sha_prefix("abc"), None);
        for wrong in ["latest~", "latest~-1", "latest~x", "a\nb"] {
            assert!(matches!(Reference::parse(wrong), Err(ReferenceError::Malformed(_))), "{wrong}");
        }
        assert!(matches!(Reference::parse("latest~99999999999"), Err(ReferenceError::NoMatch(_))));
    }

    #[test]
    fn an_ambiguous_reference_lists_its_candidates() {
        let error = ReferenceError::Ambiguous { reference: "a".into(), candidates: vec!["ab".into(), "ac".into()], more: false };
        assert_eq!(error.to_string(), "\"a\" is the beginning of several run ids: ab, ac; give more of it");
    }

    #[test]
    fn short_and_long_shas_match() {
        assert!(same_commit("703f368", "703F3681234"));
        assert!(!same_commit("703f368", "703f369"));
        assert!(!same_commit("", "703f369"));
    }
}
