//! A log's header (`header.json`, the journal's start, or the same fields of a JSON log) as a `LogHeader`.
//!
//! Promises: every version up to [`VERSION_MAX`] is read, older spellings included; what a log does not say is none; text that a person or
//! a script wrote (arguments, metadata, errors) is redacted.
//! Does not: read samples.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::{
    arm::{arm, settings},
    cluster::cluster,
    lines::compact,
    score::Ranking,
    stable_id::stable_id,
};
use crate::{
    domain::{
        attempt::shorten,
        hex::hex_of_first,
        key::case_id,
        log::{EvaluationInfo, Git, LogHeader, ReportedMetric, RunStatus, Source},
        time::Timestamp,
    },
    importers::{
        Limits, Refused,
        raw::{Fields, count, fields, json, list, number, read, text},
    },
    telemetry::redaction::Redactor,
};

/// Inspect 0.3.285 writes 2; files of a development version with 3 are about and read the same.
const VERSION_MAX: u64 = 3;
/// A value of the free metadata is kept whole up to here, as shortened text above.
const METADATA_BYTES_MAX: usize = 16 * 1024;

/// A header, and what the samples need of it.
pub(super) struct Head {
    pub(super) header: LogHeader,
    pub(super) ranking: Ranking,
    /// Who gave the lone `score` of the samples of an old log.
    pub(super) old_scorer: Option<String>,
    /// The key of the samples' metadata that names the group of a case.
    pub(super) cluster: Option<String>,
}

/// How text of a header is kept.
pub(in crate::importers) struct Shown<'a> {
    pub(in crate::importers) redactor: &'a Redactor,
    pub(in crate::importers) bytes_max: usize,
}

impl Shown<'_> {
    pub(in crate::importers) fn text(&self, text: &str) -> String {
        shorten(&self.redactor.redact(text), self.bytes_max)
    }

    /// An id as it is kept: whole, but for secrets. It is the same wherever it stands, so ids still lead to what they name. Two ids that
    /// differ in a secret alone become one: two runs of such ids are one run, two cases are tries of one case. Telling them apart would take
    /// a mark made of the secret, which could be guessed from it.
    pub(in crate::importers) fn id(&self, id: &str) -> String {
        self.redactor.redact(id).into_owned()
    }

    /// A value of the free metadata. A field's name says what it is, so the two are looked at together.
    pub(in crate::importers) fn value(&self, key: &str, raw: &RawValue) -> Value {
        if let Some(text) = text(Some(raw)) {
            let safe = self.redactor.redact_value(key, &text);
            let max = if safe.len() <= METADATA_BYTES_MAX { METADATA_BYTES_MAX } else { self.bytes_max };
            return Value::String(shorten(&safe, max));
        }
        self.json(raw)
    }

    /// A value that has no name of its own, or is no text.
    pub(in crate::importers) fn json(&self, raw: &RawValue) -> Value {
        let safe = self.redactor.redact_json(raw.get());
        let whole = (safe.len() <= METADATA_BYTES_MAX).then(|| serde_json::from_str(&safe).ok()).flatten();
        whole.unwrap_or_else(|| Value::String(shorten(&safe, self.bytes_max)))
    }
}

/// Reads a header.
pub(super) fn read_header(json: &[u8], limits: &Limits, redactor: &Redactor) -> Result<Head, Refused> {
    let broken = |why: String| Refused::Broken(format!("the header of the log {why}"));
    let json = std::str::from_utf8(json).map_err(|error| broken(format!("is not UTF-8 at byte {}", error.valid_up_to())))?;
    let top: Fields<'_> = serde_json::from_str(json).map_err(|error| broken(format!("is no JSON: {error}")))?;
    if let Some(version) = number(top.get("version")).filter(|version| *version > VERSION_MAX as f64) {
        return Err(broken(format!("has version {version} of Inspect's format; versions up to {VERSION_MAX} can be read: update runlore")));
    }
    let eval = fields(top.get("eval"));
    let shown = Shown { redactor, bytes_max: limits.text_bytes_max };
    let parts = Parts { results: fields(top.get("results")), stats: fields(top.get("stats")), top, eval };
    parts.head(&shown).map_err(broken)
}

struct Parts<'a> {
    top: Fields<'a>,
    eval: Fields<'a>,
    results: Fields<'a>,
    stats: Fields<'a>,
}

impl Parts<'_> {
    fn head(&self, shown: &Shown<'_>) -> Result<Head, String> {
        let started_at = text(self.stats.get("started_at")).and_then(|time| Timestamp::parse(&time));
        let created = text(self.eval.get("created")).unwrap_or_default();
        let created_at = Timestamp::parse(&created)
            .or(started_at)
            .ok_or_else(|| format!("says no time: \"eval.created\" is \"{created}\", and should be like 2026-11-30T12:00:00+00:00"))?;
        let task = text(self.eval.get("task")).ok_or("names no task: \"eval.task\" is missing")?;
        let id = |key| self.word(key).map(|id| shown.id(&id));
        let log_id = self.log_id(&created, shown);
        let metrics = self.metrics();
        let header = LogHeader {
            report_path: None,
            run_key: id("run_id").unwrap_or_else(|| log_id.clone()),
            log_id,
            format: "inspect".to_owned(),
            task_id: id("task_id"),
            status: self.status(),
            created_at,
            started_at,
            completed_at: text(self.stats.get("completed_at")).and_then(|time| Timestamp::parse(&time)),
            git: self.git(shown),
            round: id("eval_set_id"),
            evaluations: vec![self.evaluation(shown.id(&task), shown)],
            arms: vec![arm(&self.eval, &fields(self.top.get("plan")), shown)],
            invalidated: read::<bool>(self.top.get("invalidated")).unwrap_or(false),
            error: self.error().map(|message| shown.text(&message)),
            tags: self.tags(shown),
            metadata: self.metadata(shown),
            metrics,
        };
        let cluster = cluster(&self.eval);
        Ok(Head { ranking: self.ranking(), old_scorer: self.old_scorer(), cluster, header })
    }

    fn word(&self, key: &str) -> Option<String> {
        text(self.eval.get(key)).map(std::borrow::Cow::into_owned)
    }

    /// The log's own id; where it has none, or one with a secret in it, one made of what else tells it apart. Two logs of one id would be taken
    /// for copies, so it must not be cut.
    fn log_id(&self, created: &str, shown: &Shown<'_>) -> String {
        let word = |key| shown.id(&self.word(key).unwrap_or_default());
        let own = self.word("eval_id").filter(|id| shown.id(id) == *id);
        own.unwrap_or_else(|| stable_id(&word("run_id"), &word("task_id"), created))
    }

    fn status(&self) -> RunStatus {
        match text(self.top.get("status")).as_deref() {
            Some("success") => RunStatus::Completed,
            Some("error") => RunStatus::Failed,
            Some("cancelled") => RunStatus::Cancelled,
            _ => RunStatus::Running,
        }
    }

    fn error(&self) -> Option<String> {
        let raw = self.top.get("error");
        text(raw).or_else(|| text(fields(raw).get("message"))).map(std::borrow::Cow::into_owned)
    }

    fn git(&self, shown: &Shown<'_>) -> Option<Git> {
        let revision = fields(self.eval.get("revision"));
        let sha = text(revision.get("commit")).map(std::borrow::Cow::into_owned);
        let branch = self.labels().find_map(|raw| text(fields(raw).get("branch"))).map(|branch| shown.id(&branch));
        let git = Git { sha, branch, dirty: read(revision.get("dirty")) };
        (git.sha.is_some() || git.branch.is_some()).then_some(git)
    }

    /// The metadata: what it became by later edits, then what it was.
    fn labels(&self) -> impl Iterator<Item = Option<&RawValue>> {
        [self.top.get("metadata"), self.eval.get("metadata")].into_iter()
    }

    fn tags(&self, shown: &Shown<'_>) -> Vec<String> {
        let edited = list(self.top.get("tags")).0;
        let tags = if edited.is_empty() { list(self.eval.get("tags")).0 } else { edited };
        tags.into_iter().filter_map(|tag| text(Some(tag))).map(|tag| shown.text(&tag)).collect()
    }

    fn metadata(&self, shown: &Shown<'_>) -> BTreeMap<String, Value> {
        let written = self.labels().map(fields).find(|fields| !fields.0.is_empty()).unwrap_or_default();
        written.0.iter().map(|(key, raw)| (shown.text(key), shown.value(key, raw))).collect()
    }

    fn evaluation(&self, id: String, shown: &Shown<'_>) -> EvaluationInfo {
        let dataset = fields(self.eval.get("dataset"));
        let small = |raw| count(raw).and_then(|count| u32::try_from(count).ok());
        let ids = dataset.get("sample_ids").map(|raw| list(Some(raw)).0);
        let epochs = count(fields(self.eval.get("config")).get("epochs")).unwrap_or(1).max(1);
        let planned_ids = ids.as_ref().and_then(|ids| u32::try_from((ids.len() as u64).saturating_mul(epochs)).ok());
        let name = text(dataset.get("name"));
        EvaluationInfo {
            id,
            version: self.eval.get("task_version").map(|raw| shown.id(&text(Some(raw)).unwrap_or_else(|| json(raw)))),
            family: None,
            source: self.source(shown),
            threshold: None,
            dataset: name.as_deref().map(|name| shown.id(name)),
            dataset_cases: small(dataset.get("samples")),
            dataset_digest: dataset_digest(name.as_deref(), ids.as_deref()),
            scorer_digest: self.scorer_digest(),
            settings: settings(&self.eval, &fields(self.top.get("plan")), shown),
            planned_by_arm: BTreeMap::new(),
            planned: small(self.results.get("total_samples")).filter(|planned| *planned > 0).or(planned_ids).filter(|planned| *planned > 0),
        }
    }

    /// Where the task is defined; the registry has it under its package's name.
    fn source(&self, shown: &Shown<'_>) -> Option<Source> {
        let export = text(self.eval.get("task_registry_name")).or_else(|| text(self.eval.get("task")))?;
        let export = export.rsplit_once('/').map_or(&*export, |(_, name)| name);
        Some(Source { file: shown.id(&text(self.eval.get("task_file"))?), export: shown.id(export) })
    }

    fn scorer_digest(&self) -> Option<String> {
        let of_task = list(self.eval.get("scorers")).0;
        let (scorers, options) = if of_task.is_empty() { (self.scores(), "params") } else { (of_task, "options") };
        let mut spelled: Vec<String> = scorers.iter().map(|raw| scorer_spelling(&fields(Some(raw)), options)).collect();
        spelled.sort();
        spelled.dedup();
        (!spelled.is_empty()).then(|| digest(spelled.iter().map(String::as_str)))
    }

    fn scores(&self) -> Vec<&RawValue> {
        let scores = list(self.results.get("scores")).0;
        if scores.is_empty() { self.results.get("scorer").into_iter().collect() } else { scores }
    }

    fn old_scorer(&self) -> Option<String> {
        self.scores().first().and_then(|raw| text(fields(Some(raw)).get("name"))).map(std::borrow::Cow::into_owned)
    }

    fn metrics(&self) -> Vec<ReportedMetric> {
        let mut found = Vec::new();
        for raw in self.scores() {
            let score = fields(Some(raw));
            let name = text(score.get("name")).unwrap_or_default();
            let scorer = text(score.get("scorer")).unwrap_or_else(|| name.clone());
            // Logs of one scorer have the metrics beside it.
            let metrics = score.get("metrics").or_else(|| self.results.get("metrics"));
            for (metric, raw) in &fields(metrics).0 {
                found.push(ReportedMetric {
                    evaluation: None,
                    scorer: scorer.clone().into_owned(),
                    name: name.clone().into_owned(),
                    reducer: text(score.get("reducer")).map(std::borrow::Cow::into_owned),
                    metric: metric.clone().into_owned(),
                    value: number(Some(raw)).or_else(|| number(fields(Some(raw)).get("value"))),
                });
            }
        }
        found
    }

    fn ranking(&self) -> Ranking {
        let declared = fields(self.eval.get("headline_metric"));
        let headline = fields(self.results.get("headline"));
        let word = |fields: &Fields<'_>, key| text(fields.get(key)).map(std::borrow::Cow::into_owned);
        let mut scorers: Vec<String> = word(&declared, "scorer").into_iter().chain(word(&headline, "scorer")).collect();
        for raw in self.scores() {
            let score = fields(Some(raw));
            scorers.extend(word(&score, "scorer").into_iter().chain(word(&score, "name")));
        }
        scorers.extend(list(self.eval.get("scorers")).0.iter().filter_map(|raw| word(&fields(Some(raw)), "name")));
        // Only an author names one value of a scorer of several; the headline of the results is by default the first of them.
        let one = word(&declared, "scorer").zip(word(&declared, "score")).filter(|(scorer, score)| scorer != score);
        Ranking { declared: one, scorers }
    }
}

fn scorer_spelling(scorer: &Fields<'_>, options: &str) -> String {
    let name = text(scorer.get("name")).unwrap_or_default();
    // Through a map, so that the order of the options does not count.
    let options =
        scorer.get(options).and_then(|raw| serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()).ok()).unwrap_or_default();
    let options: Vec<String> = options.iter().map(|(key, raw)| format!("{key}={}", compact(raw.get()))).collect();
    format!("{name}({})", options.join(","))
}

fn dataset_digest(name: Option<&str>, ids: Option<&[&RawValue]>) -> Option<String> {
    if name.is_none() && ids.is_none() {
        return None;
    }
    let mut ids: Vec<String> = ids.unwrap_or_default().iter().filter_map(|raw| read::<Value>(Some(raw))).map(|id| case_id(&id)).collect();
    ids.sort();
    Some(digest(name.into_iter().chain(ids.iter().map(String::as_str))))
}

/// The first half of a SHA-256 over `parts`, each with its length, so that no two lists of parts are spelled the same.
pub(in crate::importers) fn digest<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex_of_first(16, &hasher.finalize())
}
