//! `history`: one row per evaluation (or case), one word per run, oldest first (decisions 15, 57).
//!
//! Promises: `limit` counts only runs that hold a row; a row is split by arm where a shown run holds several; rates stand beside counts. By case
//! only the cells of the rows that are shown (`limits.rows_limit`) are read: a large project has millions.
//! Does not: compare two runs; `compare` does.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use comfy_table::Color;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{kept, record::RunHead};
use crate::{
    domain::{
        cell::{Cell, CellKey, Grain, Verdict},
        flake,
        outcome::{Counts, Rate, round3},
        time::Timestamp,
    },
    store::{CellQuery, Kind, Pick, Point, PointQuery, Run, RunPoint, RunQuery},
    tools::{
        Ctx, Tool, ToolError,
        arguments::Bounded,
        cursor::List,
        render::{self, Grid, Style, Text},
    },
};

/// The tool.
pub enum History {}

/// The arguments of `history`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only evaluations whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// How many of the newest runs to show.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 500, 20>,
    /// One row per evaluation, or per case.
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    #[serde(default)]
    pub by: Grain,
    /// Also scratch runs.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `history`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The shown runs, oldest first.
    pub runs: Vec<RunHead>,
    /// The rows, by evaluation, case and arm.
    pub rows: Vec<Row>,
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
}

/// A row's place: its evaluation, its case and its arm, where it has them.
type Order = (String, Option<String>, String);
/// Where a page ends: the newest of its runs, so that the next one shows the same, and its last row.
type Place = ((i64, String), Order);

/// One evaluation (or case) over the shown runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The evaluation's id.
    pub id: String,
    /// The case's id, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The arm, where a shown run holds several of the evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// One word per run, oldest first: pass, fail, mixed, infra_error, unscored; null where absent.
    pub outcomes: Vec<Option<Verdict>>,
    /// One rate per run; null where nothing was counted.
    pub rates: Vec<Option<f64>>,
    /// The last counted rate minus the mean of the earlier ones; null where fewer than two shown runs of one arm have one.
    pub drift: Option<f64>,
    /// Passed attempts over the shown runs.
    pub pass: u32,
    /// Counted attempts over the shown runs.
    pub counted: u32,
    /// The five counts over the shown runs.
    pub counts: Counts,
    /// The newest counted run, wherever it is.
    pub last: Option<Last>,
    /// Whether the newest counted outcome shown is a failure such as the row has now and then, judged by the shown recorded runs of its arm
    /// before; null where it is none, or fewer than three attempts (of one case) or runs (of several) were counted before.
    #[serde(rename = "withinFlakeRate")]
    pub within_flake_rate: Option<bool>,
}

/// A row's newest counted run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Last {
    /// The run's id.
    pub run_id: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The word.
    pub outcome: Verdict,
    /// The rate.
    pub rate: Option<f64>,
}

impl Tool for History {
    const NAME: &'static str = "history";
    const TITLE: &'static str = "Run history";
    const ABOUT: &'static str = "One row per evaluation over the newest runs: outcomes, rates, drift";
    const DOC: &'static str = "Shows one row per evaluation (or per case) over the newest runs, oldest run first: outcomes, rates, drift and counts. Use it to see since when something fails or flakes.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter and limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(Self::NAME, &input);
        let place = list.place::<Place>(input.cursor.as_deref())?;
        let (runs, note) = shown_runs(ctx, &input, place.as_ref().map(|(newest, _)| newest))?;
        let ids: Vec<String> = runs.iter().map(|run| run.run_id.clone()).collect();
        let query = CellQuery { runs: ids.clone(), evaluation_contains: input.filter.clone(), ..CellQuery::default() };
        let whole = ctx.store.cells(&query)?;
        let split = split_evaluations(&whole);
        let after = place.as_ref().map(|(_, after)| after);
        let (cells, cases) = match input.by {
            Grain::Evaluation => (whole, None),
            Grain::Case => of_next_cases(ctx, query, &split, after).map(|(cells, cases)| (cells, Some(cases)))?,
        };
        let mut rows = rows(cells, &ids, input.by, &split);
        let total = cases.as_ref().map_or(rows.len(), |cases| cases.total);
        rows.retain(|row| after.is_none_or(|after| row.order() > *after));
        let complete = cases.map_or(rows.len(), |cases| cases.left) <= ctx.limits.rows;
        rows.truncate(ctx.limits.rows);
        let end = rows.last().zip(runs.last()).filter(|_| !complete);
        let next_cursor = end.map(|(row, newest)| list.at(&((newest.created_at.millis(), &newest.run_id), row.order())));
        let last = lasts(ctx, &input, &rows)?;
        let arms = ctx.store.arms(&ids)?;
        let note = note.or_else(|| several_arms(&rows));
        let scratch = runs.iter().filter(|run| run.kind == Kind::Scratch).map(|run| run.run_id.as_str()).collect();
        Ok(Output {
            runs: runs.iter().map(|run| RunHead::new(run, arms.get(&run.run_id).map_or(&[], Vec::as_slice))).collect(),
            returned: rows.len(),
            complete,
            next_cursor,
            total,
            rows: rows.into_iter().zip(last).map(|(series, last)| series.row(last, &scratch)).collect(),
            note,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        if output.rows.is_empty() {
            return output.note.clone().unwrap_or_else(|| "No runs hold such an evaluation.".to_owned());
        }
        let mut grid = Grid::new(style, &["evaluation", "outcomes (oldest first)", "last", "drift", "passed"]);
        for row in output.rows.iter().take(render::ROWS_SHOWN) {
            grid.row(shown(row));
        }
        let span = span(&output.runs);
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        format!("{span}\n{}{}{note}", grid.text(), render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64))
    }
}

fn span(runs: &[RunHead]) -> String {
    match (runs.first(), runs.last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} runs, {} to {} (UTC). P pass, F fail, M mixed, E infra error, ? unscored, . absent",
                runs.len(),
                render::short_time(first.created_at),
                render::short_time(last.created_at)
            )
        }
        _ => String::new(),
    }
}

fn shown(row: &Row) -> [Text; 5] {
    let name = render::named(&row.id, row.case.as_deref(), row.arm.as_deref());
    let flake = if row.within_flake_rate == Some(true) { " (as often before)" } else { "" };
    let last = row.last.as_ref().map_or("-".into(), |last| {
        let word = format!("{} {}{flake}", last.outcome.word(), last.rate.map(|rate| rate.to_string()).unwrap_or_default());
        Text::coloured(word.trim_end(), render::verdict_colour(last.outcome))
    });
    let drift = row.drift.map_or_else(|| "-".to_owned(), render::signed);
    [name.into(), Text::letters(row.outcomes.iter().map(painted)), last, drift.into(), render::counts(row.counts).into()]
}

/// An outcome's letter, in its colour.
fn painted(outcome: &Option<Verdict>) -> (char, Color) {
    (letter(*outcome), outcome.map_or(Color::DarkGrey, render::verdict_colour))
}

const fn letter(outcome: Option<Verdict>) -> char {
    match outcome {
        Some(Verdict::Pass) => 'P',
        Some(Verdict::Fail) => 'F',
        Some(Verdict::Mixed) => 'M',
        Some(Verdict::InfraError) => 'E',
        Some(Verdict::Unscored) => '?',
        None => '.',
    }
}

/// The newest runs under the arguments, oldest first; scratch ones where there is no recorded run at all.
fn shown_runs(ctx: &Ctx, input: &Input, newest: Option<&(i64, String)>) -> Result<(Vec<Run>, Option<String>), ToolError> {
    // No id lies between one and the same with this behind it: the runs before that are those up to this one.
    let end = |(millis, run_id): &(i64, String)| RunPoint { run_id: format!("{run_id}\0"), created_at: Timestamp::from_millis(*millis) };
    let query = RunQuery {
        before: newest.map(end),
        evaluation_contains: input.filter.clone(),
        kind: (!input.all).then_some(Kind::Recorded),
        limit: input.limit.count(),
        ..RunQuery::default()
    };
    let (mut runs, _) = ctx.store.runs(&query)?;
    let mut note = None;
    if runs.is_empty() {
        (runs, note) = otherwise(ctx, query)?;
    }
    runs.reverse();
    Ok((runs, note))
}

/// What is shown, newest first, and said where `query` finds nothing.
fn otherwise(ctx: &Ctx, query: RunQuery) -> Result<(Vec<Run>, Option<String>), ToolError> {
    if let Some(note) = kept::none_anywhere(ctx, &query)? {
        return Ok((Vec::new(), Some(note)));
    }
    let any = RunQuery { kind: None, ..query };
    let (runs, _) = ctx.store.runs(&any)?;
    let note = if !runs.is_empty() {
        "There is no recorded run; these are scratch runs.".to_owned()
    } else if let Some(note) = kept::none_anywhere(ctx, &any)? {
        note
    } else {
        "There are no runs yet; put logs in logs/, name their directory in runlore.toml, or import them with `runlore import PATH`."
            .to_owned()
    };
    Ok((runs, Some(note)))
}

/// Rows whose runs are of several arms read like flakes: said, since they are split only where one run holds several (decision 57).
fn several_arms(rows: &[Series]) -> Option<String> {
    let arms = |row: &&Series| row.cells.iter().flatten().map(|cell| &cell.key.arm).collect::<BTreeSet<_>>().len();
    let mixed: BTreeSet<&str> = rows.iter().filter(|row| arms(row) > 1).map(|row| row.key.evaluation.as_str()).collect();
    let shown: Vec<&str> = mixed.iter().take(3).copied().collect();
    let more = if mixed.len() > shown.len() { ", ..." } else { "" };
    (!mixed.is_empty()).then(|| {
        format!(
            "Runs of several arms stand in one row of {}{more}: what changes there may be the arm; runs and compare name it.",
            shown.join(", ")
        )
    })
}

/// One row before its last word is known.
struct Series {
    key: CellKey,
    split: bool,
    cells: Vec<Option<Cell>>,
}

impl Series {
    fn order(&self) -> Order {
        let arm = if self.split { self.key.arm.clone() } else { String::new() };
        (self.key.evaluation.clone(), self.key.case.clone(), arm)
    }

    /// By the recorded runs of the newest counted cell's arm; scratch runs are left out.
    fn within_flake_rate(&self, scratch: &BTreeSet<&str>) -> Option<bool> {
        let recorded = |cell: &&Cell| cell.verdict.counted() && !scratch.contains(cell.run_id.as_str());
        let mut counted: Vec<&Cell> = self.cells.iter().flatten().filter(recorded).collect();
        let now = counted.pop()?;
        counted.retain(|cell| cell.key.arm == now.key.arm);
        flake::within_rate(&counted, now)
    }

    fn row(self, last: Option<Last>, scratch: &BTreeSet<&str>) -> Row {
        let counts = self.cells.iter().flatten().fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
        Row {
            drift: drift(&self.cells),
            within_flake_rate: self.within_flake_rate(scratch),
            outcomes: self.cells.iter().map(|cell| cell.as_ref().map(|cell| cell.verdict)).collect(),
            rates: self.cells.iter().map(|cell| cell.as_ref().and_then(|cell| cell.counts.rate()).map(Rate::shown)).collect(),
            pass: counts.passed,
            counted: counts.counted(),
            counts,
            last,
            id: self.key.evaluation,
            case: self.key.case,
            arm: self.split.then_some(self.key.arm),
        }
    }
}

/// How many rows by case there are.
struct Cases {
    total: usize,
    /// From the page's first on.
    left: usize,
}

/// The cells of as many rows by case as are shown after one: the keys are read first, each once, whatever runs hold it.
fn of_next_cases(ctx: &Ctx, query: CellQuery, split: &BTreeSet<String>, after: Option<&Order>) -> Result<(Vec<Cell>, Cases), ToolError> {
    let query = CellQuery { grain: Grain::Case, ..query };
    let keys = ctx.store.keys(&query)?;
    // In their order the keys of a row stand side by side.
    let rows: Vec<&[CellKey]> = keys.chunk_by(|a, b| order(a, split) == order(b, split)).collect();
    let total = rows.len();
    let left: Vec<&[CellKey]> =
        rows.into_iter().filter(|row| after.is_none_or(|after| row.first().is_some_and(|key| order(key, split) > *after))).collect();
    let cases = Cases { total, left: left.len() };
    let shown = left.into_iter().take(ctx.limits.rows).flatten().cloned().collect();
    Ok((ctx.store.cells(&CellQuery { keys: Some(shown), ..query })?, cases))
}

/// A row's place among the others.
fn order(key: &CellKey, split: &BTreeSet<String>) -> Order {
    let arm = if split.contains(&key.evaluation) { key.arm.clone() } else { String::new() };
    (key.evaluation.clone(), key.case.clone(), arm)
}

fn rows(cells: Vec<Cell>, runs: &[String], by: Grain, split: &BTreeSet<String>) -> Vec<Series> {
    let place: BTreeMap<&str, usize> = runs.iter().enumerate().map(|(index, run)| (run.as_str(), index)).collect();
    let mut series = BTreeMap::<(String, Option<String>, String), Series>::new();
    for cell in cells {
        let split = split.contains(&cell.key.evaluation);
        let arm = if split { cell.key.arm.clone() } else { String::new() };
        let case = cell.key.case.clone().filter(|_| by == Grain::Case);
        let row = series.entry((cell.key.evaluation.clone(), case, arm)).or_insert_with(|| Series {
            key: cell.key.clone(),
            split,
            cells: vec![None; runs.len()],
        });
        if let Some(slot) = place.get(cell.run_id.as_str()).and_then(|index| row.cells.get_mut(*index)) {
            *slot = Some(cell);
        }
    }
    series.into_values().collect()
}

/// Evaluations of which one shown run holds several arms.
fn split_evaluations(cells: &[Cell]) -> BTreeSet<String> {
    let mut arms = BTreeMap::<(&str, &str), &str>::new();
    let mut split = BTreeSet::new();
    for cell in cells {
        let held = arms.entry((&cell.key.evaluation, &cell.run_id)).or_insert(&cell.key.arm);
        if *held != cell.key.arm && !split.contains(&cell.key.evaluation) {
            split.insert(cell.key.evaluation.clone());
        }
    }
    split
}

/// The last counted rate minus the mean of the earlier ones, over the runs of the last counted run's arm.
fn drift(cells: &[Option<Cell>]) -> Option<f64> {
    let counted: Vec<(&str, f64)> =
        cells.iter().flatten().filter_map(|cell| Some((cell.key.arm.as_str(), cell.counts.rate()?.value()))).collect();
    let (arm, last) = *counted.last()?;
    let mut rates: Vec<f64> = counted.iter().filter(|(other, _)| *other == arm).map(|(_, rate)| *rate).collect();
    rates.pop();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (!rates.is_empty()).then(|| round3(last - mean))
}

/// Each row's newest counted run, by any arm that the row shows.
fn lasts(ctx: &Ctx, input: &Input, rows: &[Series]) -> Result<Vec<Option<Last>>, ToolError> {
    let keys: BTreeSet<CellKey> = rows.iter().flat_map(|row| row.cells.iter().flatten()).map(|cell| cell.key.clone()).collect();
    let keys: Vec<CellKey> = keys.into_iter().collect();
    let query =
        PointQuery { evaluation_contains: None, keys: Some(&keys), grain: input.by, counted: true, statuses: &[], pick: Pick::Newest };
    let found: BTreeMap<CellKey, Point> = ctx.store.points(&query)?.into_iter().map(|point| (point.cell.key.clone(), point)).collect();
    let newest = |row: &Series| {
        row.cells
            .iter()
            .flatten()
            .filter_map(|cell| found.get(&cell.key))
            .max_by_key(|point| (point.run.created_at, point.run.run_id.clone()))
    };
    Ok(rows.iter().map(|row| newest(row).cloned().map(last)).collect())
}

fn last(point: Point) -> Last {
    Last {
        run_id: point.run.run_id,
        created_at: point.run.created_at,
        outcome: point.cell.verdict,
        rate: point.cell.counts.rate().map(Rate::shown),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        auth::Caller,
        domain::{attempt::Attempt, outcome::Outcome},
        store::{
            Store as _,
            contract::{attempt, log},
            model::Model,
        },
        tools::Limits,
    };

    fn ctx(store: Arc<Model>, rows: usize) -> Ctx {
        let limits = Limits { rows, ..Limits::default() };
        Ctx { project: "p".into(), store, caller: Caller::local(), now: Timestamp::from_millis(0), limits, style: Style::PLAIN, note: None }
    }

    fn by_case(store: &Arc<Model>, rows: usize) -> Output {
        let input = serde_json::from_value(serde_json::json!({"by": "case"})).unwrap();
        History::call(&ctx(store.clone(), rows), input).unwrap()
    }

    #[test]
    fn by_case_only_the_rows_that_are_shown_are_read() {
        const RUNS: usize = 5;
        let store = Arc::new(Model::default());
        for run in 0..RUNS {
            let cases = (0..200).map(|case| attempt(&format!("{case:03}"), Outcome::Pass));
            log(&run.to_string(), run as i64).with(cases).put(&*store).unwrap();
        }
        let output = by_case(&store, 7);
        assert_eq!((output.returned, output.total, output.complete), (7, 200, false));
        let cases: Vec<&str> = output.rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(cases, ["000", "001", "002", "003", "004", "005", "006"]);
        assert!(output.rows.iter().all(|row| row.outcomes == [Some(Verdict::Pass); RUNS]));
        assert_eq!(store.most_cells(), 7 * RUNS, "of 1,000");
    }

    #[test]
    fn what_is_cut_is_a_beginning_of_the_whole() {
        let store = Arc::new(Model::default());
        let by = |arm: &str, case: &str| Attempt { arm: arm.into(), ..attempt(case, Outcome::Fail) };
        // In one run two arms stand side by side, so e is split; f has one arm in each run, and is not.
        let of_f = |arm: &str| Attempt { evaluation: "f".into(), ..by(arm, "1") };
        log("a", 1).with([by("m", "1"), by("n", "1"), by("m", "2"), by("n", "3"), of_f("m")]).put(&*store).unwrap();
        log("b", 2).with([by("m", "1"), by("m", "4"), of_f("n")]).put(&*store).unwrap();
        let whole = by_case(&store, 500);
        let name = |row: &Row| format!("{}/{}@{}", row.id, row.case.as_deref().unwrap_or("-"), row.arm.as_deref().unwrap_or("-"));
        let names: Vec<String> = whole.rows.iter().map(name).collect();
        assert_eq!(names, ["e/1@m", "e/1@n", "e/2@m", "e/3@n", "e/4@m", "f/1@-"]);
        for most in 1..=6 {
            let cut = by_case(&store, most);
            assert_eq!((cut.rows.as_slice(), cut.total, cut.complete), (&whole.rows[..most], 6, most == 6));
        }
        assert_eq!(store.generation().unwrap(), 2);
    }
}
