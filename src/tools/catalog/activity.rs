//! `activity`: what happened lately, run by run: how each ended, and which verdicts it changed.
//!
//! Promises: a change is against the evaluation's and arm's last counted verdict in a recorded run before.
//! Does not: say whether a change is real; `compare` does.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, COUNTS, Cell, Table, counts};
use crate::{
    domain::{
        cell::{CellKey, Grain, Verdict},
        time::{self, Timestamp},
    },
    store::{CellQuery, Kind, Pick, PointQuery, Run, RunQuery},
    tools::{Ctx, Tool, ToolError, Toolset, arguments::Bounded, render::Style},
};

/// The tool.
pub enum Activity {}

/// The arguments of `activity`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only runs created since: an age such as 7d, a date or an RFC 3339 time.
    #[arg(long, value_name = "WHEN")]
    #[serde(default)]
    pub since: Option<String>,
    /// How many runs, newest first.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
}

impl Tool for Activity {
    const NAME: &'static str = "activity";
    const TITLE: &'static str = "Activity";
    const ABOUT: &'static str = "What happened lately: runs, and the verdicts that they changed";
    const DOC: &'static str = "Lists the newest runs with how they ended, what was counted, and how many verdicts each changed for the worse (to_fail) or the better (to_pass).";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "since and limit";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let since = input.since.as_deref().map(|text| time::since(text, ctx.now)).transpose();
        let since = since.map_err(|sentence| ToolError::Argument(format!("argument since: {sentence}")))?;
        let (runs, total) = ctx.store.runs(&RunQuery { since, limit: input.limit.count(), ..RunQuery::default() })?;
        let mut out = Blocks::of::<Self>();
        out.lasting = runs.iter().all(|run| run.status.ended());
        if runs.is_empty() {
            out.lines([if since.is_some() { "No run was created since then." } else { "There is no run yet." }.to_owned()]);
            return Ok(out);
        }
        out.table(days(&runs));
        out.table(table(&runs, &changes(ctx, &runs)?));
        let left = total.saturating_sub(runs.len() as u64);
        if left > 0 {
            out.lines([format!("{left} more of {total} runs are older; runs_list pages through them.")]);
        }
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn lasting(output: &Blocks) -> bool {
        output.lasting
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

/// What the runs of each day counted, newest first.
fn days(runs: &[Run]) -> Table {
    let columns: Vec<&'static str> = ["day", "runs"].into_iter().chain(COUNTS).collect();
    let mut table = Table::new("By day (UTC)", &columns);
    let day = |run: &Run| -> String { run.created_at.rfc3339().chars().take(10).collect() };
    for of_day in runs.chunk_by(|a, b| day(a) == day(b)) {
        let Some(first) = of_day.first() else { continue };
        let sum = of_day.iter().fold(crate::domain::outcome::Counts::default(), |sum, run| sum.plus(run.counts));
        let head: [Cell; 2] = [day(first).into(), of_day.len().into()];
        table.row(head.into_iter().chain(counts(sum)));
    }
    table
}

/// Verdicts that a run changed.
#[derive(Debug, Clone, Copy, Default)]
struct Changed {
    to_pass: u64,
    to_fail: u64,
}

/// By run id. Only recorded runs change what is known.
fn changes(ctx: &Ctx, runs: &[Run]) -> Result<BTreeMap<String, Changed>, ToolError> {
    let recorded: Vec<String> = runs.iter().rev().filter(|run| run.kind == Kind::Recorded).map(|run| run.run_id.clone()).collect();
    let oldest = runs.last().map_or(Timestamp::from_millis(0), |run| run.created_at);
    let before = ctx.store.points(&PointQuery {
        evaluation_contains: None,
        keys: None,
        grain: Grain::Evaluation,
        counted: true,
        statuses: &[],
        pick: Pick::NewestUpTo(oldest.plus_millis(-1)),
    })?;
    let mut known: BTreeMap<CellKey, Verdict> = before.into_iter().map(|point| (point.cell.key, point.cell.verdict)).collect();
    let mut out = BTreeMap::<String, Changed>::new();
    // By key, then oldest first, as the query has them.
    for cell in ctx.store.cells(&CellQuery { runs: recorded, ..CellQuery::default() })? {
        if !cell.verdict.counted() {
            continue;
        }
        let was = known.insert(cell.key, cell.verdict);
        let changed = out.entry(cell.run_id).or_default();
        match (was, cell.verdict) {
            (Some(Verdict::Fail | Verdict::Mixed), Verdict::Pass) => changed.to_pass += 1,
            (Some(Verdict::Pass | Verdict::Mixed), Verdict::Fail) | (Some(Verdict::Pass), Verdict::Mixed) => changed.to_fail += 1,
            _ => {}
        }
    }
    Ok(out)
}

fn table(runs: &[Run], changes: &BTreeMap<String, Changed>) -> Table {
    let columns: Vec<&'static str> =
        ["created", "run", "kind", "status", "round", "branch", "to_fail", "to_pass"].into_iter().chain(COUNTS).collect();
    let mut table = Table::new("Runs", &columns);
    for run in runs {
        let changed = changes.get(&run.run_id);
        let head: [Cell; 8] = [
            run.created_at.into(),
            run.run_id.clone().into(),
            run.kind.word().into(),
            run.status.word().into(),
            run.round.clone().into(),
            run.git.as_ref().and_then(|git| git.branch.clone()).into(),
            changed.map(|changed| changed.to_fail).into(),
            changed.map(|changed| changed.to_pass).into(),
        ];
        table.row(head.into_iter().chain(counts(run.counts)));
    }
    table
}
