//! Who calls, on a server of many organizations: whose API key it is, by the directory as it is now, or whom a token of a known issuer speaks for.
//!
//! Promises: looking a key up waits for nothing; the directory is replaced whole, so a revoked key is none from then on; when each key was last
//! used is remembered until somebody writes it down.
//! Does not: read the directory from a disk (`serve` does, and replaces it here).

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use super::{Caller, api_key, directory::Directory, jwt::JwtVerifier};
use crate::clock;

/// What is known of the organizations now, and which keys were used.
#[derive(Default)]
pub struct Tenants {
    directory: RwLock<Arc<Directory>>,
    /// Where tokens of issuers are taken.
    tokens: Option<Arc<JwtVerifier>>,
    /// The second at which each key was used last: at most one entry for each key there is.
    used: Mutex<HashMap<Arc<str>, i64>>,
}

/// What a credential comes to.
pub enum Known {
    /// It is this caller's.
    Caller(Caller),
    /// It is nobody's.
    Nobody,
    /// It has to be verified first, which ends in bounded time: whose it is, then.
    Verifying(Verifying),
}

/// Whose a credential is, once it is verified.
pub type Verifying = Pin<Box<dyn Future<Output = Option<Caller>> + Send>>;

impl Known {
    /// It is `caller`'s, or nobody's.
    #[must_use]
    pub fn of(caller: Option<Caller>) -> Self {
        caller.map_or(Self::Nobody, Self::Caller)
    }
}

impl Tenants {
    /// Those of `directory`; tokens are held against `tokens`, where there are issuers.
    #[must_use]
    pub fn new(directory: Directory, tokens: Option<Arc<JwtVerifier>>) -> Self {
        Self { directory: RwLock::new(Arc::new(directory)), tokens, used: Mutex::default() }
    }

    /// The directory as it is now.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on `directory` holds.
    pub fn replace(&self, directory: Directory) {
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(directory);
    }

    /// Whose the credential is that was sent.
    #[must_use]
    pub fn known(&self, sent: &[u8]) -> Known {
        if let Some(tokens) = self.tokens.as_ref().filter(|_| !sent.starts_with(api_key::PREFIX.as_bytes())) {
            return std::str::from_utf8(sent)
                .map_or(Known::Nobody, |token| Known::Verifying(verified(tokens.clone(), self.directory(), token.to_owned())));
        }
        let now = clock::now();
        let caller = api_key::Digest::of(sent).and_then(|digest| self.directory().caller(&digest, now));
        let Some(caller) = caller else { return Known::Nobody };
        if let Some(id) = caller.key() {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), now.millis() / 1000);
        }
        Known::Caller(caller)
    }

    /// When keys were used since this was asked last: each key's id with the second.
    #[must_use]
    pub fn take_used(&self) -> Vec<(Arc<str>, i64)> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).drain().collect()
    }
}

/// Whom the token speaks for. Why it is refused is for the log: whoever sent it is told only that it is not valid.
fn verified(tokens: Arc<JwtVerifier>, directory: Arc<Directory>, token: String) -> Verifying {
    Box::pin(async move {
        match tokens.verify(&token, clock::now_s()).await {
            Ok(verified) => Some(Caller::of_token(&verified)).filter(|caller| !directory.suspended(caller)),
            Err(reason) => {
                tracing::info!(%reason, "a token was refused");
                None
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::directory::tests::{secret, two};

    #[test]
    fn a_key_is_its_callers_until_the_directory_has_it_no_more() {
        let tenants = Tenants::new(two(), None);
        let known = |letter: &str| tenants.known(secret(letter).as_bytes());
        assert!(matches!(known("a"), Known::Caller(caller) if caller.organization().is_some_and(|slug| &**slug == "acme")));
        assert!([known("c"), tenants.known(b""), tenants.known(b"rlk_")].iter().all(|known| matches!(known, Known::Nobody)));
        let used: Vec<String> = tenants.take_used().into_iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(used, ["k-acme"]);
        assert!(tenants.take_used().is_empty());
        tenants.replace(Directory::default());
        assert!(matches!(known("a"), Known::Nobody));
    }
}
