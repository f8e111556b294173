//! Whom a server believes: which credentials it takes, and who is who brings none.
//!
//! Promises: a credential that was sent and is wrong is never taken for none (`HARDENING.md`), on every server that takes any. What is known
//! already is said at once; only what has to be verified is waited for.
//! Does not: read headers (`gate::authenticate` does).

use std::sync::Arc;

use super::{
    Caller,
    tenants::{Known, Tenants},
    token::StaticToken,
};

/// Which credentials a server takes.
#[derive(Clone)]
pub enum Credentials {
    /// None: everyone is the stranger, whatever they send.
    None,
    /// One token, the same for all.
    Token(StaticToken),
    /// Those of the organizations' callers.
    Tenants(Arc<Tenants>),
}

/// Whom a server believes.
#[derive(Clone)]
pub struct Authority {
    /// Which credentials it takes.
    pub credentials: Credentials,
    /// Who is who brings none; where there is none, who brings none is refused.
    pub stranger: Option<Caller>,
}

impl Authority {
    /// Everyone is `stranger`.
    #[must_use]
    pub const fn open(stranger: Caller) -> Self {
        Self { credentials: Credentials::None, stranger: Some(stranger) }
    }

    /// Whether a credential is looked at.
    #[must_use]
    pub const fn asks(&self) -> bool {
        !matches!(self.credentials, Credentials::None)
    }

    /// Whose the credential is that was sent.
    #[must_use]
    pub fn known(&self, sent: &[u8]) -> Known {
        match &self.credentials {
            Credentials::None => Known::of(self.stranger.clone()),
            Credentials::Token(token) => Known::of(token.caller(sent)),
            Credentials::Tenants(tenants) => tenants.known(sent),
        }
    }

    /// Whether `caller` may see the project of a path, where it names one: what it may not see is not there.
    #[must_use]
    pub fn sees(&self, caller: &Caller, organization: &str, project: &str) -> bool {
        match &self.credentials {
            Credentials::Tenants(tenants) => tenants.directory().scope(caller, organization, project).is_some(),
            Credentials::None | Credentials::Token(_) => false,
        }
    }
}
