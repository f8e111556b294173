//! One line per call on stderr, and one event to the hooks (decisions 2, 3 and 37).
//!
//! Promises: the tool, the names of its arguments, the outcome, the time, the principal. Never a value; on stderr never an address or a user
//! agent. A call whose client leaves is `cancelled`. A fault of ours goes to the hooks too, redacted.
//! Does not: fail a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    Call, Refusal, Reply, Served, Settings,
    next::{Next, Step},
};
use crate::{
    clock,
    telemetry::{
        hook::{CallEvent, Fault, Hooks, Outcome},
        redaction::Redactor,
    },
    tools,
};

/// The step.
pub struct Audit {
    on: bool,
    hooks: Hooks,
    redactor: Arc<Redactor>,
    in_flight: AtomicU64,
}

impl Audit {
    /// The step.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { on: settings.audit, hooks: settings.hooks.clone(), redactor: settings.redactor.clone(), in_flight: AtomicU64::new(0) }
    }

    /// Calls that have begun and not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    fn fault(&self, call: &CallEvent, refusal: &Refusal) {
        let (kind, text) = match refusal {
            Refusal::Panicked(_) => ("panic", "a tool panicked".to_owned()),
            Refusal::Tool(error) if error.internal() => ("tool", error.inner()),
            _ => return,
        };
        if kind == "tool" {
            tracing::error!(requestId = call.request_id, tool = call.tool, error = text, "a tool failed");
        }
        let text = self.redactor.redact(&text).into_owned();
        self.hooks.error(&Fault { at: clock::now(), request_id: call.request_id.clone(), tool: Some(call.tool), kind, text });
    }
}

impl Step for Audit {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        let mut line = Line::begin(&self, &call);
        let reply = next.call(call).await;
        line.event.outcome = outcome(&reply);
        if let Err(refusal) = &reply {
            self.fault(&line.event, refusal);
        }
        reply
    }
}

/// A caller may send any argument name: only those that the tool has are told.
fn names(call: &Call) -> Vec<&'static str> {
    tools::argument_names(call.entry).iter().filter(|name| call.arguments.contains_key(*name)).map(String::as_str).collect()
}

const fn outcome(reply: &Reply) -> Outcome {
    match reply {
        Ok(Served { cached: true, .. }) => Outcome::Cached,
        Ok(_) => Outcome::Ok,
        Err(refusal) => refusal.outcome(),
    }
}

/// Told when dropped, so that a call whose future is dropped is told too.
struct Line<'a> {
    audit: &'a Audit,
    began: Instant,
    event: CallEvent,
}

impl<'a> Line<'a> {
    fn begin(audit: &'a Audit, call: &Call) -> Self {
        audit.in_flight.fetch_add(1, Relaxed);
        let event = CallEvent {
            request_id: call.request_id.clone(),
            tool: call.entry.name,
            arguments: names(call),
            outcome: Outcome::Cancelled,
            at: clock::now(),
            duration: Duration::ZERO,
            principal: call.caller.principal().to_owned(),
            organization: call.caller.organization().map(ToString::to_string),
            address: call.client.map(|client| client.address),
            parent: call.parent,
        };
        Self { audit, began: clock::monotonic(), event }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.audit.in_flight.fetch_sub(1, Relaxed);
        self.event.duration = self.began.elapsed();
        self.event.at = clock::now();
        if self.audit.on {
            crate::telemetry::line(&Written::of(&self.event));
        }
        self.audit.hooks.request(&self.event);
    }
}

/// The line of decision 3.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    ts: String,
    event: &'static str,
    request_id: &'a str,
    tool: &'static str,
    args: &'a [&'static str],
    outcome: &'static str,
    duration_ms: u64,
    principal: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<&'a str>,
}

impl<'a> Written<'a> {
    fn of(event: &'a CallEvent) -> Self {
        Self {
            ts: event.at.rfc3339(),
            event: "call",
            request_id: &event.request_id,
            tool: event.tool,
            args: &event.arguments,
            outcome: event.outcome.word(),
            duration_ms: u64::try_from(event.duration.as_millis()).unwrap_or(u64::MAX),
            principal: &event.principal,
            organization: event.organization.as_deref(),
        }
    }
}
