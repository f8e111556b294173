//! No secret leaves: answers, their text and refusals are redacted (decision 65).
//!
//! Promises: JSON stays JSON; an answer without a secret is not copied. It stands inside the cache, so an answer is redacted once.
//! Does not: replace what import has already replaced; it is for stores that were filled with redaction off, and for values known only now.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use super::{
    Call, Refusal, Reply, Served,
    next::{Next, Step},
};
use crate::{
    telemetry::redaction::{Redactor, plain_escapes},
    tools::{Answer, ToolError},
};

/// The step.
pub struct Redact {
    redactor: Arc<Redactor>,
}

impl Redact {
    /// The step.
    #[must_use]
    pub const fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor }
    }
}

impl Step for Redact {
    async fn take<N: Next>(self: Arc<Self>, call: Call, mut next: N) -> Reply {
        let printed = call.entry.declared.is_some();
        match next.call(call).await {
            Ok(served) => cleaned(&self.redactor, served, printed),
            Err(refusal) => Err(refused(&self.redactor, refusal)),
        }
    }
}

/// A refusal without secrets, of the same kind. A tool's words may repeat what the caller sent.
#[must_use]
pub fn refused(redactor: &Redactor, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Tool(ToolError::Exit { code, said }) => {
            Refusal::Tool(ToolError::Exit { code, said: as_printed(redactor, &said).into_owned() })
        }
        Refusal::Tool(error) if !error.internal() => {
            let said = redactor.redact(&error.to_string()).into_owned();
            Refusal::Tool(match error {
                ToolError::Argument(_) => ToolError::Argument(said),
                ToolError::NotFound(_) | ToolError::Reference(_) => ToolError::NotFound(said),
                _ => ToolError::Said(said),
            })
        }
        other => other,
    }
}

/// What a program printed may be JSON that spells a secret in escapes, which whoever reads it as JSON would undo.
fn as_printed<'a>(redactor: &Redactor, text: &'a str) -> Cow<'a, str> {
    match redactor.redact(&plain_escapes(text)) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(cleaned) => Cow::Owned(cleaned),
    }
}

fn cleaned(redactor: &Redactor, served: Served, printed: bool) -> Reply {
    let Answer { json, text, lasting } = &*served.answer;
    let (json, text) = match (redactor.redact(json.get()), if printed { as_printed(redactor, text) } else { redactor.redact(text) }) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => return Ok(served),
        (json, text) => (json.into_owned(), text.into_owned()),
    };
    let json = RawValue::from_string(json).map_err(|error| ToolError::Internal(error.to_string()))?;
    Ok(Served { answer: Arc::new(Answer { json, text, lasting: *lasting }), ..served })
}
