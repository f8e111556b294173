//! The index is brought up to date with the project's files before a call (`index.rescan_s`), and the store's generation is read.
//!
//! Promises: an answer, a cached one too, knows the files as they were when the last look was no older than that: this step stands before the
//! cache, whose key has the generation that was read after the look. Waiting for a look holds no thread, so that those who wait starve nobody.
//! What the index does not know yet, or could not read, is a note for the answer, and part of the cache's key; who may not read texts is told
//! only that there is something.
//! Does not: fail a call because of a file. A generation that cannot be read is none, and such a call is not cached.

use std::{sync::Arc, time::Duration};

use super::{
    Call, Refusal, Reply, Settings,
    next::{Next, Step},
    project::Project,
};
use crate::store::Store;

/// The step.
pub struct Fresh {
    within: Duration,
}

impl Fresh {
    /// The step. A first import takes its time, so it has the deadline of a call.
    #[must_use]
    pub const fn new(settings: &Settings) -> Self {
        Self { within: settings.call_timeout }
    }

    async fn look(&self, project: Option<&Project>) -> (Option<String>, Option<u64>) {
        let Some(project) = project else { return (None, None) };
        let note = (project.refresh)().await;
        let generation = match project.store.generation_at_once() {
            Some(generation) => Some(generation),
            None => self.wait_for_generation(project.store.clone()).await,
        };
        (note, generation)
    }

    async fn wait_for_generation(&self, store: Arc<dyn Store>) -> Option<u64> {
        let reading = tokio::task::spawn_blocking(move || store.generation().ok());
        let _given_up = AbortOnDrop(reading.abort_handle());
        reading.await.unwrap_or_default()
    }
}

/// Takes work that has not begun off the blocking pool's queue when the call that wanted it is gone.
pub(super) struct AbortOnDrop(pub(super) tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Step for Fresh {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        let Ok((note, generation)) = tokio::time::timeout(self.within, self.look(call.project.as_ref())).await else {
            return Err(Refusal::Timeout { tool: call.entry.name, seconds: self.within.as_secs() });
        };
        call.generation = generation;
        call.note = if call.caller.holds("traces:read") {
            note
        } else {
            note.map(|_| "Not all of the project's logs are in this answer.".to_owned())
        };
        next.call(call).await
    }
}
