//! Who is told of calls and faults (decision 37): metrics, and whatever else an operator's build registers.
//!
//! Promises: a hook sees the tool by its listed name (`unknown` where there is none), the names of the arguments, the outcome, the duration, the
//! caller; never a value. A slow hook behind [`Queued`] holds up no call: it has a thread and a queue of its own, and what does not fit is
//! counted in `runlore_hook_dropped_total`. A hook that panics loses that event only.
//! Does not: load code.

use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use prometheus::IntCounter;

/// Events that wait for one slow hook: some seconds of a busy server, and half a megabyte.
const QUEUE: usize = 1024;

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
    /// How long it took, waiting included.
    pub duration: Duration,
    /// A key or subject id, `anonymous` or `local`.
    pub principal: String,
    /// The caller's organization, where it has one. Two organizations may call two callers the same.
    pub organization: Option<String>,
    /// The caller's address over HTTP, an IPv6 one by its /64. For the analytics event and the audit table only (decision 3).
    pub address: Option<IpAddr>,
}

/// A fault of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The id that the answer and the log share.
    pub request_id: String,
    /// The tool, where a call had the fault.
    pub tool: Option<&'static str>,
    /// What kind: `panic`, `tool`, or the door's word.
    pub kind: &'static str,
    /// What the log has of it, redacted.
    pub text: String,
}

/// Someone who is told. What is told inline must be quick; what may wait belongs into [`Queued`].
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

    fn each(&self, tell: impl Fn(&dyn Hook)) {
        self.0.iter().for_each(|hook| quietly(|| tell(&**hook)));
    }
}

/// It is told while a call's future is dropped: a panic there would end the process.
fn quietly(tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("a hook panicked; it goes on with the next event");
    }
}

enum Event {
    Request(CallEvent),
    Fault(Fault),
}

/// A slow hook on a thread of its own.
pub struct Queued<H> {
    hook: Arc<H>,
    queue: SyncSender<Event>,
    dropped: IntCounter,
    ended: Arc<std::sync::Mutex<Receiver<()>>>,
}

impl<H: Hook> Queued<H> {
    /// Starts the thread; `dropped` counts what does not fit.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn new(hook: H, dropped: IntCounter) -> std::io::Result<Self> {
        let hook = Arc::new(hook);
        let (queue, events) = sync_channel(QUEUE);
        // Nothing is ever sent: that the other end is gone says that the thread has ended.
        let (alive, ended) = sync_channel(0);
        let worker = hook.clone();
        thread::Builder::new().name("runlore-hook".to_owned()).spawn(move || {
            work(&*worker, &events);
            drop(alive);
        })?;
        Ok(Self { hook, queue, dropped, ended: Arc::new(ended.into()) })
    }

    /// Waits for what is queued, up to `patience`; whether all of it was told.
    #[must_use]
    pub fn finish(self, patience: Duration) -> bool {
        let Self { queue, ended, .. } = self;
        drop(queue);
        let ended = ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }

    fn put(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.dropped.inc();
        }
    }
}

fn work<H: Hook>(hook: &H, events: &Receiver<Event>) {
    for event in events {
        quietly(|| match event {
            Event::Request(event) => hook.request(&event),
            Event::Fault(fault) => hook.error(&fault),
        });
    }
}

impl<H: Hook> Hook for Queued<H> {
    fn start(&self) {
        self.hook.start();
    }

    fn request(&self, event: &CallEvent) {
        self.put(Event::Request(event.clone()));
    }

    fn error(&self, fault: &Fault) {
        self.put(Event::Fault(fault.clone()));
    }

    fn routes(&self) -> axum::Router {
        self.hook.routes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex};

    fn event(tool: &'static str) -> CallEvent {
        CallEvent {
            request_id: "r".into(),
            tool,
            arguments: vec!["limit"],
            outcome: Outcome::Ok,
            duration: Duration::ZERO,
            principal: "anonymous".into(),
            organization: None,
            address: None,
        }
    }

    struct Slow {
        gate: Barrier,
        seen: Mutex<Vec<&'static str>>,
    }

    impl Hook for Arc<Slow> {
        fn request(&self, event: &CallEvent) {
            if event.tool == "wait" {
                self.gate.wait();
                self.gate.wait();
            }
            assert_ne!(event.tool, "panic", "on purpose");
            self.seen.lock().unwrap().push(event.tool);
        }
    }

    #[test]
    fn a_slow_hook_holds_up_nobody_and_what_does_not_fit_is_counted() {
        let slow = Arc::new(Slow { gate: Barrier::new(2), seen: Mutex::default() });
        let dropped = IntCounter::new("dropped", "dropped").unwrap();
        let queued = Queued::new(slow.clone(), dropped.clone()).unwrap();
        queued.request(&event("wait"));
        slow.gate.wait();
        (0..QUEUE + 5).for_each(|_| queued.request(&event("history")));
        assert_eq!(dropped.get(), 5);
        slow.gate.wait();
        assert!(queued.finish(Duration::from_secs(30)));
        assert_eq!(slow.seen.lock().unwrap().len(), 1 + QUEUE);
    }

    #[test]
    fn a_hook_that_panics_loses_that_event_only() {
        let slow = Arc::new(Slow { gate: Barrier::new(1), seen: Mutex::default() });
        let queued = Queued::new(slow.clone(), IntCounter::new("dropped", "dropped").unwrap()).unwrap();
        let hooks = Hooks::new(vec![Arc::new(slow.clone())]);
        for tool in ["panic", "show"] {
            queued.request(&event(tool));
            hooks.request(&event(tool));
        }
        assert!(queued.finish(Duration::from_secs(30)));
        assert_eq!(*slow.seen.lock().unwrap(), ["show", "show"]);
    }

    #[test]
    fn outcomes_stand_at_their_numbers() {
        assert!(Outcome::ALL.iter().enumerate().all(|(index, outcome)| *outcome as usize == index));
    }
}
