//! Where clients log in: the protected-resource document (RFC 9728) and the challenges that point to it (RFC 6750; the MCP specification,
//! "Authorization", 2026-07-28; decision 22).
//!
//! Promises: one challenge names all that is missing; where there is no authorization server to go to, there is no document, and a
//! challenge for a credential is exactly `Bearer`: a client that was sent to look for one would look in vain.
//! Does not: know routes, callers or why a credential was refused.

use http::HeaderValue;
use serde::Serialize;

/// Where the document is, below the server's own URL; the endpoint's path follows (RFC 9728, section 3.1).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What the document says of every endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    base: String,
    servers: Vec<String>,
    scopes: Vec<String>,
}

/// Why a request is not answered (401).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Challenge {
    /// It brings no credential.
    Missing,
    /// It brings a bad one.
    Invalid,
}

#[derive(Serialize)]
struct Document<'a> {
    resource: String,
    authorization_servers: &'a [String],
    scopes_supported: &'a [String],
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

impl Metadata {
    /// For a server that its clients know as `base` (such as `https://runs.example`), which takes tokens of `servers`; `scopes` are those
    /// that a client asks for at first. None where clients have nowhere to go.
    #[must_use]
    pub fn new(base: &str, servers: Vec<String>, scopes: &[&str]) -> Option<Self> {
        let base = base.trim_end_matches('/').to_owned();
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        (!base.is_empty() && !servers.is_empty()).then_some(Self { base, servers, scopes })
    }

    /// The document of the endpoint at `path`, such as `/mcp`; of the whole server where it is empty.
    #[must_use]
    pub fn document(&self, path: &str) -> String {
        let document = Document {
            resource: format!("{}{path}", self.base),
            authorization_servers: &self.servers,
            scopes_supported: &self.scopes,
            bearer_methods_supported: ["header"],
            resource_name: "runlore",
        };
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// Where the document of the endpoint at `path` is.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        // A path that would need escaping in a quoted text is none of ours: the whole server's document says the same.
        let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte));
        format!("{}{WELL_KNOWN}{}", self.base, if plain { path } else { "" })
    }
}

/// The values of `WWW-Authenticate` at one endpoint, made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenges {
    missing: HeaderValue,
    invalid: HeaderValue,
    /// What stands behind a challenge for scopes; none where clients have nowhere to go.
    place: Option<String>,
}

impl Challenges {
    /// Those of the endpoint at `path`.
    #[must_use]
    pub fn new(metadata: Option<&Metadata>, path: &str) -> Self {
        Self {
            missing: challenge(metadata, path, Challenge::Missing),
            invalid: challenge(metadata, path, Challenge::Invalid),
            place: metadata.map(|metadata| format!(", resource_metadata=\"{}\"", metadata.url(path))),
        }
    }

    /// For a request without a credential, or with a bad one (401).
    #[must_use]
    pub fn credential(&self, sent: bool) -> HeaderValue {
        if sent { self.invalid.clone() } else { self.missing.clone() }
    }

    /// For a credential that lacks scopes (403): `own`, which names them, and where to get others.
    #[must_use]
    pub fn scopes(&self, own: &HeaderValue) -> HeaderValue {
        let whole = self.place.as_ref().and_then(|place| Some(format!("{}{place}", own.to_str().ok()?)));
        whole.and_then(|text| HeaderValue::from_str(&text).ok()).unwrap_or_else(|| own.clone())
    }
}

/// The challenge of a credential that lacks `scopes`, separated by spaces (403; RFC 6750, section 3.1). Scopes are words of ours, so they fit a
/// header.
#[must_use]
pub fn insufficient_scope(scopes: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"")).ok()
}

fn challenge(metadata: Option<&Metadata>, path: &str, why: Challenge) -> HeaderValue {
    let text = metadata.map(|metadata| {
        let place = format!("resource_metadata=\"{}\"", metadata.url(path));
        match why {
            Challenge::Missing => format!("Bearer {place}"),
            Challenge::Invalid => format!("Bearer {place}, error=\"invalid_token\""),
        }
    });
    text.and_then(|text| HeaderValue::from_str(&text).ok()).unwrap_or(HeaderValue::from_static("Bearer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn metadata() -> Metadata {
        Metadata::new("https://runs.example/", vec!["https://id.example".to_owned()], &["eval:read", "runs:read"]).unwrap()
    }

    #[test]
    fn the_document_is_rfc_9728s() {
        let says = |path: &str| serde_json::from_str::<Value>(&metadata().document(path)).unwrap();
        let mut all = json!({
            "resource": "https://runs.example/mcp", "authorization_servers": ["https://id.example"],
            "scopes_supported": ["eval:read", "runs:read"], "bearer_methods_supported": ["header"], "resource_name": "runlore"
        });
        assert_eq!(says("/mcp"), all);
        all["resource"] = json!("https://runs.example");
        assert_eq!(says(""), all);
    }

    #[test]
    fn a_challenge_points_to_the_document_and_names_all_scopes_at_once() {
        let says = |why| challenge(Some(&metadata()), "/mcp", why).to_str().unwrap().to_owned();
        let place = "resource_metadata=\"https://runs.example/.well-known/oauth-protected-resource/mcp\"";
        assert_eq!(says(Challenge::Missing), format!("Bearer {place}"));
        assert_eq!(says(Challenge::Invalid), format!("Bearer {place}, error=\"invalid_token\""));
        let scopes = Challenges::new(Some(&metadata()), "/mcp").scopes(&insufficient_scope("eval:read traces:read").unwrap());
        assert_eq!(scopes, format!("Bearer error=\"insufficient_scope\", scope=\"eval:read traces:read\", {place}"));
    }

    #[test]
    fn without_a_server_to_go_to_it_is_exactly_bearer() {
        for why in [Challenge::Missing, Challenge::Invalid] {
            assert_eq!(challenge(None, "/mcp", why), "Bearer");
        }
        let scopes = insufficient_scope("eval:read").unwrap();
        assert_eq!(Challenges::new(None, "/mcp").scopes(&scopes), scopes);
        assert_eq!(Metadata::new("https://runs.example", Vec::new(), &[]), None);
        assert_eq!(Metadata::new("", vec!["https://id.example".to_owned()], &[]), None);
    }

    #[test]
    fn a_path_cannot_write_into_the_header() {
        for path in ["/mcp\", error=\"x", "/mcp\\", "/mcp é", "/mcp\r\nX: y"] {
            let says = challenge(Some(&metadata()), path, Challenge::Missing);
            assert_eq!(says, "Bearer resource_metadata=\"https://runs.example/.well-known/oauth-protected-resource\"", "{path:?}");
        }
    }
}
