//! The one match from a refusal of the door to its HTTP answer (decision 52).
//!
//! Promises: every refusal of a well-formed request has a JSON-RPC error body with a sentence for people, the wait included; status codes
//! stand here and nowhere else.
//! Does not: decide who is refused.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use super::{
    call::seconds,
    ingest::Refused,
    message::{Era, Id},
};
use crate::auth::metadata::insufficient_scope;

/// The word of the step that refused, as an extension of its answer, for whoever counts.
#[derive(Debug, Clone, Copy)]
pub struct RefusedBy(pub &'static str);

/// What a refusal says to people, as an extension of its answer, for whoever says it in other words.
#[derive(Debug, Clone)]
pub struct Sentence(pub Box<str>);

/// Why a call over the tool API has no result. (Over MCP that is a result that says so.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncalled {
    /// The kind.
    pub why: Why,
    /// A sentence.
    pub message: String,
    /// Seconds after which asking again makes sense.
    pub retry_after_s: Option<u64>,
}

/// What kind of reason it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The tool, an argument, or what was to be done is not as it should be.
    Wrong,
    /// It names something that is not there.
    NotFound,
    /// This caller has called too much.
    Rate,
    /// All callers have.
    Busy,
    /// It took too long.
    Timeout,
    /// A fault of ours.
    Internal,
}

impl Why {
    const fn reason(self) -> &'static str {
        match self {
            Self::Wrong => "invalid",
            Self::NotFound => "nothing_there",
            Self::Rate => "tool_rate",
            Self::Busy => "busy",
            Self::Timeout => "call_timeout",
            Self::Internal => "internal",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Wrong => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Rate => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why the door did not let a request in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Barred {
    /// The request's end can be read in two ways.
    Framing,
    /// The Host header names another host, or none, or is malformed.
    Host,
    /// The Origin is not allowed.
    Origin,
    /// The path is no route.
    NotFound,
    /// The route takes other methods; the text is the `Allow` header.
    Method(&'static str),
    /// Too many requests are in flight.
    Overloaded,
    /// Too many requests in flight from this one caller.
    CallerBusy {
        /// How many are allowed.
        max: usize,
    },
    /// Too many requests from this address.
    Rate {
        /// Seconds until one more is let in, at least 1.
        retry_after_s: u64,
    },
    /// Too many requests from this caller's organization.
    TenantRate {
        /// Seconds until one more is let in, at least 1.
        retry_after_s: u64,
    },
    /// No credential where one is asked for, or a bad one.
    Unauthenticated {
        /// Whether a credential was sent.
        sent: bool,
    },
    /// The caller is known and may not.
    Denied {
        /// A sentence that says what lacks.
        message: String,
        /// All scopes that are needed, where it is scopes that lack: they can be asked for.
        scope: Option<String>,
    },
    /// Not JSON, or compressed, or in another character set.
    MediaType,
    /// The client takes no form of answer that the endpoint gives.
    NotAcceptable,
    /// The body is too large.
    TooLarge {
        /// Bytes allowed.
        max: usize,
    },
    /// The body did not come in time.
    Timeout,
    /// The request took longer than the gate waits.
    Deadline,
    /// The body cannot be read, or is no valid message.
    Malformed {
        /// The JSON-RPC code.
        code: i64,
        /// A sentence.
        message: String,
        /// More for programs.
        data: Option<serde_json::Value>,
        /// The request's id where it could be read.
        id: Option<Id>,
    },
    /// What was sent to be kept is not taken.
    Push(Refused),
    /// A call over the tool API was not answered.
    Uncalled(Uncalled),
    /// A fault of ours, a panic included.
    Internal,
}

impl Barred {
    /// The word of the step that refused, for metrics, logs and `data.reason`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::NotFound => "not_found",
            Self::Method(_) => "method",
            Self::Overloaded | Self::CallerBusy { .. } => "overloaded",
            Self::Rate { .. } => "rate",
            Self::TenantRate { .. } => "tenant_rate",
            Self::Unauthenticated { .. } => "unauthenticated",
            Self::Denied { scope: Some(_), .. } => "insufficient_scope",
            Self::Denied { scope: None, .. } => "role",
            Self::MediaType | Self::NotAcceptable => "media_type",
            Self::TooLarge { .. } => "too_large",
            Self::Timeout | Self::Deadline => "timeout",
            Self::Malformed { .. } => "malformed",
            Self::Push(refused) => refused.reason(),
            Self::Uncalled(uncalled) => uncalled.why.reason(),
            Self::Internal => "internal",
        }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::Denied { .. } => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::CallerBusy { .. } | Self::Rate { .. } | Self::TenantRate { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Framing | Self::Malformed { .. } => StatusCode::BAD_REQUEST,
            Self::Deadline => StatusCode::GATEWAY_TIMEOUT,
            Self::Push(refused) => refused.status(),
            Self::Uncalled(uncalled) => uncalled.why.status(),
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Framing => "the request's Transfer-Encoding or Content-Length can be read in two ways".into(),
            Self::Host => "the Host header names no host that this server answers for".into(),
            Self::Origin => "this Origin may not call this server".into(),
            Self::NotFound => "there is nothing at this path".into(),
            Self::Method(allow) => format!("this path takes {allow} only"),
            Self::Overloaded => "the server is full; try again in 1 second".into(),
            Self::CallerBusy { max } => {
                format!("too many requests at once from this address: at most {max} at once; try again in 1 second")
            }
            Self::Rate { retry_after_s } => format!("too many requests from this address; try again in {}", seconds(*retry_after_s)),
            Self::TenantRate { retry_after_s } => {
                format!("too many requests from your organization; try again in {}", seconds(*retry_after_s))
            }
            Self::Unauthenticated { sent: true } => "the bearer token is not valid".into(),
            Self::Unauthenticated { sent: false } => "a bearer token is needed in the Authorization header".into(),
            Self::MediaType => "the body must be application/json in UTF-8, without Content-Encoding".into(),
            Self::NotAcceptable => "the Accept header must admit application/json (and text/event-stream on endpoints that stream)".into(),
            Self::TooLarge { max } => format!("the body is too large; at most {max} bytes are taken"),
            Self::Timeout => "the body did not come in time".into(),
            Self::Deadline => "the request took too long".into(),
            Self::Malformed { message, .. } | Self::Denied { message, .. } => message.clone(),
            Self::Push(refused) => refused.sentence(),
            Self::Uncalled(uncalled) => uncalled.message.clone(),
            Self::Internal => "an internal error; the log has it under this request id".into(),
        }
    }

    const fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Rate { retry_after_s } | Self::TenantRate { retry_after_s } => Some(*retry_after_s),
            Self::Overloaded | Self::CallerBusy { .. } => Some(1),
            Self::Push(refused) => refused.retry_after_s(),
            Self::Uncalled(uncalled) => uncalled.retry_after_s,
            _ => None,
        }
    }

    /// The HTTP answer to a request that was not decoded, or that says itself which one it answers.
    #[must_use]
    pub fn response(&self, request_id: &str) -> Response<Body> {
        let id = if let Self::Malformed { id, .. } = self { id.as_ref() } else { None };
        self.response_to(id, request_id)
    }

    /// The HTTP answer to the request with this JSON-RPC id.
    #[must_use]
    pub fn response_to(&self, id: Option<&Id>, request_id: &str) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body(id, request_id)));
        *response.status_mut() = self.status();
        response.extensions_mut().insert(RefusedBy(self.reason()));
        response.extensions_mut().insert(Sentence(self.sentence().into()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        match self {
            Self::Method(allow) => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allow));
            }
            // A static token only: no metadata document to look for (decision 22).
            Self::Unauthenticated { .. } => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Denied { scope: Some(scope), .. } => {
                headers.extend(insufficient_scope(scope).map(|challenge| (header::WWW_AUTHENTICATE, challenge)));
            }
            Self::Push(refused) => {
                headers.extend(refused.challenge().map(|challenge| (header::WWW_AUTHENTICATE, challenge)));
            }
            // What is left of the body is not read: the connection cannot be used again.
            Self::Framing | Self::TooLarge { .. } | Self::Timeout => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }

    fn body(&self, id: Option<&Id>, request_id: &str) -> String {
        let (code, data) = match self {
            Self::Malformed { code, data, .. } => (*code, data.clone()),
            Self::Push(refused) => {
                (if refused.status() == StatusCode::INTERNAL_SERVER_ERROR { -32603 } else { -32000 }, Some(refused.data()))
            }
            Self::Internal => (-32603, None),
            _ => (-32000, None),
        };
        let mut data = data.unwrap_or_else(|| json!({"reason": self.reason()}));
        if let Some(map) = data.as_object_mut() {
            map.insert("requestId".to_owned(), request_id.into());
            if let Some(wait) = self.retry_after_s() {
                map.insert("retryAfterSeconds".to_owned(), wait.into());
            }
        }
        let id = match id {
            Some(Id::Number(number)) => json!(number),
            Some(Id::Text(text)) => json!(text),
            None => json!(null),
        };
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": self.sentence(), "data": data}}).to_string()
    }
}

/// The tool API's word for a status (decision 72). Its contract has these six: what the client did wrong in another way than they say is
/// `VALIDATION_ERROR`, what waiting helps against is `RATE_LIMITED`, and the rest is ours.
#[must_use]
pub const fn tool_api_code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHORIZED",
        403 => "FORBIDDEN",
        404 => "NOT_FOUND",
        429 | 503 => "RATE_LIMITED",
        400..500 => "VALIDATION_ERROR",
        _ => "INTERNAL",
    }
}

/// The HTTP status of a JSON-RPC error in the answer to a decoded message (decision 52).
#[must_use]
pub const fn status_of_fault(code: i64, era: Era) -> StatusCode {
    match (code, era) {
        (-32700 | -32600 | -32020 | -32021 | -32022, _) => StatusCode::BAD_REQUEST,
        (-32601, Era::Modern) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_and_how_long() {
        let barred = Barred::Rate { retry_after_s: 7 };
        let response = barred.response("abc");
        assert_eq!((response.status(), response.headers()["retry-after"].as_bytes()), (StatusCode::TOO_MANY_REQUESTS, &b"7"[..]));
        let body: serde_json::Value = serde_json::from_str(&barred.body(None, "abc")).unwrap();
        assert_eq!(body["error"]["data"], json!({"reason": "rate", "requestId": "abc", "retryAfterSeconds": 7}));
        assert!(body["error"]["message"].as_str().unwrap().contains("7 seconds"));
    }

    #[test]
    fn a_fault_of_the_message_keeps_its_id_and_code() {
        let barred =
            Barred::Malformed { code: -32600, message: "batches are not taken".into(), data: None, id: Some(Id::Text("x".into())) };
        let id = Id::Text("x".into());
        let body: serde_json::Value = serde_json::from_str(&barred.body(Some(&id), "r")).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"], barred.status()), (&json!("x"), &json!(-32600), StatusCode::BAD_REQUEST));
    }
}
