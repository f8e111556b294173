//! What a token says of itself, read strictly, and what an issuer's claims mean here.
//!
//! Promises: `iss`, `sub`, `aud` and `exp` must be there; times are whole seconds, never a text or a float; `aud` is a text or a list of texts;
//! `iss` and `sub` are texts. A scope, role or organization of another shape than expected gives nothing: less, never more.
//! Does not: check a signature, or a claim against the clock or an issuer.

use serde_json::{Map, Value};

use super::{JwtDenied, strict};
use crate::auth::Role;

/// Characters of a subject (OpenID Connect Core, section 2: at most 255).
const SUBJECT_CHARS_MAX: usize = 255;
/// The claims that hold scopes where an issuer names none: RFC 8693's, then what Entra and Okta write.
const SCOPE_CLAIMS: [&str; 2] = ["scope", "scp"];

/// Where an issuer writes what is asked of it: names of claims, or paths into them with dots, such as `realm_access.roles`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    /// Scopes: a text divided by spaces, or a list of texts. None: `scope`, else `scp`.
    pub scope: Option<String>,
    /// The organization: a text, or a list of exactly one.
    pub organization: String,
    /// The role: a text or a list of texts.
    pub role: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { scope: None, organization: "org".to_owned(), role: "role".to_owned() }
    }
}

/// The claims of one token.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
    /// `aud`.
    pub audiences: Vec<String>,
    /// `exp`, seconds since 1970.
    pub expires_at_s: u64,
    /// `nbf`, seconds since 1970.
    pub not_before_s: Option<u64>,
    all: Map<String, Value>,
}

impl Claims {
    /// The claims in the decoded second part of a token.
    ///
    /// # Errors
    /// [`JwtDenied::Malformed`], or [`JwtDenied::Claim`] with the claim that is missing or of the wrong kind.
    pub fn read(bytes: &[u8]) -> Result<Self, JwtDenied> {
        let all = strict::object(bytes).ok_or(JwtDenied::Malformed)?;
        seconds(&all, "iat")?;
        Ok(Self {
            issuer: text(&all, "iss")?,
            subject: Some(text(&all, "sub")?).filter(|name| named(name)).ok_or(JwtDenied::Claim("sub"))?,
            audiences: all.get("aud").and_then(texts).ok_or(JwtDenied::Claim("aud"))?,
            expires_at_s: seconds(&all, "exp")?.ok_or(JwtDenied::Claim("exp"))?,
            not_before_s: seconds(&all, "nbf")?,
            all,
        })
    }

    /// The scopes, sorted, each once; none where the claim is missing or of another shape.
    #[must_use]
    pub fn scopes(&self, names: &ClaimNames) -> Vec<String> {
        let claim = match &names.scope {
            Some(path) => at(&self.all, path),
            None => SCOPE_CLAIMS.iter().find_map(|name| self.all.get(*name)),
        };
        let mut scopes: Vec<String> = match claim {
            Some(Value::String(list)) => list.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect(),
            Some(list) => texts(list).unwrap_or_default(),
            None => Vec::new(),
        };
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// The organization; none where the claim is missing, empty, of another shape, or names several.
    #[must_use]
    pub fn organization(&self, names: &ClaimNames) -> Option<String> {
        let mut listed = texts(at(&self.all, &names.organization)?)?.into_iter();
        let only = listed.next().filter(|name| named(name));
        if listed.next().is_none() { only } else { None }
    }

    /// The highest role among the words of the claim; viewer where there is none that is known (decision 44).
    #[must_use]
    pub fn role(&self, names: &ClaimNames) -> Role {
        let words = at(&self.all, &names.role).and_then(texts).unwrap_or_default();
        words.iter().filter_map(|word| word.parse().ok()).max().unwrap_or(Role::Viewer)
    }
}

/// What stands at `path`: the claim of exactly that name first (Auth0's names are URLs, with dots), then into objects at each dot.
fn at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let inside = || {
        path.match_indices('.').find_map(|(dot, _)| {
            let (name, rest) = (path.get(..dot)?, path.get(dot + 1..)?);
            at(object.get(name)?.as_object()?, rest)
        })
    };
    object.get(path).or_else(inside)
}

/// One text, or a list of texts and nothing else.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(all) => all.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn text(all: &Map<String, Value>, name: &'static str) -> Result<String, JwtDenied> {
    all.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(JwtDenied::Claim(name))
}

/// A claim that, where it is there, is a whole number of seconds since 1970.
fn seconds(all: &Map<String, Value>, name: &'static str) -> Result<Option<u64>, JwtDenied> {
    all.get(name).map(|value| value.as_u64().ok_or(JwtDenied::Claim(name))).transpose()
}

/// A name goes to logs and is compared: not empty, bounded, nothing that steers a terminal.
pub fn named(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= SUBJECT_CHARS_MAX && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(more: Value) -> Claims {
        let mut all = json!({"iss": "i", "sub": "s", "aud": "a", "exp": 10});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Claims::read(all.to_string().as_bytes()).unwrap()
    }

    fn names(scope: Option<&str>, organization: &str, role: &str) -> ClaimNames {
        ClaimNames { scope: scope.map(str::to_owned), organization: organization.to_owned(), role: role.to_owned() }
    }

    #[test]
    fn each_claim_is_of_its_kind_or_the_token_is_refused() {
        let good = json!({"iss": "i", "sub": "s", "aud": ["a", "b"], "exp": 10, "nbf": 1, "iat": 2});
        assert!(Claims::read(good.to_string().as_bytes()).is_ok());
        let bad = [
            ("iss", json!(["i"])),
            ("iss", json!(null)),
            ("sub", json!(7)),
            ("sub", json!("")),
            ("sub", json!("a\u{1b}[2J")),
            ("sub", json!("x".repeat(256))),
            ("aud", json!(null)),
            ("aud", json!({"a": 1})),
            ("aud", json!(["a", 1])),
            ("exp", json!("10")),
            ("exp", json!(10.0)),
            ("exp", json!(10.5)),
            ("exp", json!(-1)),
            ("exp", json!(null)),
            ("nbf", json!("1")),
            ("nbf", json!(1.5)),
            ("nbf", json!(null)),
            ("iat", json!("1")),
            ("iat", json!(1e300)),
        ];
        for (name, value) in bad {
            let mut token = good.clone();
            token[name] = value.clone();
            assert_eq!(Claims::read(token.to_string().as_bytes()), Err(JwtDenied::Claim(name)), "{name} {value}");
        }
        for name in ["iss", "sub", "aud", "exp"] {
            let mut token = good.clone();
            token.as_object_mut().unwrap().remove(name);
            assert_eq!(Claims::read(token.to_string().as_bytes()), Err(JwtDenied::Claim(name)), "no {name}");
        }
        for text in [
            "",
            "[]",
            r#"{"iss":"i","iss":"i","sub":"s","aud":"a","exp":1}"#,
            r#"{"iss":"i","sub":"s","aud":"a","exp":1,"x":{"y":1,"y":2}}"#,
        ] {
            assert_eq!(Claims::read(text.as_bytes()), Err(JwtDenied::Malformed), "{text}");
        }
    }

    #[test]
    fn scopes_are_a_text_with_spaces_or_a_list() {
        let none = names(None, "org", "role");
        assert_eq!(claims(json!({"scope": "b  a b"})).scopes(&none), ["a", "b"]);
        assert_eq!(claims(json!({"scp": ["a", "c"]})).scopes(&none), ["a", "c"]);
        assert_eq!(claims(json!({"scope": "a", "scp": "b"})).scopes(&none), ["a"]);
        for odd in [json!({}), json!({"scope": 1}), json!({"scope": ["a", 1]}), json!({"scope": {"a": 1}}), json!({"scope": ""})] {
            assert!(claims(odd.clone()).scopes(&none).is_empty(), "{odd}");
        }
        assert_eq!(claims(json!({"scope": "a", "permissions": ["p"]})).scopes(&names(Some("permissions"), "org", "role")), ["p"]);
        assert!(claims(json!({"scope": "a"})).scopes(&names(Some("permissions"), "org", "role")).is_empty());
    }

    #[test]
    fn a_role_is_the_highest_known_word_and_else_viewer() {
        let at = |value: Value| claims(json!({"role": value})).role(&ClaimNames::default());
        assert_eq!(at(json!("admin")), Role::Admin);
        assert_eq!(at(json!(["member", "owner", "astronaut"])), Role::Owner);
        for odd in [json!("Admin"), json!("root"), json!([]), json!(3), json!(["owner", 3]), json!(null), json!({"owner": true})] {
            assert_eq!(at(odd.clone()), Role::Viewer, "{odd}");
        }
        assert_eq!(claims(json!({})).role(&ClaimNames::default()), Role::Viewer);
    }

    #[test]
    fn a_path_is_a_name_first_and_then_goes_into_objects() {
        let role = |more: Value, path: &str| claims(more).role(&names(None, "org", path));
        assert_eq!(role(json!({"realm_access": {"roles": ["x", "member"]}}), "realm_access.roles"), Role::Member);
        assert_eq!(role(json!({"https://acme.example/role": "admin"}), "https://acme.example/role"), Role::Admin);
        assert_eq!(role(json!({"a.b": "admin", "a": {"b": "owner"}}), "a.b"), Role::Admin);
        assert_eq!(role(json!({"resource_access": {"my.client": {"roles": ["admin"]}}}), "resource_access.my.client.roles"), Role::Admin);
        assert_eq!(role(json!({"a": "owner"}), "a.b"), Role::Viewer);
        assert_eq!(role(json!({"a": {"": "owner"}}), "a"), Role::Viewer);
    }

    #[test]
    fn an_organization_is_one_name() {
        let at = |value: Value| claims(json!({"org": value})).organization(&ClaimNames::default());
        assert_eq!(at(json!("acme")).as_deref(), Some("acme"));
        assert_eq!(at(json!(["acme"])).as_deref(), Some("acme"));
        for odd in [json!(["a", "b"]), json!([]), json!(""), json!(7), json!(null), json!({"acme": {}}), json!("a\nb")] {
            assert_eq!(at(odd.clone()), None, "{odd}");
        }
        assert_eq!(claims(json!({})).organization(&ClaimNames::default()), None);
    }
}
