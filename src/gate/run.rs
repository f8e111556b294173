//! The end of the list: the tool itself, on the blocking pool.
//!
//! Promises: a panic is a refusal with the request id, never a hung request.
//! Does not: run on the async threads.

use std::task::{Context, Poll};

use tower::Service;

use super::{BoxFuture, Call, Refusal, Settings};
use crate::{
    clock,
    tools::{Answer, Ctx},
};

/// The step.
#[derive(Clone)]
pub struct Run {
    settings: Settings,
}

impl Run {
    /// The step.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

impl Service<Call> for Run {
    type Response = Answer;
    type Error = Refusal;
    type Future = BoxFuture<Result<Answer, Refusal>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let Settings { store, limits, style, .. } = self.settings.clone();
        Box::pin(async move {
            let ctx = Ctx { store, caller: call.caller, now: clock::now(), limits, style, note: call.note };
            let answer = tokio::task::spawn_blocking(move || (call.entry.run)(&ctx, call.arguments)).await;
            match answer {
                Ok(answer) => answer.map_err(Refusal::Tool),
                Err(panic) => {
                    tracing::error!(requestId = call.request_id, tool = call.entry.name, error = %panic, "a tool panicked");
                    Err(Refusal::Panicked(call.request_id))
                }
            }
        })
    }
}
