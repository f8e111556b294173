//! Why something that was sent is not taken, with its status, its word and its sentence.
//!
//! Promises: a sentence says what was wrong and what would be right, and names no path of the server.
//! Does not: make a response ([`Barred`](crate::gate::refusal::Barred) does, in the shape of every refusal of the door).

use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value};

use crate::{
    auth::{Role, metadata::insufficient_scope},
    gate::call::seconds,
};

/// Why something that was sent is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The caller's credential lacks this scope.
    Scope(&'static str),
    /// The caller's role is below this one.
    Role(Role),
    /// There is no such project that the caller may see, or no such upload in it.
    NotFound(String),
    /// The caller may see several projects and names none.
    Which,
    /// The query, or the JSON of the body, is not as it should be.
    Argument(String),
    /// The body is compressed or not in the form that is asked for.
    Encoded,
    /// The body or the log is larger than is taken.
    TooLarge {
        /// Bytes allowed.
        max: u64,
    },
    /// The project's uploads take as much as they may.
    Quota,
    /// The part does not begin where the log ends that is there.
    Offset {
        /// Bytes that are there.
        held: u64,
    },
    /// What came in parts has another digest than it was sent under; it is gone.
    Digest,
    /// It is no log, or a broken one; the sentence says why.
    Unreadable(String),
    /// The body did not come in time.
    Late,
    /// The body broke off.
    Broken,
    /// There is no place now, or the log is being read.
    Busy {
        /// Why.
        why: &'static str,
        /// Seconds until asking again makes sense, at least 1.
        retry_after_s: u64,
    },
    /// The disk is full.
    Full,
    /// The disk or the project takes no writes.
    ReadOnly,
    /// A fault of ours.
    Internal,
}

impl Refused {
    /// The word of the refusal, for metrics, logs and `data.reason`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Scope(_) => "insufficient_scope",
            Self::Role(_) => "role",
            Self::NotFound(_) => "not_found",
            Self::Which => "project",
            Self::Argument(_) => "argument",
            Self::Encoded => "media_type",
            Self::TooLarge { .. } => "too_large",
            Self::Quota => "quota",
            Self::Offset { .. } => "offset",
            Self::Digest => "digest",
            Self::Unreadable(_) => "unreadable",
            Self::Late => "timeout",
            Self::Broken => "broken",
            Self::Busy { .. } => "overloaded",
            Self::Full => "disk_full",
            Self::ReadOnly => "read_only",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Scope(_) | Self::Role(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Argument(_) | Self::Which | Self::Broken => StatusCode::BAD_REQUEST,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Offset { .. } => StatusCode::CONFLICT,
            Self::Digest | Self::Unreadable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Busy { .. } | Self::ReadOnly => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full | Self::Quota => StatusCode::INSUFFICIENT_STORAGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What is said to people.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Scope(scope) => format!("sending runs needs the scope {scope}, which your key does not have"),
            Self::Role(role) => format!("needs role {role}"),
            Self::NotFound(text) | Self::Argument(text) | Self::Unreadable(text) => text.clone(),
            Self::Which => "say which project with ?project=; you may see several".into(),
            Self::Encoded => "the body must come as it is, without Content-Encoding; with ?upload= it is application/json".into(),
            Self::TooLarge { max } => format!("it is too large; at most {max} bytes are taken here (larger logs come in parts)"),
            Self::Quota => "this project's logs that have come in part take all the room there is for them; finish those, or wait until they are removed".into(),
            Self::Offset { held } => format!("the part must begin at {held}, where the log ends that is there"),
            Self::Digest => "what came in parts has another digest than it was sent under, and was removed; send it again from its beginning".into(),
            Self::Late => "the body did not come in time; what came of a part stays".into(),
            Self::Broken => "the body broke off; what came of a part stays".into(),
            Self::Busy { why, retry_after_s } => format!("{why}; try again in {}", seconds(*retry_after_s)),
            Self::Full => "the server's disk is full; nothing was changed".into(),
            Self::ReadOnly => "the project takes no writes now; nothing was changed".into(),
            Self::Internal => "an internal error; the log has it under this request id".into(),
        }
    }

    /// Seconds after which asking again makes sense.
    #[must_use]
    pub const fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Busy { retry_after_s, .. } => Some(*retry_after_s),
            _ => None,
        }
    }

    /// More for programs.
    #[must_use]
    pub fn data(&self) -> Value {
        let mut data = Map::new();
        data.insert("reason".to_owned(), self.reason().into());
        if let Self::Offset { held } = self {
            data.insert("offset".to_owned(), (*held).into());
        }
        if let Self::Scope(scope) = self {
            data.insert("scopes".to_owned(), vec![*scope].into());
        }
        Value::Object(data)
    }

    /// The challenge of a credential that lacks a scope.
    #[must_use]
    pub fn challenge(&self) -> Option<HeaderValue> {
        if let Self::Scope(scope) = self { insufficient_scope(scope) } else { None }
    }
}
