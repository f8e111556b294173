//! Tests of decoding: each row of HARDENING.md that it answers, and what holds for any bytes at all.
//!
//! Promises: a bounded fuzz of bytes and of almost-messages runs with the unit tests.
//! Does not: open sockets.

use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode;
use crate::gate::{
    message::{Era, Id, Message, VERSIONS},
    refusal::Barred,
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| -> (http::HeaderName, http::HeaderValue) {
        (name.parse().unwrap(), http::HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn modern(pairs: &[(&str, &str)], body: &str) -> Result<Message, Barred> {
    decode(&headers(&[&[("mcp-protocol-version", "2026-07-28")], pairs].concat()), body.as_bytes())
}

fn legacy(body: &str) -> Result<Message, Barred> {
    decode(&HeaderMap::new(), body.as_bytes())
}

/// The code and id of a refusal.
#[track_caller]
fn fault(result: Result<Message, Barred>) -> (i64, Option<Id>) {
    match result {
        Err(Barred::Malformed { code, id, message, .. }) => {
            assert!(!message.is_empty() && message.len() < 300, "{message}");
            (code, id)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plain_call_is_decoded() {
    let message = legacy(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history","arguments":{"limit":5}}}"#).unwrap();
    assert_eq!(
        (message.id, &*message.method, message.era, message.version),
        (Some(Id::Number(1)), "tools/call", Era::Legacy, "2025-03-26")
    );
    assert_eq!(Value::Object(message.params), json!({"name": "history", "arguments": {"limit": 5}}));
    let modern = modern(
        &[("mcp-method", "tools/call"), ("mcp-name", "history")],
        &format!(r#"{{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{{"name":"history",{META}}}}}"#),
    );
    let message = modern.unwrap();
    assert_eq!((message.id, message.era, message.version), (Some(Id::Text("1".into())), Era::Modern, "2026-07-28"));
    assert!(message.params.contains_key("_meta"), "it is still there");
}

#[test]
fn what_is_no_json_or_not_in_one_way_is_a_parse_error() {
    let deep =
        |levels: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#, "[".repeat(levels), "]".repeat(levels));
    let call = |inside: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{inside}}}}}"#);
    let mut rows: Vec<Vec<u8>> = ["", " ", "{", "}", "{}x", "{} {}", "nul", "'x'", "{\"jsonrpc\":\"2.0\",}", "\u{feff}{}", "// x\n{}"]
        .map(|row| row.into())
        .to_vec();
    rows.extend(
        ["NaN", "Infinity", "-Infinity", "1e400", "01", "+1", ".5", r#""\ud800""#, r#""\ud800x""#, r#""\x""#, "\"a\nb\""]
            .map(|inside| call(inside).into_bytes()),
    );
    rows.extend([r#"{"b":1,"b":1}"#, r#"[{"b":{"c":1,"d":2,"c":3}}]"#, r#"{"b":1,"\u0062":2}"#].map(|inside| call(inside).into_bytes()));
    rows.push(br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}"#.to_vec());
    rows.push(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\xff\"}".to_vec());
    rows.push(b"\xff\xfe{\0}\0".to_vec());
    rows.extend([deep(130).into_bytes(), deep(60_000).into_bytes(), "[".repeat(60_000).into_bytes()]);
    for row in rows {
        let shown = String::from_utf8_lossy(&row).chars().take(80).collect::<String>();
        assert_eq!(fault(decode(&HeaderMap::new(), &row)), (-32700, None), "{shown}");
    }
    assert!(legacy(&deep(100)).is_ok());
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let rows = [
        ("[]", None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None),
        ("null", None),
        ("1", None),
        ("\"x\"", None),
        ("{}", None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(1)),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Some(1)),
        (r#"{"id":1,"method":"ping"}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(1)),
        (r#"{"jsonrpc":"2.0"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#, Some(1)),
        (r#"{"Method":"tools/call","jsonrpc":"2.0","method":"ping","id":1}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":0}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"id":1,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, None),
    ];
    for (body, id) in rows {
        assert_eq!(fault(legacy(body)), (-32600, id.map(Id::Number)), "{body}");
    }
}

#[test]
fn notifications_and_responses_are_told_apart() {
    let note = legacy(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap();
    assert!(note.id.is_none() && !note.response);
    for body in [r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}"#, r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#] {
        assert!(legacy(body).unwrap().response, "{body}");
    }
    // The specification leaves a modern notification's headers open; it needs none, but one that lies is refused.
    assert!(modern(&[], r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).is_ok());
    assert_eq!(fault(modern(&[("mcp-method", "y")], r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)), (-32020, None));
}

#[test]
fn ids_keep_their_type() {
    let id = |id: &str| legacy(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap().id.unwrap();
    assert_ne!(id("1"), id("\"1\""));
    assert_eq!((id("-9223372036854775808"), id("\"\"")), (Id::Number(i64::MIN), Id::Text(String::new())));
}

#[test]
fn the_version_is_one_that_is_spoken() {
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    for version in VERSIONS.into_iter().skip(1) {
        let message = decode(&headers(&[("MCP-Protocol-Version", version)]), ping.as_bytes()).unwrap();
        assert_eq!((message.era, message.version), (Era::Legacy, version));
    }
    for version in ["2024-11-05", "1900-01-01", "", "2026-07-28 ", "DRAFT-2026"] {
        let refused = decode(&headers(&[("mcp-protocol-version", version)]), ping.as_bytes());
        let Err(Barred::Malformed { code, data, id, .. }) = refused else { panic!("{version}") };
        assert_eq!((code, id, data), (-32022, Some(Id::Number(7)), Some(json!({"supported": VERSIONS, "requested": version}))));
    }
    let long = "x".repeat(5000);
    let Err(Barred::Malformed { data, .. }) = decode(&headers(&[("mcp-protocol-version", &long)]), ping.as_bytes()) else { panic!() };
    assert_eq!(data.unwrap()["requested"].as_str().unwrap().len(), 64);
    let twice = headers(&[("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", "2025-11-25")]);
    assert_eq!(fault(decode(&twice, ping.as_bytes())).0, -32020);
    assert_eq!(fault(decode(&headers(&[("mcp-protocol-version", "2025\u{e4}")]), ping.as_bytes())).0, -32020);
}

#[test]
fn initialize_is_always_legacy_and_gets_a_version_that_it_can_have() {
    let asks = |version: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":{version}}}}}"#);
    let rows = [
        ("\"2025-06-18\"", "2025-06-18"),
        ("\"2025-03-26\"", "2025-03-26"),
        ("\"2024-11-05\"", "2025-11-25"),
        ("\"2026-07-28\"", "2025-11-25"),
    ];
    for (asked, given) in rows.into_iter().chain([("\"x\"", "2025-11-25"), ("7", "2025-11-25")]) {
        let message = legacy(&asks(asked)).unwrap();
        assert_eq!((message.era, message.version), (Era::Legacy, given), "{asked}");
    }
    let header = |version| decode(&headers(&[("mcp-protocol-version", version)]), asks("\"2025-06-18\"").as_bytes());
    assert_eq!(header("2026-07-28").unwrap().version, "2025-06-18");
    assert_eq!(fault(header("2024-11-05")), (-32022, Some(Id::Number(1))));
}

#[test]
fn a_modern_request_says_all_that_it_must() {
    let list = |meta: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
    let method = [("mcp-method", "tools/list")];
    assert!(modern(&method, &list(META)).is_ok());
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let lacking = [
        String::new(),
        r#""_meta":{}"#.to_owned(),
        r#""_meta":7"#.to_owned(),
        format!(r#""_meta":{{{version}}}"#),
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":[]}}"#),
        r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#.to_owned(),
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}"#.to_owned(),
    ];
    for meta in lacking {
        assert_eq!(fault(modern(&method, &list(&meta))), (-32602, Some(Id::Number(1))), "{meta}");
    }
    assert_eq!(fault(modern(&method, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)).0, -32602);
    // Header and body differ, either way round; the body says one and there is no header.
    let old = META.replace("2026-07-28", "2025-11-25");
    assert_eq!(fault(modern(&method, &list(&old))).0, -32020);
    assert_eq!(fault(decode(&headers(&[("mcp-protocol-version", "2025-11-25")]), list(META).as_bytes())).0, -32020);
    assert_eq!(fault(legacy(&list(META))).0, -32020);
    assert_eq!(fault(modern(&[], &list(META))), (-32020, Some(Id::Number(1))), "no Mcp-Method");
}

#[test]
fn the_headers_say_what_the_body_says() {
    let body = |method: &str, key: &str, name: &str| {
        let params = json!({key: name, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let sent = |method: &str, key: &str, name: &str, header: &str| {
        modern(&[("mcp-method", method), ("mcp-name", header)], &body(method, key, name))
    };
    let good = [
        ("tools/call", "name", "history", "history"),
        ("prompts/get", "name", "p", "p"),
        ("resources/read", "uri", "runlore://runs/1", "runlore://runs/1"),
        ("resources/subscribe", "uri", "u", "u"),
        ("tools/call", "name", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("tools/call", "name", "history", "=?base64?aGlzdG9yeQ==?="),
        ("tools/call", "name", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("tools/call", "name", "=?BASE64?x?=", "=?BASE64?x?="),
        ("tools/list", "name", "x", "ignored elsewhere"),
    ];
    for (method, key, name, header) in good {
        assert!(sent(method, key, name, header).is_ok(), "{method} {name} {header}");
    }
    let bad = [
        ("tools/call", "name", "history", "show"),
        ("tools/call", "name", "project.plan", "project_plan"),
        ("tools/call", "name", "history", "History"),
        ("tools/call", "name", "history", ""),
        ("tools/call", "uri", "history", "history"),
        ("resources/read", "name", "u", "u"),
        ("tools/call", "name", "history", "=?base64?aGlzdG9yeQ?="),
        ("tools/call", "name", "history", "=?base64?!!!?="),
        ("tools/call", "name", "history", "=?base64?aGlz dG9yeQ==?="),
        ("tools/call", "name", "history", "=?base64?/w==?="),
        ("tools/call", "name", "=?base64?literal?=", "=?base64?literal?="),
    ];
    for (method, key, name, header) in bad {
        assert_eq!(fault(sent(method, key, name, header)), (-32020, Some(Id::Number(1))), "{method} {name} {header}");
    }
    let call = body("tools/call", "name", "history");
    for lies in [&[("mcp-method", "tools/call")][..], &[("mcp-method", "tools/list"), ("mcp-name", "history")], &[("mcp-name", "history")]]
    {
        assert_eq!(fault(modern(lies, &call)).0, -32020, "{lies:?}");
    }
    let twice = [("mcp-method", "tools/call"), ("mcp-name", "history"), ("mcp-name", "history")];
    assert_eq!(fault(modern(&twice, &call)).0, -32020);
    assert_eq!(fault(modern(&[("mcp-method", "tools/call"), ("mcp-method", "tools/call"), ("mcp-name", "history")], &call)).0, -32020);
}

#[test]
fn a_name_that_lies_is_refused_with_an_old_or_no_version_too() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"history"}}"#;
    for version in [&[][..], &[("mcp-protocol-version", "2025-11-25")], &[("mcp-protocol-version", "2025-03-26")]] {
        let with = |lies: &[(&str, &str)]| decode(&headers(&[version, lies].concat()), call.as_bytes());
        assert!(with(&[]).is_ok() && with(&[("mcp-name", "history"), ("mcp-method", "tools/call")]).is_ok());
        assert_eq!(fault(with(&[("mcp-name", "show")])).0, -32020);
        assert_eq!(fault(with(&[("mcp-method", "ping")])).0, -32020);
    }
}

/// Almost a message: members that are right, wrong, twice or strange.
fn almost() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![Just("jsonrpc"), Just("id"), Just("method"), Just("params"), Just("result"), Just("error"), Just("Id"), Just("_meta")];
    let value = prop_oneof![
        Just("\"2.0\""),
        Just("1"),
        Just("1.5"),
        Just("null"),
        Just("\"tools/call\""),
        Just("{}"),
        Just("[]"),
        Just("{\"name\":\"x\"}"),
        Just("{\"a\":1,\"a\":2}"),
        Just("NaN"),
        Just("\"\\ud800\""),
        Just("1e999"),
        Just("\"initialize\""),
    ];
    proptest::collection::vec((name, value), 0..6).prop_map(|members| {
        let members: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

/// What must hold for whatever comes in.
fn holds(headers: &HeaderMap, body: &[u8]) -> Result<(), TestCaseError> {
    match decode(headers, body) {
        Ok(message) => {
            // What was let in is JSON with one meaning, and says of itself what the message says.
            let plain: Value = serde_json::from_slice(body).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&plain["jsonrpc"], "2.0");
            prop_assert!(VERSIONS.contains(&message.version) && (message.era == Era::Modern) == (message.version == VERSIONS[0]));
            if !message.response {
                prop_assert_eq!(plain["method"].as_str(), Some(&*message.method));
                prop_assert_eq!(plain.get("params").cloned().unwrap_or_else(|| json!({})), Value::Object(message.params));
                prop_assert_eq!(plain.get("id").is_some(), message.id.is_some());
            }
        }
        Err(Barred::Malformed { code, .. }) => prop_assert!([-32700, -32600, -32602, -32020, -32022].contains(&code)),
        Err(other) => prop_assert!(false, "{:?}", other),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_bytes_are_a_message_or_a_refusal(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        holds(&HeaderMap::new(), &body)?;
    }

    #[test]
    fn almost_a_message_is_one_or_a_refusal(body in almost(), version in 0_usize..6) {
        let version = ["", "2026-07-28", "2025-11-25", "2025-03-26", "1900-01-01", "x"][version];
        let headers = if version.is_empty() { HeaderMap::new() } else { headers(&[("mcp-protocol-version", version)]) };
        holds(&headers, body.as_bytes())?;
    }

    #[test]
    fn a_good_message_with_one_byte_changed_is_one_or_a_refusal(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"history","arguments":{{"limit":5,"filter":"é"}},{META}}}}}"#).into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        holds(&headers(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "history")]), &body)?;
    }

    #[test]
    fn a_key_twice_is_refused_wherever_it_stands(path in proptest::collection::vec(any::<bool>(), 0..20), key in "[a-z]{1,3}") {
        let twice = format!(r#"{{"{key}":1,"z9":0,"{key}":2}}"#);
        let nested = path.iter().fold(twice, |inside, object| if *object { format!(r#"{{"k":{inside}}}"#) } else { format!("[0,{inside}]") });
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"p":{nested}}}}}"#);
        prop_assert_eq!(fault(legacy(&body)), (-32700, None));
    }
}
