//! What one connection is doing, and until when it may: the idle watchdog's knowledge.
//!
//! Promises: a request counts from its head to the end of its response's body; a connection with nothing in flight is closed at a moment
//! that the client cannot move beyond the header deadline; a response waits for its client at most the stall bound per piece. All
//! decisions are the pure function [`State::outlook`].
//! Does not: bound how long the service takes over a request or its body; the gate has deadlines for both.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::Settings;
use crate::clock;

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Silent, with nothing in flight.
    Idle,
    /// No complete request at the header deadline.
    Late,
    /// The client does not take what is sent.
    Stalled,
    /// Too many requests cancelled.
    Resets,
}

/// What is to be done about a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// Nothing before then.
    Look(Instant),
    /// End it.
    Close(Why),
}

/// The bounds that it is held to.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    idle: Duration,
    late: Duration,
    stall: Duration,
    cancelled: usize,
}

struct State {
    in_flight: usize,
    /// Since when nothing is in flight, where that is so.
    rest: Instant,
    /// When a byte last came or went.
    moved: Instant,
    /// Since when the socket takes no byte.
    blocked: Option<Instant>,
    /// Responses whose next piece the client has not taken, since when; by the request's number.
    untaken: Vec<(u64, Instant)>,
    /// Requests cancelled more than answered.
    cancelled: usize,
    /// The last request's number.
    number: u64,
}

impl State {
    const fn new(now: Instant) -> Self {
        Self { in_flight: 0, rest: now, moved: now, blocked: None, untaken: Vec::new(), cancelled: 0, number: 0 }
    }

    /// Whether the connection has had its time, and if not, when to ask again. Asking at least once per shortest bound makes each
    /// bound exact: what begins after a look cannot be due before the next.
    fn outlook(&self, now: Instant, bounds: &Bounds) -> Outlook {
        let (due, why) = if self.in_flight > 0 { self.due_at_work(bounds) } else { self.due_at_rest(bounds) };
        let soon = now + bounds.idle.min(bounds.late).min(bounds.stall);
        match due {
            Some(due) if due <= now => Outlook::Close(why),
            Some(due) => Outlook::Look(due.min(soon)),
            None => Outlook::Look(soon),
        }
    }

    /// At work only the client's part has a bound: taking what is sent.
    fn due_at_work(&self, bounds: &Bounds) -> (Option<Instant>, Why) {
        let since = self.untaken.iter().map(|(_, since)| *since).chain(self.blocked).min();
        (since.map(|since| since + bounds.stall), Why::Stalled)
    }

    /// At rest: the tail of a response may still be on its way; else silence is bounded, and so are bytes that make no request.
    fn due_at_rest(&self, bounds: &Bounds) -> (Option<Instant>, Why) {
        if self.blocked.is_some() {
            return (Some(self.rest + bounds.stall), Why::Stalled);
        }
        let idle = self.moved.max(self.rest) + bounds.idle;
        let late = self.rest + bounds.late;
        if idle <= late { (Some(idle), Why::Idle) } else { (Some(late), Why::Late) }
    }
}

/// The state of one connection, shared by its socket, its requests and its watchdog.
pub(super) struct Ledger {
    state: Mutex<State>,
    bounds: Bounds,
    resets: Notify,
}

impl Ledger {
    pub(super) fn new(settings: &Settings) -> Arc<Self> {
        let bounds =
            Bounds { idle: settings.idle, late: settings.header_deadline, stall: settings.stall, cancelled: settings.h2_cancelled_max };
        Arc::new(Self { state: Mutex::new(State::new(clock::monotonic())), bounds, resets: Notify::new() })
    }

    /// What is to be done now.
    pub(super) fn outlook(&self) -> Outlook {
        self.state().outlook(clock::monotonic(), &self.bounds)
    }

    /// Bytes came.
    pub(super) fn came(&self) {
        self.state().moved = clock::monotonic();
    }

    /// Bytes went.
    pub(super) fn went(&self) {
        let mut state = self.state();
        state.moved = clock::monotonic();
        state.blocked = None;
    }

    /// The socket takes no more for now.
    pub(super) fn blocked(&self) {
        self.state().blocked.get_or_insert_with(clock::monotonic);
    }

    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        let mut state = self.state();
        state.in_flight += 1;
        state.number += 1;
        InFlight { ledger: self.clone(), number: state.number, answered: false }
    }

    /// Waits until too many requests are cancelled.
    pub(super) async fn resets(&self) {
        self.resets.notified().await;
    }

    /// Whether that has gone on after the client was told.
    pub(super) fn floods(&self) -> bool {
        self.state().cancelled >= self.bounds.cancelled * 2
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight, until dropped.
pub(super) struct InFlight {
    ledger: Arc<Ledger>,
    number: u64,
    answered: bool,
}

impl InFlight {
    /// The service has answered; the body waits to be taken.
    pub(super) fn answered(&mut self) {
        self.answered = true;
        let mut state = self.ledger.state();
        state.cancelled = state.cancelled.saturating_sub(1);
        drop(state);
        self.offered();
    }

    /// A piece of the body is the client's to take.
    pub(super) fn offered(&self) {
        self.ledger.state().untaken.push((self.number, clock::monotonic()));
    }

    /// It took it: the next piece is asked for.
    pub(super) fn taken(&self) {
        self.ledger.state().untaken.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        state.untaken.retain(|(number, _)| *number != self.number);
        state.in_flight = state.in_flight.saturating_sub(1);
        state.rest = clock::monotonic();
        if !self.answered {
            state.cancelled += 1;
            if state.cancelled >= self.ledger.bounds.cancelled {
                self.ledger.resets.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { idle: s(5), late: s(10), stall: s(30), cancelled: 3 };

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn at_rest_silence_has_five_seconds_and_noise_ten() {
        let start = clock::monotonic();
        let mut state = State::new(start);
        assert_eq!(state.outlook(start, &BOUNDS), Outlook::Look(start + s(5)));
        state.moved = start + s(4);
        assert_eq!(state.outlook(start + s(5), &BOUNDS), Outlook::Look(start + s(9)));
        assert_eq!(state.outlook(start + s(9), &BOUNDS), Outlook::Close(Why::Idle));
        state.moved = start + s(8);
        assert_eq!(state.outlook(start + s(9), &BOUNDS), Outlook::Look(start + s(10)));
        assert_eq!(state.outlook(start + s(10), &BOUNDS), Outlook::Close(Why::Late));
    }

    #[test]
    fn at_work_only_a_client_that_does_not_take_is_closed() {
        let start = clock::monotonic();
        let mut state = State { in_flight: 1, ..State::new(start) };
        assert_eq!(state.outlook(start + s(999), &BOUNDS), Outlook::Look(start + s(1004)));
        state.untaken.extend([(2, start + s(3)), (1, start)]);
        assert_eq!(state.outlook(start + s(29), &BOUNDS), Outlook::Look(start + s(30)));
        assert_eq!(state.outlook(start + s(30), &BOUNDS), Outlook::Close(Why::Stalled));
        state.untaken.clear();
        state.blocked = Some(start + s(1));
        assert_eq!(state.outlook(start + s(31), &BOUNDS), Outlook::Close(Why::Stalled));
    }

    #[test]
    fn the_tail_of_a_response_is_not_idleness_and_yet_ends() {
        let start = clock::monotonic();
        let state = State { blocked: Some(start + s(29)), ..State::new(start) };
        assert_eq!(state.outlook(start + s(20), &BOUNDS), Outlook::Look(start + s(25)));
        assert_eq!(state.outlook(start + s(30), &BOUNDS), Outlook::Close(Why::Stalled));
    }

    #[test]
    fn cancelled_requests_add_up_and_answered_ones_make_up_for_them() {
        let ledger = Ledger::new(&Settings { h2_cancelled_max: 3, ..Settings::default() });
        for _ in 0..50 {
            drop(ledger.begin());
            let mut answered = ledger.begin();
            answered.answered();
        }
        assert!(ledger.state().cancelled == 0 && ledger.state().in_flight == 0 && ledger.state().untaken.is_empty());
        (0..6).for_each(|_| drop(ledger.begin()));
        assert!(ledger.floods());
    }
}
