//! What the official conformance suite asks of every server: tools, prompts and resources without any meaning (cargo feature `fixtures`).
//!
//! Promises: each entry answers as the suite's own reference does; the dispatcher asks [`answer`] first and goes on where it gives none.
//! Does not: stand in what is shipped, or go through the gate's call list: it has no project behind it.

mod content;
mod prompts;
mod resources;
mod rounds;
mod tools;

use serde_json::{Map, Value, json};

use super::{core, faults::Fault};
use crate::{gate::message::Era, tools::ENTRIES};

/// The `params` of a request.
pub type Params = Map<String, Value>;

/// An answer, and what is to be said before it on the same stream.
#[derive(Debug)]
pub struct Reply {
    /// Whole JSON-RPC notifications; where there are any the answer must be an event stream that begins with them.
    pub notifications: Vec<Value>,
    /// The `result`, or the error.
    pub result: Result<Value, Fault>,
}

/// The answer of the suite's fixtures to a request; none where the server's own answer stands.
#[must_use]
pub fn answer(method: &str, params: &Params, era: Era) -> Option<Reply> {
    let first_page = params.get("cursor").is_none();
    let mut reply = match method {
        "initialize" if era == Era::Legacy => initialized(params)?,
        "tools/list" if first_page => Reply::of(json!({"tools": all_tools()})),
        "tools/call" => tools::call(text(params, "name"), params)?,
        "prompts/list" if first_page => Reply::of(json!({"prompts": prompts::list()})),
        "prompts/get" => prompts::get(params)?,
        "resources/list" if first_page => Reply::of(json!({"resources": resources::list()})),
        "resources/templates/list" if first_page => Reply::of(json!({"resourceTemplates": resources::templates()})),
        "resources/read" => resources::read(params)?,
        "resources/subscribe" | "resources/unsubscribe" if era == Era::Legacy => resources::subscribe(params)?,
        "logging/setLevel" if era == Era::Legacy => Reply::of(json!({})),
        "completion/complete" => prompts::complete(),
        _ => return None,
    };
    if let (Era::Modern, Ok(Value::Object(result))) = (era, &mut reply.result) {
        result.entry("resultType").or_insert_with(|| json!("complete"));
        if method.ends_with("/list") || method == "resources/read" {
            result.insert("ttlMs".to_owned(), json!(0));
            result.insert("cacheScope".to_owned(), json!("private"));
        }
    }
    Some(reply)
}

/// The registry's tools, then the suite's.
fn all_tools() -> Vec<Value> {
    let own = ENTRIES.iter().filter_map(|entry| serde_json::to_value(core::described(entry)).ok());
    own.chain(tools::list()).collect()
}

/// As the server's own answer, with what only fixtures can do.
fn initialized(params: &Params) -> Option<Reply> {
    let asked = params.get("protocolVersion")?.as_str()?;
    let mut capabilities = serde_json::to_value(core::capabilities()).ok()?;
    let map = capabilities.as_object_mut()?;
    map.insert("logging".to_owned(), json!({}));
    map.insert("resources".to_owned(), json!({"subscribe": true}));
    Some(Reply::of(json!({
        "protocolVersion": super::versions::negotiated(asked), "capabilities": capabilities, "serverInfo": core::identity(),
        "instructions": core::instructions(),
    })))
}

impl Reply {
    /// An answer without notifications.
    const fn of(result: Value) -> Self {
        Self { notifications: Vec::new(), result: Ok(result) }
    }

    /// A refusal.
    const fn error(fault: Fault) -> Self {
        Self { notifications: Vec::new(), result: Err(fault) }
    }
}

/// The request's `_meta` entry `key`.
fn meta<'a>(params: &'a Params, key: &str) -> Option<&'a Value> {
    params.get("_meta")?.get(key)
}

/// Whether the client says in this request that it can do `name`.
fn client_can(params: &Params, name: &str) -> bool {
    meta(params, "io.modelcontextprotocol/clientCapabilities").is_some_and(|can| can.get(name).is_some())
}

/// The text under `key`, or nothing.
fn text<'a>(params: &'a Params, key: &str) -> &'a str {
    params.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, rest: &Value) -> Value {
        let mut params = rest.as_object().cloned().unwrap_or_default();
        params.insert("name".to_owned(), json!(name));
        let reply = answer("tools/call", &params, Era::Modern).unwrap();
        reply.result.unwrap_or_else(|error| json!({"error": error.code}))
    }

    #[test]
    fn every_listed_tool_answers() {
        for tool in tools::list() {
            let name = tool["name"].as_str().unwrap();
            assert!(tools::call(name, &Params::new()).is_some() && tool["description"].is_string(), "{name}");
        }
        assert!(tools::call("runs_list", &Params::new()).is_none());
    }

    #[test]
    fn what_is_complete_reads_as_the_protocols_own_type() {
        for name in
            ["test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types"]
        {
            let result: rmcp::model::CallToolResult = serde_json::from_value(ask(name, &json!({}))).unwrap();
            assert!(!result.content.is_empty() && result.is_error != Some(true), "{name}");
        }
    }

    #[test]
    fn a_state_that_was_changed_is_refused() {
        let first = ask("test_input_required_result_tampered_state", &json!({}));
        let state = first["requestState"].as_str().unwrap();
        let confirm = json!({"confirm": {"action": "accept", "content": {"ok": true}}});
        let second =
            |state: &str| ask("test_input_required_result_tampered_state", &json!({"requestState": state, "inputResponses": confirm}));
        assert_eq!(second(state)["content"][0]["type"], "text");
        assert_eq!(second(&format!("{state}-TAMPERED"))["error"], -32602);
    }

    #[test]
    fn three_rounds_end() {
        let name = "test_input_required_result_multi_round";
        let first = ask(name, &json!({}));
        let second = ask(
            name,
            &json!({"requestState": first["requestState"], "inputResponses": {"step1": {"action": "accept", "content": {"name": "a"}}}}),
        );
        assert!(second["inputRequests"]["step2"].is_object() && second["requestState"] != first["requestState"], "{second}");
        let third = ask(
            name,
            &json!({"requestState": second["requestState"], "inputResponses": {"step2": {"action": "accept", "content": {"color": "b"}}}}),
        );
        assert_eq!(third["content"][0]["type"], "text", "{third}");
    }

    #[test]
    fn only_what_the_client_can_do_is_asked() {
        let meta = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}});
        let asked = ask("test_input_required_result_capabilities", &meta);
        let methods: Vec<&str> = asked["inputRequests"].as_object().unwrap().values().map(|one| one["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["sampling/createMessage"]);
        assert_eq!(ask("test_missing_capability", &json!({}))["error"], -32021);
    }
}
