//! Our own key, for teams without an identity provider: an Ed25519 key in a file, the tokens that it signs, and its key set.
//!
//! The key is PKCS #8 in PEM, as `openssl genpkey -algorithm ed25519` writes it too; its id is its thumbprint (RFC 7638).
//!
//! Promises: a new key never overwrites a file and is readable by its owner alone from its first byte on; a key that others may read is not
//! used; a token says who it is from, for and about, and ends within [`TTL_MAX_S`].
//! Does not: keep what was minted, or take it back: a token ends by itself, or all do when the key is replaced.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::{
    SigningKey,
    pkcs8::{DecodePrivateKey, EncodePrivateKey, spki::der::pem::LineEnding},
};
use jsonwebtoken::{DecodingKey, EncodingKey, Header, jwk::Jwk, jwk::ThumbprintHash};
use serde::Serialize;
use serde_json::json;

use super::{
    Role,
    jwks::Fixed,
    jwt::{Algorithm, ClaimNames, Issuer},
};
use crate::clock;

/// Seconds that a minted token holds at most: 30 days.
pub const TTL_MAX_S: u64 = 30 * 24 * 3600;
/// A key takes some 120 bytes; more is another file.
const FILE_BYTES_MAX: u64 = 4096;
/// The set of our own key does not change; it is only kept from growing old.
const REREAD_S: u64 = 60;
/// What others may do with the file: nothing.
const OTHERS: u32 = 0o077;

/// The key.
#[derive(Clone)]
pub struct LocalKey {
    key: SigningKey,
    public: Jwk,
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey(..)")
    }
}

/// Why there is no key or no token; for the person at the command line.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file is there.
    #[error("{0} is there already; a key is never overwritten: name another file, or move that one away")]
    Taken(String),
    /// The file cannot be written.
    #[error("the key file {0} cannot be written: {1}")]
    Unwritable(String, io::Error),
    /// The file cannot be read.
    #[error("the key file {0} cannot be read: {1}")]
    Unreadable(String, io::Error),
    /// Others may read the file.
    #[error("the key file {0} is open to others (mode {1:03o}); make it yours alone: chmod 600 {0}")]
    Open(String, u32),
    /// The file is no key.
    #[error("the key file {0} holds no Ed25519 key in PEM; runlore token keygen makes one")]
    NoKey(String),
    /// No randomness, or a fault of the library.
    #[error("the key cannot be used: {0}")]
    Library(String),
}

/// What a token is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who says it: what the server calls our key's issuer.
    pub issuer: String,
    /// For which server.
    pub audience: String,
    /// Of whom; none gives each token a name of its own.
    pub subject: Option<String>,
    /// In which organization.
    pub organization: String,
    /// With which role.
    pub role: Role,
    /// With which scopes.
    pub scopes: Vec<String>,
    /// For how many seconds; at most [`TTL_MAX_S`] count.
    pub ttl_s: u64,
}

#[derive(Serialize)]
struct Minted<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
    jti: &'a str,
    org: &'a str,
    role: &'static str,
    scope: String,
}

impl LocalKey {
    /// A new key, written to `path`, which must not be there.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn generate(path: &Path) -> Result<Self, KeyError> {
        let key = Self::new(SigningKey::from_bytes(&random()?))?;
        let text = key.key.to_pkcs8_pem(LineEnding::LF).map_err(library)?;
        let name = path.display().to_string();
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Taken(name.clone()),
            _ => KeyError::Unwritable(name.clone(), error),
        })?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| KeyError::Unwritable(name, error))?;
        Ok(key)
    }

    /// The key in the file at `path`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let name = path.display().to_string();
        let read = || -> io::Result<(u32, String)> {
            let file = File::open(path)?;
            let mode = file.metadata()?.mode();
            let mut text = String::new();
            file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
            Ok((mode, text))
        };
        let (mode, text) = read().map_err(|error| KeyError::Unreadable(name.clone(), error))?;
        if mode & OTHERS != 0 {
            return Err(KeyError::Open(name, mode & 0o777));
        }
        Self::new(SigningKey::from_pkcs8_pem(&text).map_err(|_| KeyError::NoKey(name))?)
    }

    fn new(key: SigningKey) -> Result<Self, KeyError> {
        let public = DecodingKey::from_ed_der(key.verifying_key().as_bytes());
        let mut public = Jwk::from_decoding_key(&public, Some(jsonwebtoken::Algorithm::EdDSA)).map_err(library)?;
        public.common.key_id = Some(public.thumbprint(ThumbprintHash::SHA256).map_err(library)?);
        Ok(Self { key, public })
    }

    /// Its key set (RFC 7517): the public half, for whoever verifies its tokens.
    #[must_use]
    pub fn jwks(&self) -> String {
        json!({ "keys": [self.public] }).to_string()
    }

    /// A token that says what `grant` does, from `now_s` (seconds since 1970) on.
    ///
    /// # Errors
    /// [`KeyError::Library`].
    pub fn mint(&self, grant: &Grant, now_s: u64) -> Result<String, KeyError> {
        let jti = URL_SAFE_NO_PAD.encode(random::<16>()?);
        let own = format!("minted-{jti}");
        let claims = Minted {
            iss: &grant.issuer,
            sub: grant.subject.as_deref().unwrap_or(&own),
            aud: &grant.audience,
            iat: now_s,
            exp: now_s.saturating_add(grant.ttl_s.min(TTL_MAX_S)),
            jti: &jti,
            org: &grant.organization,
            role: grant.role.word(),
            scope: grant.scopes.join(" "),
        };
        let header = Header { kid: self.public.common.key_id.clone(), ..Header::new(jsonwebtoken::Algorithm::EdDSA) };
        let der = self.key.to_pkcs8_der().map_err(library)?;
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(der.as_bytes())).map_err(library)
    }

    /// The issuer `name` whose tokens for `audience` this key signs.
    #[must_use]
    pub fn issuer(&self, name: &str, audience: &str) -> Issuer {
        Issuer {
            name: name.to_owned(),
            audiences: vec![audience.to_owned()],
            algorithms: vec![Algorithm::EdDsa],
            keys: Arc::new(Fixed(self.jwks())),
            every_s: REREAD_S,
            claims: ClaimNames::default(),
            organization: None,
            organizations: Vec::new(),
        }
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], KeyError> {
    clock::random().map_err(library)
}

fn library(error: impl fmt::Display) -> KeyError {
    KeyError::Library(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{
        jwks,
        jwt::{JwtDenied, JwtVerifier, Limits},
    };
    use std::{os::unix::fs::PermissionsExt, time::Duration};

    const NOW_S: u64 = 1_800_000_000;

    fn grant() -> Grant {
        Grant {
            issuer: "runlore".to_owned(),
            audience: "https://runs.example".to_owned(),
            subject: Some("ada".to_owned()),
            organization: "acme".to_owned(),
            role: Role::Admin,
            scopes: vec!["runs:write".to_owned(), "eval:read".to_owned()],
            ttl_s: 3600,
        }
    }

    fn verifier(key: &LocalKey) -> JwtVerifier {
        let keys = jwks::Limits { again_s: 30, age_max_s: 86_400, keys_max: 64, deadline: Duration::from_secs(20) };
        let limits = Limits { bytes_max: 8192, leeway_s: 5, entries_max: 10, keep_s: 60, keys };
        JwtVerifier::new(vec![key.issuer("runlore", "https://runs.example")], limits)
    }

    #[tokio::test]
    async fn what_is_minted_is_verified_and_says_what_was_granted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        let made = LocalKey::generate(&path).unwrap();
        let key = LocalKey::load(&path).unwrap();
        assert_eq!(made.jwks(), key.jwks());
        let said = verifier(&key).verify(&made.mint(&grant(), NOW_S).unwrap(), NOW_S).await.unwrap();
        assert_eq!((said.subject.as_str(), said.organization.as_deref(), said.role), ("ada", Some("acme"), Role::Admin));
        assert_eq!((said.scopes.join(" "), said.expires_at_s), ("eval:read runs:write".to_owned(), NOW_S + 3600));
        let long = Grant { ttl_s: u64::MAX, ..grant() };
        assert_eq!(verifier(&key).verify(&key.mint(&long, NOW_S).unwrap(), NOW_S).await.unwrap().expires_at_s, NOW_S + TTL_MAX_S);
        let other = LocalKey::generate(&directory.path().join("other.pem")).unwrap();
        assert_eq!(verifier(&key).verify(&other.mint(&grant(), NOW_S).unwrap(), NOW_S).await, Err(JwtDenied::Key));
    }

    #[tokio::test]
    async fn each_token_without_a_subject_has_a_name_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let key = LocalKey::generate(&directory.path().join("key.pem")).unwrap();
        let nameless = Grant { subject: None, ..grant() };
        let verifier = verifier(&key);
        let name = async || verifier.verify(&key.mint(&nameless, NOW_S).unwrap(), NOW_S).await.unwrap().subject.clone();
        let (first, second) = (name().await, name().await);
        assert!(first.starts_with("minted-") && first != second);
    }

    #[test]
    fn a_key_is_its_owners_alone_and_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        LocalKey::generate(&path).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let before = std::fs::read(&path).unwrap();
        assert!(LocalKey::generate(&path).unwrap_err().to_string().contains("is there already"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        for open in [0o640, 0o604, 0o660, 0o601] {
            mode(open);
            assert!(LocalKey::load(&path).unwrap_err().to_string().contains(&format!("(mode {open:03o}); make it yours alone: chmod 600")));
        }
        mode(0o400);
        let text = format!("{:?} {}", LocalKey::load(&path).unwrap(), LocalKey::load(&path).unwrap().jwks());
        assert!(!text.contains("\"d\"") && text.starts_with("LocalKey(..)"), "{text}");
    }

    #[test]
    fn what_is_no_key_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        assert!(LocalKey::load(&path).unwrap_err().to_string().contains("cannot be read"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        assert!(LocalKey::load(&path).unwrap_err().to_string().contains("holds no Ed25519 key"));
        (&file).write_all(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        assert!(LocalKey::load(&path).unwrap_err().to_string().contains("runlore token keygen makes one"));
        assert!(LocalKey::generate(&directory.path().join("no/such/place")).unwrap_err().to_string().contains("cannot be written"));
    }

    /// A key that OpenSSL made (RFC 8410, section 10.3) is one too, and its id is the thumbprint of its public half.
    #[test]
    fn a_key_of_openssl_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        let pem =
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(pem.as_bytes()).unwrap();
        let set: serde_json::Value = serde_json::from_str(&LocalKey::load(&path).unwrap().jwks()).unwrap();
        assert_eq!(set["keys"][0]["x"], "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE");
        assert_eq!(set["keys"][0]["kid"].as_str().map(str::len), Some(43));
    }
}
