//! The only source of time and of randomness.
//!
//! Promises: rules and stores get instants as values, so that they can be tested without waiting.
//! Does not: sleep.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crate::domain::time::Timestamp;

/// The instant now, UTC.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A point on the clock that never goes back, for durations.
#[must_use]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// A request id: unique in this process, and not guessable from another's.
#[must_use]
pub fn request_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    static SEQUENCE: AtomicU64 = AtomicU64::new(1);
    static SEED: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}", SEED.get_or_init(RandomState::new).hash_one(number))
}

/// Seconds since 1970, as tokens count them.
#[must_use]
pub fn now_s() -> u64 {
    u64::try_from(now().millis() / 1000).unwrap_or(0)
}

/// Bytes that nobody can guess.
///
/// # Errors
/// A sentence, where the system gives none.
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_differ() {
        let ids: std::collections::HashSet<String> = (0..1000).map(|_| request_id()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
