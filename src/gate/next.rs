//! What every step of the call list has in common: a step is one function over a call and what comes next.
//!
//! Promises: a [`Step`] is a `tower::Layer` through [`around`]; the service that was polled ready is the one that is called (tower's contract).
//! Does not: know any step.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal, Reply, Served};

/// The rest of the list.
pub trait Next: Service<Call, Response = Served, Error = Refusal, Future: Send> + Clone + Send + 'static {}

impl<S> Next for S where S: Service<Call, Response = Served, Error = Refusal, Future: Send> + Clone + Send + 'static {}

/// One step.
pub trait Step: Send + Sync + 'static {
    /// Answers, refuses, or hands the call on.
    fn take<N: Next>(self: Arc<Self>, call: Call, next: N) -> impl Future<Output = Reply> + Send;
}

/// `step` as a layer.
pub fn around<T: Step>(step: T) -> Around<T> {
    Around(Arc::new(step))
}

/// The same of a step that is watched from outside.
pub const fn shared<T: Step>(step: Arc<T>) -> Around<T> {
    Around(step)
}

/// A step that waits for what comes next.
pub struct Around<T>(Arc<T>);

impl<T: Step, S> Layer<S> for Around<T> {
    type Service = Stepped<T, S>;

    fn layer(&self, inner: S) -> Stepped<T, S> {
        Stepped { step: self.0.clone(), inner }
    }
}

/// A step with all that comes after it.
pub struct Stepped<T, S> {
    step: Arc<T>,
    inner: S,
}

impl<T, S: Clone> Clone for Stepped<T, S> {
    fn clone(&self) -> Self {
        Self { step: self.step.clone(), inner: self.inner.clone() }
    }
}

impl<T: Step, S: Next> Service<Call> for Stepped<T, S> {
    type Response = Served;
    type Error = Refusal;
    type Future = BoxFuture<Reply>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let spare = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, spare);
        Box::pin(self.step.clone().take(call, ready))
    }
}
