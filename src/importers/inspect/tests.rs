//! What inspect_ai's own reader and statistics say of real and generated logs, and what the importer makes of them.

mod crafted;
mod hostile;

use std::{
    collections::BTreeMap,
    io::Cursor,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    domain::{
        attempt::Attempt,
        key::case_id,
        log::{LogHeader, RunStatus},
        outcome::Counts,
        time::Timestamp,
    },
    importers::{Limits, Refused, beside, open, trial::Whole},
    telemetry::redaction::Redactor,
};

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/formats");

pub(super) fn import_with(bytes: Vec<u8>, limits: &Limits) -> Result<Whole, Refused> {
    import_knowing(bytes, limits, &Redactor::patterns_only())
}

pub(super) fn import_knowing(bytes: Vec<u8>, limits: &Limits, redactor: &Redactor) -> Result<Whole, Refused> {
    let opened = open(Box::new(Cursor::new(bytes)), &beside::Alone, limits, redactor)?;
    Ok(Whole::read(opened))
}

pub(super) fn import(bytes: Vec<u8>) -> Result<Whole, Refused> {
    import_with(bytes, &Limits::default())
}

fn folder(name: &str) -> PathBuf {
    Path::new(FORMATS).join(name)
}

/// Every file of a folder that inspect's reader was asked about, and what it said.
fn expected(name: &str) -> Vec<(String, Value)> {
    let json: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(folder(name).join("EXPECTED.json")).unwrap()).unwrap();
    json.into_iter().collect()
}

fn status(word: &Value) -> RunStatus {
    match word.as_str().unwrap() {
        "success" => RunStatus::Completed,
        "error" => RunStatus::Failed,
        "cancelled" => RunStatus::Cancelled,
        _ => RunStatus::Running,
    }
}

fn check_header(name: &str, expected: &Value, header: &LogHeader) {
    assert_eq!(header.status, status(&expected["status"]), "{name}");
    assert_eq!(header.created_at, Timestamp::parse(expected["created"].as_str().unwrap()).unwrap(), "{name}");
    assert_eq!(json!(header.invalidated), expected["invalidated"], "{name}");
    assert_eq!(header.run_key, expected["run_id"], "{name}");
    assert_eq!(header.log_id, expected["eval_id"], "{name}");
    assert_eq!(json!(header.task_id), expected["task_id"], "{name}");
    assert_eq!(json!(header.round), expected["eval_set_id"], "{name}");
    assert_eq!(header.evaluations[0].id, expected["task"], "{name}");
    assert_eq!(header.arms[0].factors["model"], expected["model"], "{name}");
    assert_eq!(json!(header.evaluations[0].dataset_cases), expected["dataset_samples"], "{name}");
    if let Some(total) = expected["results_total_completed"][0].as_u64().filter(|total| *total > 0) {
        assert_eq!(header.evaluations[0].planned.map(u64::from), Some(total), "{name}");
    }
    let git = header.git.clone().unwrap_or_default();
    assert_eq!(json!(git.sha), expected["git"]["commit"], "{name}");
    assert_eq!(json!(git.dirty), expected["git"]["dirty"], "{name}");
    match expected["run_error"].as_str() {
        Some(error) => assert!(header.error.as_deref().unwrap().starts_with(&error.chars().take(40).collect::<String>()), "{name}"),
        None => assert_eq!(header.error, None, "{name}"),
    }
}

fn check_metrics(name: &str, expected: &Value, header: &LogHeader) {
    let mut reported = Vec::new();
    for row in expected["metrics"].as_array().unwrap() {
        for (metric, value) in row["metrics"].as_object().unwrap() {
            reported.push((json!([row["scorer"], row["name"], row["reducer"], metric]).to_string(), value.as_f64()));
        }
    }
    let mut ours: Vec<(String, Option<f64>)> = header
        .metrics
        .iter()
        .map(|metric| (json!([metric.scorer, metric.name, metric.reducer, metric.metric]).to_string(), metric.value))
        .collect();
    reported.sort_by(|a, b| a.0.cmp(&b.0));
    ours.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(ours, reported, "{name}");
}

fn close(ours: Option<f64>, theirs: Option<f64>) -> bool {
    ours.zip(theirs).is_none_or(|(ours, theirs)| (ours - theirs).abs() < 1e-9) && ours.is_some() == theirs.is_some()
}

fn check_attempts(name: &str, expected: &Value, whole: &Whole) {
    assert_eq!(json!(whole.attempts.len()), expected["sample_count"], "{name}");
    let errors = whole.attempts.iter().filter(|attempt| attempt.error.is_some()).count();
    assert_eq!(json!(errors), expected["error_count"], "{name}");
    let tokens: u64 = whole.attempts.iter().filter_map(|attempt| attempt.usage.total_tokens).sum();
    assert_eq!(json!(tokens), expected["sample_tokens"]["total"], "{name}");
    let input: u64 = whole.attempts.iter().filter_map(|attempt| attempt.usage.input_tokens).sum();
    assert_eq!(json!(input), expected["sample_tokens"]["input"], "{name}");
    let cost: f64 = whole.attempts.iter().filter_map(|attempt| attempt.cost_usd).sum();
    assert!(close(Some(cost), expected["sample_tokens"]["cost"].as_f64().or(Some(0.0))), "{name}: {cost}");
    let retries: u32 = whole.attempts.iter().map(|attempt| attempt.retries).sum();
    assert_eq!(json!(retries), expected["retries"], "{name}");
    let mut limits = BTreeMap::new();
    for limit in whole.attempts.iter().filter_map(|attempt| attempt.limit.clone()) {
        *limits.entry(limit).or_insert(0) += 1;
    }
    assert_eq!(json!(limits), expected["limit_counts"], "{name}");
    let lines: u64 = whole.attempts.iter().map(|attempt| attempt.transcript.lines).sum();
    assert_eq!(lines, expected["messages"].as_u64().unwrap() + expected["events"].as_u64().unwrap(), "{name}");
    for theirs in expected["attempts"].as_array().into_iter().flatten() {
        let id = case_id(&theirs["id"]);
        let ours = whole.attempts.iter().find(|ours| ours.case == id && theirs["epoch"] == ours.epoch);
        check_attempt(name, theirs, ours.unwrap_or_else(|| panic!("{name}: {id} is missing")));
    }
}

fn check_attempt(name: &str, theirs: &Value, ours: &Attempt) {
    let name = format!("{name} {}", ours.case);
    assert_eq!(json!(ours.uuid), theirs["uuid"], "{name}");
    match theirs["error"].as_str() {
        Some(error) => assert!(ours.error.as_deref().unwrap().starts_with(error), "{name}"),
        None => assert_eq!(ours.error, None, "{name}"),
    }
    assert_eq!(json!(ours.limit), theirs["limit"], "{name}");
    assert_eq!(json!(ours.usage.total_tokens.unwrap_or(0)), theirs["tokens"], "{name}");
    assert_eq!(ours.duration_ms, theirs["total_time"].as_f64().map(|time| (time * 1000.0).round() as u64), "{name}");
    assert_eq!(ours.working_ms, theirs["working_time"].as_f64().map(|time| (time * 1000.0).round() as u64), "{name}");
    assert_eq!(ours.started_at, theirs["started_at"].as_str().and_then(Timestamp::parse), "{name}");
    assert_eq!(ours.transcript.lines, theirs["messages"].as_u64().unwrap() + theirs["events"].as_u64().unwrap(), "{name}");
    let mut scorers = 0;
    for (scorer, value) in theirs["scores"].as_object().unwrap() {
        scorers += 1;
        check_score(&name, scorer, value, ours);
    }
    assert_eq!(scorers == 0, ours.checks.is_empty(), "{name}");
}

fn check_score(name: &str, scorer: &str, value: &Value, ours: &Attempt) {
    let find = |wanted: &str| ours.checks.iter().find(|check| check.name == wanted).unwrap_or_else(|| panic!("{name}: no check {wanted}"));
    match value {
        Value::Object(several) => several.iter().for_each(|(key, value)| check_score(name, &format!("{scorer}.{key}"), value, ours)),
        Value::Number(number) => assert_eq!(find(scorer).value, number.as_f64(), "{name} {scorer}"),
        Value::String(word) if word == "nan" => assert_eq!((find(scorer).value, find(scorer).passed), (None, None), "{name} {scorer}"),
        Value::String(word) => assert_eq!(find(scorer).label.as_ref(), Some(word), "{name} {scorer}"),
        Value::Bool(flag) => assert_eq!(find(scorer).value, Some(f64::from(u8::from(*flag))), "{name} {scorer}"),
        _ => {
            find(scorer);
        }
    }
}

fn check_scorers(name: &str, expected: &Value, whole: &Whole) {
    for (scorer, theirs) in expected["per_scorer_samples"].as_object().unwrap() {
        let mean = theirs["mean_value_to_float"].as_f64();
        let prefix = format!("{scorer}.");
        let of = |attempt: &&Attempt| attempt.checks.iter().any(|check| check.name == *scorer || check.name.starts_with(&prefix));
        assert_eq!(json!(whole.attempts.iter().filter(of).count()), theirs["n"], "{name} {scorer}");
        if let Some(mean) = mean {
            let values: Vec<f64> = whole
                .attempts
                .iter()
                .flat_map(|attempt| &attempt.checks)
                .filter(|check| check.name == *scorer)
                .filter_map(|check| check.value)
                .collect();
            let ours = values.iter().sum::<f64>() / values.len() as f64;
            assert!(close(Some(ours), Some(mean)), "{name} {scorer}: {ours} {mean}");
        }
    }
}

/// Checks every file of a folder; gives how many there were.
fn check_folder(name: &str) -> usize {
    let mut checked = 0;
    for (file, expected) in expected(name) {
        let bytes = std::fs::read(folder(name).join(&file)).unwrap();
        if expected["status"].is_null() {
            continue;
        }
        let whole = import(bytes).unwrap_or_else(|refused| panic!("{file}: {refused}"));
        assert_eq!((&whole.complaints, &whole.broken), (&Vec::new(), &None), "{file}");
        check_header(&file, &expected, &whole.header);
        check_metrics(&file, &expected, &whole.header);
        check_attempts(&file, &expected, &whole);
        check_scorers(&file, &expected, &whole);
        check_lines(&file, &whole);
        checked += 1;
    }
    checked
}

/// Every line is one JSON object, and nothing in it leads elsewhere.
fn check_lines(name: &str, whole: &Whole) {
    for attempt in 0..whole.attempts.len() {
        for line in whole.lines(attempt) {
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{name}: {error} in {line}"));
            assert!(value.is_object(), "{name}");
            assert!(!line.contains("attachment://") && !line.contains("_refs\""), "{name}: {line}");
        }
    }
}

#[test]
fn generated_logs_are_what_inspect_says() {
    assert_eq!(check_folder("generated/inspect"), 26);
}

#[test]
fn real_logs_are_what_inspect_says() {
    assert_eq!(check_folder("real/inspect"), 24);
}

#[test]
fn an_eval_set_is_three_logs_and_two_indexes() {
    assert_eq!(check_folder("generated/inspect/evalset"), 3);
    for (file, reason) in [("logs.json", "no eval log: a list of logs"), ("eval-set.json", "no eval log: an eval set's index")] {
        let refused = import(std::fs::read(folder("generated/inspect/evalset").join(file)).unwrap()).err();
        assert_eq!(refused, Some(Refused::NotALog(reason.to_owned())));
    }
}

#[test]
fn chunked_samples_are_their_twins() {
    for name in ["sample_errors", "string_ids"] {
        let read = |prefix| import(std::fs::read(folder("generated/inspect").join(format!("{prefix}{name}.eval"))).unwrap()).unwrap();
        let (twin, chunked) = (read(""), read("chunked_"));
        assert_eq!(chunked.complaints, Vec::<String>::new());
        assert_eq!(chunked.header, twin.header);
        assert_eq!(chunked.attempts.len(), twin.attempts.len());
        for (place, ours) in chunked.attempts.iter().enumerate() {
            let other = twin.attempts.iter().position(|other| (&other.case, other.epoch) == (&ours.case, ours.epoch)).unwrap();
            let parsed = |whole: &Whole, place| -> Vec<Value> {
                whole.lines(place).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
            };
            assert_eq!(parsed(&chunked, place), parsed(&twin, other), "{name}");
            let bare = |attempt: &Attempt| Attempt { transcript: Default::default(), ..attempt.clone() };
            assert_eq!(bare(ours), bare(&twin.attempts[other]));
        }
    }
}

#[test]
fn outcomes_are_counted_by_the_deciding_scorer() {
    // passed, failed, infra, unscored, missing
    for (file, expected) in [
        ("agent_tools_message_limit.eval", [1, 2, 0, 0, 0]),
        ("agent_tools_tool_exception.eval", [1, 1, 1, 0, 0]),
        ("basic_epochs.eval", [10, 5, 0, 0, 0]),
        ("cancelled_sigint.eval", [4, 0, 0, 0, 4]),
        ("infra_error_all_samples.eval", [0, 0, 2, 0, 0]),
        ("no_score.eval", [0, 0, 0, 15, 0]),
        ("sample_errors.eval", [6, 0, 2, 0, 0]),
        ("score_types.eval", [4, 6, 0, 0, 0]),
        ("deflate_score_types.eval", [4, 6, 0, 0, 0]),
        ("scorer_error.eval", [2, 0, 1, 0, 0]),
        ("time_limit.eval", [0, 1, 0, 0, 0]),
        ("token_limit.eval", [0, 2, 0, 0, 0]),
    ] {
        let whole = import(std::fs::read(folder("generated/inspect").join(file)).unwrap()).unwrap();
        let counts = Counts::of(whole.attempts.iter().map(|attempt| attempt.outcome));
        assert_eq!([counts.passed, counts.failed, counts.infra, counts.unscored, counts.missing], expected, "{file}");
    }
}
