//! `<endpoint>/health`: whether the server would answer (decision 79).
//!
//! Promises: stands behind Host, Origin and the request rate and before the token; 200 or 503; HEAD is GET without the body.
//! Does not: look anything up itself: whether the server is ready it is told, within a second (`crate::health`).

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tower::{Layer, Service};

use super::{
    BoxFuture,
    step::{Answered, Passage, json},
    visit::{Route, Visit},
};

/// How the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether it would answer: not while it drains, or while the store does not.
    pub ok: bool,
    /// Its version.
    pub version: &'static str,
    /// How many tools it offers to a caller without a token.
    pub tools: usize,
    /// Whether it is in public mode.
    pub public: bool,
    /// Whether its project can only be read (decision 41).
    #[serde(rename = "readOnly", skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Finds out how the server is.
#[derive(Clone)]
pub struct Probe {
    /// What never changes.
    pub known: Health,
    /// Whether it is ready; answers in bounded time.
    pub ready: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync>,
}

impl Probe {
    async fn health(&self) -> Health {
        Health { ok: (self.ready)().await, ..self.known }
    }
}

/// Adds the step.
#[derive(Clone)]
pub struct HealthLayer {
    probe: Probe,
}

impl HealthLayer {
    /// The step.
    #[must_use]
    pub const fn new(probe: Probe) -> Self {
        Self { probe }
    }
}

impl<S> Layer<S> for HealthLayer {
    type Service = Healthy<S>;

    fn layer(&self, inner: S) -> Healthy<S> {
        Healthy { inner, probe: self.probe.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Healthy<S> {
    inner: S,
    probe: Probe,
}

impl<S, B> Service<Request<B>> for Healthy<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if Visit::of(&request).and_then(|visit| visit.route) != Some(Route::Health) {
            return Passage::on(self.inner.call(request));
        }
        let (probe, head) = (self.probe.clone(), request.method() == Method::HEAD);
        Passage::stopped(Box::pin(async move { answer(probe.health().await, head) }))
    }
}

fn answer(health: Health, head: bool) -> Answered {
    let mut response = json(serde_json::to_string(&health).unwrap_or_default(), head);
    *response.status_mut() = if health.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::trial::{request, text, through};

    async fn asked(method: &str, ok: bool) -> Response<Body> {
        let known = Health { ok: true, version: "1.2.3", tools: 7, public: false, read_only: false };
        let ready: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync> = Arc::new(move || Box::pin(std::future::ready(ok)));
        let mut request = request().method(method).body(Body::empty()).unwrap();
        request.extensions_mut().get_mut::<Visit>().unwrap().route = Some(Route::Health);
        through(&HealthLayer::new(Probe { known, ready }), request).await
    }

    #[tokio::test]
    async fn health_is_200_or_503_and_head_has_no_body() {
        let good = asked("GET", true).await;
        assert_eq!(good.status(), 200);
        assert_eq!(text(good).await, r#"{"ok":true,"version":"1.2.3","tools":7,"public":false}"#);
        let head = asked("HEAD", true).await;
        assert_eq!((head.status().as_u16(), &head.headers()["content-length"]), (200, &"54".parse().unwrap()));
        assert_eq!(text(head).await, "");
        let bad = asked("GET", false).await;
        assert_eq!(bad.status(), 503);
        assert!(text(bad).await.starts_with(r#"{"ok":false,"#));
    }
}
