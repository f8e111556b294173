//! A results file as a log's header, and what is to be read of its samples.
//!
//! Promises: the log's id is made of the model's name and the date where the file has both, else of its bytes; the run is the file (decision
//! 93); a time that the file does not say is the file's own, never the local one in its name.
//! Does not: open a file of samples.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    arm::arm,
    evaluation::{evaluation, figures},
    judge::Judge,
    results::Members,
};
use crate::{
    domain::{
        log::{Git, LogHeader, RunStatus},
        time::Timestamp,
    },
    importers::{
        Limits,
        beside::{Beside, task_of},
        inspect::header::{Shown, digest},
        raw::{fields, number, text},
    },
    telemetry::redaction::Redactor,
};

/// Tasks without samples that a complaint names.
const NAMED_MAX: usize = 3;
/// The end of the year 9999: a date beyond it is none.
const SECONDS_MAX: f64 = 253_402_300_799.0;
/// What file names cannot have; the harness writes two underscores for a row of them.
const UNFIT: [char; 11] = ['"', '<', '>', ':', '/', '|', '\\', '?', '*', '[', ']'];

/// The samples of a task, to be read.
pub(super) struct Task {
    /// The evaluation's id.
    pub(super) id: String,
    /// The file's name.
    pub(super) file: String,
    pub(super) judge: Judge,
}

/// What a results file says.
pub(super) struct Head {
    pub(super) header: LogHeader,
    /// The tasks whose samples stand beside it, in order.
    pub(super) tasks: Vec<Task>,
    pub(super) complaints: Vec<String>,
}

impl Head {
    /// Reads the results; `own` is the file's digest, for files that say too little of themselves.
    pub(super) fn of(members: &Members<'_>, own: &str, beside: &dyn Beside, limits: &Limits, redactor: &Redactor) -> Self {
        let shown = Shown { redactor, bytes_max: limits.text_bytes_max };
        let mut complaints = Vec::new();
        let started_at = date(members);
        let created_at = started_at.or_else(|| beside.own_modified()).unwrap_or_else(|| {
            complaints.push("it says no time (\"date\"), and the file's own is not known; it counts as of 1970".to_owned());
            Timestamp::from_millis(0)
        });
        let mut files = files(beside, &mut complaints);
        let names: BTreeSet<String> = members.tasks();
        let known: Vec<(String, Option<String>)> = names.iter().map(|name| (name.clone(), file_of(name, &mut files))).collect();
        // A file of samples whose task the results do not name is a task all the same.
        let all: Vec<(String, Option<String>)> =
            known.into_iter().chain(files.into_iter().map(|(name, file)| (name, Some(file)))).collect();
        complaints.extend(without_samples(&all, &shown));
        let id = log_id(members, own);
        let mut header = LogHeader {
            report_path: None,
            run_key: id.clone(),
            log_id: id,
            format: "lm_eval".to_owned(),
            task_id: None,
            status: RunStatus::Completed,
            created_at,
            started_at,
            completed_at: started_at.zip(seconds(members)).and_then(|(start, seconds)| start.moved(millis(seconds))),
            git: git(members),
            round: None,
            evaluations: Vec::new(),
            arms: vec![arm(members, &shown)],
            invalidated: false,
            error: None,
            tags: Vec::new(),
            metadata: metadata(members, &shown),
            metrics: Vec::new(),
        };
        let mut tasks = Vec::new();
        for (name, file) in all {
            let info = evaluation(members, &name, file.is_some(), &shown);
            header.metrics.extend(figures(members, &name, &info.id, &shown));
            let judge = || {
                Judge::of(&fields(members.configs.get(&name)), &fields(members.results.get(&name)), &fields(members.directions.get(&name)))
            };
            tasks.extend(file.map(|file| Task { id: info.id.clone(), file, judge: judge() }));
            header.evaluations.push(info);
        }
        Self { header, tasks, complaints }
    }
}

/// When the evaluation began, where the file says so. `start_time` and `end_time` are no times but seconds since the machine was started.
fn date(members: &Members<'_>) -> Option<Timestamp> {
    number(members.top.get("date"))
        .filter(|seconds| (0.0..SECONDS_MAX).contains(seconds))
        .and_then(|seconds| Timestamp::of_millis(millis(seconds)))
}

/// How long it took, written as text. The harness counts its own start as well, so this is some seconds too much.
fn seconds(members: &Members<'_>) -> Option<f64> {
    let raw = members.top.get("total_evaluation_time_seconds");
    let seconds = text(raw).and_then(|text| text.trim().parse::<f64>().ok()).or_else(|| number(raw));
    seconds.filter(|seconds| (0.0..SECONDS_MAX).contains(seconds))
}

fn millis(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn log_id(members: &Members<'_>, own: &str) -> String {
    match (members.model_name(), members.top.get("date")) {
        (Some(model), Some(date)) => digest([model.as_str(), date.get()].into_iter()),
        _ => own.to_owned(),
    }
}

/// `git describe` gives a commit, or a tag with or without one behind it. A tag is no commit.
fn git(members: &Members<'_>) -> Option<Git> {
    let described = text(members.top.get("git_hash"))?;
    let behind = described.rsplit_once("-g").map(|(_, sha)| sha);
    let is_sha =
        |sha: &&str| (7..=40).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let sha = [described.as_ref()].into_iter().chain(behind).find(is_sha)?;
    Some(Git { sha: Some(sha.to_owned()), branch: None, dirty: None })
}

/// What the file says beside: of the code, the model's given name, and the groups' averages.
fn metadata(members: &Members<'_>, shown: &Shown<'_>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut add = |key: &str, raw: Option<&serde_json::value::RawValue>| {
        let Some(raw) = raw else { return };
        found.insert(key.to_owned(), shown.json(raw));
    };
    for key in ["model_name", "model_source", "git_hash", "upper_git_hash", "total_evaluation_time_seconds", "groups", "group_subtasks"] {
        add(key, members.top.get(key));
    }
    found
}

/// The files of samples, by the task that their names say.
fn files(beside: &dyn Beside, complaints: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::<String, String>::new();
    for name in beside.names() {
        let Some(task) = task_of(beside.main(), name) else { continue };
        let Some(before) = found.insert(task.to_owned(), name.clone()) else { continue };
        // Of two spellings of one file the one that says what it holds.
        let (kept, left) = if before.ends_with(".jsonl") { (before, name.clone()) } else { (name.clone(), before) };
        complaints.push(format!("two files beside it hold samples of one task: {} was not read", left.escape_debug()));
        found.insert(task.to_owned(), kept);
    }
    found
}

fn file_of(task: &str, files: &mut BTreeMap<String, String>) -> Option<String> {
    files.remove(task).or_else(|| files.remove(&sanitized(task)))
}

/// A task's name as some releases spell it in file names.
fn sanitized(task: &str) -> String {
    task.split(UNFIT)
        .enumerate()
        .filter(|(place, part)| *place == 0 || !part.is_empty())
        .map(|(_, part)| part)
        .collect::<Vec<_>>()
        .join("__")
}

fn without_samples(all: &[(String, Option<String>)], shown: &Shown<'_>) -> Option<String> {
    let bare: Vec<&String> = all.iter().filter(|(_, file)| file.is_none()).map(|(name, _)| name).collect();
    if bare.is_empty() {
        return None;
    }
    if bare.len() == all.len() {
        return Some("no samples beside it: only the reported metrics are kept".to_owned());
    }
    let named: Vec<String> = bare.iter().take(NAMED_MAX).map(|name| shown.text(name)).collect();
    let more = if bare.len() > NAMED_MAX { ", ..." } else { "" };
    Some(format!(
        "no samples beside it for {} of its {} tasks ({}{more}): of these only the reported metrics are kept",
        bare.len(),
        all.len(),
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(json: &str) -> Members<'_> {
        Members::read(json).unwrap()
    }

    #[test]
    fn a_tag_is_no_commit() {
        for (described, sha) in [
            ("1f84a09f", Some("1f84a09f")),
            ("v0.4.2-17-g1f84a09", Some("1f84a09")),
            ("v0.4.2", None),
            ("big-refactor", None),
            ("abc", None),
        ] {
            let json = format!(r#"{{"git_hash":"{described}"}}"#);
            assert_eq!(git(&members(&json)).and_then(|git| git.sha).as_deref(), sha, "{described}");
        }
        assert_eq!(git(&members(r#"{"git_hash":null}"#)), None);
    }

    #[test]
    fn seconds_are_text_and_dates_are_sane() {
        assert_eq!(seconds(&members(r#"{"total_evaluation_time_seconds":"36.5"}"#)), Some(36.5));
        assert_eq!(seconds(&members(r#"{"total_evaluation_time_seconds":7}"#)), Some(7.0));
        for wrong in [r#"{"date":-1}"#, r#"{"date":1e300}"#, r#"{"date":"x"}"#, "{}"] {
            assert_eq!(date(&members(wrong)), None, "{wrong}");
        }
        // The last second before the year 10000, by `date -u -d 9999-12-31T23:59:59 +%s`: the rest of it would be written as 10000.
        assert_eq!(date(&members(r#"{"date":253402300800}"#)), None);
        assert_eq!(date(&members(r#"{"date":253402300798}"#)).map(Timestamp::rfc3339).as_deref(), Some("9999-12-31T23:59:58Z"));
        // 2026-01-21, by `date -u -d @1768964383`.
        assert_eq!(date(&members(r#"{"date":1768964383.8593218}"#)), Timestamp::parse("2026-01-21T02:59:43.859Z"));
    }

    #[test]
    fn names_of_tasks_are_spelled_as_in_file_names() {
        for (task, file) in [("a", "a"), ("a/b", "a__b"), ("a::b?", "a__b"), ("/a", "__a")] {
            assert_eq!(sanitized(task), file);
        }
    }
}
