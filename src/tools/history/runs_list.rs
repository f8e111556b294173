//! `runs_list`: the runs of the project, newest first, by page (decision 8).
//!
//! Promises: keyset paging, so that pages neither repeat nor skip runs while new ones come.
//! Does not: open a run; `show` does.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        log::{Git, RunStatus},
        outcome::{Counts, Rate},
        time::{self, Timestamp},
    },
    store::{Kind, Run, RunArm, RunPoint, RunQuery, workspace::Queued},
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::{self, Bounded},
        cursor::List,
        render::{self, Grid, Style},
    },
};

/// The tool.
pub enum RunsList {}

/// Which kinds of run to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum KindFilter {
    /// Both.
    #[default]
    All,
    /// Imported or kept.
    Recorded,
    /// Not yet kept.
    Scratch,
}

/// The arguments of `runs_list`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only runs that hold an evaluation whose id contains this, ignoring case.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub evaluation: Option<String>,
    /// Only runs that stand so.
    #[arg(long, value_name = "WORD", value_enum)]
    #[serde(default)]
    pub status: Option<RunStatus>,
    /// Only runs of this kind.
    #[arg(long, value_name = "WORD", value_enum, default_value_t)]
    #[serde(default)]
    pub kind: KindFilter,
    /// Only runs of this round (an eval set, a sweep).
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    pub round: Option<String>,
    /// Only runs created since: an age such as 7d, a date or an RFC 3339 time.
    #[arg(long, value_name = "WHEN")]
    #[serde(default)]
    pub since: Option<String>,
    /// How many runs a page has.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `runs_list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Newest first.
    pub runs: Vec<Row>,
    /// How many are here.
    pub returned: usize,
    /// How many there are under these filters.
    pub total: u64,
    /// Whether the last one is here.
    pub complete: bool,
    /// What to give as `cursor` for the next page.
    pub next_cursor: Option<String>,
    /// What else should be known.
    pub note: Option<String>,
}

/// One run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The run's id.
    pub run_id: String,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When work began.
    pub started_at: Option<Timestamp>,
    /// When work ended.
    pub completed_at: Option<Timestamp>,
    /// From start to end.
    pub duration_ms: Option<i64>,
    /// Its code.
    pub git: Option<Git>,
    /// The group of runs.
    pub round: Option<String>,
    /// The evaluations' ids.
    pub evaluations: Vec<String>,
    /// The arms' names.
    pub arms: Vec<String>,
    /// The five counts over all attempts.
    pub counts: Counts,
    /// Passed over counted.
    pub rate: Option<f64>,
    /// How far a run of the queue is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// How far a run of the queue is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Cases that have a result.
    pub done: u64,
    /// Cases in all.
    pub total: u64,
    /// Who works at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

impl From<&Queued> for Progress {
    fn from(queued: &Queued) -> Self {
        Self { done: queued.done, total: queued.total, worker: queued.worker.clone().filter(|_| !queued.status.ended()) }
    }
}

impl Tool for RunsList {
    const NAME: &'static str = "runs_list";
    const VERB: &'static str = "runs-list";
    const TITLE: &'static str = "Runs";
    const ABOUT: &'static str = "The runs, newest first";
    const DOC: &'static str =
        "Lists runs, newest first, with their status, code, evaluations, arms and counts. Start here to find a run id.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::History, Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read", "runs:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "evaluation, status, round, since and limit";
    type Input = Input;
    type Output = Output;

    /// Short: it stands in every list of tools.
    fn output_schema() -> serde_json::Map<String, serde_json::Value> {
        arguments::shallow_schema::<Output>()
    }

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let query = query(ctx, &input, list.place(input.cursor.as_deref())?)?;
        let (mut runs, total) = ctx.store.runs(&RunQuery { limit: query.limit.saturating_add(1), ..query.clone() })?;
        let complete = runs.len() <= query.limit;
        runs.truncate(query.limit);
        let next_cursor = runs.last().filter(|_| !complete).map(|run| list.at(&(run.created_at.millis(), &run.run_id)));
        let ids: Vec<String> = runs.iter().map(|run| run.run_id.clone()).collect();
        let arms = ctx.store.arms(&ids)?;
        let queued = if ids.is_empty() { BTreeMap::new() } else { ctx.store.queued(&ids)? };
        let row = |run: &Run| row(ctx, run, arms.get(&run.run_id).map_or(&[], Vec::as_slice), queued.get(&run.run_id));
        let rows = runs.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        Ok(Output { returned: rows.len(), runs: rows, total, complete, next_cursor, note: None })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    /// A run that is under way changes without a write of ours (decision 82).
    fn lasting(output: &Output) -> bool {
        output.runs.iter().all(|run| run.status.ended())
    }

    fn text(output: &Output, style: &Style) -> String {
        let mut grid = Grid::new(style, &["run", "created (UTC)", "status", "evaluations", "arms", "passed", "rate"]);
        for run in output.runs.iter().take(render::ROWS_SHOWN) {
            let rate = run.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
            grid.row([
                run.run_id.clone().into(),
                render::short_time(run.created_at).into(),
                status(run).into(),
                list(&run.evaluations).into(),
                list(&run.arms).into(),
                render::counts(run.counts).into(),
                rate.into(),
            ]);
        }
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        if output.runs.is_empty() {
            format!("No run matches.{note}")
        } else {
            grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total) + &note
        }
    }
}

/// The runs that come after `place`: the last run of the page before.
fn query(ctx: &Ctx, input: &Input, place: Option<(i64, String)>) -> Result<RunQuery, ToolError> {
    let since = input.since.as_deref().map(|text| time::since(text, ctx.now)).transpose();
    let before = place.map(|(millis, run_id)| RunPoint { run_id, created_at: Timestamp::from_millis(millis) });
    Ok(RunQuery {
        evaluation_contains: input.evaluation.clone(),
        kind: match input.kind {
            KindFilter::All => None,
            KindFilter::Recorded => Some(Kind::Recorded),
            KindFilter::Scratch => Some(Kind::Scratch),
        },
        status: input.status,
        round: input.round.clone(),
        since: since.map_err(|sentence| ToolError::Argument(format!("argument since: {sentence}")))?,
        before,
        shas: None,
        limit: input.limit.count(),
    })
}

fn row(ctx: &Ctx, run: &Run, arms: &[RunArm], queued: Option<&Queued>) -> Result<Row, ToolError> {
    let evaluations = ctx.store.evaluations(&run.run_id)?.into_iter().map(|evaluation| evaluation.info.id).collect();
    Ok(Row {
        run_id: run.run_id.clone(),
        kind: run.kind,
        // The queue knows first.
        status: queued.map_or(run.status, |queued| queued.status),
        created_at: run.created_at,
        started_at: run.started_at,
        completed_at: run.completed_at,
        duration_ms: run.started_at.zip(run.completed_at).map(|(start, end)| end.millis() - start.millis()),
        git: run.git.clone(),
        round: run.round.clone(),
        evaluations,
        arms: arms.iter().map(|arm| arm.info.name.clone()).collect(),
        counts: run.counts,
        rate: run.counts.rate().map(Rate::shown),
        progress: queued.map(Into::into),
    })
}

fn status(run: &Row) -> String {
    let progress = run.progress.as_ref().filter(|_| !run.status.ended());
    progress.map_or_else(|| run.status.word().to_owned(), |progress| format!("{} {}/{}", run.status.word(), progress.done, progress.total))
}

fn list(words: &[String]) -> String {
    let shown: Vec<&str> = words.iter().take(3).map(String::as_str).collect();
    let more = words.len().saturating_sub(shown.len());
    if more > 0 { format!("{} +{more}", shown.join(", ")) } else { shown.join(", ") }
}
