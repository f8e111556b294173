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
    /// The step: `per_minute` for each of at most `addresses_max` remembered addresses; 0 is off.
    #[must_use]
    pub fn new(per_minute: u32, addresses_max: usize) -> Self {
        Self { limiter: Arc::new(Limiter::bounded(per_minute, addresses_max)) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::trial::{request, text, through};

    #[tokio::test]
    async fn over_the_rate_it_is_429_with_the_wait_in_header_and_words() {
        let layer = RateLayer::new(2, 100);
        let send = || through(&layer, request().body(axum::body::Body::empty()).unwrap());
        assert_eq!((send().await.status().as_u16(), send().await.status().as_u16()), (200, 200));
        let refused = send().await;
        assert_eq!(refused.status(), 429);
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=30).contains(&wait));
        assert!(text(refused).await.contains(&format!("{wait} seconds")));
    }
}
