//! What the official conformance suite asks of every server: tools, prompts and resources without any meaning (cargo feature `fixtures`).
//!
//! Promises: each entry answers as the suite's own reference does; the dispatcher asks [`answer`] first and goes on where it gives none.
//! Does not: have tests of its own (the suite is one), stand in what is shipped, or go through the gate's call list: it has no project behind it.

mod content;
mod prompts;
mod resources;
mod rounds;
mod tools;

use serde_json::{Map, Value, json};

use super::{core, faults::Fault};
use crate::{gate::message::Era, tools::readers};

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
    let own = readers().filter_map(|entry| serde_json::to_value(core::described(entry, true, false, false)).ok());
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
        "protocolVersion": super::versions::negotiated(Some(asked)), "capabilities": capabilities, "serverInfo": core::identity(),
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
