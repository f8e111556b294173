//! The two shapes that most steps of the door have: a look at the head that lets in or bars, and a hand laid on the answer.
//!
//! Promises: no allocation on the way in; a refusal reads a bounded part of the body first, so that the client can read the answer.
//! Does not: know any rule.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes};
use http::{HeaderValue, Request, Response, header};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tower::Service;

use super::{BoxFuture, refusal::Barred, visit::Visit};

/// What each step gives: an answer, always.
pub type Answered = Result<Response<Body>, Infallible>;

/// A client that writes gets its refusal only once it has written: so much of a body is read and thrown away for it, ...
const DRAIN_BYTES_MAX: usize = 2 * 1024 * 1024;
/// ... and for so long.
const DRAIN_FOR_MAX: Duration = Duration::from_secs(1);

/// A rule over a request's head.
pub trait Check: Clone {
    /// Lets the request on, or says why not. May write to the request's [`Visit`].
    ///
    /// # Errors
    /// Why the request is barred.
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred>;
}

/// A step that is one [`Check`].
#[derive(Debug, Clone)]
pub struct Checked<S, C> {
    inner: S,
    check: C,
}

impl<S, C> Checked<S, C> {
    /// The step `check` before `inner`.
    pub const fn new(inner: S, check: C) -> Self {
        Self { inner, check }
    }
}

impl<S, C, B> Service<Request<B>> for Checked<S, C>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    C: Check,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.check.check(&mut request) {
            Ok(()) => Passage::on(self.inner.call(request)),
            Err(barred) => Passage::stopped(refuse(request, barred)),
        }
    }
}

pin_project! {
    /// The way on, or an answer given here.
    #[project = Ways]
    #[expect(missing_docs, reason = "pin-project-lite takes no doc comment on a pinned field of an enum")]
    pub enum Passage<F> {
        /// What follows answers.
        On {
            #[pin]
            inner: F,
        },
        /// This step answers.
        Stopped {
            answer: BoxFuture<Answered>,
        },
    }
}

impl<F> Passage<F> {
    /// What follows answers.
    pub const fn on(inner: F) -> Self {
        Self::On { inner }
    }

    /// This step answers.
    pub fn stopped(answer: BoxFuture<Answered>) -> Self {
        Self::Stopped { answer }
    }

    /// This step answers at once.
    pub fn answered(response: Response<Body>) -> Self {
        Self::stopped(Box::pin(std::future::ready(Ok(response))))
    }
}

impl<F: Future<Output = Answered>> Future for Passage<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        match self.project() {
            Ways::On { inner } => inner.poll(context),
            Ways::Stopped { answer } => answer.as_mut().poll(context),
        }
    }
}

/// An answer of JSON; to HEAD only its head.
pub fn json(text: impl Into<Bytes>, head: bool) -> Response<Body> {
    let text = text.into();
    let length = HeaderValue::from(text.len());
    let mut response = Response::new(if head { Body::empty() } else { Body::from(text) });
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    response
}

/// What a step does to the answer that comes back.
pub trait Finish {
    /// The answer as it leaves this step.
    fn finish(self, response: Response<Body>) -> Response<Body>;
}

pin_project! {
    /// What follows, then a hand on its answer. Dropped unfinished, the hand is dropped too (a permit is given back).
    pub struct Finished<F, M> {
        #[pin]
        inner: F,
        finish: Option<M>,
    }
}

impl<F, M> Finished<F, M> {
    /// `finish` after `inner`.
    pub const fn new(inner: F, finish: M) -> Self {
        Self { inner, finish: Some(finish) }
    }
}

impl<F: Future<Output = Answered>, M: Finish> Future for Finished<F, M> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let this = self.project();
        let Poll::Ready(Ok(response)) = this.inner.poll(context) else { return Poll::Pending };
        Poll::Ready(Ok(match this.finish.take() {
            Some(finish) => finish.finish(response),
            None => response,
        }))
    }
}

/// The refusal of `request`, once a bounded part of its body has been read.
pub fn refuse<B>(request: Request<B>, barred: Barred) -> BoxFuture<Answered>
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    let request_id = Visit::id_of(&request);
    // Reading would make hyper say `100 Continue`: a client that waits for leave has sent nothing yet.
    let waits = request.headers().contains_key(header::EXPECT);
    let body = request.into_body();
    if body.is_end_stream() {
        return Box::pin(std::future::ready(Ok(barred.response(&request_id))));
    }
    Box::pin(async move {
        let ended = !waits && drained(body).await;
        let mut response = barred.response(&request_id);
        if !ended {
            close_after(&mut response);
        }
        Ok(response)
    })
}

/// Says that the connection ends with this answer.
pub fn close_after(response: &mut Response<Body>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// Reads a bounded part of `body` for a bounded time and throws it away; whether it ended within both.
pub async fn drained<B: HttpBody>(body: B) -> bool {
    use bytes::Buf;
    let mut body = std::pin::pin!(body);
    let reading = async {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(frame) = body.as_mut().frame().await {
            let Ok(frame) = frame else { return false };
            let size = frame.data_ref().map_or(0, Buf::remaining);
            // An endless run of empty frames counts too.
            match left.checked_sub(size.max(1)) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    };
    tokio::time::timeout(DRAIN_FOR_MAX, reading).await.unwrap_or(false)
}
