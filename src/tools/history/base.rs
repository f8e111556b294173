//! Which run a head is held against when none is named (decision 10).
//!
//! Promises: an earlier recorded completed run that holds a counted cell for more than half of the head's evaluation-and-arm pairs; a Git
//! ancestor first, then the nearest, however many runs of other tasks or models lie between. Where no run shares the arms, one that shares the
//! evaluations: then the models are what is compared. If none holds half, one that holds any.
//! Does not: look at later, scratch or unfinished runs.

use std::collections::BTreeSet;

use crate::{
    domain::cell::{Cell, CellKey},
    store::{Base, BaseQuery, CellQuery, Run, RunPoint},
    tools::{Ctx, ToolError},
};

/// Candidates read at first: one of the nearest is the base, as a rule.
const PAGE_FIRST: usize = 4;
/// Candidates read at once in the end.
const PAGE_MAX: usize = 256;

/// Candidates that share the evaluations and whose arms are looked at, before the nearest of them is taken as it is.
const ARMS_LOOKED_AT: usize = 64;

/// What was found so far, the nearest of each sort.
#[derive(Default)]
struct Found {
    /// Shares more than half of the pairs, arms included.
    exact: Option<Run>,
    /// Shares more than half of the evaluations.
    half: Option<Run>,
    /// Shares any.
    any: Option<Run>,
    looked_at: usize,
}

/// The base of `head`, whose cells are `cells`; none where no earlier run shares a pair.
///
/// # Errors
/// As the store.
pub fn select(ctx: &Ctx, head: &Run, cells: &[Cell]) -> Result<Option<Run>, ToolError> {
    let keys: Vec<CellKey> = cells.iter().map(|cell| cell.key.clone()).collect();
    let shas = ctx.store.ancestors(&head.run_id)?;
    let ancestor = if shas.is_empty() { Found::default() } else { search(ctx, head, &keys, Some(&shas))? };
    if ancestor.exact.is_some() {
        return Ok(ancestor.exact);
    }
    let nearest = search(ctx, head, &keys, None)?;
    Ok(nearest.exact.or(ancestor.half).or(nearest.half).or(ancestor.any).or(nearest.any))
}

fn search(ctx: &Ctx, head: &Run, keys: &[CellKey], shas: Option<&[String]>) -> Result<Found, ToolError> {
    let mut found = Found::default();
    let mut before = RunPoint { run_id: head.run_id.clone(), created_at: head.created_at };
    let mut limit = PAGE_FIRST;
    loop {
        let page = ctx.store.bases(&BaseQuery { keys, before: before.clone(), shas, limit })?;
        let full = page.len() == limit;
        for base in page {
            before = RunPoint { run_id: base.run.run_id.clone(), created_at: base.run.created_at };
            found.see(ctx, keys, base)?;
            if found.exact.is_some() || found.looked_at == ARMS_LOOKED_AT {
                return Ok(found);
            }
        }
        if !full {
            return Ok(found);
        }
        limit = (limit * 4).min(PAGE_MAX);
    }
}

impl Found {
    fn see(&mut self, ctx: &Ctx, keys: &[CellKey], base: Base) -> Result<(), ToolError> {
        if base.shared > keys.len() / 2 {
            self.looked_at += 1;
            let cells = ctx.store.cells(&CellQuery { runs: vec![base.run.run_id.clone()], ..CellQuery::default() })?;
            let counted: BTreeSet<&CellKey> = cells.iter().filter(|cell| cell.verdict.counted()).map(|cell| &cell.key).collect();
            if keys.iter().filter(|key| counted.contains(key)).count() > keys.len() / 2 {
                self.exact = Some(base.run);
                return Ok(());
            }
            self.half.get_or_insert(base.run);
        } else {
            self.any.get_or_insert(base.run);
        }
        Ok(())
    }
}
