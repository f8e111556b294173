//! The static bearer token (`--token`, `RUNLORE_MCP_TOKEN`, `--token-file`; decision 17).
//!
//! Promises: compared in constant time, by digests, so that neither its text nor its length shows; never printed. A token that could never
//! be sent in a header is refused at start, not at every request.
//! Does not: read the environment or say how a program exits; whoever starts the server does.

use std::{fmt, fs::File, io::Read, path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Caller;

/// Longer is no token but a mistake, such as the wrong file.
const TOKEN_BYTES_MAX: usize = 4096;

/// The token that opens a server.
#[derive(Clone)]
pub struct StaticToken {
    text: Arc<str>,
    digest: [u8; 32],
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticToken(..)")
    }
}

/// Where a token may come from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The flag `--token`.
    pub flag: Option<&'a str>,
    /// The variable `RUNLORE_MCP_TOKEN`.
    pub variable: Option<&'a str>,
    /// The flag `--token-file` or the variable `RUNLORE_MCP_TOKEN_FILE`.
    pub file: Option<&'a Path>,
}

/// Why there is no usable token.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// The flag is empty.
    #[error("--token is empty; leave it out for a server without a token")]
    EmptyFlag,
    /// The file is empty.
    #[error("the token file {0} is empty")]
    EmptyFile(String),
    /// The file cannot be read.
    #[error("the token file {0} cannot be read: {1}")]
    Unreadable(String, String),
    /// The text cannot be sent as a bearer token.
    #[error("the token from {0} must be 1 to 4096 visible ASCII characters without spaces")]
    Unusable(&'static str),
}

impl StaticToken {
    /// The token: the flag's, else the variable's (an empty one is absent), else the file's without its last line break; none when no
    /// source has one.
    ///
    /// # Errors
    /// [`TokenError`], whose text is for the person who starts the server.
    pub fn load(sources: Sources<'_>) -> Result<Option<Self>, TokenError> {
        if let Some(flag) = sources.flag {
            return if flag.is_empty() { Err(TokenError::EmptyFlag) } else { Self::new(flag, "--token").map(Some) };
        }
        if let Some(variable) = sources.variable.filter(|text| !text.is_empty()) {
            return Self::new(variable, "RUNLORE_MCP_TOKEN").map(Some);
        }
        sources.file.map(Self::from_file).transpose()
    }

    fn from_file(path: &Path) -> Result<Self, TokenError> {
        let name = path.display().to_string();
        let text = read(path).map_err(|error| TokenError::Unreadable(name.clone(), error.to_string()))?;
        let token = text.strip_suffix('\n').unwrap_or(&text);
        let token = token.strip_suffix('\r').unwrap_or(token);
        if token.is_empty() { Err(TokenError::EmptyFile(name)) } else { Self::new(token, "its file") }
    }

    fn new(text: &str, source: &'static str) -> Result<Self, TokenError> {
        let usable = !text.is_empty() && text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        let token = || Self { text: Arc::from(text), digest: Sha256::digest(text).into() };
        usable.then(token).ok_or(TokenError::Unusable(source))
    }

    /// Who sent `sent`, when it is the token.
    #[must_use]
    pub fn caller(&self, sent: &[u8]) -> Option<Caller> {
        let digest: [u8; 32] = Sha256::digest(sent).into();
        bool::from(digest.ct_eq(&self.digest)).then(Caller::bearer)
    }

    /// Its text, for the redactor: the token must not leave in an answer either.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.text
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    // One byte more than the longest token with its line break, so that a longer file is seen to be one.
    File::open(path)?.take(TOKEN_BYTES_MAX as u64 + 3).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(flag: Option<&str>, variable: Option<&str>, file: Option<&str>) -> Result<Option<String>, TokenError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        if let Some(text) = file {
            std::fs::write(&path, text).unwrap();
        }
        let sources = Sources { flag, variable, file: file.map(|_| path.as_path()) };
        StaticToken::load(sources).map(|token| token.map(|token| token.secret().to_owned()))
    }

    #[test]
    fn the_first_source_that_has_a_token_gives_it() {
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(load(None, None, None), Ok(None));
        assert_eq!(load(Some("a"), Some("b"), Some("c")), some("a"));
        assert_eq!(load(None, Some("b"), Some("c")), some("b"));
        assert_eq!(load(None, Some(""), Some("c\n")), some("c"));
        assert_eq!(load(None, Some(""), None), Ok(None));
        assert_eq!(load(None, None, Some("c\r\n")), some("c"));
        assert_eq!(load(Some(""), Some("b"), None), Err(TokenError::EmptyFlag));
        for empty in ["", "\n", "\r\n"] {
            assert!(matches!(load(None, None, Some(empty)), Err(TokenError::EmptyFile(_))), "{empty:?}");
        }
    }

    #[test]
    fn what_could_not_be_sent_is_refused_at_start() {
        for text in ["a b", " a", "a\nb", "a\n\n", "ä", "a\0", &"x".repeat(4097), &"x".repeat(9000)] {
            assert_eq!(load(None, None, Some(text)), Err(TokenError::Unusable("its file")), "{text:?}");
        }
        assert_eq!(load(Some("a b"), None, None), Err(TokenError::Unusable("--token")));
        assert_eq!(load(None, None, Some(&format!("{}\r\n", "x".repeat(4096)))).unwrap().unwrap().len(), 4096);
        let gone = StaticToken::load(Sources { file: Some(Path::new("/nowhere/token")), ..Sources::default() });
        assert!(gone.unwrap_err().to_string().starts_with("the token file /nowhere/token cannot be read: "));
    }

    #[test]
    fn only_the_token_is_the_token() {
        let token = StaticToken::new("s3cret", "a test").unwrap();
        assert_eq!(token.caller(b"s3cret").unwrap().principal(), "token");
        for other in [&b""[..], b"s3cre", b"s3crett", b"S3CRET", b"s3cret\0"] {
            assert!(token.caller(other).is_none());
        }
        assert!(!format!("{token:?}").contains("s3cret"));
    }
}
