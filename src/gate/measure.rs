//! Counts each request by its route and what became of it, and how long that took.
//!
//! Promises: a bounded set of labels, whatever paths and methods are asked for; each request is counted once, one whose client leaves before
//! the answer's head, wherever it is by then, as `cancelled`.
//! Does not: log; the audit line of a call does.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use axum::body::Body;
use http::{Request, Response};
use tower::{Layer, Service};

use super::{
    BoxFuture,
    refusal::RefusedBy,
    route::{CALL, RUNS, TOOLS, UPLOADS},
};
use crate::{
    clock,
    telemetry::metrics::{self, Metrics},
};

/// Adds the step.
#[derive(Clone)]
pub struct MeasureLayer {
    metrics: Arc<Metrics>,
    endpoints: Arc<[String]>,
}

impl MeasureLayer {
    /// The step; `endpoints` are the paths that count as `mcp`.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, endpoints: Vec<String>) -> Self {
        Self { metrics, endpoints: endpoints.into() }
    }

    fn route(&self, path: &str) -> &'static str {
        if path.ends_with("/health") {
            "health"
        } else if self.endpoints.iter().any(|endpoint| path == endpoint || is_below(path, endpoint)) {
            "mcp"
        } else if path == RUNS || path.starts_with(UPLOADS) {
            "push"
        } else if path == TOOLS || path == CALL {
            "tool_api"
        } else {
            "other"
        }
    }
}

/// Whether the path is an endpoint's with an organization and a project behind it, whichever they are.
fn is_below(path: &str, endpoint: &str) -> bool {
    path.strip_prefix(endpoint).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| rest.matches('/').count() == 1)
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Measure<S>;

    fn layer(&self, inner: S) -> Measure<S> {
        Measure { inner, layer: self.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Measure<S> {
    inner: S,
    layer: MeasureLayer,
}

impl<S, B> Service<Request<B>> for Measure<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let route = self.layer.route(request.uri().path());
        let tally = Tally { metrics: self.layer.metrics.clone(), route, outcome: metrics::CANCELLED, began: clock::monotonic() };
        let answer = self.inner.call(request);
        Box::pin(async move {
            // The whole of it: a field alone would be a copy.
            let mut tally = tally;
            let response = answer.await?;
            tally.outcome = response.extensions().get::<RefusedBy>().map_or(metrics::OK, |refused| refused.0);
            Ok(response)
        })
    }
}

/// Counted when dropped, so that a request whose future is dropped is counted too.
struct Tally {
    metrics: Arc<Metrics>,
    route: &'static str,
    outcome: &'static str,
    began: Instant,
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.metrics.door(self.route, self.outcome, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use tower::service_fn;

    use super::*;
    use crate::gate::{
        refusal::Barred,
        trial::{request, through},
    };

    fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
        let page = metrics.text().unwrap();
        page.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    #[test]
    fn a_path_that_names_a_project_is_its_endpoints() {
        let layer = MeasureLayer::new(Arc::new(Metrics::new([]).unwrap()), vec!["/mcp".to_owned()]);
        let paths = ["/mcp", "/mcp/acme/main", "/mcp/health", "/mcp/acme", "/mcp/a/b/c", "/mcpx/a/b", "/v1/runs"];
        assert_eq!(paths.map(|path| layer.route(path)), ["mcp", "mcp", "health", "other", "other", "other", "push"]);
    }

    #[tokio::test]
    async fn each_request_is_counted_once_however_it_ends() {
        let metrics = Arc::new(Metrics::new([]).unwrap());
        let layer = MeasureLayer::new(metrics.clone(), vec!["/mcp".to_owned()]);
        let ask = || request().body(Body::empty()).unwrap();
        through(&layer, ask()).await;
        let barred = service_fn(|_: Request<Body>| async { Ok(Barred::Overloaded.response("r")) });
        layer.layer(barred).call(ask()).await.unwrap();
        let never = || layer.layer(service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>()));
        // Left before it was looked at, and while it was.
        drop(never().call(ask()));
        let left = tokio::spawn(never().call(ask()));
        tokio::task::yield_now().await;
        left.abort();
        assert!(left.await.is_err());
        let counted = |outcome: &str, count: u32| format!("runlore_http_requests_total{{outcome=\"{outcome}\",route=\"mcp\"}} {count}");
        assert_eq!(lines(&metrics, "runlore_http_requests_total"), [counted("cancelled", 2), counted("ok", 1), counted("overloaded", 1)]);
        assert_eq!(
            lines(&metrics, "runlore_refusals_total"),
            ["runlore_refusals_total{list=\"door\",step=\"overloaded\"} 1"],
            "to leave is no refusal"
        );
        let answered = "runlore_http_request_duration_seconds_count{route=\"mcp\"} 2";
        assert_eq!(lines(&metrics, "runlore_http_request_duration_seconds_count"), [answered], "there was no answer to measure");
    }
}
