//! How many requests a minute one address may make (`--request-rate`).
//!
//! Promises: counts every request that names one of our hosts and routes, health and failed credentials included, before anything is read
//! or compared; over it 429 with `Retry-After` of at least 1. A refused one takes nothing.
//! Does not: count calls; the caller's tool rate stands in the call list, with the same [`Limiter`].

use std::{net::IpAddr, sync::Arc};

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
pub struct RateLayer {
    limiter: Arc<Limiter<IpAddr>>,
}

impl RateLayer {
    /// The step: `per_minute` for each address; 0 is off.
    #[must_use]
    pub fn new(per_minute: u32) -> Self {
        Self { limiter: Arc::new(Limiter::new(per_minute)) }
    }

    /// The limiter, for metrics.
    #[must_use]
    pub fn limiter(&self) -> Arc<Limiter<IpAddr>> {
        self.limiter.clone()
    }
}

impl Check for RateLayer {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let address = Visit::of(request).ok_or(Barred::Internal)?.client.address;
        self.limiter.check(&address).map_err(|retry_after_s| Barred::Rate { retry_after_s })
    }
}

impl<S> Layer<S> for RateLayer {
    type Service = Checked<S, RateLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.clone())
    }
}
