//! The end of the list: the tool itself, on the blocking pool.
//!
//! Promises: a panic is a refusal with the request id, never a hung request; at most `mcp.handlers` tools are on the pool (decision 25), those
//! that were given up and have not ended included.
//! Does not: run on the async threads.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::Semaphore;
use tower::Service;

use super::{BoxFuture, Call, Refusal, Reply, Served, Settings, fresh::AbortOnDrop};
use crate::{
    clock,
    tools::{Answer, Ctx, ToolError},
};

/// The step.
#[derive(Clone)]
pub struct Run {
    parts: Arc<Parts>,
}

struct Parts {
    settings: Settings,
    handlers: Arc<Semaphore>,
}

impl Run {
    /// The step.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let handlers = Arc::new(Semaphore::new(settings.bounds.handlers));
        Self { parts: Arc::new(Parts { settings, handlers }) }
    }
}

impl Service<Call> for Run {
    type Response = Served;
    type Error = Refusal;
    type Future = BoxFuture<Reply>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        Box::pin(run(self.parts.clone(), call))
    }
}

async fn run(parts: Arc<Parts>, call: Call) -> Reply {
    let (request_id, tool) = (call.request_id.clone(), call.entry.name);
    // Inside the deadline, so a wait has one; never closed, so an error cannot come.
    let handler = parts.handlers.clone().acquire_owned().await.map_err(|error| ToolError::Internal(error.to_string()))?;
    let ended = tokio::task::spawn_blocking(move || {
        // The thread holds it, not the call: a call that is given up does not free the thread.
        let _handler = handler;
        answer(&parts.settings, call)
    });
    let _given_up = AbortOnDrop(ended.abort_handle());
    match ended.await {
        Ok(answer) => Ok(Served { answer: Arc::new(answer?), cached: false }),
        Err(panic) => {
            tracing::error!(requestId = request_id, tool, error = %panic, "a tool panicked");
            Err(Refusal::Panicked(request_id))
        }
    }
}

/// The call's mark of its caller goes with it: who leaves while it is computed has it running all the same.
fn answer(settings: &Settings, call: Call) -> Result<Answer, ToolError> {
    let _mark = call.mark;
    let Settings { store, limits, style, .. } = settings;
    let ctx = Ctx { store: store.clone(), caller: call.caller, now: clock::now(), limits: limits.clone(), style: *style, note: call.note };
    (call.entry.run)(&ctx, call.arguments)
}
