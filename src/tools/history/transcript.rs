//! `transcript`: one page of an attempt's messages and events, as JSON lines (decisions 9 and 61).
//!
//! Promises: each line is one line of JSON, redacted at import; a very long one is cut and says so; a page past the end is empty.
//! Does not: search or summarise.

use clap::{ArgMatches, Args, FromArgMatches as _, error::ErrorKind, parser::ValueSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::attempt::shorten,
    tools::{
        Ctx, Tool, ToolError,
        arguments::{self, Bounded},
        render::{self, Style},
        resolve, uri,
    },
};

/// The tool.
pub enum Transcript {}

/// The arguments of `transcript`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[command(override_usage = "runlore transcript [OPTIONS] [RUN] <ATTEMPT>")]
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
    /// The first line, from 0.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub offset: Bounded<0, 4_294_967_295, 0>,
    /// How many lines.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 1000, 200>,
}

/// The result of `transcript`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The run's id.
    pub run_id: String,
    /// The attempt's key.
    pub attempt: String,
    /// The resource of the whole transcript.
    pub uri: String,
    /// The number of the first line here.
    pub offset: u64,
    /// All lines there are.
    pub total: u64,
    /// Each exactly one line of JSON.
    pub lines: Vec<String>,
    /// How many are here.
    pub returned: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Tool for Transcript {
    const NAME: &'static str = "transcript";
    const TITLE: &'static str = "Transcript";
    const ABOUT: &'static str = "The conversation and events of one attempt";
    const DOC: &'static str = "Returns a page of an attempt's transcript as JSON lines: the conversation's messages first, then the trace of events (tool calls, sub-agents, scores).";
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read"], &["traces:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "offset and limit";
    type Input = Input;
    type Output = Output;

    /// One word is the attempt, and the run is the newest; of two the first is the run.
    fn words(matches: &ArgMatches) -> Result<Input, clap::Error> {
        let input = Input::from_arg_matches(matches)?;
        let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        match (given("run"), given("attempt")) {
            (_, true) => Ok(input),
            (true, false) => Ok(Input { run: arguments::latest(), attempt: input.run, ..input }),
            (false, false) => {
                let said = "the attempt's key is missing; give it after the run: runlore transcript [RUN] <ATTEMPT>\n";
                Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, said))
            }
        }
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let run = resolve::run(ctx, &input.run)?;
        let attempt = resolve::attempt(ctx, &run.run_id, &input.attempt)?;
        let page = ctx.store.transcript(&run.run_id, &attempt.key, input.offset.get(), input.limit.get())?;
        let page = page.ok_or_else(|| {
            ToolError::NotFound(format!("run {} has no attempt \"{}\"", render::clean(&run.run_id), render::clean(&attempt.key)))
        })?;
        if page.total == 0 {
            return Err(ToolError::NotFound(format!(
                "attempt \"{}\" of run {} has no transcript; its log kept none",
                render::clean(&attempt.key),
                render::clean(&run.run_id)
            )));
        }
        let lines: Vec<String> = page.lines.iter().map(|line| shorten(line, ctx.limits.line_bytes)).collect();
        let offset = input.offset.get();
        Ok(Output {
            uri: uri::transcript(&run.run_id, &attempt.key),
            run_id: run.run_id,
            attempt: attempt.key,
            complete: offset.saturating_add(lines.len() as u64) >= page.total,
            returned: lines.len(),
            total: page.total,
            offset,
            lines,
            note: None,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let mut out = format!(
            "{} of {}: lines {} to {} of {}\n",
            render::clean(&output.attempt),
            render::clean(&output.run_id),
            output.offset,
            output.offset + output.returned as u64,
            output.total
        );
        for line in &output.lines {
            out.push_str(&render::clean(line));
            out.push('\n');
        }
        out.extend(output.note.iter().map(|note| format!("{note}\n")));
        out
    }
}
