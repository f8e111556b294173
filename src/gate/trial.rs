//! What the tests of the door's steps share: a request, a body in pieces, an endpoint that shows what it got.
//!
//! Promises: nothing of it is in the program.
//! Does not: open sockets; `tests/it` does.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, request::Builder};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use tower::{Layer, Service, ServiceExt};

use super::visit::{Route, Visit};

/// A request to `/mcp` from the loopback whose route is known.
pub fn request() -> Builder {
    let mut visit = Visit::new("127.0.0.1:5000".parse().unwrap());
    visit.request_id = "r1".into();
    visit.route = Some(Route::Mcp(0));
    Request::builder().method("POST").uri("/mcp").extension(visit)
}

/// An endpoint that answers 200 and keeps what it got in the answer's extensions.
#[derive(Clone)]
pub struct Shows;

impl<B: 'static> Service<Request<B>> for Shows {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut response = Response::new(Body::from("shown"));
        if let Some(visit) = Visit::of(&request) {
            response.extensions_mut().insert(visit.clone());
        }
        response.extensions_mut().insert(request.headers().clone());
        let body: &dyn std::any::Any = request.body();
        if let Some(bytes) = body.downcast_ref::<Bytes>() {
            response.extensions_mut().insert(bytes.clone());
        }
        std::future::ready(Ok(response))
    }
}

/// Sends one request through one step before [`Shows`].
pub async fn through<L, B>(layer: &L, request: Request<B>) -> Response<Body>
where
    L: Layer<Shows>,
    L::Service: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    layer.layer(Shows).oneshot(request).await.unwrap()
}

/// The text of an answer.
pub async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// How a body in pieces ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Well,
    Never,
    Badly,
}

/// A body that comes in pieces, and does not say how long it is.
#[derive(Clone)]
pub struct Pieces(VecDeque<Bytes>, Ends);

pub fn pieces(pieces: &[&'static str], ends: Ends) -> Pieces {
    Pieces(pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect(), ends)
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match (self.0.pop_front(), self.1) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, Ends::Well) => Poll::Ready(None),
            (None, Ends::Never) => Poll::Pending,
            (None, Ends::Badly) => Poll::Ready(Some(Err(std::io::Error::other("gone")))),
        }
    }
}
