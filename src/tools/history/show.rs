//! `show`: one run's record, as JSON or as Markdown for people (decision 9 and the minimal run record).
//!
//! Promises: the run record as `export` writes it, but for long texts; filters for runs that are too large to send.
//! Does not: show transcripts, inputs, targets or outputs.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    kept,
    run_record::{self, Wants},
};
use crate::{
    domain::{
        outcome::{Counts, Rate},
        run_record::RunRecord,
    },
    store::Run,
    tools::{
        Ctx, Tool, ToolError,
        arguments::{self, Bounded},
        cursor::List,
        render::Style,
        resolve,
    },
};

mod markdown;

/// The tool.
pub enum Show {}

/// How `show` answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum Format {
    /// The run record.
    #[default]
    Json,
    /// Markdown for people.
    Md,
}

/// The arguments of `show`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    #[serde(default = "arguments::latest")]
    pub run: String,
    /// The run record as json, or md for people.
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    #[serde(default)]
    pub format: Format,
    /// Only evaluations whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub filter: Option<String>,
    /// How many evaluations.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 1000, 100>,
    /// Whether to list each attempt.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    #[serde(default = "yes")]
    pub attempts: bool,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

const fn yes() -> bool {
    true
}

/// The result of `show`: the record, or its Markdown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// With `format: md`: the run's id, which is the record's own otherwise.
    #[serde(rename = "runId", skip_serializing_if = "Option::is_none")]
    pub markdown_of: Option<String>,
    /// With `format: md`: the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// With `format: json`: the record, without the long texts that `transcript` and `failures` show.
    #[serde(flatten)]
    pub record: Option<RunRecord>,
    /// How many of its evaluations are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<usize>,
    /// How many there are under the filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Whether the last one is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// What to give as `cursor` for what comes after these; null where nothing does.
    pub next_cursor: Option<String>,
    /// How many come after these, for the text.
    #[serde(skip)]
    #[schemars(skip)]
    after: usize,
}

/// Where a page ends: its run, whatever `latest` is by then, and its last evaluation.
type Place = (String, String);

impl Tool for Show {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "Run record";
    const ABOUT: &'static str = "One run's whole record";
    const DOC: &'static str = "Returns one run's record: its code, arms, evaluations, cells and attempts with their checks, tokens and cost. Use format md for a summary to read, attempts false for a short record.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, limit, attempts: false and format: md";
    type Input = Input;
    type Output = Output;

    /// The record has a page of its own.
    fn output_schema() -> serde_json::Map<String, serde_json::Value> {
        arguments::shallow_schema::<Output>()
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let place = list.place::<Place>(input.cursor.as_deref())?;
        let run = resolve::run_of_page(ctx, place.as_ref().map(|(run_id, _)| run_id.as_str()), &input.run)?;
        let after = place.map(|(_, evaluation)| evaluation);
        answer(ctx, &input, run, &Page { list, after, limit: input.limit.count() })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let text = match (&output.markdown, &output.record) {
            (Some(text), _) => text.clone(),
            (None, Some(record)) => markdown::markdown(record, output.after),
            (None, None) => String::new(),
        };
        text + &output.note.as_ref().map(|note| format!("\n{note}\n")).unwrap_or_default()
    }
}

/// The whole record of `run`: what `show` answers for it, without its limit.
///
/// # Errors
/// As the store.
pub fn whole(ctx: &Ctx, run: Run) -> Result<Output, ToolError> {
    let input =
        Input { run: run.run_id.clone(), format: Format::Json, filter: None, limit: Bounded::default(), attempts: true, cursor: None };
    let list = List::of(ctx, Show::NAME, &input);
    answer(ctx, &input, run, &Page { list, after: None, limit: usize::MAX })
}

/// Which evaluations, by id: at most so many after that one.
struct Page<'a> {
    list: List<'a>,
    after: Option<String>,
    limit: usize,
}

fn answer(ctx: &Ctx, input: &Input, run: Run, page: &Page<'_>) -> Result<Output, ToolError> {
    let (record, left) = record(ctx, input, &run, page)?;
    let note = if left.total == 0 { Some(kept::none_in(ctx, &run, input.filter.as_deref())?) } else { None };
    let (returned, complete) = (record.evals.len(), left.after == 0);
    let next_cursor = record.evals.last().filter(|_| !complete).map(|last| page.list.at(&(&run.run_id, &last.id)));
    let empty = Output {
        markdown_of: None,
        markdown: None,
        note,
        record: None,
        returned: None,
        total: None,
        complete: None,
        next_cursor,
        after: left.after,
    };
    Ok(match input.format {
        Format::Json => {
            Output { record: Some(record), returned: Some(returned), total: Some(left.total), complete: Some(complete), ..empty }
        }
        Format::Md => Output { markdown: Some(markdown::markdown(&record, left.after)), markdown_of: Some(run.run_id), ..empty },
    })
}

/// How many evaluations the filter leaves, and how many come after the page.
struct Left {
    total: usize,
    after: usize,
}

fn record(ctx: &Ctx, input: &Input, run: &Run, page: &Page<'_>) -> Result<(RunRecord, Left), ToolError> {
    let mut infos = ctx.store.evaluations(&run.run_id)?;
    let wanted = input.filter.as_deref().map(str::to_lowercase);
    infos.retain(|evaluation| wanted.as_deref().is_none_or(|wanted| evaluation.info.id.to_lowercase().contains(wanted)));
    let total = infos.len();
    infos.retain(|evaluation| page.after.as_ref().is_none_or(|after| evaluation.info.id > *after));
    let after = infos.len().saturating_sub(page.limit);
    infos.truncate(page.limit);
    let wants = Wants { attempts: input.attempts, texts: false };
    let evals = run_record::evals(&*ctx.store, run, infos, wants)?;
    Ok((RunRecord { evals, ..run_record::head(&*ctx.store, run)? }, Left { total, after }))
}

/// The rate as text beside its counts.
fn rate(counts: Counts) -> String {
    counts.rate().map_or_else(|| "-".to_owned(), |rate: Rate| rate.shown().to_string())
}
