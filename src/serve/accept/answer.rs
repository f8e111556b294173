//! From hyper's request to the gate's service and back: the visit on the way in, the count of what is in flight on the way out.
//!
//! Promises: a request is in flight until its response's body is taken or dropped; a body goes out in pieces, so that neither hyper nor h2
//! ever holds much of it and a client that takes none is noticed; more headers than allowed are 431 on HTTP/2 too.
//! Does not: change what a body says.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tower::{Service, ServiceExt};

use super::ledger::{InFlight, Ledger};
use crate::gate::visit::Visit;

/// What is handed over at a time: one HTTP/2 frame. The rate below which a client counts as stalled is this per stall bound.
const PIECE_BYTES: usize = 16 * 1024;

/// The gate's service as hyper calls it, for one connection.
pub(super) struct Counter<S> {
    pub(super) service: S,
    pub(super) peer: SocketAddr,
    pub(super) headers_max: usize,
    pub(super) ledger: Arc<Ledger>,
}

impl<S> hyper::service::Service<Request<Incoming>> for Counter<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Pieces>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let mut in_flight = self.ledger.begin();
        // Hyper holds HTTP/1.1 to it; h2 counts bytes only.
        let too_many = request.headers().len() > self.headers_max;
        request.extensions_mut().insert(Visit::new(self.peer));
        let service = self.service.clone();
        Box::pin(async move {
            let response = if too_many { too_many_headers() } else { service.oneshot(request).await? };
            in_flight.answered();
            Ok(response.map(|body| Pieces { body, rest: Bytes::new(), in_flight }))
        })
    }
}

/// As hyper says it for HTTP/1.1: no body, before the gate.
fn too_many_headers() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response
}

/// A response's body in pieces, counted.
pub(super) struct Pieces {
    body: Body,
    /// What is left of the last frame.
    rest: Bytes,
    in_flight: InFlight,
}

impl Pieces {
    fn piece(&mut self) -> Frame<Bytes> {
        self.in_flight.offered();
        Frame::data(self.rest.split_to(self.rest.len().min(PIECE_BYTES)))
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // To be asked is to know that the last piece was taken.
        self.in_flight.taken();
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let frame = ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), context));
        match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => {
                self.rest = data;
                Poll::Ready(Some(Ok(self.piece())))
            }
            Some(Ok(Err(trailers))) => {
                self.in_flight.offered();
                Poll::Ready(Some(Ok(trailers)))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (u64::try_from(self.rest.len()).unwrap_or(u64::MAX), self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::serve::accept::Settings;

    #[tokio::test]
    async fn a_body_is_the_same_in_pieces() {
        for size in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES - 3] {
            let text: Vec<u8> = (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect();
            let in_flight = Ledger::new(&Settings::default()).begin();
            let mut pieces = Pieces { body: Body::from(text.clone()), rest: Bytes::new(), in_flight };
            let mut taken = Vec::new();
            while let Some(frame) = pieces.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                assert!(data.len() <= PIECE_BYTES);
                taken.extend_from_slice(&data);
                assert_eq!(pieces.size_hint().exact(), Some(u64::try_from(size - taken.len()).unwrap()));
                assert_eq!(pieces.is_end_stream(), taken.len() == size);
            }
            assert_eq!(taken, text);
        }
    }
}
