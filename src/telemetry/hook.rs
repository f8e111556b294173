//! Who is told of calls and faults (decision 37): metrics, and whatever else an operator's build registers.
//!
//! Promises: a hook sees the tool by its listed name (`unknown` where there is none), the names of the arguments, the outcome, the duration, the
//! caller; never a value. A slow hook stands behind [`super::queued::Queued`] and holds up no call. A hook that panics loses that event only.
//! Does not: load code.

use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use super::trace::Parent;
use crate::domain::time::Timestamp;

/// How a call ended (decision 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Computed and answered.
    Ok,
    /// Answered with what another call computed.
    Cached,
    /// The tool or its arguments.
    Refused,
    /// The caller may not.
    Denied,
    /// The caller's rate.
    Rate,
    /// No place.
    Busy,
    /// The rate of all callers.
    Total,
    /// The deadline.
    Timeout,
    /// A fault of ours.
    Error,
    /// The client left.
    Cancelled,
}

impl Outcome {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Cached,
        Self::Refused,
        Self::Denied,
        Self::Rate,
        Self::Busy,
        Self::Total,
        Self::Timeout,
        Self::Error,
        Self::Cancelled,
    ];

    /// The word for logs and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Cached => "cached",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::Rate => "rate",
            Self::Busy => "busy",
            Self::Total => "total",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// The step of the call list that refused, for those outcomes that are one step's.
    #[must_use]
    pub const fn step(self) -> Option<&'static str> {
        match self {
            Self::Denied => Some("authorize"),
            Self::Rate => Some("tool_rate"),
            Self::Busy => Some("slots"),
            Self::Total => Some("total"),
            Self::Timeout => Some("deadline"),
            Self::Ok | Self::Cached | Self::Refused | Self::Error | Self::Cancelled => None,
        }
    }
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEvent {
    /// The id that the answer and the log share.
    pub request_id: String,
    /// The tool's listed name, or `unknown`.
    pub tool: &'static str,
    /// The names of the arguments that were sent, of those that the tool has.
    pub arguments: Vec<&'static str>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended.
    pub at: Timestamp,
    /// How long it took, waiting included.
    pub duration: Duration,
    /// A key or subject id, `anonymous` or `local`.
    pub principal: String,
    /// The caller's organization, where it has one. Two organizations may call two callers the same.
    pub organization: Option<String>,
    /// The caller's address over HTTP, an IPv6 one by its /64. For the analytics event and the audit table only (decision 3).
    pub address: Option<IpAddr>,
    /// The trace that the caller says it belongs to.
    pub parent: Option<Parent>,
}

/// A fault of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Timestamp,
    /// The id that the answer and the log share.
    pub request_id: String,
    /// The tool, where a call had the fault.
    pub tool: Option<&'static str>,
    /// What kind: `panic`, `tool`, or the door's word.
    pub kind: &'static str,
    /// What the log has of it, redacted.
    pub text: String,
}

/// Someone who is told. What is told inline must be quick; what may wait belongs into [`super::queued::Queued`].
pub trait Hook: Send + Sync + 'static {
    /// Called once, before anything is served.
    fn start(&self) {}

    /// Called after each call.
    fn request(&self, _: &CallEvent) {}

    /// Called after each fault.
    fn error(&self, _: &Fault) {}

    /// Routes that the hook adds to the private listener, behind its Host check.
    fn routes(&self) -> axum::Router {
        axum::Router::new()
    }

    /// Called once no other event waits, or many were told: what was gathered is to go out now.
    fn settle(&self) {}

    /// Waits for what is still to be told, up to `patience`; whether all of it was.
    fn finish(&self, patience: Duration) -> bool {
        let _ = patience;
        true
    }
}

/// All who are told, in order.
#[derive(Clone, Default)]
pub struct Hooks(Arc<[Arc<dyn Hook>]>);

impl Hooks {
    /// These.
    #[must_use]
    pub fn new(hooks: Vec<Arc<dyn Hook>>) -> Self {
        Self(hooks.into())
    }

    /// Tells each, as the trait says.
    pub fn start(&self) {
        self.each(|hook| hook.start());
    }

    /// Tells each, as the trait says.
    pub fn request(&self, event: &CallEvent) {
        self.each(|hook| hook.request(event));
    }

    /// Tells each, as the trait says.
    pub fn error(&self, fault: &Fault) {
        self.each(|hook| hook.error(fault));
    }

    /// The routes of each.
    pub fn routes(&self) -> axum::Router {
        self.0.iter().fold(axum::Router::new(), |all, hook| all.merge(hook.routes()))
    }

    /// Waits for what is still to be told, all at the same time and up to `patience`; whether all of it was.
    #[must_use]
    pub fn finish(&self, patience: Duration) -> bool {
        std::thread::scope(|threads| {
            let waiting: Vec<_> = self.0.iter().map(|hook| threads.spawn(|| hook.finish(patience))).collect();
            // Every one is waited for, also behind one that was not done.
            let done: Vec<bool> = waiting.into_iter().map(|one| one.join().unwrap_or(false)).collect();
            done.into_iter().all(|one| one)
        })
    }

    fn each(&self, tell: impl Fn(&dyn Hook)) {
        self.0.iter().for_each(|hook| quietly(|| tell(&**hook)));
    }
}

/// It is told while a call's future is dropped: a panic there would end the process.
pub(super) fn quietly(tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("a hook panicked; it goes on with the next event");
    }
}

#[cfg(test)]
pub(crate) mod trial {
    use super::*;

    /// A call of `tool`.
    pub(crate) fn event(tool: &'static str) -> CallEvent {
        CallEvent {
            request_id: "r".into(),
            tool,
            arguments: vec!["limit"],
            outcome: Outcome::Ok,
            at: Timestamp::from_millis(1_700_000_000_000),
            duration: Duration::ZERO,
            principal: "anonymous".into(),
            organization: None,
            address: None,
            parent: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_stand_at_their_numbers() {
        assert!(Outcome::ALL.iter().enumerate().all(|(index, outcome)| *outcome as usize == index));
    }
}
