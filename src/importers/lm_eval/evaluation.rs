//! A task as an evaluation: its dataset, its settings, and the figures that the harness reported.
//!
//! Promises: a figure that the harness could not compute (`N/A`, NaN) is kept without a value; digests do not depend on the machine or on
//! addresses that Python prints for functions.
//! Does not: read samples.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

use super::results::Members;
use crate::{
    domain::{
        attempt::shorten,
        log::{EvaluationInfo, ReportedMetric},
    },
    importers::{
        inspect::{
            arm::{LEVEL_BYTES_MAX, spelled},
            header::{Shown, digest},
            lines::compact,
        },
        raw::{Fields, count, fields, json, list, number, text},
    },
};

/// Members of a task's results that are no figures.
const NO_FIGURES: [&str; 5] = ["alias", "name", "sample_len", "sample_count", "samples"];
/// What a task's prompts are made by. Kept as a digest: a changed prompt is seen, and not told.
const PROMPT: [&str; 10] = [
    "description",
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "doc_to_image",
    "target_delimiter",
    "fewshot_delimiter",
    "fewshot_split",
    "fewshot_config",
    "gen_prefix",
];
/// Settings of the whole run that are settings of each of its tasks.
const RUN: [&str; 9] =
    ["limit", "batch_size", "device", "use_cache", "bootstrap_iters", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed"];
/// Python prints a function as `<function f at 0x7f...>`, which is another text each time.
const ADDRESS: &str = " at 0x";
/// Figures of one task, metrics that it lists and settings of its generation that are kept.
pub(super) const FIGURES_MAX: usize = 1000;
/// Of a digest, what a setting shows.
const DIGEST_CHARS: usize = 8;

/// A key of a task's results: `exact_match_stderr,strict-match`, before 0.4 without a filter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figure<'a> {
    pub(super) metric: &'a str,
    pub(super) filter: Option<&'a str>,
    pub(super) stderr: bool,
}

/// What `key` names; none where it is no figure.
pub(super) fn figure(key: &str) -> Option<Figure<'_>> {
    let (name, filter) = key.split_once(',').map_or((key, None), |(name, filter)| (name, Some(filter)));
    if NO_FIGURES.contains(&key) || name.trim().is_empty() {
        return None;
    }
    let base = name.strip_suffix("_stderr");
    Some(Figure { metric: base.unwrap_or(name), filter, stderr: base.is_some() })
}

/// The figures that the results report of `task`.
pub(super) fn figures(members: &Members<'_>, task: &str, id: &str, shown: &Shown<'_>) -> Vec<ReportedMetric> {
    let config = fields(members.configs.get(task));
    let aggregations = aggregations(&config);
    let mut found = Vec::new();
    for (key, raw) in fields(members.results.get(task)).0.iter().take(FIGURES_MAX) {
        let Some(Figure { metric, filter, stderr }) = figure(key) else { continue };
        // What is neither a number nor stands for one is a remark.
        let value = number(Some(raw));
        if value.is_none() && !matches!(raw.get(), "null" | "\"N/A\"") {
            continue;
        }
        let scorer = filter.map_or_else(|| metric.to_owned(), |filter| format!("{metric},{filter}"));
        found.push(ReportedMetric {
            evaluation: Some(id.to_owned()),
            scorer: shown.id(&scorer),
            name: shown.id(metric),
            reducer: None,
            metric: if stderr { "stderr".to_owned() } else { aggregations.get(metric).cloned().unwrap_or_else(|| "value".to_owned()) },
            value,
        });
    }
    found
}

/// How each metric that the task lists is made one figure of all docs. A function of the task's own has no name.
fn aggregations(config: &Fields<'_>) -> BTreeMap<String, String> {
    let entry = |raw: &&RawValue| {
        let entry = fields(Some(raw));
        let name = text(entry.get("aggregation")).filter(|name| name.len() < 64 && !name.contains([' ', '\n', '<']))?;
        Some((text(entry.get("metric"))?.into_owned(), name.into_owned()))
    };
    list(config.get("metric_list")).0.iter().take(FIGURES_MAX).filter_map(entry).collect()
}

/// The evaluation that `task` is; `planned` where its samples stand beside the results.
pub(super) fn evaluation(members: &Members<'_>, task: &str, has_samples: bool, shown: &Shown<'_>) -> EvaluationInfo {
    let config = fields(members.configs.get(task));
    let counts = fields(members.samples.get(task));
    let small = |key| count(counts.get(key)).and_then(|count| u32::try_from(count).ok());
    let cases = small("original");
    let word = |raw: &RawValue| shown.id(&text(Some(raw)).unwrap_or_else(|| json(raw)));
    EvaluationInfo {
        source: None,
        id: shown.id(task),
        version: members.versions.get(task).map(word),
        family: None,
        threshold: None,
        dataset: dataset(&config).map(|name| shown.id(&name)),
        dataset_cases: cases,
        dataset_digest: dataset_digest(&config, cases),
        scorer_digest: scorer_digest(&config),
        settings: settings(members, task, &config, shown),
        planned: small("effective").filter(|_| has_samples),
        planned_by_arm: BTreeMap::new(),
    }
}

/// The hub's name with the part of it; of a path only the end.
fn dataset(config: &Fields<'_>) -> Option<String> {
    let path = text(config.get("dataset_path"))?;
    let local = path.starts_with(['/', '.', '~']) || path.contains('\\');
    let name = if local { path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or_default() } else { &path };
    Some(match text(config.get("dataset_name")) {
        Some(part) => format!("{name}/{part}"),
        None => name.to_owned(),
    })
}

fn dataset_digest(config: &Fields<'_>, cases: Option<u32>) -> Option<String> {
    let name = dataset(config)?;
    let splits = ["test_split", "validation_split", "training_split"].map(|key| text(config.get(key)).unwrap_or_default().into_owned());
    let cases = cases.map(|cases| cases.to_string()).unwrap_or_default();
    Some(digest([name, cases].iter().chain(&splits).map(String::as_str)))
}

/// Metrics with their options and filters in their order.
fn scorer_digest(config: &Fields<'_>) -> Option<String> {
    let listed = list(config.get("metric_list")).0;
    if listed.is_empty() {
        return None;
    }
    let mut parts: Vec<String> = text(config.get("output_type")).into_iter().map(Cow::into_owned).collect();
    for raw in &listed {
        // Sorted, so that the order in which the options are written does not count.
        let mut options: Vec<String> =
            fields(Some(raw)).0.iter().filter_map(|(key, raw)| Some(format!("{key}={}", stable(raw)?))).collect();
        options.sort();
        parts.push(options.join(","));
    }
    parts.extend(list(config.get("filter_list")).0.iter().filter_map(|raw| stable(raw)));
    Some(digest(parts.iter().map(String::as_str)))
}

/// JSON as it is told apart; none for what is another text each time.
fn stable(raw: &RawValue) -> Option<String> {
    (!raw.get().contains(ADDRESS)).then(|| compact(raw.get()))
}

fn settings(members: &Members<'_>, task: &str, config: &Fields<'_>, shown: &Shown<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, key: &str, raw: Option<&RawValue>| {
        let level = raw.map(|raw| text(Some(raw)).unwrap_or_else(|| compact(raw.get()).into()));
        found.extend(level.map(|level| (name.to_owned(), shorten(&spelled(key, &level, shown), LEVEL_BYTES_MAX))));
    };
    add("num_fewshot", "num_fewshot", members.shots.get(task).or_else(|| config.get("num_fewshot")));
    for key in ["output_type", "repeats"] {
        add(key, key, config.get(key));
    }
    for (key, raw) in fields(config.get("generation_kwargs")).0.iter().take(FIGURES_MAX) {
        add(&format!("generation.{}", shown.text(key)), key, Some(raw));
    }
    for key in RUN {
        add(key, key, members.config.get(key));
    }
    add("task_hash", "task_hash", members.hashes.get(task));
    let filters: Vec<String> =
        list(config.get("filter_list")).0.iter().filter_map(|raw| text(fields(Some(raw)).get("name"))).map(Cow::into_owned).collect();
    found.extend((!filters.is_empty()).then(|| ("filters".to_owned(), shorten(&shown.text(&filters.join(", ")), LEVEL_BYTES_MAX))));
    let prompt: Vec<String> = PROMPT.iter().filter_map(|key| Some(format!("{key}={}", config.get(key).and_then(stable)?))).collect();
    let mark: String = digest(prompt.iter().map(String::as_str)).chars().take(DIGEST_CHARS).collect();
    found.extend((!prompt.is_empty()).then(|| ("prompt".to_owned(), mark)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::redaction::Redactor;

    fn of(results: &str) -> (EvaluationInfo, Vec<ReportedMetric>) {
        let (members, redactor) = (Members::read(results).unwrap(), Redactor::patterns_only());
        let shown = Shown { redactor: &redactor, bytes_max: 2048 };
        (evaluation(&members, "t", true, &shown), figures(&members, "t", "t", &shown))
    }

    #[test]
    fn keys_of_results_are_metric_filter_and_error() {
        assert_eq!(figure("acc,none"), Some(Figure { metric: "acc", filter: Some("none"), stderr: false }));
        assert_eq!(figure("acc_stderr"), Some(Figure { metric: "acc", filter: None, stderr: true }));
        for key in ["alias", "sample_len", " ", " ,none", ""] {
            assert_eq!(figure(key), None, "{key}");
        }
    }

    #[test]
    fn figures_without_a_value_are_kept() {
        let (_, metrics) =
            of(r#"{"results":{"t":{"alias":"t","acc,none":0.5,"acc_stderr,none":"N/A","ppl,none":null,"note,none":"x","sample_len":5}},
            "configs":{"t":{"metric_list":[{"metric":"acc","aggregation":"mean"}]}}}"#);
        let shown: Vec<_> = metrics.iter().map(|metric| (metric.scorer.as_str(), metric.metric.as_str(), metric.value)).collect();
        assert_eq!(shown, [("acc,none", "mean", Some(0.5)), ("acc,none", "stderr", None), ("ppl,none", "value", None)]);
        assert!(metrics.iter().all(|metric| metric.evaluation.as_deref() == Some("t")));
    }

    #[test]
    fn what_the_task_says_of_itself_is_kept() {
        let task = |path: &str, prompt: &str, function: &str| {
            format!(
                r#"{{"results":{{"t":{{}}}},"versions":{{"t":2.0}},"n-shot":{{"t":5}},"n-samples":{{"t":{{"original":9,"effective":3}}}},"config":{{"limit":3}},
                "configs":{{"t":{{"dataset_path":"{path}","dataset_name":"main","doc_to_text":"{prompt}","output_type":"generate_until",
                "metric_list":[{{"metric":"em","aggregation":"<function f at {function}>"}}],
                "generation_kwargs":{{"temperature":0.7}},"filter_list":[{{"name":"a"}},{{"name":"b"}}]}}}}}}"#
            )
        };
        let (info, _) = of(&task("org/d", "p", "0x1"));
        assert_eq!((info.version.as_deref(), info.dataset.as_deref()), (Some("2.0"), Some("org/d/main")));
        assert_eq!((info.dataset_cases, info.planned), (Some(9), Some(3)));
        for (name, level) in [("num_fewshot", "5"), ("generation.temperature", "0.7"), ("limit", "3"), ("filters", "a, b")] {
            assert_eq!(info.settings.get(name).map(String::as_str), Some(level), "{name}");
        }
        let (other, _) = of(&task("/some/where/d", "q", "0x2"));
        assert_eq!(other.dataset.as_deref(), Some("d/main"));
        assert_eq!(other.scorer_digest, info.scorer_digest);
        assert!(other.settings["prompt"] != info.settings["prompt"] && other.dataset_digest != info.dataset_digest);
    }
}
