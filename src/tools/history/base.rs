//! Which run a head is held against when none is named (decision 10).
//!
//! Promises: an earlier recorded completed run that holds a counted cell for more than half of the head's evaluation-and-arm pairs; if none
//! does, for at least one; a Git ancestor first, then the nearest. So the log of another task is never the base.
//! Does not: look at later, scratch or unfinished runs.

use std::collections::BTreeSet;

use crate::{
    domain::{
        cell::Cell,
        compare::{Pair, pairs},
        log::RunStatus,
    },
    store::{CellQuery, Kind, Run, RunPoint, RunQuery},
    tools::{Ctx, ToolError},
};

/// Candidates looked at, nearest first: beyond this the nearest that shares anything is taken.
const CANDIDATES: usize = 200;
/// Candidates read at once.
const PAGE: usize = 20;

/// The base of `head`, whose cells are `cells`; none where no earlier run shares a pair.
///
/// # Errors
/// As the store.
pub fn select(ctx: &Ctx, head: &Run, cells: &[Cell]) -> Result<Option<Run>, ToolError> {
    let needed = cells.len() / 2;
    let mut some = None;
    let shas = ctx.store.ancestors(&head.run_id)?;
    if !shas.is_empty()
        && let Some(run) = search(ctx, head, cells, needed, Some(shas), &mut some)?
    {
        return Ok(Some(run));
    }
    let nearest = search(ctx, head, cells, needed, None, &mut some)?;
    Ok(nearest.or(some))
}

/// The first candidate over `needed` shared pairs; `some` keeps the first that shares any.
fn search(
    ctx: &Ctx,
    head: &Run,
    cells: &[Cell],
    needed: usize,
    shas: Option<Vec<String>>,
    some: &mut Option<Run>,
) -> Result<Option<Run>, ToolError> {
    let mut before = RunPoint { run_id: head.run_id.clone(), created_at: head.created_at };
    for _ in 0..CANDIDATES / PAGE {
        let query = RunQuery {
            kind: Some(Kind::Recorded),
            status: Some(RunStatus::Completed),
            before: Some(before.clone()),
            shas: shas.clone(),
            limit: PAGE,
            ..RunQuery::default()
        };
        let (page, _) = ctx.store.runs(&query)?;
        let full = page.len() == PAGE;
        for run in page {
            before = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
            let shared = shared(cells, cells_of(ctx, &run.run_id)?);
            if shared > needed {
                return Ok(Some(run));
            }
            if shared > 0 && some.is_none() {
                *some = Some(run);
            }
        }
        if !full {
            break;
        }
    }
    Ok(None)
}

fn cells_of(ctx: &Ctx, run: &str) -> Result<Vec<Cell>, ToolError> {
    Ok(ctx.store.cells(&CellQuery { runs: vec![run.to_owned()], ..CellQuery::default() })?)
}

/// How many of the head's pairs the candidate holds counted.
fn shared(head: &[Cell], candidate: Vec<Cell>) -> usize {
    let known: BTreeSet<&str> = head.iter().map(|cell| cell.key.evaluation.as_str()).collect();
    let candidate: Vec<Cell> =
        candidate.into_iter().filter(|cell| cell.verdict.counted() && known.contains(cell.key.evaluation.as_str())).collect();
    if candidate.is_empty() {
        return 0;
    }
    pairs(head.to_vec(), candidate).iter().filter(|Pair { head, base, .. }| head.is_some() && base.is_some()).count()
}
