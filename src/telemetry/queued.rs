//! A slow hook on a thread of its own, behind a queue with an end.
//!
//! Promises: telling costs a call one attempt to queue, whatever the hook's server does; what does not fit is counted; what comes at the same
//! time is told together ([`Hook::settle`]); [`Hook::finish`] waits a bounded time for what is queued.
//! Does not: keep an event that could not be told.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use prometheus::IntCounter;

use super::hook::{CallEvent, Fault, Hook, quietly};
use crate::clock;

/// Events that wait for one slow hook (decision 37): some seconds of a busy server, and half a megabyte.
pub const QUEUE: usize = 1024;
/// Events that are told together at most.
const TOGETHER: usize = 256;
/// How often the end looks whether a full queue has room for its question.
const LOOK: Duration = Duration::from_millis(10);

enum Event {
    Request(CallEvent),
    Fault(Fault),
    /// Whoever waits for the other end to go is told that all before this was told.
    Finish(#[expect(dead_code, reason = "only dropped")] SyncSender<()>),
}

/// The hook's queue.
pub struct Queued<H> {
    hook: Arc<H>,
    queue: SyncSender<Event>,
    dropped: IntCounter,
}

impl<H: Hook> Queued<H> {
    /// Starts the thread; `dropped` counts what does not fit.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn new(hook: H, dropped: IntCounter) -> std::io::Result<Self> {
        let hook = Arc::new(hook);
        let (queue, events) = sync_channel(QUEUE);
        let worker = hook.clone();
        thread::Builder::new().name("runlore-hook".to_owned()).spawn(move || work(&*worker, &events))?;
        Ok(Self { hook, queue, dropped })
    }

    fn put(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.dropped.inc();
        }
    }

    /// Asks to be told when all before was told; none where the queue stays full, or its thread is gone.
    fn ask(&self, until: Instant) -> Option<Receiver<()>> {
        let (told, waiting) = sync_channel(0);
        let mut question = Event::Finish(told);
        loop {
            match self.queue.try_send(question) {
                Ok(()) => return Some(waiting),
                Err(TrySendError::Full(again)) if clock::monotonic() < until => question = again,
                Err(_) => return None,
            }
            thread::sleep(LOOK);
        }
    }
}

fn work<H: Hook>(hook: &H, events: &Receiver<Event>) {
    while let Ok(first) = events.recv() {
        let more = std::iter::from_fn(|| events.try_recv().ok());
        let mut asked = Vec::new();
        for event in std::iter::once(first).chain(more).take(TOGETHER) {
            match event {
                Event::Request(event) => quietly(|| hook.request(&event)),
                Event::Fault(fault) => quietly(|| hook.error(&fault)),
                finish @ Event::Finish(_) => asked.push(finish),
            }
        }
        quietly(|| hook.settle());
        drop(asked);
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

    fn finish(&self, patience: Duration) -> bool {
        let until = clock::monotonic() + patience;
        let Some(waiting) = self.ask(until) else { return false };
        let left = until.saturating_duration_since(clock::monotonic());
        // Nothing is ever sent: that the other end is gone is the answer.
        waiting.recv_timeout(left) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::hook::{Hooks, trial::event};
    use std::sync::{Barrier, Mutex};

    const PATIENCE: Duration = Duration::from_secs(30);

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

        fn settle(&self) {
            self.seen.lock().unwrap().push("settled");
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
        assert!(!queued.finish(Duration::from_millis(30)), "it is not told while the queue is full");
        slow.gate.wait();
        assert!(queued.finish(PATIENCE));
        let seen = slow.seen.lock().unwrap();
        let settled = seen.iter().filter(|tool| **tool == "settled").count();
        assert_eq!(seen.len() - settled, 1 + QUEUE);
        assert!(settled <= 3 + QUEUE / TOGETHER, "what waits is told together: {settled}");
        assert_eq!(seen.last(), Some(&"settled"), "nobody is told of the end before the last is out");
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
        assert!(queued.finish(PATIENCE));
        assert_eq!(slow.seen.lock().unwrap().iter().filter(|tool| **tool == "show").count(), 2);
    }
}
