//! What the runs before a run counted of its failing cases.
//!
//! Promises: recorded runs only, the newest fifty before the run that hold an evaluation of that name; one list of runs and one read of cells for
//! each evaluation, however many of its cases fail.
//! Does not: judge (`domain::flake` does).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        flake,
    },
    store::{CellQuery, Kind, Run, RunPoint, RunQuery},
    tools::{Ctx, ToolError},
};

/// Runs that are looked at.
const RUNS: usize = 50;

/// The counted cells of each key, oldest first.
pub struct Past(BTreeMap<CellKey, Vec<Cell>>);

impl Past {
    /// Those of `keys`, which are of cases, before `run`.
    ///
    /// # Errors
    /// As the store.
    pub fn read(ctx: &Ctx, run: &Run, keys: &[CellKey]) -> Result<Self, ToolError> {
        let mut past = BTreeMap::<CellKey, Vec<Cell>>::new();
        let evaluations: BTreeSet<&String> = keys.iter().map(|key| &key.evaluation).collect();
        for evaluation in evaluations {
            let before = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
            let query = RunQuery {
                evaluation_contains: Some(evaluation.clone()),
                kind: Some(Kind::Recorded),
                before: Some(before),
                limit: RUNS,
                ..RunQuery::default()
            };
            let mut runs: Vec<String> = ctx.store.runs(&query)?.0.into_iter().map(|run| run.run_id).collect();
            runs.reverse();
            let keys = keys.iter().filter(|key| key.evaluation == *evaluation).cloned().collect();
            let query = CellQuery { runs, keys: Some(keys), grain: Grain::Case, ..CellQuery::default() };
            for cell in ctx.store.cells(&query)?.into_iter().filter(|cell| cell.verdict.counted()) {
                past.entry(cell.key.clone()).or_default().push(cell);
            }
        }
        Ok(Self(past))
    }

    /// Whether the failure `now` is one that its case has now and then.
    pub fn within_flake_rate(&self, now: &Cell) -> Option<bool> {
        let past: Vec<&Cell> = self.0.get(&now.key).into_iter().flatten().collect();
        flake::within_rate(&past, now)
    }
}
