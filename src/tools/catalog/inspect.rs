//! `inspect`: one attempt whole: how it ended, its checks, what it consumed and what it said.
//!
//! Promises: texts only to whom may read them (decision 35): the store has taken them out, and the argument is not there.
//! Does not: page the transcript; it says where that is.

use clap::{ArgMatches, Args, FromArgMatches as _, error::ErrorKind, parser::ValueSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks::{Blocks, Cell, Table},
    sees_text,
};
use crate::{
    domain::{attempt::Check, cell::CellKey},
    store::{AttemptQuery, AttemptRest, AttemptRow, Run},
    tools::{Ctx, Tool, ToolError, Toolset, arguments, render::Style, resolve, uri},
};

/// The tool.
pub enum Inspect {}

/// The arguments of `inspect`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[command(override_usage = "runlore inspect [OPTIONS] [RUN] <ATTEMPT>")]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    #[serde(default = "arguments::latest")]
    pub run: String,
    /// The attempt's key as failures and show give it, or <evaluation>#<n> where that is one attempt.
    // Optional to clap, which would otherwise take what follows `--` for the attempt alone: see `words`.
    #[arg(default_value = "", hide_default_value = true)]
    pub attempt: String,
    /// With the case's input and target.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub item: bool,
}

impl Tool for Inspect {
    const NAME: &'static str = "inspect";
    const TITLE: &'static str = "Inspect an attempt";
    const ABOUT: &'static str = "One attempt whole: outcome, checks, usage and output";
    const DOC: &'static str =
        "Shows one attempt whole: outcome, score, checks with their reasons, tokens, cost, error and output; transcript has its messages.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Catalog];
    const RELEASED: bool = true;
    const TEXT_ARGUMENTS: &'static [&'static str] = &["item"];
    const NARROWS: &'static str = "item";
    type Input = Input;
    type Output = Blocks;

    /// One word is the attempt, and the run is the newest; of two the first is the run.
    fn words(matches: &ArgMatches) -> Result<Input, clap::Error> {
        let input = Input::from_arg_matches(matches)?;
        let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        match (given("run"), given("attempt")) {
            (_, true) => Ok(input),
            (true, false) => Ok(Input { run: arguments::latest(), attempt: input.run, ..input }),
            (false, false) => {
                let said = "the attempt's key is missing; give it after the run: runlore inspect [RUN] <ATTEMPT>\n";
                Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, said))
            }
        }
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Blocks, ToolError> {
        let run = resolve::run(ctx, &input.run)?;
        let found = resolve::attempt(ctx, &run.run_id, &input.attempt)?;
        let attempt = whole(ctx, &run.run_id, &found)?.unwrap_or(found);
        let rest = attempt.rest.as_deref().cloned().unwrap_or_default();
        let mut out = Blocks::of::<Self>();
        out.lasting = run.status.ended();
        out.table(facts(&run, &attempt, &rest));
        if !attempt.checks.is_empty() {
            out.table(checks(&attempt.checks));
        }
        if !rest.answers.is_empty() {
            out.table(answers(&rest));
        }
        for (title, text) in [("Error", attempt.error.as_ref()), ("Output", rest.output.as_ref())] {
            if let Some(text) = text {
                out.titled(title, [text.clone()]);
            }
        }
        if input.item {
            for (title, text) in [("Input", rest.input.as_ref()), ("Target", rest.target.as_ref())] {
                out.titled(title, [text.cloned().unwrap_or_else(|| "(none is kept)".to_owned())]);
            }
        }
        if attempt.lines > 0 && sees_text(ctx) {
            let place = uri::transcript(&run.run_id, &attempt.key);
            out.lines([format!("Its transcript has {} lines: the tool transcript, or {place}", attempt.lines)]);
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

/// The attempt with all that is kept of it.
fn whole(ctx: &Ctx, run: &str, found: &AttemptRow) -> Result<Option<AttemptRow>, ToolError> {
    let key = CellKey { evaluation: found.evaluation.clone(), case: Some(found.case.clone()), arm: found.arm.clone() };
    let query = AttemptQuery { keys: Some(&[key]), checks: true, rest: true, ..AttemptQuery::default() };
    Ok(ctx.store.attempts(run, &query)?.into_iter().find(|row| row.key == found.key))
}

fn facts(run: &Run, attempt: &AttemptRow, rest: &AttemptRest) -> Table {
    let mut table = Table::new("Attempt", &["field", "value"]);
    let usage = &attempt.usage;
    let case = Some(attempt.case.clone()).filter(|case| !case.is_empty());
    let context = rest.context.map(|context| match context.window_tokens {
        Some(window) => format!("{} of {window} tokens", context.tokens_peak),
        None => format!("{} tokens", context.tokens_peak),
    });
    let reads = rest.skill_reads.iter().map(|read| format!("{}/{} x{}", read.skill, read.file, read.reads)).collect::<Vec<_>>().join(", ");
    let fields: [(&str, Cell); 26] = [
        ("run", run.run_id.clone().into()),
        ("attempt", attempt.key.clone().into()),
        ("evaluation", attempt.evaluation.clone().into()),
        ("case", case.into()),
        ("group", rest.group.clone().into()),
        ("arm", attempt.arm.clone().into()),
        ("n", attempt.n.into()),
        ("outcome", attempt.outcome.word().into()),
        ("score", attempt.score.into()),
        ("started", attempt.started_at.into()),
        ("duration_ms", attempt.duration_ms.into()),
        ("working_ms", rest.working_ms.into()),
        ("cost_usd", attempt.cost_usd.into()),
        ("input_tokens", usage.input_tokens.into()),
        ("output_tokens", usage.output_tokens.into()),
        ("total_tokens", usage.total_tokens.into()),
        ("cache_read_tokens", usage.cache_read_tokens.into()),
        ("cache_write_tokens", usage.cache_write_tokens.into()),
        ("reasoning_tokens", usage.reasoning_tokens.into()),
        ("retries", attempt.retries.into()),
        ("limit", attempt.limit.clone().into()),
        ("context", context.into()),
        ("skill_reads", Some(reads).filter(|reads| !reads.is_empty()).into()),
        ("uuid", rest.uuid.clone().into()),
        ("transcript_lines", attempt.lines.into()),
        ("messages", attempt.messages.into()),
    ];
    for (name, value) in fields {
        if value != Cell::Null {
            table.row([name.into(), value]);
        }
    }
    table
}

fn checks(checks: &[Check]) -> Table {
    let mut table = Table::new("Checks", &["check", "kind", "passed", "value", "label", "answer", "reason"]);
    for check in checks {
        table.row([
            check.name.clone().into(),
            Some(check.kind.clone()).filter(|kind| !kind.is_empty()).into(),
            check.passed.into(),
            check.value.into(),
            check.label.clone().into(),
            check.answer.clone().into(),
            check.reason.clone().into(),
        ]);
    }
    table
}

fn answers(rest: &AttemptRest) -> Table {
    let mut table = Table::new("Answers", &["question", "answer", "passed", "judge"]);
    for answer in &rest.answers {
        table.row([answer.question.clone().into(), answer.answer.clone().into(), answer.passed.into(), answer.judge.clone().into()]);
    }
    table
}
