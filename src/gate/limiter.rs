//! Cells per minute and key (GCRA, from governor): N at once, and one more each 60/N seconds.
//!
//! Promises: a refusal takes no cell and says the seconds to wait, at least 1; a key that is as good as new is forgotten once there are many.
//! Does not: count anything where the rate is 0, which means off.

use std::{
    hash::Hash,
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};

/// Keys that are held before those as good as new are looked for.
const KEYS_BEFORE_PRUNING: usize = 16_384;
/// Checks between two looks at how many there are: counting them visits every shard.
const CHECKS_BETWEEN_LOOKS: u32 = 4096;

type Store<K> = DashMapStateStore<K>;
type Inner<K, C> = RateLimiter<K, Store<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A rate for each key.
pub struct Limiter<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    inner: Option<Inner<K, C>>,
    clock: C,
    checks: AtomicU32,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    /// Lets `per_minute` pass each minute for each key; 0 lets all pass.
    #[must_use]
    pub fn per_minute(per_minute: u32) -> Self {
        Self::with_clock(per_minute, DefaultClock::default())
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Limiter<K, C> {
    /// The same, on another clock.
    #[must_use]
    pub fn with_clock(per_minute: u32, clock: C) -> Self {
        let quota = NonZeroU32::new(per_minute).map(Quota::per_minute);
        let inner = quota.map(|quota| RateLimiter::new(quota, Store::default(), clock.clone()));
        Self { inner, clock, checks: AtomicU32::new(0) }
    }

    /// Takes a cell of `key`.
    ///
    /// # Errors
    /// The seconds until there is one, at least 1.
    pub fn check(&self, key: &K) -> Result<(), u64> {
        let Some(inner) = &self.inner else { return Ok(()) };
        self.prune(inner);
        inner.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
        })
    }

    /// How many keys are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.as_ref().map_or(0, RateLimiter::len)
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn prune(&self, inner: &Inner<K, C>) {
        let due = self.checks.fetch_add(1, Ordering::Relaxed) % CHECKS_BETWEEN_LOOKS == CHECKS_BETWEEN_LOOKS - 1;
        if due && inner.len() > KEYS_BEFORE_PRUNING {
            inner.retain_recent();
            inner.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;
    use std::time::Duration;

    #[test]
    fn n_at_once_then_one_each_sixtieth_of_it_and_a_refusal_takes_nothing() {
        let clock = FakeRelativeClock::default();
        let limiter = Limiter::with_clock(30, clock.clone());
        assert!((0..30).all(|_| limiter.check(&"a").is_ok()));
        // 60 s / 30 = 2 s for the next cell, however often it is asked for.
        assert!((0..100).all(|_| limiter.check(&"a") == Err(2)));
        assert_eq!(limiter.check(&"b"), Ok(()), "each caller has its own");
        clock.advance(Duration::from_millis(1500));
        assert_eq!(limiter.check(&"a"), Err(1), "half a second is rounded up");
        clock.advance(Duration::from_millis(500));
        assert_eq!((limiter.check(&"a"), limiter.check(&"a")), (Ok(()), Err(2)));
        clock.advance(Duration::from_secs(3600));
        assert_eq!((0..100).filter(|_| limiter.check(&"a").is_ok()).count(), 30, "an hour of silence saves up no more than the burst");
    }

    #[test]
    fn zero_is_off_and_holds_nothing() {
        let limiter = Limiter::per_minute(0);
        assert!((0..1000).all(|key| limiter.check(&key).is_ok()) && limiter.is_empty());
    }

    #[test]
    fn keys_that_are_as_good_as_new_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let limiter = Limiter::with_clock(600, clock.clone());
        for key in 0..200_000_u32 {
            assert_eq!(limiter.check(&key), Ok(()));
            clock.advance(Duration::from_millis(1));
        }
        assert!(limiter.len() <= KEYS_BEFORE_PRUNING + CHECKS_BETWEEN_LOOKS as usize, "{}", limiter.len());
    }
}
