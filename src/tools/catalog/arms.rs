//! `arms`: what is compared: each arm with its factors, what it did, and the goals that it is in.
//!
//! Promises: a rate stands beside its five counts.
//! Does not: compare arms; `goals`, `query_contrasts` and `query_lift` do.

use super::{
    blocks::{Blocks, COUNTS, Cell, Table, counts, rounded},
    datasets::Input,
    goals::shown_p,
    kept, standings,
};
use crate::{
    store::ArmTotal,
    tools::{Ctx, Tool, ToolError, Toolset, Weight, render::Style},
};

/// The tool.
pub enum Arms {}

impl Tool for Arms {
    const NAME: &'static str = "arms";
    const TITLE: &'static str = "Arms";
    const ABOUT: &'static str = "What is compared: models, prompts and harnesses, with their goals";
    const DOC: &'static str = "Lists the arms (what is compared: model, harness, prompt): role, factors, runs, counts over recorded runs, and how the goals that each is in stand.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "filter";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let arms: Vec<ArmTotal> =
            ctx.store.arm_totals()?.into_iter().filter(|arm| kept(input.filter.as_deref(), &[&arm.info.name])).collect();
        let mut out = Blocks::of::<Self>();
        out.long_table(ctx, table(&arms), "filter");
        let goals = standings::read(ctx)?;
        let mut rows = Table::new("Their goals", &["arm", "goal", "side", "status", "difference", "adjusted_p"]);
        for arm in &arms {
            for stands in &goals {
                let side = match &arm.info.name {
                    name if *name == stands.goal.arm => "arm",
                    name if *name == stands.goal.versus => "versus",
                    _ => continue,
                };
                let difference = stands.tested.as_ref().map_or(Cell::Null, |test| rounded(test.difference));
                let (name, goal, status) = (arm.info.name.clone(), stands.goal.id.clone(), stands.judged.standing.word());
                rows.row([name.into(), goal.into(), side.into(), status.into(), difference, shown_p(stands.judged.adjusted_p)]);
            }
        }
        if !rows.is_empty() {
            out.long_table(ctx, rows, "filter");
        }
        Ok(out)
    }

    fn note(output: &mut Blocks) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Blocks, style: &Style) -> String {
        output.text(style)
    }
}

fn table(arms: &[ArmTotal]) -> Table {
    let columns: Vec<&'static str> =
        ["arm", "role", "factors", "runs", "evaluations"].into_iter().chain(COUNTS).chain(["last_run", "last"]).collect();
    let mut table = Table::new("Arms", &columns);
    for arm in arms {
        let factors = arm.info.factors.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(" ");
        let head: [Cell; 5] =
            [arm.info.name.clone().into(), arm.info.role.clone().into(), factors.into(), arm.runs.into(), arm.evaluations.into()];
        let tail: [Cell; 2] = [arm.newest.run_id.clone().into(), arm.newest.created_at.into()];
        table.row(head.into_iter().chain(counts(arm.counts)).chain(tail));
    }
    table
}
