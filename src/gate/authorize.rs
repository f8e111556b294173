//! Whether the caller may call this tool: role and scopes, from the entry's own row.
//!
//! Promises: the same rule that decides what `tools/list` shows. Where there is no caller it is the credential that lacks, whatever the tool:
//! one without a credential learns nothing of tools by calling them. What the operator has not switched on is nobody's, whatever he holds.
//! Does not: say more than what is needed.

use std::sync::Arc;

use super::{
    Call, Refusal, Reply,
    lacks::Lacks,
    next::{Next, Step},
};

/// The step.
pub struct Authorize;

impl Step for Authorize {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        if call.caller.is_nobody() {
            return Err(Refusal::Unauthenticated);
        }
        if call.closed {
            return Err(Refusal::Closed { tool: call.entry.name });
        }
        match Lacks::of(&call.caller, call.entry) {
            Some(lacks) => Err(Refusal::Denied { tool: call.entry.name, lacks }),
            None => next.call(call).await,
        }
    }
}
