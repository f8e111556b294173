//! What is said where a filter, or a run, leaves nothing to show.
//!
//! Promises: a sentence is about what the filter kept, never about the rest of the run; where it kept nothing it says what there is.
//! Does not: filter.

use crate::{
    domain::{attempt::shorten, log::RunStatus, outcome::Counts, text::clean},
    store::{Run, RunQuery},
    tools::{Ctx, ToolError, render},
};

/// Ids that a sentence lists.
const NAMES: usize = 5;
/// Bytes of an id or filter that a sentence repeats.
const NAME_BYTES: usize = 80;

/// That `run` holds nothing under the filter, and what it does hold.
///
/// # Errors
/// As the store.
pub fn none_in(ctx: &Ctx, run: &Run, filter: Option<&str>) -> Result<String, ToolError> {
    let holds = holds(ctx, run)?;
    Ok(match filter {
        Some(filter) => format!("Run {} holds no evaluation whose id contains {}; it {holds}.", shown(&run.run_id), quoted(filter)),
        None => format!("Run {} {holds}.", shown(&run.run_id)),
    })
}

/// That no run under `query` matches, and what the newest one holds; none where there is no such run at all.
///
/// # Errors
/// As the store.
pub fn none_anywhere(ctx: &Ctx, query: &RunQuery) -> Result<Option<String>, ToolError> {
    let any = RunQuery { evaluation_contains: None, limit: 1, ..query.clone() };
    let Some(newest) = ctx.store.runs(&any)?.0.into_iter().next() else { return Ok(None) };
    let kind = query.kind.map(|kind| format!("{} ", kind.word())).unwrap_or_default();
    let wanted = query.evaluation_contains.as_deref().map(|filter| format!(" whose id contains {}", quoted(filter))).unwrap_or_default();
    Ok(Some(format!("No {kind}run holds an evaluation{wanted}; the newest, {}, {}.", shown(&newest.run_id), holds(ctx, &newest)?)))
}

/// That nothing failed among what the filter kept of `run`, which is `counts`; or what happened instead.
#[must_use]
pub fn none_failed(run: &Run, filter: Option<&str>, counts: Counts) -> String {
    let place = filter.map(|filter| format!(" in evaluations whose id contains {}", quoted(filter))).unwrap_or_default();
    let state = if run.status == RunStatus::Completed { String::new() } else { format!(" The run is {}.", run.status.word()) };
    if counts.counted() > 0 {
        return format!("Nothing failed{place}: {}.{state}", render::counts(counts));
    }
    let uncounted = render::uncounted(counts);
    let uncounted = if uncounted.is_empty() { "no attempt".to_owned() } else { uncounted };
    format!("Nothing was counted{place}: {uncounted}.{state}")
}

fn holds(ctx: &Ctx, run: &Run) -> Result<String, ToolError> {
    let ids: Vec<String> = ctx.store.evaluations(&run.run_id)?.into_iter().map(|evaluation| shown(&evaluation.info.id)).collect();
    let listed = ids.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    Ok(match ids.len() {
        0 => "holds no evaluation".to_owned(),
        count if count > NAMES => format!("holds {listed} and {} more", count - NAMES),
        _ => format!("holds {listed}"),
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

fn shown(text: &str) -> String {
    clean(&shorten(text, NAME_BYTES))
}
