//! A token taken apart: three parts of base64url, and a header that asks for nothing we do not know.
//!
//! Promises: exactly three parts, none empty, in the one spelling that base64url without padding has; the header is read strictly.
//! Does not: read the claims, or believe anything.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{JwtDenied, strict};

/// What `typ` may be (RFC 7519, section 5.1; RFC 9068, section 2.1); compared without case, and without `application/` (RFC 7515, section 4.1.9).
const TYPES: [&str; 2] = ["JWT", "at+jwt"];
/// Members of a header that change what the rest means: extensions that must be understood, an unencoded payload, compression, encryption.
const NOT_UNDERSTOOD: [&str; 4] = ["crit", "b64", "zip", "enc"];

/// A token in its parts.
#[derive(Debug)]
pub struct Parts<'a> {
    /// What it says of its own making.
    pub header: Header,
    /// The claims, decoded, not read.
    pub payload: Vec<u8>,
    /// What is signed: the first two parts.
    pub message: &'a str,
    /// The third part.
    pub signature: &'a str,
}

/// What matters of the header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The algorithm as the token says it: only ever compared with the key's.
    pub alg: String,
    /// Which key.
    pub kid: Option<String>,
}

impl<'a> Parts<'a> {
    /// The parts of `token`.
    ///
    /// # Errors
    /// [`JwtDenied::Malformed`] or [`JwtDenied::Header`].
    pub fn of(token: &'a str) -> Result<Self, JwtDenied> {
        let (message, signature) = token.rsplit_once('.').ok_or(JwtDenied::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(JwtDenied::Malformed)?;
        let decoded = |part: &str| if part.is_empty() { None } else { URL_SAFE_NO_PAD.decode(part).ok() };
        decoded(signature).ok_or(JwtDenied::Malformed)?;
        let payload = decoded(payload).ok_or(JwtDenied::Malformed)?;
        let header = decoded(header).and_then(|bytes| strict::object(&bytes)).ok_or(JwtDenied::Malformed)?;
        Ok(Self { header: Header::read(&header)?, payload, message, signature })
    }
}

impl Header {
    fn read(object: &Map<String, Value>) -> Result<Self, JwtDenied> {
        if let Some(name) = NOT_UNDERSTOOD.into_iter().find(|name| object.contains_key(*name)) {
            return Err(JwtDenied::Header(name));
        }
        if !object.get("typ").is_none_or(|kind| kind.as_str().is_some_and(is_access_token)) {
            return Err(JwtDenied::Header("typ"));
        }
        let kid = match object.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(JwtDenied::Header("kid")),
        };
        let alg = object.get("alg").and_then(Value::as_str).ok_or(JwtDenied::Algorithm)?;
        Ok(Self { alg: alg.to_owned(), kid })
    }
}

fn is_access_token(kind: &str) -> bool {
    let bare = kind.split_at_checked("application/".len()).filter(|(prefix, _)| prefix.eq_ignore_ascii_case("application/"));
    let bare = bare.map_or(kind, |(_, rest)| rest);
    TYPES.iter().any(|known| known.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn header(text: &str) -> Result<Header, JwtDenied> {
        let token = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(text));
        Parts::of(&token).map(|parts| parts.header)
    }

    #[test]
    fn a_header_asks_for_nothing_that_is_not_understood() {
        for typ in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
            assert!(header(&json!({"alg": "ES256", "typ": typ}).to_string()).is_ok(), "{typ}");
        }
        let good = header(r#"{"alg":"ES256","kid":"k","jku":"https://evil.example/","jwk":{},"x5u":"x"}"#);
        assert_eq!(good, Ok(Header { alg: "ES256".to_owned(), kid: Some("k".to_owned()) }), "what points elsewhere is not followed");
        let bad = [
            (r#"{"alg":"ES256","crit":["exp"]}"#, JwtDenied::Header("crit")),
            (r#"{"alg":"ES256","crit":null}"#, JwtDenied::Header("crit")),
            (r#"{"alg":"ES256","b64":false}"#, JwtDenied::Header("b64")),
            (r#"{"alg":"ES256","zip":"DEF"}"#, JwtDenied::Header("zip")),
            (r#"{"alg":"ES256","typ":"JWE"}"#, JwtDenied::Header("typ")),
            (r#"{"alg":"ES256","typ":"dpop+jwt"}"#, JwtDenied::Header("typ")),
            (r#"{"alg":"ES256","typ":null}"#, JwtDenied::Header("typ")),
            (r#"{"alg":"ES256","kid":7}"#, JwtDenied::Header("kid")),
            (r#"{"alg":"ES256","kid":null}"#, JwtDenied::Header("kid")),
            (r#"{"typ":"JWT"}"#, JwtDenied::Algorithm),
            (r#"{"alg":["ES256"]}"#, JwtDenied::Algorithm),
            (r#"{"alg":"ES256","alg":"none"}"#, JwtDenied::Malformed),
            (r#"["ES256"]"#, JwtDenied::Malformed),
        ];
        for (text, denied) in bad {
            assert_eq!(header(text), Err(denied), "{text}");
        }
    }

    #[test]
    fn three_parts_in_one_spelling() {
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        assert!(Parts::of(&format!("{head}.e30.AA")).is_ok());
        let bad = [
            "".to_owned(),
            ".".to_owned(),
            "..".to_owned(),
            "...".to_owned(),
            head.clone(),
            format!("{head}.e30"),
            format!("{head}.e30."),
            format!("{head}..AA"),
            ".e30.AA".to_owned(),
            format!("{head}.e30.AA."),
            format!("{head}.e30.AA.AA"),
            format!("{head}.e30.AA.AA.AA"),
            format!("{head}.e30.AB"),
            format!("{head}.e30.AA=="),
            format!("{head}.e30=.AA"),
            format!("{head}.e3+.AA"),
            format!(" {head}.e30.AA"),
            format!("{head}.e30.AA\n"),
            format!("{head}.é.AA"),
        ];
        for token in bad {
            assert!(matches!(Parts::of(&token), Err(JwtDenied::Malformed)), "{token:?}");
        }
    }
}
