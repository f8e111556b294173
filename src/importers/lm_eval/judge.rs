//! Which metric judges a task's docs, and what a value of it says.
//!
//! Promises: one metric of one filter decides all docs of a task, and which one is told by the task's description before its samples, so that two runs are
//! judged alike; only a whole 1 or 0 passes or fails, the other way round where lower is better; any other value is kept and judges nothing.
//! Does not: know attempts.

use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use super::evaluation::{FIGURES_MAX, Figure, figure};
use crate::{
    domain::attempt::Check,
    importers::raw::{Fields, fields, json, list, number, read, text},
};

/// The filter of a task that names none.
const NO_FILTER: &str = "none";
/// Metrics that measure how much and never whether, though a value may happen to be 0 or 1. Another metric decides where there is one.
const GRADED: [&str; 16] = [
    "perplexity",
    "word_perplexity",
    "byte_perplexity",
    "bits_per_byte",
    "f1",
    "mcc",
    "bleu",
    "chrf",
    "ter",
    "brier_score",
    "rouge1",
    "rouge2",
    "rougeL",
    "rougeLsum",
    "bypass",
    "likelihood_diff",
];

/// How a task's docs are judged.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Judge {
    /// Metrics by rank: as the task lists them, then as its results have them.
    rank: Vec<String>,
    /// The same, for looking up.
    known: HashSet<String>,
    /// Metrics of which less is better.
    lower: BTreeSet<String>,
    /// What the results report, in order: metric and filter.
    reported: Vec<(String, String)>,
    /// The task's filters in their order, for lines that do not name theirs.
    pub(super) filters: Vec<String>,
}

impl Judge {
    /// Reads what the results file says of a task: its configuration, its results, its directions.
    pub(super) fn of(config: &Fields<'_>, results: &Fields<'_>, directions: &Fields<'_>) -> Self {
        let listed = list(config.get("metric_list")).0;
        let mut judge = Self::default();
        for raw in listed.iter().take(FIGURES_MAX) {
            let entry = fields(Some(raw));
            let Some(name) = text(entry.get("metric")).or_else(|| text(Some(raw))) else { continue };
            let higher = read::<bool>(entry.get("higher_is_better"));
            judge.lower.extend((higher == Some(false)).then(|| name.clone().into_owned()));
            judge.rank.push(name.into_owned());
        }
        for (key, _) in results.0.iter().take(FIGURES_MAX) {
            if let Some(Figure { metric, filter, stderr: false }) = figure(key) {
                let filter = filter.unwrap_or(NO_FILTER).to_owned();
                judge.rank.push(metric.to_owned());
                judge.reported.push((metric.to_owned(), filter));
            }
        }
        for (metric, raw) in &directions.0 {
            match read::<bool>(Some(raw)) {
                Some(false) => drop(judge.lower.insert(metric.clone().into_owned())),
                Some(true) => drop(judge.lower.remove(metric.as_ref())),
                None => {}
            }
        }
        judge.filters = judge.filters_of(config);
        judge.known = judge.rank.iter().cloned().collect();
        judge
    }

    fn filters_of(&self, config: &Fields<'_>) -> Vec<String> {
        let listed = list(config.get("filter_list")).0;
        let mut names: Vec<String> = listed
            .iter()
            .take(FIGURES_MAX)
            .filter_map(|raw| text(fields(Some(raw)).get("name")))
            .map(std::borrow::Cow::into_owned)
            .collect();
        if names.is_empty() {
            for (_, filter) in &self.reported {
                names.extend((!names.contains(filter)).then(|| filter.clone()));
            }
        }
        if names.is_empty() { vec![NO_FILTER.to_owned()] } else { names }
    }

    /// Whether the task's description knows this metric.
    pub(super) fn knows(&self, metric: &str) -> bool {
        self.known.contains(metric)
    }

    /// The metric and the filter that decide, of those that the samples have.
    pub(super) fn decider(&self, metrics: &[String], filters: &[String]) -> Option<(String, String)> {
        let ranked: Vec<&String> = self.rank.iter().filter(|name| metrics.contains(name)).chain(metrics).collect();
        let judges = |name: &&&String| !GRADED.contains(&name.as_str());
        let first = ranked.iter().filter(judges).find(|name| !self.lower.contains(**name));
        let metric = first.or_else(|| ranked.iter().find(judges)).or_else(|| ranked.first())?;
        let of_metric: Vec<&String> = self.reported.iter().filter(|(name, _)| name == *metric).map(|(_, filter)| filter).collect();
        let ranked = self.filters.iter().filter(|filter| of_metric.is_empty() || of_metric.contains(filter)).chain(of_metric.clone());
        let filter = ranked.chain(filters).find(|filter| filters.contains(filter))?;
        Some(((*metric).clone(), filter.clone()))
    }

    /// What a value of `metric` says. The caller names the check and shortens its label.
    pub(super) fn check(&self, metric: &str, raw: Option<&RawValue>) -> Check {
        let (value, label) = match raw.and_then(|raw| raw.get().as_bytes().first()) {
            Some(b't') => (Some(1.0), Some("true".to_owned())),
            Some(b'f') => (Some(0.0), Some("false".to_owned())),
            Some(b'"') => (None, text(raw).map(std::borrow::Cow::into_owned)),
            Some(b'[' | b'{') => (None, raw.map(|raw| json(raw).into_owned())),
            _ => (number(raw), None),
        };
        Check { kind: "score".to_owned(), passed: value.and_then(|value| self.passed(metric, value)), value, label, ..Check::default() }
    }

    fn passed(&self, metric: &str, value: f64) -> Option<bool> {
        let whole = if value == 1.0 {
            true
        } else if value == 0.0 {
            false
        } else {
            return None;
        };
        (!GRADED.contains(&metric)).then_some(whole != self.lower.contains(metric))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(config: &str, results: &str, directions: &str) -> Judge {
        let read = |text: &'static str| serde_json::from_str::<Fields<'static>>(text).unwrap();
        let leak = |text: &str| read(Box::leak(text.to_owned().into_boxed_str()));
        Judge::of(&leak(config), &leak(results), &leak(directions))
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_first_metric_that_judges_decides() {
        let list = |all: &[&str]| {
            let entries: Vec<String> = all.iter().map(|name| format!(r#"{{"metric":"{name}"}}"#)).collect();
            format!(r#"{{"metric_list":[{}]}}"#, entries.join(","))
        };
        for (listed, present, first) in [
            (vec!["acc", "acc_norm"], vec!["acc_norm", "acc"], "acc"),
            (vec!["perplexity", "acc"], vec!["perplexity", "acc"], "acc"),
            (vec!["f1"], vec!["f1"], "f1"),
            (vec![], vec!["em", "acc"], "em"),
            (vec!["gone"], vec!["bad", "good"], "good"),
            (vec!["bad"], vec!["bad"], "bad"),
        ] {
            let judge = judge(&list(&listed), "{}", r#"{"bad":false}"#);
            let decider = judge.decider(&names(&present), &names(&["x", "y"]));
            assert_eq!(decider, Some((first.to_owned(), "x".to_owned())), "{listed:?}");
        }
        assert_eq!(Judge::default().decider(&[], &names(&["x"])), None);
    }

    #[test]
    fn the_first_filter_of_the_task_that_has_the_metric_decides() {
        let results = r#"{"alias":"t","em,b":0,"em_stderr,b":"N/A","em,a":0,"acc,c":0}"#;
        let bare = judge("{}", results, "{}");
        assert_eq!(bare.filters, ["b", "a", "c"]);
        let listed = judge(r#"{"filter_list":[{"name":"c"},{"name":"a"},{"name":"b"}]}"#, results, "{}");
        for (judge, filters, first) in
            [(&bare, ["a", "b"], "b"), (&listed, ["b", "a"], "a"), (&listed, ["b", "c"], "b"), (&listed, ["x", "y"], "x")]
        {
            assert_eq!(judge.decider(&names(&["em"]), &names(&filters)), Some(("em".to_owned(), first.to_owned())), "{filters:?}");
        }
        assert_eq!(Judge::default().filters, Vec::<String>::new());
    }

    #[test]
    fn only_whole_values_judge_and_lower_may_be_better() {
        let judge = judge(r#"{"metric_list":[{"metric":"wrong","higher_is_better":false},{"metric":"acc"}]}"#, "{}", "{}");
        for (metric, value, passed) in [
            ("acc", "1", Some(true)),
            ("acc", "0.0", Some(false)),
            ("acc", "0.5", None),
            ("acc", "2", None),
            ("acc", "null", None),
            ("acc", "[1.0, 0.0]", None),
            ("acc", "true", Some(true)),
            ("wrong", "1", Some(false)),
            ("wrong", "0", Some(true)),
            ("wrong", "false", Some(true)),
            ("f1", "1", None),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(value).unwrap();
            assert_eq!(judge.check(metric, Some(&raw)).passed, passed, "{metric} {value}");
        }
        let array: Box<RawValue> = serde_json::from_str("[-0.5, 3]").unwrap();
        assert_eq!(judge.check("acc", Some(&array)).label.as_deref(), Some("[-0.5, 3]"));
    }
}
