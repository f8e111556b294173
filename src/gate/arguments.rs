//! The arguments are decoded once, before anything is waited for, looked up or counted (decision 1).
//!
//! Promises: what comes after has the tool's own form of them: absent and `null` are the default, written out; `20.0` is `20`; so calls that
//! mean the same are one call to the cache. Wrong ones are refused with the tool's own sentence and cost no slot and no share of the total.
//! Does not: know any tool.

use std::sync::Arc;

use super::{
    Call, Refusal, Reply,
    next::{Next, Step},
    redact,
};
use crate::{telemetry::redaction::Redactor, tools};

/// The step.
pub struct Arguments {
    redactor: Arc<Redactor>,
}

impl Arguments {
    /// The step; `redactor`, since a sentence may repeat a wrong value.
    #[must_use]
    pub const fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor }
    }
}

impl Step for Arguments {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        if std::ptr::eq(call.entry, &raw const tools::UNKNOWN) {
            return Err(Refusal::Unknown);
        }
        match (call.entry.canonical)(std::mem::take(&mut call.arguments)) {
            Ok(arguments) => call.arguments = arguments,
            Err(error) => return Err(redact::refused(&self.redactor, Refusal::Tool(error))),
        }
        next.call(call).await
    }
}
