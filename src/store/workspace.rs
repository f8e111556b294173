//! The workspace: what people and agents make in a project (evaluations, cases, runs to be done, traces, connections, baselines), and the trail
//! of who did it.
//!
//! Promises: every act is one [`Deed`] with one [`Act`], applied in one transaction that also uses up the approval, remembers the answer under
//! its idempotency key and writes the audit row; a refused one leaves its row and nothing else. The trail is only added to.
//! Does not: decide who may (the gate does), or run anything (the worker does).

pub(crate) mod rules;

use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, Serialize};

use super::Result;
use crate::{
    auth::Role,
    domain::{attempt::Attempt, log::RunStatus, time::Timestamp},
};

/// Idempotency keys are kept so long (decision 31).
pub const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

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

/// Where an evaluation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum EvaluationStatus {
    /// Being written: cannot be started.
    Draft,
    /// Can be started. What came with logs is.
    Active,
    /// Kept for its history.
    Archived,
}

impl EvaluationStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Draft, Self::Active, Self::Archived];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

/// An evaluation, as the workspace has it: made here, or seen in logs, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Authored {
    /// Its id.
    pub id: String,
    /// Its number.
    pub number: i64,
    /// What people call it.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// The rate from which it passes: as made here, else as the newest run has it.
    pub threshold: Option<f64>,
    /// Its status; `active` where it only came with logs.
    pub status: EvaluationStatus,
    /// Whether it was made here.
    pub authored: bool,
    /// When it was made here, or first seen in a run.
    pub created_at: Timestamp,
    /// Who made it here.
    pub created_by: Option<String>,
    /// Who locked it, when and why, where it is.
    pub lock: Option<Lock>,
    /// Cases that were made here: what a run can be started with.
    pub cases: u64,
    /// Runs that hold it.
    pub runs: u64,
}

/// Why nothing of an evaluation may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Who locked it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// Which evaluations. The order is newest first (`created_at`, then number, both falling).
#[derive(Debug, Clone, Default)]
pub struct AuthoredQuery<'a> {
    /// Only this id.
    pub id: Option<&'a str>,
    /// Only this number.
    pub number: Option<i64>,
    /// Only ids and names that contain this, ignoring case.
    pub contains: Option<&'a str>,
    /// Only this status.
    pub status: Option<EvaluationStatus>,
    /// So many are passed over.
    pub offset: u64,
    /// At most this many.
    pub limit: usize,
}

/// A case that was made here. The order is as they were made.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthoredCase {
    /// Its id.
    pub id: String,
    /// What is asked.
    pub input: String,
    /// What is right.
    pub expected: Option<String>,
    /// Free pairs.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
}

/// A run of the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    /// Its id.
    pub run_id: String,
    /// The evaluation's id.
    pub evaluation: String,
    /// The arm.
    pub arm: String,
    /// `dev`, `staging` or `prod`.
    pub environment: String,
    /// What it may cost.
    pub max_cost_usd: Option<f64>,
    /// What it has cost, as far as the executor says.
    pub cost_usd: Option<f64>,
    /// Where it stands.
    pub status: RunStatus,
    /// Who queued it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When a worker took it last.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Who works at it.
    pub worker: Option<String>,
    /// Until when that holds.
    pub lease_until: Option<Timestamp>,
    /// How often a worker took it.
    pub tries: u32,
    /// Whether it is to end.
    pub cancelling: bool,
    /// Cases that have a result.
    pub done: u64,
    /// Cases in all.
    pub total: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// A change to the queue. Each is one transaction; a run whose lease is another's is not touched.
pub enum QueueChange<'a> {
    /// The oldest run that waits, or whose lease has ended, becomes this worker's; one whose lease ended `tries_max` times becomes `failed`.
    Claim {
        /// Who.
        worker: &'a str,
        /// When.
        now: Timestamp,
        /// For how long.
        lease_ms: i64,
        /// How often a run may be taken.
        tries_max: u32,
    },
    /// The worker still works.
    Beat {
        /// The run.
        run_id: &'a str,
        /// Who.
        worker: &'a str,
        /// When.
        now: Timestamp,
        /// For how long from now.
        lease_ms: i64,
        /// Cases that have a result.
        done: u64,
        /// What it has cost.
        cost_usd: Option<f64>,
    },
    /// The run has ended.
    End {
        /// The run.
        run_id: &'a str,
        /// Who.
        worker: &'a str,
        /// When.
        now: Timestamp,
        /// How.
        end: RunEnd<'a>,
    },
}

/// How a run ended.
pub struct RunEnd<'a> {
    /// `completed`, `failed` or `cancelled`. Only a completed one has attempts that count.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// Its attempts, of its evaluation and its arm.
    pub attempts: &'a mut dyn Iterator<Item = std::result::Result<Attempt, String>>,
}

/// What a change to the queue came to.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueOutcome {
    /// Nothing waits.
    Idle,
    /// The run is this worker's.
    Claimed(Box<Claimed>),
    /// It still is.
    Ours,
    /// It still is, and is to end.
    Cancelling,
    /// It is another's, or has ended.
    Lost,
}

/// A run and what it is to be done with.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The run.
    pub run: Queued,
    /// Its evaluation.
    pub evaluation: Authored,
    /// The cases, as they were when it was queued.
    pub cases: Vec<AuthoredCase>,
}

/// A row of the trail.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// Its place: from 1, without gaps.
    pub number: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// Its role.
    pub role: String,
    /// The tool or verb.
    pub tool: String,
    /// SHA-256 of the canonical arguments.
    pub digest: String,
    /// `ok`, `repeated`, `refused` or `denied`.
    pub outcome: String,
    /// What was done, or why not.
    pub detail: String,
    /// Where it called from.
    pub address: Option<String>,
    /// The id that the answer and the log share.
    pub request_id: String,
}

/// Which rows of the trail, the newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery<'a> {
    /// Only this actor's.
    pub actor: Option<&'a str>,
    /// Only this tool's.
    pub tool: Option<&'a str>,
    /// Only this outcome.
    pub outcome: Option<&'a str>,
    /// Only since then.
    pub since: Option<Timestamp>,
    /// Only before this number: the cursor.
    pub before: Option<i64>,
    /// At most this many.
    pub limit: usize,
}

/// An acceptance.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineRow {
    /// The run.
    pub run_id: String,
    /// The evaluation; none for the project.
    pub evaluation: Option<String>,
    /// When.
    pub accepted_at: Timestamp,
    /// Who.
    pub accepted_by: String,
    /// Why.
    pub note: Option<String>,
    /// The run that was the reference before.
    pub replaces: Option<String>,
    /// When another took its place; none for the reference of today.
    pub superseded_at: Option<Timestamp>,
    /// Whether the run is still in the project.
    pub present: bool,
}

/// A source that runs are synced from.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Its id.
    pub id: String,
    /// Its kind: `directory`.
    pub kind: String,
    /// What people call it.
    pub name: String,
    /// Its settings.
    pub config: serde_json::Value,
    /// Whether it is synced.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// When somebody asked for a look that has not been made.
    pub asked_at: Option<Timestamp>,
    /// What the last look came to; none before the first.
    pub health: Option<Health>,
}

/// What the last look at a connection came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Health {
    /// When it began.
    pub at: Timestamp,
    /// When a look last ended without an error of the whole.
    pub good_at: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: u64,
    /// Logs that are in.
    pub logs: u64,
    /// When the newest file of a log that was seen was written.
    pub newest_file_at: Option<Timestamp>,
    /// What could not be read: at most 20 sentences.
    pub complaints: Vec<String>,
    /// How many there were in all.
    pub complaints_total: u64,
    /// Why nothing could be looked at.
    pub error: Option<String>,
}

/// A trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its id.
    pub trace_id: String,
    /// What people call it.
    pub name: String,
    /// How it ended.
    pub status: Option<String>,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// Free pairs.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// When it was kept.
    pub created_at: Timestamp,
    /// Who kept it.
    pub created_by: String,
    /// When it is deleted.
    pub expires_at: Timestamp,
    /// Its lines.
    pub lines: Vec<String>,
}

/// What an earlier call with an idempotency key did.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// SHA-256 of its canonical arguments.
    pub digest: String,
    /// What it did.
    pub acted: Acted,
}

/// The reads of the workspace: a part of the port, apart so that each list stays short.
pub trait Workspace {
    /// Evaluations, and how many there are without offset and limit.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn authored(&self, query: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)>;

    /// Cases that were made here of one evaluation, and how many there are.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn authored_cases(&self, evaluation: &str, offset: u64, limit: usize) -> Result<(Vec<AuthoredCase>, u64)>;

    /// Runs of the queue, by id: of these ids those that came by the queue; with none given, all that have not ended.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn queued(&self, run_ids: &[String]) -> Result<BTreeMap<String, Queued>>;

    /// Rows of the trail, and how many there are without cursor and limit.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn audit(&self, query: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)>;

    /// Acceptances, the newest first: of one evaluation and of the project; with none given, all.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn baselines(&self, evaluation: Option<&str>) -> Result<Vec<BaselineRow>>;

    /// Connections, by name.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn connections(&self) -> Result<Vec<Connection>>;

    /// A trace whose day has not come by `now`.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn trace(&self, trace_id: &str, now: Timestamp) -> Result<Option<Trace>>;

    /// What this caller's call of this tool with this key did at `since` or later.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn remembered(&self, identity: &str, tool: &str, key: &str, since: Timestamp) -> Result<Option<Remembered>>;
}
