//! Issuers for tests: keys made on the spot, tokens of any header and claims, key sets that a test changes and counts.
//!
//! Promises: no key outlives its test; nothing is fetched.
//! Does not: stand in what is shipped.

use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, EncodingKey, crypto, jwk::Jwk};
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use rsa::{pkcs1::EncodeRsaPrivateKey as _, rand_core::UnwrapErr};
use serde_json::{Value, json};

use super::{Algorithm, ClaimNames, Issuer};
use crate::auth::jwks::{Fetch, FetchFault};

/// A key with its id.
#[derive(Clone)]
pub struct Signer {
    id: String,
    algorithm: jsonwebtoken::Algorithm,
    key: EncodingKey,
}

impl Signer {
    /// An RSA key of 2048 bits; one for the whole process, since it takes long to find.
    pub fn rsa(id: &str) -> Self {
        static KEY: OnceLock<Vec<u8>> = OnceLock::new();
        let der = KEY.get_or_init(|| {
            let key = rsa::PrivateKey::new(&mut UnwrapErr(getrandom::SysRng), 2048).unwrap();
            key.to_pkcs1_der().unwrap().as_bytes().to_vec()
        });
        Self { id: id.to_owned(), algorithm: jsonwebtoken::Algorithm::RS256, key: EncodingKey::from_rsa_der(der) }
    }

    /// A P-256 key.
    pub fn p256(id: &str) -> Self {
        let der = p256::SecretKey::from_slice(&random()).unwrap().to_pkcs8_der().unwrap();
        Self { id: id.to_owned(), algorithm: jsonwebtoken::Algorithm::ES256, key: EncodingKey::from_ec_der(der.as_bytes()) }
    }

    /// An Ed25519 key.
    pub fn ed25519(id: &str) -> Self {
        let der = ed25519_dalek::SigningKey::from_bytes(&random()).to_pkcs8_der().unwrap();
        Self { id: id.to_owned(), algorithm: jsonwebtoken::Algorithm::EdDSA, key: EncodingKey::from_ed_der(der.as_bytes()) }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its public half, as a key set holds it.
    pub fn jwk(&self) -> Value {
        let jwk = match self.algorithm {
            jsonwebtoken::Algorithm::EdDSA => {
                let key = ed25519_dalek::SigningKey::from_pkcs8_der(self.key.as_bytes()).unwrap();
                Jwk::from_decoding_key(&DecodingKey::from_ed_der(key.verifying_key().as_bytes()), Some(self.algorithm))
            }
            algorithm => Jwk::from_encoding_key(&self.key, algorithm),
        };
        let mut jwk = serde_json::to_value(jwk.unwrap()).unwrap();
        jwk["kid"] = json!(self.id);
        jwk
    }

    /// Its public half in DER, as `openssl pkey -pubout -outform der` writes it.
    pub fn public_der(&self) -> Vec<u8> {
        use rsa::{pkcs1::DecodeRsaPrivateKey as _, pkcs8::EncodePublicKey as _};
        let der = match self.algorithm {
            jsonwebtoken::Algorithm::RS256 => {
                rsa::PrivateKey::from_pkcs1_der(self.key.as_bytes()).unwrap().to_public_key().to_public_key_der()
            }
            jsonwebtoken::Algorithm::ES256 => {
                p256::SecretKey::from_pkcs8_der(self.key.as_bytes()).unwrap().public_key().to_public_key_der()
            }
            _ => ed25519_dalek::SigningKey::from_pkcs8_der(self.key.as_bytes()).unwrap().verifying_key().to_public_key_der(),
        };
        der.unwrap().into_vec()
    }

    /// A token of these claims, as an issuer makes it.
    pub fn token(&self, claims: &Value) -> String {
        let algorithm = serde_json::to_value(self.algorithm).unwrap();
        self.signed(&json!({"alg": algorithm, "typ": "JWT", "kid": self.id}).to_string(), &claims.to_string())
    }

    /// A token of exactly this header and these claims, with a right signature.
    pub fn signed(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = crypto::sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

/// A key set of these keys.
pub fn document(keys: &[Value]) -> Vec<u8> {
    json!({ "keys": keys }).to_string().into_bytes()
}

/// A place of a key set: a test says what stands there, and reads how often it was asked.
#[derive(Default)]
pub struct Place {
    answer: Mutex<Option<Vec<u8>>>,
    asked: AtomicUsize,
    /// While a test holds this, answers do not come.
    pub held: Mutex<()>,
}

impl Place {
    /// A place that holds these keys.
    pub fn with(signers: &[&Signer]) -> Self {
        let place = Self::default();
        place.set(signers);
        place
    }

    /// It holds these keys from now on.
    pub fn set(&self, signers: &[&Signer]) {
        let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
        *self.answer.lock().unwrap() = Some(document(&keys));
    }

    /// It does not answer from now on.
    pub fn fail(&self) {
        *self.answer.lock().unwrap() = None;
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

impl Fetch for Place {
    fn fetch(&self) -> Result<Vec<u8>, FetchFault> {
        self.asked.fetch_add(1, SeqCst);
        drop(self.held.lock().unwrap());
        self.answer.lock().unwrap().clone().ok_or_else(|| FetchFault::Unreachable("it is down".to_owned()))
    }
}

/// An issuer that takes everything that is taken at all.
pub fn issuer(name: &str, keys: std::sync::Arc<dyn Fetch>) -> Issuer {
    Issuer {
        name: name.to_owned(),
        audiences: vec!["https://runs.example/mcp".to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        keys,
        every_s: 300,
        claims: ClaimNames::default(),
        organization: None,
        organizations: Vec::new(),
    }
}
