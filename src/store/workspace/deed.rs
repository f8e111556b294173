//! What somebody does in the workspace, under which leave, and what it came to.
//!
//! Promises: an act is a value that says all that is needed to apply it.
//! Does not: apply it (the adapters do).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::EvaluationStatus;
use crate::{
    auth::Role,
    domain::{log::RunStatus, time::Timestamp},
};

/// Who acts, by what and under which leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// Who.
    pub actor: Actor,
    /// The listed name of the tool, or the verb (`baseline accept`).
    pub tool: String,
    /// SHA-256 of the tool's canonical arguments, hexadecimal.
    pub digest: String,
    /// When.
    pub at: Timestamp,
    /// The approval that is used up by it; none where none is asked for (the command line, the HTTP tool API).
    pub approval: Option<Approval>,
    /// The key under which a repeat gets the first answer.
    pub idempotency_key: Option<String>,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// What tells it from every other caller of the server.
    pub identity: String,
    /// The name that people read: a key or subject id, or the name of a person at the server's own machine.
    pub principal: String,
    /// Its role.
    pub role: Role,
    /// Where it calls from, over HTTP.
    pub address: Option<IpAddr>,
    /// The id that the answer and the log share.
    pub request_id: String,
}

/// Leave for one act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// SHA-256 of the handle, hexadecimal: used once.
    pub handle: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A new evaluation, a draft.
    CreateEvaluation(NewEvaluation),
    /// A case more.
    AddCase {
        /// The evaluation's id.
        evaluation: String,
        /// The case.
        case: NewCase,
    },
    /// Another status of an evaluation (command line).
    SetStatus {
        /// The evaluation's id.
        evaluation: String,
        /// Its status from now on.
        status: EvaluationStatus,
    },
    /// Nobody adds cases to an evaluation or starts it, or somebody may again (command line).
    SetLock {
        /// The evaluation's id.
        evaluation: String,
        /// Why it is locked; none opens it.
        reason: Option<String>,
    },
    /// A run is queued.
    StartRun(NewRun),
    /// A queued run is taken back; one that runs is told to end.
    CancelRun {
        /// Its id.
        run_id: String,
    },
    /// A transcript outside a run is kept until its day.
    CreateTrace(NewTrace),
    /// Lines are added to a trace (`trace.span.create`).
    AddLines {
        /// The trace's id.
        trace_id: String,
        /// The lines, each one JSON text, redacted.
        lines: Vec<String>,
    },
    /// A source that runs are synced from.
    CreateConnection {
        /// Its id, new.
        id: String,
        /// Its kind.
        kind: String,
        /// What people call it, unique in the project.
        name: String,
        /// What the kind asks for; no secrets.
        config: serde_json::Value,
    },
    /// A source is changed.
    UpdateConnection {
        /// Its id.
        connection: String,
        /// Another name.
        name: Option<String>,
        /// Other settings.
        config: Option<serde_json::Value>,
        /// Whether it is synced.
        enabled: Option<bool>,
    },
    /// A source is synced no more; what it brought stays.
    DeleteConnection {
        /// Its id.
        connection: String,
    },
    /// A source is looked at soon.
    SyncConnection {
        /// Its id.
        connection: String,
    },
    /// A run becomes the reference for an evaluation, or for the project (command line).
    AcceptBaseline {
        /// The run's id.
        run_id: String,
        /// The evaluation; none for the project.
        evaluation: Option<String>,
        /// Why.
        note: Option<String>,
    },
    /// A run that has ended goes, with all that was kept of it (command line). Never one that is a baseline.
    ForgetRun {
        /// Its id.
        run_id: String,
    },
}

/// A new evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewEvaluation {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// The rate from which it passes.
    pub threshold: Option<f64>,
    /// Its first cases, whose ids are all different.
    pub cases: Vec<NewCase>,
}

/// A new case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCase {
    /// Its id; where there is none the store gives the next free `case-<n>`.
    pub id: Option<String>,
    /// What is asked.
    pub input: String,
    /// What is right.
    pub expected: Option<String>,
    /// Free pairs.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A run to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Its id, new.
    pub run_id: String,
    /// The evaluation's id.
    pub evaluation: String,
    /// The arm; none for the executor's own default, which is called `default`.
    pub arm: Option<String>,
    /// `dev`, `staging` or `prod`.
    pub environment: String,
    /// What it may cost.
    pub max_cost_usd: Option<f64>,
    /// What holds in this project.
    pub budget: Budget,
}

/// How much may be queued (decision 91).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Runs that are queued or running.
    pub queued_max: u64,
    /// Dollars that the runs started since [`Budget::since`] may cost in all; then each run says its own.
    pub cost_usd_max: Option<f64>,
    /// The beginning of the day.
    pub since: Timestamp,
}

/// A new trace.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTrace {
    /// Its id as its maker has it, unique in the project.
    pub trace_id: String,
    /// What people call it.
    pub name: String,
    /// How it ended.
    pub status: Option<String>,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// Its lines, each one JSON text, redacted.
    pub lines: Vec<String>,
    /// Free pairs, redacted.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// When it is deleted.
    pub expires_at: Timestamp,
}

/// What was done. Kept under the idempotency key, so that a repeat is told the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "did")]
pub enum Acted {
    /// An evaluation was made, or has another status or lock.
    Evaluation {
        /// Its id.
        evaluation: String,
        /// Its number.
        number: i64,
        /// Its status.
        status: EvaluationStatus,
    },
    /// A case was added.
    Case {
        /// The evaluation's id.
        evaluation: String,
        /// The case's id.
        case: String,
    },
    /// A run was queued, or is cancelled.
    Run {
        /// Its id.
        run_id: String,
        /// Its status now.
        status: RunStatus,
    },
    /// A trace is kept.
    Trace {
        /// Its id.
        trace_id: String,
        /// Until when.
        expires_at: Timestamp,
    },
    /// A connection was made, changed, asked for or deleted.
    Connection {
        /// Its id.
        connection: String,
    },
    /// A run is the reference.
    Baseline {
        /// The run's id.
        run_id: String,
        /// For this evaluation; none for the project.
        evaluation: Option<String>,
        /// The run that was the reference before.
        replaces: Option<String>,
    },
    /// A run is gone.
    Forgotten {
        /// The run's id.
        run_id: String,
    },
}

/// Why nothing was done. The texts are for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActFault {
    /// There is none of this name.
    #[error("there is no {0}")]
    NotFound(String),
    /// There is one of this name already.
    #[error("there is {0} already")]
    Exists(String),
    /// The evaluation is locked.
    #[error("evaluation {evaluation} is locked by {by}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Locked {
        /// Its id.
        evaluation: String,
        /// Who locked it.
        by: String,
        /// Why.
        reason: Option<String>,
    },
    /// A guard says no, in a sentence.
    #[error("{0}")]
    Guard(String),
    /// The handle was used before.
    #[error("this approval was used already; call without approval to ask for another")]
    ApprovalUsed,
    /// The handle is too old.
    #[error("this approval has expired; call without approval to ask for another")]
    ApprovalExpired,
    /// The idempotency key was used with other arguments.
    #[error("argument idempotency_key: this key was used for other arguments within the last 24 hours; give another")]
    KeyReused,
}

/// What an act came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was done, or why nothing was.
    pub done: std::result::Result<Acted, ActFault>,
    /// Whether the answer is that of an earlier call with the same idempotency key: nothing was done now.
    pub repeated: bool,
}
