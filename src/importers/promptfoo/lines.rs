//! A row's transcript: the messages of the prompt, the answer, then what else the provider and the assertions said.
//!
//! Promises: every line is strict JSON on one line; a prompt that is a list of messages gives a line each; nothing of the response or the
//! grading is left out.
//! Does not: repeat the test case (the attempt has its variables, the grading its assertions).

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use crate::{
    importers::{
        inspect::lines::{LEVELS_MAX, compact, too_deep},
        raw::{Fields, fields, list, text},
    },
    telemetry::redaction::Redactor,
    transcript::{Packed, Packer},
};

/// The lines of a row, and how many were nested too deep to keep.
pub(super) fn transcript(row: &Fields<'_>, redactor: &Redactor) -> (Packed, u32) {
    let mut lines = Lines { packer: Packer::new(redactor), too_deep: 0 };
    let response = fields(row.get("response"));
    lines.prompt(row.get("prompt"));
    if let Some(output) = response.get("output") {
        lines.said("assistant", output.get());
    }
    lines.packer.end_of_conversation();
    let rest = object(response.0.iter().filter(|(key, _)| key != "output"));
    lines.event("response", rest.as_deref());
    lines.event("grading", row.get("gradingResult").map(RawValue::get));
    lines.event("error", row.get("error").map(RawValue::get));
    let metadata = fields(row.get("metadata"));
    // Keys that begin so are promptfoo's own book-keeping.
    let own = object(metadata.0.iter().filter(|(key, _)| !key.starts_with('_')));
    lines.event("metadata", own.as_deref());
    (lines.packer.finish(), lines.too_deep)
}

struct Lines<'a> {
    packer: Packer<'a>,
    too_deep: u32,
}

impl Lines<'_> {
    /// The rendered prompt: a text, or a conversation as JSON in a text.
    fn prompt(&mut self, prompt: Option<&RawValue>) {
        let raw = fields(prompt);
        let Some(spelled) = text(prompt).or_else(|| text(raw.get("raw"))) else { return };
        let messages: Vec<&RawValue> = conversation(&spelled);
        if messages.is_empty() {
            // A string always serialises.
            let content = serde_json::to_string(&spelled).unwrap_or_default();
            return self.said("user", &content);
        }
        messages.iter().for_each(|message| self.put(message.get()));
    }

    fn said(&mut self, role: &str, content: &str) {
        self.put(&format!("{{\"role\":\"{role}\",\"content\":{content}}}"));
    }

    fn event(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| *value != "\"\"") {
            self.put(&format!("{{\"event\":\"{name}\",\"{name}\":{value}}}"));
        }
    }

    fn put(&mut self, json: &str) {
        let pretty = memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some();
        let line = if pretty { Cow::Owned(compact(json)) } else { Cow::Borrowed(json) };
        if too_deep(&line) {
            self.too_deep += 1;
            let bytes = line.len();
            return self.packer.line(&format!("{{\"left_out\":\"nested deeper than {LEVELS_MAX} levels\",\"bytes\":{bytes}}}"));
        }
        self.packer.line(&line);
    }
}

/// The messages in a prompt that is a list of them; none in any other.
fn conversation(spelled: &str) -> Vec<&RawValue> {
    if !spelled.trim_start().starts_with('[') {
        return Vec::new();
    }
    let Ok(raw) = serde_json::from_str::<&RawValue>(spelled) else { return Vec::new() };
    let messages = list(Some(raw)).0;
    let all = messages.iter().all(|message| fields(Some(message)).get("role").is_some());
    if all { messages } else { Vec::new() }
}

/// Members as an object; none where there are none.
fn object<'m>(members: impl Iterator<Item = &'m (Cow<'m, str>, &'m RawValue)>) -> Option<String> {
    let mut out = String::new();
    for (key, raw) in members {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&Value::from(key.as_ref()).to_string());
        out.push(':');
        out.push_str(raw.get());
    }
    if out.is_empty() {
        return None;
    }
    out.push('}');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(row: &str) -> (Vec<String>, u64) {
        let redactor = Redactor::patterns_only();
        let (packed, _) = transcript(&serde_json::from_str(row).unwrap(), &redactor);
        (packed.page(0, 100).unwrap(), packed.messages)
    }

    #[test]
    fn a_conversation_is_a_line_a_message() {
        let (all, messages) = lines(
            r#"{"prompt":{"raw":" [{\"role\":\"system\",\"content\":\"be\\nkind\"},\n {\"role\":\"user\",\"content\":\"hi\"}]"},
            "response":{"output":{"a":
            1},"cached":true},"gradingResult":{"pass":true},"error":null,"metadata":{"_own":1}}"#,
        );
        assert_eq!(
            all,
            [
                r#"{"role":"system","content":"be\nkind"}"#,
                r#"{"role":"user","content":"hi"}"#,
                r#"{"role":"assistant","content":{"a":1}}"#,
                r#"{"event":"response","response":{"cached":true}}"#,
                r#"{"event":"grading","grading":{"pass":true}}"#,
            ]
        );
        assert_eq!(messages, 3);
    }

    #[test]
    fn any_other_prompt_is_what_the_user_said() {
        for raw in ["plain \"text\"", "[not json", "[1,2]", "{}"] {
            let row = serde_json::json!({"prompt": {"raw": raw}, "error": "it broke"}).to_string();
            let (all, messages) = lines(&row);
            let said = format!(r#"{{"role":"user","content":{}}}"#, Value::from(raw));
            assert_eq!(all, [said.as_str(), r#"{"event":"error","error":"it broke"}"#]);
            assert_eq!(messages, 1);
        }
    }
}
