//! `list_eval_run_projections`: the runs of one evaluation, page by page (S-projection).
//!
//! Promises: input and output are those of the document's two schemas, which stand beside this file and are what `tools/list` shows; pages
//! neither repeat nor skip what was there while runs come and go (decision 75); a rate never stands without its counts.
//! Does not: open a run; `show` does.

use std::sync::LazyLock;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cursor::{Cursor, Cursors};
use crate::{
    domain::{
        log::RunStatus,
        outcome::{Counts, Rate},
        text::clean,
        time::Timestamp,
    },
    store::{CheckMean, Projection, ProjectionArm, ProjectionPage, ProjectionPlace, ProjectionQuery, ProjectionSort},
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::{Bounded, Text},
        render::{self, Grid, Style},
    },
};

/// The tool.
pub enum ListEvalRunProjections {}

/// Runs on a page where nobody says otherwise.
const LIMIT: u64 = 100;

/// What to sort by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum SortBy {
    /// When the run was created.
    #[default]
    CreatedAt,
    /// The word of its status, as text.
    Status,
}

/// Which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum SortOrder {
    /// The least first.
    Asc,
    /// The greatest first.
    #[default]
    Desc,
}

/// The arguments of `list_eval_run_projections`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The evaluation whose runs to list.
    #[arg(value_name = "EVAL")]
    pub eval_id: Text<{ usize::MAX }>,
    /// The project; needed only where there are several. The gate takes it off before the tool is asked.
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    pub project_reference: Option<Text<{ usize::MAX }>>,
    /// How many runs a page has, 1 to 100; 100 where it is not said.
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub limit: Option<Bounded<1, 100, LIMIT>>,
    /// page_info.next or prev of another page of the same list.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<Text<128>>,
    /// What to sort by; created_at where it is not said.
    #[arg(long, value_name = "WORD", value_enum)]
    #[serde(default)]
    pub sort_by: Option<SortBy>,
    /// Which way; desc where it is not said.
    #[arg(long, value_name = "WORD", value_enum)]
    #[serde(default)]
    pub sort_order: Option<SortOrder>,
}

/// The result of `list_eval_run_projections`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Output {
    /// The runs.
    pub data: Vec<Row>,
    /// Where other pages are.
    pub page_info: PageInfo,
    /// What else should be known. The document's result has no place for it, so only the text says it.
    #[serde(skip)]
    pub note: Option<String>,
}

/// Where other pages are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageInfo {
    /// The cursor that was given.
    #[serde(rename = "self")]
    pub this: Option<String>,
    /// Always null: the first page is the one without a cursor.
    pub first: (),
    /// The cursor of the page after this one.
    pub next: Option<String>,
    /// The cursor of the page before this one.
    pub prev: Option<String>,
}

/// A run (decision 76 says where each field comes from).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Row {
    /// Always `eval-run`.
    pub kind: &'static str,
    /// The run's id.
    pub run_id: String,
    /// The evaluation's id.
    pub eval_id: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Always `agent`.
    pub target_kind: &'static str,
    /// The arm that tried the evaluation; of several the first variant by name. Empty where no log names one.
    pub target: String,
    /// Where the evaluation is defined, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceFile>,
    /// What came of the evaluation's attempts, by every arm; null until the run ends.
    pub summary: Option<Summary>,
    /// Where a report of it stands; null where nobody says so.
    pub report_path: Option<String>,
    /// Why the run failed; null where it did not.
    pub error: Option<Failure>,
    /// The run's name/value pairs; where several arms tried the evaluation, `arms` names those that are not the target.
    pub metadata: Map<String, Value>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When work began.
    pub started_at: Option<Timestamp>,
    /// When work ended.
    pub completed_at: Option<Timestamp>,
}

/// Where an evaluation is defined.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SourceFile {
    /// The file.
    pub file_path: String,
    /// The name in it that declares the evaluation.
    pub export_name: String,
}

/// What came of an evaluation's attempts in a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// Attempts that have a record of how they ended.
    pub records: u32,
    /// Passed over counted; null where nothing was counted.
    pub pass_rate: Option<f64>,
    /// What the rate is over, and what is not in it.
    pub counts: Counts,
    /// The mean of each check, by name.
    pub metrics: Vec<Metric>,
}

/// A check's mean.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Metric {
    /// The check.
    pub name: String,
    /// The mean over cases of each case's own mean; passed is 1 where a check has no value.
    pub mean: f64,
    /// Over how many cases.
    pub cases: u64,
    /// Over how many answers of them.
    pub answers: u64,
}

/// Why a run failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Failure {
    /// In its tool's words; null where it gave none, or where texts are hidden.
    pub message: Option<String>,
}

static INPUT: LazyLock<Map<String, Value>> = LazyLock::new(|| schema(include_str!("input.schema.json")));
static OUTPUT: LazyLock<Map<String, Value>> = LazyLock::new(|| schema(include_str!("output.schema.json")));

fn schema(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

impl Tool for ListEvalRunProjections {
    const NAME: &'static str = "list_eval_run_projections";
    const VERB: &'static str = "list-eval-run-projections";
    const ALIAS: Option<&'static str> = Some("veryfront__list_eval_run_projections");
    const TITLE: &'static str = "Evaluation run projections";
    const ABOUT: &'static str = "The runs of one evaluation, by page";
    const DOC: &'static str = "Lists the runs of one eval, newest first by default, to follow their status or pick a run to inspect; returns one page of eval runs. A summary counts the eval's attempts by every arm.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Projections];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read", "project.evals.read"]];
    const RELEASED: bool = true;
    const PROJECT_ARGUMENT: Option<&'static str> = Some("project_reference");
    const NARROWS: &'static str = "limit";
    type Input = Input;
    type Output = Output;

    fn input_schema() -> Map<String, Value> {
        INPUT.clone()
    }

    fn output_schema() -> Map<String, Value> {
        OUTPUT.clone()
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let (by, order) = (input.sort_by.unwrap_or_default(), input.sort_order.unwrap_or_default());
        let cursors = cursors(ctx, input.eval_id.get(), by, order)?;
        let given = input.cursor.as_ref().map(|word| cursors.read(word.get()).ok_or_else(invalid)).transpose()?;
        let query = ProjectionQuery {
            evaluation: input.eval_id.get(),
            sort: match by {
                SortBy::CreatedAt => ProjectionSort::CreatedAt,
                SortBy::Status => ProjectionSort::Status,
            },
            descending: order == SortOrder::Desc,
            from: given.map(|cursor| cursor.place),
            back: given.is_some_and(|cursor| cursor.back),
            limit: input.limit.unwrap_or_default().count(),
        };
        let page = ctx.store.projections(&query)?.ok_or_else(|| unknown(input.eval_id.get()))?;
        let page_info = page_info(&cursors, &query, &page, input.cursor.as_ref().map(|word| word.get().to_owned()));
        let data = page.rows.into_iter().map(|row| projected(row, input.eval_id.get())).collect();
        Ok(Output { data, page_info, note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    /// A run that is under way changes without a write of ours (decision 82).
    fn lasting(output: &Output) -> bool {
        output.data.iter().all(|row| row.status.ended())
    }

    fn text(output: &Output, style: &Style) -> String {
        let mut grid = Grid::new(style, &["run", "created (UTC)", "status", "target", "passed", "rate"]);
        for row in output.data.iter().take(render::ROWS_SHOWN) {
            let summary = row.summary.as_ref();
            let rate = summary.and_then(|summary| summary.pass_rate).map_or_else(|| "-".to_owned(), |rate| rate.to_string());
            grid.row([
                row.run_id.clone().into(),
                render::short_time(row.created_at).into(),
                row.status.word().into(),
                row.target.clone().into(),
                summary.map_or_else(String::new, |summary| render::counts(summary.counts)).into(),
                rate.into(),
            ]);
        }
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        let next = output.page_info.next.as_ref().map(|next| format!("\nMore: cursor {next}")).unwrap_or_default();
        let table = if output.data.is_empty() { "No runs on this page.".to_owned() } else { grid.text() };
        table + &render::more(output.data.len().min(render::ROWS_SHOWN), output.data.len() as u64) + &next + &note
    }
}

fn unknown(evaluation: &str) -> ToolError {
    let shown = clean(&crate::domain::attempt::shorten(evaluation, 80));
    ToolError::NotFound(format!("not found: no run holds an eval \"{shown}\""))
}

/// One sentence whatever is wrong with it, so that nobody learns from it whose it is.
fn invalid() -> ToolError {
    ToolError::Argument(
        "invalid cursor: give page_info.next or prev of an answer to the same eval_id, sort_by and sort_order, or begin again without it"
            .to_owned(),
    )
}

fn cursors(ctx: &Ctx, evaluation: &str, by: SortBy, order: SortOrder) -> Result<Cursors, ToolError> {
    let by = match by {
        SortBy::CreatedAt => "created_at",
        SortBy::Status => "status",
    };
    let order = if order == SortOrder::Desc { "desc" } else { "asc" };
    Cursors::new(&ctx.store.cursor_key()?, &[ListEvalRunProjections::NAME, &ctx.project, evaluation, by, order])
}

fn page_info(cursors: &Cursors, query: &ProjectionQuery<'_>, page: &ProjectionPage, this: Option<String>) -> PageInfo {
    let of = |row: &Projection| ProjectionPlace::of(&row.run);
    // A page that others emptied has no rows to go on from, but still a place: just beyond it, so that a run that stands there is not skipped.
    let beyond = |descending: bool| query.from.map(|place| place.after(descending));
    let last = page.rows.last().map(of).or_else(|| beyond(!query.descending));
    let first = page.rows.first().map(of).or_else(|| beyond(query.descending));
    let write = |back, place: Option<ProjectionPlace>| place.map(|place| cursors.write(Cursor { back, place }));
    PageInfo {
        this,
        first: (),
        next: if page.after { write(false, last) } else { None },
        prev: if page.before { write(true, first) } else { None },
    }
}

fn projected(row: Projection, evaluation: &str) -> Row {
    let Projection { run, arms, source, counts, checks, said } = row;
    let (target, others) = target(arms);
    let mut metadata: Map<String, Value> = said.metadata.into_iter().collect();
    if !others.is_empty() {
        metadata.insert("arms".to_owned(), others.into());
    }
    Row {
        kind: "eval-run",
        run_id: run.run_id,
        eval_id: evaluation.to_owned(),
        status: run.status,
        target_kind: "agent",
        target,
        source: source.map(|source| SourceFile { file_path: source.file, export_name: source.export }),
        summary: run.status.ended().then(|| summary(counts, checks)),
        report_path: said.report_path,
        error: (run.status == RunStatus::Failed).then_some(Failure { message: said.error }),
        metadata,
        created_at: run.created_at,
        started_at: run.started_at,
        completed_at: run.completed_at,
    }
}

fn summary(counts: Counts, checks: Vec<CheckMean>) -> Summary {
    let metric = |check: CheckMean| Metric { name: check.name, mean: check.mean, cases: check.cases, answers: check.answers };
    Summary {
        records: counts.total().saturating_sub(counts.missing),
        pass_rate: counts.rate().map(Rate::shown),
        counts,
        metrics: checks.into_iter().map(metric).collect(),
    }
}

/// The arm that the run is about, and the names of the others (decision 76): the first variant; where nobody says which that is, the first that
/// is no control.
fn target(mut arms: Vec<ProjectionArm>) -> (String, Vec<String>) {
    arms.sort();
    let role = |word: &'static str| move |arm: &ProjectionArm| arm.role.as_deref() == Some(word);
    let control = role("control");
    let at = arms.iter().position(role("variant")).or_else(|| arms.iter().position(|arm| !control(arm))).unwrap_or(0);
    let target = if at < arms.len() { arms.remove(at).name } else { String::new() };
    (target, arms.into_iter().map(|arm| arm.name).collect())
}

#[cfg(test)]
mod tests;
