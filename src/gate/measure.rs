//! Counts each request by its route and what became of it, and how long that took.
//!
//! Promises: a bounded set of labels, whatever paths and methods are asked for.
//! Does not: log; the audit line of a call does.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{Request, Response};
use tower::{Layer, Service};

use super::{BoxFuture, refusal::RefusedBy};
use crate::{clock, telemetry::metrics::Metrics};

/// Adds the step.
#[derive(Clone)]
pub struct MeasureLayer {
    metrics: Arc<Metrics>,
    endpoints: Arc<[String]>,
}

impl MeasureLayer {
    /// The step; `endpoints` are the paths that count as `mcp`.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, endpoints: Vec<String>) -> Self {
        Self { metrics, endpoints: endpoints.into() }
    }

    fn route(&self, path: &str) -> &'static str {
        if self.endpoints.iter().any(|endpoint| endpoint == path) {
            "mcp"
        } else if path.ends_with("/health") {
            "health"
        } else {
            "other"
        }
    }
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Measure<S>;

    fn layer(&self, inner: S) -> Measure<S> {
        Measure { inner, layer: self.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Measure<S> {
    inner: S,
    layer: MeasureLayer,
}

impl<S, B> Service<Request<B>> for Measure<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (route, metrics, began) = (self.layer.route(request.uri().path()), self.layer.metrics.clone(), clock::monotonic());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            let outcome = response.extensions().get::<RefusedBy>().map_or("ok", |refused| refused.0);
            metrics.door(route, outcome, began.elapsed());
            Ok(response)
        })
    }
}
