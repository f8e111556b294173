//! Whether the service can answer (decision 79): the one state behind the endpoints' health route and the private listener's `/readyz`.
//!
//! Promises: asked, it answers within 1 s; not ready while draining, or when the store does not answer in that time. A store that hangs holds
//! one thread, however often health is asked for.
//! Does not: know HTTP servers; a status is a number here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::Serialize;
use tokio::sync::Mutex;

use crate::store::Store;

/// How long the store may take to say its generation, which takes it microseconds.
const STORE_DEADLINE: Duration = Duration::from_secs(1);

/// The state that both listeners share.
pub struct Health {
    store: Arc<dyn Store>,
    draining: AtomicBool,
    tools: AtomicUsize,
    public: bool,
    /// Held while the store is asked, by the thread that asks.
    asking: Arc<Mutex<()>>,
}

/// The answer of `GET <path>/health`, to be sent as JSON with `Cache-Control: no-store`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// 200 or 503.
    pub status: u16,
    /// JSON.
    pub body: String,
}

#[derive(Serialize)]
struct Body {
    ok: bool,
    version: &'static str,
    tools: usize,
    public: bool,
}

impl Health {
    /// A service over `store` that offers `tools` tools to an anonymous or local caller.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tools: usize, public: bool) -> Self {
        Self { store, draining: false.into(), tools: tools.into(), public, asking: Arc::default() }
    }

    /// From now on not ready, since it ends.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Whether calls can be answered.
    pub async fn ready(&self) -> bool {
        !self.draining.load(Relaxed) && tokio::time::timeout(STORE_DEADLINE, self.ask()).await.unwrap_or(false)
    }

    /// The health of an endpoint.
    pub async fn report(&self) -> Report {
        let ok = self.ready().await;
        let body = Body { ok, version: env!("CARGO_PKG_VERSION"), tools: self.tools.load(Relaxed), public: self.public };
        let body = serde_json::to_string(&body).unwrap_or_else(|_| format!("{{\"ok\":{ok}}}"));
        Report { status: if ok { 200 } else { 503 }, body }
    }

    async fn ask(&self) -> bool {
        // Waits in line: behind one that hangs, everyone's second runs out here, where no thread is held.
        let asking = self.asking.clone().lock_owned().await;
        let store = self.store.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _asking = asking;
            store.generation().is_ok()
        });
        asked.await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;

    #[tokio::test]
    async fn health_is_the_body_of_decision_79() {
        let health = Health::new(Arc::new(Model::default()), 6, false);
        let version = env!("CARGO_PKG_VERSION");
        let body = |ok| format!(r#"{{"ok":{ok},"version":"{version}","tools":6,"public":false}}"#);
        assert_eq!(health.report().await, Report { status: 200, body: body(true) });
        health.drain();
        assert_eq!(health.report().await, Report { status: 503, body: body(false) });
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_not_ready_after_a_second_and_holds_one_thread() {
        let health = Health::new(Arc::new(Model::default()), 6, false);
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
