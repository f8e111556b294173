//! `show`: one run's record, as JSON or as Markdown for people (decision 9 and the minimal run record).
//!
//! Promises: the record that issue "records" only adds fields to; filters for runs that are too large to send.
//! Does not: show transcripts.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    kept,
    record::{ArmRecord, CellSide, RunHead, SCHEMA_VERSION},
};
use crate::{
    domain::{
        attempt::{Check, Usage},
        cell::{CellKey, Verdict},
        log::{Git, RunStatus},
        outcome::{Counts, Outcome, Rate},
        time::Timestamp,
    },
    store::{AttemptQuery, AttemptRow, CellQuery, Kind, Run, RunEvaluation},
    tools::{
        Ctx, Tool, ToolError,
        arguments::{self, Bounded},
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
}

const fn yes() -> bool {
    true
}

/// The result of `show`: the record, or its Markdown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The run's id.
    pub run_id: String,
    /// With `format: md`: the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// With `format: json`: the record.
    #[serde(flatten)]
    pub record: Option<Record>,
}

/// A run's record, but for its id.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of this form.
    pub schema_version: u32,
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
    /// Its code.
    pub git: Option<Git>,
    /// The group of runs.
    pub round: Option<String>,
    /// The five counts over all its attempts, whatever the filter keeps.
    pub counts: Counts,
    /// Its arms.
    pub arms: Vec<ArmRecord>,
    /// Its evaluations, by id.
    pub evals: Vec<Eval>,
    /// How many evaluations are here.
    pub returned: usize,
    /// How many there are under the filter.
    pub total: usize,
    /// Whether all are here.
    pub complete: bool,
}

/// An evaluation of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Eval {
    /// Its id.
    pub id: String,
    /// Its number.
    pub number: i64,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// The declared threshold.
    pub threshold: Option<f64>,
    /// Its dataset.
    pub dataset: Option<Dataset>,
    /// One per arm.
    pub cells: Vec<ArmCell>,
    /// Its attempts, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptRecord>>,
}

/// An evaluation's dataset.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Dataset {
    /// Its name.
    pub id: Option<String>,
    /// What tells one state of it from another.
    pub digest: Option<String>,
    /// How many cases it has.
    pub cases: Option<u32>,
}

/// An arm's cell.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArmCell {
    /// The arm's name.
    pub arm: String,
    /// The word.
    pub verdict: Verdict,
    /// Passed over counted.
    pub rate: Option<f64>,
    /// The five counts.
    pub counts: Counts,
    /// The threshold that judged it.
    pub threshold: Option<f64>,
}

/// An attempt of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRecord {
    /// Its key, for `transcript`.
    pub attempt: String,
    /// The case's id; empty where the evaluation has no dataset.
    pub case: String,
    /// The arm's name.
    pub arm: String,
    /// From 1 in evaluation, case and arm.
    pub n: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The primary score.
    pub score: Option<f64>,
    /// Its checks.
    pub checks: Vec<Check>,
    /// What it consumed.
    pub usage: Usage,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// Why it broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The limit that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl Tool for Show {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "Run record";
    const ABOUT: &'static str = "One run's whole record";
    const DOC: &'static str = "Returns one run's record: its code, arms, evaluations, cells and attempts with their checks, tokens and cost. Use format md for a summary to read, attempts false for a short record.";
    const RELEASED: bool = true;
    const NARROWS: &'static str = "filter, limit, attempts: false and format: md";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let run = resolve::run(ctx, &input.run)?;
        let record = record(ctx, &input, &run)?;
        let note = if record.total == 0 { Some(kept::none_in(ctx, &run, input.filter.as_deref())?) } else { None };
        Ok(match input.format {
            Format::Json => Output { run_id: run.run_id, markdown: None, note, record: Some(record) },
            Format::Md => Output { markdown: Some(markdown::markdown(&run.run_id, &record)), run_id: run.run_id, note, record: None },
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, _: &Style) -> String {
        let text = match (&output.markdown, &output.record) {
            (Some(text), _) => text.clone(),
            (None, Some(record)) => markdown::markdown(&output.run_id, record),
            (None, None) => String::new(),
        };
        text + &output.note.as_ref().map(|note| format!("\n{note}\n")).unwrap_or_default()
    }
}

fn record(ctx: &Ctx, input: &Input, run: &Run) -> Result<Record, ToolError> {
    let arms = ctx.store.arms(std::slice::from_ref(&run.run_id))?.remove(&run.run_id).unwrap_or_default();
    let RunHead { kind, status, created_at, started_at, completed_at, git, round, .. } = RunHead::new(run, &arms);
    let mut infos = ctx.store.evaluations(&run.run_id)?;
    let wanted = input.filter.as_deref().map(str::to_lowercase);
    infos.retain(|evaluation| wanted.as_deref().is_none_or(|wanted| evaluation.info.id.to_lowercase().contains(wanted)));
    let total = infos.len();
    infos.truncate(input.limit.count());
    let evals = evals(ctx, input, run, infos)?;
    let arms = arms.into_iter().map(Into::into).collect();
    Ok(Record {
        schema_version: SCHEMA_VERSION,
        kind,
        status,
        created_at,
        started_at,
        completed_at,
        git,
        round,
        counts: run.counts,
        arms,
        returned: evals.len(),
        complete: evals.len() == total,
        total,
        evals,
    })
}

fn evals(ctx: &Ctx, input: &Input, run: &Run, infos: Vec<RunEvaluation>) -> Result<Vec<Eval>, ToolError> {
    let query = CellQuery { runs: vec![run.run_id.clone()], evaluation_contains: input.filter.clone(), ..CellQuery::default() };
    let cells = ctx.store.cells(&query)?;
    let keys: Vec<CellKey> = cells
        .iter()
        .filter(|cell| infos.iter().any(|evaluation| evaluation.info.id == cell.key.evaluation))
        .map(|cell| cell.key.clone())
        .collect();
    let attempts = input
        .attempts
        .then(|| ctx.store.attempts(&run.run_id, &AttemptQuery { keys: Some(&keys), checks: true, ..AttemptQuery::default() }))
        .transpose()?;
    let mut by_evaluation = std::collections::BTreeMap::<String, Vec<AttemptRecord>>::new();
    for attempt in attempts.into_iter().flatten() {
        by_evaluation.entry(attempt.evaluation.clone()).or_default().push(attempt.into());
    }
    let eval = |evaluation: RunEvaluation| {
        let own = cells.iter().filter(|cell| cell.key.evaluation == evaluation.info.id);
        let attempts = input.attempts.then(|| by_evaluation.remove(&evaluation.info.id).unwrap_or_default());
        Eval {
            cells: own.map(|cell| arm_cell(cell.key.arm.clone(), cell.into())).collect(),
            attempts,
            number: evaluation.number,
            family: evaluation.info.family,
            threshold: evaluation.info.threshold,
            dataset: dataset(evaluation.info.dataset, evaluation.info.dataset_digest, evaluation.info.dataset_cases),
            id: evaluation.info.id,
        }
    };
    Ok(infos.into_iter().map(eval).collect())
}

fn arm_cell(arm: String, side: CellSide) -> ArmCell {
    ArmCell { arm, verdict: side.verdict, rate: side.rate, counts: side.counts, threshold: side.threshold }
}

fn dataset(id: Option<String>, digest: Option<String>, cases: Option<u32>) -> Option<Dataset> {
    (id.is_some() || digest.is_some() || cases.is_some()).then_some(Dataset { id, digest, cases })
}

impl From<AttemptRow> for AttemptRecord {
    fn from(row: AttemptRow) -> Self {
        Self {
            attempt: row.key,
            case: row.case,
            arm: row.arm,
            n: row.n,
            outcome: row.outcome,
            score: row.score,
            checks: row.checks,
            usage: row.usage,
            duration_ms: row.duration_ms,
            cost_usd: row.cost_usd,
            error: row.error,
            limit: row.limit,
        }
    }
}

/// The rate as text beside its counts.
fn rate(counts: Counts) -> String {
    counts.rate().map_or_else(|| "-".to_owned(), |rate: Rate| rate.shown().to_string())
}
