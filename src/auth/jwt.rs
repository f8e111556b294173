//! Tokens of identity providers (RFC 7519, signed as RFC 7515 says) become what they say, if they may say it here.
//!
//! Promises: the algorithm comes from the key and must be among the issuer's; the issuer is the one that the token names, exactly, and the
//! key one of that issuer's own. Audience, expiry and beginning are always held; what is not understood (`crit`, another `typ`, a key twice)
//! is refused. A verified token is remembered by its digest, for at most [`Limits::keep_s`], never beyond its expiry, and not beyond a
//! change of its issuer's keys.
//! Does not: know organizations, callers or HTTP, or read the clock; hold or log a token.
//!
//! A token that is remembered costs its SHA-256 and a look-up of 1,500 instructions: in all 0.8 us for 1,200 bytes where the processor has
//! SHA instructions; without them (so also under valgrind) the SHA-256 alone takes 67,000. A first verification takes 35 us (EdDSA), 55 us
//! (RS256) or 190 us (ES256). `tests/bench/tokens.rs` measures both.

mod claims;
mod strict;
#[cfg(test)]
mod tests;
mod token;
#[cfg(test)]
pub mod trial;

use std::{sync::Arc, time::Duration};

use moka::future::Cache;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

pub use self::claims::{ClaimNames, named};
use self::{claims::Claims, token::Parts};
pub use super::jwks::Algorithm;
use super::{
    Role,
    jwks::{self, Current, Fetch, Found, Keys},
};

/// How often an issuer's keys are looked after. What is due is decided by their own limits.
const ROUND: Duration = Duration::from_secs(1);

/// An identity provider whose tokens are taken.
#[derive(Clone)]
pub struct Issuer {
    /// Its name, exactly as its tokens' `iss` has it.
    pub name: String,
    /// What it may call this server; a token's `aud` must hold one of them.
    pub audiences: Vec<String>,
    /// How it may sign.
    pub algorithms: Vec<Algorithm>,
    /// Where its keys are.
    pub keys: Arc<dyn Fetch>,
    /// Seconds after which they are read again.
    pub every_s: u64,
    /// Where it writes scopes, organization and role.
    pub claims: ClaimNames,
    /// The organization of all its tokens, whatever they say.
    pub organization: Option<String>,
    /// The organizations that its tokens may be of; empty for any. One organization's provider must not speak for another's people.
    pub organizations: Vec<String>,
}

/// What is taken and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a token.
    pub bytes_max: usize,
    /// Seconds by which the issuer's clock may differ from ours.
    pub leeway_s: u64,
    /// Verified tokens that are remembered; 0 is none.
    pub entries_max: u64,
    /// Seconds that one is remembered at most.
    pub keep_s: u64,
    /// For the keys.
    pub keys: jwks::Limits,
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Who says it.
    pub issuer: Arc<str>,
    /// Of whom: the issuer's name for the person or service.
    pub subject: String,
    /// The organization: the issuer's fixed one, else the claim's; none where neither is.
    pub organization: Option<String>,
    /// The role; viewer where the token names none that is known (decision 44).
    pub role: Role,
    /// The scopes, sorted; none where the token names none.
    pub scopes: Vec<String>,
    /// When it ends, seconds since 1970.
    pub expires_at_s: u64,
}

/// Why a token is refused; for logs and counts. A caller learns no more than that it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwtDenied {
    /// Of an organization that its issuer may not speak for.
    #[error("the token's issuer may not speak for its organization")]
    Organization,
    /// Longer than [`Limits::bytes_max`].
    #[error("the token is too long")]
    TooLong,
    /// Not three parts of base64url, or no JSON, or a key twice.
    #[error("the token has not the form of a signed JWT")]
    Malformed,
    /// `crit`, or a `typ` that is no access token's.
    #[error("the token's header asks for what is not understood: {0}")]
    Header(&'static str),
    /// A claim is missing or of the wrong kind.
    #[error("the token's claim {0} is missing or of the wrong kind")]
    Claim(&'static str),
    /// No issuer of that name.
    #[error("the token's issuer is not known")]
    Issuer,
    /// For somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// Over.
    #[error("the token has expired")]
    Expired,
    /// Not begun.
    #[error("the token is not valid yet")]
    Early,
    /// `none`, a symmetric one, one that the issuer may not use, or not the key's.
    #[error("the token's algorithm is not taken from this issuer")]
    Algorithm,
    /// The issuer has no such key.
    #[error("the token names no key of its issuer")]
    Key,
    /// The issuer's keys could never be read, or not for too long: it may be a good token, and nobody can tell.
    #[error("the keys of the token's issuer cannot be read")]
    NoKeys,
    /// Not what was signed, or not signed by this key.
    #[error("the token's signature is wrong")]
    Signature,
}

/// Holds tokens against issuers.
pub struct JwtVerifier {
    issuers: Vec<Known>,
    limits: Limits,
    remembered: Option<Cache<[u8; 32], Remembered>>,
}

struct Known {
    name: Arc<str>,
    issuer: Issuer,
    keys: Arc<Keys>,
}

#[derive(Clone)]
struct Remembered {
    verified: Arc<Verified>,
    /// The place of the issuer in the list.
    issuer: usize,
    generation: u64,
    until_s: u64,
}

impl JwtVerifier {
    /// Takes tokens of `issuers`; of two with one name the first.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>, limits: Limits) -> Self {
        let known = |issuer: Issuer| Known {
            name: issuer.name.as_str().into(),
            keys: Arc::new(Keys::new(&issuer.name, issuer.keys.clone(), issuer.every_s, limits.keys)),
            issuer,
        };
        let cache = || Cache::builder().max_capacity(limits.entries_max).time_to_live(Duration::from_secs(limits.keep_s)).build();
        Self { issuers: issuers.into_iter().map(known).collect(), limits, remembered: (limits.entries_max > 0).then(cache) }
    }

    /// Whether `token` is good at `now_s` (seconds since 1970), and what it says then. Waits only where its issuer's keys were never read, or
    /// it names a key that nobody knows.
    ///
    /// # Errors
    /// [`JwtDenied`].
    pub async fn verify(&self, token: &str, now_s: u64) -> Result<Arc<Verified>, JwtDenied> {
        if token.len() > self.limits.bytes_max {
            return Err(JwtDenied::TooLong);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(cache) = &self.remembered
            && let Some(known) = cache.get(&digest).await
            && self.holds(&known, now_s)
        {
            return Ok(known.verified);
        }
        let fresh = self.judged(token, now_s).await?;
        if let Some(cache) = &self.remembered
            && self.holds(&fresh, now_s)
        {
            cache.insert(digest, fresh.clone()).await;
        }
        Ok(fresh.verified)
    }

    /// Reads all issuers' keys once, side by side.
    ///
    /// # Errors
    /// A sentence for each issuer whose keys cannot be read: a misspelt file or URL is told at start, though a server may begin without an
    /// issuer that is away.
    pub async fn prefetch(&self, now_s: u64) -> Result<(), Vec<String>> {
        let read = |known: &Known| {
            let (keys, name) = (known.keys.clone(), known.name.clone());
            tokio::spawn(async move { keys.tend(now_s).await.map_err(|fault| format!("the key set of the issuer {name}: {fault}")) })
        };
        let reading: Vec<_> = self.issuers.iter().map(read).collect();
        let mut faults = Vec::new();
        for one in reading {
            faults.extend(one.await.unwrap_or_else(|error| Err(error.to_string())).err());
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Keeps all issuers' keys fresh, each on a task of its own, until the set of tasks is dropped; `now_s` is the clock, seconds since 1970.
    pub fn keep_fresh(&self, now_s: fn() -> u64) -> JoinSet<()> {
        self.issuers.iter().map(|known| tended(known.keys.clone(), known.name.clone(), now_s)).collect()
    }

    /// Whether what was found out still holds: its time, and the keys that it was held against.
    fn holds(&self, known: &Remembered, now_s: u64) -> bool {
        // A clock that was set back would keep it longer than it may be.
        let in_time = now_s < known.until_s && known.until_s - now_s <= self.limits.keep_s;
        in_time && self.issuers.get(known.issuer).and_then(|issuer| issuer.keys.generation(now_s)) == Some(known.generation)
    }

    async fn judged(&self, token: &str, now_s: u64) -> Result<Remembered, JwtDenied> {
        let parts = Parts::of(token)?;
        let claims = Claims::read(&parts.payload)?;
        let found = self.issuers.iter().enumerate().find(|(_, known)| *known.name == *claims.issuer);
        let (index, known) = found.ok_or(JwtDenied::Issuer)?;
        // What costs nothing first: a signature is only held against a key where all else is right.
        self.in_time(&claims, now_s)?;
        if !claims.audiences.iter().any(|name| known.issuer.audiences.contains(name)) {
            return Err(JwtDenied::Audience);
        }
        if !known.may_speak_for(&claims) {
            return Err(JwtDenied::Organization);
        }
        let algorithm = Algorithm::named(&parts.header.alg).filter(|algorithm| known.issuer.algorithms.contains(algorithm));
        let generation = known.signed(&parts, algorithm.ok_or(JwtDenied::Algorithm)?, now_s).await?;
        let until_s = claims.expires_at_s.min(now_s.saturating_add(self.limits.keep_s));
        Ok(Remembered { verified: Arc::new(known.verified(claims)), issuer: index, generation, until_s })
    }

    const fn in_time(&self, claims: &Claims, now_s: u64) -> Result<(), JwtDenied> {
        if now_s >= claims.expires_at_s.saturating_add(self.limits.leeway_s) {
            return Err(JwtDenied::Expired);
        }
        match claims.not_before_s {
            Some(from_s) if from_s > now_s.saturating_add(self.limits.leeway_s) => Err(JwtDenied::Early),
            _ => Ok(()),
        }
    }
}

impl Known {
    /// The generation of the keys among which the one was that signed these parts.
    async fn signed(&self, parts: &Parts<'_>, algorithm: Algorithm, now_s: u64) -> Result<u64, JwtDenied> {
        if let Some(current) = self.keys.current(now_s)
            && let Some(answer) = judged_by(&current, parts, algorithm)
        {
            return answer;
        }
        self.keys.look_again(now_s).await;
        let current = self.keys.current(now_s).ok_or(JwtDenied::NoKeys)?;
        judged_by(&current, parts, algorithm).unwrap_or(Err(JwtDenied::Key))
    }

    fn organization(&self, claims: &Claims) -> Option<String> {
        self.issuer.organization.clone().or_else(|| claims.organization(&self.issuer.claims))
    }

    fn may_speak_for(&self, claims: &Claims) -> bool {
        let all = &self.issuer.organizations;
        all.is_empty() || self.organization(claims).is_none_or(|own| all.contains(&own))
    }

    fn verified(&self, claims: Claims) -> Verified {
        let names = &self.issuer.claims;
        Verified {
            issuer: self.name.clone(),
            organization: self.organization(&claims),
            role: claims.role(names),
            scopes: claims.scopes(names),
            expires_at_s: claims.expires_at_s,
            subject: claims.subject,
        }
    }
}

/// What these keys say of the token; none where a newer set might say more.
fn judged_by(current: &Current, parts: &Parts<'_>, algorithm: Algorithm) -> Option<Result<u64, JwtDenied>> {
    match current.set.find(parts.header.kid.as_deref(), algorithm) {
        Found::Key(key) if key.signed(parts.message, parts.signature) => Some(Ok(current.generation)),
        Found::Key(_) => Some(Err(JwtDenied::Signature)),
        Found::None => Some(Err(JwtDenied::Key)),
        Found::UnknownId => None,
    }
}

async fn tended(keys: Arc<Keys>, name: Arc<str>, now_s: fn() -> u64) {
    let mut round = tokio::time::interval(ROUND);
    round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        if let Err(fault) = keys.tend(now_s()).await {
            tracing::warn!(issuer = &*name, "the key set was not read, the last good one holds: {fault}");
        }
    }
}
