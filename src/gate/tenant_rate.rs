//! How many requests a minute one organization may make (`tenants.rate_per_min`).
//!
//! Promises: counts every request whose caller is of an organization, whatever it asks for; over it 429 with `Retry-After` of at least 1. A
//! refused one takes nothing. Callers of no organization are counted by their address alone.
//! Does not: know who is of which organization (`authenticate` does).

use std::sync::Arc;

use http::Request;
use tower::Layer;

use super::{
    limiter::Limiter,
    refusal::Barred,
    step::{Check, Checked},
    visit::Visit,
};

/// Adds the step.
#[derive(Clone)]
pub struct TenantRateLayer {
    limiter: Arc<Limiter<Arc<str>>>,
}

impl TenantRateLayer {
    /// The step: `per_minute` for each of at most `organizations_max` remembered organizations; 0 is off.
    #[must_use]
    pub fn new(per_minute: u32, organizations_max: usize) -> Self {
        Self { limiter: Arc::new(Limiter::bounded(per_minute, organizations_max)) }
    }

    /// The limiter, for metrics.
    #[must_use]
    pub fn limiter(&self) -> Arc<Limiter<Arc<str>>> {
        self.limiter.clone()
    }
}

impl Check for TenantRateLayer {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let caller = Visit::of(request).ok_or(Barred::Internal)?.caller.as_ref();
        let Some(organization) = caller.and_then(|caller| caller.organization()) else { return Ok(()) };
        self.limiter.check(organization).map_err(|retry_after_s| Barred::TenantRate { retry_after_s })
    }
}

impl<S> Layer<S> for TenantRateLayer {
    type Service = Checked<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::{
            Caller,
            api_key::Digest,
            directory::tests::{secret, two},
        },
        clock,
    };

    #[test]
    fn one_organization_does_not_take_anothers_share() {
        let layer = TenantRateLayer::new(2, 100);
        let directory = two();
        let ask = |caller: Caller| {
            let mut request = crate::gate::trial::request().body(()).unwrap();
            request.extensions_mut().get_mut::<Visit>().unwrap().caller = Some(caller);
            layer.check(&mut request)
        };
        let of = |letter: &str| directory.caller(&Digest::of(secret(letter).as_bytes()).unwrap(), clock::now()).unwrap();
        assert_eq!((ask(of("a")), ask(of("a"))), (Ok(()), Ok(())));
        assert!(matches!(ask(of("a")), Err(Barred::TenantRate { retry_after_s: 1..=30 })));
        assert_eq!((ask(of("b")), ask(Caller::nobody()), ask(Caller::public())), (Ok(()), Ok(()), Ok(())));
    }
}
