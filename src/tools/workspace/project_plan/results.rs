//! What the newest runs show: regressions, flaky cases, and evaluations that are too small for the difference that is looked for.
//!
//! Promises: each series is looked at in its own newest run; a regression is held against the accepted baseline where there is one, else against
//! the base that `compare` would choose, and carries what the paired test says.
//! Does not: count anything itself: `compare` and `plan_run` do.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, Item, Kind, call, state::State};
use crate::{
    domain::{
        cell::{Cell, Grain},
        compare::Status,
        outcome::{Counts, round3},
        text::clean,
    },
    stats::flip_rate,
    store::{CellQuery, Run},
    tools::{
        Ctx, Tool as _, ToolError,
        arguments::Hundredths,
        history::{
            base,
            compare::{self, Row},
            plan_run::{self, PlanRun},
        },
    },
};

/// Runs that are compared, and whose cases are read.
const HEADS: usize = 8;

/// What the newest runs show.
///
/// # Errors
/// As the store.
pub fn items(ctx: &Ctx, state: &State, difference: Hundredths<1, 100, 10>) -> Result<Vec<Item>, ToolError> {
    let mut items = Vec::new();
    for head in state.heads().take(HEADS) {
        items.extend(regressed(ctx, state, head)?);
        items.extend(flaky(ctx, state, head)?);
    }
    items.extend(too_few(ctx, state, difference)?);
    Ok(items)
}

/// The accepted baseline of what `head` holds; none where there is none, it is gone, it is `head` itself, or there are several.
///
/// # Errors
/// As the store.
pub fn baseline(ctx: &Ctx, head: &Run) -> Result<Option<Run>, ToolError> {
    let cells = ctx.store.cells(&CellQuery { runs: vec![head.run_id.clone()], ..CellQuery::default() })?;
    match base::accepted(ctx, &cells) {
        Ok(found) => Ok(found.filter(|run| run.run_id != head.run_id)),
        Err(error) if error.internal() => Err(error),
        Err(_) => Ok(None),
    }
}

fn regressed(ctx: &Ctx, state: &State, head: &Run) -> Result<Vec<Item>, ToolError> {
    let base = baseline(ctx, head)?.map(|run| run.run_id);
    let accepted = base.is_some();
    let asked = compare::Input { head: Some(head.run_id.clone()), base, ..compare::Input::default() };
    let answer = compare::answer(ctx, &asked, None)?;
    let Some(base) = answer.base else { return Ok(Vec::new()) };
    let own: BTreeSet<&str> = state.newest_in(head).map(|point| point.cell.key.evaluation.as_str()).collect();
    let rows = answer.rows.iter().filter(|row| row.status == Status::Regressed && own.contains(row.id.as_str()));
    Ok(rows.map(|row| regression(head, &base.run_id, accepted, row)).collect())
}

fn regression(head: &Run, base: &str, accepted: bool, row: &Row) -> Item {
    let side = |side: &Option<crate::tools::history::record::CellSide>| side.as_ref().map(|side| side.counts);
    let verdict = row.evidence.as_ref().map(|found| found.word);
    let against = if accepted { "its baseline" } else { "the run before" };
    let said = verdict.map_or("without evidence", crate::stats::Word::as_str);
    let evidence = Evidence {
        run_id: Some(head.run_id.clone()),
        created_at: Some(head.created_at),
        counts: side(&row.head),
        base_run_id: Some(base.to_owned()),
        base_counts: side(&row.base),
        difference: row.evidence.as_ref().and_then(|found| found.difference),
        verdict,
        ..Evidence::default()
    };
    let why =
        format!("It got worse in {} against {against} {}; the difference is {}.", clean(&head.run_id), clean(base), said.replace('_', " "));
    let next = call("failures", [("run", head.run_id.as_str().into()), ("filter", row.id.as_str().into())]);
    Item { arm: row.arm.clone(), ..Item::new(Kind::Regressed, Some(&row.id), why, evidence, next) }
}

fn flaky(ctx: &Ctx, state: &State, head: &Run) -> Result<Vec<Item>, ToolError> {
    let own: BTreeSet<(&str, &str)> =
        state.newest_in(head).map(|point| (point.cell.key.evaluation.as_str(), point.cell.key.arm.as_str())).collect();
    let cells = ctx.store.cells(&CellQuery { runs: vec![head.run_id.clone()], grain: Grain::Case, ..CellQuery::default() })?;
    let mut series = BTreeMap::<(&str, &str), Vec<&Cell>>::new();
    for cell in &cells {
        let key = (cell.key.evaluation.as_str(), cell.key.arm.as_str());
        if own.contains(&key) {
            series.entry(key).or_default().push(cell);
        }
    }
    Ok(series.into_iter().filter_map(|((evaluation, arm), cells)| flips(head, evaluation, arm, &cells)).collect())
}

fn flips(head: &Run, evaluation: &str, arm: &str, cells: &[&Cell]) -> Option<Item> {
    let rates: Vec<f64> = cells.iter().filter_map(|cell| flip_rate(cell.counts.passed.into(), cell.counts.counted().into())).collect();
    let both = cells.iter().filter(|cell| cell.counts.passed > 0 && cell.counts.failed > 0).count();
    if both == 0 || rates.is_empty() {
        return None;
    }
    let evidence = Evidence {
        run_id: Some(head.run_id.clone()),
        created_at: Some(head.created_at),
        counts: Some(cells.iter().fold(Counts::default(), |sum, cell| sum.plus(cell.counts))),
        flip_rate: Some(round3(rates.iter().sum::<f64>() / rates.len() as f64)),
        cases: Some(both as u64),
        ..Evidence::default()
    };
    let why = format!("{both} of {} cases that {} counted twice or more both passed and failed.", rates.len(), clean(&head.run_id));
    let next = call("history", [("filter", evaluation.into()), ("by", "case".into())]);
    Some(Item { arm: Some(arm.to_owned()), ..Item::new(Kind::Flaky, Some(evaluation), why, evidence, next) })
}

fn too_few(ctx: &Ctx, state: &State, difference: Hundredths<1, 100, 10>) -> Result<Vec<Item>, ToolError> {
    let planned = PlanRun::call(ctx, plan_run::Input { difference, ..plan_run::Input::default() })?;
    let rows = planned.rows.into_iter().filter(|row| !row.enough && state.evaluations.contains_key(&row.evaluation));
    let share = difference.get();
    let item = |row: plan_run::Row| {
        let takes = row.cases.map_or_else(|| "more cases than any plan has".to_owned(), |cases| format!("{cases} cases"));
        let tries = if row.attempts == 1 { String::new() } else { format!(" of {} attempts each", row.attempts) };
        let why = format!("It has {} cases; a difference of {share} at 80% power takes {takes}{tries}.", row.exist);
        let evidence = Evidence {
            cases: Some(row.exist),
            cases_needed: row.cases,
            attempts_needed: Some(row.attempts),
            runs_since: None,
            ..Evidence::default()
        };
        let next = call("plan_run", [("evaluation", row.evaluation.as_str().into()), ("difference", share.into())]);
        Item { arm: Some(row.arm), ..Item::new(Kind::TooFew, Some(&row.evaluation), why, evidence, next) }
    };
    Ok(rows.map(item).collect())
}
