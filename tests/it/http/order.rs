//! `gate_order`: a request that breaks two neighbouring steps gets the earlier one's answer (DESIGN.md section 4, decision 1).

use serde_json::{Value, json};

use super::{
    held,
    service::Service,
    wire::{Answer, Request},
};

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

fn is(answer: &Answer, status: u16, reason: &str) {
    assert_eq!((answer.status, answer.reason()), (status, reason.to_owned()), "{answer:?}");
}

#[test]
fn host_before_origin_before_route() {
    let service = Service::start(&["--token", "t"]);
    let evil = ping(&service).with("origin", "https://evil.example");
    is(&service.ask(&evil.clone().with("host", "evil.example")), 421, "host");
    is(&service.ask(&evil.to("/nothing")), 403, "origin");
}

#[test]
fn route_before_the_cap_of_requests_before_the_rate() {
    let (service, held) = held::service("in_flight_max = 1", &["--request-rate", "1"]);
    let mut call = held::in_flight(&service, &held::call(&service));
    is(&service.ask(&ping(&service).to("/nothing")), 404, "not_found");
    is(&service.ask(&ping(&service).by("PUT")), 405, "method");
    let full = service.ask(&ping(&service));
    is(&full, 503, "overloaded");
    assert!(full.header("retry-after").is_some(), "{full:?}");
    held.release();
    assert_eq!(call.answer().status, 200);
    is(&service.ask(&ping(&service)), 429, "rate");
}

#[test]
fn rate_before_token_before_media_type_before_size() {
    let service = Service::start(&["--token", "t", "--request-rate", "4"]);
    let wrong = ping(&service).with("content-type", "text/plain");
    is(&service.ask(&wrong), 401, "unauthenticated");
    let large = Request::raw(service.port, "x".repeat(70_000)).bearer("t");
    is(&service.ask(&large.clone().with("content-type", "text/plain")), 415, "media_type");
    is(&service.ask(&large.clone().with("content-encoding", "gzip")), 415, "media_type");
    is(&service.ask(&large), 413, "too_large");
    is(&service.ask(&ping(&service)), 429, "rate");
}

#[test]
fn token_before_the_body_is_read() {
    let service = Service::start(&["--token", "t"]);
    let mut connection = service.connect();
    connection.send(ping(&service).with("content-length", "60000").head());
    is(&connection.answer(), 401, "unauthenticated");
}

#[test]
fn size_before_deadline_before_decoding() {
    let service = Service::configured("body_deadline_s = 1\nidle_s = 30", &[]);
    let mut large = service.connect();
    large.send(ping(&service).with("content-length", "70000").head());
    is(&large.answer(), 413, "too_large");
    let mut slow = service.connect();
    slow.send(ping(&service).with("content-length", "50").head());
    slow.send("no json");
    is(&slow.answer(), 408, "timeout");
    let decoded = service.ask(&Request::raw(service.port, "no json"));
    assert_eq!((decoded.status, decoded.code()), (400, -32700), "{decoded:?}");
}

#[test]
fn envelope_before_headers_before_methods() {
    let service = Service::start(&[]);
    let lying = |body: Value| Request::post(service.port, &body).with("mcp-protocol-version", "1999-01-01");
    let batch = service.ask(&lying(json!([{"jsonrpc": "2.0", "id": 1, "method": "nothing"}])));
    assert_eq!((batch.status, batch.code()), (400, -32600), "{batch:?}");
    let version = service.ask(&lying(json!({"jsonrpc": "2.0", "id": 1, "method": "nothing"})));
    assert_eq!((version.status, version.code()), (400, -32022), "{version:?}");
    let method = service.ask(&Request::modern(service.port, "nothing", &json!({})).with("mcp-method", "other"));
    assert_eq!((method.status, method.code()), (400, -32020), "{method:?}");
}

fn sentence(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn the_callers_rate_before_names_and_arguments() {
    let service = Service::start(&["--rate", "1"]);
    service.call("history", &json!({}));
    assert!(sentence(&service.call("history", &json!({"limt": 1}))).contains("a minute"));
    assert!(sentence(&service.call("nothing", &json!({}))).contains("a minute"));
    assert!(sentence(&service.call("history", &json!({}))).contains("a minute"), "a kept answer counts too");
}

#[test]
fn arguments_before_cache_before_total() {
    let service = Service::start(&["--rate-total", "1"]);
    service.call("history", &json!({}));
    assert!(sentence(&service.call("history", &json!({"limt": 1}))).contains("limt"));
    assert_ne!(service.call("history", &json!({}))["isError"], true);
    assert!(sentence(&service.call("history", &json!({"limit": 3}))).contains("a minute"));
}

#[test]
fn decoding_before_the_want_of_a_caller_before_methods_and_arguments() {
    let service = Service::serve_as("", |command| {
        command.env("RUNLORE_MCP_TOKEN", "t");
    });
    let port = service.port;
    let broken = service.ask(&Request::raw(port, "{"));
    assert_eq!((broken.status, broken.code()), (400, -32700), "{broken:?}");
    let lying = service.ask(&Request::call(port, "history", &json!({})).with("mcp-protocol-version", "1999-01-01"));
    assert_eq!((lying.status, lying.code()), (400, -32022), "{lying:?}");
    is(&service.ask(&Request::legacy(port, "nothing", &json!({}))), 401, "unauthenticated");
    is(&service.ask(&Request::call(port, "nothing", &json!({}))), 401, "unauthenticated");
    is(&service.ask(&Request::call(port, "history", &json!({"limt": 1}))), 401, "unauthenticated");
}
