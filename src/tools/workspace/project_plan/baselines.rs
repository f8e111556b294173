//! Whether there are baselines, and whether they are of today.
//!
//! Promises: a commit is called superseded only where the newest run's earlier commits are known.
//! Does not: accept one.

use std::collections::BTreeSet;

use super::{
    Evidence, Item, Kind, Next, call,
    state::{LATELY, State},
};
use crate::{
    domain::{reference::same_commit, text::clean},
    store::{CellQuery, Run, Selector, workspace::BaselineRow},
    tools::{Ctx, ToolError},
};

/// Baselines that are looked at.
const BASELINES: usize = 50;

pub fn items(ctx: &Ctx, state: &State) -> Result<Vec<Item>, ToolError> {
    let Some(newest) = state.runs.first() else { return Ok(Vec::new()) };
    if state.baselines.is_empty() {
        let evidence = Evidence { run_id: Some(newest.run_id.clone()), created_at: Some(newest.created_at), ..Evidence::default() };
        let why = "No run was accepted as a baseline; a person accepts one with `runlore baseline accept RUN`.".to_owned();
        let next = call("run_explain", [("run", newest.run_id.as_str().into())]);
        return Ok(vec![Item::new(Kind::NoBaseline, None, why, evidence, next)]);
    }
    let mut items = Vec::new();
    for row in state.baselines.iter().take(BASELINES) {
        items.extend(of(ctx, state, row)?);
    }
    Ok(items)
}

fn lineage(row: &BaselineRow) -> Next {
    match &row.evaluation {
        Some(id) => call("baseline_lineage", [("evaluation", id.as_str().into())]),
        None => call("baseline_lineage", []),
    }
}

fn of(ctx: &Ctx, state: &State, row: &BaselineRow) -> Result<Option<Item>, ToolError> {
    let run = ctx.store.select(&Selector::Id(&row.run_id), 1)?.into_iter().next();
    let evidence = Evidence { base_run_id: Some(row.run_id.clone()), ..Evidence::default() };
    let item = |kind, why, evidence| Item::new(kind, row.evaluation.as_deref(), why, evidence, lineage(row));
    let Some(run) = run else {
        let why = format!("Its baseline {} is no longer in the project.", clean(&row.run_id));
        return Ok(Some(item(Kind::BaselineGone, why, evidence)));
    };
    let since = since(ctx, state, row, &run)?;
    let Some(newest) = since.first().copied() else { return Ok(None) };
    let evidence = Evidence {
        run_id: Some(newest.run_id.clone()),
        created_at: Some(newest.created_at),
        base_counts: Some(run.counts),
        runs_since: Some(since.len() as u64),
        ..evidence
    };
    if let Some(why) = superseded(ctx, &run, newest)? {
        return Ok(Some(item(Kind::BaselineStale, why, evidence)));
    }
    let why = || format!("{} recorded runs are newer than its baseline {}.", since.len(), clean(&row.run_id));
    Ok((since.len() >= LATELY).then(|| item(Kind::BaselineStale, why(), evidence)))
}

/// The recorded completed runs after the accepted one, of its evaluation where it is of one; newest first, of those that are looked at.
fn since<'a>(ctx: &Ctx, state: &'a State, row: &BaselineRow, accepted: &Run) -> Result<Vec<&'a Run>, ToolError> {
    let after = |run: &&Run| (run.created_at, &run.run_id) > (accepted.created_at, &accepted.run_id);
    let newer: Vec<&Run> = state.runs.iter().filter(after).collect();
    let Some(evaluation) = &row.evaluation else { return Ok(newer) };
    let runs = newer.iter().map(|run| run.run_id.clone()).collect();
    let cells = ctx.store.cells(&CellQuery { runs, evaluation: Some(evaluation.clone()), ..CellQuery::default() })?;
    let holding: BTreeSet<String> = cells.into_iter().map(|cell| cell.run_id).collect();
    Ok(newer.into_iter().filter(|run| holding.contains(&run.run_id)).collect())
}

fn superseded(ctx: &Ctx, accepted: &Run, newest: &Run) -> Result<Option<String>, ToolError> {
    let sha = |run: &Run| run.git.as_ref().and_then(|git| git.sha.clone());
    let (Some(then), Some(now)) = (sha(accepted), sha(newest)) else { return Ok(None) };
    let before = ctx.store.ancestors(&newest.run_id)?;
    if before.is_empty() || same_commit(&then, &now) || before.iter().any(|sha| same_commit(sha, &then)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "The commit {} of its baseline is not among those before {}, of the newest run {}.",
        clean(&then),
        clean(&now),
        clean(&newest.run_id)
    )))
}
