//! What the accept loop counts, for /metrics.
//!
//! Promises: every connection is counted when it comes and, where it does not end by itself, under the reason why it was ended.
//! Does not: count requests; the gate does.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{connection::Ending, ledger::Why, seats::Full};

/// Connections, by what became of them. All but `open` only grow.
#[derive(Debug, Default)]
pub struct Counters {
    /// Taken from the listener, the refused ones included.
    pub accepted: AtomicU64,
    /// Turned away because the service had all that it takes.
    pub refused_total: AtomicU64,
    /// Turned away because their address had all that it may.
    pub refused_per_address: AtomicU64,
    /// Accepts that failed.
    pub accept_errors: AtomicU64,
    /// Open now.
    pub open: AtomicU64,
    /// Closed for silence with nothing in flight.
    pub idle_closed: AtomicU64,
    /// Closed because no request was complete at the header deadline.
    pub late_closed: AtomicU64,
    /// Closed because the client did not take its response.
    pub stalled_closed: AtomicU64,
    /// Closed because the client cancelled too many requests.
    pub resets_closed: AtomicU64,
    /// Ended by a fault of the protocol (431, GOAWAY for a flood, garbage) or by a client that left midway.
    pub broken: AtomicU64,
    /// Dropped with requests in flight at the end of the drain.
    pub cut: AtomicU64,
}

/// One more.
pub(super) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(super) const fn refused(&self, full: Full) -> &AtomicU64 {
        match full {
            Full::Total => &self.refused_total,
            Full::Address => &self.refused_per_address,
        }
    }

    pub(super) const fn ended(&self, ending: Ending) -> Option<&AtomicU64> {
        match ending {
            Ending::Done => None,
            Ending::Broken => Some(&self.broken),
            Ending::Cut => Some(&self.cut),
            Ending::Closed(Why::Idle) => Some(&self.idle_closed),
            Ending::Closed(Why::Late) => Some(&self.late_closed),
            Ending::Closed(Why::Stalled) => Some(&self.stalled_closed),
            Ending::Closed(Why::Resets) => Some(&self.resets_closed),
        }
    }
}
