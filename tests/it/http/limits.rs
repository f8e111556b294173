//! Limits of requests and of tool calls (decisions 1, 32, 33, 52).

use serde_json::{Value, json};

use super::{metrics, service::Service, wire::Request};

fn wait_of(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn too_many_requests_are_told_how_long_to_wait() {
    let service = Service::start(&["--request-rate", "3"]);
    let ping = Request::legacy(service.port, "ping", &json!({}));
    for _ in 0..3 {
        assert_eq!(service.ask(&ping).status, 200);
    }
    let answer = service.ask(&ping);
    assert_eq!((answer.status, answer.code(), answer.reason()), (429, -32000, "rate".to_owned()), "{answer:?}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    assert_eq!(answer.json()["error"]["data"]["retryAfterSeconds"], wait);
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains(&wait.to_string()));
    assert_eq!(service.ask(&Request::get(service.port, "/mcp/health")).status, 429, "health counts too");
    assert_eq!(service.ask(&ping.clone().with("host", "evil.example")).status, 421, "what is refused before does not count, nor wait");
    assert!(service.metric(metrics::REFUSALS, &["rate"]) >= 2.0, "{:?}", service.metrics());
}

#[test]
fn too_many_calls_are_a_result_that_says_how_long_to_wait() {
    let service = Service::start(&["--rate", "3"]);
    service.call("history", &json!({}));
    service.call("history", &json!({"limit": 0}));
    service.ask(&Request::call(service.port, "nothing", &json!({})));
    for _ in 0..2 {
        let text = wait_of(&service.call("history", &json!({})));
        assert!(text.contains("3 a minute") && text.contains("second"), "{text}");
    }
    // Only calls are counted by this one.
    service.serves();
    let modern = service.ask(&Request::modern(service.port, "tools/call", &json!({"name": "history", "arguments": {}})));
    assert_eq!((modern.status, &modern.json()["result"]["isError"]), (200, &json!(true)), "{modern:?}");
}

#[test]
fn the_total_counts_only_what_runs() {
    let service = Service::start(&["--rate-total", "2"]);
    for _ in 0..3 {
        assert_ne!(service.call("history", &json!({}))["isError"], true, "a repeated question costs nothing");
    }
    assert_eq!(service.call("history", &json!({"limit": 0}))["isError"], true);
    assert_ne!(service.call("runs_list", &json!({}))["isError"], true);
    let text = wait_of(&service.call("runs_list", &json!({"limit": 3})));
    assert!(text.contains("2 calls a minute") && text.contains("second"), "{text}");
    assert_ne!(service.call("history", &json!({}))["isError"], true, "kept answers are still given");
}

#[test]
fn the_loopback_has_no_rates_unless_asked_for() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    for _ in 0..700 {
        assert_eq!(connection.ask(&Request::call(service.port, "runs_list", &json!({}))).status, 200);
    }
}

#[test]
fn invented_names_are_one_label() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    for n in 0..2000 {
        let answer = connection.ask(&Request::call(service.port, &format!("invented_{n}"), &json!({})));
        assert_eq!(answer.code(), -32602);
    }
    let all = service.metrics();
    assert!(all.keys().all(|key| !key.contains("invented")), "{all:?}");
    assert!(all.keys().any(|key| key.contains("tool=\"unknown\"")), "{all:?}");
    assert!(!service.log().contains("invented"), "names of tools that are none are not logged");
}

#[test]
fn what_was_sent_cannot_write_the_log() {
    let service = Service::start(&[]);
    for name in ["a\nb\u{1b}[31m", "\r\n{\"event\":\"call\"}", "\u{0}\u{7}", "\u{202e}x"] {
        service.ask(&Request::call(service.port, name, &json!({name: 1})));
        service.ask(&Request::legacy(service.port, name, &json!({})));
        service.ask(&Request::call(service.port, "history", &json!({name: 1})));
    }
    service.ask(&Request::legacy(service.port, "ping", &json!({})).with("user-agent", "a\u{1b}[31mb").with("origin", "\u{1b}[31m"));
    let log = service.log();
    assert!(log.chars().all(|character| character == '\n' || !character.is_control()), "{log:?}");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line:?}");
    }
}

#[test]
fn the_limiters_memory_is_bounded() {
    let service =
        Service::configured("limiter_keys_max = 100", &["--client-header", "X-Real-IP", "--request-rate", "1000", "--rate", "1000"]);
    let mut connection = service.connect();
    for n in 0..2000_u32 {
        let address = format!("198.51.{}.{}", n / 250, n % 250);
        connection.ask(&Request::call(service.port, "runs_list", &json!({})).with("x-real-ip", &address));
    }
    let entries = service.metrics().into_iter().filter(|(key, _)| key.starts_with(metrics::LIMITER_ENTRIES));
    for (key, count) in entries {
        assert!(count <= 200.0, "{key} {count}");
    }
}
