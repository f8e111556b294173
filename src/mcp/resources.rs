//! Resources: every run's record as a list, and transcripts through a template (S-history, decisions 9 and 78).
//!
//! Promises: each list and each read is a call down the gate's list like a tool's: the same rates, scopes, deadline, redaction, metrics and
//! audit line, by construction. What a caller may not read is in no list of his.
//! Does not: read the store (`calls` does, behind the gate), or tell anyone of changes.

pub mod calls;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    core::{Asker, Core, one_page, text_of},
    faults::Fault,
    results::{self, Hints},
};
use crate::{
    auth::Caller,
    gate::{Lacks, Refusal},
    tools::{
        self, Entry,
        uri::{self, Target},
    },
};

/// The type of a run's record.
const JSON: &str = "application/json";
/// The type of a transcript: JSON lines.
const JSONL: &str = "application/jsonl";
/// The type of a schema.
const SCHEMA: &str = "application/schema+json";

/// A template and the call that reads what it gives.
pub struct Template {
    /// As RFC 6570 has it.
    pub uri: &'static str,
    /// The call.
    pub entry: &'static Entry,
    name: &'static str,
    title: &'static str,
    about: &'static str,
    mime_type: &'static str,
}

/// All templates.
pub static TEMPLATES: [Template; 3] = [
    Template {
        uri: uri::RUN_TEMPLATE,
        entry: &calls::RUN,
        name: "run",
        title: "Run record",
        about: "One run's whole record, as the tool show gives it. runId is the full id.",
        mime_type: JSON,
    },
    Template {
        uri: uri::TRANSCRIPT_TEMPLATE,
        entry: &calls::TRANSCRIPT,
        name: "transcript",
        title: "Transcript",
        about: "One attempt's whole transcript as JSON lines. attempt is its key, as failures and show give it.",
        mime_type: JSONL,
    },
    Template {
        uri: uri::TRACE_TEMPLATE,
        entry: &calls::TRACE,
        name: "trace",
        title: "Trace",
        about: "A transcript outside a run, with what is known of it. traceId is the id that traces_create was given.",
        mime_type: JSON,
    },
];

/// The templates of what there is here and `caller` may read. Where nothing writes there are no traces.
pub fn templates(core: &Core, caller: &Caller) -> impl Iterator<Item = &'static Template> {
    let writes = core.writes();
    TEMPLATES.iter().filter(move |template| (writes || template.uri != uri::TRACE_TEMPLATE) && Lacks::of(caller, template.entry).is_none())
}

/// The result of `resources/templates/list`.
///
/// # Errors
/// [`Fault`] for a cursor.
pub fn list_templates(core: &Core, params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    one_page(params)?;
    let described = |template: &Template| {
        let Template { uri, name, title, about, mime_type, .. } = template;
        json!({"uriTemplate": uri, "name": name, "title": title, "description": about, "mimeType": mime_type})
    };
    let all: Vec<Value> = templates(core, &asker.caller).map(described).collect();
    Ok(results::complete(&json!({"resourceTemplates": all}), asker.era, core.hints()))
}

/// The result of `resources/list`: a page of runs, newest first.
///
/// # Errors
/// [`Fault`].
pub async fn list(core: &Core, params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    let cursor = match params.get("cursor") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::String(text)) => Map::from_iter([("cursor".to_owned(), text.as_str().into())]),
        Some(_) => return Err(Fault::parameters("params.cursor must be a text")),
    };
    if Lacks::of(&asker.caller, &calls::LIST).is_some() {
        return Ok(results::complete(&json!({"resources": []}), asker.era, Hints::Private));
    }
    match core.ask(&calls::LIST, cursor, asker).await {
        Ok(answer) => Ok(results::placed(answer.json.get(), asker.era, Hints::Private)),
        // All that its call can be wrong about is the cursor.
        Err(Refusal::Tool(error)) if !error.internal() => Err(Fault::parameters(error.to_string())),
        Err(refusal) => Err(Fault::refused(&refusal, &asker.request_id)),
    }
}

/// The result of `resources/read`.
///
/// # Errors
/// [`Fault`]: not found, too large, or what the gate refuses.
pub async fn read(core: &Core, params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    let uri = text_of(params, "uri")?;
    let (entry, mime_type, arguments) = match uri::parse(uri) {
        Some(Target::Run { run_id }) => (&calls::RUN, JSON, vec![("runId", run_id)]),
        Some(Target::Transcript { run_id, attempt }) => (&calls::TRANSCRIPT, JSONL, vec![("runId", run_id), ("attempt", attempt)]),
        Some(Target::Trace { trace_id }) => (&calls::TRACE, JSON, vec![("traceId", trace_id)]),
        Some(Target::DecisionContract) => (&calls::DECISION_CONTRACT, SCHEMA, Vec::new()),
        // It goes down the list too: it is logged and counted like any other call.
        None => (&tools::UNKNOWN, JSON, Vec::new()),
    };
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    match core.ask(entry, arguments, asker).await {
        Ok(answer) if calls::is_there(&answer) => Ok(results::contents(uri, mime_type, &answer.text, asker.era)),
        Ok(answer) => Err(Fault::resource(uri, asker.era).beside(&answer.text)),
        Err(Refusal::Unknown) => Err(Fault::resource(uri, asker.era)),
        Err(refusal) => Err(Fault::refused(&refusal, &asker.request_id)),
    }
}

#[cfg(test)]
mod tests;
