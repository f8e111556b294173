//! What promptfoo's own statistics say of real and generated results, and what the importer makes of them.

mod crafted;
mod hostile;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Cursor,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    domain::{
        attempt::Attempt,
        log::{LogHeader, RunStatus},
        outcome::{Counts, Outcome},
        time::Timestamp,
    },
    importers::{
        Limits, Refused, open,
        trial::{Whole, Written},
    },
    telemetry::redaction::Redactor,
};

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/formats");

pub(super) const MODIFIED: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(super) fn import_with(bytes: impl Into<Vec<u8>>, limits: &Limits, written: &Written) -> Result<Whole, Refused> {
    let redactor = Redactor::patterns_only();
    let opened = open(Box::new(Cursor::new(bytes.into())), written, limits, &redactor)?;
    let whole = Whole::read(opened);
    assert_eq!(whole.broken, None);
    Ok(whole)
}

pub(super) fn import(bytes: impl Into<Vec<u8>>) -> Result<Whole, Refused> {
    import_with(bytes, &Limits::default(), &Written(Some(MODIFIED)))
}

fn folder(name: &str) -> PathBuf {
    Path::new(FORMATS).join(name)
}

pub(super) fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder(name)).unwrap()
}

/// Every file of a folder that promptfoo was asked about, and what it said.
fn expected(name: &str) -> Vec<(String, Value)> {
    let json: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(folder(name).join("EXPECTED.json")).unwrap()).unwrap();
    json.into_iter().collect()
}

fn check_header(name: &str, theirs: &Value, header: &LogHeader) {
    assert_eq!((header.format.as_str(), header.status), ("promptfoo", RunStatus::Completed), "{name}");
    assert_eq!((json!(header.log_id), json!(header.run_key)), (theirs["evalId"].clone(), theirs["evalId"].clone()), "{name}");
    let created = theirs["metadata"]["evaluationCreatedAt"].as_str().unwrap();
    assert_eq!(header.created_at, Timestamp::parse(created).unwrap(), "{name}");
    let lasted = theirs["stats"]["durationMs"].as_i64().unwrap();
    assert_eq!(header.completed_at, Some(header.created_at.plus_millis(lasted)), "{name}");
    assert_eq!(header.metadata["promptfooVersion"], theirs["metadata"]["promptfooVersion"], "{name}");
    for stat in ["successes", "failures", "errors"] {
        let ours = header.metrics.iter().find(|metric| metric.metric == stat).unwrap();
        assert_eq!(ours.value, theirs["stats"][stat].as_f64(), "{name} {stat}");
    }
}

/// Each column's own counts against ours. A column is an arm in these files.
fn check_columns(name: &str, theirs: &Value, whole: &Whole) {
    let mut columns: Vec<(u64, u64, u64)> = theirs["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| ["testPassCount", "testFailCount", "testErrorCount"].map(|key| column[key].as_u64().unwrap()).into())
        .collect();
    let mut arms = BTreeMap::<&str, Counts>::new();
    whole.attempts.iter().for_each(|attempt| arms.entry(&attempt.arm).or_default().add(attempt.outcome));
    let known: BTreeSet<&str> = whole.header.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(arms.keys().copied().collect::<BTreeSet<_>>(), known, "{name}");
    let mut ours: Vec<(u64, u64, u64)> =
        arms.values().map(|counts| (counts.passed.into(), counts.failed.into(), counts.infra.into())).collect();
    columns.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, columns, "{name}");
}

fn check_attempts(name: &str, theirs: &Value, whole: &Whole) {
    let number = |key: &str| u32::try_from(theirs["stats"][key].as_u64().unwrap_or(0)).unwrap();
    let counts = Counts { passed: number("successes"), failed: number("failures"), infra: number("errors"), unscored: 0, missing: 0 };
    assert_eq!((whole.counts(), json!(whole.attempts.len())), (counts, theirs["rows"].clone()), "{name}");
    let tokens: u64 = whole.attempts.iter().filter_map(|attempt| attempt.usage.total_tokens).sum();
    assert_eq!(json!(tokens), theirs["stats_tokens"]["total"], "{name}");
    let cost: f64 = whole.attempts.iter().filter_map(|attempt| attempt.cost_usd).sum();
    assert!((cost - theirs["sum_cost"].as_f64().unwrap()).abs() < 1e-12, "{name}: {cost}");
    let millis: u64 = whole.attempts.iter().filter_map(|attempt| attempt.duration_ms).sum();
    assert_eq!(json!(millis), theirs["sum_latencyMs"], "{name}");
    let scores: f64 = whole.attempts.iter().filter_map(|attempt| attempt.score).sum();
    let mean = scores / whole.attempts.len() as f64;
    assert!((mean - theirs["mean_score"].as_f64().unwrap()).abs() < 1e-12, "{name}: {mean}");
    let keys: BTreeSet<(&str, &str, u32)> =
        whole.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.arm.as_str(), attempt.epoch)).collect();
    assert_eq!(keys.len(), whole.attempts.len(), "{name}");
    for attempt in &whole.attempts {
        assert_eq!(attempt.error.is_some(), attempt.outcome == Outcome::InfraError, "{name} {}", attempt.case);
        assert!(attempt.transcript.messages > 0 && attempt.uuid.is_some(), "{name} {}", attempt.case);
    }
}

#[test]
fn results_are_what_promptfoo_says_they_are() {
    let mut seen = 0;
    for (name, theirs) in expected("generated/promptfoo") {
        let whole = import(file(&format!("generated/promptfoo/{name}"))).unwrap();
        assert_eq!(whole.complaints, Vec::<String>::new(), "{name}");
        check_header(&name, &theirs, &whole.header);
        check_attempts(&name, &theirs, &whole);
        check_columns(&name, &theirs, &whole);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_stub_without_a_row_is_no_log() {
    for (name, theirs) in expected("real/promptfoo") {
        assert_eq!(theirs["rows"], 0, "{name}");
        let refused = import(file(&format!("real/promptfoo/{name}"))).err().unwrap();
        assert!(matches!(refused, Refused::NotALog(why) if why.contains("without a row")), "{name}");
    }
}

#[test]
fn a_matrix_has_its_tests_as_cases_and_its_columns_as_arms() {
    let whole = import(file("generated/promptfoo/matrix.json")).unwrap();
    let cases: BTreeSet<&str> = whole.attempts.iter().map(|attempt| attempt.case.as_str()).collect();
    assert_eq!(
        cases.into_iter().collect::<Vec<_>>(),
        [
            "api error",
            "assert-set",
            "assertion throws",
            "empty output",
            "fail case",
            "multi var expansion (mode=ok, q=one)",
            "multi var expansion (mode=ok, q=two)",
            "no asserts",
            "object output",
            "partial weighted with threshold",
            "pass case",
            "score above one",
            "throws",
        ]
    );
    let names: Vec<&str> = whole.header.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "echo+prompt=Long prompt: {{q}} ({{mode}})",
            "echo+prompt=short: p1.txt: Short: {{q}}",
            "mock-a+prompt=Long prompt: {{q}} ({{mode}})",
            "mock-a+prompt=short: p1.txt: Short: {{q}}",
            "mock-b+prompt=Long prompt: {{q}} ({{mode}})",
            "mock-b+prompt=short: p1.txt: Short: {{q}}",
        ]
    );
    let factors = &whole.header.arms[2].factors;
    for (name, level) in [
        ("model", "file://provider.js"),
        ("harness", "promptfoo"),
        ("temperature", "0.1"),
        ("package.promptfoo", "0.121.20"),
        ("prompt", "Long prompt: {{q}} ({{mode}})"),
        ("prompt_id", "1b0477d6d273"),
    ] {
        assert_eq!(factors.get(name).map(String::as_str), Some(level), "{name}");
    }
    assert_eq!(whole.header.tags, ["team=qa", "env=ci"]);
    assert_eq!(whole.header.evaluations[0].id, "offline mock matrix");
    assert_eq!(whole.header.evaluations[0].dataset_cases, Some(13));
    // Paths of the machine stand in the configuration, the prompts and the stacks.
    let mut shown = format!("{:?}", whole.header);
    whole.attempts.iter().for_each(|attempt| shown.push_str(&format!("{:?} {:?}", attempt.error, attempt.checks)));
    assert!(!shown.contains("/srv/example") && shown.contains("provider exploded"));
}

#[test]
fn the_traps_of_the_matrix() {
    let whole = import(file("generated/promptfoo/matrix.json")).unwrap();
    let of = |case: &str| {
        let found = whole.attempts.iter().find(|attempt| attempt.case == case && attempt.arm.starts_with("mock-a+prompt=short"));
        found.unwrap_or_else(|| panic!("no {case}"))
    };
    let ended = |case: &str| (of(case).outcome, of(case).score);
    assert_eq!(ended("score above one"), (Outcome::Pass, Some(7.5)));
    assert_eq!(ended("partial weighted with threshold"), (Outcome::Pass, Some(0.5)));
    assert_eq!(ended("no asserts"), (Outcome::Pass, Some(1.0)));
    assert_eq!(ended("assertion throws").0, Outcome::Fail);
    assert_eq!(ended("api error"), (Outcome::InfraError, None));
    assert!(of("api error").error.as_deref().unwrap().starts_with("API error: 500"));
    let names = |case: &str| of(case).checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names("assert-set"), ["either", "contains", "contains 2"]);
    assert_eq!(names("pass case"), ["correctness", "brevity"]);
    assert_eq!(of("object output").output.as_deref(), Some(r#"{"answer":42,"list":[1,2]}"#));
    assert_eq!(of("empty output").output, None);
    let half = whole.attempts.iter().find(|attempt| attempt.case == "pass case" && attempt.arm.starts_with("echo")).unwrap();
    assert_eq!((half.outcome, half.score, half.error.as_deref()), (Outcome::Fail, Some(2.0 / 3.0), None));
}

#[test]
fn repeats_are_epochs_of_one_case() {
    let whole = import(file("generated/promptfoo/repeat3.json")).unwrap();
    let mut tries: Vec<(&str, u32, Outcome)> =
        whole.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.epoch, attempt.outcome)).collect();
    tries.sort_unstable();
    let expected = [
        ("always", 1, Outcome::Pass),
        ("always", 2, Outcome::Pass),
        ("always", 3, Outcome::Pass),
        ("mode=flaky, q=capital?", 1, Outcome::Pass),
        ("mode=flaky, q=capital?", 2, Outcome::Fail),
        ("mode=flaky, q=capital?", 3, Outcome::Pass),
    ];
    assert_eq!(tries, expected);
    assert_eq!(whole.header.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["mock-a"]);
    assert_eq!(whole.header.evaluations[0].settings.get("repeat").map(String::as_str), Some("3"));
    let twice = import(file("generated/promptfoo/exported_latest.json")).unwrap();
    let tries: Vec<(&str, u32)> = twice.attempts.iter().map(|attempt| (attempt.case.as_str(), attempt.epoch)).collect();
    assert_eq!((tries, twice.header.evaluations[0].id.as_str()), (vec![("q=dup", 1), ("q=dup", 2)], "promptfoo"));
}

#[test]
fn rows_alone_are_the_same_attempts() {
    let envelope: Value = serde_json::from_slice(&file("generated/promptfoo/matrix.json")).unwrap();
    let rows: Vec<String> = envelope["results"]["results"].as_array().unwrap().iter().map(Value::to_string).collect();
    let lines = rows.join("\n");
    let (whole, bare) = (import(file("generated/promptfoo/matrix.json")).unwrap(), import(lines.clone()).unwrap());
    assert_eq!(whole.attempts.len(), bare.attempts.len());
    for (ours, theirs) in whole.attempts.iter().zip(&bare.attempts) {
        let key = |attempt: &Attempt| (attempt.case.clone(), attempt.arm.clone(), attempt.epoch, attempt.outcome, attempt.checks.clone());
        assert_eq!(key(ours), key(theirs));
        assert_eq!(ours.transcript.lines, theirs.transcript.lines);
    }
    assert_eq!((bare.header.created_at, bare.header.started_at), (MODIFIED, None));
    assert_eq!(bare.header.evaluations[0].dataset_digest, whole.header.evaluations[0].dataset_digest);
    assert!(bare.header.log_id.starts_with("sha256-") && bare.header.log_id == bare.header.run_key);
    // The id is the bytes'.
    assert_ne!(import(format!("{lines}\n")).unwrap().header.log_id, bare.header.log_id);
    // A file whose time nobody knows cannot be placed.
    let refused = import_with(lines.clone(), &Limits::default(), &Written(None)).err().unwrap();
    assert!(matches!(refused, Refused::Broken(why) if why.contains("say no time")));
    // A run that was killed leaves half a row.
    let cut = import(&lines.as_bytes()[..lines.len() - 40]).unwrap();
    assert_eq!((cut.attempts.len(), cut.complaints.len()), (77, 1));
    assert!(cut.complaints[0].contains("cut off"), "{:?}", cut.complaints);
}

#[test]
fn a_flipped_row_moves_one_count() {
    let mut envelope: Value = serde_json::from_slice(&file("generated/promptfoo/matrix.json")).unwrap();
    let before = import(envelope.to_string()).unwrap().counts();
    let rows = envelope["results"]["results"].as_array_mut().unwrap();
    let row = rows.iter_mut().find(|row| row["success"] == true).unwrap();
    (row["success"], row["score"], row["failureReason"]) = (json!(false), json!(0), json!(1));
    let after = import(envelope.to_string()).unwrap().counts();
    assert_eq!((after.passed + 1, after.failed), (before.passed, before.failed + 1));
    assert_eq!((after.infra, after.unscored, after.missing), (before.infra, before.unscored, before.missing));
}
