//! Whether the caller may call this tool: role and scopes, from the entry's own row.
//!
//! Promises: the same rule that decides what `tools/list` shows.
//! Does not: say more than what is needed.

use std::task::{Context, Poll};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal, lacks};
use crate::tools::Answer;

/// Adds the step.
#[derive(Clone, Copy)]
pub struct AuthorizeLayer;

impl<S> Layer<S> for AuthorizeLayer {
    type Service = Authorize<S>;

    fn layer(&self, inner: S) -> Authorize<S> {
        Authorize { inner }
    }
}

/// The step.
#[derive(Clone)]
pub struct Authorize<S> {
    inner: S,
}

impl<S> Service<Call> for Authorize<S>
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
        match lacks(&call.caller, call.entry) {
            Some(needs) => Box::pin(std::future::ready(Err(Refusal::Denied { tool: call.entry.name, needs }))),
            None => Box::pin(self.inner.call(call)),
        }
    }
}
