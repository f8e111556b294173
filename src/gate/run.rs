//! The end of the list: the tool itself, on the blocking pool.
//!
//! Promises: a panic is a refusal with the request id, never a hung request; at most `mcp.handlers` tools are on the pool (decision 25), those
//! that were given up and have not ended included. A call whose client leaves, or whose deadline passes, ends in the store too: its connection,
//! its thread and its caller's mark are free within milliseconds (decision 19).
//! A declared tool waits for a process and not for a thread: it is not on the pool.
//! Does not: run on the async threads. Does not interrupt what a tool computes between two reads; the next read ends it.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::Semaphore;
use tower::Service;

use super::{BoxFuture, Call, Refusal, Reply, Served, Settings, fresh::AbortOnDrop};
use crate::{
    clock,
    store::{Absent, Cancel, Store},
    tools::{Answer, Ctx, ToolError, declared::Asked},
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
    if let Some(declared) = call.entry.declared {
        let public = call.caller.is_public();
        let answer = declared.run(Asked { arguments: call.arguments, public, left: call.left }).await?;
        return Ok(Served { answer: Arc::new(answer), cached: false });
    }
    let (request_id, tool) = (call.request_id.clone(), call.entry.name);
    // Inside the deadline, so a wait has one; never closed, so an error cannot come.
    let handler = parts.handlers.clone().acquire_owned().await.map_err(|error| ToolError::Internal(error.to_string()))?;
    let given_up = GivenUp(Cancel::default());
    let cancel = given_up.0.clone();
    let ended = tokio::task::spawn_blocking(move || {
        // The thread holds it, not the call: a call that is given up does not free the thread.
        let _handler = handler;
        answer(&parts.settings, call, &cancel)
    });
    let _unbegun = AbortOnDrop(ended.abort_handle());
    match ended.await {
        Ok(answer) => Ok(Served { answer: Arc::new(answer?), cached: false }),
        Err(panic) => {
            tracing::error!(requestId = request_id, tool, error = %panic, "a tool panicked");
            Err(Refusal::Panicked(request_id))
        }
    }
}

/// Tells the store that nobody waits, when the call's future is dropped.
struct GivenUp(Cancel);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// The call's mark of its caller goes with it: who leaves while it is computed has it running until the thread has noticed.
fn answer(settings: &Settings, call: Call, cancel: &Cancel) -> Result<Answer, ToolError> {
    let _mark = call.mark;
    let Settings { limits, style, redactor, writes, .. } = settings;
    let (project, store) = match call.project {
        Some(project) => (project.id, project.store.heeding(cancel)),
        None => (Arc::default(), Arc::new(Absent) as Arc<dyn Store>),
    };
    let ctx = Ctx {
        store,
        project,
        projects: call.projects,
        caller: call.caller,
        now: clock::now(),
        limits: limits.clone(),
        style: *style,
        note: call.note,
        consent: call.consent.map(|consent| *consent),
        rules: writes.unwrap_or_default(),
        redactor: redactor.clone(),
    };
    (call.entry.run)(&ctx, call.arguments)
}
