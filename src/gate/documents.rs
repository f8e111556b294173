//! Documents that anybody may read: where clients log in (RFC 9728), which keys sign our tokens (decisions 21, 22).
//!
//! Promises: stands behind Host, Origin and the request rate and before the token, as health does; what is served was made at the start and is
//! the same for everybody.
//! Does not: make a document.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response};
use tower::{Layer, Service};

use super::{
    step::{Passage, json},
    visit::{Route, Visit},
};

/// A JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its path.
    pub path: String,
    /// Its text.
    pub json: Bytes,
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct DocumentsLayer {
    documents: Arc<[Document]>,
}

impl DocumentsLayer {
    /// The step; a [`Route::Document`] counts them from 0.
    #[must_use]
    pub fn new(documents: &[Document]) -> Self {
        Self { documents: documents.into() }
    }
}

impl<S> Layer<S> for DocumentsLayer {
    type Service = Documents<S>;

    fn layer(&self, inner: S) -> Documents<S> {
        Documents { inner, documents: self.documents.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Documents<S> {
    inner: S,
    documents: Arc<[Document]>,
}

impl<S, B> Service<Request<B>> for Documents<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let document = match Visit::of(&request).and_then(|visit| visit.route) {
            Some(Route::Document(index)) => self.documents.get(index),
            _ => None,
        };
        match document {
            Some(document) => Passage::answered(json(document.json.clone(), request.method() == Method::HEAD)),
            None => Passage::on(self.inner.call(request)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::trial::{request, text, through};

    #[tokio::test]
    async fn a_document_is_given_to_anybody_and_head_has_no_body() {
        let layer = DocumentsLayer::new(&[Document { path: "/.well-known/x".into(), json: "{\"a\":1}".into() }]);
        let ask = |method: &str, route| {
            let mut request = request().method(method).body(Body::empty()).unwrap();
            request.extensions_mut().get_mut::<Visit>().unwrap().route = Some(route);
            let layer = layer.clone();
            async move { through(&layer, request).await }
        };
        let got = ask("GET", Route::Document(0)).await;
        assert_eq!((got.status().as_u16(), &got.headers()["content-type"]), (200, &http::HeaderValue::from_static("application/json")));
        assert_eq!(text(got).await, "{\"a\":1}");
        let head = ask("HEAD", Route::Document(0)).await;
        assert_eq!((head.headers()["content-length"].to_str().unwrap().to_owned(), text(head).await), ("7".to_owned(), String::new()));
        assert_eq!(text(ask("POST", Route::Mcp(0)).await).await, "shown", "what is no document goes on");
    }
}
