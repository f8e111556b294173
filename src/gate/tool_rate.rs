//! How many calls a minute one caller may make (`--rate`; decisions 1 and 33).
//!
//! Promises: every `tools/call` takes one cell of its caller's, whatever becomes of it: an unknown tool, a wrong argument, a hit of the cache;
//! one that is refused here takes none. N at once, and one more each 60/N seconds.
//! Does not: count stdio and the command line.

use std::sync::Arc;

use super::{
    Call, CallerKey, Refusal, Reply,
    limiter::Limiter,
    next::{Next, Step},
};

/// The step.
pub struct ToolRate {
    limiter: Arc<Limiter<CallerKey>>,
    per_minute: u32,
}

impl ToolRate {
    /// The step over `limiter`, which lets `per_minute` pass.
    #[must_use]
    pub const fn new(limiter: Arc<Limiter<CallerKey>>, per_minute: u32) -> Self {
        Self { limiter, per_minute }
    }
}

impl Step for ToolRate {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        if call.counted
            && let Err(wait_s) = self.limiter.check(&call.counted_as())
        {
            return Err(Refusal::Rate { per_minute: self.per_minute, wait_s });
        }
        next.call(call).await
    }
}
