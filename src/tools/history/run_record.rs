//! A stored run as its record: what `show` answers and `export` writes.
//!
//! Promises: the same fields for both; evaluations can be asked for one by one, so that memory is bounded by one of them.
//! Does not: hold transcripts or analyses.

use std::collections::{BTreeMap, HashSet};

use crate::{
    domain::{
        cell::{Cell, CellKey},
        outcome::Rate,
        run_record::{ArmCell, ArmRecord, AttemptRecord, Dataset, Eval, RunRecord, SCHEMA_VERSION, TranscriptFile},
    },
    store::{self, AttemptQuery, AttemptRow, CellQuery, Run, RunEvaluation, Store},
};

/// What of an evaluation is wanted besides its cells.
#[derive(Debug, Clone, Copy)]
pub struct Wants {
    /// Its attempts.
    pub attempts: bool,
    /// Their long texts too, and which of them have a transcript (whoever writes the file names it).
    pub texts: bool,
}

/// The record of `run` without its evaluations.
///
/// # Errors
/// As the store.
pub fn head(store: &dyn Store, run: &Run) -> store::Result<RunRecord> {
    let arms = store.arms(std::slice::from_ref(&run.run_id))?.remove(&run.run_id).unwrap_or_default();
    let extras = store.extras(&run.run_id)?.unwrap_or_default();
    let arm = |arm: store::RunArm| ArmRecord { name: arm.info.name, role: arm.info.role, factors: arm.info.factors };
    Ok(RunRecord {
        schema_version: SCHEMA_VERSION,
        run_id: run.run_id.clone(),
        kind: Some(run.kind),
        status: run.status,
        created_at: run.created_at,
        started_at: run.started_at,
        completed_at: run.completed_at,
        git: run.git.clone(),
        round: run.round.clone(),
        counts: Some(run.counts),
        invalidated: extras.invalidated,
        error: extras.error,
        report_path: extras.report_path,
        tags: extras.tags,
        metadata: extras.metadata,
        ancestors: Vec::new(),
        arms: arms.into_iter().map(arm).collect(),
        metrics: extras.metrics,
        skill_files: extras.skill_files,
        pairs: extras.pairs,
        evals: Vec::new(),
    })
}

/// The evaluations of `run` that `infos` are, in their order.
///
/// # Errors
/// As the store.
pub fn evals(store: &dyn Store, run: &Run, infos: Vec<RunEvaluation>, wants: Wants) -> store::Result<Vec<Eval>> {
    // One evaluation is asked for by its id, so that asking for each in turn reads none twice.
    let only = if let [one] = infos.as_slice() { Some(one.info.id.clone()) } else { None };
    let cells = store.cells(&CellQuery { runs: vec![run.run_id.clone()], evaluation: only, ..CellQuery::default() })?;
    let ids: HashSet<&str> = infos.iter().map(|evaluation| evaluation.info.id.as_str()).collect();
    let keys: Vec<CellKey> = cells.iter().filter(|cell| ids.contains(cell.key.evaluation.as_str())).map(|cell| cell.key.clone()).collect();
    let mut attempts = BTreeMap::<String, Vec<AttemptRecord>>::new();
    if wants.attempts {
        let query = AttemptQuery { keys: Some(&keys), checks: true, rest: true, ..AttemptQuery::default() };
        for row in store.attempts(&run.run_id, &query)? {
            attempts.entry(row.evaluation.clone()).or_default().push(attempt(row, wants.texts));
        }
    }
    let mut by_id = BTreeMap::<String, Vec<ArmCell>>::new();
    for cell in cells {
        by_id.entry(cell.key.evaluation.clone()).or_default().push(arm_cell(cell));
    }
    let eval = |evaluation: RunEvaluation| {
        let own = by_id.remove(&evaluation.info.id).unwrap_or_default();
        let attempts = wants.attempts.then(|| attempts.remove(&evaluation.info.id).unwrap_or_default());
        eval(evaluation, own, attempts)
    };
    Ok(infos.into_iter().map(eval).collect())
}

fn eval(evaluation: RunEvaluation, cells: Vec<ArmCell>, attempts: Option<Vec<AttemptRecord>>) -> Eval {
    let info = evaluation.info;
    let dataset = Dataset { id: info.dataset, digest: info.dataset_digest, cases: info.dataset_cases };
    Eval {
        id: info.id,
        number: Some(evaluation.number),
        version: info.version,
        family: info.family,
        source: info.source,
        threshold: info.threshold,
        dataset: (dataset.id.is_some() || dataset.digest.is_some() || dataset.cases.is_some()).then_some(dataset),
        scorer_digest: info.scorer_digest,
        settings: info.settings,
        cells,
        attempts,
    }
}

fn arm_cell(cell: Cell) -> ArmCell {
    ArmCell {
        arm: cell.key.arm,
        verdict: Some(cell.verdict),
        rate: cell.counts.rate().map(Rate::shown),
        counts: cell.counts,
        threshold: cell.threshold,
    }
}

fn attempt(row: AttemptRow, texts: bool) -> AttemptRecord {
    let messages = |lines, messages| (messages != lines).then_some(messages);
    let rest = row.rest.map(|rest| *rest).unwrap_or_default();
    let text = |text: Option<String>| text.filter(|_| texts);
    AttemptRecord {
        attempt: row.key,
        case: row.case,
        group: rest.group,
        arm: row.arm,
        n: row.n,
        outcome: row.outcome,
        score: row.score,
        checks: row.checks,
        usage: row.usage,
        duration_ms: row.duration_ms,
        cost_usd: row.cost_usd,
        working_ms: rest.working_ms,
        started_at: row.started_at,
        uuid: rest.uuid,
        error: row.error,
        limit: row.limit,
        retries: row.retries,
        input: text(rest.input),
        target: text(rest.target),
        output: text(rest.output),
        answers: rest.answers,
        skill_reads: rest.skill_reads,
        context: rest.context,
        transcript: (texts && row.lines > 0).then(|| TranscriptFile { file: String::new(), messages: messages(row.lines, row.messages) }),
    }
}
