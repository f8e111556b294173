//! How many calls a minute may run for all callers together (`--rate-total`; decisions 1 and 33).
//!
//! Promises: taken just before a call runs, so what is refused or answered from the cache takes nothing.
//! Does not: count stdio and the command line.

use std::sync::Arc;

use super::{
    Call, Refusal, Reply,
    limiter::Limiter,
    next::{Next, Step},
};

/// The step.
pub struct Total {
    limiter: Limiter<()>,
    per_minute: u32,
}

impl Total {
    /// The step over `limiter`, which lets `per_minute` pass.
    #[must_use]
    pub const fn new(limiter: Limiter<()>, per_minute: u32) -> Self {
        Self { limiter, per_minute }
    }
}

impl Step for Total {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        if call.counted
            && let Err(wait_s) = self.limiter.check(&())
        {
            return Err(Refusal::Total { per_minute: self.per_minute, wait_s });
        }
        next.call(call).await
    }
}
