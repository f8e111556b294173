//! Whether the service can answer (decision 79): the one state behind the endpoints' health route (`gate::health` words it) and the private
//! listener's `/readyz`.
//!
//! Promises: asked, it answers within 1 s; not ready while draining, or when the store does not answer in that time. A store that hangs holds
//! one thread, however often health is asked for.
//! Does not: know HTTP, or what else a server says of itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::Mutex;

use crate::store::{self, Selector, Store};

/// How long the store may take to answer, which takes it microseconds.
const STORE_DEADLINE: Duration = Duration::from_secs(1);

/// The state that both listeners share.
pub struct Health {
    answers: Arc<dyn Fn() -> bool + Send + Sync>,
    draining: AtomicBool,
    /// Held while the store is asked, by the thread that asks.
    asking: Arc<Mutex<()>>,
}

impl Health {
    /// A service over what `answers`, or does not: asked on the blocking pool, so it may wait.
    #[must_use]
    pub fn new(answers: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { answers, draining: false.into(), asking: Arc::default() }
    }

    /// From now on not ready, since it ends.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Whether calls can be answered.
    pub async fn ready(&self) -> bool {
        !self.draining.load(Relaxed) && tokio::time::timeout(STORE_DEADLINE, self.ask()).await.unwrap_or(false)
    }

    async fn ask(&self) -> bool {
        // Waits in line: behind one that hangs, everyone's second runs out here, where no thread is held.
        let asking = self.asking.clone().lock_owned().await;
        let answers = self.answers.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _asking = asking;
            answers()
        });
        asked.await.unwrap_or(false)
    }
}

/// Asks what every answer begins with: the generation, the newest run, and what it holds. The first alone stands on a page of its own, which a
/// damaged file may still have.
///
/// # Errors
/// As every read.
pub fn answers(store: &dyn Store) -> store::Result<()> {
    store.generation()?;
    let newest = store.select(&Selector::Latest(0), 1)?;
    newest.first().map_or(Ok(()), |run| store.evaluations(&run.run_id).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;

    fn over(model: Model) -> Health {
        Health::new(Arc::new(move || answers(&model).is_ok()))
    }

    #[tokio::test]
    async fn it_is_ready_until_it_drains() {
        let health = over(Model::default());
        assert!(health.ready().await);
        health.drain();
        assert!(!health.ready().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_not_ready_after_a_second_and_holds_one_thread() {
        let health = over(Model::default());
        // As a thread that hangs in the store holds it.
        let hanging = health.asking.clone().lock_owned().await;
        let began = tokio::time::Instant::now();
        assert!(!health.ready().await && !health.ready().await);
        assert_eq!(began.elapsed(), 2 * STORE_DEADLINE);
        drop(hanging);
        tokio::time::resume();
        assert!(health.ready().await, "and it is ready again when the store answers");
    }
}
