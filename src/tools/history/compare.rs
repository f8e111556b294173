//! `compare`: what changed between two runs, or since an instant, and whether the change is real.
//!
//! Promises: one call answers "what regressed since last week"; every row that is not `same` carries its evidence, cases being the unit.
//! Does not: decide a release.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    base, kept,
    record::{CellSide, RunMark, RunSide},
    since::{self, States},
};
use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        compare::{Evidence, Pair, Status, evidence, order, pairs},
        outcome::Counts,
        time::{self, Timestamp},
    },
    store::{CellQuery, Kind, RunPoint, RunQuery},
    tools::{Ctx, Tool, ToolError, cursor::List, render, resolve},
};

mod changes;
mod page;
mod text;

use page::{End, RowKey};

/// The tool.
pub enum Compare {}

/// The arguments of `compare`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The newer run: latest (the default), latest~N, an id, the beginning of one, or a Git sha.
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub head: Option<String>,
    /// The older run. Without it: the nearest earlier recorded completed run that shares evaluations, a Git ancestor first.
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

/// One evaluation, or case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The evaluation's id.
    pub id: String,
    /// The case's id, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The arm, where a side has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// How it stands.
    pub status: Status,
    /// Now.
    pub head: Option<CellSide>,
    /// Then.
    pub base: Option<CellSide>,
    /// With `since`: the first run from which a changed verdict holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<RunMark>,
    /// Whether the difference is real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Tool for Compare {
    const NAME: &'static str = "compare";
    const TITLE: &'static str = "Compare runs";
    const ABOUT: &'static str = "What changed between two runs, or since an instant, and whether it is real";
    const DOC: &'static str = "Compares two runs, or with since (such as 7d) each evaluation now with what it was then: what regressed, was fixed or drifted, with a paired test that says whether the difference is real. `confirmed` and `inconclusive` are statistical verdicts, not release decisions.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, and by evaluation rather than case";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, mut input: Input) -> Result<Output, ToolError> {
        let list = List::of(Self::NAME, &input);
        let end = list.place::<End>(input.cursor.as_deref())?;
        if let Some(end) = &end {
            (input.head, input.base) = (end.head.clone(), end.base.clone());
        }
        let mut output = compared(ctx, &input, end.as_ref())?;
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

fn compared(ctx: &Ctx, input: &Input, end: Option<&End>) -> Result<Output, ToolError> {
    match &input.since {
        Some(_) if input.head.is_some() || input.base.is_some() => {
            Err(ToolError::Argument("argument since: it stands instead of head and base; give one or the other".to_owned()))
        }
        Some(text) => {
            let given = || time::since(text, ctx.now).map_err(|sentence| ToolError::Argument(format!("argument since: {sentence}")));
            let instant = end.and_then(|end| end.since).map(Timestamp::from_millis).map_or_else(given, Ok)?;
            since_instant(ctx, input, instant, end)
        }
        None => two_runs(ctx, input, end.map(|end| &end.row)),
    }
}

fn two_runs(ctx: &Ctx, input: &Input, after: Option<&RowKey>) -> Result<Output, ToolError> {
    let head = resolve::run(ctx, input.head.as_deref().unwrap_or("latest"))?;
    let cells = cells(ctx, std::slice::from_ref(&head.run_id), input.filter.as_deref(), Grain::Evaluation)?;
    let nothing = if cells.is_empty() { Some(kept::none_in(ctx, &head, input.filter.as_deref())?) } else { None };
    let base = match &input.base {
        Some(text) => Some(resolve::run(ctx, text)?),
        None => base::select(ctx, &head, &all_cells(ctx, input, &head.run_id, &cells)?)?,
    };
    let Some(base) = base else { return Ok(no_baseline(head.run_id, nothing)) };
    let before = cells_of(ctx, input, &base.run_id)?;
    let pairs = pairs(cells, before);
    let shared = pairs.iter().filter(|pair| pair.head.is_some() && pair.base.is_some()).count();
    let held = pairs.iter().filter(|pair| pair.base.is_some()).count();
    let listed = Listed { same: input.all, removed: input.all || shared * 2 > held, after };
    let changes = changes::between(ctx, &[(head.run_id.clone(), base.run_id.clone())])?;
    let answer = answer(ctx, input, pairs, &listed, &BTreeMap::new())?;
    Ok(Output { head: Some((&head).into()), base: Some((&base).into()), changes, note: nothing, ..answer })
}

fn cells_of(ctx: &Ctx, input: &Input, run: &str) -> Result<Vec<Cell>, ToolError> {
    cells(ctx, &[run.to_owned()], input.filter.as_deref(), Grain::Evaluation)
}

/// The base is chosen by all that the head holds, whatever the filter keeps.
fn all_cells(ctx: &Ctx, input: &Input, run: &str, filtered: &[Cell]) -> Result<Vec<Cell>, ToolError> {
    if input.filter.is_none() { Ok(filtered.to_vec()) } else { cells(ctx, &[run.to_owned()], None, Grain::Evaluation) }
}

fn since_instant(ctx: &Ctx, input: &Input, instant: Timestamp, end: Option<&End>) -> Result<Output, ToolError> {
    let until = end.and_then(|end| end.until).map(Timestamp::from_millis);
    let States { pairs, places, not_run } = since::states(ctx, input.filter.as_deref(), instant, until)?;
    let runs: BTreeSet<(String, String)> =
        pairs.iter().filter_map(|pair| Some((pair.head.as_ref()?.run_id.clone(), pair.base.as_ref()?.run_id.clone()))).collect();
    let changes = changes::between(ctx, &runs.into_iter().collect::<Vec<_>>())?;
    let answer = answer(ctx, input, pairs, &Listed { same: input.all, removed: true, after: end.map(|end| &end.row) }, &places)?;
    let nothing = answer.statuses == Statuses::default() && not_run.is_empty();
    let note = if nothing { Some(no_state(ctx, input)?) } else { None };
    let until = until.or_else(|| places.values().map(|point| point.created_at).max());
    Ok(Output { since: Some(instant), until, changes, not_run, note, ..answer })
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
        complete: true,
        ..Output::default()
    }
}

/// Which quiet rows are listed, and after which row.
struct Listed<'a> {
    same: bool,
    removed: bool,
    after: Option<&'a RowKey>,
}

fn answer(
    ctx: &Ctx,
    input: &Input,
    pairs: Vec<Pair>,
    listed: &Listed<'_>,
    places: &BTreeMap<String, RunPoint>,
) -> Result<Output, ToolError> {
    let cases = Cases::read(ctx, input.filter.as_deref(), &pairs)?;
    let counts = sums(&pairs);
    let suite = Some(cases.suite(&pairs).shown()).filter(|suite| suite.n > 0);
    let pairs = if input.by == Grain::Case { cases.pairs(&pairs) } else { pairs };
    let mut rows: Vec<(Row, Pair)> = pairs.into_iter().map(|pair| (row(&pair, &cases, places), pair)).collect();
    let statuses = Statuses::of(rows.iter().map(|(row, _)| row.status));
    rows.retain(|(row, _)| (listed.same || row.status != Status::Same) && (listed.removed || row.status != Status::Removed));
    rows.sort_by_key(|(row, pair)| order(row.status, pair.difference()));
    let total = rows.len();
    rows.drain(..page::start(&rows, listed.after)?);
    let complete = rows.len() <= ctx.limits.rows;
    rows.truncate(ctx.limits.rows);
    if !places.is_empty() {
        changed_at(ctx, &mut rows, places)?;
    }
    Ok(Output {
        returned: rows.len(),
        complete,
        rows: rows.into_iter().map(|(row, _)| row).collect(),
        same: statuses.same,
        removed: if listed.removed { 0 } else { statuses.removed },
        statuses,
        counts,
        suite,
        total,
        ..Output::default()
    })
}

fn sums(pairs: &[Pair]) -> BothCounts {
    let sum = |side: fn(&Pair) -> Option<&Cell>| pairs.iter().filter_map(side).fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
    BothCounts { head: sum(|pair| pair.head.as_ref()), base: sum(|pair| pair.base.as_ref()) }
}

fn row(pair: &Pair, cases: &Cases, places: &BTreeMap<String, RunPoint>) -> Row {
    let evidence = (pair.head.is_some() && pair.base.is_some()).then(|| cases.evidence(pair));
    let status = pair.status(evidence.as_ref());
    let side =
        |cell: &Option<Cell>| cell.as_ref().map(|cell| CellSide { run: places.get(&cell.run_id).cloned().map(Into::into), ..cell.into() });
    Row {
        id: pair.evaluation.clone(),
        case: pair.case.clone(),
        arm: pair.arm.clone(),
        status,
        head: side(&pair.head),
        base: side(&pair.base),
        changed_at: None,
        evidence: evidence.filter(|_| status != Status::Same).map(Evidence::shown),
    }
}

/// Fills in since when a changed verdict holds, one look-up per head run.
fn changed_at(ctx: &Ctx, rows: &mut [(Row, Pair)], places: &BTreeMap<String, RunPoint>) -> Result<(), ToolError> {
    let mut by_run = BTreeMap::<String, Vec<(usize, CellKey)>>::new();
    for (index, (_, pair)) in rows.iter().enumerate() {
        if let (Some(head), Some(base)) = (&pair.head, &pair.base)
            && head.verdict.counted()
            && head.verdict != base.verdict
        {
            by_run.entry(head.run_id.clone()).or_default().push((index, head.key.clone()));
        }
    }
    for (run, wanted) in by_run {
        let Some(place) = places.get(&run) else { continue };
        let (indexes, keys): (Vec<usize>, Vec<CellKey>) = wanted.into_iter().unzip();
        let grain = if keys.iter().any(|key| key.case.is_some()) { Grain::Case } else { Grain::Evaluation };
        for (index, streak) in indexes.into_iter().zip(ctx.store.streaks(place, grain, &keys)?) {
            if let Some((row, _)) = rows.get_mut(index) {
                row.changed_at = streak.verdict_since.map(Into::into);
            }
        }
    }
    Ok(())
}

fn cells(ctx: &Ctx, runs: &[String], filter: Option<&str>, grain: Grain) -> Result<Vec<Cell>, ToolError> {
    Ok(ctx.store.cells(&CellQuery {
        runs: runs.to_vec(),
        evaluation_contains: filter.map(str::to_owned),
        grain,
        ..CellQuery::default()
    })?)
}

/// A cell's place in `Cases`: its run, evaluation and arm.
type Place = (String, String, String);

/// The case cells of both sides, by their place and then by case: each look-up of one case is one step, however many there are.
struct Cases {
    cells: BTreeMap<Place, BTreeMap<Option<String>, Cell>>,
}

impl Cases {
    fn read(ctx: &Ctx, filter: Option<&str>, pairs: &[Pair]) -> Result<Self, ToolError> {
        let runs: BTreeSet<&String> = pairs.iter().flat_map(|pair| [&pair.head, &pair.base]).flatten().map(|cell| &cell.run_id).collect();
        let runs: Vec<String> = runs.into_iter().cloned().collect();
        let mut grouped = BTreeMap::<Place, BTreeMap<Option<String>, Cell>>::new();
        for cell in cells(ctx, &runs, filter, Grain::Case)? {
            grouped.entry(place(&cell)).or_default().insert(cell.key.case.clone(), cell);
        }
        Ok(Self { cells: grouped })
    }

    /// The cases of one side: of its evaluation and arm, or the one case.
    fn of(&self, cell: Option<&Cell>) -> Vec<&Cell> {
        let Some((cell, cases)) = cell.and_then(|cell| Some((cell, self.cells.get(&place(cell))?))) else { return Vec::new() };
        if cell.key.case.is_none() { cases.values().collect() } else { cases.get(&cell.key.case).into_iter().collect() }
    }

    fn evidence(&self, pair: &Pair) -> Evidence {
        evidence(&self.of(pair.head.as_ref()), &self.of(pair.base.as_ref()))
    }

    /// Over every evaluation that has one arm on both sides, or the same arm: an arm's cases are its own.
    fn suite(&self, pairs: &[Pair]) -> Evidence {
        let both: Vec<&Pair> = pairs.iter().filter(|pair| pair.head.is_some() && pair.base.is_some()).collect();
        let arms: BTreeSet<Option<&str>> = both.iter().map(|pair| pair.arm.as_deref()).collect();
        if arms.len() > 1 {
            // Several arms share their cases: the suite would count a case twice.
            return evidence(&[], &[]);
        }
        let side = |cell: fn(&Pair) -> Option<&Cell>| both.iter().flat_map(|pair| self.of(cell(pair))).collect::<Vec<&Cell>>();
        evidence(&side(|pair| pair.head.as_ref()), &side(|pair| pair.base.as_ref()))
    }

    /// The pairs of cases under pairs of evaluations.
    fn pairs(&self, evaluations: &[Pair]) -> Vec<Pair> {
        let both = |pair: &Pair| {
            let owned = |cell: Option<&Cell>| self.of(cell).into_iter().cloned().collect::<Vec<Cell>>();
            let inner = pairs(owned(pair.head.as_ref()), owned(pair.base.as_ref()));
            inner.into_iter().map(|inner| Pair { arm: pair.arm.clone(), ..inner }).collect::<Vec<Pair>>()
        };
        evaluations.iter().flat_map(both).collect()
    }
}

fn place(cell: &Cell) -> Place {
    (cell.run_id.clone(), cell.key.evaluation.clone(), cell.key.arm.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(run: &str, case: Option<usize>, passed: bool) -> Cell {
        let counts = Counts { passed: u32::from(passed), failed: u32::from(!passed), ..Counts::default() };
        Cell {
            key: CellKey { evaluation: "e".into(), case: case.map(|case| case.to_string()), arm: "m".into() },
            run_id: run.into(),
            counts,
            threshold: None,
            several_cases: true,
            declared: false,
            verdict: crate::domain::cell::Verdict::judge(counts, None),
        }
    }

    /// In steps rather than seconds: a look-up of one case gives that case's cell alone. A scan of 20,000 for each of 20,000 would not end here.
    #[test]
    fn each_case_is_looked_up_and_not_searched_for() {
        const CASES: usize = 20_000;
        let side = |run: &str, passed: bool| (0..CASES).map(|case| (Some(case.to_string()), cell(run, Some(case), passed))).collect();
        let place = |run: &str| (run.to_owned(), "e".to_owned(), "m".to_owned());
        let cases = Cases { cells: BTreeMap::from([(place("h"), side("h", false)), (place("b"), side("b", true))]) };
        let whole = pairs(vec![cell("h", None, false)], vec![cell("b", None, true)]);
        let began = std::time::Instant::now();
        let each = cases.pairs(&whole);
        let words = Statuses::of(each.iter().map(|pair| pair.status(Some(&cases.evidence(pair)))));
        assert_eq!((each.len(), words.regressed, cases.suite(&whole).n), (CASES, CASES, CASES as u64));
        // Measured: 0.1 s in a debug build; the scan took minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
