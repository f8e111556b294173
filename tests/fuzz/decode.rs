//! The decode step: headers and a body, to one message or a refusal.
//!
//! Promises: what is let in is JSON with one meaning and says what the message says, as serde_json alone reads it; what is refused is a small
//! JSON-RPC error with a known code and the id that was sent.
//! Does not: repeat the step's rules; its own tests do.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use runlore::gate::{
    decode::decode,
    message::{Era, Id, MODERN, Message, VERSIONS},
    refusal::Barred,
};
use serde_json::{Value, json};

use crate::mutate::Fuzz;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
/// A refusal's body without the id that it repeats: a sentence, a code, a few words of data.
const REFUSAL_BYTES_MAX: usize = 1024;

const WORDS: &[&str] = &[
    "\"id\":1,",
    "\"id\":\"1\",",
    "\"id\":null,",
    "\"id\":1.5,",
    "\"jsonrpc\":\"2.0\",",
    "\"jsonrpc\":\"1.0\",",
    "\"method\":\"tools/call\",",
    "\"Method\":\"x\",",
    "\"params\":{},",
    "\"result\":{},",
    "\"error\":{\"code\":1,\"message\":\"x\"},",
    "\"name\":\"history\",",
    "\"arguments\":{\"limit\":1},",
    "mcp-protocol-version: 2026-07-28\n",
    "mcp-protocol-version: 2025-11-25\n",
    "mcp-protocol-version: 2099-01-01\n",
    "mcp-method: tools/call\n",
    "mcp-method: initialize\n",
    "mcp-name: history\n",
    "mcp-name: =?base64?aGlzdG9yeQ==?=\n",
    "\n\n",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\u0069",
    "NaN",
    "1e999",
    "-0",
    "18446744073709551616",
    "\u{feff}",
    "é",
];

/// HARDENING's rows on messages, and good ones to begin from: header lines, an empty line, a body.
fn corpus() -> Vec<Vec<u8>> {
    let modern = |method: &str, more: &str, params: &str| {
        format!(
            "mcp-protocol-version: 2026-07-28\nmcp-method: {method}\n{more}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}{META}}}}}"
        )
    };
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"history","arguments":{"filter":"é","limit":5}}}"#;
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}1{}}}}}"#, "[".repeat(130), "]".repeat(130));
    let mut texts = vec![
        modern("tools/call", "mcp-name: history\n", r#""name":"history","arguments":{},"#),
        modern("tools/call", "mcp-name: =?base64?aGlzdG9yeQ==?=\n", r#""name":"history","#),
        modern("tools/call", "mcp-name: show\n", r#""name":"history","#),
        modern("resources/read", "mcp-name: runlore://runs/a\n", r#""uri":"runlore://runs/a","#),
        modern("server/discover", "", ""),
        format!("mcp-protocol-version: 2025-11-25\n\n{call}"),
        format!("\n{call}"),
        format!("mcp-name: show\n\n{call}"),
        format!("\n{deep}"),
        format!("\n\u{feff}{call}"),
    ];
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":1,"b":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    ];
    texts.extend(bodies.map(|body| format!("\n{body}")));
    texts.push(format!("mcp-protocol-version: 1999-01-01\n\n{call}"));
    let mut inputs: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    inputs.push(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec());
    inputs
}

/// The header lines that are headers, and the rest after the first empty line.
fn parts(input: &[u8]) -> (HeaderMap, &[u8]) {
    let mut headers = HeaderMap::new();
    let mut rest = input;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            headers.append(name, value);
        }
    }
    (headers, rest)
}

/// How many members the objects of a JSON text have, keys that stand twice counted twice: the colons outside of texts.
fn members_written(json: &str) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

/// The same once read: of two equal keys one is left.
fn members_read(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(members_read).sum::<usize>(),
        Value::Array(items) => items.iter().map(members_read).sum(),
        _ => 0,
    }
}

fn id_of(value: &Value) -> Option<Id> {
    let number = value["id"].as_i64().map(Id::Number);
    number.or_else(|| value["id"].as_str().map(|text| Id::Text(text.to_owned())))
}

fn let_in(headers: &HeaderMap, body: &[u8], message: &Message) -> String {
    let text = std::str::from_utf8(body).expect("what is let in is UTF-8");
    let plain: Value = serde_json::from_str(text).expect("what is let in is JSON");
    assert_eq!(members_written(text), members_read(&plain), "a key stands twice");
    assert_eq!(plain["jsonrpc"], "2.0");
    assert!(VERSIONS.contains(&message.version) && (message.era == Era::Modern) == (message.version == MODERN));
    if message.response {
        assert!(plain.get("method").is_none() && (plain.get("result").is_some() != plain.get("error").is_some()));
        return "a response".to_owned();
    }
    let params = Value::Object(message.params.clone());
    assert_eq!((plain["method"].as_str(), plain.get("params").unwrap_or(&json!({}))), (Some(&*message.method), &params));
    assert_eq!((id_of(&plain), plain.get("id").is_some()), (message.id.clone(), message.id.is_some()));
    let said: Vec<&[u8]> = headers.get_all("mcp-method").iter().map(HeaderValue::as_bytes).collect();
    assert!(said.iter().all(|said| *said == message.method.as_bytes()), "a header says another method");
    let modern = message.era == Era::Modern && message.id.is_some();
    assert!(!modern || (said.len() == 1 && plain["params"]["_meta"].is_object()), "a modern request says everything");
    let key = if message.method.starts_with("resources/") { "uri" } else { "name" };
    if matches!(&*message.method, "tools/call" | "prompts/get" | "resources/read")
        && let Some(name) = headers.get("mcp-name").filter(|name| !name.as_bytes().starts_with(b"=?"))
    {
        assert_eq!(plain["params"][key].as_str().map(str::as_bytes), Some(name.as_bytes()), "a header says another name");
    }
    format!("{:?} {} {}", message.era, message.version, if message.id.is_some() { "a request" } else { "a notification" })
}

fn refused(runtime: &tokio::runtime::Runtime, body: &[u8], barred: &Barred) -> String {
    let Barred::Malformed { code, message, id, .. } = barred else { panic!("another step's refusal: {barred:?}") };
    assert!([-32700, -32600, -32602, -32020, -32022].contains(code), "{code}");
    let response = barred.response("r1");
    assert_eq!(response.status(), 400);
    let sent = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
    let said: Value = serde_json::from_slice(&sent).expect("a refusal is JSON");
    assert_eq!((&said["jsonrpc"], &said["error"]["code"], &said["error"]["message"]), (&json!("2.0"), &json!(code), &json!(message)));
    assert_eq!(said["error"]["data"]["requestId"], "r1");
    let repeated = id.as_ref().map_or(json!(null), |id| serde_json::from_str(&id.json()).unwrap());
    assert_eq!(said["id"], repeated);
    if let (Some(id), Ok(plain)) = (id, serde_json::from_slice::<Value>(body)) {
        assert_eq!(id_of(&plain).as_ref(), Some(id), "the id of the message, and no other");
    }
    let echoed = repeated.to_string().len();
    assert!(sent.len() <= REFUSAL_BYTES_MAX + echoed, "{} bytes: {said}", sent.len());
    // The sentence without its numbers (line and column): the outcomes are to be few.
    format!("{code} {}", message.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>())
}

#[test]
fn whatever_comes_in_is_one_message_or_a_refusal() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcomes = Fuzz { corpus: corpus(), words: WORDS }.run("decode", |input| {
        let (headers, body) = parts(input);
        match decode(&headers, body) {
            Ok(message) => let_in(&headers, body, &message),
            Err(barred) => refused(&runtime, body, &barred),
        }
    });
    let kinds: BTreeSet<&str> = outcomes.iter().filter_map(|outcome| outcome.split(' ').next()).collect();
    assert_eq!(kinds, BTreeSet::from(["-32700", "-32600", "-32602", "-32020", "-32022", "Legacy", "Modern", "a"]), "all were met");
}

#[test]
fn members_are_counted_as_written() {
    for (json, count) in [("1", 0), (r#"{"a":1,"a":2}"#, 2), (r#"{"a:b":":\":","c":[{"d":{}}]}"#, 3)] {
        assert_eq!(members_written(json), count, "{json}");
    }
    assert_eq!(members_read(&json!({"a": {"b": 1}, "c": [{"d": 1}]})), 4);
}
