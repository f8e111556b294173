//! The arguments are decoded once, before anything is waited for, looked up or counted (decision 1).
//!
//! Promises: what comes after has the tool's own form of them: absent and `null` are the default, written out; `20.0` is `20`; so calls that
//! mean the same are one call to the cache. Those that ask for texts are not there for whom may not read any. Wrong ones are refused with the tool's own sentence and cost no slot and no share of the total.
//! Does not: know any tool.

use std::sync::Arc;

use super::{
    Call, Refusal, Reply,
    next::{Next, Step},
    redact,
};
use crate::{
    telemetry::redaction::Redactor,
    tools::{self, ToolError},
};

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
        let hidden = call.entry.text_arguments.iter().find(|name| call.arguments.contains_key(**name));
        if let Some(name) = hidden.filter(|_| !call.caller.holds("traces:read")) {
            return Err(Refusal::Tool(ToolError::Argument(format!("unknown argument `{name}`"))));
        }
        let given = std::mem::take(&mut call.arguments);
        let canonical = match call.entry.declared {
            Some(declared) => declared.canonical(given, call.caller.is_public()),
            None => (call.entry.canonical)(given),
        };
        match canonical {
            Ok(arguments) => call.arguments = arguments,
            Err(error) => return Err(redact::refused(&self.redactor, Refusal::Tool(error))),
        }
        next.call(call).await
    }
}
