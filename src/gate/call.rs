//! A tool call on its way, whom it counts for, and why it may not be answered.
//!
//! Promises: a refusal is a sentence that says what was refused and, where waiting helps, how long to wait: several clients drop the session
//! on an HTTP error, so people read this instead (decision 52; `conformance/CLIENTS.md`).
//! Does not: know status codes.

use std::{net::IpAddr, sync::Arc};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    lacks::Lacks,
    project::{Place, Project},
    visit::Client,
};
use crate::{
    auth::Caller,
    clock,
    telemetry::{hook::Outcome, trace::Parent},
    tools::{
        Entry, ToolError,
        write::{Consent, Given, Handed, Leave},
    },
};

/// A tool call on its way.
#[derive(Clone)]
pub struct Call {
    /// The tool; [`crate::tools::UNKNOWN`] where the name is none.
    pub entry: &'static Entry,
    /// Its arguments: as they came, and after the step `arguments` in the tool's own form.
    pub arguments: Map<String, Value>,
    /// Who calls.
    pub caller: Caller,
    /// The id that the answer and the log share.
    pub request_id: String,
    /// Where it comes from, over HTTP.
    pub client: Option<Client>,
    /// Whether rates and slots hold for it: over HTTP, not for stdio and the command line.
    pub counted: bool,
    /// The store's generation after the last look at the files. The step `fresh` fills it in.
    pub generation: Option<u64>,
    /// What the answer should say of the index. The step `fresh` fills it in.
    pub note: Option<String>,
    /// The project that the path names.
    pub place: Option<Arc<Place>>,
    /// Whether the operator lets nobody call it here: a write of the tool API that is not switched on (`tool_api.writes`).
    pub closed: bool,
    /// The project that it is about. The step `project` fills it in; none for a tool that is about none.
    pub project: Option<Project>,
    /// For a tool that is about no project: the names of those that the caller may see. The step `project` fills it in.
    pub projects: Arc<[String]>,
    /// For a tool that writes: how leave is given.
    pub leave: Leave,
    /// What came of a form that was asked for; the argument `approval` is still among the arguments.
    pub given: Given,
    /// By whom and by which leave it writes. The step `consent` fills it in.
    pub consent: Option<Box<Consent>>,
    /// Whether the store has the write. The step `trail` fills it in.
    pub handed: Option<Handed>,
    /// That its caller has it running, until whoever computes it has ended. The step `slots` fills it in.
    pub mark: Option<super::slots::Mark>,
    /// Raised when its client has left. The step `lasting` fills it in, for what goes on without one.
    pub left: Option<CancellationToken>,
    /// The trace that the caller says it belongs to (`_meta.traceparent`).
    pub parent: Option<Parent>,
}

impl Call {
    /// A call from this machine, which no limit holds for.
    #[must_use]
    pub fn local(entry: &'static Entry, arguments: Map<String, Value>, caller: Caller) -> Self {
        Self {
            entry,
            arguments,
            caller,
            request_id: clock::request_id(),
            client: None,
            counted: false,
            generation: None,
            note: None,
            place: None,
            closed: false,
            project: None,
            projects: [].into(),
            leave: Leave::Ask,
            given: Given::Nothing,
            consent: None,
            handed: None,
            mark: None,
            left: None,
            parent: None,
        }
    }

    /// A call over HTTP, which all limits hold for.
    #[must_use]
    pub fn remote(entry: &'static Entry, arguments: Map<String, Value>, caller: Caller, request_id: &str, client: Client) -> Self {
        let request_id = request_id.to_owned();
        Self { request_id, client: Some(client), counted: true, ..Self::local(entry, arguments, caller) }
    }

    /// Whose limits it counts on: the key or subject id when there is one, else the address (decision 33).
    #[must_use]
    pub fn counted_as(&self) -> CallerKey {
        match (self.caller.identified(), self.client) {
            (Some(name), _) => CallerKey::Named(name.into()),
            (None, Some(client)) => CallerKey::Address(client.address),
            (None, None) => CallerKey::Unplaced,
        }
    }
}

/// Who has a rate and places of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallerKey {
    /// A key or subject id.
    Named(Box<str>),
    /// An address, an IPv6 one by its /64.
    Address(IpAddr),
    /// All who come from nowhere, together.
    Unplaced,
}

/// Why a call was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// There is no such tool; who knows the name that was asked for says it.
    #[error("there is no such tool; tools/list names those there are")]
    Unknown,
    /// There is no caller, and a call needs one.
    #[error("a bearer token is needed in the Authorization header")]
    Unauthenticated,
    /// The caller may not.
    #[error("{tool} needs {lacks}")]
    Denied {
        /// The tool.
        tool: &'static str,
        /// The missing scopes or role.
        lacks: Lacks,
    },
    /// Nobody may: the operator has not switched it on.
    #[error("{tool} writes, and this server takes no writes over the tool API (tool_api.writes)")]
    Closed {
        /// The tool.
        tool: &'static str,
    },
    /// The caller has called too often.
    #[error("too many calls: at most {per_minute} a minute from one caller; try again in {}", seconds(*wait_s))]
    Rate {
        /// What is allowed.
        per_minute: u32,
        /// Until the next is let in, at least 1.
        wait_s: u64,
    },
    /// The caller's own calls are still running.
    #[error(
        "{tool} was not started: you have {max} {} running already, the most for one caller; wait until one has ended and try again",
        if *heavy { "long call" } else { "calls" }
    )]
    CallerBusy {
        /// The tool.
        tool: &'static str,
        /// How many may run.
        max: usize,
        /// Whether it is about heavy calls.
        heavy: bool,
    },
    /// No slot came free.
    #[error("busy: all {slots} places for long calls were taken for {waited_s} s; try again in {}", seconds(*waited_s))]
    Busy {
        /// How many there are.
        slots: usize,
        /// How long it waited.
        waited_s: u64,
    },
    /// All callers together have run too much.
    #[error("the server is busy: at most {per_minute} calls a minute are run for all callers together; try again in {}", seconds(*wait_s))]
    Total {
        /// What is allowed.
        per_minute: u32,
        /// Until the next is let in, at least 1.
        wait_s: u64,
    },
    /// It took too long.
    #[error("{tool} did not answer within {seconds} s; narrow the question and try again")]
    Timeout {
        /// The tool.
        tool: &'static str,
        /// The deadline.
        seconds: u64,
    },
    /// Its client left before it began, so it does not begin.
    #[error("nobody waits for the answer any more")]
    Left,
    /// A write took too long, and the store had it already.
    #[error(
        "{tool} did not answer within {seconds} s, and may be done all the same: look before you try again, or try again with the same idempotency_key"
    )]
    Undecided {
        /// The tool.
        tool: &'static str,
        /// The deadline.
        seconds: u64,
    },
    /// The tool refused or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The tool panicked; the log has it under this request id.
    #[error("an internal error; the log has it under request {0}")]
    Panicked(String),
}

impl Refusal {
    /// The outcome's word for logs and metrics (decision 2).
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown => Outcome::Refused,
            Self::Unauthenticated | Self::Denied { .. } | Self::Closed { .. } => Outcome::Denied,
            Self::Rate { .. } => Outcome::Rate,
            Self::CallerBusy { .. } | Self::Busy { .. } => Outcome::Busy,
            Self::Total { .. } => Outcome::Total,
            Self::Timeout { .. } | Self::Undecided { .. } => Outcome::Timeout,
            Self::Panicked(_) => Outcome::Error,
            Self::Left => Outcome::Cancelled,
            Self::Tool(ToolError::Exit { code: LATE, .. }) => Outcome::Timeout,
            Self::Tool(error) if error.internal() => Outcome::Error,
            Self::Tool(_) => Outcome::Refused,
        }
    }
}

/// The exit code of a command that its deadline ended.
const LATE: i32 = 124;

pub(in crate::gate) fn seconds(count: u64) -> String {
    if count == 1 { "1 second".to_owned() } else { format!("{count} seconds") }
}
