//! How many requests are being answered at once, in all and, behind a proxy, for one caller.
//!
//! Promises: a place is held to the end of the answer's body, or to the moment it is dropped, so that slow readers count; past the cap in
//! all it is 503, past a proxied caller's own it is 429 (decision 6). Memory is bounded by the cap in all.
//! Does not: queue. Does not count a direct peer's requests by address: the accept loop counts its connections.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use super::{
    refusal::Barred,
    step::{Finish, Finished, Passage, refuse},
    visit::Visit,
};

/// Adds the step.
#[derive(Debug, Clone)]
pub struct InflightLayer {
    places: Places,
}

impl InflightLayer {
    /// The step: `max` in all, `per_caller` for each proxied caller.
    #[must_use]
    pub fn new(max: usize, per_caller: usize) -> Self {
        let all = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { places: Places { all, max, callers: Arc::default(), per_caller } }
    }

    /// The counts, for metrics.
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }
}

/// The places that requests hold.
#[derive(Debug, Clone)]
pub struct Places {
    all: Arc<Semaphore>,
    max: usize,
    callers: Arc<Callers>,
    per_caller: usize,
}

#[derive(Debug, Default)]
struct Callers(Mutex<HashMap<IpAddr, usize>>);

impl Callers {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// How many are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.max.saturating_sub(self.all.available_permits())
    }

    fn take(&self, visit: &Visit) -> Result<Place, Barred> {
        // The caller's own first: one caller's excess is its own fault, and tells nothing of the server.
        let own = if visit.client.proxied { Some(self.own(visit.client.address)?) } else { None };
        let all = self.all.clone().try_acquire_owned().map_err(|_| Barred::Overloaded)?;
        Ok(Place { _all: all, _own: own })
    }

    fn own(&self, address: IpAddr) -> Result<Own, Barred> {
        let mut callers = self.callers.lock();
        let held = callers.entry(address).or_default();
        if *held >= self.per_caller {
            if *held == 0 {
                callers.remove(&address);
            }
            return Err(Barred::CallerBusy { max: self.per_caller });
        }
        *held += 1;
        Ok(Own { callers: self.callers.clone(), address })
    }
}

/// What one request holds.
#[derive(Debug)]
pub struct Place {
    _all: OwnedSemaphorePermit,
    _own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    callers: Arc<Callers>,
    address: IpAddr,
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut callers = self.callers.lock();
        let Some(held) = callers.get_mut(&self.address) else { return };
        *held = held.saturating_sub(1);
        if *held == 0 {
            callers.remove(&self.address);
        }
    }
}

impl<S> Layer<S> for InflightLayer {
    type Service = Inflight<S>;

    fn layer(&self, inner: S) -> Inflight<S> {
        Inflight { inner, places: self.places.clone() }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Inflight<S> {
    inner: S,
    places: Places,
}

impl<S, B> Service<Request<B>> for Inflight<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<Finished<S::Future, Place>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match Visit::of(&request).ok_or(Barred::Internal).and_then(|visit| self.places.take(visit)) {
            Ok(place) => Passage::on(Finished::new(self.inner.call(request), place)),
            Err(barred) => Passage::stopped(refuse(request, barred)),
        }
    }
}

impl Finish for Place {
    fn finish(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| if body.is_end_stream() { body } else { Body::new(Held { body, place: Some(self) }) })
    }
}

/// A body that holds a place until it ends.
struct Held {
    body: Body,
    place: Option<Place>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.place = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::gate::{
        trial::{request, text, through},
        visit::Client,
    };

    fn from(address: &str, proxied: bool) -> Request<Body> {
        let mut request = request().body(Body::empty()).unwrap();
        request.extensions_mut().get_mut::<Visit>().unwrap().client = Client { address: address.parse().unwrap(), proxied };
        request
    }

    #[tokio::test]
    async fn a_place_is_held_to_the_end_of_the_body() {
        let layer = InflightLayer::new(2, 8);
        let first = through(&layer, from("127.0.0.1", false)).await;
        let second = through(&layer, from("127.0.0.1", false)).await;
        let refused = through(&layer, from("127.0.0.1", false)).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"], layer.places().held()), (503, &"1".parse().unwrap(), 2));
        assert_eq!((text(first).await.as_str(), layer.places().held()), ("shown", 1));
        drop(second);
        assert_eq!(layer.places().held(), 0, "a client that leaves gives its place back");
        assert_eq!(through(&layer, from("127.0.0.1", false)).await.status(), 200);
    }

    #[tokio::test]
    async fn a_place_is_given_back_with_the_last_frame_seen() {
        let layer = InflightLayer::new(1, 8);
        let mut body = through(&layer, from("127.0.0.1", false)).await.into_body();
        while body.frame().await.is_some() {}
        assert_eq!(layer.places().held(), 0);
    }

    #[tokio::test]
    async fn a_proxied_caller_has_its_own_share_and_a_direct_one_has_connections() {
        let layer = InflightLayer::new(20, 8);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(through(&layer, from("203.0.113.9", true)).await);
        }
        let refused = through(&layer, from("203.0.113.9", true)).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
        assert!(text(refused).await.contains("at most 8 at once"));
        assert_eq!(through(&layer, from("203.0.113.10", true)).await.status(), 200);
        assert_eq!(through(&layer, from("203.0.113.9", false)).await.status(), 200);
        held.pop();
        held.push(through(&layer, from("203.0.113.9", true)).await);
        assert_eq!(held.last().unwrap().status(), 200);
        held.clear();
        assert!(layer.places().callers.lock().is_empty(), "no one is remembered");
    }

    #[tokio::test]
    async fn a_refusal_in_all_gives_the_callers_place_back() {
        let layer = InflightLayer::new(0, 8);
        assert_eq!(through(&layer, from("203.0.113.9", true)).await.status(), 503);
        assert!(layer.places().callers.lock().is_empty());
    }
}
