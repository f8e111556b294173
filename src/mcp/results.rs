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

/// A tool's answer. Nothing is formatted: a hit of the cache is little more than this.
#[must_use]
pub fn answered(answer: &Answer, era: Era) -> Arc<str> {
    let (json, text) = (answer.json.get(), answer.text.as_str());
    // Escapes are few: an eighth more, and what stands around both.
    let mut result = String::with_capacity(json.len() + text.len() + text.len() / 8 + 128);
    content(&mut result, text, era);
    if json != "null" {
        result.push_str(",\"structuredContent\":");
        result.push_str(json);
    }
    result.push_str(",\"isError\":false}");
    result.into()
}

/// A tool's refusal.
#[must_use]
pub fn refused(sentence: &str, era: Era) -> Arc<str> {
    let mut result = String::with_capacity(sentence.len() + 128);
    content(&mut result, sentence, era);
    result.push_str(",\"isError\":true}");
    result.into()
}

/// What the client must bring first (newer era only), and the state that it sends back with that.
#[must_use]
pub fn input_required(requests: &Value, state: &str) -> Arc<str> {
    serde_json::json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}).to_string().into()
}

/// The refusal of an operator's command, with the exit code that it ended with (decision 70).
#[must_use]
pub fn ended(said: &str, code: i32, era: Era) -> Arc<str> {
    let mut result = String::with_capacity(said.len() + 160);
    content(&mut result, said, era);
    result.push_str(",\"isError\":true,\"_meta\":{\"runlore/exitCode\":");
    result.push_str(&code.to_string());
    result.push_str("}}");
    result.into()
}

/// The beginning of a tool's result, to the end of its text.
fn content(result: &mut String, text: &str, era: Era) {
    result.push('{');
    if era == Era::Modern {
        result.push_str(COMPLETE);
        result.push(',');
    }
    result.push_str("\"content\":[{\"type\":\"text\",\"text\":");
    quote(result, text);
    result.push_str("}]");
}

/// A resource's one body.
#[must_use]
pub fn contents(uri: &str, mime_type: &str, text: &str, era: Era) -> Arc<str> {
    let (uri, text) = (quoted(uri), quoted(text));
    placed(&format!("{{\"contents\":[{{\"uri\":{uri},\"mimeType\":\"{mime_type}\",\"text\":{text}}}]}}"), era, Hints::Private)
}

/// `text` as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 2);
    quote(&mut out, text);
    out
}

/// Adds `text` as a JSON string. Line by line, since line feeds are all that most texts have to escape, and what has none is copied whole.
fn quote(result: &mut String, text: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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

    proptest! {
        #[test]
        fn a_text_is_quoted_as_serde_json_does(parts in proptest::collection::vec(prop_oneof![".*", "[\n\r\t\"\\\\\u{0}-\u{1f}é]{0,4}", "[a-z ]{0,9}"], 0..6)) {
            let text = parts.concat();
            prop_assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
