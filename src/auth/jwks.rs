//! The keys of one issuer over time: read, kept, read again, and kept through an outage.
//!
//! Promises: whoever needs a key gets the last good set at once; a new one is read beside them, when it is due. A token that names a key
//! nobody knows starts at most one reading in [`Limits::again_s`], whoever and however many ask; all who ask meanwhile wait for that one.
//! A place that does not answer, or answers with no key set, changes nothing until the last good set is older than [`Limits::age_max_s`].
//! Does not: look at tokens, or read the clock: every instant is handed in.

mod set;
mod source;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

pub use self::{
    set::{Algorithm, Found, Key, KeySet},
    source::{Authorities, Fetch, FetchFault, Fixed, FromFile, FromUrl, is_fetchable, is_loopback},
};

/// How often a place is asked, and how long its last answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Seconds that must pass between two readings for keys that nobody knows, and after a reading that failed.
    pub again_s: u64,
    /// Seconds that a set holds after it was last read.
    pub age_max_s: u64,
    /// Keys of one set.
    pub keys_max: usize,
    /// How long one reading may take.
    pub deadline: Duration,
}

/// The keys of one issuer.
pub struct Keys {
    name: String,
    place: Arc<dyn Fetch>,
    every_s: u64,
    limits: Limits,
    state: RwLock<State>,
    /// Held by the one that reads.
    flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// When the set was last read.
    read_at_s: u64,
    /// When a reading last began that nobody had planned.
    asked_at_s: Option<u64>,
    /// When a reading last failed, after the last that did not.
    failed_at_s: Option<u64>,
    generation: u64,
    /// How often the set was read.
    readings: u64,
}

/// A key set, and a number that changes with it.
#[derive(Debug, Clone)]
pub struct Current {
    /// The keys.
    pub set: Arc<KeySet>,
    /// Another for each other set of this issuer.
    pub generation: u64,
}

impl Keys {
    /// The keys of the issuer `name` at `place`, read again each `every_s` seconds; none until they are read.
    #[must_use]
    pub fn new(name: &str, place: Arc<dyn Fetch>, every_s: u64, limits: Limits) -> Self {
        Self { name: name.to_owned(), place, every_s, limits, state: RwLock::default(), flight: tokio::sync::Mutex::default() }
    }

    /// The last good set, unless it is too old at `now_s` (seconds since 1970).
    #[must_use]
    pub fn current(&self, now_s: u64) -> Option<Current> {
        self.read_state(|state| state.current.clone().filter(|_| now_s.saturating_sub(state.read_at_s) <= self.limits.age_max_s))
    }

    /// The generation of [`Self::current`].
    #[must_use]
    pub fn generation(&self, now_s: u64) -> Option<u64> {
        self.current(now_s).map(|current| current.generation)
    }

    /// Reads the set if it is time to: it is old, or the last reading failed a while ago. For whoever comes by regularly.
    ///
    /// # Errors
    /// Why it was not read, for the log.
    pub async fn tend(&self, now_s: u64) -> Result<(), String> {
        if !self.read_state(|state| self.is_due(state, now_s)) {
            return Ok(());
        }
        let _one = self.flight.lock().await;
        if self.read_state(|state| self.is_due(state, now_s)) { self.read(now_s).await } else { Ok(()) }
    }

    /// Looks for a set that may be newer, where that was not done within [`Limits::again_s`]; where it is being done, waits for its end.
    pub async fn look_again(self: &Arc<Self>, now_s: u64) {
        if !self.read_state(|state| self.may_ask(state, now_s)) {
            drop(self.flight.lock().await);
            return;
        }
        let (this, before) = (Arc::clone(self), self.readings());
        // A task of its own: whoever asked may leave, and the others still get the set.
        let look = tokio::spawn(async move {
            let _one = this.flight.lock().await;
            // Whatever was read since they asked is as new as what they would get.
            if this.readings() == before
                && this.claim(now_s)
                && let Err(fault) = this.read(now_s).await
            {
                tracing::warn!(issuer = this.name.as_str(), "the key set was looked for and not read: {fault}");
            }
        });
        // It ends by its own deadline; if it fell over, the set is what it was.
        let _ = look.await;
    }

    fn claim(&self, now_s: u64) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let may = self.may_ask(&state, now_s);
        if may {
            state.asked_at_s = Some(now_s);
        }
        may
    }

    fn may_ask(&self, state: &State, now_s: u64) -> bool {
        state.asked_at_s.is_none_or(|at| passed(at, now_s, self.limits.again_s))
    }

    fn is_due(&self, state: &State, now_s: u64) -> bool {
        match state.failed_at_s {
            Some(at) => passed(at, now_s, self.limits.again_s),
            None => state.current.is_none() || passed(state.read_at_s, now_s, self.every_s),
        }
    }

    async fn read(&self, now_s: u64) -> Result<(), String> {
        let place = self.place.clone();
        let fetching = tokio::task::spawn_blocking(move || place.fetch());
        // The place has a deadline of its own; the second more is for one that does not keep it.
        let fetched = tokio::time::timeout(self.limits.deadline + Duration::from_secs(1), fetching).await;
        let read = match fetched {
            Ok(Ok(Ok(document))) => KeySet::read(&document, self.limits.keys_max).map_err(|fault| fault.to_string()),
            Ok(Ok(Err(fault))) => Err(fault.to_string()),
            Ok(Err(_)) => Err("the reading fell over".to_owned()),
            Err(_) => Err("it took too long".to_owned()),
        };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(set) => self.keep(&mut state, set, now_s),
            Err(fault) => {
                state.failed_at_s = Some(now_s);
                return Err(fault);
            }
        }
        Ok(())
    }

    fn keep(&self, state: &mut State, set: KeySet, now_s: u64) {
        (state.read_at_s, state.failed_at_s) = (now_s, None);
        state.readings += 1;
        if state.current.as_ref().is_some_and(|current| current.set.is_of(&set)) {
            return;
        }
        let (usable, left_out) = set.counts();
        tracing::info!(issuer = self.name.as_str(), usable, left_out, "a new key set was read");
        state.generation += 1;
        state.current = Some(Current { set: Arc::new(set), generation: state.generation });
    }

    fn readings(&self) -> u64 {
        self.read_state(|state| state.readings)
    }

    fn read_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether `wait_s` have passed since `at_s`; a clock that was set back counts as passed, so that nothing waits for it to catch up.
const fn passed(at_s: u64, now_s: u64, wait_s: u64) -> bool {
    now_s < at_s || now_s - at_s >= wait_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::jwt::trial::{Place, Signer};

    const LIMITS: Limits = Limits { again_s: 30, age_max_s: 3600, keys_max: 64, deadline: Duration::from_secs(20) };

    fn keys(place: &Arc<Place>) -> Arc<Keys> {
        Arc::new(Keys::new("i", place.clone(), 300, LIMITS))
    }

    fn has(keys: &Keys, id: &str, now_s: u64) -> bool {
        keys.current(now_s).is_some_and(|current| matches!(current.set.find(Some(id), Algorithm::EdDsa), Found::Key(_)))
    }

    #[tokio::test]
    async fn a_set_is_read_when_it_is_due_and_not_before() {
        let (a, b) = (Signer::ed25519("a"), Signer::ed25519("b"));
        let place = Arc::new(Place::with(&[&a]));
        let keys = keys(&place);
        assert!(keys.current(1000).is_none());
        keys.tend(1000).await.unwrap();
        assert!(has(&keys, "a", 1000) && keys.generation(1000) == Some(1));
        place.set(&[&b]);
        keys.tend(1299).await.unwrap();
        assert!(place.asked() == 1 && has(&keys, "a", 1299));
        keys.tend(1300).await.unwrap();
        assert!(has(&keys, "b", 1300) && !has(&keys, "a", 1300) && keys.generation(1300) == Some(2));
        keys.tend(1600).await.unwrap();
        assert_eq!((place.asked(), keys.generation(1600)), (3, Some(2)), "the same document is the same set");
        keys.tend(900).await.unwrap();
        assert_eq!(place.asked(), 4, "a clock that was set back does not stop the reading");
    }

    #[tokio::test]
    async fn an_outage_is_survived_until_the_set_is_too_old() {
        let place = Arc::new(Place::with(&[&Signer::ed25519("a")]));
        let keys = keys(&place);
        keys.tend(0).await.unwrap();
        place.fail();
        assert_eq!(keys.tend(300).await, Err("it cannot be read: it is down".to_owned()));
        assert_eq!(keys.tend(329).await, Ok(()), "not asked again at once");
        assert!(keys.tend(330).await.is_err() && place.asked() == 3);
        assert!(has(&keys, "a", 3600) && !has(&keys, "a", 3601) && keys.generation(3601).is_none());
        place.set(&[&Signer::ed25519("b")]);
        keys.tend(3601).await.unwrap();
        assert!(has(&keys, "b", 3601));
    }

    #[tokio::test]
    async fn what_is_no_set_changes_nothing_and_an_empty_one_withdraws_all() {
        let place = Arc::new(Place::with(&[&Signer::ed25519("a")]));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), place.fetch().unwrap()).unwrap();
        let keys = Keys::new("i", Arc::new(FromFile::new(file.path().to_owned(), 4096)), 300, LIMITS);
        keys.tend(0).await.unwrap();
        for bad in ["", "<html>", "{\"keys\":7}"] {
            std::fs::write(file.path(), bad).unwrap();
            assert!(keys.read(1).await.is_err() && has(&keys, "a", 1), "{bad}");
        }
        std::fs::write(file.path(), "{\"keys\":[]}").unwrap();
        keys.read(2).await.unwrap();
        assert!(!has(&keys, "a", 2) && keys.generation(2) == Some(2));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_storm_of_unknown_keys_is_one_reading_and_all_wait_for_it() {
        let (a, b) = (Signer::ed25519("a"), Signer::ed25519("b"));
        let place = Arc::new(Place::with(&[&a]));
        let keys = keys(&place);
        keys.tend(0).await.unwrap();
        place.set(&[&a, &b]);
        let storm: Vec<_> = {
            let _held = place.held.lock().unwrap();
            let ask = |keys: Arc<Keys>| async move {
                keys.look_again(5).await;
                has(&keys, "b", 5)
            };
            (0..200).map(|_| tokio::spawn(ask(keys.clone()))).collect()
        };
        for one in storm {
            assert!(one.await.unwrap(), "each sees the new key");
        }
        assert_eq!(place.asked(), 2);
        keys.look_again(34).await;
        assert_eq!(place.asked(), 2, "once in 30 seconds");
        keys.look_again(35).await;
        assert_eq!(place.asked(), 3);
    }

    #[tokio::test]
    async fn whoever_asked_may_leave() {
        let (a, b) = (Signer::ed25519("a"), Signer::ed25519("b"));
        let place = Arc::new(Place::with(&[&a]));
        let keys = keys(&place);
        keys.tend(0).await.unwrap();
        place.set(&[&b]);
        {
            let asked = keys.look_again(5);
            tokio::pin!(asked);
            assert!(polled(asked.as_mut()).is_pending());
        }
        keys.look_again(5).await;
        assert!(has(&keys, "b", 5) && place.asked() == 2);
    }

    /// Polls once.
    fn polled<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
