//! Every request gets an id of ours.
//!
//! Promises: the answer carries it (`X-Request-Id`), refusals and panics included, and so does every line of the log about it.
//! Does not: believe an id that came in: a client could make two requests look like one.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{HeaderName, HeaderValue, Request, Response};
use tower::{Layer, Service};

use super::{
    refusal::Barred,
    step::{Finish, Finished, Passage},
    visit::Visit,
};
use crate::clock;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Adds the step.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestIdLayer;

impl<S> Layer<S> for RequestIdLayer {
    type Service = RequestId<S>;

    fn layer(&self, inner: S) -> RequestId<S> {
        RequestId { inner }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct RequestId<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for RequestId<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Finished<Passage<S::Future>, Stamp>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let id: Arc<str> = Arc::from(clock::request_id());
        request.headers_mut().remove(X_REQUEST_ID);
        let Some(visit) = request.extensions_mut().get_mut::<Visit>() else {
            // The accept loop says who is at the other end; without that no limit could be counted.
            tracing::error!(requestId = &*id, "a request came without its connection's address");
            return Finished::new(Passage::answered(Barred::Internal.response(&id)), Stamp(id));
        };
        visit.request_id = id.clone();
        Finished::new(Passage::on(self.inner.call(request)), Stamp(id))
    }
}

/// Puts the id on the answer.
pub struct Stamp(Arc<str>);

impl Finish for Stamp {
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(X_REQUEST_ID, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::trial::{request, through};

    #[tokio::test]
    async fn every_answer_has_an_id_of_ours() {
        let sent = || request().header("x-request-id", "theirs").body(Body::empty()).unwrap();
        let (one, two) = (through(&RequestIdLayer, sent()).await, through(&RequestIdLayer, sent()).await);
        let id = |response: &Response<Body>| response.headers()["x-request-id"].to_str().unwrap().to_owned();
        assert!(id(&one) != id(&two) && id(&one) != "theirs");
        assert_eq!(*one.extensions().get::<Visit>().unwrap().request_id, *id(&one));
        assert!(!one.extensions().get::<http::HeaderMap>().unwrap().contains_key("x-request-id"));
    }

    #[tokio::test]
    async fn a_request_from_nowhere_is_not_let_in() {
        let response = through(&RequestIdLayer, Request::new(Body::empty())).await;
        assert!(response.status() == 500 && response.headers().contains_key("x-request-id"));
    }
}
