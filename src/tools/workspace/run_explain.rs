//! `run_explain`: one run in one answer: how it stands, why attempts failed, what they took, and what changed against its base.
//!
//! Promises: a run that has not ended is never called passing: it has no rate, no comparison and no quality; what was not recorded is null, and
//! never 0; the base is chosen as `compare` chooses it.
//! Does not: take a decision: it gives evidence.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        attempt::shorten,
        cell::{Cell, Verdict},
        compare::Status,
        decision::EvidenceSummary,
        figures::Figures,
        log::{Git, RunStatus},
        outcome::{Counts, Rate},
        text::clean,
        time::Timestamp,
    },
    store::{CellQuery, Kind, Run, workspace::Queued},
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        arguments::{self, Bounded},
        history::{
            base,
            compare::{self, Row, Statuses, changes::Change, sides},
            failures::Cause,
            record::RunSide,
        },
        render::Style,
        resolve,
    },
};

mod text;
pub use text::evidence;

/// Rows that changed, listed at most.
const CHANGED: usize = 20;

/// The tool.
pub enum RunExplain {}

/// The arguments of `run_explain`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    #[serde(default = "arguments::latest")]
    pub run: String,
    /// What it is held against: a run, or baseline for the accepted one. Without it: the nearest earlier recorded completed run that shares evaluations.
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub base: Option<String>,
    /// How many causes of failure.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub causes: Bounded<0, 100, 10>,
}

/// The result of `run_explain`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The run's id.
    pub run_id: String,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Where it stands.
    pub status: RunStatus,
    /// Whether nothing more will come of it.
    pub ended: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When work began.
    pub started_at: Option<Timestamp>,
    /// When work ended.
    pub completed_at: Option<Timestamp>,
    /// Its code.
    pub git: Option<Git>,
    /// Why it failed as a whole, where it did.
    pub error: Option<String>,
    /// How it came by the queue; null where it did not.
    pub queue: Option<Queue>,
    /// The five counts over all attempts.
    pub counts: Counts,
    /// Passed over counted; null where nothing was counted, and before the run has ended.
    pub rate: Option<f64>,
    /// How many evaluations (by arm) have each verdict; null before the run has ended.
    pub verdicts: Option<Verdicts>,
    /// What its attempts took.
    pub figures: Figures,
    /// Why attempts failed or errored, the commonest first.
    pub causes: Vec<Cause>,
    /// How many causes there are.
    pub causes_total: usize,
    /// What it was held against; null where there is nothing.
    pub base: Option<RunSide>,
    /// How many rows stand how against the base.
    pub statuses: Option<Statuses>,
    /// What changed against the base, worst first, at most twenty; `compare` has all.
    pub changed: Vec<Row>,
    /// Stack fields that differ from the base.
    pub changes: Vec<Change>,
    /// The evidence, in the decision contract's form.
    pub evidence_summary: EvidenceSummary,
    /// What else should be known.
    pub note: Option<String>,
}

/// How many cells have each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdicts {
    /// Reached its threshold, or passed throughout.
    pub pass: usize,
    /// Missed it, or failed throughout.
    pub fail: usize,
    /// Neither, without a threshold.
    pub mixed: usize,
    /// Nothing was counted, and something errored.
    pub infra_error: usize,
    /// Nothing was counted.
    pub unscored: usize,
}

impl Verdicts {
    fn of(cells: &[Cell]) -> Self {
        let count = |verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
        Self {
            pass: count(Verdict::Pass),
            fail: count(Verdict::Fail),
            mixed: count(Verdict::Mixed),
            infra_error: count(Verdict::InfraError),
            unscored: count(Verdict::Unscored),
        }
    }
}

/// How a run came by the queue.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Who started it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// `dev`, `staging` or `prod`.
    pub environment: String,
    /// How often a worker took it.
    pub tries: u32,
    /// Who works, or worked, at it.
    pub worker: Option<String>,
    /// Whether it was told to end.
    pub cancelling: bool,
    /// Cases that have a result.
    pub done: u64,
    /// Cases in all.
    pub total: u64,
    /// What it may cost.
    pub max_cost_usd: Option<f64>,
    /// What its executor says that it has cost.
    pub cost_usd: Option<f64>,
    /// What the executor, or the worker, said of its failure.
    pub error: Option<String>,
}

impl From<&Queued> for Queue {
    fn from(queued: &Queued) -> Self {
        Self {
            created_by: queued.created_by.clone(),
            created_at: queued.created_at,
            environment: queued.environment.clone(),
            tries: queued.tries,
            worker: queued.worker.clone(),
            cancelling: queued.cancelling,
            done: queued.done,
            total: queued.total,
            max_cost_usd: queued.max_cost_usd,
            cost_usd: queued.cost_usd,
            error: queued.error.clone(),
        }
    }
}

impl Tool for RunExplain {
    const NAME: &'static str = "run_explain";
    const VERB: &'static str = "run-explain";
    const TITLE: &'static str = "Explain a run";
    const ABOUT: &'static str = "One run: how it stands, why it failed, what it took, what changed";
    const DOC: &'static str = "Explains one run: its status, causes of failure, cost and tokens, what changed against its base (base: baseline for the accepted one), who queued it, and the evidence in the decision contract's form. A run that has not ended is never a pass.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["eval:read", "runs:read"]];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "causes";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let mut run = resolve::run(ctx, &input.run)?;
        let queued = ctx.store.queued(std::slice::from_ref(&run.run_id))?.remove(&run.run_id);
        // The queue knows first.
        run.status = queued.as_ref().map_or(run.status, |queued| queued.status);
        let cells = ctx.store.cells(&CellQuery { runs: vec![run.run_id.clone()], ..CellQuery::default() })?;
        let against = Against::find(ctx, &run, &input)?;
        let causes = ctx.store.causes(&run.run_id, None)?;
        let figures = ctx.store.figures(&run.run_id)?.into_values().fold(Figures::default(), Figures::plus);
        let ended = run.status.ended();
        Ok(Output {
            error: error(ctx, &run, queued.as_ref())?,
            queue: queued.as_ref().map(Into::into),
            rate: run.counts.rate().filter(|_| ended).map(Rate::shown),
            verdicts: ended.then(|| Verdicts::of(&cells)),
            causes_total: causes.len(),
            causes: causes.into_iter().take(input.causes.count()).map(Into::into).collect(),
            base: against.base,
            statuses: against.statuses,
            changed: against.changed,
            changes: against.changes,
            evidence_summary: against.evidence,
            note: note(&run, against.note),
            kind: run.kind,
            status: run.status,
            created_at: run.created_at,
            started_at: run.started_at,
            completed_at: run.completed_at,
            git: run.git,
            counts: run.counts,
            run_id: run.run_id,
            figures,
            ended,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn lasting(output: &Output) -> bool {
        output.ended
    }

    fn text(output: &Output, style: &Style) -> String {
        text::text(output, style)
    }
}

/// What the run's logs, or the queue, say of its failure.
fn error(ctx: &Ctx, run: &Run, queued: Option<&Queued>) -> Result<Option<String>, ToolError> {
    let logged = ctx.store.extras(&run.run_id)?.and_then(|extras| extras.error);
    Ok(logged.or_else(|| queued.and_then(|queued| queued.error.clone())))
}

fn note(run: &Run, against: Option<String>) -> Option<String> {
    let standing = match run.status {
        RunStatus::Completed => None,
        RunStatus::Failed => Some("The run failed: what it counted is not all of it, and no part of it is a pass of the run.".to_owned()),
        RunStatus::Cancelled => {
            Some("The run was cancelled: what it counted is not all of it, and no part of it is a pass of the run.".to_owned())
        }
        other => Some(format!("The run is {}: nothing is said of its result before it has ended.", other.word())),
    };
    let parts: Vec<String> = standing.into_iter().chain(against).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What a run is held against, and what that shows.
#[derive(Default)]
struct Against {
    base: Option<RunSide>,
    statuses: Option<Statuses>,
    changed: Vec<Row>,
    changes: Vec<Change>,
    evidence: EvidenceSummary,
    note: Option<String>,
}

impl Against {
    fn find(ctx: &Ctx, run: &Run, input: &Input) -> Result<Self, ToolError> {
        if !run.status.ended() {
            // A base that is wrong is said now as well as later.
            if let Some(text) = input.base.as_deref().filter(|text| text.trim() != base::BASELINE) {
                resolve::run(ctx, text)?;
            }
            return Ok(Self { evidence: sides::alone(ctx, run)?, ..Self::default() });
        }
        let asked = compare::Input { head: Some(run.run_id.clone()), base: input.base.clone(), ..compare::Input::default() };
        let answer = compare::answer(ctx, &asked, None)?;
        let note = match (&answer.base, &answer.suite, &answer.suite_reason) {
            (None, ..) => answer.note,
            (Some(base), None, Some(why)) => {
                Some(format!("Against {} there is no result over all cases: {why}.", clean(&shorten(&base.run_id, 80))))
            }
            _ => None,
        };
        let held = answer.base.is_some();
        Ok(Self {
            base: answer.base,
            statuses: held.then_some(answer.statuses),
            changed: answer.rows.into_iter().filter(|row| row.status != Status::Same).take(CHANGED).collect(),
            changes: answer.changes,
            evidence: answer.evidence_summary,
            note,
        })
    }
}
