//! How long one call may run (`limits.call_timeout_s`, `--timeout`); waiting for a slot is not running (decision 81).
//!
//! Promises: the caller gets a sentence at the deadline, and what the call held is given back: what follows is dropped, and the step `run` has
//! the store end what it is reading for it.
//! Does not: know what runs.

use std::{sync::Arc, time::Duration};

use super::{
    Call, Refusal, Reply,
    next::{Next, Step},
};

/// The step.
pub struct Deadline {
    after: Duration,
}

impl Deadline {
    /// The step.
    #[must_use]
    pub const fn new(after: Duration) -> Self {
        Self { after }
    }
}

impl Step for Deadline {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        // It has its own, after which it is ended and says how far it came.
        if call.entry.declared.is_some() {
            return next.call(call).await;
        }
        let tool = call.entry.name;
        let late = Refusal::Timeout { tool, seconds: self.after.as_secs() };
        tokio::time::timeout(self.after, next.call(call)).await.unwrap_or(Err(late))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::probe::{self, call};

    #[tokio::test(start_paused = true)]
    async fn a_call_is_refused_at_its_deadline_and_not_before() {
        let step = Arc::new(Deadline::new(Duration::from_secs(60)));
        let slow = |seconds| probe::after(Duration::from_secs(seconds), "late");
        assert!(step.clone().take(call(&probe::LIGHT), slow(59)).await.is_ok());
        let refusal = step.take(call(&probe::LIGHT), slow(61)).await.unwrap_err();
        assert_eq!(refusal.to_string(), "light did not answer within 60 s; narrow the question and try again");
    }
}
