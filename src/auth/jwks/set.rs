//! One key set: a JWKS document (RFC 7517) as keys that a signature can be held against.
//!
//! Promises: only public RSA (2048 to 4096 bits), P-256 and Ed25519 keys that are meant for signatures become keys; the algorithm is the
//! key's own, never the token's. A key of another kind is left out, and so is each private or symmetric one; the rest is still good.
//! Does not: fetch or keep documents.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, crypto};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Bits of an RSA modulus: below, it can be broken (NIST SP 800-131A); above, one signature costs milliseconds.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;
/// Bytes of one coordinate of a P-256 or an Ed25519 key.
const CURVE_BYTES: usize = 32;

/// How a token may be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// As a token's header and the configuration write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of exactly this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    const fn theirs(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

/// A public key with the one algorithm that it is for.
#[derive(Debug, Clone)]
pub struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Key {
    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether `signature` (base64url) is this key's over `message`.
    #[must_use]
    pub fn signed(&self, message: &str, signature: &str) -> bool {
        crypto::verify(signature, message.as_bytes(), &self.key, self.algorithm.theirs()).unwrap_or(false)
    }
}

/// The keys of one issuer at one time.
#[derive(Debug, Clone, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    digest: [u8; 32],
    left_out: usize,
}

/// What a look for a key found.
#[derive(Debug)]
pub enum Found<'a> {
    /// The key.
    Key(&'a Key),
    /// No key of that id: a newer set may have it.
    UnknownId,
    /// No key that fits, and a newer set would not change that.
    None,
}

/// Why a document is no key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetFault {
    /// It is not of the shape of RFC 7517.
    #[error("it is no JSON object with a list \"keys\"")]
    NoSet,
    /// It holds more than may be.
    #[error("it holds {0} keys; at most {1} are read")]
    TooMany(usize, usize),
}

impl KeySet {
    /// The set in `document`.
    ///
    /// # Errors
    /// [`SetFault`]. A set without a usable key is none: an issuer that withdraws all its keys says so.
    pub fn read(document: &[u8], keys_max: usize) -> Result<Self, SetFault> {
        let listed: Document = serde_json::from_slice(document).map_err(|_| SetFault::NoSet)?;
        if listed.keys.len() > keys_max {
            return Err(SetFault::TooMany(listed.keys.len(), keys_max));
        }
        let mut keys: Vec<Key> = Vec::new();
        for key in listed.keys.iter().filter_map(|raw| serde_json::from_str::<Jwk>(raw.get()).ok()?.key()) {
            // Of two keys with one name and algorithm, which one is meant nobody can say: the first.
            if !keys.iter().any(|known| known.id.is_some() && known.id == key.id && known.algorithm == key.algorithm) {
                keys.push(key);
            }
        }
        Ok(Self { left_out: listed.keys.len() - keys.len(), keys, digest: Sha256::digest(document).into() })
    }

    /// The key for a token that names `id` and is signed with `algorithm`. A token without an id gets one only where exactly one key fits.
    #[must_use]
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Found<'_> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithm == algorithm);
        let Some(id) = id else {
            return match (fitting.next(), fitting.next()) {
                (Some(key), None) => Found::Key(key),
                _ => Found::None,
            };
        };
        match fitting.find(|key| key.id.as_deref() == Some(id)) {
            Some(key) => Found::Key(key),
            None if self.keys.iter().any(|key| key.id.as_deref() == Some(id)) => Found::None,
            None => Found::UnknownId,
        }
    }

    /// Usable keys, and keys that were left out.
    #[must_use]
    pub const fn counts(&self) -> (usize, usize) {
        (self.keys.len(), self.left_out)
    }

    /// Whether `other` was read from the same document.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Box<RawValue>>,
}

/// The members that matter of RFC 7517 and RFC 7518, section 6, and RFC 8037.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    #[serde(default, deserialize_with = "present")]
    d: bool,
    #[serde(default, deserialize_with = "present")]
    k: bool,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true).map_err(D::Error::custom)
}

impl Jwk {
    fn key(self) -> Option<Key> {
        let (algorithm, key) = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", None) => (Algorithm::Rs256, self.rsa()?),
            ("EC", Some("P-256")) => (Algorithm::Es256, self.p256()?),
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, self.ed25519()?),
            _ => return None,
        };
        // Whether the numbers are a point of the curve only the library knows; a key that is none is left out here, not met at every token.
        let usable = crypto::CryptoProvider::try_get_default().is_some_and(|all| (all.verifier_factory)(&algorithm.theirs(), &key).is_ok());
        (usable && self.is_public() && self.is_for(algorithm)).then_some(Key { id: self.kid, algorithm, key })
    }

    const fn is_public(&self) -> bool {
        !self.d && !self.k
    }

    /// Whether what the key says of its own use admits this one.
    fn is_for(&self, algorithm: Algorithm) -> bool {
        let named = |name: &str| name == algorithm.name() || (algorithm == Algorithm::EdDsa && name == "Ed25519");
        self.alg.as_deref().is_none_or(named)
            && self.usage.as_deref().is_none_or(|usage| usage == "sig")
            && self.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|operation| operation == "verify"))
    }

    fn rsa(&self) -> Option<DecodingKey> {
        let (modulus, exponent) = (bytes(self.n.as_ref()?)?, bytes(self.e.as_ref()?)?);
        let first = modulus.iter().position(|byte| *byte != 0)?;
        let (bits, top) = ((modulus.len() - first) * 8, modulus.get(first)?.leading_zeros() as usize);
        (RSA_BITS.contains(&(bits - top)) && is_exponent(&exponent)).then(|| DecodingKey::from_rsa_raw_components(&modulus, &exponent))
    }

    fn p256(&self) -> Option<DecodingKey> {
        let (x, y) = (self.x.as_ref()?, self.y.as_ref()?);
        let sized = |text: &String| bytes(text).is_some_and(|bytes| bytes.len() == CURVE_BYTES);
        if sized(x) && sized(y) { DecodingKey::from_ec_components(x, y).ok() } else { None }
    }

    fn ed25519(&self) -> Option<DecodingKey> {
        bytes(self.x.as_ref()?).filter(|bytes| bytes.len() == CURVE_BYTES).map(|bytes| DecodingKey::from_ed_der(&bytes))
    }
}

/// An odd number from 3 to 2^32 - 1: with 1 any text would be its own signature.
fn is_exponent(bytes: &[u8]) -> bool {
    let value = bytes.iter().try_fold(0_u32, |value, byte| Some(value.checked_mul(256)? | u32::from(*byte)));
    value.is_some_and(|value| value >= 3 && value % 2 == 1)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::jwt::trial::{Signer, document};
    use serde_json::{Value, json};

    fn counts(keys: &[Value]) -> (usize, usize) {
        KeySet::read(&document(keys), 64).unwrap().counts()
    }

    #[test]
    fn a_key_of_each_kind_is_taken_and_found_by_its_id() {
        let signers = [Signer::rsa("r"), Signer::p256("p"), Signer::ed25519("e")];
        let set = KeySet::read(&document(&signers.iter().map(Signer::jwk).collect::<Vec<_>>()), 64).unwrap();
        assert_eq!(set.counts(), (3, 0));
        for (signer, algorithm) in signers.iter().zip(Algorithm::ALL) {
            assert!(matches!(set.find(Some(signer.id()), algorithm), Found::Key(key) if key.algorithm() == algorithm));
            assert!(matches!(set.find(None, algorithm), Found::Key(_)), "one key fits");
        }
        assert!(matches!(set.find(Some("x"), Algorithm::Rs256), Found::UnknownId));
        assert!(matches!(set.find(Some("p"), Algorithm::Rs256), Found::None), "the id is another algorithm's: no newer set will help");
    }

    #[test]
    fn without_an_id_two_that_fit_are_none() {
        let keys = [Signer::ed25519("a").jwk(), Signer::ed25519("b").jwk()];
        assert!(matches!(KeySet::read(&document(&keys), 64).unwrap().find(None, Algorithm::EdDsa), Found::None));
    }

    #[test]
    fn what_a_key_says_of_its_use_is_honoured() {
        let with = |name: &str, value: Value| {
            let mut key = Signer::ed25519("e").jwk();
            key[name] = value;
            counts(&[key]).0
        };
        for (name, value) in [("use", json!("sig")), ("key_ops", json!(["verify"])), ("alg", json!("Ed25519")), ("x5c", json!(["x"]))] {
            assert_eq!(with(name, value), 1, "{name}");
        }
        let bad = [
            ("use", json!("enc")),
            ("key_ops", json!(["encrypt"])),
            ("key_ops", json!([])),
            ("alg", json!("ES256")),
            ("alg", json!("HS256")),
            ("alg", json!("none")),
            ("d", json!("AA")),
            ("d", json!(null)),
            ("k", json!("AA")),
            ("crv", json!("Ed448")),
            ("kty", json!("oct")),
            ("kty", json!("EC")),
            ("x", json!("AA")),
            ("x", json!("!")),
            ("kid", json!(7)),
        ];
        for (name, value) in bad {
            assert_eq!(with(name, value.clone()), 0, "{name} {value}");
        }
    }

    #[test]
    fn weak_and_broken_keys_are_left_out_and_the_others_stay() {
        let rsa = |name: &str, value: String| {
            let mut key = Signer::rsa("r").jwk();
            key[name] = json!(value);
            key
        };
        let short = |bits: usize| URL_SAFE_NO_PAD.encode(vec![0xff; bits / 8]);
        let padded = URL_SAFE_NO_PAD.encode([vec![0; 200], vec![0xff; 128]].concat());
        let mut off = Signer::p256("p").jwk();
        off["y"] = off["x"].clone();
        let bad = [
            rsa("n", short(1024)),
            rsa("n", short(2040)),
            rsa("n", short(8192)),
            rsa("n", padded),
            rsa("e", "AQ".to_owned()),
            rsa("e", "Ag".to_owned()),
            rsa("e", "AQAAAAE".to_owned()),
            off,
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "h"}),
            json!({}),
            json!(7),
        ];
        for key in &bad {
            assert_eq!(counts(&[key.clone(), Signer::ed25519("e").jwk()]), (1, 1), "{key}");
        }
    }

    #[test]
    fn a_document_is_a_set_within_bounds() {
        for text in ["", "null", "{}", "[]", "{\"keys\":{}}", "<html>"] {
            assert_eq!(KeySet::read(text.as_bytes(), 64).map(|set| set.counts()), Err(SetFault::NoSet), "{text}");
        }
        let keys = vec![json!({}); 65];
        assert_eq!(KeySet::read(&document(&keys), 64).map(|set| set.counts()), Err(SetFault::TooMany(65, 64)));
        assert_eq!(KeySet::read(b"{\"keys\":[]}", 64).unwrap().counts(), (0, 0));
        let twice = [Signer::ed25519("e").jwk(), Signer::ed25519("e").jwk()];
        assert_eq!(counts(&twice), (1, 1), "of two keys with one name the first");
    }
}
