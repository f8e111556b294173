//! `compare --since`: two states of each evaluation and arm, now and then, wherever they were run.
//!
//! Promises: DESIGN.md section 5, to the letter: *now* is the newest cell in a recorded run that has ended; *then* the newest counted cell in
//! a recorded completed run created at or before the instant, else the oldest counted one after it; what has not run since is `notRun`.
//! Does not: decide a row's status (`domain::compare` does).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        cell::{CellKey, Grain},
        compare::{Pair, pairs},
        log::RunStatus,
        time::Timestamp,
    },
    store::{Pick, Point, PointQuery, RunPoint},
    tools::{Ctx, ToolError},
};

/// The statuses of runs that have ended.
const ENDED: &[RunStatus] = &[RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];

/// What two states of a project's evaluations are.
pub struct States {
    /// The pairs, at evaluation grain. A head without a base was added since.
    pub pairs: Vec<Pair>,
    /// The place of each run that a cell stands in.
    pub places: BTreeMap<String, RunPoint>,
    /// Evaluations without an ended run since the instant.
    pub not_run: Vec<String>,
}

/// Reads both states; *now* is that of `until` where it is given, so that the pages of one answer are of one moment.
///
/// # Errors
/// As the store.
pub fn states(ctx: &Ctx, filter: Option<&str>, instant: Timestamp, until: Option<Timestamp>) -> Result<States, ToolError> {
    let now = points(ctx, filter, None, false, ENDED, until.map_or(Pick::Newest, Pick::NewestUpTo))?;
    let (now, old): (Vec<Point>, Vec<Point>) = now.into_iter().partition(|point| point.run.created_at > instant);
    let then = thens(ctx, &now, instant)?;
    let ran: BTreeSet<&String> = now.iter().map(|point| &point.cell.key.evaluation).collect();
    let not_run: BTreeSet<String> = old.into_iter().map(|point| point.cell.key.evaluation).filter(|id| !ran.contains(id)).collect();
    let not_run = not_run.into_iter().collect();
    let places = now.iter().chain(&then).map(|point| (point.run.run_id.clone(), point.run.clone())).collect();
    let cells = |points: Vec<Point>| points.into_iter().map(|point| point.cell).collect();
    Ok(States { pairs: pairs(cells(now), cells(then)), places, not_run })
}

/// The earlier state of each series that is here now; none where its only counted cell is the one that is here now.
fn thens(ctx: &Ctx, now: &[Point], instant: Timestamp) -> Result<Vec<Point>, ToolError> {
    let keys: Vec<CellKey> = now.iter().map(|point| point.cell.key.clone()).collect();
    let completed = &[RunStatus::Completed];
    let mut found = by_key(points(ctx, None, Some(&keys), true, completed, Pick::NewestUpTo(instant))?);
    let missing: Vec<CellKey> = keys.iter().filter(|key| !found.contains_key(key)).cloned().collect();
    if !missing.is_empty() {
        found.extend(by_key(points(ctx, None, Some(&missing), true, completed, Pick::OldestAfter(instant))?));
    }
    let mut thens = Vec::new();
    for point in now {
        let then = found.remove(&point.cell.key).filter(|then| then.run.run_id != point.run.run_id);
        thens.extend(then);
    }
    Ok(thens)
}

fn by_key(points: Vec<Point>) -> BTreeMap<CellKey, Point> {
    points.into_iter().map(|point| (point.cell.key.clone(), point)).collect()
}

fn points(
    ctx: &Ctx,
    filter: Option<&str>,
    keys: Option<&[CellKey]>,
    counted: bool,
    statuses: &[RunStatus],
    pick: Pick,
) -> Result<Vec<Point>, ToolError> {
    if keys.is_some_and(<[CellKey]>::is_empty) {
        return Ok(Vec::new());
    }
    Ok(ctx.store.points(&PointQuery { evaluation_contains: filter, keys, grain: Grain::Evaluation, counted, statuses, pick })?)
}
