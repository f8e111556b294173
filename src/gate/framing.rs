//! How long a request's body is must be said once and in one way.
//!
//! Two servers that disagree about where a body ends can be made to disagree about whose request follows (request smuggling): what is
//! doubtful is refused with 400 and the connection closed, though hyper would make something of it.
//!
//! Promises: a request that passes has at most one Content-Length line and at most one Transfer-Encoding line that says `chunked`, and
//! not both.
//! Does not: see what hyper settles before: with both headers it drops the length, serves the chunked body and closes the connection
//! after; the same length twice it takes once; different lengths, an encoding that does not end in `chunked`, or one in HTTP/1.0 it
//! refuses itself.

use std::task::{Context, Poll};

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tower::{Layer, Service};

use super::{BoxFuture, refusal::Barred, visit::Visit};

/// What is wrong with the framing that `headers` announce.
#[must_use]
pub fn barred(headers: &HeaderMap) -> Option<Barred> {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let (encoding, length) = (encodings.next(), lengths.next());
    let message = if encodings.next().is_some() || lengths.next().is_some() {
        "the length of the body is said more than once"
    } else if encoding.is_some() && length.is_some() {
        "Content-Length and Transfer-Encoding exclude each other"
    } else if encoding.is_some_and(|encoding| !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")) {
        "the only Transfer-Encoding taken is chunked"
    } else {
        return None;
    };
    Some(Barred::Malformed { code: -32600, message: message.to_owned(), data: None, id: None })
}

/// Adds the step.
#[derive(Debug, Clone, Copy)]
pub struct FramingLayer;

impl<S> Layer<S> for FramingLayer {
    type Service = Framing<S>;

    fn layer(&self, inner: S) -> Framing<S> {
        Framing { inner }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Framing<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Framing<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(barred) = barred(request.headers()) else { return Box::pin(self.inner.call(request)) };
        let mut response = barred.response(request.extensions().get::<Visit>().map_or("", |visit| &visit.request_id));
        // What follows on this connection may not be what it seems.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        Box::pin(std::future::ready(Ok(response)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(lines: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        barred(&headers).is_some()
    }

    #[test]
    fn one_way_to_say_the_length_passes() {
        for lines in [&[][..], &[("content-length", "3")], &[("transfer-encoding", "chunked")], &[("transfer-encoding", " Chunked ")]] {
            assert!(!refused(lines), "{lines:?}");
        }
    }

    #[test]
    fn doubt_is_refused() {
        for lines in [
            &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")][..],
            &[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")],
            &[("transfer-encoding", "gzip, chunked")],
            &[("transfer-encoding", "chunked, chunked")],
            &[("transfer-encoding", "identity")],
            &[("transfer-encoding", "")],
            &[("transfer-encoding", "chunked"), ("content-length", "3")],
            &[("content-length", "3"), ("content-length", "3")],
        ] {
            assert!(refused(lines), "{lines:?}");
        }
    }
}
