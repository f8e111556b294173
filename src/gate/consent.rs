//! What several writes take beside their arguments comes off here: `approval` and `idempotency_key`; and who acts is put together.
//!
//! Promises: a tool that writes decodes its own arguments and no others; a read that is given one of these refuses it as unknown.
//! Does not: judge a handle; that needs the project's key, and so the blocking pool.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Call, Refusal, Reply,
    next::{Next, Step},
};
use crate::{
    store::workspace::Actor,
    tools::{
        ToolError,
        write::{APPROVAL, Consent, Given, IDEMPOTENCY_KEY, KEY_CHARS_MAX, Leave, handle},
    },
};

/// The step.
pub struct ConsentStep;

/// Who acts by `call`.
pub(super) fn actor(call: &Call) -> Actor {
    Actor {
        identity: call.caller.identified().unwrap_or_else(|| call.caller.principal()).to_owned(),
        principal: call.caller.principal().to_owned(),
        role: call.caller.role(),
        address: call.client.map(|client| client.address),
        request_id: call.request_id.clone(),
    }
}

/// The text that is argument `name`, which is taken off.
fn taken_off(arguments: &mut Map<String, Value>, name: &str, max: usize) -> Result<Option<String>, Refusal> {
    let wrong =
        |what: String| Err(Refusal::Tool(ToolError::Argument(format!("argument {name} {what}; give a text of 1 to {max} characters"))));
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match text.chars().count() {
            0 => wrong("is empty".to_owned()),
            count if count > max => wrong(format!("has {count} characters")),
            _ => Ok(Some(text)),
        },
        Some(_) => wrong("is no text".to_owned()),
    }
}

fn consent(call: &mut Call) -> Result<Consent, Refusal> {
    // Where no leave is asked for there is no such argument.
    let approval = if call.leave == Leave::Direct { None } else { taken_off(&mut call.arguments, APPROVAL, handle::CHARS)? };
    let idempotency_key = taken_off(&mut call.arguments, IDEMPOTENCY_KEY, KEY_CHARS_MAX)?;
    let given = match (std::mem::take(&mut call.given), approval) {
        (given, None) => given,
        (Given::Nothing, Some(handle)) => Given::Handle(handle),
        (_, Some(_)) => {
            let sentence = format!("argument {APPROVAL}: the answer to a form came beside it; send one of the two");
            return Err(Refusal::Tool(ToolError::Argument(sentence)));
        }
    };
    Ok(Consent { leave: call.leave, given, idempotency_key, actor: actor(call), handed: call.handed.clone().unwrap_or_default() })
}

impl Step for ConsentStep {
    fn passes(&self, call: &Call) -> bool {
        !call.entry.effect.writes()
    }

    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        call.consent = Some(Box::new(consent(&mut call)?));
        next.call(call).await
    }
}
