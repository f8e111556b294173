//! Questions in SQL through the real binary: the sandbox from outside, and what a bomb costs the others.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    harness::{Project, fixtures},
    logs::Log,
};

fn project() -> Project {
    let project = Project::new();
    Log::new("r1", "sum", "2026-11-01T09:00:00+00:00").sample(1, 1, "C").sample(2, 1, "I").put(&project);
    project
}

#[test]
fn a_question_is_answered_and_a_wrong_one_explained() {
    let project = project();
    let answer = project.json(&["query", "SELECT outcome, count(*) AS n FROM attempts GROUP BY outcome ORDER BY outcome"]);
    assert_eq!(answer, json!({"columns": ["outcome", "n"], "rows": [["fail", 1], ["pass", 1]], "truncated": false}));
    let answer = project.json(&["query", "SELECT case_id FROM attempts", "--limit", "1"]);
    assert_eq!((&answer["rows"], &answer["truncated"]), (&json!([["1"]]), &json!(true)));
    assert_eq!(project.json(&["query", "evaluations"])["rows"][0][0], "sum");
    let ran = project.run(&["query", "SELECT outcom FROM attempts"]);
    assert_eq!((ran.code, ran.err.contains("did you mean outcome?")), (1, true), "{}", ran.err);
}

#[test]
fn the_schema_is_what_may_be_asked() {
    let project = project();
    let schema = project.json(&["query-schema"]);
    for object in schema["objects"].as_array().unwrap() {
        let columns: Vec<&str> = object["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let sql = format!("SELECT {} FROM {}", quoted.join(", "), object["name"].as_str().unwrap());
        assert_eq!(project.json(&["query", &sql])["columns"], json!(columns), "{sql}");
    }
    let names: Vec<&str> = schema["objects"].as_array().unwrap().iter().map(|object| object["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"attempts") && !names.iter().any(|name| name.ends_with("_m") || name.starts_with("sqlite") || *name == "files")
    );
}

#[test]
fn what_is_stored_cannot_be_changed_or_left() {
    let project = project();
    let secret = project.write("secret.txt", "outside");
    let ways = [
        "DELETE FROM attempts_m".to_owned(),
        "SELECT 1; DROP TABLE runs_m".to_owned(),
        format!("ATTACH '{}' AS other", secret.display()),
        format!("SELECT readfile('{}')", secret.display()),
        "PRAGMA query_only = off".to_owned(),
        "WITH runs AS (SELECT header FROM logs_m) SELECT * FROM runs".to_owned(),
    ];
    for way in ways {
        let ran = project.run(&["query", &way]);
        assert_eq!(ran.code, 1, "{way}: {}{}", ran.out, ran.err);
        assert!(!ran.err.contains("outside") && !ran.err.contains("history.db"), "{way}: {}", ran.err);
    }
    assert_eq!(project.json(&["query", "SELECT count(*) FROM attempts"])["rows"], json!([[2]]));
}

#[test]
fn a_bomb_ends_at_its_deadline_and_in_its_memory() {
    let project = project();
    project.write(".runlore/config.toml", "[query]\ndeadline_ms = 300\nmemory_bytes = 8388608\n");
    let begun = Instant::now();
    let ran = project.run(&["query", "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"]);
    assert!(ran.err.contains("stopped after 300 ms"), "{}", ran.err);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let sorted = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000000) SELECT x FROM n ORDER BY hex(x) || 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' LIMIT 1 OFFSET 999999";
    project.write(".runlore/config.toml", "[query]\ndeadline_ms = 60000\nmemory_bytes = 8388608\n");
    let ran = project.run(&["query", sorted]);
    assert!(ran.err.contains("needs more than 8388608 bytes of memory"), "{}", ran.err);
}

/// Each view as a verb over the run record that uses every field: its columns are the schema's, and `where` narrows it.
#[test]
fn every_view_is_a_verb() {
    let project = Project::new();
    let record = std::fs::read(fixtures().join("record/run.json")).unwrap();
    let id = serde_json::from_slice::<serde_json::Value>(&record).unwrap()["runId"].as_str().unwrap().to_owned();
    project.write(&format!(".history/{id}/run.json"), &record);
    project.write(&format!(".history/{id}/transcripts/base.jsonl"), "{\"role\": \"user\", \"content\": \"hi\"}\n");
    let schema = project.json(&["query-schema"]);
    let views: Vec<&serde_json::Value> = schema["objects"].as_array().unwrap().iter().filter(|object| object["type"] == "view").collect();
    assert_eq!(views.len(), 18);
    for view in views {
        let verb = format!("query-{}", view["name"].as_str().unwrap().replace('_', "-"));
        let columns: Vec<&serde_json::Value> = view["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
        let answer = project.json(&[&verb]);
        assert_eq!(answer["columns"], json!(columns), "{verb}");
        assert!(!view["about"].as_str().unwrap().is_empty(), "{verb}");
        let first = columns[0].as_str().unwrap();
        let none = project.json(&[&verb, "--where", &format!("{first}=no such thing")]);
        assert_eq!((&none["rows"], &none["truncated"]), (&json!([]), &json!(false)), "{verb}");
        let ran = project.run(&[&verb, "--where", "nothing=1"]);
        assert_eq!((ran.code, ran.err.contains("has no column nothing")), (1, true), "{verb}: {}", ran.err);
    }
    let answers = project.json(&["query-attempt-answers", "--where", &format!("run_id={id}")]);
    assert!(!answers["rows"].as_array().unwrap().is_empty(), "{answers}");
}
