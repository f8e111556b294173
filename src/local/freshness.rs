//! Whether it is time to look at the files again.
//!
//! Promises: usable from several threads; one of them looks, all wait for it for a bounded time and then go on with what is there, which an
//! answer says; a look that panics does not lock the next one out.
//! Does not: read a clock (the caller says what time it is) or look itself.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// When the last look was, and whether one is under way.
#[derive(Debug)]
pub struct Freshness {
    rescan: Duration,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    begun: Option<Instant>,
    under_way: bool,
}

/// What asking for a look came to.
#[derive(Debug)]
pub enum Begin {
    /// The last look is young enough.
    Fresh,
    /// Somebody else is at it.
    UnderWay,
    /// It is due, and this caller's to do: it ends when the ticket is dropped.
    Due(Ticket),
}

impl Freshness {
    /// A look is due when the last one began longer than `rescan` ago.
    #[must_use]
    pub fn new(rescan: Duration) -> Arc<Self> {
        Arc::new(Self { rescan, state: Mutex::default(), ended: Notify::new() })
    }

    /// Whether a look is due at `now` and nobody is at it; then it is the caller's.
    #[must_use]
    pub fn begin(self: &Arc<Self>, now: Instant) -> Begin {
        let mut state = self.lock();
        if state.under_way {
            return Begin::UnderWay;
        }
        let young = state.begun.is_some_and(|begun| now.saturating_duration_since(begun) < self.rescan);
        if young {
            return Begin::Fresh;
        }
        // The beginning counts: a file that changes during the look may have been passed already.
        *state = State { begun: Some(now), under_way: true };
        Begin::Due(Ticket(self.clone()))
    }

    /// Waits up to `patience` for the look that is under way, without holding a thread; whether none is any more.
    pub async fn settled(&self, patience: Duration) -> bool {
        let ended = self.ended.notified();
        tokio::pin!(ended);
        // From here on an end is not missed, so the state is asked after it.
        ended.as_mut().enable();
        if !self.lock().under_way {
            return true;
        }
        let _ = tokio::time::timeout(patience, ended).await;
        !self.lock().under_way
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every moment, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look under way. It ends when this is dropped, also by a panic.
#[derive(Debug)]
pub struct Ticket(Arc<Freshness>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.lock().under_way = false;
        self.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESCAN: Duration = Duration::from_secs(2);

    #[test]
    fn a_look_is_due_when_the_last_is_old() {
        let (freshness, now) = (Freshness::new(RESCAN), Instant::now());
        let due = |at| matches!(freshness.begin(at), Begin::Due(_));
        assert!(due(now));
        assert!(!due(now + Duration::from_millis(1999)));
        assert!(due(now + RESCAN));
        assert!(!due(now));
    }

    #[tokio::test]
    async fn others_wait_for_a_bounded_time() {
        let (freshness, now) = (Freshness::new(RESCAN), Instant::now());
        let Begin::Due(ticket) = freshness.begin(now) else { panic!("the first look is due") };
        assert!(matches!(freshness.begin(now), Begin::UnderWay));
        assert!(!freshness.settled(Duration::from_millis(1)).await);
        let waiting = tokio::spawn({
            let freshness = freshness.clone();
            async move { freshness.settled(Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        drop(ticket);
        assert!(waiting.await.unwrap());
        assert!(matches!(freshness.begin(now), Begin::Fresh));
    }

    #[tokio::test]
    async fn a_look_that_panics_does_not_lock_the_next_out() {
        let (freshness, now) = (Freshness::new(RESCAN), Instant::now());
        let look = || {
            let _ticket = freshness.begin(now);
            panic!("broken");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err());
        assert!(freshness.settled(Duration::ZERO).await && matches!(freshness.begin(now + RESCAN), Begin::Due(_)));
    }
}
