//! API keys: `rlk_` and 32 random bytes (decision 12; DESIGN.md section 4).
//!
//! Promises: the text is shown once, where it is made; only its SHA-256 is kept. The text is 256 random bits, so a plain digest cannot be
//! guessed back, and looking one up by digest compares nothing that an attacker could measure.
//! Does not: know whose a key is.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::clock;

/// What every key begins with, so that people and scanners of repositories know one.
pub const PREFIX: &str = "rlk_";
/// Bytes of a key's text: the prefix and 32 bytes in base64.
const TEXT_BYTES: usize = PREFIX.len() + 43;

/// What is kept of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

impl Digest {
    /// The digest of what was sent, where it looks like a key.
    #[must_use]
    pub fn of(sent: &[u8]) -> Option<Self> {
        (sent.len() == TEXT_BYTES && sent.starts_with(PREFIX.as_bytes())).then(|| Self(Sha256::digest(sent).into()))
    }

    /// The digest that was kept.
    #[must_use]
    pub fn kept(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes, to keep.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A new key: its text, to be shown once, and what is kept of it.
///
/// # Errors
/// A sentence, where the system gives no randomness.
pub fn generate() -> Result<(String, Digest), String> {
    let random = clock::random::<32>()?;
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let digest = Digest(Sha256::digest(text.as_bytes()).into());
    Ok((text, digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_digest_and_by_nothing_else() {
        let (text, digest) = generate().unwrap();
        assert_eq!((text.len(), Digest::of(text.as_bytes())), (TEXT_BYTES, Some(digest)));
        assert_ne!(generate().unwrap().0, text);
        let other = text.replace(PREFIX, "RLK_");
        for wrong in [text.get(1..).unwrap(), &format!("{text}x"), &other, "", PREFIX] {
            assert_eq!(Digest::of(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Digest::kept(digest.bytes()), Some(digest));
        assert_eq!(Digest::kept(&[0; 31]), None);
        assert_eq!(format!("{digest:?}"), "Digest(..)");
    }
}
