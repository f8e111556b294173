//! Ends the routes where logs are sent: `POST /v1/runs`, and `PUT`, `GET` and `HEAD` of `/v1/uploads/{sha256}`.
//!
//! Promises: before a byte of the body is read, the caller may write runs (decision 44), the body comes as it is, and what it says of its
//! length is allowed; a refused sender can read why. Each request leaves a line in the log, one whose client leaves too.
//! Does not: know stores, files or formats: whoever implements [`Ingest`] does.

mod refused;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;
use tower::{Layer, Service};

pub use self::refused::Refused;
use super::{
    body::media,
    refusal::Barred,
    step::{Answered, Passage, close_after, drained, json, refuse},
    visit::{Route, Visit},
};
use crate::{
    auth::{Caller, Role},
    clock,
};

/// The scope that sending asks for.
const SCOPE: &str = "runs:write";

/// What is known of a request before its body is read.
#[derive(Debug, Clone)]
pub struct Head {
    /// How it is asked.
    pub method: Method,
    /// The path, which is one of the routes'.
    pub path: String,
    /// What stands behind the path, as it came.
    pub query: String,
    /// Whether the body says that it is JSON.
    pub json: bool,
    /// What the body says of its length.
    pub length: Option<u64>,
    /// Who sends it: a member or more, with `runs:write`.
    pub caller: Caller,
}

/// What a request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The answer, JSON.
    pub json: String,
    /// Bytes of the log that are there, where that was asked or changed.
    pub held: Option<u64>,
}

/// What a desk gives back: within the deadline of these routes.
pub type Taking<'a> = Pin<Box<dyn Future<Output = Result<Taken, Refused>> + Send + 'a>>;

/// Takes logs.
pub trait Ingest: Send + Sync {
    /// Bytes that the body of a request may have.
    fn bytes_max(&self, route: Route) -> u64;

    /// Answers a request, whose body it reads as far as it wants to.
    fn take<'a>(&'a self, head: Head, body: &'a mut Counted) -> Taking<'a>;
}

/// A body that counts what was read of it.
pub struct Counted {
    body: Body,
    read: u64,
}

impl Counted {
    /// Bytes read so far.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.read
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.read = self.read.saturating_add(frame.data_ref().map_or(0, Bytes::len) as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Adds the step.
#[derive(Clone)]
pub struct IngestLayer {
    desk: Option<Arc<dyn Ingest>>,
}

impl IngestLayer {
    /// The step; without a desk the routes are not there.
    #[must_use]
    pub const fn new(desk: Option<Arc<dyn Ingest>>) -> Self {
        Self { desk }
    }
}

impl<S> Layer<S> for IngestLayer {
    type Service = Ingesting<S>;

    fn layer(&self, inner: S) -> Ingesting<S> {
        Ingesting { inner, desk: self.desk.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Ingesting<S> {
    inner: S,
    desk: Option<Arc<dyn Ingest>>,
}

impl<S, B> Service<Request<B>> for Ingesting<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(visit) = Visit::of(&request).filter(|visit| visit.route.is_some_and(Route::is_push)) else {
            return Passage::on(self.inner.call(request));
        };
        let mut line = Line::begin(visit, request.method());
        match (self.desk.clone(), head(&request, self.desk.as_deref())) {
            (Some(desk), Ok(head)) => Passage::stopped(Box::pin(answered(desk, head, request, line))),
            (_, refused) => {
                line.outcome = refused.as_ref().err().map_or("internal", Refused::reason);
                let barred = refused.err().map_or(Barred::NotFound, Barred::Push);
                Passage::stopped(refuse(request, barred))
            }
        }
    }
}

/// What can be said before the first byte.
fn head<B>(request: &Request<B>, desk: Option<&dyn Ingest>) -> Result<Head, Refused> {
    let visit = Visit::of(request).ok_or(Refused::Internal)?;
    let (Some(route), Some(caller), Some(desk)) = (visit.route, visit.caller.clone(), desk) else { return Err(Refused::Internal) };
    may(&caller)?;
    let headers = request.headers();
    if !media::is_plain(headers) {
        return Err(Refused::Encoded);
    }
    let (length, max) = (declared(headers), desk.bytes_max(route));
    if length.is_some_and(|length| length > max) {
        return Err(Refused::TooLarge { max });
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    Ok(Head { method, path, query: request.uri().query().unwrap_or_default().to_owned(), json: media::is_json(headers), length, caller })
}

/// A role that is too low says so before a scope does: no other scope would help.
fn may(caller: &Caller) -> Result<(), Refused> {
    if caller.role() < Role::Member {
        return Err(Refused::Role(Role::Member));
    }
    if caller.holds(SCOPE) { Ok(()) } else { Err(Refused::Scope(SCOPE)) }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

async fn answered<B>(desk: Arc<dyn Ingest>, head: Head, request: Request<B>, line: Line) -> Answered
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    // The whole of it: what is dropped with this future writes it.
    let mut line = line;
    let waits = request.headers().contains_key(header::EXPECT);
    let bare = head.method == Method::HEAD;
    let mut body = Counted { body: plain(request.into_body()), read: 0 };
    let taken = desk.take(head, &mut body).await;
    line.bytes = body.read();
    match taken {
        Ok(taken) => {
            line.outcome = "ok";
            Ok(answer(taken, bare))
        }
        Err(refused) => {
            line.outcome = refused.reason();
            if refused == Refused::Internal {
                tracing::error!(requestId = &*line.request_id, "what was sent could not be taken; the line before says why");
            }
            // A client that waits for leave has sent nothing; reading would give it.
            let ended = body.is_end_stream() || !(waits && body.read() == 0) && drained(&mut body).await;
            let mut response = Barred::Push(refused).response(&line.request_id);
            if !ended {
                close_after(&mut response);
            }
            if bare {
                *response.body_mut() = Body::empty();
            }
            Ok(response)
        }
    }
}

/// A body of any kind as bytes.
fn plain<B>(body: B) -> Body
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    use http_body_util::BodyExt as _;
    let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
    // Hyper's words are for nobody: that it broke is all there is to know.
    let broken = |_| std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    Body::new(body.map_frame(move |frame| frame.map_data(bytes)).map_err(broken))
}

fn answer(taken: Taken, bare: bool) -> Response<Body> {
    let mut response = json(taken.json, bare);
    if let Some(held) = taken.held {
        response.headers_mut().insert("upload-offset", HeaderValue::from(held));
    }
    response
}

/// The line that a request leaves, when it is dropped.
struct Line {
    request_id: Arc<str>,
    principal: String,
    method: &'static str,
    outcome: &'static str,
    bytes: u64,
    began: Instant,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    ts: String,
    event: &'static str,
    request_id: &'a str,
    what: &'static str,
    outcome: &'static str,
    bytes: u64,
    duration_ms: u64,
    principal: &'a str,
}

impl Line {
    fn begin(visit: &Visit, method: &Method) -> Self {
        let method = match (visit.route, method) {
            (Some(Route::Runs), _) => "import",
            (_, &Method::PUT) => "part",
            _ => "look",
        };
        let principal = visit.caller.as_ref().map_or("anonymous", Caller::principal).to_owned();
        Self { request_id: visit.request_id.clone(), principal, method, outcome: "cancelled", bytes: 0, began: clock::monotonic() }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        crate::telemetry::line(&Written {
            ts: clock::now().rfc3339(),
            event: "push",
            request_id: &self.request_id,
            what: self.method,
            outcome: self.outcome,
            bytes: self.bytes,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            principal: &self.principal,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::gate::trial::{Ends, pieces, request, text, through};

    /// Takes anything of at most ten bytes, and says what came.
    struct Shows;

    impl Ingest for Shows {
        fn bytes_max(&self, _: Route) -> u64 {
            10
        }

        fn take<'a>(&'a self, head: Head, body: &'a mut Counted) -> Taking<'a> {
            Box::pin(async move {
                if head.query == "refused" {
                    return Err(Refused::Offset { held: 7 });
                }
                drained(&mut *body).await;
                Ok(Taken { json: format!("\"{} {}\"", head.path, body.read()), held: Some(3) })
            })
        }
    }

    async fn asked(role: Role, scopes: &[&str], headers: &[(&str, &str)], uri: &str) -> Response<Body> {
        let asking = headers.iter().fold(request().method("PUT").uri(uri), |asking, (name, value)| asking.header(*name, *value));
        let mut asking = asking.body(pieces(&["12345"], Ends::Well)).unwrap();
        let visit = asking.extensions_mut().get_mut::<Visit>().unwrap();
        (visit.route, visit.caller) = (Some(Route::Upload), Some(Caller::scoped("ci", role, scopes)));
        through(&IngestLayer::new(Some(Arc::new(Shows))), asking).await
    }

    #[tokio::test]
    async fn what_may_be_sent_is_taken_and_counted() {
        let response = asked(Role::Member, &["runs:write"], &[], "/v1/uploads/x").await;
        assert_eq!((response.status().as_u16(), &response.headers()["upload-offset"]), (200, &"3".parse().unwrap()));
        assert_eq!(text(response).await, "\"/v1/uploads/x 5\"");
    }

    #[tokio::test]
    async fn who_may_not_is_told_what_is_missing() {
        let response = asked(Role::Member, &["eval:read"], &[], "/v1/uploads/x").await;
        assert_eq!(response.status(), 403);
        assert_eq!(response.headers()["www-authenticate"], "Bearer error=\"insufficient_scope\", scope=\"runs:write\"");
        let body: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!((body["error"]["data"]["reason"].as_str(), body["error"]["code"].as_i64()), (Some("insufficient_scope"), Some(-32000)));
        assert!(body["error"]["message"].as_str().unwrap().contains("runs:write"));
        let response = asked(Role::Viewer, &["*"], &[], "/v1/uploads/x").await;
        assert_eq!((response.status().as_u16(), response.headers().get("www-authenticate")), (403, None));
        assert!(text(response).await.contains("needs role member"));
    }

    #[tokio::test]
    async fn what_the_head_says_is_held_against_the_rules_before_the_body() {
        let all = &["*"];
        for (name, value, status) in [("content-encoding", "gzip", 415), ("content-length", "11", 413)] {
            assert_eq!(asked(Role::Owner, all, &[(name, value)], "/v1/uploads/x").await.status(), status, "{name}");
        }
        let response = asked(Role::Owner, all, &[], "/v1/uploads/x?refused").await;
        assert_eq!(response.status(), 409);
        let body: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(body["error"]["data"]["offset"], 7);
    }

    #[tokio::test]
    async fn other_routes_go_on() {
        let mut asking = request().body(pieces(&[], Ends::Well)).unwrap();
        asking.extensions_mut().get_mut::<Visit>().unwrap().route = Some(Route::Mcp(0));
        assert_eq!(through(&IngestLayer::new(None), asking).await.status(), 200);
    }
}
