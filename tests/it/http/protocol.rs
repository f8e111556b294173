//! The protocol over HTTP: both eras, framing, headers, methods (DESIGN.md section 3; decisions 4, 45, 50, 52, 53, 79, 85).

use serde_json::{Value, json};

use super::{
    service::Service,
    wire::{Answer, Request, meta},
};
use crate::harness::offered;

fn initialize(port: u16, version: &str) -> Request {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    Request::post(port, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
}

fn fault(answer: &Answer, status: u16, code: i64) {
    assert_eq!((answer.status, answer.code()), (status, code), "{answer:?}");
    assert!(!answer.json()["error"]["message"].as_str().unwrap_or_default().is_empty());
}

const SPOKEN: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

#[test]
fn legacy_clients_initialize_without_a_session() {
    let service = Service::start(&[]);
    let given = [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("x", "2025-11-25"),
    ];
    for (asked, given) in given {
        let answer = service.ask(&initialize(service.port, asked));
        let result = &answer.json()["result"];
        assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!(given), &json!("runlore")), "{answer:?}");
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let with_session = Request::legacy(service.port, "ping", &json!({})).with("mcp-session-id", "made-up");
    let answer = service.ask(&with_session);
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None), "{answer:?}");
}

#[test]
fn a_legacy_call_needs_no_version_header() {
    let service = Service::start(&[]);
    for version in [None, Some("2025-03-26"), Some("2025-06-18"), Some("2025-11-25")] {
        let request = Request::call(service.port, "runs_list", &json!({}));
        let request = version.map_or_else(
            || request.clone().without("mcp-protocol-version"),
            |version| request.clone().with("mcp-protocol-version", version),
        );
        let answer = service.ask(&request);
        assert_eq!((answer.status, &answer.json()["result"]["structuredContent"]["total"]), (200, &json!(6)), "{version:?}: {answer:?}");
    }
}

#[test]
fn modern_clients_discover_and_call() {
    let service = Service::start(&[]);
    let discovered = service.ask(&Request::modern(service.port, "server/discover", &json!({}))).json();
    assert_eq!(discovered["result"]["supportedVersions"], json!(SPOKEN), "{discovered}");
    let call = service.ask(&Request::modern(service.port, "tools/call", &json!({"name": "compare", "arguments": {"since": "2026-11-22"}})));
    assert_eq!(call.json()["result"]["structuredContent"]["rows"][0]["status"], "regressed", "{call:?}");
    assert_eq!((call.header("content-type"), call.header("mcp-session-id")), (Some("application/json"), None));
}

#[test]
fn only_modern_lists_say_how_long_they_hold() {
    let service = Service::start(&[]);
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let modern = service.ask(&Request::modern(service.port, method, &json!({}))).json();
        assert_eq!((&modern["result"]["ttlMs"], &modern["result"]["cacheScope"]), (&json!(0), &json!("private")), "{method}: {modern}");
        let legacy = service.ask(&Request::legacy(service.port, method, &json!({}))).json();
        assert!(legacy["result"].get("ttlMs").is_none() && legacy["result"].get("cacheScope").is_none(), "{method}: {legacy}");
        assert!(legacy["result"].is_object(), "{method}: {legacy}");
    }
    let public = Service::start(&["--public"]);
    let list = public.ask(&Request::modern(public.port, "tools/list", &json!({}))).json();
    assert_eq!((&list["result"]["ttlMs"], &list["result"]["cacheScope"]), (&json!(60_000), &json!("public")), "{list}");
}

#[test]
fn what_asks_for_texts_is_not_there_in_public() {
    for (flags, there) in [(&[][..], true), (&["--public"], false)] {
        let service = Service::start(flags);
        let list = service.ask(&Request::modern(service.port, "tools/list", &json!({}))).json();
        let tools = list["result"]["tools"].as_array().expect("tools");
        let failures = tools.iter().find(|tool| tool["name"] == "failures").expect("failures");
        assert_eq!(failures["inputSchema"]["properties"].get("tail").is_some(), there, "{failures}");
        assert!(failures["inputSchema"]["properties"].get("limit").is_some(), "{failures}");
        let answer = service.ask(&Request::call(service.port, "failures", &json!({"tail": 5}))).json();
        let unknown = answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("unknown argument `tail`"));
        assert_eq!(!unknown, there, "{answer}");
    }
}

#[test]
fn headers_must_agree_with_the_body() {
    let service = Service::start(&[]);
    let call = Request::modern(service.port, "tools/call", &json!({"name": "runs_list", "arguments": {}}));
    assert_eq!(service.ask(&call).status, 200);
    assert_eq!(service.ask(&call.clone().with("mcp-name", "=?base64?cnVuc19saXN0?=")).status, 200);
    let wrong = [
        call.clone().without("mcp-method"),
        call.clone().with("mcp-method", "tools/list"),
        call.clone().with("mcp-method", "TOOLS/CALL"),
        call.clone().and("mcp-method", "tools/call"),
        call.clone().without("mcp-name"),
        call.clone().with("mcp-name", "history"),
        call.clone().with("mcp-name", "Runs_List"),
        call.clone().with("mcp-name", "runs-list"),
        call.clone().and("mcp-name", "runs_list"),
        call.clone().with("mcp-name", "=?base64?%%%?="),
        call.clone().with("mcp-name", "=?base64?aGlzdG9yeQ==?="),
        call.clone().with("mcp-protocol-version", "2025-11-25"),
        Request::modern(service.port, "resources/read", &json!({"uri": "runlore://runs/a"})).without("mcp-name"),
        Request::modern(service.port, "prompts/get", &json!({"name": "a"})).with("mcp-name", "b"),
    ];
    for (index, request) in wrong.iter().enumerate() {
        fault(&service.ask(request), 400, -32020);
        assert!(index < 20);
    }
    assert_eq!(service.ask(&Request::modern(service.port, "tools/list", &json!({})).with("mcp-name", "ignored")).status, 200);
}

#[test]
fn a_name_header_that_lies_is_refused_in_the_older_era_too() {
    let service = Service::start(&[]);
    let call = Request::call(service.port, "runs_list", &json!({})).with("mcp-name", "history");
    fault(&service.ask(&call), 400, -32020);
    fault(&service.ask(&call.without("mcp-protocol-version")), 400, -32020);
}

#[test]
fn versions_that_are_not_spoken_are_refused_with_those_that_are() {
    let service = Service::start(&[]);
    let legacy = service.ask(&Request::legacy(service.port, "ping", &json!({})).with("mcp-protocol-version", "1999-01-01"));
    fault(&legacy, 400, -32022);
    let data = legacy.json()["error"]["data"].clone();
    let mut supported: Vec<&str> = data["supported"].as_array().unwrap().iter().map(|version| version.as_str().unwrap()).collect();
    supported.sort_unstable();
    assert_eq!(supported, SPOKEN);
    assert_eq!(legacy.json()["error"]["data"]["requested"], "1999-01-01");
    let mut later = meta();
    later["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let modern = Request::modern(service.port, "tools/list", &json!({ "_meta": later })).with("mcp-protocol-version", "2099-01-01");
    fault(&service.ask(&modern), 400, -32022);
}

#[test]
fn a_modern_request_says_everything_in_its_meta() {
    let service = Service::start(&[]);
    for missing in ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"] {
        let mut short = meta();
        short.as_object_mut().unwrap().remove(missing);
        fault(&service.ask(&Request::modern(service.port, "tools/list", &json!({ "_meta": short }))), 400, -32602);
    }
    let mut other = meta();
    other["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    fault(&service.ask(&Request::modern(service.port, "tools/list", &json!({ "_meta": other }))), 400, -32020);
}

#[test]
fn unknown_things_have_their_codes() {
    let service = Service::start(&[]);
    let port = service.port;
    fault(&service.ask(&Request::legacy(port, "nothing/here", &json!({}))), 200, -32601);
    fault(&service.ask(&Request::modern(port, "nothing/here", &json!({}))), 404, -32601);
    // What the newer era no longer has.
    for removed in ["initialize", "ping", "logging/setLevel"] {
        fault(&service.ask(&Request::modern(port, removed, &json!({}))), 404, -32601);
    }
    fault(&service.ask(&Request::call(port, "nothing", &json!({}))), 200, -32602);
    fault(&service.ask(&Request::modern(port, "tools/call", &json!({"name": "nothing", "arguments": {}}))), 200, -32602);
    fault(&service.ask(&Request::legacy(port, "resources/read", &json!({"uri": "runlore://runs/none"}))), 200, -32002);
    fault(&service.ask(&Request::modern(port, "resources/read", &json!({"uri": "runlore://runs/none"}))), 200, -32602);
    fault(&service.ask(&Request::legacy(port, "tools/list", &json!({"cursor": "x"}))), 200, -32602);
}

#[test]
fn aliases_are_answered_under_their_own_name_header() {
    let service = Service::start(&[]);
    for alias in ["runs_list", "runs.list", "runs-list"] {
        let modern = service.ask(&Request::modern(service.port, "tools/call", &json!({"name": alias, "arguments": {}})));
        assert_eq!(modern.json()["result"]["structuredContent"]["total"], 6, "{alias}: {modern:?}");
        assert_eq!(service.call(alias, &json!({}))["structuredContent"]["total"], 6, "{alias}");
    }
    let list = service.ask(&Request::legacy(service.port, "tools/list", &json!({}))).json();
    let names: Vec<&str> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, offered());
}

#[test]
fn notifications_and_responses_are_taken_and_not_answered() {
    let service = Service::start(&[]);
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/never/heard"}),
        json!({"jsonrpc": "2.0", "id": 4, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "x"}}),
    ] {
        let answer = service.ask(&Request::post(service.port, &message).with("mcp-protocol-version", "2025-11-25"));
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{message}: {answer:?}");
    }
}

#[test]
fn other_methods_are_405_and_other_paths_404() {
    let service = Service::start(&[]);
    for method in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"] {
        let answer =
            service.connect().ask(&Request { body: None, ..Request::get(service.port, "/mcp") }.by(method).and("connection", "close"));
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}: {answer:?}");
    }
    for path in
        ["/", "/mcp/", "/mcp/anything", "/api/mcp", "/MCP", "/mcp%2f", "//mcp", "/mcp/../mcp", "/metrics", "/livez", "/readyz", "/v1/runs"]
    {
        let answer = service.ask(&Request::legacy(service.port, "ping", &json!({})).to(path));
        assert_eq!((answer.status, answer.reason()), (404, "not_found".to_owned()), "{path}: {answer:?}");
    }
    let post = service.ask(&Request::legacy(service.port, "ping", &json!({})).to("/mcp/health"));
    assert_eq!((post.status, post.header("allow").map(|allow| allow.contains("GET"))), (405, Some(true)), "{post:?}");
}

#[test]
fn accept_must_admit_the_answer() {
    let service = Service::start(&[]);
    let ping = Request::legacy(service.port, "ping", &json!({}));
    for accept in ["*/*", "application/json", "application/*", "application/json;q=0.5, text/html", "text/event-stream, application/json"] {
        assert_eq!(service.ask(&ping.clone().with("accept", accept)).status, 200, "{accept}");
    }
    assert_eq!(service.ask(&ping.clone().without("accept")).status, 200);
    for accept in ["text/html", "text/event-stream", "application/json;q=0"] {
        let answer = service.ask(&ping.clone().with("accept", accept));
        assert_eq!(answer.status, 406, "{accept}: {answer:?}");
        assert_eq!(answer.json()["jsonrpc"], "2.0");
    }
}

#[test]
fn health_says_what_is_offered() {
    let service = Service::start(&[]);
    let answer = service.ask(&Request::get(service.port, "/mcp/health"));
    let expected = json!({"ok": true, "version": env!("CARGO_PKG_VERSION"), "tools": offered().len(), "public": false});
    assert_eq!((answer.status, answer.json()), (200, expected));
    assert!(answer.header("cache-control").unwrap_or_default().contains("no-store"), "{answer:?}");
    let head = service.ask(&Request::get(service.port, "/mcp/health").without("host").with("host", "evil.example"));
    assert_eq!(head.status, 421);
    let url = format!("http://127.0.0.1:{}/mcp/health", service.port);
    assert_eq!(service.project.run(&["health", &url]).code, 0);
    assert_eq!(service.project.run(&["health", &format!("http://127.0.0.1:{}/mcp/health", super::service::free_port())]).code, 1);
}

#[test]
fn another_path_may_be_chosen() {
    let service = Service::start(&["--path", "/evals"]);
    assert_eq!(service.ask(&Request::legacy(service.port, "ping", &json!({})).to("/evals")).status, 200);
    assert_eq!(service.ask(&Request::get(service.port, "/evals/health")).status, 200);
    assert_eq!(service.ask(&Request::legacy(service.port, "ping", &json!({}))).status, 404);
}

#[test]
fn serve_frames_as_each_endpoint_says() {
    let service = Service::serve("");
    let ping = Request::legacy(service.port, "ping", &json!({}));
    let event = service.ask(&ping.clone().to("/api/mcp"));
    assert_eq!(
        event.header("content-type").map(|kind| kind.split(';').next().unwrap().to_owned()).as_deref(),
        Some("text/event-stream"),
        "{event:?}"
    );
    assert_eq!(event.json()["result"], json!({}));
    let json = service.ask(&ping.clone());
    assert_eq!((json.header("content-type"), &json.json()["result"]), (Some("application/json"), &json!({})));
    let modern = service.ask(&Request::modern(service.port, "tools/list", &json!({})).to("/api/mcp"));
    assert_eq!((modern.status, modern.header("content-type")), (200, Some("application/json")), "{modern:?}");
    let error = service.ask(&Request::legacy(service.port, "tools/list", &json!({"cursor": "x"})).to("/api/mcp"));
    assert_eq!((error.status, error.code()), (200, -32602), "{error:?}");
    assert_eq!(service.ask(&ping.clone().to("/api/mcp").with("accept", "application/json")).status, 406);
    let get = service.ask(&Request::get(service.port, "/api/mcp"));
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
    for path in ["/mcp/health", "/api/mcp/health"] {
        assert_eq!(service.ask(&Request::get(service.port, path)).status, 200, "{path}");
    }
    let notification = Request::post(service.port, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).to("/api/mcp");
    assert_eq!(service.ask(&notification).status, 202);
}

#[test]
fn http_and_stdio_say_the_same() {
    let service = Service::start(&[]);
    for (tool, arguments, words) in [
        ("history", json!({"by": "case"}), &["history", "--by", "case"][..]),
        ("failures", json!({"tail": 3}), &["failures", "--tail", "3"]),
        ("compare", json!({}), &["compare"]),
        ("runs_list", json!({"limit": 2}), &["runs-list", "--limit", "2"]),
    ] {
        let answered: Value = service.call(tool, &arguments)["structuredContent"].clone();
        assert_eq!(answered, service.project.json(words), "{tool}");
    }
}

#[test]
fn every_answer_carries_what_keeps_browsers_and_caches_away() {
    let service = Service::start(&[]);
    for request in
        [Request::legacy(service.port, "ping", &json!({})), Request::get(service.port, "/nothing"), Request::raw(service.port, "{")]
    {
        let answer = service.ask(&request);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
        assert!(answer.header("cache-control").unwrap_or_default().contains("no-store"), "{answer:?}");
        assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "{answer:?}");
        assert_eq!(answer.header("server"), None);
    }
}

#[test]
fn a_caller_narrows_the_toolsets_and_never_widens() {
    let service = Service::start(&["--toolsets", "history,query"]);
    let names = |path: &str| {
        let answer = service.ask(&Request::legacy(service.port, "tools/list", &json!({})).to(path)).json();
        answer["result"]["tools"]
            .as_array()
            .map(|tools| tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    let (all, history) = (names("/mcp").unwrap(), names("/mcp?toolsets=history").unwrap());
    assert!(
        all.contains(&"query".to_owned())
            && history.contains(&"compare".to_owned())
            && !history.iter().any(|name| name.starts_with("query"))
    );
    assert_eq!(names("/mcp?toolsets=history%2Cquery"), Some(all));
    let call = Request::legacy(service.port, "tools/call", &json!({"name": "query_schema", "arguments": {}}));
    assert_eq!(service.ask(&call.to("/mcp?toolsets=history")).json()["error"]["code"], -32602);
    let header = Request::legacy(service.port, "tools/list", &json!({})).with("x-runlore-toolsets", "nope");
    assert!(service.ask(&header).json()["error"]["message"].as_str().unwrap().contains("there are history, query, catalog, workspace"));
}
