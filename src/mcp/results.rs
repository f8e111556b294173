//! Results as JSON text, by era.
//!
//! Promises: what is text already is placed, not parsed; modern results say that they are complete and, where they may be cached, for how long
//! (decision 45); older ones carry none of that.
//! Does not: decide what is answered.

use std::sync::Arc;

use serde_json::Value;

use crate::{gate::message::Era, tools::Answer};

/// What lists say of how long and by whom they may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// None at all: results that are no lists.
    None,
    /// Not beyond this caller and moment.
    Private,
    /// By anybody, for a minute.
    Public,
}

/// `result`, an object, as a result of its era.
#[must_use]
pub fn complete(result: &Value, era: Era, hints: Hints) -> Arc<str> {
    placed(&result.to_string(), era, hints)
}

/// The same where the object is text already.
#[must_use]
pub fn placed(result: &str, era: Era, hints: Hints) -> Arc<str> {
    let members = result.strip_prefix('{').unwrap_or(result);
    let comma = if members.starts_with('}') { "" } else { "," };
    match (era, hints) {
        (Era::Legacy, _) => result.into(),
        (Era::Modern, hints) => format!("{{{COMPLETE}{}{comma}{members}", said(hints)).into(),
    }
}

const COMPLETE: &str = "\"resultType\":\"complete\"";

const fn said(hints: Hints) -> &'static str {
    match hints {
        Hints::None => "",
        Hints::Private => ",\"ttlMs\":0,\"cacheScope\":\"private\"",
        Hints::Public => ",\"ttlMs\":60000,\"cacheScope\":\"public\"",
    }
}

/// A tool's answer.
#[must_use]
pub fn answered(answer: &Answer, era: Era) -> Arc<str> {
    let (text, json) = (quoted(&answer.text), answer.json.get());
    placed(
        &format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{json},\"isError\":false}}"),
        era,
        Hints::None,
    )
}

/// A tool's refusal.
#[must_use]
pub fn refused(sentence: &str, era: Era) -> Arc<str> {
    placed(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true}}", quoted(sentence)), era, Hints::None)
}

/// A resource's one body.
#[must_use]
pub fn contents(uri: &str, mime_type: &str, text: &str, era: Era) -> Arc<str> {
    let (uri, text) = (quoted(uri), quoted(text));
    placed(&format!("{{\"contents\":[{{\"uri\":{uri},\"mimeType\":\"{mime_type}\",\"text\":{text}}}]}}"), era, Hints::Private)
}

/// `text` as a JSON string. Writing a text as JSON cannot fail.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_modern_results_carry_hints() {
        let list = json!({"prompts": []});
        assert_eq!(
            read(&complete(&list, Era::Modern, Hints::Private)),
            json!({"prompts": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
        );
        assert_eq!(
            read(&complete(&list, Era::Modern, Hints::Public)),
            json!({"prompts": [], "resultType": "complete", "ttlMs": 60000, "cacheScope": "public"})
        );
        assert_eq!(read(&complete(&list, Era::Modern, Hints::None)), json!({"prompts": [], "resultType": "complete"}));
        assert_eq!(read(&complete(&list, Era::Legacy, Hints::Public)), list);
        assert_eq!(read(&complete(&json!({}), Era::Modern, Hints::None)), json!({"resultType": "complete"}));
    }

    #[test]
    fn a_body_is_one_text_whatever_it_holds() {
        let body = "{\"a\":\"\\\"\u{1}é\"}\n";
        let result = read(&contents("runlore://runs/\"", "application/jsonl", body, Era::Legacy));
        assert_eq!(result, json!({"contents": [{"uri": "runlore://runs/\"", "mimeType": "application/jsonl", "text": body}]}));
    }
}
