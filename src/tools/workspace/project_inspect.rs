//! `project_inspect`: the project at a glance.
//!
//! Promises: counts and words from the state as it is; what a caller may not see is absent, and what is a list says how long it is.
//! Does not: list everything: each part names the tool that does.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    baseline_lineage::Baseline,
    project_plan::{self, results},
    sources::Standing,
};
use crate::{
    domain::{
        decision::EvidenceSummary,
        log::{Git, RunStatus},
        outcome::{Counts, Rate},
        time::Timestamp,
    },
    store::{
        Kind, Run, RunQuery,
        workspace::{AuthoredQuery, EvaluationStatus, Queued},
    },
    tools::{
        Ctx, Tool, ToolError, Toolset, Weight,
        history::{compare, record::RunMark},
        render::{self, Style},
    },
};

/// Rows of each list.
const LISTED: usize = 20;
/// Evaluations that are counted one by one.
const EVALUATIONS: usize = 2000;

/// The tool.
pub enum ProjectInspect {}

/// It has no arguments.
#[derive(Debug, Clone, Default, Args, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {}

/// The result of `project_inspect`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// How many evaluations stand how.
    pub evaluations: Evaluations,
    /// How many runs stand how.
    pub runs: Runs,
    /// The newest run; null where there is none.
    pub newest: Option<Newest>,
    /// Runs of the queue that have not ended.
    pub queue: Queue,
    /// The sources that runs are synced from; absent without the scope for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Vec<Source>>,
    /// The baselines that hold, at most twenty.
    pub baselines: Vec<Baseline>,
    /// How many there are.
    pub baselines_total: usize,
    /// What is out of date, at most twenty; `project_plan` has the evidence.
    pub stale: Vec<Stale>,
    /// How many there are.
    pub stale_total: usize,
    /// The run that the evidence is of, and what it was held against.
    pub evidence_of: Option<Sides>,
    /// The evidence of the newest recorded completed run, in the decision contract's form.
    pub evidence_summary: EvidenceSummary,
    /// What else should be known.
    pub note: Option<String>,
}

/// How many evaluations stand how.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluations {
    /// All of them.
    pub total: u64,
    /// Being written.
    pub draft: u64,
    /// Can be started, or came with logs.
    pub active: u64,
    /// Kept for their history.
    pub archived: u64,
    /// Made here.
    pub authored: u64,
    /// Seen in a run.
    pub seen: u64,
    /// Locked.
    pub locked: u64,
    /// Made here and without a case.
    pub without_cases: u64,
}

/// How many runs stand how.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Runs {
    /// All of them.
    pub total: u64,
    /// Imported or kept.
    pub recorded: u64,
    /// Not yet kept.
    pub scratch: u64,
    /// By status; one that no run has is absent.
    pub by_status: BTreeMap<&'static str, u64>,
}

/// A run in short.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Newest {
    /// Its id.
    pub run_id: String,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its code.
    pub git: Option<Git>,
    /// The five counts.
    pub counts: Counts,
    /// Passed over counted; null before it has ended.
    pub rate: Option<f64>,
}

/// The queue.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Runs that wait.
    pub pending: usize,
    /// Runs that a worker has.
    pub running: usize,
    /// Both, by id, at most twenty.
    pub runs: Vec<Waiting>,
}

/// A run of the queue.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Its id.
    pub run_id: String,
    /// Its evaluation.
    pub evaluation: String,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was queued.
    pub created_at: Timestamp,
    /// Who queued it.
    pub created_by: String,
    /// Cases that have a result.
    pub done: u64,
    /// Cases in all.
    pub total: u64,
}

/// A source in short.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its id.
    pub connection: String,
    /// What people call it.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How it stands.
    pub standing: Standing,
    /// When a look last ended without an error of the whole.
    pub last_sync_at: Option<Timestamp>,
}

/// What is out of date.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stale {
    /// What it is.
    pub kind: project_plan::Kind,
    /// The evaluation; null for the whole project.
    pub evaluation: Option<String>,
    /// In a sentence.
    pub why: String,
}

/// The runs that evidence is of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sides {
    /// The newer.
    pub head: RunMark,
    /// What it was held against; null where there is nothing.
    pub base: Option<RunMark>,
    /// Whether that is the accepted baseline.
    pub accepted: bool,
}

impl Tool for ProjectInspect {
    const NAME: &'static str = "project_inspect";
    const VERB: &'static str = "project-inspect";
    const TITLE: &'static str = "The project at a glance";
    const ABOUT: &'static str = "The project at a glance: evaluations, runs, queue, baselines, sources";
    const DOC: &'static str = "Shows the project at a glance: evaluations and runs by status, the newest run, the queue, sources and baselines, what is stale, and the newest completed run's evidence in the decision contract's form. Start here.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const RELEASED: bool = true;
    const WEIGHT: Weight = Weight::Heavy;
    const NARROWS: &'static str = "nothing: its lists are short";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, _: Input) -> Result<Output, ToolError> {
        let waiting = ctx.store.queued(&[])?;
        let mut baselines = ctx.store.baselines(None)?;
        baselines.retain(|row| row.superseded_at.is_none());
        let stale = project_plan::stale(ctx)?;
        let (evidence_of, evidence_summary) = evidence(ctx)?;
        let evaluations = evaluations(ctx)?;
        let newest = ctx.store.runs(&RunQuery { limit: 1, ..RunQuery::default() })?.0.into_iter().next();
        let note = (newest.is_none() && evaluations.total == 0).then(|| "The project holds no evaluation and no run yet.".to_owned());
        Ok(Output {
            evaluations,
            runs: runs(ctx)?,
            newest: newest.map(Into::into),
            queue: queue(waiting),
            connections: sources(ctx)?,
            baselines_total: baselines.len(),
            baselines: baselines.into_iter().take(LISTED).map(Into::into).collect(),
            stale_total: stale.len(),
            stale: stale
                .into_iter()
                .take(LISTED)
                .map(|item| Stale { kind: item.kind, evaluation: item.evaluation, why: item.why })
                .collect(),
            evidence_of,
            evidence_summary,
            note,
        })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    /// Runs that are under way change without a write of ours.
    fn lasting(output: &Output) -> bool {
        output.queue.runs.is_empty() && output.newest.as_ref().is_none_or(|run| run.status.ended())
    }

    fn text(output: &Output, _: &Style) -> String {
        text(output)
    }
}

impl From<Run> for Newest {
    fn from(run: Run) -> Self {
        Self {
            rate: run.counts.rate().filter(|_| run.status.ended()).map(Rate::shown),
            run_id: run.run_id,
            kind: run.kind,
            status: run.status,
            created_at: run.created_at,
            git: run.git,
            counts: run.counts,
        }
    }
}

fn evaluations(ctx: &Ctx) -> Result<Evaluations, ToolError> {
    let (all, total) = ctx.store.authored(&AuthoredQuery { limit: EVALUATIONS, ..AuthoredQuery::default() })?;
    let of = |status| {
        let query = AuthoredQuery { status: Some(status), limit: 1, ..AuthoredQuery::default() };
        ctx.store.authored(&query).map(|(_, count)| count)
    };
    let count = |is: &dyn Fn(&crate::store::workspace::Authored) -> bool| all.iter().filter(|one| is(one)).count() as u64;
    Ok(Evaluations {
        total,
        draft: of(EvaluationStatus::Draft)?,
        active: of(EvaluationStatus::Active)?,
        archived: of(EvaluationStatus::Archived)?,
        authored: count(&|one| one.authored),
        seen: count(&|one| one.runs > 0),
        locked: count(&|one| one.lock.is_some()),
        without_cases: count(&|one| one.authored && one.cases == 0),
    })
}

fn runs(ctx: &Ctx) -> Result<Runs, ToolError> {
    let count = |query: RunQuery| ctx.store.runs(&RunQuery { limit: 1, ..query }).map(|(_, total)| total);
    let mut by_status = BTreeMap::new();
    for status in RunStatus::ALL {
        let total = count(RunQuery { status: Some(status), ..RunQuery::default() })?;
        if total > 0 {
            by_status.insert(status.word(), total);
        }
    }
    let recorded = count(RunQuery { kind: Some(Kind::Recorded), ..RunQuery::default() })?;
    let total = count(RunQuery::default())?;
    Ok(Runs { total, recorded, scratch: total.saturating_sub(recorded), by_status })
}

fn queue(waiting: BTreeMap<String, Queued>) -> Queue {
    let pending = waiting.values().filter(|run| run.status == RunStatus::Pending).count();
    let running = waiting.len().saturating_sub(pending);
    let one = |run: Queued| Waiting {
        run_id: run.run_id,
        evaluation: run.evaluation,
        status: run.status,
        created_at: run.created_at,
        created_by: run.created_by,
        done: run.done,
        total: run.total,
    };
    Queue { pending, running, runs: waiting.into_values().take(LISTED).map(one).collect() }
}

/// The sources, for whom `connections_list` would show them.
fn sources(ctx: &Ctx) -> Result<Option<Vec<Source>>, ToolError> {
    if !ctx.caller.holds("resources:read") {
        return Ok(None);
    }
    let all = ctx.store.connections()?.into_iter().take(LISTED);
    let all = all.map(|one| Source {
        standing: Standing::of(&one),
        last_sync_at: one.health.and_then(|health| health.good_at),
        connection: one.id,
        name: one.name,
        kind: one.kind,
    });
    Ok(Some(all.collect()))
}

/// The evidence of the newest recorded completed run, against its accepted baseline, else against what `compare` would choose.
fn evidence(ctx: &Ctx) -> Result<(Option<Sides>, EvidenceSummary), ToolError> {
    let query = RunQuery { kind: Some(Kind::Recorded), status: Some(RunStatus::Completed), limit: 1, ..RunQuery::default() };
    let Some(head) = ctx.store.runs(&query)?.0.into_iter().next() else {
        return Ok((None, crate::domain::evidence_summary::summary(&Default::default())));
    };
    let base = results::baseline(ctx, &head)?.map(|run| run.run_id);
    let accepted = base.is_some();
    let asked = compare::Input { head: Some(head.run_id.clone()), base, ..compare::Input::default() };
    let answer = compare::answer(ctx, &asked, None)?;
    let base = answer.base.and_then(|side| Some(RunMark { run_id: side.run_id, created_at: side.created_at? }));
    let head = RunMark { run_id: head.run_id, created_at: head.created_at };
    Ok((Some(Sides { head, base, accepted }), answer.evidence_summary))
}

fn text(output: &Output) -> String {
    let Evaluations { total, draft, active, archived, authored, locked, without_cases, .. } = output.evaluations;
    let mut lines = vec![format!(
        "{total} evaluations: {active} active, {draft} draft, {archived} archived; {authored} made here, {locked} locked, {without_cases} without cases"
    )];
    let by_status: Vec<String> = output.runs.by_status.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let colon = if by_status.is_empty() { "" } else { ": " };
    lines.push(format!("{} runs ({} recorded){colon}{}", output.runs.total, output.runs.recorded, by_status.join(", ")));
    lines.extend(output.newest.as_ref().map(|run| {
        let counts = if run.rate.is_some() { format!(", {}", render::counts(run.counts)) } else { String::new() };
        format!("newest: {} ({} UTC), {}{counts}", render::clean(&run.run_id), render::short_time(run.created_at), run.status.word())
    }));
    lines.push(format!("queue: {} waiting, {} running", output.queue.pending, output.queue.running));
    for source in output.connections.iter().flatten() {
        lines.push(format!("source {} ({}): {}", render::clean(&source.name), render::clean(&source.kind), source.standing.word()));
    }
    for one in &output.baselines {
        let of = one.evaluation.as_deref().unwrap_or("the project");
        lines.push(format!(
            "baseline of {}: {}, accepted {}",
            render::clean(of),
            render::clean(&one.run_id),
            render::short_time(one.accepted_at)
        ));
    }
    for one in &output.stale {
        lines.push(format!("{} {}: {}", one.kind.word(), render::clean(one.evaluation.as_deref().unwrap_or("(project)")), one.why));
    }
    if let Some(sides) = &output.evidence_of {
        let base = sides.base.as_ref().map(|base| format!(" against {}", render::clean(&base.run_id))).unwrap_or_default();
        lines.push(format!("evidence of {}{base}:", render::clean(&sides.head.run_id)));
    }
    lines.push(super::run_explain::evidence(&output.evidence_summary));
    lines.extend(output.note.clone());
    lines.join("\n")
}
