//! One line per call on stderr (decisions 2 and 3).
//!
//! Promises: the tool, the names of its arguments, the outcome, the time, the principal. Never a value, an address or a user agent.
//! Does not: fail a call.

use std::task::{Context, Poll};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal};
use crate::{clock, tools::Answer};

/// Adds the step.
#[derive(Clone, Copy)]
pub struct AuditLayer {
    on: bool,
}

impl AuditLayer {
    /// The step; without `on` it only passes calls through.
    #[must_use]
    pub const fn new(on: bool) -> Self {
        Self { on }
    }
}

impl<S> Layer<S> for AuditLayer {
    type Service = Audit<S>;

    fn layer(&self, inner: S) -> Audit<S> {
        Audit { inner, on: self.on }
    }
}

/// The step.
#[derive(Clone)]
pub struct Audit<S> {
    inner: S,
    on: bool,
}

impl<S> Service<Call> for Audit<S>
where
    S: Service<Call, Response = Answer, Error = Refusal>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Refusal;
    type Future = BoxFuture<Result<Answer, Refusal>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if !self.on {
            return Box::pin(self.inner.call(call));
        }
        let mut line = Line {
            tool: call.entry.name,
            arguments: names(&call),
            principal: call.caller.principal().to_owned(),
            request_id: call.request_id.clone(),
            began: clock::monotonic(),
            outcome: "cancelled",
        };
        let answer = self.inner.call(call);
        Box::pin(async move {
            let answer = answer.await;
            line.outcome = outcome(&answer);
            if let Err(Refusal::Tool(error)) = &answer
                && error.internal()
            {
                tracing::error!(requestId = line.request_id, tool = line.tool, error = error.inner(), "a tool failed");
            }
            answer
        })
    }
}

/// A caller may send any argument name: only those that the tool has are logged.
fn names(call: &Call) -> Vec<String> {
    let known = (call.entry.input_schema)();
    let properties = known.get("properties").and_then(serde_json::Value::as_object);
    call.arguments.keys().filter(|name| properties.is_some_and(|known| known.contains_key(*name))).cloned().collect()
}

const fn outcome(answer: &Result<Answer, Refusal>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(Refusal::Denied { .. }) => "denied",
        Err(Refusal::Timeout { .. }) => "timeout",
        Err(Refusal::Panicked(_)) => "error",
        Err(Refusal::Tool(error)) if error.internal() => "error",
        Err(Refusal::Tool(_)) => "refused",
    }
}

/// Written when dropped, so that a call whose future is dropped leaves `cancelled`.
struct Line {
    tool: &'static str,
    arguments: Vec<String>,
    principal: String,
    request_id: String,
    began: std::time::Instant,
    outcome: &'static str,
}

impl Drop for Line {
    fn drop(&mut self) {
        let line = serde_json::json!({
            "ts": clock::now().rfc3339(), "event": "call", "requestId": self.request_id, "tool": self.tool, "args": self.arguments,
            "outcome": self.outcome, "durationMs": u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX), "principal": self.principal,
        });
        crate::telemetry::line(&line);
    }
}
