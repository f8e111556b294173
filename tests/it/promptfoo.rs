//! Results of promptfoo, imported by the binary and read back through the tools, against what promptfoo's own statistics say.

use serde_json::{Map, Value, json};

use super::harness::{Project, shared};

const GENERATED: &str = "formats/generated/promptfoo";
const REAL: &str = "formats/real/promptfoo";

fn expected(folder: &str) -> Map<String, Value> {
    serde_json::from_str(&std::fs::read_to_string(shared().join(folder).join("EXPECTED.json")).unwrap()).unwrap()
}

fn results(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(shared().join(GENERATED).join(name)).unwrap()).unwrap()
}

fn counts(passed: &Value, failed: &Value, infra: &Value) -> Value {
    json!({"passed": passed, "failed": failed, "infra": infra, "unscored": 0, "missing": 0})
}

/// The newest run's row.
fn newest(project: &Project) -> Value {
    project.json(&["runs-list"])["runs"][0].clone()
}

fn import(content: &Value, name: &str) -> Project {
    let project = Project::new();
    let path = project.write(name, content.to_string());
    let ran = project.run(&["import", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
    project
}

#[test]
fn generated_results_have_promptfoos_own_counts() {
    let mut checked = 0;
    for (name, truth) in expected(GENERATED) {
        let project = Project::new();
        let ran = project.run(&["import", shared().join(GENERATED).join(&name).to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
        let (run, stats) = (newest(&project), &truth["stats"]);
        assert_eq!(run["counts"], counts(&stats["successes"], &stats["failures"], &stats["errors"]), "{name}");
        let show = project.json(&["show", "--limit", "1000"]);
        assert_eq!((&show["runId"], &show["status"]), (&truth["evalId"], &json!("completed")), "{name}");
        assert_eq!(show["createdAt"], truth["metadata"]["evaluationCreatedAt"], "{name}");
        let attempts: Vec<&Value> =
            show["evals"].as_array().unwrap().iter().flat_map(|eval| eval["attempts"].as_array().unwrap()).collect();
        assert_eq!(json!(attempts.len()), truth["rows"], "{name}");
        let tokens: u64 = attempts.iter().filter_map(|attempt| attempt["usage"]["totalTokens"].as_u64()).sum();
        assert_eq!(json!(tokens), truth["stats_tokens"]["total"], "{name}");
        assert_eq!(show["arms"].as_array().unwrap().len(), truth["prompts"].as_array().unwrap().len(), "{name}");
        every_transcript_opens(&project, &name, &attempts);
        checked += 1;
    }
    assert_eq!(checked, 3);
}

/// A few attempts of a file: the prompt stands first, and every line is JSON.
fn every_transcript_opens(project: &Project, name: &str, attempts: &[&Value]) {
    for attempt in attempts.iter().step_by(25) {
        let key = attempt["attempt"].as_str().unwrap();
        let page = project.json(&["transcript", "latest", key]);
        let lines: Vec<Value> =
            page["lines"].as_array().unwrap().iter().map(|line| serde_json::from_str(line.as_str().unwrap()).unwrap()).collect();
        assert_eq!(lines[0]["role"], "user", "{name} {key}");
    }
}

#[test]
fn a_real_stub_without_a_row_makes_no_run() {
    let mut checked = 0;
    for (name, truth) in expected(REAL) {
        assert_eq!(truth["rows"], 0);
        let project = Project::new();
        let ran = project.run(&["import", shared().join(REAL).join(&name).to_str().unwrap()]);
        assert!(format!("{}{}", ran.out, ran.err).contains("without a row"), "{name}: {}{}", ran.out, ran.err);
        assert_eq!(project.json(&["runs-list"])["total"], 0, "{name}");
        checked += 1;
    }
    assert_eq!(checked, 1);
}

#[test]
fn one_flipped_row_under_another_name_moves_one_count() {
    let mut changed = results("matrix.json");
    let rows = changed["results"]["results"].as_array_mut().unwrap();
    let row = rows.iter_mut().find(|row| row["failureReason"] == 1).unwrap();
    (row["success"], row["score"], row["failureReason"], row["error"]) = (json!(true), json!(1), json!(0), Value::Null);
    let stats = &expected(GENERATED)["matrix.json"]["stats"];
    let more = |key: &str, by: i64| json!(stats[key].as_i64().unwrap() + by);
    let run = newest(&import(&changed, "other name.json"));
    assert_eq!(run["counts"], counts(&more("successes", 1), &more("failures", -1), &stats["errors"]));
}

#[test]
fn an_export_again_is_the_same_run_and_another_evaluation_is_another() {
    let project = import(&results("repeat3.json"), "a.json");
    let mut again = results("repeat3.json");
    again["metadata"]["exportedAt"] = json!("2027-01-01T00:00:00Z");
    let mut next = results("repeat3.json");
    next["evalId"] = json!("eval-zzz-2026-12-01T00:00:00");
    next["metadata"]["evaluationCreatedAt"] = json!("2026-12-01T00:00:00.000Z");
    for row in next["results"]["results"].as_array_mut().unwrap() {
        (row["success"], row["score"], row["failureReason"]) = (json!(false), json!(0), json!(1));
    }
    for (name, content) in [("again.json", again), ("next.json", next)] {
        let path = project.write(name, content.to_string());
        let ran = project.run(&["import", path.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
    let list = project.json(&["runs-list"]);
    assert_eq!((&list["total"], &list["runs"][0]["counts"]), (&json!(2), &counts(&json!(0), &json!(6), &json!(0))));
    // The cases of the two runs are the same, so they can be held against each other.
    let compared = project.json(&["compare", "--by", "case"]);
    let rows = compared["rows"].as_array().unwrap();
    let cases: Vec<&str> = rows.iter().map(|row| row["case"].as_str().unwrap()).collect();
    assert_eq!((cases.len(), rows.iter().filter(|row| row["status"] == "added").count()), (2, 0), "{compared}");
}

#[test]
fn failures_say_which_assertion_and_errors_are_none() {
    let project = import(&results("matrix.json"), "matrix.json");
    let failures = project.json(&["failures", "--limit", "100"]);
    let cells = failures["cells"].as_array().unwrap();
    let failed: u64 = cells.iter().map(|cell| cell["counts"]["failed"].as_u64().unwrap()).sum();
    let infra: u64 = cells.iter().map(|cell| cell["counts"]["infra"].as_u64().unwrap()).sum();
    let stats = &expected(GENERATED)["matrix.json"]["stats"];
    assert_eq!((json!(failed), json!(infra)), (stats["failures"].clone(), stats["errors"].clone()));
    let text = failures.to_string();
    assert!(text.contains("Expected output to contain") && text.contains("API error: 500"));
}
