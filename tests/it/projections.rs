//! `list_eval_run_projections` over the binary: its schemas as served, its other name, its pages over two lives of a server.
//!
//! Promises: what is compared with the document is the document's own text.
//! Does not: repeat what the tool's own tests say of pages and cursors.

use serde_json::{Value, json};

use super::{
    harness::{Project, fixtures},
    http::{service::Service, wire::Request},
    mcp::Server,
};

const NAME: &str = "list_eval_run_projections";
const ALIAS: &str = "veryfront__list_eval_run_projections";
const ALONE: &[&str] = &["--toolsets", "projections"];

fn server(project: &Project, flags: &[&str]) -> Server {
    Server::initialize_with(project, "2025-11-25", flags).0
}

fn list(server: &mut Server) -> Vec<Value> {
    let list = server.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    list["result"]["tools"].as_array().unwrap().clone()
}

/// The input and output schema of the document.
fn documents() -> Vec<Value> {
    let text = std::fs::read_to_string(fixtures().join("projections/schemas.md")).unwrap();
    let blocks = text.split("```json").skip(1).map(|block| block.split_once('\n').unwrap().1.split_once("```").unwrap().0);
    blocks.map(|block| serde_json::from_str(block).unwrap()).collect()
}

/// An evaluation of the demo, and how many runs hold it.
fn evaluation(project: &Project) -> (String, usize) {
    let runs = project.json(&["runs-list", "--limit", "100"]);
    let ids: Vec<&Value> = runs["runs"].as_array().unwrap().iter().flat_map(|run| run["evaluations"].as_array().unwrap()).collect();
    let most = ids.iter().max_by_key(|id| ids.iter().filter(|other| other == id).count()).unwrap();
    (most.as_str().unwrap().to_owned(), ids.iter().filter(|other| *other == most).count())
}

#[test]
fn the_schemas_are_served_as_the_document_has_them() {
    let project = Project::demo();
    let tools = list(&mut server(&project, ALONE));
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, [NAME]);
    assert_eq!(documents(), [tools[0]["inputSchema"].clone(), tools[0]["outputSchema"].clone()]);
    // Not in the usual list, which an agent pays for; and what is not offered is not there.
    let mut usual = server(&project, &[]);
    assert!(list(&mut usual).iter().all(|tool| tool["name"] != NAME && tool["name"] != ALIAS));
    assert_eq!(usual.call(NAME, json!({"eval_id": "e"}))["error"]["code"], -32602);
    // `serve` offers it, and says so to those who bring nothing.
    let service = Service::serve("");
    let listed = service.ask(&Request::legacy(service.port, "tools/list", &json!({}))).json();
    let served = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == NAME).unwrap().clone();
    assert_eq!((&served["inputSchema"], &served["outputSchema"]), (&tools[0]["inputSchema"], &tools[0]["outputSchema"]));
}

#[test]
fn both_names_page_over_two_lives_of_the_server() {
    let project = Project::demo();
    let (evaluation, runs) = evaluation(&project);
    assert!(runs > 2, "{evaluation} has {runs} runs");
    let own = json!({"eval_id": evaluation, "limit": 2});
    let mut first_life = server(&project, ALONE);
    let first = first_life.call(NAME, own.clone())["result"]["structuredContent"].clone();
    assert_eq!(first_life.call(ALIAS, own.clone())["result"]["structuredContent"], first);
    assert_eq!(first["data"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!(first["data"][0]["eval_id"], json!(evaluation));
    first_life.end(None);
    let mut second_life = server(&project, ALONE);
    let mut page = first.clone();
    let mut seen = first["data"].as_array().unwrap().clone();
    while let Some(cursor) = page["page_info"]["next"].as_str().map(str::to_owned) {
        let next = json!({"eval_id": evaluation, "limit": 2, "cursor": cursor});
        page = second_life.call(ALIAS, next)["result"]["structuredContent"].clone();
        assert_eq!(page["page_info"]["self"], json!(cursor));
        seen.extend(page["data"].as_array().unwrap().clone());
    }
    assert_eq!(seen.len(), runs);
    // A person runs the same.
    let whole = project.json(&["list-eval-run-projections", &evaluation, "--limit", "100", "--sort-by", "created_at"]);
    assert_eq!(whole["data"].as_array().unwrap(), &seen);
    // The same name in another project is another list, though it holds the same runs.
    let elsewhere = Project::demo();
    let cursor = first["page_info"]["next"].clone();
    let refused = server(&elsewhere, ALONE).call(NAME, json!({"eval_id": evaluation, "limit": 2, "cursor": cursor}));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(refused["result"]["isError"] == json!(true) && text.starts_with("invalid cursor: "), "{refused}");
}

#[test]
fn what_is_not_there_or_not_taken_is_a_result_that_says_so() {
    let project = Project::demo();
    let (evaluation, _) = evaluation(&project);
    let mut server = server(&project, ALONE);
    for (arguments, said) in [
        (json!({"eval_id": "nothing"}), "not found: no run holds an eval \"nothing\""),
        (json!({"eval_id": evaluation, "project_reference": "acme"}), "argument project_reference: there is no project \"acme\""),
        (json!({"eval_id": evaluation, "cursor": "x"}), "invalid cursor: "),
        (json!({"eval_id": evaluation, "evalId": "x"}), "unknown argument `evalId`"),
        (json!({"eval_id": evaluation, "limit": 101}), "argument limit: 101 is not a whole number from 1 to 100"),
    ] {
        let answer = server.call(ALIAS, arguments.clone());
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(answer["result"]["isError"] == json!(true) && text.starts_with(said), "{arguments}: {answer}");
    }
    assert!(server.call(NAME, json!({"eval_id": evaluation, "project_reference": "local"}))["result"]["isError"] == json!(false));
}

/// The record that uses every field: where each field of the row comes from (decision 76).
#[test]
fn a_record_is_told_as_a_row() {
    let project = Project::new();
    let text = std::fs::read_to_string(fixtures().join("record/run.json")).unwrap();
    project.write(".history/a/run.json", &text);
    project.write(".history/a/transcripts/base.jsonl", "{\"role\":\"user\"}\n");
    let answer = server(&project, ALONE).call(NAME, json!({"eval_id": "sum"}))["result"]["structuredContent"].clone();
    let row = &answer["data"][0];
    let summary = &row["summary"];
    assert_eq!((&row["target"], &row["metadata"]), (&json!("skilled"), &json!({"job": 7, "arms": ["base"]})), "{row}");
    assert_eq!(row["source"], json!({"file_path": "evals/sum.py", "export_name": "sum"}));
    assert_eq!((&row["report_path"], &row["error"], &row["status"]), (&json!("reports/sweep.html"), &Value::Null, &json!("completed")));
    assert_eq!(summary["counts"], json!({"passed": 1, "failed": 1, "infra": 1, "unscored": 0, "missing": 1}));
    assert_eq!((&summary["records"], &summary["pass_rate"]), (&json!(3), &json!(0.5)));
    assert!(summary["metrics"].as_array().unwrap().iter().all(|metric| metric["cases"].as_u64() > Some(0)), "{summary}");
    assert_eq!((&row["created_at"], &row["started_at"]), (&json!("2026-03-01T10:00:00Z"), &json!("2026-03-01T10:00:01Z")));
    // Over a public server why it failed, its report and its pairs are not told (decision 35); names and numbers are.
    let service = Service::with(project, "", &["--public", "--toolsets", "projections"]);
    let public = service.call(NAME, &json!({"eval_id": "sum"}))["structuredContent"]["data"][0].clone();
    assert_eq!((&public["report_path"], &public["metadata"]), (&Value::Null, &json!({"arms": ["base"]})));
    assert_eq!(&public["summary"], summary);
}
