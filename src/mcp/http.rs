//! The end of the door: a decoded message to an HTTP answer.
//!
//! Promises: plain request/response methods go straight to the registry; modern answers are JSON, legacy ones framed as the endpoint says;
//! nothing is kept between requests.
//! Does not: read headers or bodies; the door has.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{HeaderValue, Request, Response, StatusCode, header};
use tower::Service;

use super::{
    core::{Asker, Core},
    faults::Fault,
};
use crate::{
    gate::{
        BoxFuture, Lacks,
        message::{Era, Id, Message},
        refusal,
        visit::{Route, Visit},
    },
    tools::Toolsets,
};

/// How an endpoint frames its answers to clients of the older era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `application/json` (S-harness).
    Json,
    /// One event of `text/event-stream` (S-tenant).
    EventStream,
}

/// The endpoints over one core.
#[derive(Clone)]
pub struct Endpoint {
    core: Core,
    framings: Arc<[Framing]>,
}

impl Endpoint {
    /// The endpoints, in the order of the route step's; `framings` is parallel to them.
    #[must_use]
    pub const fn new(core: Core, framings: Arc<[Framing]>) -> Self {
        Self { core, framings }
    }

    async fn answer(self, visit: Visit, message: Message) -> Response<Body> {
        let Some(id) = message.id else { return accepted() };
        if message.response {
            return accepted();
        }
        let framing = match visit.route {
            Some(Route::Mcp(index)) if message.era == Era::Legacy => self.framings.get(index).copied().unwrap_or(Framing::Json),
            _ => Framing::Json,
        };
        let Some(caller) = visit.caller else { return refusal::Barred::Unauthenticated { sent: false }.response(&visit.request_id) };
        #[cfg(feature = "fixtures")]
        if !caller.is_nobody()
            && let Some(reply) = super::fixtures::answer(&message.method, &message.params, message.era)
        {
            return fixture(&id, reply, message.era, framing);
        }
        let toolsets = match visit.toolsets.as_deref().map(Toolsets::parse).transpose() {
            Ok(toolsets) => toolsets.unwrap_or_default(),
            Err(sentence) => return failed(&id, &Fault::parameters(sentence), message.era, framing),
        };
        let asker = Asker {
            caller,
            client: Some(visit.client),
            era: message.era,
            request_id: visit.request_id,
            toolsets,
            place: visit.place,
            parent: None,
        };
        match self.core.answer(&message.method, message.params, &asker).await {
            Err(fault) if fault.wants_credential() => {
                refusal::Barred::Unauthenticated { sent: false }.response_to(Some(&id), &asker.request_id)
            }
            Err(Fault { lacks: Some(lacks), message, .. }) if asker.caller.identified().is_some() => {
                let scope = if let Lacks::Scopes { needed, .. } = lacks { Some(needed.join(" ")) } else { None };
                refusal::Barred::Denied { message, scope }.response_to(Some(&id), &asker.request_id)
            }
            Ok(result) => framed(StatusCode::OK, answered(&id, &result), framing),
            Err(fault) => failed(&id, &fault, message.era, framing),
        }
    }
}

/// A fixture may have something to say before its answer.
#[cfg(feature = "fixtures")]
fn fixture(id: &Id, reply: super::fixtures::Reply, era: Era, framing: Framing) -> Response<Body> {
    let result = match reply.result {
        Ok(result) => result,
        Err(fault) => return failed(id, &fault, era, framing),
    };
    let json = answered(id, &result.to_string());
    if reply.notifications.is_empty() {
        return framed(StatusCode::OK, json, framing);
    }
    let events: Vec<String> = reply.notifications.iter().map(|said| format!("event: message\ndata: {said}\n\n")).collect();
    let mut response = framed(StatusCode::OK, json.clone(), Framing::EventStream);
    *response.body_mut() = Body::from(format!("{}event: message\ndata: {json}\n\n", events.concat()));
    response
}

/// Put together without the formatter, which costs as much as all the copying.
fn answered(id: &Id, result: &str) -> String {
    let id = id.json();
    let parts = ["{\"jsonrpc\":\"2.0\",\"id\":", &id, ",\"result\":", result, "}"];
    parts.concat()
}

fn failed(id: &Id, fault: &Fault, era: Era, framing: Framing) -> Response<Body> {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}", id.json(), fault.json());
    framed(refusal::status_of_fault(fault.code, era), body, framing)
}

fn framed(status: StatusCode, json: String, framing: Framing) -> Response<Body> {
    let (kind, body) = match framing {
        Framing::Json => ("application/json", json),
        // JSON text has no line breaks, so one data line holds it.
        Framing::EventStream => ("text/event-stream", format!("event: message\ndata: {json}\n\n")),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Notifications and responses are taken and not answered.
fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

impl Service<Request<Message>> for Endpoint {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Message>) -> Self::Future {
        let endpoint = self.clone();
        let (mut parts, message) = request.into_parts();
        let visit = parts.extensions.remove::<Visit>();
        Box::pin(async move {
            Ok(match visit {
                Some(visit) => endpoint.answer(visit, message).await,
                None => refusal::Barred::Internal.response(""),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_fault_of_ours_is_an_answer_to_its_request_with_the_id_of_the_log() {
        for framing in [Framing::Json, Framing::EventStream] {
            let response = failed(&Id::Text("a".into()), &Fault::internal("r1"), Era::Legacy, framing);
            assert_eq!(response.status(), 200, "clients drop the session on an HTTP error");
            let text = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
            let json = text.strip_prefix("event: message\ndata: ").unwrap_or(&text);
            let said: Value = serde_json::from_str(json).unwrap();
            assert_eq!(
                (&said["id"], &said["error"]["code"], &said["error"]["data"]),
                (&json!("a"), &json!(-32603), &json!({"requestId": "r1"}))
            );
        }
    }
}
