//! In whose words a refusal is said: on the tool API's paths in its envelope, `{"ok":false,"error":{"code","message","requestId"}}`
//! (decision 72), elsewhere as it stands (JSON-RPC).
//!
//! Promises: status and headers stay (`Allow`, `WWW-Authenticate`, `Retry-After`); whatever refused, a panic included, is said so; every answer on
//! these paths is `private, no-store`.
//! Does not: refuse anything, or touch an answer that is none of a refusal.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use serde_json::json;
use tower::{Layer, Service};

use super::{
    refusal::{Sentence, tool_api_code},
    route::{CALL, TOOLS},
    step::{Finish, Finished},
    visit::Visit,
};

/// Adds the step.
#[derive(Debug, Clone, Copy)]
pub struct DialectLayer {
    on: bool,
}

impl DialectLayer {
    /// The step; off where the tool API is not served.
    #[must_use]
    pub const fn new(on: bool) -> Self {
        Self { on }
    }
}

impl<S> Layer<S> for DialectLayer {
    type Service = Dialect<S>;

    fn layer(&self, inner: S) -> Dialect<S> {
        Dialect { inner, on: self.on }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Dialect<S> {
    inner: S,
    on: bool,
}

impl<S, B> Service<Request<B>> for Dialect<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Finished<S::Future, Speak>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // By the path alone: what stands before the route step refuses too.
        let ours = self.on && matches!(request.uri().path(), TOOLS | CALL);
        let speak = Speak(ours.then(|| Visit::id_of(&request)));
        Finished::new(self.inner.call(request), speak)
    }
}

/// Says a refusal in the tool API's words; none leaves the answer as it is.
pub struct Speak(Option<Arc<str>>);

impl Finish for Speak {
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        let Some(request_id) = self.0 else { return response };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        let Some(Sentence(message)) = response.extensions().get() else { return response };
        let error = json!({"code": tool_api_code(response.status()), "message": &**message, "requestId": &*request_id});
        let body = json!({"ok": false, "error": error}).to_string();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(body);
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::gate::{
        refusal::{Barred, Uncalled, Why},
        trial::{request, text, through},
    };

    async fn said(on: bool, path: &str, barred: Barred) -> (u16, Option<String>, Value) {
        let refuses = service_fn(move |_: Request<Body>| {
            let response = barred.response("other");
            async move { Ok::<_, Infallible>(response) }
        });
        let response = DialectLayer::new(on).layer(refuses).oneshot(request().uri(path).body(Body::empty()).unwrap()).await.unwrap();
        let allow = response.headers().get("allow").map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), allow, serde_json::from_str(&text(response).await).unwrap())
    }

    #[tokio::test]
    async fn every_refusal_has_a_code_of_the_contract_on_these_paths() {
        let why = |why| Barred::Uncalled(Uncalled { why, message: "so".to_owned(), retry_after_s: None });
        for (barred, status, code) in [
            (Barred::Framing, 400, "VALIDATION_ERROR"),
            (Barred::Host, 421, "VALIDATION_ERROR"),
            (Barred::Origin, 403, "FORBIDDEN"),
            (Barred::NotFound, 404, "NOT_FOUND"),
            (Barred::Method("POST"), 405, "VALIDATION_ERROR"),
            (Barred::Overloaded, 503, "RATE_LIMITED"),
            (Barred::Rate { retry_after_s: 2 }, 429, "RATE_LIMITED"),
            (Barred::Unauthenticated { sent: true }, 401, "UNAUTHORIZED"),
            (Barred::MediaType, 415, "VALIDATION_ERROR"),
            (Barred::NotAcceptable, 406, "VALIDATION_ERROR"),
            (Barred::TooLarge { max: 1 }, 413, "VALIDATION_ERROR"),
            (Barred::Timeout, 408, "VALIDATION_ERROR"),
            (Barred::Deadline, 504, "INTERNAL"),
            (Barred::Internal, 500, "INTERNAL"),
            (why(Why::Wrong), 400, "VALIDATION_ERROR"),
            (why(Why::NotFound), 404, "NOT_FOUND"),
            (why(Why::Rate), 429, "RATE_LIMITED"),
            (why(Why::Busy), 503, "RATE_LIMITED"),
            (why(Why::Timeout), 504, "INTERNAL"),
            (why(Why::Internal), 500, "INTERNAL"),
        ] {
            let (got, _, body) = said(true, "/api/mcp/call", barred.clone()).await;
            assert_eq!((got, &body["ok"], &body["error"]["code"]), (status, &json!(false), &json!(code)), "{barred:?}");
            let keys: Vec<&String> = body["error"].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["code", "message", "requestId"], "{barred:?}");
            assert_eq!((&body["error"]["requestId"], body["error"]["message"].is_string()), (&json!("r1"), true), "{barred:?}");
        }
        assert_eq!(said(true, "/api/mcp/tools", Barred::Method("GET, HEAD")).await.1.as_deref(), Some("GET, HEAD"), "headers stay");
    }

    #[tokio::test]
    async fn other_paths_and_other_servers_speak_json_rpc_and_answers_stay() {
        for (on, path) in [(true, "/mcp"), (true, "/api/mcp"), (true, "/api/mcp/tools/"), (false, "/api/mcp/tools")] {
            assert_eq!(said(on, path, Barred::NotFound).await.2["jsonrpc"], "2.0", "{path}");
        }
        let shown = through(&DialectLayer::new(true), request().uri("/api/mcp/call").body(Body::empty()).unwrap()).await;
        assert_eq!(shown.headers()["cache-control"], "private, no-store");
        assert_eq!(text(shown).await, "shown");
    }
}
