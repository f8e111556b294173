//! A panic in what follows is an answer with the request id, not a torn connection.
//!
//! Promises: the answer says nothing of the panic; the log has it under the id, and the hooks are told.
//! Does not: catch one in the body of an answer that has begun (the connection ends there), nor in a spawned task.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::{
    headers,
    refusal::Barred,
    step::{Answered, Passage, close_after},
    visit::Visit,
};
use crate::{
    clock,
    telemetry::hook::{Fault, Hooks},
};

/// Adds the step.
#[derive(Clone, Default)]
pub struct PanicsLayer {
    hooks: Hooks,
}

impl PanicsLayer {
    /// The step that tells `hooks`.
    #[must_use]
    pub const fn new(hooks: Hooks) -> Self {
        Self { hooks }
    }
}

impl<S> Layer<S> for PanicsLayer {
    type Service = Panics<S>;

    fn layer(&self, inner: S) -> Panics<S> {
        Panics { inner, hooks: self.hooks.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Panics<S> {
    inner: S,
    hooks: Hooks,
}

impl<S, B> Service<Request<B>> for Panics<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Caught<Passage<S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request_id = Visit::id_of(&request);
        let inner = match catch_unwind(AssertUnwindSafe(|| self.inner.call(request))) {
            Ok(inner) => Passage::on(inner),
            Err(_) => Passage::answered(answer(&request_id, &self.hooks)),
        };
        Caught { inner, request_id, hooks: self.hooks.clone() }
    }
}

pin_project! {
    /// What follows, its panics caught.
    pub struct Caught<F> {
        #[pin]
        inner: F,
        request_id: Arc<str>,
        hooks: Hooks,
    }
}

impl<F: Future<Output = Answered>> Future for Caught<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let this = self.project();
        // A future that panicked is not polled again: this one is ready then.
        catch_unwind(AssertUnwindSafe(|| this.inner.poll(context))).unwrap_or_else(|_| Poll::Ready(Ok(answer(this.request_id, this.hooks))))
    }
}

fn answer(request_id: &str, hooks: &Hooks) -> Response<Body> {
    tracing::error!(requestId = request_id, "a request panicked");
    hooks.error(&Fault {
        at: clock::now(),
        request_id: request_id.to_owned(),
        tool: None,
        kind: "door",
        text: "a request panicked".to_owned(),
    });
    let mut response = Barred::Internal.response(request_id);
    // The step that adds these stands inside this one.
    headers::harden(&mut response);
    close_after(&mut response);
    response
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::gate::trial::{request, text};

    #[derive(Default)]
    struct Told(std::sync::Mutex<Vec<Fault>>);

    impl crate::telemetry::hook::Hook for Arc<Told> {
        fn error(&self, fault: &Fault) {
            self.0.lock().unwrap().push(fault.clone());
        }
    }

    #[tokio::test]
    async fn a_panic_before_or_in_the_answer_is_an_answer_with_the_id() {
        async fn late(_: Request<Body>) -> Answered {
            tokio::task::yield_now().await;
            panic!("/etc/passwd at line 3")
        }
        let soon = |_: Request<Body>| -> std::future::Ready<Answered> { panic!("/etc/passwd at line 3") };
        let request = || request().body(Body::empty()).unwrap();
        let told = Arc::new(Told::default());
        let layer = PanicsLayer::new(Hooks::new(vec![Arc::new(told.clone())]));
        let answers = [layer.layer(service_fn(late)).oneshot(request()).await, layer.layer(service_fn(soon)).oneshot(request()).await];
        for response in answers.map(Result::unwrap) {
            assert_eq!((response.status().as_u16(), &response.headers()["cache-control"]), (500, &"no-store".parse().unwrap()));
            let text = text(response).await;
            assert!(text.contains(r#""code":-32603"#) && text.contains(r#""requestId":"r1""#) && !text.contains("passwd"), "{text}");
        }
        let told = told.0.lock().unwrap();
        assert!(told.len() == 2 && told.iter().all(|fault| fault.request_id == "r1" && fault.kind == "door"), "{told:?}");
    }
}
