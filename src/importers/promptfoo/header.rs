//! The header of a file of results as a `LogHeader`.
//!
//! Promises: a run is known by its `evalId`, however often it is exported; one that has none by a digest of the file; what the file does not
//! say is none; what a person wrote is redacted, and paths lose their directories.
//! Does not: read rows.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, value::RawValue};

use super::{
    paths::bare,
    test::{Test, cut, one_line},
};
use crate::{
    domain::{
        attempt::shorten,
        log::{ArmInfo, EvaluationInfo, LogHeader, ReportedMetric, RunStatus},
        time::Timestamp,
    },
    importers::{
        inspect::header::{Shown, digest},
        raw::{Fields, fields, json, list, number, text},
    },
};

/// What an evaluation is called that nobody named. The file's own name is no name of it: each export has another.
const UNNAMED: &str = "promptfoo";
const NAME_CHARS_MAX: usize = 200;
/// An id that is longer is none of promptfoo's.
const ID_BYTES_MAX: usize = 100;
/// Settings of a run, as promptfoo spells them and as they are kept.
const SETTINGS: [(&str, &str); 5] =
    [("repeat", "repeat"), ("maxConcurrency", "max_concurrency"), ("cache", "cache"), ("delay", "delay_ms"), ("timeoutMs", "timeout_ms")];
/// The counts and sums of a column that are kept.
const METRICS: [&str; 6] = ["testPassCount", "testFailCount", "testErrorCount", "score", "cost", "totalLatencyMs"];
const STATS: [&str; 3] = ["successes", "failures", "errors"];
/// Columns times metrics that are kept.
const METRICS_MAX: usize = 10_000;

/// Everything a header is made of.
pub(super) struct Parts<'a> {
    pub(super) top: &'a Fields<'a>,
    pub(super) tests: &'a [Test],
    /// The log's id, where the file has none of its own.
    pub(super) digest: Option<String>,
    /// When the file was last changed.
    pub(super) modified: Option<Timestamp>,
    pub(super) shown: &'a Shown<'a>,
}

/// The library spells `evalId` as `id`.
fn spelled_id<'a>(top: &'a Fields<'_>) -> Option<Cow<'a, str>> {
    text(top.get("evalId")).or_else(|| text(top.get("id")).filter(|id| id.starts_with("eval-")))
}

/// The file's own id, if it has one that may be kept.
pub(super) fn own_id(top: &Fields<'_>, shown: &Shown<'_>) -> Option<String> {
    let id = spelled_id(top)?;
    let fit = id.len() <= ID_BYTES_MAX && !id.contains(char::is_control) && !id.trim().is_empty() && shown.id(&id) == id;
    fit.then(|| id.into_owned())
}

impl Parts<'_> {
    /// The header; a sentence where the file says no time and has none.
    pub(super) fn header(&self, infos: Vec<ArmInfo>) -> Result<LogHeader, String> {
        let log_id = own_id(self.top, self.shown).or_else(|| self.digest.clone()).ok_or("the results have no id")?;
        let started_at = self.began();
        let created_at = started_at.or_else(|| self.written()).or(self.modified).ok_or(
            "the results say no time: \"metadata.evaluationCreatedAt\" and \"results.timestamp\" are missing, and the file's own time is not known",
        )?;
        let lasted = ["durationMs", "evaluationDurationMs"].into_iter().find_map(|key| number(self.stats().get(key)));
        // Casting a float saturates.
        let completed_at = started_at.zip(lasted.filter(|lasted| *lasted > 0.0)).and_then(|(start, lasted)| start.moved(lasted as i64));
        Ok(LogHeader {
            report_path: None,
            run_key: log_id.clone(),
            log_id,
            format: "promptfoo".to_owned(),
            task_id: None,
            status: RunStatus::Completed,
            created_at,
            started_at,
            completed_at,
            git: None,
            round: None,
            evaluations: vec![self.evaluation()],
            arms: infos,
            invalidated: false,
            error: None,
            tags: self.tags(),
            metadata: self.metadata(),
            metrics: self.metrics(),
        })
    }

    fn stats(&self) -> Fields<'_> {
        fields(self.top.get("results.stats"))
    }

    /// When the evaluation began: what it says, else the time in its id.
    fn began(&self) -> Option<Timestamp> {
        let metadata = fields(self.top.get("metadata"));
        let said = text(metadata.get("evaluationCreatedAt")).and_then(|time| Timestamp::parse(&time));
        said.or_else(|| instant(&spelled_id(self.top)?))
    }

    /// When the results were written together.
    fn written(&self) -> Option<Timestamp> {
        let said = ["results.timestamp", "createdAt"].into_iter().find_map(|key| Timestamp::parse(&text(self.top.get(key))?));
        // The library has it in milliseconds.
        said.or_else(|| number(self.top.get("createdAt")).and_then(|millis| Timestamp::of_millis(millis as i64)))
    }

    /// The evaluation's id.
    pub(super) fn name(&self) -> String {
        let said = ["config.description", "description"].into_iter().find_map(|key| text(self.top.get(key)));
        let name = said.map(|said| self.line(&said, NAME_CHARS_MAX)).unwrap_or_default();
        if name.is_empty() { UNNAMED.to_owned() } else { name }
    }

    fn line(&self, text: &str, chars_max: usize) -> String {
        cut(&bare(&one_line(&self.shown.redactor.redact(text))), chars_max)
    }

    fn evaluation(&self) -> EvaluationInfo {
        let of_all = |part: fn(&Test) -> Option<&str>| {
            let mut parts: Vec<&str> = self.tests.iter().filter_map(part).collect();
            parts.sort_unstable();
            parts.dedup();
            (!parts.is_empty()).then(|| digest(parts.into_iter()))
        };
        EvaluationInfo {
            source: None,
            id: self.name(),
            dataset_cases: u32::try_from(self.tests.len()).ok(),
            dataset_digest: of_all(|test| Some(&test.dataset)),
            scorer_digest: of_all(|test| test.scorer.as_deref()),
            settings: self.settings(),
            // What was planned is nowhere said: decision 95.
            ..EvaluationInfo::default()
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let (asked, ran) = (fields(self.top.get("config.evaluateOptions")), fields(self.top.get("runtimeOptions")));
        let one = |(key, name): &(&str, &str)| {
            let raw = ran.get(key).or_else(|| asked.get(key))?.get();
            (raw.len() < 20).then(|| ((*name).to_owned(), self.shown.text(raw)))
        };
        SETTINGS.iter().filter_map(one).collect()
    }

    /// Tags are names with values.
    fn tags(&self) -> Vec<String> {
        let raw = self.top.get("config.tags");
        let pair = |(name, raw): &(Cow<'_, str>, &RawValue)| {
            let value = text(Some(raw)).unwrap_or_else(|| json(raw));
            self.shown.text(&format!("{name}={}", self.shown.redactor.redact_value(name, &value)))
        };
        let plain = |raw: &&RawValue| text(Some(raw)).map(|tag| self.shown.text(&tag));
        fields(raw).0.iter().map(pair).chain(list(raw).0.iter().filter_map(plain)).collect()
    }

    fn metadata(&self) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        for part in ["config.metadata", "metadata"] {
            for (key, raw) in &fields(self.top.get(part)).0 {
                found.insert(self.shown.text(key), self.shown.value(key, raw));
            }
        }
        if let Some(author) = self.top.get("author") {
            found.entry("author".to_owned()).or_insert_with(|| self.shown.value("author", author));
        }
        found
    }

    /// What promptfoo counted itself: for each column, and for all.
    fn metrics(&self) -> Vec<ReportedMetric> {
        let mut found = Vec::new();
        let mut add = |name: &str, metric: &str, raw: Option<&RawValue>| {
            if found.len() < METRICS_MAX && raw.is_some() {
                let (name, metric) = (name.to_owned(), metric.to_owned());
                let value = number(raw);
                found.push(ReportedMetric { evaluation: None, scorer: "promptfoo".to_owned(), name, reducer: None, metric, value });
            }
        };
        let stats = self.stats();
        STATS.iter().for_each(|key| add("all", key, stats.get(key)));
        for raw in list(self.top.get("results.prompts")).0 {
            let prompt = fields(Some(raw));
            let word = |key| text(prompt.get(key)).unwrap_or_default();
            let name = self.line(&format!("{} {}", word("provider"), word("label")), NAME_CHARS_MAX);
            let metrics = fields(prompt.get("metrics"));
            METRICS.iter().for_each(|key| add(&name, key, metrics.get(key)));
            for (metric, raw) in &fields(metrics.get("namedScores")).0 {
                add(&name, &shorten(&self.shown.text(metric), NAME_CHARS_MAX), Some(raw));
            }
        }
        found
    }
}

/// The time that ends an id: `eval-abc-2026-11-30T11:05:52`, in UTC.
fn instant(id: &str) -> Option<Timestamp> {
    id.match_indices('-').find_map(|(dash, _)| Timestamp::parse(id.get(dash + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_ends_in_its_time() {
        let time = Timestamp::parse("2026-11-30T11:05:52Z");
        assert_eq!(instant("eval-nxZ-2026-11-30T11:05:52"), time);
        assert_eq!(instant("eval-2026-11-30T11:05:52"), time);
        assert_eq!(instant("eval-2026-11-30T11:05:52.000Z"), time);
        assert!(["eval", "eval-", "eval-abc-2026", "", "-é"].into_iter().all(|id| instant(id).is_none()));
    }
}
