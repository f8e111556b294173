//! Leave for a write, as this protocol has it: a client that can show a form to a person is asked for an answer first (SEP-2322), every other
//! one gets a handle as a result (decision 31).
//!
//! Promises: the form says what the result would have said; its state is the handle, so nothing is kept between the rounds; an answer under
//! another name, or one that is no object, is none, and is asked for again.
//! Does not: judge handles or answers; the tool does, behind the gate.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::results;
use crate::{
    gate::message::Era,
    tools::{
        Answer, Entry,
        write::{Given, Leave},
    },
};

/// What the answer is asked for under, and the form's one field.
const NAME: &str = "approval";
const FIELD: &str = "approve";

/// How leave is given by who sends `params`, and what came of it.
#[must_use]
pub fn of(entry: &Entry, params: &Map<String, Value>, era: Era) -> (Leave, Given) {
    if !entry.effect.writes() || era == Era::Legacy {
        return (Leave::Ask, Given::Nothing);
    }
    let leave = if shows_forms(params) { Leave::AskByForm } else { Leave::Ask };
    (leave, answered(params).unwrap_or_default())
}

/// Whether the client can show a form: one that says no more of elicitation shows forms.
fn shows_forms(params: &Map<String, Value>) -> bool {
    let can = params.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/clientCapabilities"));
    let elicits = can.and_then(|can| can.get("elicitation")).and_then(Value::as_object);
    elicits.is_some_and(|ways| ways.is_empty() || ways.contains_key("form"))
}

/// The answer to the form, with the state that the form came with.
fn answered(params: &Map<String, Value>) -> Option<Given> {
    let answer = params.get("inputResponses")?.get(NAME)?.as_object()?;
    let handle = params.get("requestState")?.as_str()?.to_owned();
    let said = answer.get("content").and_then(|content| content.get(FIELD)) == Some(&Value::Bool(true));
    Some(Given::Form { handle, approved: said && answer.get("action").is_some_and(|action| action == "accept") })
}

/// The result that asks for the form's answer; none where `answer` asks for nothing.
#[must_use]
pub fn asked(answer: &Answer) -> Option<Arc<str>> {
    let said: Value = serde_json::from_str(answer.json.get()).ok()?;
    let approval = said.get("approval").filter(|_| said.get("approvalRequired") == Some(&Value::Bool(true)))?;
    let effects = approval.get("effects").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let summary = approval.get("summary").and_then(Value::as_str)?;
    let message = std::iter::once(summary.to_owned()).chain(effects.map(|effect| format!("- {effect}"))).collect::<Vec<_>>().join("\n");
    let field = json!({"type": "boolean", "title": "Approve", "description": "Whether this is to be done."});
    let schema = json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]});
    let request = json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}});
    Some(results::input_required(&json!({ NAME: request }), approval.get("handle").and_then(Value::as_str)?))
}
