//! `goals`: how each declared goal stands, by a paired test over its cases and Holm's adjustment over all of them.
//!
//! Promises: the family is every declared goal that could be found at all, whatever is listed: a filter changes no p.
//! Does not: decide what follows where a goal is met.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Cell, Table, rounded},
    kept,
    standings::{self, Stands},
};
use crate::{
    domain::{attempt::shorten, goal::Standing},
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        render::{self, Style},
    },
};

/// The tool.
pub enum Goals {}

/// The arguments of `goals`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only goals whose id or arms contain this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// This goal alone.
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    pub goal: Option<String>,
}

impl Tool for Goals {
    const NAME: &'static str = "goals";
    const TITLE: &'static str = "Goals";
    const ABOUT: &'static str = "How the declared goals stand, by paired tests";
    const DOC: &'static str = "Tests each goal of runlore.toml (arm beats versus on a metric by a margin): difference, interval and p over the cases of both sides' newest completed runs, p adjusted over all goals (Holm). met, missed and open are statistical verdicts.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "filter or goal";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let all = standings::read(ctx)?;
        if let Some(id) = &input.goal
            && !all.iter().any(|stands| stands.goal.id == *id)
        {
            return Err(unknown(id, &all));
        }
        let mut out = Blocks::of::<Self>();
        let wanted = |stands: &&Stands| {
            let goal = &stands.goal;
            input.goal.as_ref().is_none_or(|id| goal.id == *id) && kept(input.filter.as_deref(), &[&goal.id, &goal.arm, &goal.versus])
        };
        let shown: Vec<&Stands> = all.iter().filter(wanted).collect();
        if all.is_empty() {
            out.lines(["No goal is declared; a [[goal]] in runlore.toml has id, arm, versus, metric, evaluations and margin.".to_owned()]);
            return Ok(out);
        }
        out.long_table(ctx, table(&shown), "filter");
        let family = all.iter().filter(|stands| stands.judged.adjusted_p.is_some()).count();
        out.lines([format!("p is two-sided, of \"the difference is the margin\", adjusted by Holm over {family} of {} goals; the others could not be found at any level.", all.len())]);
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

fn unknown(id: &str, all: &[Stands]) -> ToolError {
    let ids: Vec<String> = all.iter().take(10).map(|stands| render::clean(&stands.goal.id)).collect();
    let there = if ids.is_empty() { "none is declared".to_owned() } else { format!("there are {}", ids.join(", ")) };
    ToolError::NotFound(format!("argument goal: \"{}\" is no goal; {there}", render::clean(&shorten(id, 120))))
}

/// p to four digits: more say nothing.
pub(super) fn shown_p(p: Option<f64>) -> Cell {
    p.map(|p| format!("{p:.3e}").parse().unwrap_or(p)).into()
}

/// One row per goal.
pub(super) fn table(goals: &[&Stands]) -> Table {
    let mut table = Table::new(
        "Goals",
        &[
            "goal",
            "arm",
            "versus",
            "metric",
            "margin",
            "status",
            "difference",
            "low",
            "high",
            "p",
            "adjusted_p",
            "n",
            "evaluations",
            "method",
            "reason",
        ],
    );
    for Stands { goal, evaluations, untried, apart, tested, judged } in goals.iter().copied() {
        let test = tested.as_ref();
        let interval = test.and_then(|test| test.interval);
        let left = [(*untried, "not tried by both"), (*apart, "measured in two ways")];
        let left = left.into_iter().filter(|(count, _)| *count > 0 && judged.standing != Standing::NoData);
        let left = left.map(|(count, why)| format!("{count} evaluations {why}"));
        let reasons: Vec<String> = judged.reason.iter().cloned().chain(left).collect();
        table.row([
            goal.id.clone().into(),
            goal.arm.clone().into(),
            goal.versus.clone().into(),
            goal.metric.clone().into(),
            goal.margin.into(),
            judged.standing.word().into(),
            test.map(|test| rounded(test.difference)).unwrap_or(Cell::Null),
            interval.map(|interval| rounded(interval.low)).unwrap_or(Cell::Null),
            interval.map(|interval| rounded(interval.high)).unwrap_or(Cell::Null),
            shown_p(test.map(|test| test.p)),
            shown_p(judged.adjusted_p),
            test.map(|test| test.n).into(),
            (*evaluations).into(),
            test.map(|test| test.method).into(),
            Some(reasons.join("; ")).filter(|reason| !reason.is_empty()).into(),
        ]);
    }
    table
}
