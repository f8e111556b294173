//! Every log of ../shared/formats, imported by the binary and read back through the tools, against what Inspect's own reader says.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Map, Value, json};

use super::harness::{Project, shared};

fn expected(folder: &str) -> Map<String, Value> {
    let text = std::fs::read_to_string(shared().join(folder).join("EXPECTED.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What the tool should say of a case's id.
fn case_id(attempt: &Value) -> String {
    match (&attempt["id"], attempt["id_type"].as_str()) {
        (Value::String(text), _) if text.parse::<f64>().is_ok() => format!("\"{text}\""),
        (Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    }
}

fn word(status: &str) -> &str {
    match status {
        "success" => "completed",
        "error" => "failed",
        "started" => "running",
        other => other,
    }
}

fn import(folder: &str, name: &str) -> (Project, Value) {
    let project = Project::new();
    let path = shared().join(folder).join(name);
    let ran = project.run(&["import", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
    let show = project.json(&["show", "--limit", "1000"]);
    (project, show)
}

/// Attempts by case and ordinal. Within one log n follows the epoch.
fn attempts(show: &Value) -> BTreeMap<(String, u64), &Value> {
    let evals = show["evals"].as_array().unwrap();
    let all = evals.iter().flat_map(|eval| eval["attempts"].as_array().unwrap());
    all.map(|attempt| ((attempt["case"].as_str().unwrap().to_owned(), attempt["n"].as_u64().unwrap()), attempt)).collect()
}

fn hold_against(name: &str, show: &Value, truth: &Value) {
    assert_eq!(show["status"], word(truth["status"].as_str().unwrap()), "{name}");
    assert_eq!(show["runId"], truth["run_id"], "{name}");
    assert_eq!(show["createdAt"], truth["created"].as_str().unwrap().replace("+00:00", "Z"), "{name}");
    assert_eq!(show["git"]["sha"], truth["git"]["commit"], "{name}");
    let found = attempts(show);
    let wanted = truth["attempts"].as_array().unwrap();
    assert_eq!(found.len(), wanted.len(), "{name}");
    let cancelled = |attempt: &Value| attempt["error"].as_str().is_some_and(|error| error.starts_with("CancelledError("));
    for attempt in wanted {
        // n is the place of the epoch among the recorded ones of the case.
        let n = wanted.iter().filter(|other| other["id"] == attempt["id"] && other["epoch"].as_u64() <= attempt["epoch"].as_u64()).count()
            as u64;
        let key = (case_id(attempt), n);
        let row = found.get(&key).unwrap_or_else(|| panic!("{name}: no {key:?} among {:?}", found.keys()));
        let outcome = row["outcome"].as_str().unwrap();
        assert_eq!(attempt["error"].is_string() && !cancelled(attempt), outcome == "infra_error", "{name} {key:?}: {outcome}");
        assert_eq!(cancelled(attempt), outcome == "cancelled", "{name} {key:?}");
        assert_eq!(row["limit"], attempt["limit"], "{name} {key:?}");
        assert_eq!(row["usage"]["totalTokens"].as_u64().unwrap_or(0), attempt["tokens"].as_u64().unwrap_or(0), "{name} {key:?}");
        scores(name, row, &attempt["scores"]);
    }
    let count = |outcome: &str| found.values().filter(|attempt| attempt["outcome"] == outcome).count() as u64;
    assert_eq!(count("infra_error") + count("cancelled"), truth["error_count"].as_u64().unwrap(), "{name}");
}

/// Each scorer's value as number or label; one of several values as one check a key.
fn scores(name: &str, row: &Value, wanted: &Value) {
    let checks: BTreeMap<&str, &Value> =
        row["checks"].as_array().unwrap().iter().map(|check| (check["name"].as_str().unwrap(), check)).collect();
    for (scorer, value) in wanted.as_object().unwrap() {
        match value {
            Value::Object(keys) => keys.iter().for_each(|(key, value)| score(name, checks.get(format!("{scorer}.{key}").as_str()), value)),
            value => score(name, checks.get(scorer.as_str()), value),
        }
    }
}

fn score(name: &str, check: Option<&&Value>, wanted: &Value) {
    let check = check.unwrap_or_else(|| panic!("{name}: no check for {wanted}"));
    match wanted {
        Value::String(nan) if nan == "nan" => assert_eq!((&check["value"], &check["passed"]), (&Value::Null, &Value::Null), "{name}"),
        Value::String(text) => assert_eq!(check["label"], *text, "{name}"),
        Value::Number(number) => assert_eq!(check["value"].as_f64(), number.as_f64(), "{name}"),
        Value::Bool(passed) => assert_eq!(check["passed"], *passed, "{name}"),
        _ => {}
    }
}

fn every_file_of(folder: &str) -> usize {
    let mut checked = 0;
    for (name, truth) in expected(folder) {
        if truth.get("reader_error").is_some() || truth["attempts"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let (_project, show) = import(folder, &name);
        hold_against(&name, &show, &truth);
        checked += 1;
    }
    checked
}

#[test]
fn real_inspect_logs() {
    assert_eq!(every_file_of("formats/real/inspect"), REAL);
}

#[test]
fn generated_inspect_logs() {
    assert_eq!(every_file_of("formats/generated/inspect"), GENERATED);
}

/// Files with attempts in the folders' EXPECTED.json, so that a file that is silently passed over is noticed.
const REAL: usize = 20;
const GENERATED: usize = 24;

#[test]
fn chunked_logs_equal_their_twins() {
    for name in ["sample_errors.eval", "string_ids.eval"] {
        let (_a, whole) = import("formats/generated/inspect", name);
        let (_b, chunked) = import("formats/generated/inspect", &format!("chunked_{name}"));
        assert_eq!(whole["evals"][0]["attempts"], chunked["evals"][0]["attempts"], "{name}");
    }
}

#[test]
fn a_retried_eval_set_is_one_run_and_its_copies_count_once() {
    let project = Project::new();
    let folder = shared().join("formats/generated/inspect/evalset");
    let ran = project.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let list = project.json(&["runs-list"]);
    assert_eq!(
        (&list["total"], &list["runs"][0]["status"], &list["runs"][0]["counts"]),
        (&json!(1), &json!("completed"), &json!({"passed": 4, "failed": 0, "infra": 0, "unscored": 0, "missing": 0}))
    );
    assert_eq!(list["runs"][0]["round"], "9m6cZDkWxFCNJECap3TURc");
}

#[test]
fn a_directory_of_everything_is_imported_once() {
    let project = Project::new();
    let folder = shared().join("formats/generated/inspect");
    let first = project.run(&["import", folder.to_str().unwrap()]);
    let before = project.json(&["runs-list", "--limit", "100"]);
    let second = project.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(project.json(&["runs-list", "--limit", "100"]), before, "{}\n{}", first.out, second.out);
    assert!(Path::new(&folder).exists() && before["total"].as_u64() > Some(15));
}

#[test]
fn transcripts_are_whole() {
    let (project, show) = import("formats/generated/inspect", "agent_tools_message_limit.eval");
    for attempt in show["evals"][0]["attempts"].as_array().unwrap() {
        let page = project.json(&["transcript", "latest", attempt["attempt"].as_str().unwrap(), "--limit", "1000"]);
        let text = page["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>();
        assert!(text.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
        let whole = text.join("\n");
        assert!(!whole.contains("attachment://") && !whole.contains("input_refs"), "{attempt}");
    }
}
