//! What a plan is computed from, read once.
//!
//! Promises: recorded completed runs only, the newest [`RUNS`]; at most [`EVALUATIONS`] evaluations.
//! Does not: judge.

use std::collections::BTreeMap;

use crate::{
    domain::{cell::Grain, log::RunStatus},
    store::{
        Kind, Pick, Point, PointQuery, Run, RunQuery,
        workspace::{Authored, AuthoredQuery, BaselineRow, EvaluationStatus},
    },
    tools::{Ctx, ToolError},
};

/// Newest runs that are looked at.
pub const RUNS: usize = 50;
/// Evaluations that are looked at: those made or seen last.
const EVALUATIONS: usize = 1000;
/// So many newer runs make a baseline, or an evaluation's last run, old.
pub const LATELY: usize = 10;

/// The state.
pub struct State {
    /// Evaluations that are not archived, by id.
    pub evaluations: BTreeMap<String, Authored>,
    /// The newest recorded completed runs, newest first.
    pub runs: Vec<Run>,
    /// How many there are.
    pub runs_total: u64,
    /// The newest counted cell of each series of those.
    pub points: Vec<Point>,
    /// The acceptances that hold.
    pub baselines: Vec<BaselineRow>,
}

impl State {
    /// Reads it.
    ///
    /// # Errors
    /// As the store.
    pub fn read(ctx: &Ctx) -> Result<Self, ToolError> {
        let (evaluations, _) = ctx.store.authored(&AuthoredQuery { limit: EVALUATIONS, ..AuthoredQuery::default() })?;
        let query = RunQuery { kind: Some(Kind::Recorded), status: Some(RunStatus::Completed), limit: RUNS, ..RunQuery::default() };
        let (runs, runs_total) = ctx.store.runs(&query)?;
        let points = ctx.store.points(&PointQuery {
            evaluation_contains: None,
            keys: None,
            grain: Grain::Evaluation,
            counted: true,
            statuses: &[RunStatus::Completed],
            pick: Pick::Newest,
        })?;
        let mut baselines = ctx.store.baselines(None)?;
        baselines.retain(|row| row.superseded_at.is_none());
        let kept = evaluations.into_iter().filter(|one| one.status != EvaluationStatus::Archived);
        let evaluations: BTreeMap<String, Authored> = kept.map(|one| (one.id.clone(), one)).collect();
        let points = points.into_iter().filter(|point| evaluations.contains_key(&point.cell.key.evaluation)).collect();
        Ok(Self { evaluations, runs, runs_total, points, baselines })
    }

    /// The runs that hold the newest cell of some series, newest first.
    pub fn heads(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| self.points.iter().any(|point| point.run.run_id == run.run_id))
    }

    /// The series whose newest cell `run` holds.
    pub fn newest_in<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = &'a Point> {
        self.points.iter().filter(|point| point.run.run_id == run.run_id)
    }

    /// What is said of a plan of nothing.
    pub fn nothing(&self) -> String {
        if self.evaluations.is_empty() && self.runs.is_empty() {
            "There are no evaluations and no runs yet: there is nothing to plan from.".to_owned()
        } else {
            "Nothing in the state of the project asks for anything.".to_owned()
        }
    }
}
