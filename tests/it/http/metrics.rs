//! What an operator can see: `/metrics`, the private listener, one line per call (decisions 3, 37, 87).

use serde_json::{Value, json};

use super::{
    service::Service,
    wire::{Connection, Request},
};

pub const CACHE_HITS: &str = "runlore_cache_hits_total";
pub const CACHE_MISSES: &str = "runlore_cache_misses_total";
pub const CALLS_IN_FLIGHT: &str = "runlore_calls_in_flight";
pub const CONNECTIONS: &str = "runlore_connections_open";
pub const REFUSALS: &str = "runlore_refusals_total";
pub const LIMITER_ENTRIES: &str = "runlore_limiter_entries";

#[test]
fn every_number_is_there() {
    let service = Service::start(&["--token", "t"]);
    service.ask(&Request::call(service.port, "history", &json!({})).bearer("t"));
    service.ask(&Request::call(service.port, "history", &json!({"limit": 0})).bearer("t"));
    service.ask(&Request::call(service.port, "history", &json!({})));
    service.ask(&Request::call(service.port, "history", &json!({})).with("host", "evil.example"));
    let answer = service.admin("/metrics");
    assert!(answer.header("content-type").unwrap_or_default().starts_with("text/plain"), "{answer:?}");
    let text = answer.text();
    for name in [CACHE_HITS, CACHE_MISSES, CALLS_IN_FLIGHT, CONNECTIONS, REFUSALS, LIMITER_ENTRIES] {
        assert!(text.contains(&format!("# TYPE {name} ")) && text.contains(&format!("# HELP {name} ")), "{name} in\n{text}");
    }
    for kind in ["runlore_http_requests_total", "runlore_calls_total", "_seconds_bucket", "runlore_resident_memory_bytes"] {
        assert!(text.contains(kind), "{kind} in\n{text}");
    }
    assert_eq!((service.metric(REFUSALS, &["\"host\""]), service.metric(REFUSALS, &["\"unauthenticated\""])), (1.0, 1.0), "{text}");
    assert_eq!(service.metric("runlore_calls_total", &["tool=\"history\"", "outcome=\"ok\""]), 1.0, "{text}");
    assert_eq!(service.metric("runlore_calls_total", &["tool=\"history\"", "outcome=\"refused\""]), 1.0, "{text}");
    assert!(!text.contains("evil") && !text.contains("127.0.0.1"), "{text}");
}

#[test]
fn who_leaves_before_the_answer_is_counted() {
    let service = Service::configured("body_deadline_s = 60\nidle_s = 60", &[]);
    let count = |outcome: &str| service.metric("runlore_http_requests_total", &["route=\"mcp\"", &format!("outcome=\"{outcome}\"")]);
    let refusals = service.metric(REFUSALS, &[]);
    let mut connection = service.connect();
    connection.send(Request::legacy(service.port, "ping", &json!({})).with("content-length", "500").bytes());
    super::service::wait_for("the request to be in", || (service.metric("runlore_http_requests_in_flight", &[]) > 0.0).then_some(()));
    assert_eq!(count("cancelled"), 0.0);
    drop(connection);
    // hyper sees the end of the stream in the middle of a body, or that nobody is there: either way the request has ended and is counted.
    super::service::wait_for("the request to be counted", || (count("cancelled") + count("malformed") > 0.0).then_some(()));
    assert_eq!((count("cancelled") + count("malformed"), count("ok")), (1.0, 0.0));
    assert!(service.metric(REFUSALS, &[]) - refusals <= count("malformed"));
}

#[test]
fn the_private_listener_answers_its_own_host_only() {
    let service = Service::start(&[]);
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(service.admin(path).status, 200, "{path}");
        let evil = Request::get(service.admin, path).with("host", "evil.example");
        assert_eq!(Connection::open(service.admin).ask(&evil).status, 421, "{path}");
    }
    assert_eq!(service.admin("/mcp").status, 404);
    let post = Request::post(service.admin, &json!({})).to("/metrics");
    assert_eq!(Connection::open(service.admin).ask(&post).status, 405);
    let silent = Connection::open(service.admin);
    service.admin("/livez");
    drop(silent);
}

/// The log once `whole` holds of it: lines are written by a thread of their own, so an answer can be first.
fn settled(service: &Service, whole: impl Fn(&str) -> bool) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let log = service.log();
        if whole(&log) || std::time::Instant::now() > deadline {
            return log;
        }
        std::thread::yield_now();
    }
}

#[test]
fn each_call_leaves_one_line_without_values() {
    let service = Service::start(&["--token", "canary-token"]);
    let ask = |tool: &str, arguments: Value| {
        service.ask(&Request::call(service.port, tool, &arguments).bearer("canary-token").with("user-agent", "canary-agent"))
    };
    ask("history", json!({"filter": "canary-value"}));
    ask("runs-list", json!({}));
    ask("history", json!({"limit": 0, "canary-name": 1}));
    ask("canary-tool", json!({}));
    let log = settled(&service, |log| log.matches("\"event\":\"call\"").count() == 4);
    assert!(!log.contains("canary"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let calls: Vec<&Value> = lines.iter().filter(|line| line["event"] == "call").collect();
    let said: Vec<(&str, &str)> = calls.iter().map(|line| (line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap())).collect();
    assert_eq!(said, [("history", "ok"), ("runs_list", "ok"), ("history", "refused"), ("unknown", "refused")], "{log}");
    for line in calls {
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        let known = ["ts", "event", "requestId", "tool", "args", "outcome", "durationMs", "principal"];
        assert!(keys.len() == known.len() && known.iter().all(|key| keys.contains(key)), "{line}");
    }
}

#[test]
fn an_answer_and_its_line_share_an_id() {
    let service = Service::start(&[]);
    let answer = service.ask(&Request::call(service.port, "history", &json!({})));
    let id = answer.header("x-request-id").unwrap();
    settled(&service, |log| log.contains(id));
    assert!(service.log().contains(id), "{id} in {}", service.log());
    let given = service.ask(&Request::call(service.port, "history", &json!({})).with("x-request-id", "mine"));
    assert_ne!(given.header("x-request-id"), Some("mine"));
}
