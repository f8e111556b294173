//! What several answers share: a run's head, a run's place in time, a cell's numbers.
//!
//! Promises: camelCase names as S-history has them; a rate never without its counts.
//! Does not: hold a whole run record (`show` does).

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    domain::{
        cell::{Cell, Verdict},
        log::{Git, RunStatus},
        outcome::{Counts, Rate},
        time::Timestamp,
    },
    store::{Kind, Run, RunArm, RunPoint},
};

/// The version of the run record's form.
pub use crate::domain::run_record::SCHEMA_VERSION;

/// A run's place in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunMark {
    /// The run's id.
    pub run_id: String,
    /// When it was created.
    pub created_at: Timestamp,
}

impl From<RunPoint> for RunMark {
    fn from(point: RunPoint) -> Self {
        Self { run_id: point.run_id, created_at: point.created_at }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSide {
    /// The run's id.
    pub run_id: String,
    /// When it was created; absent when there is nothing to hold it against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
}

impl From<&Run> for RunSide {
    fn from(run: &Run) -> Self {
        Self { run_id: run.run_id.clone(), created_at: Some(run.created_at), git: run.git.clone() }
    }
}

/// An arm's name and role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArmName {
    /// The name.
    pub name: String,
    /// `control` or `variant`, where declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A run's record without what it holds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunHead {
    /// The version of this form.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: String,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When work began.
    pub started_at: Option<Timestamp>,
    /// When work ended.
    pub completed_at: Option<Timestamp>,
    /// Its code.
    pub git: Option<Git>,
    /// The group of runs.
    pub round: Option<String>,
    /// The arms' names and roles.
    pub arms: Vec<ArmName>,
}

impl RunHead {
    /// The head of `run`, with the arms that the store has for it.
    #[must_use]
    pub fn new(run: &Run, arms: &[RunArm]) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: run.run_id.clone(),
            kind: run.kind,
            status: run.status,
            created_at: run.created_at,
            started_at: run.started_at,
            completed_at: run.completed_at,
            git: run.git.clone(),
            round: run.round.clone(),
            arms: arms.iter().map(|arm| ArmName { name: arm.info.name.clone(), role: arm.info.role.clone() }).collect(),
        }
    }
}

/// A cell's verdict, rate and counts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellSide {
    /// The word.
    pub verdict: Verdict,
    /// Passed over counted, three decimals; null when nothing was counted.
    pub rate: Option<f64>,
    /// The five counts.
    pub counts: Counts,
    /// The threshold that judged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The run it stands in, where the two sides of an answer's rows stand in several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunMark>,
}

impl From<&Cell> for CellSide {
    fn from(cell: &Cell) -> Self {
        Self { verdict: cell.verdict, rate: cell.counts.rate().map(Rate::shown), counts: cell.counts, threshold: cell.threshold, run: None }
    }
}
