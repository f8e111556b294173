//! What every step of the call list has in common: a step is one function over a call and what comes next.
//!
//! Promises: a [`Step`] is a `tower::Layer` through [`around`]; a step is always ready and whatever has to wait waits in its future, so that
//! what comes next may be called at once, without asking whether it is ready.
//! Does not: know any step; take a service behind it that has to be asked first.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::{BoxFuture, Call, Refusal, Reply, Served};

/// The rest of the list.
pub trait Next: Service<Call, Response = Served, Error = Refusal, Future: Send> + Clone + Send + Sync + 'static {}

impl<S> Next for S where S: Service<Call, Response = Served, Error = Refusal, Future: Send> + Clone + Send + Sync + 'static {}

/// One step.
pub trait Step: Send + Sync + 'static {
    /// Whether `call` is none of its business, and goes on at once: cheaper than a step that only hands it on.
    fn passes(&self, _call: &Call) -> bool {
        false
    }

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
        Stepped(Arc::new(Parts { step: self.0.clone(), inner }))
    }
}

/// A step with all that comes after it. Every call has a copy of its own, so a copy is one count and not one for each step that follows.
pub struct Stepped<T, S>(Arc<Parts<T, S>>);

struct Parts<T, S> {
    step: Arc<T>,
    inner: S,
}

impl<T, S> Clone for Stepped<T, S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Step, S: Next> Service<Call> for Stepped<T, S> {
    type Response = Served;
    type Error = Refusal;
    type Future = BoxFuture<Reply>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let Parts { step, inner } = &*self.0;
        if step.passes(&call) {
            return Box::pin(inner.clone().call(call));
        }
        Box::pin(step.clone().take(call, inner.clone()))
    }
}
