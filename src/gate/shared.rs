//! What those who are at one thing share: the places of an organization, the turn in a project.
//!
//! Promises: for one key all have the same; what nobody has is forgotten when another is made, so the map is as large as what is in use.
//! Does not: hold what it gives: whoever has it does.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// What those who are at it share, by what it is about; gone with the last of them.
pub struct Shared<K, T>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T> Default for Shared<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T> Shared<K, T> {
    /// What there is for `key`, made where nobody has it.
    pub fn of(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = all.get(&key).and_then(Weak::upgrade) {
            return held;
        }
        all.retain(|_, held| held.strong_count() > 0);
        let made = Arc::new(make());
        all.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn what_is_shared_is_gone_with_the_last_who_has_it() {
        let shared: Shared<u8, Semaphore> = Shared::default();
        let first = shared.of(1, || Semaphore::new(1));
        assert!(Arc::ptr_eq(&first, &shared.of(1, || Semaphore::new(1))));
        drop(first);
        let _two = shared.of(2, || Semaphore::new(1));
        assert_eq!(shared.0.lock().unwrap().len(), 1);
    }
}
