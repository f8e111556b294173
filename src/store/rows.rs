//! What the store says of runs' attempts, causes, evaluations and arms, and of transcripts: rows as the port has them.
//!
//! Promises: plain data, the same from every adapter.
//! Does not: read anything.

use std::collections::BTreeMap;

use super::AttemptRest;
use crate::domain::{
    attempt::{Check, Usage},
    cell::CellKey,
    log::{ArmInfo, EvaluationInfo},
    outcome::Outcome,
    time::Timestamp,
};

/// One attempt, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    /// Its key, unique in the run.
    pub key: String,
    /// The evaluation's id.
    pub evaluation: String,
    /// The case's id; empty where the evaluation has no dataset.
    pub case: String,
    /// The arm's name.
    pub arm: String,
    /// From 1 in (evaluation, case, arm).
    pub n: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The primary score.
    pub score: Option<f64>,
    /// Its checks; empty when the query did not ask for them.
    pub checks: Vec<Check>,
    /// What it consumed.
    pub usage: Usage,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Why it broke.
    pub error: Option<String>,
    /// The limit that ended it.
    pub limit: Option<String>,
    /// Failed tries before it inside its log.
    pub retries: u32,
    /// Lines of its transcript; 0 where there is none.
    pub lines: u64,
    /// How many of those lines, from the first, are its conversation's messages.
    pub messages: u64,
    /// What few readers want; none when the query did not ask for it.
    pub rest: Option<Box<AttemptRest>>,
}

/// Which attempts of a run to read. The order is evaluation, case, arm, n.
#[derive(Debug, Clone, Default)]
pub struct AttemptQuery<'a> {
    /// Of evaluations whose id contains this, ignoring case.
    pub evaluation_contains: Option<&'a str>,
    /// Only these cells (at either grain); none for all.
    pub keys: Option<&'a [CellKey]>,
    /// Only these outcomes; empty for all.
    pub outcomes: &'a [Outcome],
    /// Whether to read the checks too.
    pub checks: bool,
    /// Whether to read what few readers want too.
    pub rest: bool,
}

/// Attempts that failed for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The stable signature.
    pub signature: String,
    /// The evaluation.
    pub evaluation: String,
    /// How these attempts ended: failed or errored.
    pub outcome: Outcome,
    /// The first failed check; none for an errored attempt.
    pub check: Option<String>,
    /// The normalised reason.
    pub reason: String,
    /// How many attempts of the run.
    pub attempts: u64,
}

/// An evaluation as one run has it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvaluation {
    /// Its number in the organization.
    pub number: i64,
    /// What the run's newest log of it said, with the declared family and threshold in place.
    pub info: EvaluationInfo,
}

/// Groups of cases: by evaluation, the group of each case that has one.
pub type Groups = BTreeMap<String, BTreeMap<String, String>>;

/// An arm as one run has it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunArm {
    /// The declared name, role (the declared one first) and factors, as the run's newest log of it has them.
    pub info: ArmInfo,
}

/// What has the names that are looked up as somebody types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'a> {
    /// Runs: their ids, newest first.
    Runs,
    /// Evaluations that some run holds: their ids, by id.
    Evaluations,
    /// Attempts of this run: their keys, by key.
    Attempts(&'a str),
}

/// The beginning of a transcript, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beginning {
    /// All lines of the transcript.
    pub total: u64,
    /// How many of them are in the text.
    pub lines: u64,
    /// Those lines, each ended by a line feed.
    pub text: String,
}

/// A page of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// All lines of the transcript.
    pub total: u64,
    /// Those asked for.
    pub lines: Vec<String>,
}
