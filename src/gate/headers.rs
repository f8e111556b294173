//! The headers that every answer carries.
//!
//! Promises: no guess at the type, no copy kept on the way, no frame, no referrer, no name or version of the server.
//! Does not: add CORS headers (`origin`), nor `Strict-Transport-Security`, which belongs to whoever ends TLS.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{
    HeaderName, HeaderValue, Request, Response,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SERVER, X_CONTENT_TYPE_OPTIONS},
};
use tower::{Layer, Service};

use super::step::{Finish, Finished};

/// Each header and its value. Nothing that we answer is a page: the policy lets a browser do nothing with it.
const HEADERS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
];

/// Adds the step.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadersLayer;

impl<S> Layer<S> for HeadersLayer {
    type Service = Headers<S>;

    fn layer(&self, inner: S) -> Headers<S> {
        Headers { inner }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Headers<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Headers<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Finished<S::Future, Harden>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Finished::new(self.inner.call(request), Harden)
    }
}

/// Puts the headers on an answer.
pub struct Harden;

impl Finish for Harden {
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        harden(&mut response);
        response
    }
}

/// Puts the headers on `response`, over whatever it said.
pub fn harden(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.remove(SERVER);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_hardened_whatever_it_said() {
        let response = Response::builder().header("server", "axum").header("cache-control", "public").body(Body::empty()).unwrap();
        let response = Harden.finish(response);
        let headers = response.headers();
        assert!(!headers.contains_key("server"));
        assert_eq!(
            (&headers["cache-control"], &headers["x-content-type-options"]),
            (&"no-store".parse().unwrap(), &"nosniff".parse().unwrap())
        );
    }
}
