//! What other servers are told of calls and faults (decisions 3, 37, 38): spans by OTLP, faults to Sentry, analytics in Umami's form.
//!
//! Promises: each receiver reads its own protocol; none of them can slow, fail or leak a call.
//! Does not: test what the server says on its own listeners; `metrics` does.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::SIGTERM;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value},
    trace::v1::Span,
};
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    receiver::{Got, Manner, Receiver},
    service::{Service, wait_for},
    wire::Request,
};
use crate::harness::Project;

const DROPPED: &str = "runlore_hook_dropped_total";
const FAILED: &str = "runlore_hook_failed_total";
const ANALYTICS: &str = "runlore_analytics_events_total";

/// The receivers of all three hooks.
struct Town {
    otlp: Receiver,
    sentry: Receiver,
    umami: Receiver,
    service: Service,
}

impl Town {
    fn start(manner: Manner, timeout_ms: u64, http: &str) -> Self {
        let start = || Receiver::start(manner);
        let (otlp, sentry, umami) = (start(), start(), start());
        let project = Project::demo();
        let dsn = project.write("dsn", format!("http://publickey@127.0.0.1:{}/7\n", sentry.port));
        let keys = project.write("keys", "x-key: s3cret\n");
        let config = format!(
            "{http}\n[otlp]\nendpoint = \"{}\"\nheaders_file = {keys:?}\ntimeout_ms = {timeout_ms}\n\
             [sentry]\ndsn_file = {dsn:?}\nenvironment = \"test\"\ntimeout_ms = {timeout_ms}\n\
             [analytics]\nurl = \"{}\"\nwebsite = \"w-1\"\nhostname = \"runs.example\"\ntimeout_ms = {timeout_ms}\n",
            otlp.url(""),
            umami.url("/api/send"),
        );
        let service = Service::with(project, &config, &["--client-header", "X-Real-IP"]);
        Self { otlp, sentry, umami, service }
    }

    fn call(&self, tool: &str, arguments: &Value) {
        let answer = self.service.ask(&Request::call(self.service.port, tool, arguments));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    fn spans(&self) -> Vec<Span> {
        self.otlp.got().iter().flat_map(spans).collect()
    }
}

fn spans(got: &Got) -> Vec<Span> {
    assert_eq!((got.target.as_str(), got.header("content-type"), got.header("x-key")), ("/v1/traces", "application/x-protobuf", "s3cret"));
    let request = ExportTraceServiceRequest::decode(got.body.as_slice()).unwrap();
    let resources = request.resource_spans.into_iter();
    resources
        .flat_map(|one| {
            assert_eq!(text(&one.resource.unwrap().attributes, "service.name"), "runlore");
            one.scope_spans
        })
        .flat_map(|scope| scope.spans)
        .collect()
}

fn text(all: &[KeyValue], key: &str) -> String {
    let found = all.iter().find(|one| one.key == key).unwrap_or_else(|| panic!("{key} in {all:?}"));
    match found.value.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => text,
        any_value::Value::ArrayValue(array) => array.values.into_iter().map(|one| format!("{:?};", one.value.unwrap())).collect(),
        other => panic!("{key}: {other:?}"),
    }
}

#[test]
fn a_call_is_told_to_each_in_its_own_form_and_no_value_leaves() {
    let town = Town::start(Manner::Answers(200), 5000, "");
    let meta = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "canary-meta": 1});
    let params = json!({"name": "runs-list", "arguments": {"status": "completed", "evaluation": "canary-value"}, "_meta": meta});
    let request = Request::legacy(town.service.port, "tools/call", &params);
    let answer = town.service.ask(&request.with("x-real-ip", "2001:db8:1:2:3:4:5:6").with("user-agent", "canary-agent"));
    town.umami.wait(1);
    town.otlp.wait(1);

    let [span] = town.spans().try_into().unwrap();
    assert_eq!((span.name.as_str(), span.kind), ("tools/call runs_list", 2), "a server's span");
    assert_eq!(hex(&span.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&span.parent_span_id), "b7ad6b7169203331");
    assert_eq!((text(&span.attributes, "gen_ai.tool.name"), text(&span.attributes, "runlore.outcome")), ("runs_list".into(), "ok".into()));
    assert_eq!(text(&span.attributes, "runlore.request_id"), answer.header("x-request-id").unwrap());
    assert_eq!(text(&span.attributes, "runlore.principal"), "anonymous");
    let names = text(&span.attributes, "runlore.arguments");
    assert!(names.contains("\"status\"") && names.contains("\"evaluation\""), "{names}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
    assert!(start < end && end <= now && now - start < 60_000_000_000, "{start} {end} {now}");

    let [event] = town.umami.got().try_into().unwrap();
    let payload = json!({"website": "w-1", "hostname": "runs.example", "url": "/mcp", "name": "mcp:runs_list", "ip": "2001:db8:1:2::", "data": {"outcome": "ok"}});
    assert_eq!(serde_json::from_slice::<Value>(&event.body).unwrap(), json!({"type": "event", "payload": payload}));
    let agent = event.header("user-agent");
    assert!(agent.starts_with("Mozilla/5.0 (") && !agent.to_lowercase().contains("bot"), "{agent}");
    assert_eq!((event.target.as_str(), event.header("x-forwarded-for")), ("/api/send", "2001:db8:1:2::"));

    town.call("canary-tool", &json!({"canary": "canary-value"}));
    town.umami.wait(2);
    wait_for("the second span", || (town.spans().len() == 2).then_some(()));
    assert!(town.spans().iter().any(|span| span.name == "tools/call unknown" && span.parent_span_id.is_empty()));
    for got in town.otlp.got().iter().chain(&town.umami.got()) {
        assert!(!String::from_utf8_lossy(&got.body).contains("canary") && !format!("{:?}", got.headers).contains("canary"), "{got:?}");
        assert!(!got.target.contains("canary"));
    }
    assert!(town.otlp.got().iter().all(|got| !String::from_utf8_lossy(&got.body).contains("2001:db8")), "an address is for analytics only");
    wait_for("the count", || (town.service.metric(ANALYTICS, &["outcome=\"sent\""]) == 2.0).then_some(()));
    assert_eq!((town.service.metric(DROPPED, &[]), town.service.metric(FAILED, &[])), (0.0, 0.0));
    assert!(town.sentry.got().is_empty(), "a refusal is no fault of ours");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_caller_that_does_not_record_is_not_recorded() {
    let town = Town::start(Manner::Answers(200), 5000, "");
    for flags in ["00", "01"] {
        let meta = json!({"traceparent": format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}")});
        let params = json!({"name": "history", "arguments": {}, "_meta": meta});
        town.service.ask(&Request::legacy(town.service.port, "tools/call", &params));
    }
    town.umami.wait(2);
    town.otlp.wait(1);
    assert_eq!(town.spans().len(), 1);
}

/// The tables that `history` reads, taken away behind the server's back.
fn broken(service: &Service) {
    let store = rusqlite::Connection::open(service.project.path().join(".runlore/history.db")).unwrap();
    store.execute_batch("ALTER TABLE run_arms_m RENAME TO gone").unwrap();
}

#[test]
fn a_fault_of_ours_is_told_without_paths_or_values() {
    let town = Town::start(Manner::Answers(200), 5000, "");
    town.call("runs_list", &json!({}));
    broken(&town.service);
    let params = json!({"name": "runs_list", "arguments": {"evaluation": "refund_policy"}, "_meta": {"note": "canary-meta"}});
    let request = Request::legacy(town.service.port, "tools/call", &params).with("user-agent", "canary-agent");
    let answer = town.service.ask(&request);
    let [got] = town.sentry.wait(1).try_into().unwrap();
    assert_eq!((got.target.as_str(), got.header("content-type")), ("/api/7/envelope/", "application/x-sentry-envelope"));
    assert!(got.header("x-sentry-auth").contains("sentry_key=publickey"), "{got:?}");
    let body = String::from_utf8(got.body).unwrap();
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = |line: &Value| line["event_id"].as_str().unwrap().replace('-', "");
    assert_eq!((&lines[1]["type"], id(&lines[0])), (&json!("event"), id(&lines[2])));
    let event = &lines[2];
    // Sentry takes a missing level for an error.
    assert_eq!((event["level"].as_str().unwrap_or("error"), &event["environment"]), ("error", &json!("test")));
    assert_eq!(event["tags"], json!({"kind": "tool", "tool": "runs_list", "request_id": answer.header("x-request-id").unwrap()}));
    assert!(event["release"].as_str().unwrap().starts_with("runlore@"));
    assert!(!event["message"].as_str().unwrap().is_empty());
    let home = town.service.project.path().display().to_string();
    assert!(
        !body.contains("canary")
            && !body.contains("refund")
            && !body.contains(&home)
            && event.get("server_name").is_none()
            && event.get("user").is_none(),
        "{body}"
    );
}

#[test]
fn a_server_that_refuses_is_counted_and_slows_nobody() {
    let town = Town::start(Manner::Answers(500), 5000, "");
    for _ in 0..3 {
        town.call("runs_list", &json!({}));
    }
    wait_for("three refused", || (town.service.metric(ANALYTICS, &["outcome=\"refused\""]) == 3.0).then_some(()));
    wait_for("three spans", || (town.service.metric(FAILED, &["hook=\"otlp\""]) == 3.0).then_some(()));
    assert_eq!(town.service.metric(FAILED, &["hook=\"analytics\""]), 3.0);
    assert_eq!(town.service.metric(DROPPED, &[]), 0.0);
    town.service.serves();
}

#[test]
fn a_server_that_says_too_many_is_left_alone() {
    let town = Town::start(Manner::Answers(429), 5000, "");
    town.call("runs_list", &json!({}));
    broken(&town.service);
    for limit in 1..4 {
        town.service.ask(&Request::call(town.service.port, "runs_list", &json!({"limit": limit})));
    }
    wait_for("three faults", || (town.service.metric(FAILED, &["hook=\"sentry\""]) == 3.0).then_some(()));
    assert_eq!(town.sentry.got().len(), 1, "the other two were not sent at all");
}

#[test]
fn a_flood_before_a_server_that_hangs_costs_no_call_and_is_counted() {
    const CALLS: usize = 1300;
    let mut town = Town::start(Manner::Hangs, 60_000, "flush_ms = 200");
    town.call("runs_list", &json!({}));
    // One of each is held by the receiver; the queue takes 1,024 more.
    town.umami.wait(1);
    town.otlp.wait(1);
    let mut connection = town.service.connect();
    let began = Instant::now();
    for _ in 0..CALLS {
        assert_eq!(connection.ask(&Request::call(town.service.port, "runs_list", &json!({}))).status, 200);
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{CALLS} answers of the cache took {took:?}");
    let lost = (CALLS - 1024) as f64;
    assert_eq!(town.service.metric(DROPPED, &["hook=\"analytics\""]), lost);
    assert_eq!(town.service.metric(DROPPED, &["hook=\"otlp\""]), lost);
    drop(connection);
    let began = Instant::now();
    town.service.signal(SIGTERM);
    assert_eq!(town.service.ended(), Some(0), "{}", town.service.log());
    assert!(began.elapsed() < Duration::from_secs(8), "the end waits for them no longer than it says: {:?}", began.elapsed());
    assert!(town.service.log().contains("not all that other servers were to be told"), "{}", town.service.log());
}

#[test]
fn what_is_still_to_be_told_is_told_before_the_end() {
    let mut town = Town::start(Manner::Answers(200), 5000, "flush_ms = 10000");
    for _ in 0..40 {
        town.call("runs_list", &json!({}));
    }
    town.service.signal(SIGTERM);
    assert_eq!(town.service.ended(), Some(0), "{}", town.service.log());
    assert_eq!((town.umami.got().len(), town.spans().len()), (40, 40));
}

#[test]
fn a_server_that_is_not_there_is_no_reason_not_to_serve() {
    let town = Town::start(Manner::Answers(200), 500, "");
    let gone = Receiver::start(Manner::Hangs).port;
    drop(town);
    let project = Project::demo();
    let config = format!("[otlp]\nendpoint = \"https://127.0.0.1:{gone}\"\ntimeout_ms = 100\n");
    let service = Service::with(project, &config, &[]);
    service.call("runs_list", &json!({}));
    wait_for("the span to be lost", || (service.metric(FAILED, &["hook=\"otlp\""]) == 1.0).then_some(()));
    service.serves();
}
