//! What is a message: JSON, the envelope, arguments (HARDENING "Requests"; the decode step of the door).

use serde_json::{Value, json};

use super::{service::Service, wire::Request};

#[test]
fn what_is_no_json_is_a_parse_error() {
    let service = Service::start(&[]);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let call = |value: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"history","arguments":{{"filter":{value}}}}}}}"#)
            .into_bytes()
    };
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("half", b"{".to_vec()),
        ("nothing", Vec::new()),
        ("byte order mark", [b"\xef\xbb\xbf".as_slice(), ping].concat()),
        ("no utf-8", call("\"\u{1}\"").iter().map(|byte| if *byte == 1 { 0xff } else { *byte }).collect()),
        ("lone surrogate", call(r#""\ud800""#)),
        ("control character", call("\"\u{1}\"")),
        ("130 levels", call(&deep)),
        ("NaN", call("NaN")),
        ("Infinity", call("-Infinity")),
        ("two messages", [ping.as_slice(), ping].concat()),
        ("trailing", [ping.as_slice(), b"x"].concat()),
    ];
    for (name, body) in cases {
        let answer = service.ask(&Request::raw(service.port, body).with("mcp-protocol-version", "2025-11-25"));
        assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (400, -32700, &Value::Null), "{name}: {answer:?}");
    }
}

#[test]
fn what_is_no_request_is_invalid() {
    let service = Service::start(&[]);
    let one = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for message in [
        json!([one.clone(), one.clone()]),
        json!([]),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": true, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        json!({"id": 1, "method": "ping"}),
        json!({"jsonrpc": 2.0, "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 7}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}),
        json!("ping"),
        json!(1),
        json!(null),
    ] {
        let answer = service.ask(&Request::post(service.port, &message).with("mcp-protocol-version", "2025-11-25"));
        assert_eq!((answer.status, answer.code()), (400, -32600), "{message}: {answer:?}");
    }
}

#[test]
fn no_key_may_stand_twice() {
    let service = Service::start(&[]);
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history","name":"show","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history","arguments":{"limit":1,"limit":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history","arguments":{"a":{"b":[{"c":1,"c":2}]}}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history","arguments":{"limit":1,"l\u0069mit":2}}}"#,
    ] {
        let answer = service.ask(&Request::raw(service.port, body).with("mcp-protocol-version", "2025-11-25"));
        assert!(answer.status == 400 && matches!(answer.code(), -32600 | -32700), "{body}: {answer:?}");
    }
    assert!(!service.log().contains("\"event\":\"call\""), "nothing ran");
}

#[test]
fn ids_come_back_as_they_were() {
    let service = Service::start(&[]);
    for id in [json!(1), json!("1"), json!(""), json!(0), json!(-7), json!(9_007_199_254_740_993_i64), json!("\u{1f600}\"\n")] {
        let answer = service.ask(&Request::post(service.port, &json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
        assert_eq!((answer.status, &answer.json()["id"]), (200, &id), "{answer:?}");
    }
}

#[test]
fn wrong_arguments_are_results_that_name_them() {
    let service = Service::start(&[]);
    for (arguments, said) in [
        (json!({"limit": "three"}), "limit"),
        (json!({"limit": 1e30}), "limit"),
        (json!({"limit": 18_446_744_073_709_551_615_u64}), "limit"),
        (json!({"limit": -1}), "limit"),
        (json!({"limt": 3}), "unknown argument `limt`"),
        (json!({"filter": {"a": 1}}), "filter"),
        (json!({"__proto__": {}}), "__proto__"),
    ] {
        let result = service.call("history", &arguments);
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(result["isError"] == true && text.contains(said), "{arguments}: {result}");
    }
    for arguments in [json!([1]), json!("x"), json!(1)] {
        let answer = service.ask(&Request::call(service.port, "history", &arguments));
        assert!(
            answer.code() == -32602 || answer.json()["result"]["isError"] == true || answer.code() == -32600,
            "{arguments}: {answer:?}"
        );
    }
}
