//! The body to one message, once.
//!
//! Promises: what goes on has one meaning, whoever reads it: one JSON object without a key twice at any depth, a valid envelope, a version
//! that is spoken, headers that agree with the body. All else is 400 with its JSON-RPC code and the request's id where it could be read.
//! Does not: know methods, tools or arguments; a policy never reads the headers that it checks here.
//!
//! The dearest step of a hit: 14,000 to 15,000 instructions for a call of 400 bytes. Ten thousand of them are the one reading of the body into
//! values, a key or text an allocation; nothing after it reads the bytes again.

pub mod envelope;
pub mod era;
#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::Value;
use tower::{Layer, Service};

use super::{
    message::{Id, Message},
    refusal::Barred,
    step::Passage,
    visit::Visit,
};

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The JSON-RPC code.
    pub code: i64,
    /// A sentence.
    pub message: String,
    /// More for programs.
    pub data: Option<Value>,
}

impl Fault {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn barred(self, id: Option<Id>) -> Barred {
        Barred::Malformed { code: self.code, message: self.message, data: self.data, id }
    }
}

/// The message in `body`, judged with its `headers`.
///
/// # Errors
/// [`Barred::Malformed`].
pub fn decode(headers: &HeaderMap, body: &[u8]) -> Result<Message, Barred> {
    let envelope = envelope::read(body)?;
    match era::settle(headers, &envelope) {
        Ok((era, version)) => Ok(envelope.message(era, version)),
        Err(fault) => Err(fault.barred(envelope.id)),
    }
}

/// Adds the step.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecodeLayer;

impl<S> Layer<S> for DecodeLayer {
    type Service = Decode<S>;

    fn layer(&self, inner: S) -> Decode<S> {
        Decode { inner }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Decode<S> {
    inner: S,
}

impl<S> Service<Request<Bytes>> for Decode<S>
where
    S: Service<Request<Message>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        match decode(request.headers(), request.body()) {
            Ok(message) => Passage::on(self.inner.call(request.map(|_| message))),
            Err(barred) => Passage::answered(barred.response(&Visit::id_of(&request))),
        }
    }
}
