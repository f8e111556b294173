//! `overview`: what the project holds, how it stands now and how its goals do, on one page.
//!
//! Promises: every figure is one that another view explains.
//! Does not: list.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, COUNTS, Cell, Table, counts, rate, rounded},
    goals::shown_p,
    standings::{self, Stands},
};
use crate::{
    domain::{
        cell::{Grain, Verdict},
        goal::Standing,
    },
    store::{ArmTotal, Pick, PointQuery, Run, Selector},
    tools::{Ctx, Tool, ToolError, Toolset, Weight, render::Style},
};

/// The tool.
pub enum Overview {}

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

/// Arms and goals that stand on the page; their own views have all.
const LISTED: usize = 10;

impl Tool for Overview {
    const NAME: &'static str = "overview";
    const TITLE: &'static str = "Overview";
    const ABOUT: &'static str = "What the project holds and how it stands, on one page";
    const DOC: &'static str = "Says on one page what the project holds: runs, evaluations, arms, the newest run, how evaluations stand now, and the goals. Start here in an unknown project.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "the other views";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, _: Input) -> Result<Blocks, ToolError> {
        let mut out = Blocks::of::<Self>();
        out.table(totals(ctx)?);
        let newest = ctx.store.select(&Selector::Latest(0), 1)?;
        let Some(run) = newest.first() else {
            out.lines(["There is no run yet; import logs, or declare a [[source]] in runlore.toml.".to_owned()]);
            return Ok(out);
        };
        out.lasting = run.status.ended();
        out.table(newest_run(run));
        out.table(standing(ctx)?);
        let arms = ctx.store.arm_totals()?;
        out.table(arms_table(&arms));
        let goals = standings::read(ctx)?;
        if !goals.is_empty() {
            out.table(goals_table(&goals));
        }
        out.lines(["Next: failures for what fails in the newest run, compare {\"since\": \"7d\"} for what changed, arms and goals for all of them.".to_owned()]);
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

fn totals(ctx: &Ctx) -> Result<Table, ToolError> {
    let (totals, datasets) = (ctx.store.totals()?, ctx.store.datasets()?);
    let cases: u64 = datasets.iter().map(|dataset| dataset.info.dataset_cases.map_or(dataset.tried, u64::from)).sum();
    let mut table =
        Table::new("Recorded history", &["recorded_runs", "scratch_runs", "evaluations", "cases", "oldest", "newest", "attempts", "rate"]);
    table.row([
        totals.recorded.into(),
        totals.scratch.into(),
        datasets.len().into(),
        cases.into(),
        totals.oldest.into(),
        totals.newest.into(),
        totals.counts.total().into(),
        rate(totals.counts),
    ]);
    Ok(table)
}

fn newest_run(run: &Run) -> Table {
    let columns: Vec<&'static str> = ["run", "kind", "status", "created"].into_iter().chain(COUNTS).collect();
    let mut table = Table::new("Newest run", &columns);
    let head: [Cell; 4] = [run.run_id.clone().into(), run.kind.word().into(), run.status.word().into(), run.created_at.into()];
    table.row(head.into_iter().chain(counts(run.counts)));
    table
}

/// The verdicts of all evaluations and arms, each by its newest cell in a recorded run.
fn standing(ctx: &Ctx) -> Result<Table, ToolError> {
    let query =
        PointQuery { evaluation_contains: None, keys: None, grain: Grain::Evaluation, counted: false, statuses: &[], pick: Pick::Newest };
    let points = ctx.store.points(&query)?;
    let mut table = Table::new("Evaluations and arms by their newest recorded verdict", &Verdict::ALL.map(Verdict::word));
    table.row(Verdict::ALL.map(|verdict| points.iter().filter(|point| point.cell.verdict == verdict).count().into()));
    Ok(table)
}

fn arms_table(arms: &[ArmTotal]) -> Table {
    let mut table = Table::new("Arms", &["arm", "role", "runs", "evaluations", "rate"]);
    let mut arms: Vec<&ArmTotal> = arms.iter().collect();
    arms.sort_by(|a, b| (b.newest.created_at, &a.info.name).cmp(&(a.newest.created_at, &b.info.name)));
    for arm in arms.into_iter().take(LISTED) {
        table.row([arm.info.name.clone().into(), arm.info.role.clone().into(), arm.runs.into(), arm.evaluations.into(), rate(arm.counts)]);
    }
    table
}

/// Those that are settled first.
fn goals_table(goals: &[Stands]) -> Table {
    let mut table = Table::new("Goals", &["goal", "status", "difference", "adjusted_p"]);
    let place = |stands: &Stands| Standing::ALL.iter().position(|standing| *standing == stands.judged.standing);
    let mut goals: Vec<&Stands> = goals.iter().collect();
    goals.sort_by_key(|stands| place(stands));
    for stands in goals.into_iter().take(LISTED) {
        let difference = stands.tested.as_ref().map_or(Cell::Null, |test| rounded(test.difference));
        table.row([stands.goal.id.clone().into(), stands.judged.standing.word().into(), difference, shown_p(stands.judged.adjusted_p)]);
    }
    table
}
