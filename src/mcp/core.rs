//! What each method answers, whatever brought the request: HTTP and stdio are two faces of this, so they cannot disagree.
//!
//! Promises: a result is serialised once; lists are serialised once per era and class of caller; a tool's refusal is a result with `isError`.
//! Does not: know transports, headers or status codes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::model::{Implementation, ServerCapabilities, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::{faults::Fault, versions};
use crate::{
    auth::Caller,
    gate::{Call, Gate, Refusal, lacks, message::Era, visit::Client},
    tools::{self, Answer, ENTRIES, Entry},
};

const INSTRUCTIONS: &str = "Run history of AI evaluations. Begin with compare {\"since\": \"7d\"} for what regressed, failures for why, history for since when; transcript shows an attempt's messages. Run arguments take latest, latest~N, a run id, the beginning of one, or a Git sha.";

/// Who asks, and by which rules.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The caller.
    pub caller: Caller,
    /// The address that limits count by; none on stdio.
    pub client: Option<Client>,
    /// The era of the request.
    pub era: Era,
    /// The id that the answer and the log share.
    pub request_id: Arc<str>,
}

/// `tools/list` by era (whether modern) and by what the caller may call (a bit per entry): a handful at most.
type Lists = HashMap<(bool, u64), Arc<str>>;

/// What lists say of how long and by whom they may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hints {
    /// None at all: results that are no lists.
    None,
    /// Not beyond this caller and moment.
    Private,
    /// By anybody, for a minute.
    Public,
}

/// The methods over one gate.
#[derive(Clone)]
pub struct Core {
    gate: Gate,
    hints: Hints,
    lists: Arc<Mutex<Lists>>,
}

impl Core {
    /// The methods over `gate`.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        Self { gate, hints: Hints::Private, lists: Arc::default() }
    }

    /// The same for a server where everybody is anybody: its lists may be shared and kept for a minute (decision 45).
    #[must_use]
    pub fn public(gate: Gate) -> Self {
        Self { hints: Hints::Public, ..Self::new(gate) }
    }

    /// The result of one request, as JSON text.
    ///
    /// # Errors
    /// [`Fault`].
    pub async fn answer(&self, method: &str, params: Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
        match (method, asker.era) {
            ("tools/call", _) => self.call(params, asker).await,
            ("tools/list", era) => one_page(&params).map(|()| self.tools(era, &asker.caller)),
            ("server/discover", Era::Modern) => Ok(discovered(self.hints)),
            ("initialize", Era::Legacy) => initialized(&params),
            ("ping", Era::Legacy) => Ok("{}".into()),
            ("resources/list", era) => one_page(&params).map(|()| empty_list("resources", era, Hints::Private)),
            ("resources/templates/list", era) => one_page(&params).map(|()| empty_list("resourceTemplates", era, self.hints)),
            ("prompts/list", era) => one_page(&params).map(|()| empty_list("prompts", era, self.hints)),
            ("resources/read", era) => Err(text_of(&params, "uri").map_or_else(|fault| fault, |uri| Fault::resource(uri, era))),
            ("prompts/get", _) => {
                Err(text_of(&params, "name").map_or_else(|fault| fault, |_| Fault::parameters("there is no such prompt")))
            }
            ("completion/complete", era) => {
                Ok(complete(json!({"completion": {"values": [], "total": 0, "hasMore": false}}), era, Hints::None))
            }
            (other, _) => Err(Fault::method(other)),
        }
    }

    async fn call(&self, mut params: Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(Fault::parameters("params.arguments must be an object")),
        };
        let name = text_of(&params, "name")?;
        // An unknown name goes down the list too: it is logged and counted like any other call.
        let entry = tools::find(name).unwrap_or(&tools::UNKNOWN);
        let call = match asker.client {
            Some(client) => Call::remote(entry, arguments, asker.caller.clone(), &asker.request_id, client),
            None => Call { request_id: asker.request_id.to_string(), ..Call::local(entry, arguments, asker.caller.clone()) },
        };
        match self.gate.call(call).await {
            Ok(answer) => Ok(answered(&answer, asker.era)),
            Err(Refusal::Unknown) => Err(Fault::tool(name)),
            Err(Refusal::Panicked(_)) => Err(Fault::internal(&asker.request_id)),
            Err(refusal) => Ok(refused(&refusal.to_string(), asker.era)),
        }
    }

    /// `tools/list` of this caller: what it may call, in registry order.
    fn tools(&self, era: Era, caller: &Caller) -> Arc<str> {
        let allowed: Vec<&Entry> = ENTRIES.iter().filter(|entry| lacks(caller, entry).is_none()).collect();
        let class = ENTRIES
            .iter()
            .enumerate()
            .filter(|(_, entry)| lacks(caller, entry).is_none())
            .fold(0_u64, |mask, (bit, _)| mask | 1 << (bit % 64));
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.entry((era == Era::Modern, class)).or_insert_with(|| {
            let tools: Vec<Tool> = allowed.into_iter().map(described).collect();
            complete(json!({ "tools": tools }), era, self.hints)
        });
        list.clone()
    }
}

/// Every list has one page: a cursor is none that was given.
fn one_page(params: &Map<String, Value>) -> Result<(), Fault> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        Err(Fault::parameters("unknown cursor: this list has one page"))
    } else {
        Ok(())
    }
}

fn text_of<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, Fault> {
    params.get(name).and_then(Value::as_str).ok_or_else(|| Fault::parameters(format!("params.{name} must be a text")))
}

/// A result of its era: modern ones say that they are complete and, where they may be cached, for how long (decision 45).
fn complete(mut result: Value, era: Era, hints: Hints) -> Arc<str> {
    if let (Era::Modern, Some(map)) = (era, result.as_object_mut()) {
        map.insert("resultType".to_owned(), "complete".into());
        let (ttl_ms, scope) = match hints {
            Hints::None => return result.to_string().into(),
            Hints::Private => (0, "private"),
            Hints::Public => (60_000, "public"),
        };
        map.insert("ttlMs".to_owned(), ttl_ms.into());
        map.insert("cacheScope".to_owned(), scope.into());
    }
    result.to_string().into()
}

fn empty_list(name: &str, era: Era, hints: Hints) -> Arc<str> {
    complete(json!({ name: [] }), era, hints)
}

/// Who the server is.
#[must_use]
pub fn identity() -> Implementation {
    let mut identity = Implementation::new("runlore", env!("CARGO_PKG_VERSION"));
    identity.title = Some("runlore run history".to_owned());
    identity
}

/// What the server can do: lists of resources and prompts are there and empty until they are filled (decision 14).
#[must_use]
pub fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().enable_completions().build()
}

/// How an agent should begin.
#[must_use]
pub const fn instructions() -> &'static str {
    INSTRUCTIONS
}

fn discovered(hints: Hints) -> Arc<str> {
    let result = json!({
        "supportedVersions": versions::SPOKEN, "capabilities": capabilities(), "instructions": INSTRUCTIONS,
        "_meta": {"io.modelcontextprotocol/serverInfo": identity()},
    });
    complete(result, Era::Modern, hints)
}

fn initialized(params: &Map<String, Value>) -> Result<Arc<str>, Fault> {
    let asked = text_of(params, "protocolVersion")?;
    let result = json!({"protocolVersion": versions::negotiated(asked), "capabilities": capabilities(), "serverInfo": identity(), "instructions": INSTRUCTIONS});
    Ok(result.to_string().into())
}

/// The typed result is text already: it is placed, not parsed.
fn answered(answer: &Answer, era: Era) -> Arc<str> {
    let json = answer.json.get();
    let text = answer.text.as_str();
    // Escapes are few: an eighth more, and what stands around both.
    let mut result = String::with_capacity(json.len() + text.len() + text.len() / 8 + 128);
    content(&mut result, text, era);
    for part in [",\"structuredContent\":", json, ",\"isError\":false}"] {
        result.push_str(part);
    }
    result.into()
}

fn refused(sentence: &str, era: Era) -> Arc<str> {
    let mut result = String::with_capacity(sentence.len() + 128);
    content(&mut result, sentence, era);
    result.push_str(",\"isError\":true}");
    result.into()
}

/// The beginning of a result, to the end of its text.
fn content(result: &mut String, text: &str, era: Era) {
    result.push('{');
    result.push_str(kind(era));
    result.push_str("\"content\":[{\"type\":\"text\",\"text\":");
    quoted(result, text);
    result.push_str("}]");
}

/// `text` as a JSON string. Line by line, since line feeds are all that most texts have to escape, and what has none is copied as a whole.
fn quoted(result: &mut String, text: &str) {
    result.push('"');
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            result.push_str("\\n");
        }
        // Without a way out of the loop, so that the compiler makes wide instructions of it.
        let escapes = line.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\'));
        if escapes {
            let json = serde_json::to_string(line).unwrap_or_default();
            result.push_str(json.get(1..json.len().saturating_sub(1)).unwrap_or_default());
        } else {
            result.push_str(line);
        }
    }
    result.push('"');
}

const fn kind(era: Era) -> &'static str {
    match era {
        Era::Modern => "\"resultType\":\"complete\",",
        Era::Legacy => "",
    }
}

/// A tool as `tools/list` has it.
#[must_use]
pub fn described(entry: &Entry) -> Tool {
    let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(entry.name, entry.doc, Arc::new((entry.input_schema)()))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new((entry.output_schema)()))
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_quoted_as_serde_json_does(parts in proptest::collection::vec(prop_oneof![".*", "[\n\r\t\"\\\\\u{0}-\u{1f}é]{0,4}", "[a-z ]{0,9}"], 0..6)) {
            let text = parts.concat();
            let mut result = String::new();
            quoted(&mut result, &text);
            prop_assert_eq!(result, serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn every_tool_says_that_it_only_reads() {
        for tool in ENTRIES.iter().map(described) {
            let hints = tool.annotations.expect("every tool has annotations");
            let said = (hints.read_only_hint, hints.idempotent_hint, hints.destructive_hint, hints.open_world_hint);
            assert_eq!(said, (Some(true), Some(true), Some(false), Some(false)), "{}", tool.name);
        }
    }

    #[test]
    fn the_list_fits_an_agents_budget() {
        let bytes: usize = ENTRIES.iter().map(described).map(|tool| serde_json::to_string(&tool).map_or(0, |text| text.len())).sum();
        assert!(bytes / 4 <= 12_000, "tools/list takes {} tokens", bytes / 4);
    }

    #[test]
    fn only_modern_results_carry_hints() {
        let (modern, legacy) = (empty_list("prompts", Era::Modern, Hints::Private), empty_list("prompts", Era::Legacy, Hints::Private));
        assert_eq!(
            serde_json::from_str::<Value>(&modern).ok(),
            Some(json!({"prompts": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}))
        );
        assert_eq!(serde_json::from_str::<Value>(&legacy).ok(), Some(json!({"prompts": []})));
    }
}
