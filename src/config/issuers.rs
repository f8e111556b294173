//! Whose tokens are taken: the section `auth` held against what a server could work with, and handed on as the verifier's own types.
//!
//! Promises: every fault of every issuer is told at once, with the key and what would be right; what passes can be served, but for files
//! that are not there.
//! Does not: fetch a key.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use toml::Value;

use super::{
    Config,
    keys::{Auth, Issuer},
};
use crate::auth::{
    jwks::{self, Authorities, Fetch, FromFile, FromUrl, is_fetchable},
    jwt::{self, Algorithm, ClaimNames},
    local::LocalKey,
    metadata::Metadata,
};

/// What is wrong with the table `auth` beyond the kinds of its values, which others tell.
pub fn complaints(auth: &Value) -> Vec<String> {
    let issuers = auth.get("issuer").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (index, value) in issuers.iter().enumerate() {
        let Ok(issuer) = value.clone().try_into::<Issuer>() else { continue };
        let place = format!("auth.issuer[{index}]");
        if !issuer.issuer.is_empty() && !seen.insert(issuer.issuer.clone()) {
            all.push(format!("{place}.issuer is \"{}\", as another's; it must be its own", issuer.issuer));
        }
        all.extend(faults(&issuer).into_iter().map(|(key, is, must)| format!("{place}.{key} is {is}; it must be {must}")));
    }
    for (index, value) in issuers.iter().enumerate().filter(|_| issuers.len() > 1) {
        let Ok(issuer) = value.clone().try_into::<Issuer>() else { continue };
        if issuer.organization.is_empty() && issuer.organizations.is_empty() {
            all.push(format!(
                "auth.issuer[{index}].organizations is empty; where there are several issuers it must name the organizations that its tokens may be of, or [\"*\"] for any"
            ));
        }
    }
    if let Ok(auth) = auth.clone().try_into::<Auth>() {
        all.extend(of_section(&auth, &seen));
    }
    all
}

type Fault = (&'static str, String, &'static str);

fn faults(issuer: &Issuer) -> Vec<Fault> {
    let quoted = |text: &str| format!("\"{text}\"");
    let unknown = issuer.algorithms.iter().find(|name| Algorithm::named(name).is_none());
    let url = &issuer.jwks_url;
    [
        issuer.issuer.is_empty().then(|| ("issuer", "empty".to_owned(), "the text of its tokens' iss")),
        issuer.audiences.is_empty().then(|| ("audiences", "empty".to_owned(), "at least one text of its tokens' aud")),
        issuer.audiences.iter().any(String::is_empty).then(|| ("audiences", "a list with an empty text".to_owned(), "a list of names")),
        issuer.algorithms.is_empty().then(|| ("algorithms", "empty".to_owned(), "some of RS256, ES256, EdDSA")),
        unknown.map(|name| ("algorithms", format!("a list with {}", quoted(name)), "some of RS256, ES256, EdDSA")),
        (issuer.jwks_file.is_empty() && url.is_empty())
            .then(|| ("jwks_url", "empty".to_owned(), "the URL of its keys, or jwks_file must name their file")),
        (!issuer.jwks_file.is_empty() && !url.is_empty())
            .then(|| ("jwks_file", quoted(&issuer.jwks_file), "empty where jwks_url is given, or the other way round")),
        (!url.is_empty() && !is_fetchable(url)).then(|| ("jwks_url", quoted(url), "an https:// URL, or http:// to this machine")),
        issuer.organization_claim.is_empty().then(|| ("organization_claim", "empty".to_owned(), "a claim's name, such as org")),
        issuer.role_claim.is_empty().then(|| ("role_claim", "empty".to_owned(), "a claim's name, such as role")),
        (issuer.authorization_server && !issuer.issuer.is_empty() && !is_fetchable(&issuer.issuer)).then(|| {
            (
                "authorization_server",
                "true".to_owned(),
                "false where the issuer's name is no https:// URL: clients are sent to it to log in",
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_section(auth: &Auth, issuers: &BTreeSet<String>) -> Vec<String> {
    let local = !auth.local_key_file.is_empty();
    let sent = auth.issuer.iter().any(|issuer| issuer.authorization_server);
    [
        (!auth.public_url.is_empty() && !is_origin(&auth.public_url))
            .then(|| format!("auth.public_url is \"{}\"; it must be a URL such as https://runs.example, without a path", auth.public_url)),
        (auth.jwks_age_max_s < auth.jwks_refresh_s).then(|| {
            let (age, refresh) = (auth.jwks_age_max_s, auth.jwks_refresh_s);
            format!("auth.jwks_age_max_s is {age}; it must be at least jwks_refresh_s, {refresh}: no set would hold until it is read again")
        }),
        (auth.public_url.is_empty() && sent).then(|| {
            "auth.public_url is empty; it must be the URL that clients know the server by, or authorization_server must be false for each issuer"
                .to_owned()
        }),
        (local && auth.local_issuer.is_empty())
            .then(|| "auth.local_issuer is empty; it must be a name where local_key_file is given".to_owned()),
        (local && auth.local_audience.is_empty() && auth.public_url.is_empty())
            .then(|| "auth.local_audience is empty; it must be a name where local_key_file is given and public_url is not".to_owned()),
        (local && issuers.contains(&auth.local_issuer))
            .then(|| format!("auth.local_issuer is \"{}\", as an issuer's; it must be its own", auth.local_issuer)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An http or https URL of a host, without user, path or query.
fn is_origin(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let whole = matches!(uri.path(), "" | "/") && uri.query().is_none() && !url.contains('#');
    let authority = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    whole && authority && matches!(uri.scheme_str(), Some("https" | "http"))
}

impl Config {
    /// What is taken of tokens and kept of keys, as the verifier takes it.
    #[must_use]
    pub const fn jwt_limits(&self) -> jwt::Limits {
        let auth = &self.auth;
        jwt::Limits {
            bytes_max: auth.jwt_bytes_max,
            leeway_s: auth.jwt_leeway_s,
            entries_max: auth.jwt_cache_entries,
            keep_s: auth.jwt_cache_s,
            keys: jwks::Limits {
                again_s: auth.jwks_refresh_min_s,
                age_max_s: auth.jwks_age_max_s,
                keys_max: auth.jwks_keys_max,
                deadline: Duration::from_secs(auth.jwks_timeout_s),
            },
        }
    }

    /// The issuers whose tokens are taken: the configured ones, then our own key's.
    ///
    /// # Errors
    /// A sentence for each file that is needed and cannot be used.
    pub fn jwt_issuers(&self) -> Result<Vec<jwt::Issuer>, Vec<String>> {
        let mut faults = Vec::new();
        let authorities = self.named(&self.auth.jwks_ca_file, Authorities::read).unwrap_or_else(|fault| {
            faults.push(format!("auth.jwks_ca_file: {fault}"));
            None
        });
        let key = self.local_key().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let mut issuers = Vec::new();
        for (index, issuer) in self.auth.issuer.iter().enumerate() {
            match self.issuer(issuer, authorities.as_ref()) {
                Ok(issuer) => issuers.push(issuer),
                Err(fault) => faults.push(format!("auth.issuer[{index}].jwks_url: {fault}")),
            }
        }
        issuers.extend(key.map(|key| key.issuer(&self.auth.local_issuer, self.local_audience())));
        if faults.is_empty() { Ok(issuers) } else { Err(faults) }
    }

    /// Our own key, where there is one: its set is served.
    ///
    /// # Errors
    /// A sentence, where its file cannot be used.
    pub fn local_key(&self) -> Result<Option<LocalKey>, String> {
        self.named(&self.auth.local_key_file, |path| LocalKey::load(path).map_err(|error| error.to_string()))
            .map_err(|fault| format!("auth.local_key_file: {fault}"))
    }

    /// Where clients log in; none where they have nowhere to go. `scopes` are those that a client asks for at first.
    #[must_use]
    pub fn metadata(&self, scopes: &[&str]) -> Option<Metadata> {
        let servers = self.auth.issuer.iter().filter(|issuer| issuer.authorization_server).map(|issuer| issuer.issuer.clone());
        Metadata::new(&self.auth.public_url, servers.collect(), scopes)
    }

    fn local_audience(&self) -> &str {
        if self.auth.local_audience.is_empty() { self.auth.public_url.trim_end_matches('/') } else { &self.auth.local_audience }
    }

    fn named<T>(&self, path: &str, read: impl Fn(&Path) -> Result<T, String>) -> Result<Option<T>, String> {
        (!path.is_empty()).then(|| read(Path::new(path))).transpose()
    }

    fn issuer(&self, issuer: &Issuer, authorities: Option<&Authorities>) -> Result<jwt::Issuer, String> {
        let auth = &self.auth;
        let (keys, every_s): (Arc<dyn Fetch>, u64) = if issuer.jwks_url.is_empty() {
            (Arc::new(FromFile::new(issuer.jwks_file.clone().into(), auth.jwks_bytes_max)), auth.jwks_file_refresh_s)
        } else {
            let deadline = Duration::from_secs(auth.jwks_timeout_s);
            (Arc::new(FromUrl::new(&issuer.jwks_url, auth.jwks_bytes_max, deadline, authorities)?), auth.jwks_refresh_s)
        };
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        Ok(jwt::Issuer {
            name: issuer.issuer.clone(),
            audiences: issuer.audiences.clone(),
            algorithms: issuer.algorithms.iter().filter_map(|name| Algorithm::named(name)).collect(),
            keys,
            every_s,
            claims: ClaimNames {
                scope: given(&issuer.scope_claim),
                organization: issuer.organization_claim.clone(),
                role: issuer.role_claim.clone(),
            },
            organization: given(&issuer.organization),
            organizations: if issuer.organizations == ["*"] { Vec::new() } else { issuer.organizations.clone() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[auth]
public_url = "https://runs.example"
[[auth.issuer]]
issuer = "https://id.example/"
audiences = ["https://runs.example/mcp"]
jwks_url = "https://id.example/keys"
role_claim = "realm_access.roles"
organizations = ["acme", "zeta"]
[[auth.issuer]]
issuer = "ci"
audiences = ["runs"]
algorithms = ["ES256"]
jwks_file = "ci.json"
organization = "acme"
scope_claim = "permissions"
authorization_server = false
"#;

    fn complaints(text: &str) -> Vec<String> {
        let error = Config::parse(text, "x").expect_err("this config is wrong").to_string();
        error.strip_prefix("x: ").unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_configured_is_what_the_verifier_gets() {
        let config = Config::parse(GOOD, "x").unwrap();
        let issuers = config.jwt_issuers().unwrap();
        let (people, ci) = (&issuers[0], &issuers[1]);
        assert_eq!((people.name.as_str(), people.every_s, people.algorithms.len()), ("https://id.example/", 300, 3));
        let names = |scope: Option<&str>, role: &str| ClaimNames {
            scope: scope.map(str::to_owned),
            organization: "org".to_owned(),
            role: role.to_owned(),
        };
        assert_eq!((&people.claims, &people.organization), (&names(None, "realm_access.roles"), &None));
        assert_eq!((&ci.claims, ci.organization.as_deref(), ci.every_s), (&names(Some("permissions"), "role"), Some("acme"), 5));
        assert_eq!(ci.algorithms, [Algorithm::Es256]);
        let metadata = config.metadata(&["eval:read"]).unwrap();
        assert!(metadata.document("/mcp").contains(r#""authorization_servers":["https://id.example/"]"#));
        assert!(Config::default().metadata(&[]).is_none() && Config::default().jwt_issuers().unwrap().is_empty());
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_key_and_what_is_right() {
        let text = r#"
[auth]
public_url = "runs.example/x"
local_key_file = "key.pem"
local_issuer = "https://id.example/"
jwks_keys_max = 0
[[auth.issuer]]
issuer = "https://id.example/"
audiences = []
algorithms = ["RS256", "HS256"]
jwks_url = "http://id.example/keys"
[[auth.issuer]]
issuer = "https://id.example/"
audiences = ["a", ""]
algorithms = []
jwks_url = "https://id.example/keys"
jwks_file = "keys.json"
role_claim = ""
[[auth.issuer]]
jwks_uri = "https://id.example/keys"
audiences = "a"
[[auth.issuer]]
issuer = "ci"
audiences = ["a"]
"#;
        let must = [
            r#"auth.jwks_keys_max is 0; it must be from 1 to 4096"#,
            r#"auth.issuer[2].audiences is text; it must be a list of at most 32 texts"#,
            r#"auth.issuer[2].jwks_uri is no key; the keys of [[auth.issuer]] are issuer, audiences, algorithms, jwks_file, jwks_url, scope_claim, organization_claim, role_claim, organization, organizations, authorization_server"#,
            r#"auth.issuer[0].audiences is empty; it must be at least one text of its tokens' aud"#,
            r#"auth.issuer[0].algorithms is a list with "HS256"; it must be some of RS256, ES256, EdDSA"#,
            r#"auth.issuer[0].jwks_url is "http://id.example/keys"; it must be an https:// URL, or http:// to this machine"#,
            r#"auth.issuer[1].issuer is "https://id.example/", as another's; it must be its own"#,
            r#"auth.issuer[1].audiences is a list with an empty text; it must be a list of names"#,
            r#"auth.issuer[1].algorithms is empty; it must be some of RS256, ES256, EdDSA"#,
            r#"auth.issuer[1].jwks_file is "keys.json"; it must be empty where jwks_url is given, or the other way round"#,
            r#"auth.issuer[1].role_claim is empty; it must be a claim's name, such as role"#,
            r#"auth.issuer[3].jwks_url is empty; it must be the URL of its keys, or jwks_file must name their file"#,
            r#"auth.issuer[0].organizations is empty; where there are several issuers it must name the organizations that its tokens may be of, or ["*"] for any"#,
            r#"auth.issuer[1].organizations is empty; where there are several issuers it must name the organizations that its tokens may be of, or ["*"] for any"#,
            r#"auth.issuer[3].organizations is empty; where there are several issuers it must name the organizations that its tokens may be of, or ["*"] for any"#,
            r#"auth.issuer[3].authorization_server is true; it must be false where the issuer's name is no https:// URL: clients are sent to it to log in"#,
        ];
        let told = complaints(text);
        for sentence in must {
            assert!(told.iter().any(|one| one == sentence), "{sentence}\nis not among\n{}", told.join("\n"));
        }
        assert_eq!(told.len(), must.len(), "{}", told.join("\n"));
    }

    #[test]
    fn the_section_is_held_together() {
        let one = |more: &str| complaints(&format!("[auth]\n{more}\n"));
        assert_eq!(
            one("local_key_file = \"k\""),
            ["auth.local_audience is empty; it must be a name where local_key_file is given and public_url is not"]
        );
        assert_eq!(
            one("local_key_file = \"k\"\nlocal_issuer = \"\"\nlocal_audience = \"a\""),
            ["auth.local_issuer is empty; it must be a name where local_key_file is given"]
        );
        for url in [
            "runs.example",
            "https://runs.example/mcp",
            "https://u@runs.example",
            "ftp://runs.example",
            "https://runs.example?x",
            "https://runs.example#x",
        ] {
            assert!(
                one(&format!("public_url = \"{url}\""))[0].ends_with("it must be a URL such as https://runs.example, without a path"),
                "{url}"
            );
        }
        let issuer = "[[auth.issuer]]\nissuer = \"https://id.example\"\naudiences = [\"a\"]\njwks_file = \"k\"\n";
        assert!(complaints(issuer)[0].starts_with("auth.public_url is empty; it must be the URL that clients know the server by"));
        assert!(complaints("[auth]\nissuer = 3")[0].ends_with("it must be at most 32 tables [[auth.issuer]]"));
        assert!(complaints("[auth]\nissuer = [3]")[0].ends_with("it must be at most 32 tables [[auth.issuer]]"));
        assert!(one("jwks_age_max_s = 300\njwks_refresh_s = 301")[0].contains("it must be at least jwks_refresh_s, 301"));
        let same = format!("[auth]\npublic_url = \"https://r\"\nlocal_key_file = \"k\"\nlocal_issuer = \"https://id.example\"\n{issuer}");
        assert_eq!(complaints(&same), ["auth.local_issuer is \"https://id.example\", as an issuer's; it must be its own"]);
    }

    #[test]
    fn our_own_key_is_an_issuer_and_a_missing_file_a_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        let key = LocalKey::generate(&path).unwrap();
        let mut config = Config::default();
        config.auth.local_key_file = path.display().to_string();
        config.auth.public_url = "https://runs.example/".to_owned();
        let issuers = config.jwt_issuers().unwrap();
        assert_eq!((issuers[0].name.as_str(), &issuers[0].audiences), ("runlore", &vec!["https://runs.example".to_owned()]));
        assert_eq!(config.local_key().unwrap().map(|own| own.jwks()), Some(key.jwks()));
        assert!(config.metadata(&[]).is_none(), "nobody logs in at our own key");
        config.auth.local_key_file.push_str(".not");
        config.auth.jwks_ca_file = config.auth.local_key_file.clone();
        let faults = config.jwt_issuers().map(|issuers| issuers.len()).unwrap_err();
        assert!(faults[0].starts_with("auth.jwks_ca_file: ") && faults[1].starts_with("auth.local_key_file: the key file "), "{faults:?}");
    }
}
