//! Tokens of `runlore mcp --http` (decisions 5, 17, 22).

use serde_json::json;

use super::{
    service::Service,
    wire::{Answer, Request},
};
use crate::harness::{Project, readable};

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
    // There is no token that could be right or wrong, on a public server neither (S-history: without one, requests need none).
    for flags in [&[][..], &["--public"]] {
        let service = Service::start(flags);
        for value in ["Bearer canary-token", "Basic canary-basic", ""] {
            let answer = service.ask(&Request::call(service.port, "history", &json!({})).with("authorization", value));
            assert!(answer.status == 200 && answer.json()["result"]["isError"] != true, "{value}: {answer:?}");
        }
        assert!(!service.log().contains("canary"), "{}", service.log());
    }
}

/// `runlore serve` that asks for the token.
fn serve(config: &str) -> Service {
    Service::serve_as(config, |command| {
        command.env("RUNLORE_MCP_TOKEN", TOKEN);
    })
}

/// A request of either era as an endpoint takes it.
fn either(port: u16, path: &str, modern: bool, method: &str, params: &serde_json::Value) -> Request {
    if modern { Request::modern(port, method, params).to(path) } else { Request::legacy(port, method, params).to(path) }
}

#[test]
fn without_a_token_serve_says_what_there_is() {
    let service = serve("");
    let port = service.port;
    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    let none = json!({});
    let open = [
        (false, "initialize", &initialize),
        (false, "ping", &none),
        (false, "tools/list", &none),
        (false, "prompts/list", &none),
        (false, "resources/templates/list", &none),
        (true, "server/discover", &none),
        (true, "tools/list", &none),
        (true, "prompts/list", &none),
        (true, "resources/templates/list", &none),
    ];
    for path in ["/mcp", "/api/mcp"] {
        for (modern, method, params) in open {
            let answer = service.ask(&either(port, path, modern, method, params));
            assert!(answer.status == 200 && answer.json()["result"].is_object(), "{path} {method}: {answer:?}");
            assert!(!answer.text().contains("refund"), "nothing of the project: {answer:?}");
        }
        for method in ["notifications/initialized", "notifications/cancelled"] {
            let notification = Request::post(port, &json!({"jsonrpc": "2.0", "method": method})).to(path);
            assert_eq!(service.ask(&notification).status, 202, "{method}");
        }
    }
    let list = service.ask(&Request::modern(port, "tools/list", &none)).json()["result"].clone();
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), readable());
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{list}");
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")), "the list depends on the caller");
    assert_eq!(service.ask(&Request::get(port, "/mcp/health")).json()["tools"], readable().len());
    assert!(!service.log().contains("\"event\":\"call\""), "no call was made");
}

#[test]
fn all_else_needs_the_token() {
    let service = serve("");
    let port = service.port;
    let closed = [
        ("tools/call", json!({"name": "history", "arguments": {}})),
        ("tools/call", json!({"name": "history", "arguments": {"limt": 1}})),
        ("tools/call", json!({"name": "nothing", "arguments": {}})),
        ("tools/call", json!({"name": "history", "arguments": [1]})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "runlore://runs/a"})),
        ("prompts/get", json!({"name": "a"})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": ""}})),
        ("logging/setLevel", json!({"level": "info"})),
        ("nothing/here", json!({})),
    ];
    for path in ["/mcp", "/api/mcp"] {
        for (method, params) in &closed {
            for modern in [true, false] {
                let answer = service.ask(&either(port, path, modern, method, params));
                refused(&answer);
                assert_eq!((&answer.json()["id"], answer.header("content-type")), (&json!(1), Some("application/json")), "{method}");
                let with = service.ask(&either(port, path, modern, method, params).bearer(TOKEN));
                assert!(with.status != 401, "{method}: {with:?}");
            }
        }
    }
    assert_eq!(service.metric("runlore_refusals_total", &["list=\"door\"", "unauthenticated"]), 40.0);
    assert_eq!(service.metric("runlore_calls_total", &["tool=\"history\"", "outcome=\"denied\""]), 8.0, "calls are counted and logged");
}

#[test]
fn a_bad_token_is_never_taken_for_none() {
    let service = serve("");
    for value in ["Bearer wrong", "Bearer", "Basic x", ""] {
        refused(&service.ask(&ping(&service).with("authorization", value)));
        refused(&service.ask(&Request::modern(service.port, "server/discover", &json!({})).with("authorization", value)));
    }
    assert_eq!(service.ask(&ping(&service).bearer(TOKEN)).status, 200);
}

#[test]
fn discovery_can_be_closed() {
    let service = serve("[auth]\nanonymous_discovery = false");
    for method in ["initialize", "ping", "tools/list"] {
        refused(&service.ask(&Request::legacy(service.port, method, &json!({}))));
    }
    refused(&service.ask(&Request::modern(service.port, "server/discover", &json!({}))));
    assert_eq!(service.ask(&ping(&service).bearer(TOKEN)).status, 200);
}

#[test]
fn who_guesses_at_tools_without_a_token_is_counted() {
    let service = serve("rate_per_min = 2");
    let call = Request::call(service.port, "nothing", &json!({}));
    refused(&service.ask(&call));
    refused(&service.ask(&call));
    let third = service.ask(&call);
    let sentence = third.json()["result"]["content"][0]["text"].clone();
    assert!(third.status == 200 && sentence.as_str().is_some_and(|text| text.contains("2 a minute")), "{third:?}");
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
