//! `trivial`: 1.5 KB about nothing, so that what is measured is the way to a tool and back (cargo feature `fixtures`; `tests/bench/http`).
//!
//! Promises: takes the arguments that the bench gives to `runs_list`, reads no store, and says the same each time.
//! Does not: stand in what is shipped.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ctx, Tool, ToolError, arguments::Bounded, render::Style};

/// Twelve of these in JSON and in text make 1.5 KB.
const LINE: &str = "Nothing is measured here but the way to a tool and back.\n";

/// The tool.
pub enum Trivial {}

/// The arguments of `trivial`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Another text is another call.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub since: Option<String>,
    /// Lines to say, over eight.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 4>,
}

/// The result of `trivial`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The lines.
    pub said: String,
    /// What else should be known.
    pub note: Option<String>,
}

impl Tool for Trivial {
    const NAME: &'static str = "trivial";
    const TITLE: &'static str = "Nothing";
    const ABOUT: &'static str = "Says nothing, for measuring";
    const DOC: &'static str = "Says 1.5 KB about nothing, so that what stands around a tool can be measured.";
    const NARROWS: &'static str = "limit";
    type Input = Input;
    type Output = Output;

    fn call(_: &Ctx, input: Input) -> Result<Output, ToolError> {
        Ok(Output { said: LINE.repeat(input.limit.count().saturating_add(8)), note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        output.said.clone()
    }
}
