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

use super::{
    approval, completion,
    faults::Fault,
    prompts, resources,
    results::{self, Hints},
    versions,
};
use crate::{
    auth::Caller,
    gate::{
        Call, Gate, Refusal, hidden, listed,
        message::Era,
        project::{ARGUMENT, Place},
        visit::Client,
    },
    telemetry::trace::Parent,
    tools::{
        self, Answer, Effect, Entry, ToolError, Toolsets,
        declared::Declared,
        write::{APPROVAL, Given, IDEMPOTENCY_KEY, KEY_CHARS_MAX, Leave, handle},
    },
};

const INSTRUCTIONS: &str = "Run history of AI evaluations. Begin with compare {\"since\": \"7d\"} for what regressed, failures for why, history for since when; transcript shows an attempt's messages. Run arguments take latest, latest~N, a run id, the beginning of one, or a Git sha.";

/// What needs no caller (decision 5): it says how to speak to us and what there is, and nothing of a project. Notifications need none either;
/// they are taken before anything is asked here.
const OPEN: [&str; 6] = ["server/discover", "initialize", "ping", "tools/list", "prompts/list", "resources/templates/list"];

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
    /// What it narrows the tools to.
    pub toolsets: Toolsets,
    /// The project that it came to, where the path names one.
    pub place: Option<Arc<Place>>,
    /// The trace that the request says it belongs to; [`Core::answer`] fills it in.
    pub parent: Option<Parent>,
}

/// `tools/list` by era (whether modern), by whether texts may be read, by whether projects are named, by whether the
/// path names one, by whether the caller is a stranger, and by what it may call: a handful at most.
type Lists = HashMap<(bool, bool, bool, bool, bool, Vec<bool>), Arc<str>>;

/// The methods over one gate.
#[derive(Clone)]
pub struct Core {
    gate: Gate,
    hints: Hints,
    toolsets: Toolsets,
    lists: Arc<Mutex<Lists>>,
}

impl Core {
    /// The methods over `gate`.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        Self { gate, hints: Hints::Private, toolsets: Toolsets::default(), lists: Arc::default() }
    }

    /// The same for a server where everybody is anybody: its lists may be shared and kept for a minute (decision 45).
    #[must_use]
    pub fn public(gate: Gate) -> Self {
        Self { hints: Hints::Public, ..Self::new(gate) }
    }

    /// The same with the toolsets that the operator chose.
    #[must_use]
    pub const fn offering(mut self, toolsets: Toolsets) -> Self {
        self.toolsets = toolsets;
        self
    }

    /// The result of one request, as JSON text.
    ///
    /// # Errors
    /// [`Fault`].
    pub async fn answer(&self, method: &str, params: Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
        let traced = Parent::of(&params).map(|parent| Asker { parent: Some(parent), ..asker.clone() });
        let asker = traced.as_ref().unwrap_or(asker);
        let open = !asker.caller.is_nobody() || OPEN.contains(&method);
        match (method, asker.era) {
            // Down its list whoever asks: there a call is logged, counted and refused. Nobody is told what else is wrong with it.
            ("tools/call", _) => self.call(params, asker).await.map_err(|fault| if open { fault } else { Fault::credential() }),
            _ if !open => Err(Fault::credential()),
            ("tools/list", era) => one_page(&params).map(|()| self.tools(era, asker)),
            ("server/discover", Era::Modern) => Ok(discovered(self.hints)),
            ("initialize", Era::Legacy) => initialized(&params),
            ("ping", Era::Legacy) => Ok("{}".into()),
            ("resources/list", _) => resources::list(self, &params, asker).await,
            ("resources/templates/list", _) => resources::list_templates(self, &params, asker),
            ("resources/read", _) => resources::read(self, &params, asker).await,
            ("prompts/list", _) => prompts::list(self, &params, asker),
            ("prompts/get", _) => prompts::get(&params, asker),
            ("completion/complete", _) => completion::complete(self, &params, asker).await,
            (other, _) => Err(Fault::method(other)),
        }
    }

    /// Sends one call down the gate's list, as `asker`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn ask(&self, entry: &'static Entry, arguments: Map<String, Value>, asker: &Asker) -> Result<Arc<Answer>, Refusal> {
        self.ask_with((Leave::Ask, Given::Nothing), entry, arguments, asker).await
    }

    async fn ask_with(
        &self,
        (leave, given): (Leave, Given),
        entry: &'static Entry,
        arguments: Map<String, Value>,
        asker: &Asker,
    ) -> Result<Arc<Answer>, Refusal> {
        let call = match asker.client {
            Some(client) => Call::remote(entry, arguments, asker.caller.clone(), &asker.request_id, client),
            None => Call { request_id: asker.request_id.to_string(), ..Call::local(entry, arguments, asker.caller.clone()) },
        };
        self.gate.call(Call { place: asker.place.clone(), leave, given, parent: asker.parent, ..call }).await
    }

    /// Whether there are tools here that write, and so what only they make.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.gate.writes()
    }

    /// What lists that are the same for every caller of this server say of how long they may be kept.
    #[must_use]
    pub const fn hints(&self) -> Hints {
        self.hints
    }

    async fn call(&self, mut params: Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(Fault::parameters("params.arguments must be an object")),
        };
        let name = text_of(&params, "name")?;
        // An unknown name goes down the list too: it is logged and counted like any other call.
        let entry = self.gate.registry().find(name).filter(|entry| self.offers(entry, asker)).unwrap_or(&tools::UNKNOWN);
        let (leave, given) = approval::of(entry, &params, asker.era);
        match self.ask_with((leave, given), entry, arguments, asker).await {
            Ok(answer) => {
                let form = if leave == Leave::AskByForm { approval::asked(&answer) } else { None };
                Ok(form.unwrap_or_else(|| results::answered(&answer, asker.era)))
            }
            Err(refusal) => refused(&refusal, name, asker),
        }
    }

    /// Whether there is such a tool here, for who narrows the tools so.
    fn offers(&self, entry: &Entry, asker: &Asker) -> bool {
        self.gate.has(entry) && self.toolsets.and(asker.toolsets).offer(entry) && !hidden(&asker.caller, entry)
    }

    /// `tools/list` of this caller, in registry order.
    fn tools(&self, era: Era, asker: &Asker) -> Arc<str> {
        let listed = |entry: &&Entry| self.offers(entry, asker) && listed(&asker.caller, entry);
        let entries = self.gate.registry().entries();
        let allowed: Vec<&Entry> = entries.clone().filter(listed).collect();
        let class = entries.map(|entry| listed(&entry)).collect();
        let public = asker.caller.is_public();
        let text = asker.caller.holds("traces:read");
        let place = asker.place.as_deref();
        let named = allowed.iter().any(|entry| self.gate.asks_project(entry, &asker.caller, place));
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.entry((era == Era::Modern, text, named, place.is_some(), public, class)).or_insert_with(|| {
            let described = |entry: &Entry| match entry.declared {
                Some(declared) => of_operator(entry, declared, public),
                None => described(entry, text, named, place.is_some()),
            };
            let tools: Vec<Tool> = allowed.into_iter().map(described).collect();
            results::complete(&json!({ "tools": tools }), era, self.hints)
        });
        list.clone()
    }
}

/// This list has one page: a cursor is none that was given.
///
/// # Errors
/// [`Fault`] for a cursor.
pub fn one_page(params: &Map<String, Value>) -> Result<(), Fault> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        Err(Fault::parameters("unknown cursor: this list has one page"))
    } else {
        Ok(())
    }
}

/// The text `name` of the parameters.
///
/// # Errors
/// [`Fault`] where it is none.
pub fn text_of<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, Fault> {
    params.get(name).and_then(Value::as_str).ok_or_else(|| Fault::parameters(format!("params.{name} must be a text")))
}

/// Who the server is.
#[must_use]
pub fn identity() -> Implementation {
    let mut identity = Implementation::new("runlore", env!("CARGO_PKG_VERSION"));
    identity.title = Some("runlore run history".to_owned());
    identity
}

/// What the server can do. Nothing is told of changes, so nothing is said of subscriptions.
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
    results::complete(&result, Era::Modern, hints)
}

fn initialized(params: &Map<String, Value>) -> Result<Arc<str>, Fault> {
    let asked = text_of(params, "protocolVersion")?;
    let result = json!({"protocolVersion": versions::negotiated(Some(asked)), "capabilities": capabilities(), "serverInfo": identity(), "instructions": INSTRUCTIONS});
    Ok(result.to_string().into())
}

/// A refused call is a result that says so; only what is no call of a tool that is there, and a fault of ours, is an error.
fn refused(refusal: &Refusal, name: &str, asker: &Asker) -> Result<Arc<str>, Fault> {
    match refusal {
        Refusal::Unauthenticated => Err(Fault::credential()),
        Refusal::Unknown => Err(Fault::tool(name)),
        Refusal::Panicked(_) => Err(Fault::internal(&asker.request_id)),
        Refusal::Tool(ToolError::Exit { code, said }) => Ok(results::ended(said, *code, asker.era)),
        // One who is known can ask for more and is told what for; a stranger and the person at this machine have no more to ask for.
        Refusal::Denied { lacks, .. } if asker.client.is_some() && asker.caller.identified().is_some() => {
            Err(Fault::denied(refusal, lacks.clone(), &asker.request_id))
        }
        _ => Ok(results::refused(&refusal.to_string(), asker.era)),
    }
}

/// A tool as `tools/list` has it, for whom may read texts of attempts or may not, and for whom names the project or has but one.
#[must_use]
pub fn described(entry: &Entry, text: bool, named: bool, placed: bool) -> Tool {
    let mut input = (entry.input_schema)();
    if let Some(Value::Object(properties)) = input.get_mut("properties").filter(|_| !text) {
        properties.retain(|name, _| !entry.text_arguments.contains(&name.as_str()));
    }
    if let (Some(argument), true, Some(Value::Object(properties))) = (entry.project_argument, placed, input.get_mut("properties")) {
        // The path has named it.
        properties.remove(argument);
    }
    if named && entry.of_project && entry.project_argument.is_none() {
        let project = json!({"type": "string", "description": "The project, by name or id."});
        if let Some(properties) = input.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
            properties.insert(ARGUMENT.to_owned(), project);
        }
    }
    if entry.effect.writes() {
        give_leave(&mut input);
    }
    Tool::new(entry.name, entry.doc, Arc::new(input))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new((entry.output_schema)()))
        .with_annotations(annotations(entry.effect))
}

/// A tool that its operator declared, as `tools/list` has it for strangers or for others.
fn of_operator(entry: &Entry, declared: &dyn Declared, public: bool) -> Tool {
    let tool = Tool::new(entry.name, entry.doc, Arc::new(declared.input_schema(public)))
        .with_title(entry.title)
        .with_annotations(annotations(entry.effect));
    match declared.output_schema() {
        Some(schema) => tool.with_raw_output_schema(Arc::new(schema)),
        None => tool,
    }
}

/// A write that is repeated without its key is done twice.
fn annotations(effect: Effect) -> ToolAnnotations {
    let (reads, destructive) = match effect {
        Effect::Read => (true, false),
        Effect::Write { destructive, .. } => (false, destructive),
    };
    ToolAnnotations::new().read_only(reads).destructive(destructive).idempotent(reads).open_world(false)
}

/// Adds to a write's arguments those by which leave is given.
fn give_leave(input: &mut Map<String, Value>) {
    let approval = "Leave for this call: the handle that a first call without it is answered with. Ask the user before you give it.";
    let approval = json!({"type": "string", "minLength": 1, "maxLength": handle::CHARS, "description": approval});
    let key = "A text of your own: a second call with it and the same arguments, within 24 hours, is told what the first did.";
    let key = json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "description": key});
    if let Some(properties) = input.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
        properties.extend([(APPROVAL.to_owned(), approval), (IDEMPOTENCY_KEY.to_owned(), key)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ENTRIES;

    #[test]
    fn every_tool_says_whether_it_reads_or_writes() {
        for entry in ENTRIES {
            let tool = described(entry, true, false, false);
            let hints = tool.annotations.expect("every tool has annotations");
            let said = (hints.read_only_hint, hints.idempotent_hint, hints.destructive_hint, hints.open_world_hint);
            let reads = !entry.effect.writes();
            assert_eq!(said, (Some(reads), Some(reads), Some(entry.name == "connections_delete"), Some(false)), "{}", tool.name);
            let takes = |name: &str| tool.input_schema.get("properties").is_some_and(|all| all.get(name).is_some());
            assert!(takes(APPROVAL) != reads && takes(IDEMPOTENCY_KEY) != reads, "{}", tool.name);
        }
    }

    #[test]
    fn the_list_fits_an_agents_budget() {
        let offered = ENTRIES.iter().filter(|entry| Toolsets::local().offer(entry));
        let bytes: usize = offered
            .map(|entry| described(entry, true, false, false))
            .map(|tool| serde_json::to_string(&tool).map_or(0, |text| text.len()))
            .sum();
        assert!(bytes / 4 <= 12_000, "tools/list takes {} tokens", bytes / 4);
    }

    #[test]
    fn a_panic_is_an_error_with_the_request_id_and_a_refused_call_is_a_result() {
        let asker = Asker {
            caller: Caller::open(),
            client: None,
            era: Era::Legacy,
            request_id: "r1".into(),
            toolsets: Toolsets::default(),
            place: None,
            parent: None,
        };
        let said = |refusal: Refusal| refused(&refusal, "history", &asker);
        let panicked = said(Refusal::Panicked("r1".into())).unwrap_err();
        assert_eq!((panicked.code, panicked.data), (-32603, Some(json!({"requestId": "r1"}))));
        assert!(said(Refusal::Unauthenticated).unwrap_err().wants_credential());
        for refusal in [Refusal::Rate { per_minute: 1, wait_s: 2 }, Refusal::Timeout { tool: "history", seconds: 3 }] {
            let sentence = refusal.to_string();
            let result: Value = serde_json::from_str(&said(refusal).unwrap()).unwrap();
            assert_eq!(result, json!({"content": [{"type": "text", "text": sentence}], "isError": true}));
        }
    }
}
