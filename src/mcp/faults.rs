//! JSON-RPC errors (decision 52): the third door that errors leave by.
//!
//! Promises: every code stands here, with the sentence that goes with it.
//! Does not: know HTTP; a refused tool call is a result with `isError`, not one of these.

use serde_json::{Value, json};

use crate::{
    domain::attempt::shorten,
    gate::{Lacks, Refusal, message::Era},
    tools::ToolError,
};

/// What the gate refuses, in JSON-RPC (decision 52).
const REFUSED: i64 = -32000;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The JSON-RPC code.
    pub code: i64,
    /// A sentence.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
    /// What the caller lacks, where that is why: over HTTP it is a 403 to one who can ask for more.
    pub lacks: Option<Lacks>,
}

impl Fault {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, lacks: None }
    }

    /// The method is not spoken here.
    #[must_use]
    pub fn method(method: &str) -> Self {
        Self::new(-32601, format!("method \"{}\" is not spoken here", shorten(method, 80)))
    }

    /// The text is no message.
    #[must_use]
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    /// The parameters are wrong.
    #[must_use]
    pub fn parameters(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// The method needs a caller, and there is none. Over HTTP it is a 401, so its sentence and reason stand there.
    #[must_use]
    pub fn credential() -> Self {
        Self::new(REFUSED, "a credential is needed")
    }

    /// Whether a credential is what was missing.
    #[must_use]
    pub const fn wants_credential(&self) -> bool {
        self.code == REFUSED && self.data.is_none()
    }

    /// There is no such tool.
    #[must_use]
    pub fn tool(name: &str) -> Self {
        Self::parameters(format!("unknown tool \"{}\"; tools/list names those there are", shorten(name, 80)))
    }

    /// There is no such resource: the code differs between the eras (SEP-2164).
    #[must_use]
    pub fn resource(uri: &str, era: Era) -> Self {
        let code = if era == Era::Modern { -32602 } else { -32002 };
        Self { data: Some(json!({"uri": shorten(uri, 512)})), ..Self::new(code, "there is no such resource") }
    }

    /// The same, with `note` behind its sentence: what is not found may not be indexed yet.
    #[must_use]
    pub fn beside(self, note: &str) -> Self {
        if note.is_empty() { self } else { Self { message: format!("{}. {note}", self.message), ..self } }
    }

    /// The gate refused what is no tool call (a refused tool call is a result).
    #[must_use]
    pub fn refused(refusal: &Refusal, request_id: &str) -> Self {
        let (reason, wait_s) = match refusal {
            Refusal::Panicked(_) => return Self::internal(request_id),
            Refusal::Tool(error) if error.internal() => return Self::internal(request_id),
            Refusal::Unauthenticated => return Self::credential(),
            Refusal::Denied { lacks, .. } => return Self::denied(refusal, lacks.clone(), request_id),
            Refusal::Closed { .. } => ("role", None),
            Refusal::Rate { wait_s, .. } => ("rate", Some(*wait_s)),
            Refusal::Total { wait_s, .. } => ("overloaded", Some(*wait_s)),
            Refusal::CallerBusy { .. } => ("overloaded", Some(1)),
            Refusal::Busy { waited_s, .. } => ("overloaded", Some(*waited_s)),
            Refusal::Timeout { .. } | Refusal::Undecided { .. } | Refusal::Left => ("timeout", None),
            Refusal::Unknown => ("not_found", None),
            Refusal::Tool(ToolError::Argument(_)) => ("invalid", None),
            Refusal::Tool(ToolError::NotFound(_) | ToolError::Reference(_)) => ("not_found", None),
            Refusal::Tool(_) => ("too_large", None),
        };
        let mut data = json!({"reason": reason, "requestId": request_id});
        if let (Some(wait), Some(map)) = (wait_s, data.as_object_mut()) {
            map.insert("retryAfterSeconds".to_owned(), wait.into());
        }
        Self { data: Some(data), ..Self::new(REFUSED, refusal.to_string()) }
    }

    /// The caller may not.
    #[must_use]
    pub fn denied(refusal: &Refusal, lacks: Lacks, request_id: &str) -> Self {
        let reason = if matches!(lacks, Lacks::Role(_)) { "role" } else { "insufficient_scope" };
        let data = Some(json!({"reason": reason, "requestId": request_id}));
        Self { data, lacks: Some(lacks), ..Self::new(REFUSED, refusal.to_string()) }
    }

    /// A fault of ours.
    #[must_use]
    pub fn internal(request_id: &str) -> Self {
        Self {
            data: Some(json!({"requestId": request_id})),
            ..Self::new(-32603, format!("an internal error; the log has it under request {request_id}"))
        }
    }

    /// The error object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(data), Some(map)) = (&self.data, error.as_object_mut()) {
            map.insert("data".to_owned(), data.clone());
        }
        error
    }
}
