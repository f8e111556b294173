//! The workspace's reads over HTTP: with a key, for several organizations; and the decision contract by resource and by URL.

use serde_json::{Value, json};

use super::{
    service::Service,
    town::Town,
    wire::{Answer, Request},
};
use crate::harness::Project;

const CONTRACT: &str = "/.well-known/agent-skills/evaluate-ai-change/assets/decision-contract.schema.json";
const HERE: &str = "/mcp/acme/main";

fn result(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let result = answer.json()["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"].clone()
}

fn made(town: &Town, key: &str, tool: &str, arguments: &Value) -> Value {
    let asked = result(&town.ask(key, HERE, tool, arguments));
    let mut again = arguments.clone();
    again["approval"] = asked["approval"]["handle"].clone();
    result(&town.ask(key, HERE, tool, &again))["result"].clone()
}

#[test]
fn each_read_answers_a_key_with_its_scope() {
    let town = Town::start("");
    let admin = town.key("acme", "admin", &["*"]);
    let arguments =
        json!({"id": "returns", "name": "Returns", "description": "Whether quokkas are given back", "cases": [{"id": "a", "input": "x"}]});
    made(&town, &admin, "evaluations_create", &arguments);
    let ask = |tool: &str, arguments: Value| result(&town.ask(&admin, HERE, tool, &arguments));
    let glance = ask("project_inspect", json!({}));
    assert_eq!((&glance["evaluations"]["draft"], &glance["queue"]["pending"]), (&json!(1), &json!(0)), "{glance}");
    assert_eq!(glance["evidenceSummary"]["protectedSlices"]["status"], "not_measured");
    let plan = ask("project_plan", json!({}));
    let kinds: Vec<&str> = plan["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert!(plan["advisory"] == true && kinds.contains(&"never_run") && kinds.contains(&"no_baseline"), "{plan}");
    let listed = ask("evaluations_list", json!({"filter": "returns"}));
    let one = &listed["evaluations"][0];
    assert_eq!(
        (&one["evaluation"], &one["status"], &one["cases"], &one["latest"]),
        (&json!("returns"), &json!("draft"), &json!(1), &Value::Null)
    );
    let explained = ask("run_explain", json!({}));
    assert!(explained["ended"] == true && explained["evidenceSummary"]["quality"]["status"].is_string(), "{explained}");
    assert_eq!(ask("baseline_lineage", json!({}))["total"], 0);
    assert_eq!(ask("docs_search", json!({"query": "quokkas"}))["documents"][0]["source"], "evaluation");
    assert_eq!(ask("connections_list", json!({}))["total"], 0);
    assert_eq!(ask("connections_catalog", json!({}))["kinds"][0]["kind"], "directory");
    assert_eq!(ask("connector_health", json!({}))["total"], 0);
    // Dotted names too; and what a baseline is not there for is said.
    let refused = town.ask(&admin, HERE, "compare", &json!({"base": "baseline"})).json()["result"].clone();
    assert!(refused["isError"] == true && refused["content"][0]["text"].as_str().unwrap().contains("runlore baseline accept"), "{refused}");
    assert_eq!(ask("run.explain", json!({}))["runId"], explained["runId"]);
}

#[test]
fn who_may_not_does_not_see() {
    let town = Town::start("");
    let (admin, viewer) = (town.key("acme", "admin", &["*"]), town.key("acme", "viewer", &["eval:read"]));
    made(&town, &admin, "evaluations_create", &json!({"id": "returns", "description": "Whether quokkas are given back"}));
    let denied = |key: &str, tool: &str| {
        let answer = town.ask(key, HERE, tool, &json!({}));
        let scope = answer
            .header("www-authenticate")
            .unwrap_or_default()
            .split("scope=\"")
            .nth(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned());
        (answer.status, scope)
    };
    assert_eq!(denied(&viewer, "connections_list"), (403, Some("resources:read".to_owned())));
    // No scope makes a viewer an admin.
    assert_eq!(denied(&viewer, "connector_health"), (403, None));
    assert_eq!(denied(&town.key("acme", "admin", &["eval:read"]), "connector_health"), (403, Some("admin:workspace".to_owned())));
    assert_eq!(denied(&town.key("acme", "viewer", &["runs:read"]), "run_explain").0, 200);
    let found = result(&town.ask(&viewer, HERE, "docs_search", &json!({"query": "quokkas"})));
    assert_eq!((&found["total"], found["note"].is_string()), (&json!(0), true), "{found}");
    let glance = result(&town.ask(&viewer, HERE, "project_inspect", &json!({})));
    assert!(glance.get("connections").is_none(), "{glance}");
    // Another organization's documents are nobody's.
    let zeta = town.key("zeta", "owner", &["*"]);
    let found = result(&town.ask(&zeta, "/mcp/zeta/main", "docs_search", &json!({"query": "quokkas"})));
    assert_eq!(found["total"], 0);
    // What decides is no argument of anything.
    let refused = town.ask(&admin, HERE, "run_explain", &json!({"releaseDecision": "promote"})).json()["result"].clone();
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("unknown argument `releaseDecision`"), "{refused}");
}

#[test]
fn the_contract_is_served_by_url_and_as_a_resource() {
    let file = include_str!("../../../config/decision-contract.schema.json");
    let town = Town::start("");
    let serving = [Service::with(Project::demo(), "", &["--token", "secret"]), Service::serve("")];
    for service in serving.iter().chain([&town.service]) {
        let answer = service.ask(&Request::get(service.port, CONTRACT));
        assert_eq!((answer.status, answer.header("content-type"), answer.text().as_str()), (200, Some("application/json"), file));
        assert_eq!(service.ask(&Request::get(service.port, CONTRACT).by("POST")).status, 405);
    }
    let key = town.key("acme", "viewer", &["eval:read"]);
    let read = Request::legacy(town.service.port, "resources/read", &json!({"uri": "runlore://schemas/decision-contract"})).to("/mcp");
    let answer = town.service.ask(&read.clone().bearer(&key)).json();
    let body = &answer["result"]["contents"][0];
    assert_eq!((&body["mimeType"], body["text"].as_str()), (&json!("application/schema+json"), Some(file)), "{answer}");
    assert_eq!(town.service.ask(&read).status, 401, "the resource is for callers; the URL is for anybody");
}
