//! Which run a head is held against when none is named (decision 10).
//!
//! Promises: an earlier recorded completed run that holds a counted cell for more than half of the head's evaluation-and-arm pairs; if none
//! does, for at least one; a Git ancestor first, then the nearest, however many runs of other tasks lie between. So the log of another task is
//! never the base.
//! Does not: look at later, scratch or unfinished runs.

use crate::{
    domain::cell::{Cell, CellKey},
    store::{BaseQuery, Run, RunPoint},
    tools::{Ctx, ToolError},
};

/// Candidates read at first: one of the nearest is the base, as a rule.
const PAGE_FIRST: usize = 4;
/// Candidates read at once in the end.
const PAGE_MAX: usize = 256;

/// The base of `head`, whose cells are `cells`; none where no earlier run shares a pair.
///
/// # Errors
/// As the store.
pub fn select(ctx: &Ctx, head: &Run, cells: &[Cell]) -> Result<Option<Run>, ToolError> {
    let keys: Vec<CellKey> = cells.iter().map(|cell| cell.key.clone()).collect();
    let shas = ctx.store.ancestors(&head.run_id)?;
    let mut some = None;
    if !shas.is_empty()
        && let Some(run) = search(ctx, head, &keys, Some(&shas), &mut some)?
    {
        return Ok(Some(run));
    }
    let nearest = search(ctx, head, &keys, None, &mut some)?;
    Ok(nearest.or(some))
}

/// The first candidate that shares more than half of the pairs; `some` keeps the first that shares any.
fn search(ctx: &Ctx, head: &Run, keys: &[CellKey], shas: Option<&[String]>, some: &mut Option<Run>) -> Result<Option<Run>, ToolError> {
    let mut before = RunPoint { run_id: head.run_id.clone(), created_at: head.created_at };
    let mut limit = PAGE_FIRST;
    loop {
        let page = ctx.store.bases(&BaseQuery { keys, before: before.clone(), shas, limit })?;
        let full = page.len() == limit;
        for base in page {
            before = RunPoint { run_id: base.run.run_id.clone(), created_at: base.run.created_at };
            if base.shared > keys.len() / 2 {
                return Ok(Some(base.run));
            }
            some.get_or_insert(base.run);
        }
        if !full {
            return Ok(None);
        }
        limit = (limit * 4).min(PAGE_MAX);
    }
}
