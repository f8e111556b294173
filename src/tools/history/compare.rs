//! `compare`: what changed between two runs, or since an instant, and whether the change is real.
//!
//! Promises: one call answers "what regressed since last week"; every row that is not `same` carries its evidence, cases being the unit, and
//! each evidence the handle by which `verify` computes it again.
//! Does not: decide a release.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    base, kept,
    record::RunSide,
    since::{self, States},
};
use crate::{
    domain::{
        cell::{Cell, Grain},
        compare::{Pair, Status, order, pairs},
        decision::EvidenceSummary,
        evidence::{Evidence, Family},
        outcome::Counts,
        time::{self, Timestamp},
    },
    store::{Kind, Run, RunPoint, RunQuery},
    tools::{Ctx, Tool, ToolError, arguments::Hundredths, cursor::List, render, resolve},
};

mod cases;
pub mod changes;
pub mod handle;
mod page;
mod rows;
pub mod sides;
mod stacks;
#[cfg(test)]
mod tests;
mod text;

use cases::cells;
use page::{End, RowKey};
use rows::Measured;
pub use rows::Row;
use stacks::Stacks;

/// The tool.
pub enum Compare {}

/// The arguments of `compare`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The newer run: latest (the default), latest~N, an id, the beginning of one, or a Git sha.
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub head: Option<String>,
    /// The older run, or baseline for the accepted one. Without it: the nearest earlier recorded completed run that shares evaluations, a Git ancestor first.
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub base: Option<String>,
    /// Instead of head and base: compare each evaluation now with what it was then: an age such as 7d, a date or an RFC 3339 time.
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["head", "base"])]
    #[serde(default)]
    pub since: Option<String>,
    /// Only evaluations whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// One row per evaluation, or per case.
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    #[serde(default)]
    pub by: Grain,
    /// Also list rows that are the same, and removed ones of a head that holds few of the base's evaluations.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// Also say whether the head is shown to be no worse by so much, given beforehand: 0.05 for five points of the pass rate.
    #[arg(long, value_name = "SHARE")]
    #[serde(default)]
    pub margin: Option<Hundredths<0, 100, 5>>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `compare`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The newer run; null with `since`, where each side names its run.
    pub head: Option<RunSide>,
    /// The older run; null where there is none.
    pub base: Option<RunSide>,
    /// The instant that `since` means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Worst first: regressed, infra, drift, fixed, added, removed.
    pub rows: Vec<Row>,
    /// Stack fields that differ.
    pub changes: Vec<changes::Change>,
    /// How many rows there are of each status, the unlisted ones included.
    pub statuses: Statuses,
    /// How many rows are the same.
    pub same: usize,
    /// How many removed rows are counted but not listed.
    pub removed: usize,
    /// With `since`: evaluations without an ended run since.
    pub not_run: Vec<String>,
    /// The five counts of both sides.
    pub counts: BothCounts,
    /// The paired result over all cases counted on both sides, every evaluation together.
    pub suite: Option<Evidence>,
    /// Where there is no such result, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite_reason: Option<String>,
    /// What the rows' p values were adjusted over; null where no row changed enough to be found.
    pub family: Option<Family>,
    /// The same as evidence in the decision contract's form.
    pub evidence_summary: EvidenceSummary,
    /// What else should be known.
    pub note: Option<String>,
    /// How many rows are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for what comes after these; null where nothing does.
    pub next_cursor: Option<String>,
    /// With `since`: the newest run of *now*, which later pages go no further than.
    #[serde(skip)]
    until: Option<Timestamp>,
}

/// How many rows there are of each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Statuses {
    /// Those that got worse.
    pub regressed: usize,
    /// Those without a counted attempt on one side.
    pub infra: usize,
    /// Those with another rate.
    pub drift: usize,
    /// Those that got better.
    pub fixed: usize,
    /// Those that only the head has.
    pub added: usize,
    /// Those that only the base has.
    pub removed: usize,
    /// Those that are the same.
    pub same: usize,
}

impl Statuses {
    fn of(statuses: impl Iterator<Item = Status>) -> Self {
        let mut counts = Self::default();
        statuses.for_each(|status| {
            *match status {
                Status::Regressed => &mut counts.regressed,
                Status::Infra => &mut counts.infra,
                Status::Drift => &mut counts.drift,
                Status::Fixed => &mut counts.fixed,
                Status::Added => &mut counts.added,
                Status::Removed => &mut counts.removed,
                Status::Same => &mut counts.same,
            } += 1;
        });
        counts
    }
}

/// The five counts of both sides.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct BothCounts {
    /// The head's.
    pub head: Counts,
    /// The base's.
    pub base: Counts,
}

impl Tool for Compare {
    const NAME: &'static str = "compare";
    const TITLE: &'static str = "Compare runs";
    const ABOUT: &'static str = "What changed between two runs, or since an instant, and whether it is real";
    const DOC: &'static str = "Compares two runs, or with since (such as 7d) each evaluation now with what it was then: what regressed, was fixed or drifted, with a paired test that says whether the difference is real (margin: whether it is shown to be no worse). `confirmed` and `inconclusive` are statistical verdicts, not release decisions.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, and by evaluation rather than case";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, mut input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let end = list.place::<End>(input.cursor.as_deref())?;
        if let Some(end) = &end {
            (input.head, input.base) = (end.head.clone(), end.base.clone());
        }
        let mut output = answer(ctx, &input, end.as_ref())?;
        output.next_cursor = output.rows.last().filter(|_| !output.complete).map(|last| list.at(&End::of(&output, last)));
        Ok(output)
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &render::Style) -> String {
        text::text(output, style)
    }
}

/// The rows from the one after `end` on, the worst of all where there is none.
///
/// # Errors
/// As the store, and for arguments that mean nothing.
pub fn answer(ctx: &Ctx, input: &Input, end: Option<&End>) -> Result<Output, ToolError> {
    let mut whole = compared(ctx, input, end)?;
    whole.output.evidence_summary = sides::evidence(ctx, &whole)?;
    let mut output = listed(ctx, input, whole, end.map(|end| &end.row))?;
    handle::give(&mut output, input);
    Ok(output)
}

/// A whole comparison, before rows are listed.
pub struct Whole {
    /// All but the rows.
    output: Output,
    /// Every row, those that are the same included, in no order.
    pub rows: Vec<(Row, Pair)>,
    /// Where each run stands in time, where rows stand in several.
    places: BTreeMap<String, RunPoint>,
    /// Whether removed rows are listed where nobody asks.
    removed: bool,
    /// The two runs, where the rows are of two.
    runs: Option<(Run, Option<Run>)>,
}

impl Whole {
    /// The paired result over all cases.
    pub fn suite(&self) -> Option<&Evidence> {
        self.output.suite.as_ref()
    }

    /// What the rows' p values were adjusted over.
    pub fn family(&self) -> Option<Family> {
        self.output.family
    }

    fn of(output: Output, measured: Measured, places: BTreeMap<String, RunPoint>, removed: bool) -> Self {
        let Measured { rows, counts, suite, suite_reason, family, apart } = measured;
        let note = output.note.or_else(|| match apart {
            0 => None,
            1 => Some("One row is not comparable: it was measured in another way, and cannot be said to be worse or better.".to_owned()),
            _ => Some(format!(
                "{apart} rows are not comparable: they were measured in another way, and cannot be said to be worse or better."
            )),
        });
        Self { output: Output { counts, suite, suite_reason, family, note, ..output }, rows, places, removed, runs: None }
    }

    fn between(self, head: Run, base: Option<Run>) -> Self {
        Self { runs: Some((head, base)), ..self }
    }
}

fn compared(ctx: &Ctx, input: &Input, end: Option<&End>) -> Result<Whole, ToolError> {
    match &input.since {
        Some(_) if input.head.is_some() || input.base.is_some() => {
            Err(ToolError::Argument("argument since: it stands instead of head and base; give one or the other".to_owned()))
        }
        Some(text) => {
            let given = || time::since(text, ctx.now).map_err(|sentence| ToolError::Argument(format!("argument since: {sentence}")));
            let instant = end.and_then(|end| end.since).map(Timestamp::from_millis).map_or_else(given, Ok)?;
            since_instant(ctx, input, instant, end.and_then(|end| end.until).map(Timestamp::from_millis))
        }
        None => two_runs(ctx, input),
    }
}

/// Two runs against each other.
///
/// # Errors
/// As the store, and for a reference that names no run.
pub fn two_runs(ctx: &Ctx, input: &Input) -> Result<Whole, ToolError> {
    let head = resolve::run(ctx, input.head.as_deref().unwrap_or("latest"))?;
    let cells = cells_of(ctx, input, &head.run_id)?;
    let counts = cells.iter().fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
    let nothing = if cells.is_empty() { Some(kept::none_in(ctx, &head, input.filter.as_deref())?) } else { None };
    let named = input.base.as_deref();
    // A run that is named needs no look at what the head holds besides; a baseline is of what is asked for.
    let of = if named.is_none() { all_cells(ctx, input, &head.run_id, &cells)? } else { cells.clone() };
    let Some(base) = base::of(ctx, &head, &of, named)? else {
        let measured = Measured { counts: BothCounts { head: counts, base: Counts::default() }, ..Measured::default() };
        let output = no_baseline(head.run_id.clone(), nothing);
        return Ok(Whole::of(output, measured, BTreeMap::new(), true).between(head, None));
    };
    let before = cells_of(ctx, input, &base.run_id)?;
    let pairs = pairs(cells, before);
    let shared = pairs.iter().filter(|pair| pair.head.is_some() && pair.base.is_some()).count();
    let held = pairs.iter().filter(|pair| pair.base.is_some()).count();
    let stacks = Stacks::read(ctx, &pairs)?;
    let changes = changes::between(&stacks, &[(head.run_id.clone(), base.run_id.clone())]);
    let measured = rows::measured(ctx, input, pairs, &stacks, &BTreeMap::new())?;
    let output = Output { head: Some((&head).into()), base: Some((&base).into()), changes, note: nothing, ..Output::default() };
    Ok(Whole::of(output, measured, BTreeMap::new(), shared * 2 > held).between(head, Some(base)))
}

fn cells_of(ctx: &Ctx, input: &Input, run: &str) -> Result<Vec<Cell>, ToolError> {
    cells(ctx, &[run.to_owned()], input.filter.as_deref(), Grain::Evaluation)
}

/// The base is chosen by all that the head holds, whatever the filter keeps.
fn all_cells(ctx: &Ctx, input: &Input, run: &str, filtered: &[Cell]) -> Result<Vec<Cell>, ToolError> {
    if input.filter.is_none() { Ok(filtered.to_vec()) } else { cells(ctx, &[run.to_owned()], None, Grain::Evaluation) }
}

/// Each evaluation now, or as of `until`, against what it was at `instant`.
///
/// # Errors
/// As the store.
pub fn since_instant(ctx: &Ctx, input: &Input, instant: Timestamp, until: Option<Timestamp>) -> Result<Whole, ToolError> {
    let States { pairs, places, not_run } = since::states(ctx, input.filter.as_deref(), instant, until)?;
    let runs: BTreeSet<(String, String)> =
        pairs.iter().filter_map(|pair| Some((pair.head.as_ref()?.run_id.clone(), pair.base.as_ref()?.run_id.clone()))).collect();
    let stacks = Stacks::read(ctx, &pairs)?;
    let changes = changes::between(&stacks, &runs.into_iter().collect::<Vec<_>>());
    let note = if pairs.is_empty() && not_run.is_empty() { Some(no_state(ctx, input)?) } else { None };
    let measured = rows::measured(ctx, input, pairs, &stacks, &places)?;
    let until = until.or_else(|| places.values().map(|point| point.created_at).max());
    let output = Output { since: Some(instant), until, changes, not_run, note, ..Output::default() };
    Ok(Whole::of(output, measured, places, true))
}

fn no_state(ctx: &Ctx, input: &Input) -> Result<String, ToolError> {
    let query = RunQuery { evaluation_contains: input.filter.clone(), kind: Some(Kind::Recorded), ..RunQuery::default() };
    // Where the filter matches, what is missing is a run that has ended.
    let matched = !ctx.store.runs(&RunQuery { limit: 1, ..query.clone() })?.0.is_empty();
    let none = if matched { None } else { kept::none_anywhere(ctx, &query)? };
    Ok(none.unwrap_or_else(|| "No recorded run that has ended holds such an evaluation.".to_owned()))
}

fn no_baseline(run_id: String, nothing: Option<String>) -> Output {
    let none = "There is no earlier recorded completed run that shares an evaluation with it.";
    Output {
        head: Some(RunSide { run_id, created_at: None, git: None }),
        note: Some(nothing.map_or_else(|| none.to_owned(), |nothing| format!("{none} {nothing}"))),
        ..Output::default()
    }
}

/// The rows that are listed, worst first, from the one after `after` on.
fn listed(ctx: &Ctx, input: &Input, whole: Whole, after: Option<&RowKey>) -> Result<Output, ToolError> {
    let Whole { output, mut rows, places, removed, .. } = whole;
    let removed = input.all || removed;
    let statuses = Statuses::of(rows.iter().map(|(row, _)| row.status));
    rows.retain(|(row, _)| (input.all || row.status != Status::Same) && (removed || row.status != Status::Removed));
    rows.sort_by_key(|(row, pair)| order(row.status, pair.difference()));
    let total = rows.len();
    rows.drain(..page::start(&rows, after)?);
    let complete = rows.len() <= ctx.limits.rows;
    rows.truncate(ctx.limits.rows);
    rows::changed_at(ctx, &mut rows, &places)?;
    Ok(Output {
        returned: rows.len(),
        complete,
        rows: rows.into_iter().map(|(row, _)| row.shown(input.margin.is_some())).collect(),
        same: statuses.same,
        removed: if removed { 0 } else { statuses.removed },
        statuses,
        suite: output.suite.map(Evidence::shown),
        total,
        ..output
    })
}
