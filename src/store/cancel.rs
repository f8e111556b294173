//! How whoever asks a store says that nobody waits for the answer any more.
//!
//! Promises: raised once, it stays raised; to look costs one load.
//! Does not: interrupt anything itself: a handle that heeds it looks from time to time ([`Store::heeding`](super::Store::heeding)).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// A flag that one side raises and the other looks at.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// From now on nobody waits.
    pub fn raise(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn raised(&self) -> bool {
        self.0.load(Relaxed)
    }
}
