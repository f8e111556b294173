//! Tokens of `runlore mcp --http` (decisions 5, 17, 22).

use serde_json::json;

use super::{
    service::Service,
    wire::{Answer, Request},
};
use crate::harness::Project;

const TOKEN: &str = "a-token-of-the-tests-0123456789";

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

fn refused(answer: &Answer) {
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{answer:?}");
    assert_eq!((answer.code(), answer.reason()), (-32000, "unauthenticated".to_owned()), "{answer:?}");
}

#[test]
fn every_request_needs_the_token() {
    let service = Service::start(&["--token", TOKEN]);
    let port = service.port;
    assert_eq!(service.ask(&ping(&service).bearer(TOKEN)).status, 200);
    assert_eq!(service.ask(&ping(&service).with("authorization", &format!("bearer {TOKEN}"))).status, 200);
    refused(&service.ask(&ping(&service)));
    refused(&service.ask(&Request::legacy(
        port,
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}),
    )));
    refused(&service.ask(&Request::modern(port, "server/discover", &json!({}))));
    refused(&service.ask(&Request::legacy(port, "tools/list", &json!({}))));
    refused(&service.ask(&Request::raw(port, "{")));
}

#[test]
fn what_is_no_single_right_bearer_is_refused() {
    let service = Service::start(&["--token", TOKEN]);
    let basic = format!("Basic {TOKEN}");
    for value in [
        TOKEN,
        basic.as_str(),
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer a-token-of-the-tests-012345678",
        "Bearer a-token-of-the-tests-0123456789x",
    ] {
        refused(&service.ask(&ping(&service).with("authorization", value)));
    }
    refused(&service.ask(&ping(&service).bearer(TOKEN).and("authorization", &format!("Bearer {TOKEN}"))));
    refused(&service.ask(&ping(&service).bearer(TOKEN).and("authorization", "Bearer wrong")));
    refused(&service.ask(&ping(&service).bearer(&format!("{TOKEN}, Bearer {TOKEN}"))));
}

#[test]
fn a_token_in_the_query_is_no_token_and_is_not_logged() {
    let service = Service::start(&["--token", TOKEN]);
    for query in [format!("/mcp?access_token={TOKEN}"), format!("/mcp?token={TOKEN}")] {
        refused(&service.ask(&ping(&service).to(&query)));
    }
    service.ask(&Request::call(service.port, "history", &json!({})).bearer(TOKEN).to("/mcp?x=canary-query"));
    let log = service.log();
    assert!(!log.contains(TOKEN) && !log.contains("canary-query"), "{log}");
}

#[test]
fn where_no_token_is_asked_for_the_header_is_not_judged_and_not_kept() {
    let service = Service::start(&[]);
    for value in ["Bearer canary-token", "Basic canary-basic"] {
        assert_eq!(service.ask(&Request::call(service.port, "history", &json!({})).with("authorization", value)).status, 200);
    }
    assert!(!service.log().contains("canary"), "{}", service.log());
}

#[test]
fn a_static_token_has_no_metadata_document() {
    let service = Service::start(&["--token", TOKEN]);
    assert_eq!(service.ask(&Request::get(service.port, "/.well-known/oauth-protected-resource")).status, 404);
    assert_eq!(service.ask(&Request::get(service.port, "/.well-known/oauth-protected-resource/mcp")).status, 404);
}

#[test]
fn health_and_wrong_routes_need_no_token() {
    let service = Service::start(&["--token", TOKEN]);
    assert_eq!(service.ask(&Request::get(service.port, "/mcp/health")).status, 200);
    assert_eq!(service.ask(&Request::get(service.port, "/nothing")).status, 404);
    assert_eq!(service.ask(&Request::get(service.port, "/mcp")).status, 405);
}

#[test]
fn flag_before_environment_before_file() {
    let start = |words: &[&str], variable: Option<&str>| {
        let project = Project::demo();
        project.write("token.txt", "from-file\n");
        Service::spawned(project, |command, port, admin| {
            command.args(["mcp", "--http", "--port", &port.to_string(), "--admin-listen", &format!("127.0.0.1:{admin}")]).args(words);
            command.envs(variable.map(|value| ("RUNLORE_MCP_TOKEN", value)));
        })
    };
    let takes = |service: &Service, token: &str| service.ask(&ping(service).bearer(token)).status == 200;
    let file = start(&["--token-file", "token.txt"], None);
    assert!(takes(&file, "from-file") && !takes(&file, "x"));
    refused(&file.ask(&ping(&file)));
    let variable = start(&["--token-file", "token.txt"], Some("from-variable"));
    assert!(takes(&variable, "from-variable") && !takes(&variable, "from-file"));
    let flag = start(&["--token", "from-flag", "--token-file", "token.txt"], Some("from-variable"));
    assert!(takes(&flag, "from-flag") && !takes(&flag, "from-variable") && !takes(&flag, "from-file"));
    let empty = start(&[], Some(""));
    assert_eq!(empty.ask(&ping(&empty)).status, 200, "an empty variable is absent");
}

#[test]
fn an_empty_token_file_is_a_mistake() {
    let project = Project::demo();
    project.write("token.txt", "\n");
    let ran = project.run(&["mcp", "--http", "--token-file", "token.txt"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}
