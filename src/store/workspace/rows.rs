//! What is read of the workspace: evaluations, cases, the trail, baselines, connections, traces.
//!
//! Promises: plain data, the same from every adapter.
//! Does not: read anything.

use serde::{Deserialize, Serialize};

use super::Acted;
use crate::domain::time::Timestamp;

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
