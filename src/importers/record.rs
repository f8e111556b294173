//! Run records: our own format (`domain::run_record`), with transcripts and analyses in files beside.
//!
//! Promises: memory is the header and one attempt; what does not fit the schema is refused with the place where it does not, since a slip of
//! the pen must not lose anything silently; only files that were found beside the record are opened.
//! Does not: believe what is worked out from the rest (counts, rates, verdicts).

mod attempt;
mod beside;
mod index;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::{attempt::Attempts, index::Index};
use super::{Input, Limits, Opened, Refused, beside::Beside, nan::strict, scan::Scanner};
use crate::{
    domain::{
        extras::Extras,
        grouping::{RECORD, record_log_id},
        log::{ArmInfo, EvaluationInfo, LogHeader},
        reference::is_latest,
        run_record::{Eval, RunRecord, SCHEMA_VERSION},
    },
    telemetry::redaction::Redactor,
};

/// A run's id that is longer is a mistake; ids stand in every answer.
const RUN_ID_BYTES_MAX: usize = 256;

/// Opens a run record.
pub(super) fn open<'a>(
    input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let mut scanner = Scanner::new(input);
    let index = Index::of(&mut scanner, limits).map_err(Refused::Broken)?;
    let record: RunRecord = read(index.header, redactor).map_err(|why| Refused::Broken(format!("the run record {why}")))?;
    fits(&record).map_err(Refused::Broken)?;
    let mut ready = VecDeque::new();
    let analyses = beside::analyses(beside, limits, redactor, record.created_at, &mut ready);
    let evaluations: Vec<String> = record.evals.iter().map(|eval| eval.id.clone()).collect();
    let header = header(&record);
    let attempts = Attempts { scanner, places: index.places.into_iter(), evaluations, beside, limits, redactor, ready };
    let extras = Extras { skill_files: record.skill_files, pairs: record.pairs, analyses, ancestors: record.ancestors };
    Ok(Opened { header, extras, items: Box::new(attempts) })
}

/// JSON of ours as its type; else what is wrong, and where.
fn read<T: serde::de::DeserializeOwned>(bytes: Vec<u8>, redactor: &Redactor) -> Result<T, String> {
    let text = String::from_utf8(strict(bytes)).map_err(|_| "is no UTF-8".to_owned())?;
    let text = redactor.redact_json(&text);
    let mut json = serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        // The position is one in the part that was read, which nobody can look up.
        let why = error.inner().to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        if path == "." { format!("does not fit its schema: {why}") } else { format!("does not fit its schema at {path}: {why}") }
    })
}

/// What the types cannot say.
fn fits(record: &RunRecord) -> Result<(), String> {
    let version = record.schema_version;
    if version == 0 || version > SCHEMA_VERSION {
        return Err(format!("the run record has schemaVersion {version}; this runlore reads up to {SCHEMA_VERSION}"));
    }
    let id = &record.run_id;
    if id.trim().is_empty() || id.len() > RUN_ID_BYTES_MAX || id.chars().any(char::is_control) {
        return Err(format!("the run record's runId must have 1 to {RUN_ID_BYTES_MAX} bytes and no control character"));
    }
    if is_latest(id) {
        return Err(format!("the run record's runId {} reads as a reference to the newest runs; give another", id.escape_debug()));
    }
    let mut seen = BTreeSet::new();
    if let Some((place, twice)) = record.arms.iter().enumerate().find(|(_, arm)| !seen.insert(arm.name.as_str())) {
        return Err(format!("the run record has the arm {} twice, at arms[{place}]", twice.name.escape_debug()));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = record.evals.iter().find(|eval| !seen.insert(eval.id.as_str())) {
        return Err(format!("the run record has the evaluation {} twice", twice.id.escape_debug()));
    }
    // The first pass leaves attempts out where it sees them: it knows names as they are, and not with escapes.
    if let Some(eval) = record.evals.iter().find(|eval| eval.attempts.as_ref().is_some_and(|attempts| !attempts.is_empty())) {
        let id = eval.id.escape_debug();
        return Err(format!("the run record spells evals or attempts of evaluation {id} with escapes; write the names as they are"));
    }
    let threshold = |eval: &&Eval| eval.threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold));
    if let Some(eval) = record.evals.iter().find(threshold) {
        return Err(format!("the threshold of evaluation {} is no rate: give one from 0 to 1", eval.id.escape_debug()));
    }
    Ok(())
}

/// The record as a log: the unit of import, which is a whole run here.
fn header(record: &RunRecord) -> LogHeader {
    let mut arms: BTreeMap<&str, ArmInfo> = BTreeMap::new();
    for arm in &record.arms {
        let info = ArmInfo { name: arm.name.clone(), role: arm.role.clone(), factors: arm.factors.clone() };
        arms.insert(&arm.name, info);
    }
    // What is planned for an arm names it too.
    for cell in record.evals.iter().flat_map(|eval| &eval.cells) {
        arms.entry(&cell.arm).or_insert_with(|| ArmInfo { name: cell.arm.clone(), ..ArmInfo::default() });
    }
    LogHeader {
        log_id: record_log_id(&record.run_id),
        format: RECORD.to_owned(),
        run_key: record.run_id.clone(),
        task_id: None,
        status: record.status,
        created_at: record.created_at,
        started_at: record.started_at,
        completed_at: record.completed_at,
        git: record.git.clone(),
        round: record.round.clone(),
        evaluations: record.evals.iter().map(evaluation).collect(),
        arms: arms.into_values().collect(),
        invalidated: record.invalidated,
        error: record.error.clone(),
        tags: record.tags.clone(),
        metadata: record.metadata.clone(),
        metrics: record.metrics.clone(),
        report_path: record.report_path.clone(),
    }
}

fn evaluation(eval: &Eval) -> EvaluationInfo {
    let dataset = eval.dataset.as_ref();
    EvaluationInfo {
        id: eval.id.clone(),
        version: eval.version.clone(),
        family: eval.family.clone(),
        source: eval.source.clone(),
        threshold: eval.threshold,
        dataset: dataset.and_then(|dataset| dataset.id.clone()),
        dataset_cases: dataset.and_then(|dataset| dataset.cases),
        dataset_digest: dataset.and_then(|dataset| dataset.digest.clone()),
        scorer_digest: eval.scorer_digest.clone(),
        settings: eval.settings.clone(),
        planned: None,
        planned_by_arm: eval.cells.iter().map(|cell| (cell.arm.clone(), cell.counts.total())).collect(),
    }
}
