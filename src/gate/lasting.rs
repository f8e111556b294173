//! What was started ends by itself: a declared command goes on when its client leaves, with its place, its caller's mark and its way into the
//! cache (decision 19).
//!
//! Promises: what has not begun when the client leaves does not begin; every other tool is dropped with its call, as ever.
//! Does not: wait for it at the end of the server: whoever runs it ends it then.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{
    Call, Refusal, Reply,
    next::{Next, Step},
};

/// The step.
pub struct Lasting;

impl Step for Lasting {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        if call.entry.declared.is_none() {
            return next.call(call).await;
        }
        let left = CancellationToken::new();
        let _when_dropped = left.clone().drop_guard();
        call.left = Some(left);
        let (request_id, tool) = (call.request_id.clone(), call.entry.name);
        tokio::spawn(next.call(call)).await.unwrap_or_else(|panic| {
            tracing::error!(requestId = request_id, tool, error = %panic, "a command's call panicked");
            Err(Refusal::Panicked(request_id))
        })
    }
}

#[cfg(test)]
mod tests;
