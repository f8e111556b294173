//! The HTTP tool API (S-tenant, decisions 72 to 74): another face of the same call list, under the contract `evalgate-tool-api`.
//!
//! Promises: a body has one meaning (no key twice) and no member but `tool` and `arguments`; a tool is named to the letter; a call goes down the
//! gate's list whatever becomes of it, so it is logged, counted and refused there; a write that the operator has not switched on is in no list
//! and is refused.
//! Does not: frame refusals (the gate's step `dialect` does), or know HTTP's status codes; it has no approval step: who switches writes on says so.

use axum::extract::Query;
use http::Uri;
use serde::{Deserialize, de::DeserializeSeed};
use serde_json::{Map, Value, json};

use crate::{
    auth::Caller,
    domain::{attempt::shorten, json::Strict, text::clean},
    gate::{
        BoxFuture, Call, Gate, Refusal,
        project::ARGUMENT,
        refusal::Barred,
        tool_api::{Posted, ToolApi, barred, wrong},
        visit::Visit,
    },
    tools::{
        self, Answer, Entry, tool_api,
        write::{IDEMPOTENCY_KEY, KEY_CHARS_MAX, Leave},
    },
};

/// The contract's name.
const CONTRACT: &str = "evalgate-tool-api";
/// The scope that the list asks for.
const LIST_SCOPE: &str = "eval:read";

/// The tool API over one gate.
#[derive(Clone)]
pub struct Desk {
    gate: Gate,
    writes: bool,
}

/// What may stand behind the path. `limit` and `offset` are the public client's; the list is whole without them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Question {
    project: Option<String>,
}

/// A call, read.
struct Asked {
    tool: String,
    arguments: Map<String, Value>,
}

impl Desk {
    /// The tool API over `gate`; `writes` as the operator says.
    #[must_use]
    pub fn new(gate: Gate, writes: bool) -> Self {
        // A server of one project takes no writes, whatever is switched on.
        let taken = tool_api::ENTRIES.iter().all(|entry| gate.has(entry));
        Self { gate, writes: writes && taken }
    }

    async fn answer(self, posted: Posted) -> Result<String, Barred> {
        let Posted { visit, query, idempotency_key, body } = posted;
        let caller = visit.caller.clone().ok_or(Barred::Internal)?;
        let Asked { tool, mut arguments } = read(&body)?;
        name_project(&mut arguments, &query)?;
        let entry = tool_api::find(&tool).unwrap_or(&tools::UNKNOWN);
        if let Some(key) = idempotency_key.filter(|_| entry.effect.writes()) {
            let own = arguments.entry(IDEMPOTENCY_KEY).or_insert_with(|| key.as_str().into());
            if own.as_str() != Some(key.as_str()) {
                return Err(wrong(format!("the header Idempotency-Key and the argument {IDEMPOTENCY_KEY} differ; give one")));
            }
        }
        let call = Call {
            place: visit.place.clone(),
            closed: entry.effect.writes() && !self.writes,
            leave: Leave::Direct,
            ..Call::remote(entry, arguments, caller, &visit.request_id, visit.client)
        };
        match self.gate.call(call).await {
            Ok(answer) => Ok(enveloped(&answer)),
            Err(Refusal::Unknown) => {
                Err(wrong(format!("there is no tool \"{}\"; GET /api/mcp/tools names those there are", clean(&shorten(&tool, 80)))))
            }
            Err(refusal) => Err(barred(&refusal)),
        }
    }

    /// A tool as the list has it.
    fn described(&self, entry: &Entry, caller: &Caller) -> Value {
        let mut input = (entry.input_schema)();
        if let Some(properties) = input.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
            if self.gate.asks_project(entry, caller, None) {
                properties.insert(ARGUMENT.to_owned(), json!({"type": "string", "description": "The project, by name or id."}));
            }
            if entry.effect.writes() {
                let key = json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "description": "A repeat with the same key gets the first answer; the header Idempotency-Key says it too."});
                properties.insert(IDEMPOTENCY_KEY.to_owned(), key);
            }
        }
        let mut tool = json!({"name": entry.name, "description": entry.doc, "inputSchema": input, "version": "1"});
        if let Some(map) = tool.as_object_mut().filter(|_| entry.name == tool_api::LONG_RUNNING) {
            map.insert("longRunning".to_owned(), true.into());
        }
        tool
    }
}

impl ToolApi for Desk {
    fn list(&self, visit: &Visit) -> Result<String, Barred> {
        let caller = visit.caller.as_ref().ok_or(Barred::Internal)?;
        if !caller.holds(LIST_SCOPE) {
            let message = format!("the list of tools needs scope {LIST_SCOPE}");
            return Err(Barred::Denied { message, scope: Some(LIST_SCOPE.to_owned()) });
        }
        let offered = tool_api::ENTRIES.iter().filter(|entry| self.writes || !entry.effect.writes());
        let tools: Vec<Value> = offered.map(|entry| self.described(entry, caller)).collect();
        // The public client would ask for page after page if it were not told that there is one.
        Ok(json!({"contract": CONTRACT, "tools": tools, "hasMore": false}).to_string())
    }

    fn call(&self, posted: Posted) -> BoxFuture<Result<String, Barred>> {
        Box::pin(self.clone().answer(posted))
    }
}

fn read(body: &[u8]) -> Result<Asked, Barred> {
    let unreadable = |error: serde_json::Error| wrong(format!("the body is not valid JSON, or not in one way only: {error}"));
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value)).map_err(unreadable)?;
    let Value::Object(mut members) = value else {
        return Err(wrong("the body must be one JSON object such as {\"tool\": \"eval.list\", \"arguments\": {}}"));
    };
    let tool = match members.remove("tool") {
        Some(Value::String(tool)) => tool,
        Some(_) => return Err(wrong("tool: give the tool's name as a text")),
        None => return Err(wrong("tool: say which; GET /api/mcp/tools names those there are")),
    };
    let arguments = match members.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(wrong("arguments: give an object")),
    };
    match members.keys().next() {
        Some(name) => Err(wrong(format!("unknown member `{}`; a call has tool and arguments", clean(&shorten(name, 80))))),
        None => Ok(Asked { tool, arguments }),
    }
}

/// The project of the query, where the arguments name none.
fn name_project(arguments: &mut Map<String, Value>, query: &str) -> Result<(), Barred> {
    let uri: Uri = format!("/?{query}").parse().map_err(|_| wrong("the query cannot be read"))?;
    let Query(Question { project }) = Query::try_from_uri(&uri).map_err(|_| wrong("the query cannot be read, or names a project twice"))?;
    let Some(project) = project else { return Ok(()) };
    match arguments.get(ARGUMENT) {
        None | Some(Value::Null) => {
            arguments.insert(ARGUMENT.to_owned(), project.into());
            Ok(())
        }
        Some(Value::String(named)) if *named == project => Ok(()),
        Some(_) => Err(wrong("the query names another project than the arguments")),
    }
}

/// The result in the contract's form. The text is the same JSON for people.
fn enveloped(answer: &Answer) -> String {
    let text = Value::from(answer.text.as_str()).to_string();
    let parts = [r#"{"ok":true,"content":[{"type":"json","json":"#, answer.json.get(), r#"},{"type":"text","text":"#, &text, "}]}"];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> String {
        match read(body.as_bytes()) {
            Ok(asked) => format!("{} {}", asked.tool, Value::Object(asked.arguments)),
            Err(Barred::Uncalled(uncalled)) => uncalled.message,
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn a_body_has_one_meaning() {
        for body in [r#"{"tool":"a"}"#, r#"{"tool":"a","arguments":{}}"#, r#" {"arguments":null,"tool":"a"} "#] {
            assert_eq!(said(body), "a {}", "{body}");
        }
        assert_eq!(said(r#"{"tool":"a","arguments":{"evaluationId":42}}"#), r#"a {"evaluationId":42}"#);
        for (body, word) in [
            ("", "valid JSON"),
            ("{", "valid JSON"),
            ("{} {}", "valid JSON"),
            (r#"{"tool":"a","tool":"b"}"#, "valid JSON"),
            (r#"{"tool":"a","arguments":{"x":1,"x":2}}"#, "valid JSON"),
            ("\u{feff}{\"tool\":\"a\"}", "valid JSON"),
            ("[]", "one JSON object"),
            ("3", "one JSON object"),
            ("{}", "tool: say which"),
            (r#"{"tool":null}"#, "tool: give"),
            (r#"{"tool":"a","arguments":[]}"#, "arguments: give an object"),
            (r#"{"tool":"a","args":{}}"#, "unknown member `args`"),
        ] {
            assert!(said(body).contains(word), "{body}: {}", said(body));
        }
    }

    #[test]
    fn the_project_is_named_in_either_place() {
        let named = |arguments: Value, query: &str| {
            let mut arguments = arguments.as_object().cloned().unwrap_or_default();
            name_project(&mut arguments, query).map(|()| Value::Object(arguments)).ok()
        };
        assert_eq!(named(json!({}), ""), Some(json!({})));
        assert_eq!(named(json!({}), "limit=2&offset=x&project=main"), Some(json!({"project": "main"})));
        assert_eq!(named(json!({"project": null}), "project=zeta%2Fmain"), Some(json!({"project": "zeta/main"})));
        assert_eq!(named(json!({"project": "main"}), "project=main"), Some(json!({"project": "main"})));
        assert_eq!(named(json!({"project": "side"}), "project=main"), None);
        assert_eq!(named(json!({"project": 7}), "project=main"), None);
        assert_eq!(named(json!({}), "project=a&project=b"), None);
    }
}
