//! The index is brought up to date with the project's files before a call (`index.rescan_s`).
//!
//! Promises: an answer knows the files as they were when the last look was no older than that, or says in its note what it does not know.
//! Does not: fail a call, or wait longer for the index than `index.wait_ms`.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal};
use crate::tools::Answer;

type Refresh = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Adds the step.
#[derive(Clone)]
pub struct FreshLayer {
    refresh: Refresh,
}

impl FreshLayer {
    /// The step; `refresh` blocks and knows itself whether a look is due.
    #[must_use]
    pub fn new(refresh: Refresh) -> Self {
        Self { refresh }
    }
}

impl<S> Layer<S> for FreshLayer {
    type Service = Fresh<S>;

    fn layer(&self, inner: S) -> Fresh<S> {
        Fresh { inner, refresh: self.refresh.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Fresh<S> {
    inner: S,
    refresh: Refresh,
}

impl<S> Service<Call> for Fresh<S>
where
    S: Service<Call, Response = Answer, Error = Refusal> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Refusal;
    type Future = BoxFuture<Result<Answer, Refusal>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let refresh = self.refresh.clone();
        // The service that was polled ready is the one to call (tower's contract).
        let spare = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, spare);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || refresh()).await {
                Ok(note) => call.note = note,
                Err(_) => tracing::error!(requestId = call.request_id, "the index could not be brought up to date"),
            }
            inner.call(call).await
        })
    }
}
