//! A rate for each of many keys: GCRA, burst N, N a minute (decisions 32 and 33).
//!
//! Promises: what is refused takes nothing; a wait is at least one second; the clock never goes back. Memory is bounded: keys that are as
//! good as new are forgotten every few thousand newcomers, and past a hard cap newcomers share a fixed set of cells, so that an attacker
//! with many addresses can neither grow us, nor lock others out for good, nor make us forget who is over.
//! Does not: know what a key is, or why it is counted. 0 a minute is off.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, MonotonicClock},
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{
        InMemoryState, NotKeyed, StateStore,
        keyed::{DashMapStateStore, ShrinkableKeyedStateStore},
    },
};

/// Keys kept at most. 32 bytes each for addresses: 4 to 8 MB.
const KEYS_MAX: usize = 131_072;
/// Newcomers between two looks for keys to forget.
const PRUNE_EVERY: usize = 4_096;
/// The cells that newcomers share past the cap.
const SHARED: usize = 1_024;

type Gcra<K, C> = RateLimiter<K, Cells<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A rate for each key.
pub struct Limiter<K: Hash + Eq + Clone, C: Clock = MonotonicClock> {
    on: Option<Gcra<K, C>>,
    cells: Cells<K>,
    clock: C,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    /// `per_minute` for each key; 0 is off.
    #[must_use]
    pub fn new(per_minute: u32) -> Self {
        Self::bounded(per_minute, KEYS_MAX)
    }

    /// The same, keeping at most `keys_max` keys.
    #[must_use]
    pub fn bounded(per_minute: u32, keys_max: usize) -> Self {
        Self::with_clock(per_minute, keys_max, MonotonicClock)
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Limiter<K, C> {
    fn with_clock(per_minute: u32, keys_max: usize, clock: C) -> Self {
        let cells = Cells(Arc::new(Store::new(keys_max)));
        let on = NonZeroU32::new(per_minute).map(|n| RateLimiter::new(Quota::per_minute(n), cells.clone(), clock.clone()));
        Self { on, cells, clock }
    }

    /// Takes one from `key`'s share.
    ///
    /// # Errors
    /// The seconds until there is one to take, at least 1; nothing was taken.
    pub fn check(&self, key: &K) -> Result<(), u64> {
        let Some(limiter) = &self.on else { return Ok(()) };
        if self.cells.0.due() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        limiter.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
        })
    }

    /// How many keys are kept now, for metrics.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.cells.0.own.len()
    }
}

/// Where the cells are: governor's own keyed store, bounded.
struct Cells<K: Hash + Eq>(Arc<Store<K>>);

impl<K: Hash + Eq> Clone for Cells<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Store<K: Hash + Eq> {
    own: DashMapStateStore<K, RandomState>,
    shared: Box<[InMemoryState]>,
    hasher: RandomState,
    keys_max: usize,
    /// Keys kept, counted high rather than low; set right at each look.
    kept: AtomicUsize,
    /// Newcomers since the last look.
    newcomers: AtomicUsize,
}

impl<K: Hash + Eq> Store<K> {
    fn new(keys_max: usize) -> Self {
        Self {
            own: DashMapStateStore::with_hasher(RandomState::new()),
            shared: (0..SHARED).map(|_| InMemoryState::default()).collect(),
            hasher: RandomState::new(),
            keys_max,
            kept: AtomicUsize::new(0),
            newcomers: AtomicUsize::new(0),
        }
    }

    /// Whether it is time to forget; says so to one of those who ask at once.
    fn due(&self) -> bool {
        let since = self.newcomers.load(Ordering::Relaxed);
        since >= PRUNE_EVERY && self.newcomers.compare_exchange(since, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Where a newcomer past the cap is counted: with all others of its hash, which no one outside can choose.
    fn together(&self, key: &K) -> Option<&InMemoryState> {
        let at = usize::try_from(self.hasher.hash_one(key) % SHARED as u64).unwrap_or_default();
        self.shared.get(at)
    }
}

impl<K: Hash + Eq + Clone> StateStore for Cells<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let store = &*self.0;
        if !store.own.contains_key(key) {
            store.newcomers.fetch_add(1, Ordering::Relaxed);
            if store.kept.load(Ordering::Relaxed) >= store.keys_max
                && let Some(shared) = store.together(key)
            {
                return shared.measure_and_replace(&NotKeyed::NonKey, f);
            }
            store.kept.fetch_add(1, Ordering::Relaxed);
        }
        store.own.measure_and_replace(key, f)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Cells<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.own.retain_recent(drop_below);
        self.0.kept.store(self.0.own.len(), Ordering::Relaxed);
    }

    fn shrink_to_fit(&self) {
        // Only where most of it is empty: shrinking hashes everything again.
        if self.0.own.capacity() > 4 * self.0.own.len() + PRUNE_EVERY {
            self.0.own.shrink_to_fit();
        }
    }

    fn len(&self) -> usize {
        self.0.own.len()
    }

    fn is_empty(&self) -> bool {
        self.0.own.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter(per_minute: u32, keys_max: usize) -> (Limiter<u32, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Limiter::with_clock(per_minute, keys_max, clock.clone()), clock)
    }

    #[test]
    fn a_burst_of_n_and_then_n_a_minute() {
        let (limiter, clock) = limiter(3, 10);
        assert!((0..3).all(|_| limiter.check(&1).is_ok()));
        assert_eq!((limiter.check(&1), limiter.check(&2)), (Err(20), Ok(())), "each key has its own");
        clock.advance(Duration::from_millis(19_500));
        assert_eq!(limiter.check(&1), Err(1), "never 0, rounded up");
        // Had the refused ones taken anything, this would be refused.
        clock.advance(Duration::from_millis(500));
        assert_eq!((limiter.check(&1), limiter.check(&1)), (Ok(()), Err(20)));
        clock.advance(Duration::from_secs(3600));
        assert!((0..3).all(|_| limiter.check(&1).is_ok()) && limiter.check(&1).is_err(), "what is not used does not add up");
    }

    #[test]
    fn none_a_minute_is_off() {
        let (limiter, _) = limiter(0, 10);
        assert!((0..10_000).all(|_| limiter.check(&1).is_ok()));
        assert_eq!(limiter.keys(), 0);
    }

    #[test]
    fn a_hundred_thousand_passers_by_are_forgotten() {
        let (limiter, clock) = limiter(60, KEYS_MAX);
        for key in 0..100_000 {
            assert_eq!(limiter.check(&key), Ok(()));
            clock.advance(Duration::from_millis(1));
        }
        // One cell of 60 a minute is back after a second, and is forgotten one second later: 2,000 keys, and those since the last look.
        assert!(limiter.keys() <= 2_000 + 2 * PRUNE_EVERY, "{}", limiter.keys());
    }

    #[test]
    fn past_the_cap_newcomers_share_and_the_old_are_remembered() {
        let (limiter, clock) = limiter(2, 100);
        assert!((0..2).all(|_| limiter.check(&0).is_ok()) && limiter.check(&0).is_err());
        let refused = (1..20_000).filter(|key| limiter.check(key).is_err()).count();
        assert!(limiter.keys() <= 100, "{}", limiter.keys());
        // 99 of their own, and 2 for each shared cell.
        assert_eq!(refused, 19_999 - 99 - 2 * SHARED);
        assert!(limiter.check(&0).is_err(), "a crowd does not make us forget who is over");
        clock.advance(Duration::from_secs(600));
        assert!((20_000..30_000).filter(|key| limiter.check(key).is_ok()).count() > 2 * SHARED, "it does not last");
    }
}
