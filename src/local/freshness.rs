//! Whether it is time to look at the files again.
//!
//! Promises: usable from several threads; one of them looks, others wait for it for a bounded time and then go on with what is there; a
//! look that panics does not lock the next one out.
//! Does not: read a clock (the caller says what time it is) or look itself.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// When the last look was, and whether one is under way.
#[derive(Debug)]
pub struct Freshness {
    rescan: Duration,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    begun: Option<Instant>,
    under_way: bool,
}

/// What asking for a look came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// The last look is young enough.
    Fresh,
    /// This caller looked.
    Looked(T),
    /// Another thread's look ended while this one waited.
    Waited,
    /// Another thread's look takes longer than this one wanted to wait: what is there may be old, which an answer can say.
    UnderWay,
}

impl Freshness {
    /// A look is due when the last one began longer than `rescan` ago.
    #[must_use]
    pub fn new(rescan: Duration) -> Self {
        Self { rescan, state: Mutex::default(), ended: Condvar::new() }
    }

    /// Calls `look` where one is due at `now` and nobody else is at it; waits up to `patience` for one that is under way.
    pub fn look<T>(&self, now: Instant, patience: Duration, look: impl FnOnce() -> T) -> Look<T> {
        let mut state = self.lock();
        if state.under_way {
            return self.wait(state, patience);
        }
        let young = state.begun.is_some_and(|begun| now.saturating_duration_since(begun) < self.rescan);
        if young {
            return Look::Fresh;
        }
        // The beginning counts: a file that changes during the look may have been passed already.
        *state = State { begun: Some(now), under_way: true };
        drop(state);
        let _ended = Ended(self);
        Look::Looked(look())
    }

    /// Makes the next look due, whatever the time.
    pub fn expire(&self) {
        self.lock().begun = None;
    }

    fn wait<T>(&self, state: MutexGuard<'_, State>, patience: Duration) -> Look<T> {
        let waited = self.ended.wait_timeout_while(state, patience, |state| state.under_way);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.under_way { Look::UnderWay } else { Look::Waited }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every moment, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the look as ended, also when it panicked.
struct Ended<'a>(&'a Freshness);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way = false;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const RESCAN: Duration = Duration::from_secs(2);

    #[test]
    fn a_look_is_due_when_the_last_is_old() {
        let (freshness, now) = (Freshness::new(RESCAN), Instant::now());
        let look = |at| freshness.look(at, Duration::ZERO, || ());
        assert_eq!(look(now), Look::Looked(()));
        assert_eq!(look(now + Duration::from_millis(1999)), Look::Fresh);
        assert_eq!(look(now + RESCAN), Look::Looked(()));
        assert_eq!(look(now), Look::Fresh);
        freshness.expire();
        assert_eq!(look(now), Look::Looked(()));
    }

    #[test]
    fn others_wait_for_a_bounded_time() {
        let (freshness, now) = (&Freshness::new(RESCAN), Instant::now());
        let (begun_in, begun) = mpsc::channel();
        let (end, end_out) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let looking = scope.spawn(move || {
                freshness.look(now, Duration::ZERO, || {
                    begun_in.send(()).unwrap();
                    end_out.recv().unwrap();
                })
            });
            begun.recv().unwrap();
            assert_eq!(freshness.look(now, Duration::from_millis(1), || ()), Look::UnderWay);
            let waiting = scope.spawn(|| freshness.look(now, Duration::from_secs(60), || ()));
            end.send(()).unwrap();
            assert_eq!(looking.join().unwrap(), Look::Looked(()));
            // It waited, or came after the end and found it fresh.
            assert!(matches!(waiting.join().unwrap(), Look::Waited | Look::Fresh));
        });
    }

    #[test]
    fn a_look_that_panics_does_not_lock_the_next_out() {
        let (freshness, now) = (Freshness::new(RESCAN), Instant::now());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| freshness.look(now, Duration::ZERO, || panic!("broken"))));
        assert!(panicked.is_err());
        assert_eq!(freshness.look(now + RESCAN, Duration::ZERO, || ()), Look::Looked(()));
    }
}
