//! How long one call may run (`limits.call_timeout_s`).
//!
//! Promises: the caller gets a sentence at the deadline.
//! Does not: stop what is on the blocking pool already; that ends by its own bounds, and its result is dropped.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal};
use crate::tools::Answer;

/// Adds the step.
#[derive(Clone, Copy)]
pub struct DeadlineLayer {
    after: Duration,
}

impl DeadlineLayer {
    /// The step.
    #[must_use]
    pub const fn new(after: Duration) -> Self {
        Self { after }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, after: self.after }
    }
}

/// The step.
#[derive(Clone)]
pub struct Deadline<S> {
    inner: S,
    after: Duration,
}

impl<S> Service<Call> for Deadline<S>
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
        let (tool, after) = (call.entry.name, self.after);
        let answer = self.inner.call(call);
        Box::pin(
            async move { tokio::time::timeout(after, answer).await.unwrap_or(Err(Refusal::Timeout { tool, seconds: after.as_secs() })) },
        )
    }
}
