//! What evaluations lack: cases, runs, or runs of late.
//!
//! Promises: only what was made here is said to lack cases: what comes with logs brings its own.
//! Does not: read anything.

use serde_json::Value;

use super::{
    Evidence, Item, Kind, call,
    state::{LATELY, State},
};
use crate::{
    store::workspace::{Authored, EvaluationStatus},
    tools::render::clean,
};

pub fn items(state: &State) -> Vec<Item> {
    state.evaluations.values().filter_map(|one| lacks(one).or_else(|| lately(state, one))).collect()
}

fn lacks(one: &Authored) -> Option<Item> {
    let id: Value = one.id.as_str().into();
    if !one.authored {
        return None;
    }
    if one.cases == 0 {
        let why = "It was made here and has no case: no run can be started.".to_owned();
        let evidence = Evidence { cases: Some(0), ..Evidence::default() };
        return Some(Item::new(Kind::WithoutCases, Some(&one.id), why, evidence, call("test_cases_add", [("evaluation", id)])));
    }
    if one.runs > 0 {
        return None;
    }
    let evidence = Evidence { cases: Some(one.cases), ..Evidence::default() };
    let cases = format!("{} case{}", one.cases, if one.cases == 1 { "" } else { "s" });
    // A draft and a locked one cannot be started: what there is to see is how they stand.
    let (why, next) = match (&one.lock, one.status) {
        (Some(lock), _) => {
            (format!("It has {cases} and no run, and is locked by {}.", clean(&lock.by)), call("evaluations_list", [("filter", id)]))
        }
        (None, EvaluationStatus::Draft) => {
            let why = format!("It has {cases} and no run, and is a draft: it can be started once it is active.");
            (why, call("evaluations_list", [("filter", id)]))
        }
        _ => (format!("It has {cases} and no run."), call("runs_start", [("evaluation", id), ("environment", "dev".into())])),
    };
    Some(Item::new(Kind::NeverRun, Some(&one.id), why, evidence, next))
}

/// Whether the newest runs leave it out.
fn lately(state: &State, one: &Authored) -> Option<Item> {
    let points = state.points.iter().filter(|point| point.cell.key.evaluation == one.id);
    let newest = points.max_by_key(|point| (point.run.created_at, point.run.run_id.clone()))?;
    let place = |run: &crate::store::Run| (run.created_at, run.run_id.clone()) > (newest.run.created_at, newest.run.run_id.clone());
    let since = state.runs.iter().filter(|run| place(run)).count();
    if since < LATELY {
        return None;
    }
    let evidence = Evidence {
        run_id: Some(newest.run.run_id.clone()),
        created_at: Some(newest.run.created_at),
        counts: Some(newest.cell.counts),
        runs_since: Some(since as u64),
        ..Evidence::default()
    };
    let or_more = if since == state.runs.len() && state.runs_total > since as u64 { " or more" } else { "" };
    let why = format!("{since}{or_more} newer recorded runs left it out.");
    Some(Item::new(Kind::NotRunLately, Some(&one.id), why, evidence, call("history", [("filter", one.id.as_str().into())])))
}
