//! `failures`: what failed in a run, why, since when, with the end of each attempt's transcript (decisions 23, 62).
//!
//! Promises: new failures first; the causes of all failing attempts stand before the cells; `next` is a call that works.
//! Does not: show attempts that passed.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{kept, record::RunMark};
use crate::{
    domain::{
        attempt::{Check, shorten},
        cell::{Cell, CellKey, Grain, Verdict},
        outcome::{Counts, Outcome},
    },
    store::{AttemptQuery, AttemptRow, CellQuery, Run, RunPoint, Streak},
    tools::{
        Ctx, Tool, ToolError,
        arguments::{self, Bounded},
        cursor::List,
        render::Style,
        resolve,
    },
};

mod past;
mod text;

use past::Past;

/// Causes that one answer can list.
const CAUSES_MAX: u64 = 1000;

/// The tool.
pub enum Failures {}

/// The arguments of `failures`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    #[serde(default = "arguments::latest")]
    pub run: String,
    /// Only evaluations whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// How many failing cells.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 10>,
    /// How many causes.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub causes: Bounded<0, CAUSES_MAX, 20>,
    /// How many lines of each failing attempt's conversation, from its end.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub tail: Bounded<0, 100, 12>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `failures`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The run's id.
    pub run_id: String,
    /// Failing attempts by their reason, over all cells that the filter keeps, the commonest first.
    pub causes: Vec<Cause>,
    /// How many causes there are.
    pub causes_total: usize,
    /// Failing cells: new first, then by evaluation and case.
    pub cells: Vec<FailingCell>,
    /// What else should be known.
    pub note: Option<String>,
    /// The next useful call.
    pub next: Option<Next>,
    /// How many cells are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for what comes after these; null where nothing does.
    pub next_cursor: Option<String>,
    /// Whether the run has several arms, so that the text names each cell's.
    #[serde(skip)]
    several_arms: bool,
}

/// A cell's place among the failing ones.
type Order = (bool, String, Option<String>, String);
/// Where a page ends: its run, whatever `latest` is by then, and its last cell.
type Place = (String, Order);

/// Attempts that failed for the same reason.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cause {
    /// The same across runs.
    pub signature: String,
    /// The evaluation's id.
    pub evaluation: String,
    /// `fail` or `infra_error`.
    pub outcome: Outcome,
    /// The first failed check; null for an errored attempt.
    pub check: Option<String>,
    /// The reason, normalised.
    pub reason: String,
    /// How many attempts.
    pub attempts: u64,
}

/// A case (or a whole evaluation without cases) with a failing attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingCell {
    /// The evaluation's id.
    pub evaluation: String,
    /// The case's id, where the evaluation has cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The arm's name.
    pub arm: String,
    /// The cell's word.
    pub verdict: Verdict,
    /// The five counts.
    pub counts: Counts,
    /// Whether the previous counted run passed.
    pub new: bool,
    /// How this failure stands in the history.
    pub recurrence: Recurrence,
    /// The first run of the unbroken row of counted runs that did not pass; this run where there is none before. A run that counted nothing
    /// of the cell (all its attempts broke) neither begins nor ends a row.
    pub failing_since: Option<RunMark>,
    /// The last run that passed.
    pub last_pass: Option<RunMark>,
    /// Whether the case fails so now and then: judged by the newest fifty recorded runs of its evaluation before, by the same arm; null where no
    /// attempt failed (but errored), or fewer than three were counted before.
    pub within_flake_rate: Option<bool>,
    /// The failing attempts.
    pub attempts: Vec<FailingAttempt>,
}

/// How a failure stands in the history of its cell (decision 23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// The cell was never counted before.
    First,
    /// The previous counted run passed, and none failed before.
    New,
    /// The previous counted run passed, and an earlier one failed.
    Returning,
    /// The previous counted run failed too.
    Known,
}

/// A failing attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailingAttempt {
    /// Its key, for `transcript`.
    pub attempt: String,
    /// `fail` or `infra_error`.
    pub outcome: Outcome,
    /// Why it broke, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The limit that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The checks that did not pass.
    pub checks: Vec<Check>,
    /// The last lines of its conversation, each one line of JSON; absent without the scope for transcripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Vec<String>>,
    /// Whether it has a transcript.
    #[serde(skip)]
    has_transcript: bool,
}

/// A call worth making next.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Next {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: std::collections::BTreeMap<String, String>,
}

impl Tool for Failures {
    const NAME: &'static str = "failures";
    const TITLE: &'static str = "Failures";
    const ABOUT: &'static str = "What failed in a run, why, and since when";
    const DOC: &'static str = "Returns what failed or errored in a run: causes with counts, then each failing case with whether it is new, since when it fails, its failed checks and the end of its transcript.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, limit, causes and tail";
    const TEXT_ARGUMENTS: &'static [&'static str] = &["tail"];
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let place = list.place::<Place>(input.cursor.as_deref())?;
        let run = resolve::run_of_page(ctx, place.as_ref().map(|(run_id, _)| run_id.as_str()), &input.run)?;
        let mut found = failing(ctx, &run, input.filter.as_deref())?;
        let total = found.len();
        found.retain(|cell| place.as_ref().is_none_or(|(_, after)| order(cell) > *after));
        let complete = found.len() <= input.limit.count();
        found.truncate(input.limit.count());
        let next_cursor = found.last().filter(|_| !complete).map(|last| list.at(&(&run.run_id, order(last))));
        let cells = with_attempts(ctx, &run, found, input.tail.get())?;
        let causes = ctx.store.causes(&run.run_id, input.filter.as_deref())?;
        Ok(Output {
            note: note(ctx, &run, &input, total, causes.len())?,
            several_arms: ctx.store.arms(std::slice::from_ref(&run.run_id))?.get(&run.run_id).is_some_and(|arms| arms.len() > 1),
            next: next(ctx, &run, &cells),
            returned: cells.len(),
            complete,
            next_cursor,
            total,
            causes_total: causes.len(),
            causes: causes.into_iter().take(input.causes.count()).map(Into::into).collect(),
            cells,
            run_id: run.run_id,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        text::text(output, style)
    }
}

impl From<crate::store::Cause> for Cause {
    fn from(cause: crate::store::Cause) -> Self {
        Self {
            signature: cause.signature,
            evaluation: cause.evaluation,
            outcome: cause.outcome,
            check: cause.check,
            reason: cause.reason,
            attempts: cause.attempts,
        }
    }
}

fn note(ctx: &Ctx, run: &Run, input: &Input, total: usize, causes: usize) -> Result<Option<String>, ToolError> {
    if total > 0 {
        let left = causes.saturating_sub(input.causes.count());
        let advice = if input.causes.get() < CAUSES_MAX { "raise causes, or narrow with filter" } else { "narrow with filter" };
        // Who asks for none knows that there are some.
        return Ok((left > 0 && input.causes.get() > 0).then(|| format!("{left} more causes are not listed; {advice}.")));
    }
    let filter = input.filter.as_deref();
    let query = CellQuery { runs: vec![run.run_id.clone()], evaluation_contains: filter.map(str::to_owned), ..CellQuery::default() };
    let cells = ctx.store.cells(&query)?;
    Ok(Some(if cells.is_empty() {
        kept::none_in(ctx, run, filter)?
    } else {
        kept::none_failed(run, filter, cells.iter().fold(Counts::default(), |sum, cell| sum.plus(cell.counts)))
    }))
}

/// The first transcript of what is here; where there is none, or it may not be read, the history of the first failure's evaluation.
fn next(ctx: &Ctx, run: &Run, cells: &[FailingCell]) -> Option<Next> {
    let cell = cells.first()?;
    let (tool, arguments) = match cells.iter().flat_map(|cell| &cell.attempts).find(|attempt| attempt.has_transcript) {
        Some(attempt) if ctx.caller.holds("traces:read") => ("transcript", vec![("run", &run.run_id), ("attempt", &attempt.attempt)]),
        _ => ("history", vec![("filter", &cell.evaluation)]),
    };
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    Some(Next { tool: tool.to_owned(), arguments })
}

/// The failing cells with their place in the history, new first.
fn failing(ctx: &Ctx, run: &Run, filter: Option<&str>) -> Result<Vec<(Cell, Streak)>, ToolError> {
    let query = CellQuery {
        runs: vec![run.run_id.clone()],
        evaluation_contains: filter.map(str::to_owned),
        grain: Grain::Case,
        failing: true,
        ..CellQuery::default()
    };
    let cells = ctx.store.cells(&query)?;
    let keys: Vec<CellKey> = cells.iter().map(|cell| cell.key.clone()).collect();
    let place = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
    let mut found: Vec<(Cell, Streak)> = cells.into_iter().zip(ctx.store.streaks(&place, Grain::Case, &keys)?).collect();
    found.sort_by_cached_key(order);
    Ok(found)
}

/// A cell's place: new ones first, then by evaluation, case and arm.
fn order((cell, streak): &(Cell, Streak)) -> Order {
    (!is_new(streak), cell.key.evaluation.clone(), cell.key.case.clone(), cell.key.arm.clone())
}

fn is_new(streak: &Streak) -> bool {
    matches!(recurrence(streak), Recurrence::New | Recurrence::Returning)
}

fn recurrence(streak: &Streak) -> Recurrence {
    match &streak.previous {
        None => Recurrence::First,
        Some((Verdict::Pass, _)) if streak.failed_before => Recurrence::Returning,
        Some((Verdict::Pass, _)) => Recurrence::New,
        Some(_) => Recurrence::Known,
    }
}

fn with_attempts(ctx: &Ctx, run: &Run, found: Vec<(Cell, Streak)>, tail: u64) -> Result<Vec<FailingCell>, ToolError> {
    let keys: Vec<CellKey> = found.iter().map(|(cell, _)| cell.key.clone()).collect();
    let query = AttemptQuery {
        evaluation_contains: None,
        keys: Some(&keys),
        outcomes: &[Outcome::Fail, Outcome::InfraError],
        checks: true,
        rest: false,
    };
    let mut attempts = ctx.store.attempts(&run.run_id, &query)?;
    let mut cells = Vec::with_capacity(found.len());
    let past = Past::read(ctx, run, &keys)?;
    for (cell, streak) in found {
        let (own, rest) = attempts.into_iter().partition(|attempt| belongs(attempt, &cell.key));
        attempts = rest;
        let within = past.within_flake_rate(&cell);
        cells.push(FailingCell { within_flake_rate: within, ..failing_cell(ctx, run, cell, streak, own, tail)? });
    }
    Ok(cells)
}

fn belongs(attempt: &AttemptRow, key: &CellKey) -> bool {
    attempt.evaluation == key.evaluation && attempt.arm == key.arm && Some(attempt.case.as_str()) == key.case.as_deref()
}

fn failing_cell(ctx: &Ctx, run: &Run, cell: Cell, streak: Streak, attempts: Vec<AttemptRow>, tail: u64) -> Result<FailingCell, ToolError> {
    let attempts = attempts.into_iter().map(|attempt| failing_attempt(ctx, run, attempt, tail)).collect::<Result<Vec<_>, _>>()?;
    let this = RunMark { run_id: run.run_id.clone(), created_at: run.created_at };
    let known = recurrence(&streak) == Recurrence::Known;
    Ok(FailingCell {
        new: is_new(&streak),
        recurrence: recurrence(&streak),
        // A failure that is not a continuation began here.
        failing_since: Some(streak.failing_since.filter(|_| known).map_or(this, Into::into)),
        last_pass: streak.last_pass.map(Into::into),
        within_flake_rate: None,
        case: cell.key.case.filter(|case| !case.is_empty()),
        evaluation: cell.key.evaluation,
        arm: cell.key.arm,
        verdict: cell.verdict,
        counts: cell.counts,
        attempts,
    })
}

fn failing_attempt(ctx: &Ctx, run: &Run, attempt: AttemptRow, tail: u64) -> Result<FailingAttempt, ToolError> {
    let tail = if ctx.caller.holds("traces:read") { Some(tail_of(ctx, run, &attempt, tail)?) } else { None };
    let checks = attempt.checks.into_iter().filter(|check| check.passed != Some(true)).collect();
    Ok(FailingAttempt {
        has_transcript: attempt.lines > 0,
        attempt: attempt.key,
        outcome: attempt.outcome,
        error: attempt.error,
        limit: attempt.limit,
        checks,
        tail,
    })
}

/// The last lines of the conversation; of the whole transcript where the log tells no conversation apart.
fn tail_of(ctx: &Ctx, run: &Run, attempt: &AttemptRow, tail: u64) -> Result<Vec<String>, ToolError> {
    let end = if attempt.messages > 0 { attempt.messages } else { attempt.lines };
    let start = end.saturating_sub(tail);
    if start == end {
        return Ok(Vec::new());
    }
    let page = ctx.store.transcript(&run.run_id, &attempt.key, start, end - start)?;
    Ok(page.map(|page| page.lines).unwrap_or_default().iter().map(|line| shorten(line, ctx.limits.tail_line_bytes)).collect())
}

#[cfg(test)]
mod tests;
