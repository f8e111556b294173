//! `eval.list`: the project's evaluations, newest first (decision 74).
//!
//! Promises: an array, as the contract has it.
//! Does not: say how many there are; a page shorter than its limit is the last one.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evaluation, pretty};
use crate::{
    store::workspace::{AuthoredQuery, EvaluationStatus},
    tools::{Ctx, Tool, ToolError, Toolset, arguments::Bounded, render::Style},
};

/// The tool.
pub enum EvalList {}

/// The arguments of `eval.list`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// How many evaluations.
    #[arg(long, value_name = "N", default_value_t)]
    limit: Bounded<1, 100, 50>,
    /// How many are passed over.
    #[arg(long, value_name = "N", default_value_t)]
    offset: Bounded<0, 1_000_000, 0>,
    /// Only those that stand there.
    #[arg(long, value_name = "WORD", value_enum)]
    status: Option<EvaluationStatus>,
}

/// The result of `eval.list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Output {
    /// The evaluations.
    evaluations: Vec<Evaluation>,
    /// What else should be known. An array has no place for it.
    #[serde(skip)]
    note: Option<String>,
}

impl Tool for EvalList {
    const NAME: &'static str = "eval.list";
    const TITLE: &'static str = "Evaluations";
    const ABOUT: &'static str = "The project's evaluations, newest first";
    const DOC: &'static str = "Lists the project's evaluations, newest first, with their numbers.";
    const TOOLSETS: &'static [Toolset] = &[];
    const NARROWS: &'static str = "limit";

    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let query =
            AuthoredQuery { status: input.status, offset: input.offset.get(), limit: input.limit.count(), ..AuthoredQuery::default() };
        let (found, _) = ctx.store.authored(&query)?;
        Ok(Output { evaluations: found.into_iter().map(Evaluation::from).collect(), note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        pretty(output)
    }
}
