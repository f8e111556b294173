//! `evaluations_list`: the project's evaluations, those that were made here and those that came with logs, newest first, by page.
//!
//! Promises: pages neither repeat nor skip evaluations while new ones come; a result stands with its run and its counts, and only a run that has
//! completed is a result.
//! Does not: list cases; they are texts, and `show` and `datasets` have their results.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{cell::Grain, log::RunStatus, time::Timestamp},
    store::{
        Pick, Point, PointQuery,
        workspace::{Authored, AuthoredQuery, EvaluationStatus},
    },
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::Bounded,
        cursor::List,
        history::record::{CellSide, RunMark},
        render::{self, Grid, Style},
    },
};

/// Evaluations that are read at once in search of a page's first.
const PART: usize = 500;
/// Arms whose result is listed.
const ARMS: usize = 10;

/// The tool.
pub enum EvaluationsList {}

/// The arguments of `evaluations_list`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only evaluations whose id or name contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// Only evaluations that stand so.
    #[arg(long, value_name = "WORD", value_enum)]
    #[serde(default)]
    pub status: Option<EvaluationStatus>,
    /// How many evaluations a page has.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `evaluations_list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Newest first.
    pub evaluations: Vec<Row>,
    /// How many are here.
    pub returned: usize,
    /// How many there are under these filters.
    pub total: u64,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for the next page.
    pub next_cursor: Option<String>,
    /// What else should be known.
    pub note: Option<String>,
}

/// One evaluation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its id.
    pub evaluation: String,
    /// Its number.
    pub number: i64,
    /// What people call it.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// The rate from which it passes.
    pub threshold: Option<f64>,
    /// Where it stands.
    pub status: EvaluationStatus,
    /// Whether it was made here, rather than seen in logs alone.
    pub authored: bool,
    /// When it was made here, or first seen in a run.
    pub created_at: Timestamp,
    /// Who made it here.
    pub created_by: Option<String>,
    /// Who locked it and why, where it is.
    pub lock: Option<Lock>,
    /// Cases that were made here: what a run can be started with.
    pub cases: u64,
    /// Runs that hold it.
    pub runs: u64,
    /// What its newest recorded completed run counted; null where there is none.
    pub latest: Option<Latest>,
}

/// Why nothing of an evaluation may be changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// What a run counted of an evaluation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latest {
    /// The run.
    pub run: RunMark,
    /// By arm, at most ten.
    pub arms: Vec<ArmCell>,
}

/// What a run counted of an evaluation by one arm.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArmCell {
    /// The arm.
    pub arm: String,
    /// Verdict, rate and counts.
    #[serde(flatten)]
    pub cell: CellSide,
}

impl Tool for EvaluationsList {
    const NAME: &'static str = "evaluations_list";
    const VERB: &'static str = "evaluations-list";
    const TITLE: &'static str = "Evaluations";
    const ABOUT: &'static str = "The evaluations, with their status, cases and newest result";
    const DOC: &'static str = "Lists the project's evaluations, newest first: those made here and those seen in logs, with status, lock, cases, and the verdict and counts of the newest completed run.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, status and limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let after = list.place::<Place>(input.cursor.as_deref())?;
        let (mut found, total) = page(ctx, &input, after)?;
        let complete = found.len() <= input.limit.count();
        found.truncate(input.limit.count());
        let next_cursor = found.last().filter(|_| !complete).map(|last| list.at(&place(last)));
        let mut latest = latest(ctx)?;
        let evaluations: Vec<Row> = found.into_iter().map(|one| row(&mut latest, one)).collect();
        let note = (total == 0).then(|| none(&input));
        Ok(Output { returned: evaluations.len(), evaluations, total, complete, next_cursor, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        if output.evaluations.is_empty() {
            return note.trim_start().to_owned();
        }
        let mut grid = Grid::new(style, &["evaluation", "status", "cases", "runs", "newest result", "run"]);
        for one in output.evaluations.iter().take(render::ROWS_SHOWN) {
            let lock = if one.lock.is_some() { " (locked)" } else { "" };
            let run = one.latest.as_ref().map_or_else(|| "-".to_owned(), |latest| latest.run.run_id.clone());
            grid.row([
                one.evaluation.clone().into(),
                format!("{}{lock}", one.status.word()).into(),
                one.cases.to_string().into(),
                one.runs.to_string().into(),
                result(one.latest.as_ref()).into(),
                run.into(),
            ]);
        }
        grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total) + &note
    }
}

fn result(latest: Option<&Latest>) -> String {
    let one = |arm: &ArmCell| format!("{} {}", arm.cell.verdict.word(), render::counts(arm.cell.counts));
    match latest.map(|latest| latest.arms.as_slice()) {
        None | Some([]) => "-".to_owned(),
        Some([only]) => one(only),
        Some(arms) => arms.iter().take(3).map(|arm| format!("{}: {}", arm.arm, one(arm))).collect::<Vec<_>>().join(", "),
    }
}

fn none(input: &Input) -> String {
    if input.filter.is_some() || input.status.is_some() {
        "No evaluation matches.".to_owned()
    } else {
        "There are no evaluations yet: none was made here, and no run holds any.".to_owned()
    }
}

/// An evaluation's place in the list: the later it was made, the earlier it stands.
type Place = (i64, i64);

fn place(one: &Authored) -> Place {
    (one.created_at.millis(), one.number)
}

/// The evaluations from the one after `after` on, one more than asked for where there are more; and how many there are in all.
fn page(ctx: &Ctx, input: &Input, after: Option<Place>) -> Result<(Vec<Authored>, u64), ToolError> {
    let (mut out, mut offset) = (Vec::new(), 0);
    let wanted = input.limit.count().saturating_add(1);
    loop {
        // What came since stands before `after`: the list is gone through from its beginning, so that nothing is shown twice or skipped.
        let limit = if after.is_none() { wanted } else { PART };
        let query = AuthoredQuery { contains: input.filter.as_deref(), status: input.status, offset, limit, ..AuthoredQuery::default() };
        let (part, total) = ctx.store.authored(&query)?;
        let whole = part.len() == limit;
        offset += part.len() as u64;
        out.extend(part.into_iter().filter(|one| after.is_none_or(|after| place(one) < after)));
        if !whole || out.len() >= wanted {
            out.truncate(wanted);
            return Ok((out, total));
        }
    }
}

/// The newest cells of recorded completed runs, by evaluation.
fn latest(ctx: &Ctx) -> Result<BTreeMap<String, Vec<Point>>, ToolError> {
    let query = PointQuery {
        evaluation_contains: None,
        keys: None,
        grain: Grain::Evaluation,
        counted: false,
        statuses: &[RunStatus::Completed],
        pick: Pick::Newest,
    };
    let mut out = BTreeMap::<String, Vec<Point>>::new();
    for point in ctx.store.points(&query)? {
        out.entry(point.cell.key.evaluation.clone()).or_default().push(point);
    }
    Ok(out)
}

fn row(latest: &mut BTreeMap<String, Vec<Point>>, one: Authored) -> Row {
    let points = latest.remove(&one.id).unwrap_or_default();
    let newest = points.iter().map(|point| &point.run).max_by_key(|run| (run.created_at, run.run_id.clone())).cloned();
    Row {
        latest: newest.map(|run| Latest {
            arms: points
                .iter()
                .filter(|point| point.run == run)
                .take(ARMS)
                .map(|point| ArmCell { arm: point.cell.key.arm.clone(), cell: (&point.cell).into() })
                .collect(),
            run: run.into(),
        }),
        evaluation: one.id,
        number: one.number,
        name: one.name,
        description: one.description,
        family: one.family,
        threshold: one.threshold,
        status: one.status,
        authored: one.authored,
        created_at: one.created_at,
        created_by: one.created_by,
        lock: one.lock.map(|lock| Lock { by: lock.by, at: lock.at, reason: lock.reason }),
        cases: one.cases,
        runs: one.runs,
    }
}
