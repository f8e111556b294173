//! Which run a head is held against: the one that is named, the accepted baseline, or where none is named the nearest (decision 10).
//!
//! Promises: `baseline` is the run that was accepted for the project, else the one that was accepted for every evaluation of the head that has
//! one; where these are several, the sentence says which. Without a word: an earlier recorded completed run that holds a counted cell for more than half of the head's evaluation-and-arm pairs; a Git
//! ancestor first, then the nearest, however many runs of other tasks or models lie between. Where no run shares the arms, one that shares the
//! evaluations: then the models are what is compared. If none holds half, one that holds any.
//! Does not: look at later, scratch or unfinished runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        cell::{Cell, CellKey},
        text::clean,
    },
    store::{Base, BaseQuery, CellQuery, Run, RunPoint, Selector, workspace::BaselineRow},
    tools::{Ctx, ToolError, resolve},
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

/// The word for the accepted baseline, whatever runs are called.
pub const BASELINE: &str = "baseline";
/// Evaluations that a sentence lists.
const LISTED: usize = 8;

/// The run that `text` means as the base of `head`, whose cells are `cells`.
///
/// # Errors
/// As the store, and where `text` names no run, or means a baseline and there is none, or several.
pub fn of(ctx: &Ctx, head: &Run, cells: &[Cell], text: Option<&str>) -> Result<Option<Run>, ToolError> {
    match text {
        None => select(ctx, head, cells),
        Some(text) if text.trim() == BASELINE => accepted(ctx, cells)?.map(Some).ok_or_else(|| {
            let said = "argument base: no run was accepted as the baseline of these evaluations or of the project";
            ToolError::NotFound(format!("{said}; accept one with `runlore baseline accept RUN`, or leave base out"))
        }),
        Some(text) => resolve::run(ctx, text).map(Some),
    }
}

/// The run that is accepted for the project, else for the evaluations of `cells`; none where none is.
///
/// # Errors
/// As the store, and where the evaluations have different baselines, or theirs is gone.
pub fn accepted(ctx: &Ctx, cells: &[Cell]) -> Result<Option<Run>, ToolError> {
    let mut holding = ctx.store.baselines(None)?;
    holding.retain(|row| row.superseded_at.is_none());
    if let Some(row) = holding.iter().find(|row| row.evaluation.is_none()) {
        return present(ctx, row).map(Some);
    }
    let held: BTreeSet<&str> = cells.iter().map(|cell| cell.key.evaluation.as_str()).collect();
    let own: BTreeMap<&str, &BaselineRow> =
        holding.iter().filter_map(|row| Some((row.evaluation.as_deref()?, row))).filter(|(id, _)| held.contains(id)).collect();
    let runs: BTreeSet<&str> = own.values().map(|row| row.run_id.as_str()).collect();
    if runs.len() > 1 {
        return Err(several(&own));
    }
    own.values().next().map(|row| present(ctx, row)).transpose()
}

fn present(ctx: &Ctx, row: &BaselineRow) -> Result<Run, ToolError> {
    let found = ctx.store.select(&Selector::Id(&row.run_id), 1)?.into_iter().next();
    found.ok_or_else(|| {
        let run = clean(&row.run_id);
        ToolError::NotFound(format!(
            "the accepted baseline {run} is no longer in the project; accept another with `runlore baseline accept RUN`"
        ))
    })
}

fn several(own: &BTreeMap<&str, &BaselineRow>) -> ToolError {
    let listed: Vec<String> = own.iter().take(LISTED).map(|(id, row)| format!("{} has {}", clean(id), clean(&row.run_id))).collect();
    let more = if own.len() > LISTED { ", ..." } else { "" };
    ToolError::Argument(format!(
        "argument base: the evaluations have several baselines: {}{more}; name a run, or narrow to evaluations that share one",
        listed.join(", ")
    ))
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
