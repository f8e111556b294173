//! How long a request may take until its answer begins: the last net under all the others.
//!
//! Promises: body, slot and call have bounds of their own; this is their sum and a little (decision 81), so it is met only where one of
//! them failed. What runs is dropped, which cancels it.
//! Does not: bound the body of the answer; a stream may be longer.

use std::{
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use http::{Request, Response};
use tower::{Layer, Service};

use super::{
    BoxFuture,
    refusal::Barred,
    step::Answered,
    visit::{Route, Visit},
};

const MARGIN: Duration = Duration::from_secs(5);

/// The deadline of a request, computed from its parts' (decision 81).
#[must_use]
pub const fn computed(body: Duration, slot: Duration, call: Duration) -> Duration {
    body.saturating_add(slot).saturating_add(call).saturating_add(MARGIN)
}

/// Adds the step.
#[derive(Debug, Clone, Copy)]
pub struct HttpDeadlineLayer {
    after: Duration,
    pushes: Duration,
}

impl HttpDeadlineLayer {
    /// The step; `after` comes from [`computed`], `pushes` too: it holds where logs are sent.
    #[must_use]
    pub const fn new(after: Duration, pushes: Duration) -> Self {
        Self { after, pushes }
    }
}

impl<S> Layer<S> for HttpDeadlineLayer {
    type Service = HttpDeadline<S>;

    fn layer(&self, inner: S) -> HttpDeadline<S> {
        HttpDeadline { inner, layer: *self }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct HttpDeadline<S> {
    inner: S,
    layer: HttpDeadlineLayer,
}

impl<S, B> Service<Request<B>> for HttpDeadline<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Answered>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request_id = Visit::id_of(&request);
        let push = Visit::of(&request).and_then(|visit| visit.route).is_some_and(Route::is_push);
        let after = if push { self.layer.pushes } else { self.layer.after };
        let answer = tokio::time::timeout(after, self.inner.call(request));
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                tracing::error!(requestId = &*request_id, "a request met the last deadline; one before it failed");
                Ok(Barred::Deadline.response(&request_id))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::gate::trial::{request, text};

    #[tokio::test]
    async fn the_last_deadline_is_an_answer_and_drops_what_ran() {
        let (gone, dropped) = tokio::sync::oneshot::channel::<()>();
        let gone = std::sync::Arc::new(std::sync::Mutex::new(Some(gone)));
        let never = service_fn(move |_: Request<Body>| {
            let held = gone.lock().unwrap().take();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(Response::new(Body::empty()))
            }
        });
        let service = HttpDeadlineLayer::new(Duration::from_millis(20), Duration::from_secs(60)).layer(never);
        let response = service.oneshot(request().body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 504);
        assert!(text(response).await.contains("took too long"));
        assert!(dropped.await.is_err(), "its sender was dropped");
    }

    #[test]
    fn the_deadline_is_the_sum_of_its_parts() {
        let s = Duration::from_secs;
        assert_eq!(computed(s(10), s(30), s(300)), s(345));
    }
}
