//! Who asks.
//!
//! Promises: with a token configured, one `Authorization: Bearer <token>` that is the token, or 401: none, two, another scheme and another
//! token alike. A bad one is never taken for none. Reads that header only and takes it off: no later step, log or error can show it.
//! Does not: look at the query, ever; ask anything of the health route; judge a header that no one asked for (a proxy in front may have its
//! own) where no token is configured: there everyone is `anonymous` (decision 48).

use http::{HeaderMap, Request, header};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
    visit::{Route, Visit},
};
use crate::auth::{Caller, token::StaticToken};

/// Adds the step.
#[derive(Debug, Clone)]
pub struct AuthenticateLayer {
    token: Option<StaticToken>,
}

impl AuthenticateLayer {
    /// The step; without a token everyone is `anonymous`.
    #[must_use]
    pub const fn new(token: Option<StaticToken>) -> Self {
        Self { token }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Barred> {
        let Some(token) = &self.token else { return Ok(Caller::open()) };
        let mut lines = headers.get_all(header::AUTHORIZATION).iter();
        let Some(line) = lines.next() else { return Err(Barred::Unauthenticated { sent: false }) };
        let one = lines.next().is_none();
        bearer(line.as_bytes()).filter(|_| one).and_then(|sent| token.caller(sent)).ok_or(Barred::Unauthenticated { sent: true })
    }
}

/// What stands after the scheme, whose case does not matter (RFC 9110, section 11.1).
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = line.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| rest.trim_ascii())
}

impl Check for AuthenticateLayer {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let caller = match Visit::of(request).ok_or(Barred::Internal)?.route {
            Some(Route::Mcp(_)) => Some(self.caller(request.headers())?),
            Some(Route::Health) => None,
            // A request that no step gave a route to is let nowhere.
            None => return Err(Barred::Internal),
        };
        request.headers_mut().remove(header::AUTHORIZATION);
        request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?.caller = caller;
        Ok(())
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Checked<S, AuthenticateLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.clone())
    }
}
