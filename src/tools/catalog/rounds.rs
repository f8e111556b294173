//! `rounds`: the named groups of runs (eval sets, sweeps, experiments), newest first.
//!
//! Promises: each id in it is taken by `runs_list`.
//! Does not: compare what a round's runs found.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, COUNTS, Cell, Table, counts};
use crate::tools::{Ctx, Tool, ToolError, Toolset, render::Style};

/// The tool.
pub enum Rounds {}

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

impl Tool for Rounds {
    const NAME: &'static str = "rounds";
    const TITLE: &'static str = "Rounds";
    const ABOUT: &'static str = "The named groups of runs: eval sets, sweeps, experiments";
    const DOC: &'static str =
        "Lists the rounds (eval sets, sweeps, experiments), newest first, with their runs and counts; runs_list takes a round's id.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "runs_list with round";
    type Input = Input;
    type Output = Blocks;

    fn call(ctx: &Ctx, _: Input) -> Result<Blocks, ToolError> {
        let mut out = Blocks::of::<Self>();
        let columns: Vec<&'static str> = ["round", "runs", "under_way", "first", "last", "last_run"].into_iter().chain(COUNTS).collect();
        let mut table = Table::new("Rounds", &columns);
        for round in ctx.store.rounds()? {
            out.lasting &= round.unended == 0;
            let head: [Cell; 6] = [
                round.round.into(),
                round.runs.into(),
                round.unended.into(),
                round.oldest.created_at.into(),
                round.newest.created_at.into(),
                round.newest.run_id.into(),
            ];
            table.row(head.into_iter().chain(counts(round.counts)));
        }
        out.long_table(ctx, table, "runs_list and its round");
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
