//! The queue: a run that somebody asked for, and what a worker says of it.
//!
//! Promises: a change names the worker that makes it, so that a run whose lease is another's is not touched.
//! Does not: run anything (the worker does).

use super::{Authored, AuthoredCase};
use crate::domain::{attempt::Attempt, log::RunStatus, time::Timestamp};

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
