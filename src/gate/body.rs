//! The body, whole, in bounds.
//!
//! Promises: only JSON in UTF-8 and uncompressed (415), whose sender takes the answer's form (406), at most so many bytes (413, by what it
//! says of itself at once, by count while it comes), all of it within the deadline (408). A refused client can read why: a bounded part of
//! what it still sends is read first. What follows gets plain bytes.
//! Does not: look into the bytes.

pub mod media;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request, Response, header};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use tower::{Layer, Service};

use self::media::Framing;
use super::{
    BoxFuture,
    message::{Era, MODERN},
    refusal::Barred,
    step::{Answered, Passage, close_after, drained, refuse},
    visit::{Route, Visit},
};

/// The bounds of a body.
#[derive(Debug, Clone)]
pub struct BodyRules {
    /// Bytes taken at most (`--max-body`).
    pub bytes_max: usize,
    /// All of it is due within this.
    pub within: Duration,
    /// For each endpoint, whether its legacy answers are event streams.
    pub legacy_streams: Arc<[bool]>,
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct BodyLayer {
    rules: BodyRules,
}

impl BodyLayer {
    /// The step.
    #[must_use]
    pub const fn new(rules: BodyRules) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for BodyLayer {
    type Service = WholeBody<S>;

    fn layer(&self, inner: S) -> WholeBody<S> {
        WholeBody { inner, rules: self.rules.clone() }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct WholeBody<S> {
    inner: S,
    rules: BodyRules,
}

impl<S, B> Service<Request<B>> for WholeBody<S>
where
    S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<BoxFuture<Answered>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Err(barred) = self.rules.head(&request) {
            return Passage::stopped(refuse(request, barred));
        }
        // The service that was polled ready is the one to call (tower's contract).
        let spare = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, spare);
        let (bytes_max, within) = (self.rules.bytes_max, self.rules.within);
        Passage::on(Box::pin(async move {
            let (head, body) = request.into_parts();
            match whole(body, bytes_max, within).await {
                Ok(body) => inner.call(Request::from_parts(head, body)).await,
                Err(barred) => {
                    let request_id = head.extensions.get::<Visit>().map_or("", |visit| &visit.request_id);
                    let mut response = barred.response(request_id);
                    close_after(&mut response);
                    Ok(response)
                }
            }
        }))
    }
}

impl BodyRules {
    /// What can be said before the first byte.
    fn head<B>(&self, request: &Request<B>) -> Result<(), Barred> {
        let headers = request.headers();
        if !media::is_json(headers) || !media::is_plain(headers) {
            return Err(Barred::MediaType);
        }
        if !media::accepts(headers, self.framing(request)) {
            return Err(Barred::NotAcceptable);
        }
        match declared(headers) {
            Some(length) if length > self.bytes_max as u64 => Err(Barred::TooLarge { max: self.bytes_max }),
            _ => Ok(()),
        }
    }

    /// How the answer will be framed. The era by the header alone: where the body says another, `decode` refuses it.
    fn framing<B>(&self, request: &Request<B>) -> Framing {
        let streams = match Visit::of(request).and_then(|visit| visit.route) {
            Some(Route::Mcp(index)) => self.legacy_streams.get(index).copied().unwrap_or(false),
            _ => false,
        };
        if streams && era(request.headers()) == Era::Legacy { Framing::EventStream } else { Framing::Json }
    }
}

fn era(headers: &HeaderMap) -> Era {
    let modern = headers.get("mcp-protocol-version").is_some_and(|version| version.as_bytes() == MODERN.as_bytes());
    if modern { Era::Modern } else { Era::Legacy }
}

/// What the request says of its length; one that is no number was refused by hyper.
fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Reads the body; where it is too long, throws a bounded rest of it away first.
async fn whole<B>(body: B, bytes_max: usize, within: Duration) -> Result<Bytes, Barred>
where
    B: HttpBody,
{
    let mut body = std::pin::pin!(body);
    let read = tokio::time::timeout(within, collected(body.as_mut(), bytes_max)).await.unwrap_or(Err(Barred::Timeout));
    if matches!(read, Err(Barred::TooLarge { .. })) {
        drained(body).await;
    }
    read
}

async fn collected<B>(mut body: std::pin::Pin<&mut B>, bytes_max: usize) -> Result<Bytes, Barred>
where
    B: HttpBody,
{
    let mut parts = BytesMut::new();
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        // The client left, or its chunks are malformed: hyper's words are for the log, not for whoever reads this.
        let Ok(frame) = frame else { return Err(unreadable()) };
        let Ok(mut data) = frame.into_data() else { continue };
        if first.len() + parts.len() + data.remaining() > bytes_max {
            return Err(Barred::TooLarge { max: bytes_max });
        }
        // Nearly every body comes as one piece, which is handed on as it is.
        if first.is_empty() && parts.is_empty() {
            first = data.copy_to_bytes(data.remaining());
        } else {
            parts.reserve(first.len() + data.remaining());
            parts.extend_from_slice(&std::mem::take(&mut first));
            parts.put(data);
        }
    }
    Ok(if parts.is_empty() { first } else { parts.freeze() })
}

fn unreadable() -> Barred {
    Barred::Malformed { code: -32700, message: "the body could not be read to its end".to_owned(), data: None, id: None }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::gate::trial::{Ends, pieces, request, through};

    fn layer(bytes_max: usize) -> BodyLayer {
        BodyLayer::new(BodyRules { bytes_max, within: Duration::from_millis(60), legacy_streams: Arc::new([false]) })
    }

    async fn sent<B>(headers: &[(&str, &str)], body: B) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Data: Send,
    {
        let json = request().header("content-type", "application/json");
        let request = headers.iter().fold(json, |request, (name, value)| request.header(*name, *value));
        through(&layer(8), request.body(body).unwrap()).await
    }

    fn got(response: &Response<Body>) -> Option<&Bytes> {
        response.extensions().get::<Bytes>()
    }

    #[tokio::test]
    async fn a_body_within_bounds_arrives_whole() {
        for parts in [&["12345678"][..], &["1234", "5678"], &["", "1", "", "2345678", ""]] {
            let response = sent(&[], pieces(parts, Ends::Well)).await;
            assert_eq!(got(&response).unwrap(), "12345678", "{parts:?}");
        }
        assert_eq!(got(&sent(&[], Body::empty()).await).unwrap(), "");
    }

    #[tokio::test]
    async fn one_byte_more_is_413_whatever_it_said_of_itself() {
        for parts in [&["123456789"][..], &["12345678", "9"], &["1234", "5678", "9"]] {
            let response = sent(&[], pieces(parts, Ends::Well)).await;
            assert_eq!((response.status(), &response.headers()["connection"]), (StatusCode::PAYLOAD_TOO_LARGE, &"close".parse().unwrap()));
        }
        assert_eq!(sent(&[("content-length", "9")], pieces(&["123456789"], Ends::Well)).await.status(), 413);
        assert_eq!(sent(&[("content-length", "18446744073709551615")], pieces(&[], Ends::Well)).await.status(), 413);
        // Waits for leave to send: nothing is read, so that none is given.
        let waits = [("content-length", "9"), ("expect", "100-continue")];
        let response = tokio::time::timeout(Duration::from_millis(500), sent(&waits, pieces(&["123456789"], Ends::Never))).await;
        assert_eq!(response.unwrap().status(), 413);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_408_and_one_that_breaks_is_400() {
        for parts in [&[][..], &["1234"]] {
            let response = sent(&[], pieces(parts, Ends::Never)).await;
            assert_eq!((response.status(), &response.headers()["connection"]), (StatusCode::REQUEST_TIMEOUT, &"close".parse().unwrap()));
        }
        assert_eq!(sent(&[], pieces(&["1234"], Ends::Badly)).await.status(), 400);
    }

    #[tokio::test]
    async fn what_is_no_json_is_not_read() {
        for (name, value) in [("content-encoding", "gzip"), ("content-type", "text/plain")] {
            assert_eq!(sent(&[(name, value)], pieces(&["{}"], Ends::Well)).await.status(), 415, "{name}: {value}");
        }
        let untyped = request().body(pieces(&["{}"], Ends::Well)).unwrap();
        assert_eq!(through(&layer(8), untyped).await.status(), 415);
        assert_eq!(sent(&[("accept", "text/html")], pieces(&["{}"], Ends::Well)).await.status(), 406);
    }

    #[tokio::test]
    async fn what_the_answer_will_be_is_the_endpoints_and_the_eras_matter() {
        let streams = BodyLayer::new(BodyRules { legacy_streams: Arc::new([true]), ..layer(8).rules });
        let rows = [("application/json", "", 406), ("text/event-stream", "", 200), ("application/json", "2026-07-28", 200)];
        for (accept, version, status) in rows.into_iter().chain([("text/event-stream", "2026-07-28", 406), ("*/*", "2025-11-25", 200)]) {
            let request = request().header("content-type", "application/json").header("accept", accept);
            let request = request.header("mcp-protocol-version", version).body(Body::from("{}")).unwrap();
            assert_eq!(through(&streams, request).await.status(), status, "{accept} {version}");
        }
    }
}
