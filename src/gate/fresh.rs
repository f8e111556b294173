//! The index is brought up to date with the project's files before a call (`index.rescan_s`), and the store's generation is read.
//!
//! Promises: an answer, a cached one too, knows the files as they were when the last look was no older than that: this step stands before the
//! cache, whose key has the generation that was read after the look. Both take one hop to the blocking pool.
//! What the index does not know yet, or could not read, is a note for the answer, and part of the cache's key.
//! Does not: fail a call because of a file. A generation that cannot be read is none, and
//! such a call is not cached.

use std::{sync::Arc, time::Duration};

use super::{
    Call, Refusal, Reply, Settings,
    next::{Next, Step},
};
use crate::store::Store;

/// The step.
pub struct Fresh {
    refresh: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    store: Arc<dyn Store>,
    within: Duration,
}

impl Fresh {
    /// The step. A first import takes its time, so it has the deadline of a call.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { refresh: settings.refresh.clone(), store: settings.store.clone(), within: settings.call_timeout }
    }

    fn look(self: Arc<Self>) -> (Option<String>, Option<u64>) {
        let note = (self.refresh)();
        (note, self.store.generation().ok())
    }
}

impl Step for Fresh {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        let within = self.within;
        let looking = tokio::task::spawn_blocking(move || self.look());
        match tokio::time::timeout(within, looking).await {
            Ok(Ok((note, generation))) => (call.generation, call.note) = (generation, note),
            Ok(Err(_)) => tracing::error!(requestId = call.request_id, "the index could not be brought up to date"),
            Err(_) => return Err(Refusal::Timeout { tool: call.entry.name, seconds: within.as_secs() }),
        }
        next.call(call).await
    }
}
