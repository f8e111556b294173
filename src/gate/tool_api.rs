//! Ends the tool API's routes (S-tenant): `GET /api/mcp/tools` before a body is waited for, `POST /api/mcp/call` once its body is whole.
//!
//! Promises: both stand behind every step of the door that stands before MCP's own answers; a call goes down the one list of calls; each refusal of
//! that list has its kind here.
//! Does not: know tools, or the forms of answers: whoever implements [`ToolApi`] does.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body as HttpBody;
use tower::{Layer, Service};

use super::{
    BoxFuture, Lacks, Refusal,
    refusal::{Barred, Uncalled, Why},
    step::{Passage, json, refuse},
    visit::{Route, Visit},
};
use crate::tools::ToolError;

/// A call as it was posted.
#[derive(Debug, Clone)]
pub struct Posted {
    /// What is known of the request.
    pub visit: Visit,
    /// What stands behind the path, as it came.
    pub query: String,
    /// The header `Idempotency-Key`, where there is one.
    pub idempotency_key: Option<String>,
    /// The body, whole.
    pub body: Bytes,
}

/// Answers the tool API.
pub trait ToolApi: Send + Sync {
    /// The list of tools that this visitor is shown, as JSON.
    ///
    /// # Errors
    /// Why there is none for it.
    fn list(&self, visit: &Visit) -> Result<String, Barred>;

    /// The result of a call, as JSON; else why there is none.
    fn call(&self, posted: Posted) -> BoxFuture<Result<String, Barred>>;
}

/// Adds the step that ends the list.
#[derive(Clone)]
pub struct ToolListLayer {
    desk: Option<Arc<dyn ToolApi>>,
}

impl ToolListLayer {
    /// The step; without a desk the route is not there.
    #[must_use]
    pub const fn new(desk: Option<Arc<dyn ToolApi>>) -> Self {
        Self { desk }
    }
}

impl<S> Layer<S> for ToolListLayer {
    type Service = ToolList<S>;

    fn layer(&self, inner: S) -> ToolList<S> {
        ToolList { inner, desk: self.desk.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct ToolList<S> {
    inner: S,
    desk: Option<Arc<dyn ToolApi>>,
}

impl<S, B> Service<Request<B>> for ToolList<S>
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
        let listed = match (Visit::of(&request), &self.desk) {
            (Some(visit), Some(desk)) if visit.route == Some(Route::Tools) => desk.list(visit),
            _ => return Passage::on(self.inner.call(request)),
        };
        match listed {
            Ok(list) => Passage::answered(json(list, request.method() == Method::HEAD)),
            Err(barred) => Passage::stopped(refuse(request, barred)),
        }
    }
}

/// Adds the step that ends calls.
#[derive(Clone)]
pub struct ToolCallLayer {
    desk: Option<Arc<dyn ToolApi>>,
}

impl ToolCallLayer {
    /// The step; without a desk the route is not there.
    #[must_use]
    pub const fn new(desk: Option<Arc<dyn ToolApi>>) -> Self {
        Self { desk }
    }
}

impl<S> Layer<S> for ToolCallLayer {
    type Service = ToolCall<S>;

    fn layer(&self, inner: S) -> ToolCall<S> {
        ToolCall { inner, desk: self.desk.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct ToolCall<S> {
    inner: S,
    desk: Option<Arc<dyn ToolApi>>,
}

impl<S> Service<Request<Bytes>> for ToolCall<S>
where
    S: Service<Request<Bytes>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (visit, desk) = match (Visit::of(&request), self.desk.clone()) {
            (Some(visit), Some(desk)) if visit.route == Some(Route::Call) => (visit.clone(), desk),
            _ => return Passage::on(self.inner.call(request)),
        };
        let request_id = visit.request_id.clone();
        let posted = match posted(visit, request) {
            Ok(posted) => posted,
            Err(barred) => return Passage::answered(barred.response(&request_id)),
        };
        Passage::stopped(Box::pin(async move {
            let answer = desk.call(posted).await;
            Ok(answer.map_or_else(|barred| barred.response(&request_id), |text| json(text, false)))
        }))
    }
}

fn posted(visit: Visit, request: Request<Bytes>) -> Result<Posted, Barred> {
    let mut keys = request.headers().get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => None,
        (Some(key), None) => Some(key.to_str().map_err(|_| wrong("header Idempotency-Key: give plain letters"))?.to_owned()),
        (Some(_), Some(_)) => return Err(wrong("header Idempotency-Key: it stands twice")),
    };
    let query = request.uri().query().unwrap_or_default().to_owned();
    Ok(Posted { visit, query, idempotency_key: key, body: request.into_body() })
}

/// The request is not as it should be.
#[must_use]
pub fn wrong(message: impl Into<String>) -> Barred {
    uncalled(Why::Wrong, message.into(), None)
}

const fn uncalled(why: Why, message: String, retry_after_s: Option<u64>) -> Barred {
    Barred::Uncalled(Uncalled { why, message, retry_after_s })
}

/// The kind of answer that a refusal of the call list comes to.
#[must_use]
pub fn barred(refusal: &Refusal) -> Barred {
    let message = refusal.to_string();
    match refusal {
        Refusal::Unauthenticated => Barred::Unauthenticated { sent: false },
        Refusal::Denied { lacks, .. } => {
            let scope = if let Lacks::Scopes { needed, .. } = lacks { Some(needed.join(" ")) } else { None };
            Barred::Denied { message, scope }
        }
        Refusal::Closed { .. } => Barred::Denied { message, scope: None },
        Refusal::Rate { wait_s, .. } => uncalled(Why::Rate, message, Some(*wait_s)),
        Refusal::CallerBusy { .. } => uncalled(Why::Rate, message, Some(1)),
        Refusal::Busy { waited_s, .. } => uncalled(Why::Busy, message, Some(*waited_s)),
        Refusal::Total { wait_s, .. } => uncalled(Why::Busy, message, Some(*wait_s)),
        Refusal::Timeout { .. } | Refusal::Undecided { .. } | Refusal::Left => uncalled(Why::Timeout, message, None),
        Refusal::Panicked(_) => Barred::Internal,
        Refusal::Tool(error) if error.internal() => Barred::Internal,
        Refusal::Tool(ToolError::NotFound(_) | ToolError::Reference(_)) => uncalled(Why::NotFound, message, None),
        Refusal::Unknown | Refusal::Tool(_) => uncalled(Why::Wrong, message, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::Role,
        gate::trial::{request, text, through},
    };

    /// Shows what it got.
    struct Shows;

    impl ToolApi for Shows {
        fn list(&self, visit: &Visit) -> Result<String, Barred> {
            Ok(format!("\"list {}\"", visit.request_id))
        }

        fn call(&self, posted: Posted) -> BoxFuture<Result<String, Barred>> {
            Box::pin(async move {
                let body = String::from_utf8(posted.body.to_vec()).unwrap();
                if body == "no" { Err(wrong("no")) } else { Ok(format!("{body} {} {:?}", posted.query, posted.idempotency_key)) }
            })
        }
    }

    fn asking(route: Route, method: &str, keys: &[&str], body: &'static str) -> Request<Bytes> {
        let asking = keys.iter().fold(request().method(method).uri("/x?a=b"), |asking, key| asking.header("idempotency-key", *key));
        let mut asking = asking.body(Bytes::from_static(body.as_bytes())).unwrap();
        asking.extensions_mut().get_mut::<Visit>().unwrap().route = Some(route);
        asking
    }

    #[tokio::test]
    async fn each_step_ends_its_route_and_lets_the_others_on() {
        let desk: Option<Arc<dyn ToolApi>> = Some(Arc::new(Shows));
        let (list, call) = (ToolListLayer::new(desk.clone()), ToolCallLayer::new(desk));
        let empty = |route, method| asking(route, method, &[], "").map(|_| Body::empty());
        assert_eq!(text(through(&list, empty(Route::Tools, "GET")).await).await, "\"list r1\"");
        let head = through(&list, empty(Route::Tools, "HEAD")).await;
        assert_eq!((head.headers()["content-length"].to_str().unwrap().to_owned(), text(head).await), ("9".to_owned(), String::new()));
        assert_eq!(text(through(&list, empty(Route::Call, "POST")).await).await, "shown");
        assert_eq!(text(through(&ToolListLayer::new(None), empty(Route::Tools, "GET")).await).await, "shown");
        let posted = |keys: &[&str], body| through(&call, asking(Route::Call, "POST", keys, body));
        assert_eq!(text(posted(&["k"], "x").await).await, "x a=b Some(\"k\")");
        assert_eq!((posted(&[], "no").await.status().as_u16(), posted(&["k", "k"], "x").await.status().as_u16()), (400, 400));
        assert_eq!(text(through(&call, asking(Route::Mcp(0), "POST", &[], "x")).await).await, "shown");
    }

    #[test]
    fn every_refusal_of_a_call_has_its_status() {
        let tool = |error| Refusal::Tool(error);
        for (refusal, status) in [
            (Refusal::Unknown, 400),
            (Refusal::Unauthenticated, 401),
            (Refusal::Denied { tool: "t", lacks: Lacks::Role(Role::Member) }, 403),
            (Refusal::Closed { tool: "t" }, 403),
            (Refusal::Rate { per_minute: 1, wait_s: 2 }, 429),
            (Refusal::CallerBusy { tool: "t", max: 1, heavy: false }, 429),
            (Refusal::Busy { slots: 1, waited_s: 2 }, 503),
            (Refusal::Total { per_minute: 1, wait_s: 2 }, 503),
            (Refusal::Timeout { tool: "t", seconds: 1 }, 504),
            (Refusal::Panicked("r".into()), 500),
            (tool(ToolError::Internal("x".into())), 500),
            (tool(ToolError::NotFound("x".into())), 404),
            (tool(ToolError::Argument("x".into())), 400),
            (tool(ToolError::Said("x".into())), 400),
        ] {
            assert_eq!(barred(&refusal).status().as_u16(), status, "{refusal:?}");
        }
        let lacks = Lacks::Scopes { missing: "eval:write".into(), needed: vec!["eval:write"] };
        let denied = barred(&Refusal::Denied { tool: "t", lacks }).response("r");
        assert_eq!(denied.headers()["www-authenticate"], "Bearer error=\"insufficient_scope\", scope=\"eval:write\"");
    }
}
