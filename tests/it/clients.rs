//! The official clients, old and new, list and call every tool; they check results against output schemas themselves.

use std::process::Command;

use serde_json::{Value, json};

use super::{
    harness::{Project, Ran, offered, ran, readable},
    http::{service::Service, town::Town},
};

const TOKEN: &str = "a-token-of-the-clients";

/// The value of a variable that `tests/run` sets; without it the test command was not used, and the test says so by failing.
fn set_by_tests_run(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/run, which installs the clients"))
}

/// What is asked of each of `tools`, and what must be refused.
fn calls(tools: &[String]) -> String {
    let mut calls = json!([
        {"tool": "compare", "arguments": {"since": "2026-11-22"}},
        {"tool": "compare", "arguments": {"base": "latest~5", "by": "case", "all": true}},
        {"tool": "history", "arguments": {"by": "case", "limit": 3}},
        {"tool": "failures", "arguments": {"run": "latest~1"}},
        {"tool": "show", "arguments": {"format": "md"}},
        {"tool": "show", "arguments": {"attempts": false}},
        {"tool": "transcript", "arguments": {"attempt": "refund_policy/rp-clearance#1", "limit": 5}},
        {"tool": "runs_list", "arguments": {"limit": 2}},
        {"tool": "query", "arguments": {"sql": "SELECT evaluation, count(*) AS n FROM attempts GROUP BY evaluation"}},
        {"tool": "query", "arguments": {"sql": "DELETE FROM attempts"}, "expect": "error"},
        {"tool": "verify", "arguments": {"handle": "ev1_nothing"}, "expect": "error"},
        {"tool": "show", "arguments": {"run": "nothing"}, "expect": "error"},
        {"tool": "history", "arguments": {"limit": 0}, "expect": "error"},
    ]);
    for call in [
        json!({"tool": "list_eval_run_projections", "arguments": {"eval_id": "refund_policy", "limit": 2}}),
        json!({"tool": "dataset_items", "arguments": {"dataset": "refund_policy", "limit": 2}}),
        json!({"tool": "search", "arguments": {"query": "refund"}}),
        json!({"tool": "inspect", "arguments": {"attempt": "refund_policy/rp-clearance#1"}}),
        json!({"tool": "docs_search", "arguments": {"query": "baseline"}}),
    ] {
        if tools.iter().any(|tool| call["tool"] == **tool) {
            calls.as_array_mut().unwrap().push(call);
        }
    }
    calls.to_string()
}

fn client(interpreter: &str, script: &str, mode: &str, server: &[&str], tools: &[String]) -> Ran {
    asked(interpreter, script, mode, server, &calls(tools))
}

/// What a client says of `server` that was asked these calls, and then every tool that needs no argument.
pub fn asked(interpreter: &str, script: &str, mode: &str, server: &[&str], calls: &str) -> Ran {
    let script = format!("{}/tests/clients/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(set_by_tests_run(interpreter));
    ran(command.args([&script, "--mode", mode, "--calls", calls]).args(server).output().unwrap())
}

/// What the client reports of a server that is right, and has `tools`.
fn passed(ran: &Ran, tools: &[String]) -> Value {
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let line: Value = serde_json::from_str(ran.out.trim()).unwrap();
    // A pinned modern client never asks who the server is.
    assert!(line["server"].is_null() || line["server"]["name"] == "runlore", "{line}");
    assert_eq!(
        (line["tools"].as_array().map(Vec::len), &line["skipped"], &line["errors"]),
        (Some(tools.len()), &json!([]), &json!([])),
        "{line}"
    );
    line
}

/// The version that was agreed on, which must be the same over stdio and over HTTP with a token; without the token it must fail.
fn check(interpreter: &str, script: &str, mode: &str) -> Value {
    let project = Project::demo();
    let place = project.path().to_str().unwrap();
    let tools = offered();
    let stdio = client(interpreter, script, mode, &["--", env!("CARGO_BIN_EXE_runlore"), "mcp", "--project", place], &tools);
    let stdio = passed(&stdio, &tools);
    let service = Service::start(&["--token", TOKEN]);
    let url = format!("http://127.0.0.1:{}/mcp", service.port);
    let http = passed(&client(interpreter, script, mode, &["--url", &url, "--token", TOKEN], &tools), &tools);
    assert_eq!(stdio["protocolVersion"], http["protocolVersion"], "{http}");
    assert_eq!(stdio["called"], http["called"], "{http}");
    read_all(&stdio, &http);
    let stranger = client(interpreter, script, mode, &["--url", &url], &tools);
    assert_eq!(stranger.code, 1, "{}", stranger.out);
    http
}

/// Both transports gave the same resources, templates and prompts, filled with what was completed.
fn read_all(stdio: &Value, http: &Value) {
    let told = &http["resources"];
    assert_eq!(told, &stdio["resources"]);
    assert_eq!(told["listed"], 6, "{http}");
    // The first run, by its own URI and by the template; a transcript; three prompts. Each has something to say.
    let (run, templates, prompts) = (&told["read"], told["templates"].as_array().unwrap(), told["prompts"].as_array().unwrap());
    assert!((templates.len(), prompts.len()) == (2, 3) && &templates[0] == run, "{http}");
    assert!(templates.iter().chain(prompts).all(|length| length.as_u64() > Some(500)), "{http}");
}

/// The legacy clients again, on the endpoint that frames as an event stream.
fn check_streamed(interpreter: &str, script: &str) {
    let service = Service::serve("");
    let url = format!("http://127.0.0.1:{}/api/mcp", service.port);
    let tools = readable();
    passed(&client(interpreter, script, "legacy", &["--url", &url], &tools), &tools);
}

#[test]
fn python_2x() {
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        assert_eq!(check("RUNLORE_TEST_PYTHON2X", "python_2x.py", mode)["protocolVersion"], version);
    }
}

#[test]
fn python_1x() {
    check("RUNLORE_TEST_PYTHON1X", "python_1x.py", "legacy");
    check_streamed("RUNLORE_TEST_PYTHON1X", "python_1x.py");
}

#[test]
fn typescript_v2() {
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        assert_eq!(check("RUNLORE_TEST_NODE", "typescript_v2.mjs", mode)["protocolVersion"], version);
    }
}

#[test]
fn typescript_v1() {
    check("RUNLORE_TEST_NODE", "typescript_v1.mjs", "legacy");
    check_streamed("RUNLORE_TEST_NODE", "typescript_v1.mjs");
}

#[tokio::test]
async fn rmcp() {
    use rmcp::{ServiceExt as _, model::CallToolRequestParams, transport::TokioChildProcess};
    let project = Project::demo();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_runlore"));
    command.arg("mcp").current_dir(project.path());
    let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), offered().len());
    let arguments = json!({"since": "2026-11-22"}).as_object().cloned().unwrap();
    let answer = client.call_tool(CallToolRequestParams::new("compare").with_arguments(arguments)).await.unwrap();
    assert_eq!(answer.structured_content.unwrap()["rows"][0]["id"], "refund_policy");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn rmcp_over_http() {
    use rmcp::{
        ServiceExt as _,
        model::{CallToolRequestParams, ReadResourceRequestParams},
        transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
    };
    let service = Service::start(&["--token", TOKEN]);
    let url = format!("http://127.0.0.1:{}/mcp", service.port);
    let with = |token: &str| {
        let config = StreamableHttpClientTransportConfig::with_uri(url.clone()).auth_header(token.to_owned());
        StreamableHttpClientTransport::from_config(config)
    };
    assert!(().serve(with("wrong")).await.is_err());
    let client = ().serve(with(TOKEN)).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), offered().len());
    let arguments = json!({"since": "2026-11-22"}).as_object().cloned().unwrap();
    let answer = client.call_tool(CallToolRequestParams::new("compare").with_arguments(arguments)).await.unwrap();
    assert_eq!(answer.structured_content.unwrap()["rows"][0]["id"], "refund_policy");
    let refused = json!({"limit": 0}).as_object().cloned().unwrap();
    assert_eq!(client.call_tool(CallToolRequestParams::new("history").with_arguments(refused)).await.unwrap().is_error, Some(true));
    let listed = client.list_all_resources().await.unwrap();
    assert_eq!(listed.len(), 6);
    let read = client.read_resource(ReadResourceRequestParams::new(listed[0].uri.as_str())).await.unwrap();
    assert_eq!(read.contents.len(), 1);
    assert_eq!((client.list_all_resource_templates().await.unwrap().len(), client.list_all_prompts().await.unwrap().len()), (2, 3));
    client.cancel().await.unwrap();
}

/// What the public SDK of the tool API makes of this server.
fn evalgate(url: &str, key: &str, calls: &Value) -> Value {
    let script = format!("{}/tests/clients/evalgate.py", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(set_by_tests_run("RUNLORE_TEST_EVALGATE"));
    let ran = ran(command.args([&script, "--url", url, "--token", key, "--calls", &calls.to_string()]).output().unwrap());
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    serde_json::from_str(ran.out.trim()).unwrap()
}

#[test]
fn evalgate_sdk_lists_and_calls_the_tool_api() {
    let town = Town::made_with_writes();
    let key = town.key("acme", "member", &["eval:read", "eval:write"]);
    let url = format!("http://127.0.0.1:{}", town.service.port);
    let said = evalgate(&url, &key, &json!([{"tool": "eval.list", "arguments": {"project": "main"}}]));
    assert_eq!(
        (&said["listed"]["contract"], &said["pages"], &said["alike"]),
        (&json!("evalgate-tool-api"), &json!(1), &json!(true)),
        "{said}"
    );
    let names: Vec<&str> = said["listed"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["eval.quality.latest", "eval.get", "eval.list"]);
    let number = said["called"][0]["result"][0]["id"].clone();
    let case = json!({"tool": "eval.testcase.add", "arguments": {"project": "main", "evaluationId": number, "input": "x"}, "key": "once"});
    let calls = json!([
        {"tool": "eval.get", "arguments": {"project": "main", "evaluationId": number}},
        {"tool": "eval.quality.latest", "arguments": {"project": "main", "evaluationId": number, "baseline": "previous"}},
        case, case,
        {"tool": "eval.list"},
        {"tool": "eval.get", "arguments": {"project": "main", "evaluationId": 987_654}},
        {"tool": "eval.run", "arguments": {"project": "main", "evaluationId": number}},
    ]);
    let said = evalgate(&url, &key, &calls);
    let called = said["called"].as_array().unwrap();
    assert!(called[..4].iter().all(|one| one["same"] == true), "{said}");
    assert_eq!((&called[0]["result"]["id"], called[1]["result"]["score"].is_number()), (&number, true), "{said}");
    assert_eq!((&called[2]["result"]["id"], &called[3]["result"]["repeated"]), (&called[3]["result"]["id"], &json!(true)), "{said}");
    let errors: Vec<(&str, &str, u64)> = called[4..]
        .iter()
        .map(|one| {
            let error = &one["error"];
            assert!(error["requestId"].is_string(), "{said}");
            (error["class"].as_str().unwrap(), error["code"].as_str().unwrap(), error["status"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        errors,
        [("ValidationError", "VALIDATION_ERROR", 400), ("EvalGateError", "NOT_FOUND", 404), ("EvalGateError", "FORBIDDEN", 403)],
        "{said}"
    );
    let stranger = evalgate(&url, "rlk_wrong", &json!([]));
    assert_eq!((&stranger["refused"]["class"], &stranger["refused"]["status"]), (&json!("AuthenticationError"), &json!(401)), "{stranger}");
}
