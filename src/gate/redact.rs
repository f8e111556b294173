//! No secret leaves: answers, their text and refusals are redacted (decision 65).
//!
//! Promises: JSON stays JSON; text without a secret is not copied.
//! Does not: replace what import has already replaced; it is for stores that were filled with redaction off, and for values known only now.

use std::{
    borrow::Cow,
    sync::Arc,
    task::{Context, Poll},
};

use serde_json::value::RawValue;
use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal};
use crate::{
    telemetry::redaction::Redactor,
    tools::{Answer, ToolError},
};

/// Adds the step.
#[derive(Clone)]
pub struct RedactLayer {
    redactor: Arc<Redactor>,
}

impl RedactLayer {
    /// The step.
    #[must_use]
    pub const fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor }
    }
}

impl<S> Layer<S> for RedactLayer {
    type Service = Redact<S>;

    fn layer(&self, inner: S) -> Redact<S> {
        Redact { inner, redactor: self.redactor.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Redact<S> {
    inner: S,
    redactor: Arc<Redactor>,
}

impl<S> Service<Call> for Redact<S>
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
        let redactor = self.redactor.clone();
        let answer = self.inner.call(call);
        Box::pin(async move {
            match answer.await {
                Ok(answer) => cleaned(&redactor, answer),
                Err(Refusal::Tool(error)) if !error.internal() => {
                    Err(Refusal::Tool(ToolError::Said(redactor.redact(&error.to_string()).into_owned())))
                }
                Err(other) => Err(other),
            }
        })
    }
}

fn cleaned(redactor: &Redactor, answer: Answer) -> Result<Answer, Refusal> {
    let json = match redactor.redact(answer.json.get()) {
        Cow::Borrowed(_) => None,
        Cow::Owned(json) => Some(RawValue::from_string(json).map_err(|error| ToolError::Internal(error.to_string()))?),
    };
    let text = redactor.redact(&answer.text).into_owned();
    Ok(Answer { json: json.unwrap_or(answer.json), text })
}
