//! A sample's transcript: its messages, then its events, one JSON line each.
//!
//! Promises: every line is strict JSON on one line; attachments and pool references stand resolved wherever their target exists; a model
//! event keeps the messages that no earlier line had (a sub-agent's stand nowhere else) and counts the ones left out, so that a
//! conversation of n turns takes n messages and not n squared.
//! Does not: judge what a message says.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
};

use memchr::memmem;
use serde_json::value::RawValue;

use super::{attachments::Attachments, pool::Pool};
use crate::{
    importers::raw::{Fields, fields, list, read, text},
    telemetry::redaction::{Redactor, plain_escapes},
    transcript::{Packed, Packer},
};

/// What a reader of JSON takes (serde_json's own bound): a line that is nested deeper would be kept and never read again.
pub(in crate::importers) const LEVELS_MAX: usize = 127;
/// Stands in every model event.
static MODEL: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\"model\""));
/// Keys under which providers' requests hold the conversation.
const REQUEST_LISTS: [&str; 3] = ["messages", "input", "contents"];

/// Writes the lines of one sample.
pub(super) struct Lines<'p, 'a> {
    packer: Packer<'p>,
    attachments: &'a Attachments<'a>,
    /// Messages that stand in a line already, by id or content.
    seen: HashSet<u64>,
    messages: Pool<'a>,
    calls: Pool<'a>,
    too_deep: u32,
}

impl<'p, 'a> Lines<'p, 'a> {
    pub(super) fn new(redactor: &'p Redactor, attachments: &'a Attachments<'a>, messages: Pool<'a>, calls: Pool<'a>) -> Self {
        Self { packer: Packer::new(redactor), attachments, seen: HashSet::new(), messages, calls, too_deep: 0 }
    }

    /// Adds a message of the final conversation.
    pub(super) fn message(&mut self, raw: &RawValue) {
        let key = message_key(raw, self.attachments);
        self.seen.insert(key);
        self.put(raw.get());
        self.packer.end_of_conversation();
    }

    /// Adds the messages of the pool that these references name, which is how a chunked sample spells its final conversation.
    pub(super) fn pooled_messages(&mut self, refs: &[&RawValue]) {
        let mut all = Vec::new();
        self.messages.expand(refs, |_, raw| all.push(raw));
        all.into_iter().for_each(|raw| self.message(raw));
    }

    /// Adds an event.
    pub(super) fn event<'e>(&mut self, raw: &'e RawValue)
    where
        'a: 'e,
    {
        // Most events are no model events, and are not looked into.
        if MODEL.find(raw.get().as_bytes()).is_some() {
            let event = fields(Some(raw));
            if text(event.get("event")).as_deref() == Some("model") {
                let line = self.model_event(&event);
                return self.put(&line);
            }
        }
        self.put(raw.get());
    }

    /// The packed lines, and how many were nested too deep to keep.
    pub(super) fn finish(self) -> (Packed, u32) {
        (self.packer.finish(), self.too_deep)
    }

    fn put(&mut self, json: &str) {
        let flat = if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() { Cow::Owned(compact(json)) } else { Cow::Borrowed(json) };
        let line = self.attachments.in_json(&flat);
        if too_deep(&line) {
            self.too_deep += 1;
            let bytes = line.len();
            return self.packer.line(&format!("{{\"left_out\":\"nested deeper than {LEVELS_MAX} levels\",\"bytes\":{bytes}}}"));
        }
        self.packer.line(&line);
    }

    fn model_event<'e>(&mut self, event: &Fields<'e>) -> String
    where
        'a: 'e,
    {
        let mut out = Object::default();
        let mut input_stands = false;
        for (key, raw) in &event.0 {
            match key.as_ref() {
                "input" | "input_refs" if input_stands => {}
                "input" | "input_refs" => {
                    input_stands = true;
                    self.input(event, &mut out);
                }
                "call" => out.text("call", &self.call(raw)),
                _ => out.text(key, raw.get()),
            }
        }
        self.see_output(event);
        out.finish()
    }

    fn input<'e>(&mut self, event: &Fields<'e>, out: &mut Object)
    where
        'a: 'e,
    {
        let (mut kept, mut omitted) = self.unseen(&list(event.get("input")).0);
        let refs = list(event.get("input_refs")).0;
        let missing = unseen_of(&mut self.messages, &mut self.seen, self.attachments, &refs, &mut kept, &mut omitted);
        out.text("input", &array(&kept));
        out.count("input_omitted", omitted);
        out.some("input_refs", missing);
    }

    /// Those of `all` that stand in no line yet, and how many do.
    fn unseen<'m>(&mut self, all: &[&'m RawValue]) -> (Vec<&'m RawValue>, u64) {
        let mut kept = Vec::new();
        for raw in all {
            if self.seen.insert(message_key(raw, self.attachments)) {
                kept.push(*raw);
            }
        }
        let omitted = (all.len() - kept.len()) as u64;
        (kept, omitted)
    }

    /// A provider's call: its request without the messages that stand already, everything else as it is.
    fn call<'e>(&mut self, raw: &'e RawValue) -> String
    where
        'a: 'e,
    {
        let call = fields(Some(raw));
        if call.0.is_empty() {
            return raw.get().to_owned();
        }
        let mut out = Object::default();
        let mut omitted = 0;
        let mut missing = None;
        let mut request_stands = false;
        for (key, value) in &call.0 {
            match key.as_ref() {
                // The key says where the references would go; they stand there now.
                "call_refs" | "call_key" => {}
                // A key that repeats would be gone through again and again.
                "request" if request_stands => {}
                "request" => {
                    request_stands = true;
                    let request = self.request(value, &call, &mut omitted, &mut missing);
                    out.text("request", &request);
                }
                _ => out.text(key, value.get()),
            }
        }
        out.count("request_omitted", omitted);
        if missing.is_some() {
            out.some("call_key", call.get("call_key").map(|raw| raw.get().to_owned()));
        }
        out.some("call_refs", missing);
        out.finish()
    }

    fn request<'e>(&mut self, raw: &'e RawValue, call: &Fields<'e>, omitted: &mut u64, missing: &mut Option<String>) -> String
    where
        'a: 'e,
    {
        let request = fields(Some(raw));
        let refs = list(call.get("call_refs")).0;
        let refs_key = text(call.get("call_key")).unwrap_or(Cow::Borrowed("messages"));
        let mut out = Object::default();
        for (key, value) in &request.0 {
            let values = list(Some(value)).0;
            if REQUEST_LISTS.contains(&key.as_ref()) && values.iter().any(|one| one.get().starts_with('{')) {
                let (kept, again) = self.unseen(&values);
                *omitted += again;
                out.text(key, &array(&kept));
            } else {
                out.text(key, value.get());
            }
        }
        if !refs.is_empty() {
            let mut kept = Vec::new();
            *missing = unseen_of(&mut self.calls, &mut self.seen, self.attachments, &refs, &mut kept, omitted);
            out.text(&refs_key, &array(&kept));
        }
        if out.is_empty() { raw.get().to_owned() } else { out.finish() }
    }

    /// What a model answered stands in its own event, and need not stand in the next one's input.
    fn see_output(&mut self, event: &Fields<'_>) {
        let output = fields(event.get("output"));
        for choice in list(output.get("choices")).0 {
            if let Some(message) = fields(Some(choice)).get("message") {
                let key = message_key(message, self.attachments);
                self.seen.insert(key);
            }
        }
    }
}

/// What a pool's references name for the first time goes to `kept`, the rest is counted; references that lead nowhere come back.
fn unseen_of<'e, 'a: 'e>(
    pool: &mut Pool<'a>,
    seen: &mut HashSet<u64>,
    attachments: &Attachments<'_>,
    refs: &[&RawValue],
    kept: &mut Vec<&'e RawValue>,
    omitted: &mut u64,
) -> Option<String> {
    let (again, missing) = pool.expand_new(refs, |raw| {
        if seen.insert(message_key(raw, attachments)) {
            kept.push(raw);
        } else {
            *omitted += 1;
        }
    });
    *omitted += again;
    missing
}

/// What a message is known by: its id, else what it says.
fn message_key(raw: &RawValue, attachments: &Attachments<'_>) -> u64 {
    let json = raw.get();
    let mut hasher = DefaultHasher::new();
    // Inspect writes the id first; only other layouts are looked through.
    let first = json.strip_prefix("{\"id\":\"").and_then(|rest| rest.split_once('"')).map(|(id, _)| id).filter(|id| !id.contains('\\'));
    match first.map(Cow::Borrowed).or_else(|| read::<Fields<'_>>(Some(raw)).and_then(|message| text(message.get("id")))) {
        Some(id) => ("id", id).hash(&mut hasher),
        None => content_key(json, attachments, &mut hasher),
    }
    hasher.finish()
}

/// Hashes JSON so that neither white space counts (a message is indented otherwise at another depth), nor whether a text stands there or is
/// an attachment (old logs have it inline in the conversation and attached in the events).
fn content_key(json: &str, attachments: &Attachments<'_>, hasher: &mut DefaultHasher) {
    let mut rest = json;
    while let Some(at) = rest.bytes().position(|byte| byte == b'"' || byte.is_ascii_whitespace()) {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        hasher.write(before.as_bytes());
        let taken = if after.starts_with('"') { string_length(after) } else { 0 };
        if let Some(inside) = taken.checked_sub(1).and_then(|end| after.get(1..end)) {
            hasher.write_u64(attachments.hash(inside));
        }
        rest = after.get(taken..).unwrap_or_default().trim_ascii_start();
    }
    hasher.write(rest.as_bytes());
}

fn array(values: &[&RawValue]) -> String {
    let mut out = String::with_capacity(2 + values.iter().map(|raw| raw.get().len() + 1).sum::<usize>());
    out.push('[');
    for raw in values {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(raw.get());
    }
    out.push(']');
    out
}

/// A JSON object being written.
#[derive(Default)]
struct Object(String);

impl Object {
    fn text(&mut self, key: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        // A string always serialises.
        self.0.push_str(&serde_json::to_string(key).unwrap_or_default());
        self.0.push(':');
        self.0.push_str(value);
    }

    fn count(&mut self, key: &str, count: u64) {
        if count > 0 {
            self.text(key, &count.to_string());
        }
    }

    fn some(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            self.text(key, &value);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn finish(mut self) -> String {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// `json` without the white space between its parts, and without escapes that patterns for secrets do not see through.
pub(in crate::importers) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let json = plain_escapes(json);
    let mut rest = json.as_ref();
    while let Some(at) = rest.bytes().position(|byte| byte == b'"' || byte.is_ascii_whitespace()) {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let taken = if after.starts_with('"') { string_length(after) } else { 0 };
        out.push_str(after.get(..taken).unwrap_or(after));
        rest = after.get(taken..).unwrap_or_default().trim_ascii_start();
    }
    out.push_str(rest);
    out
}

fn string_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Whether `line` is nested deeper than [`LEVELS_MAX`].
pub(in crate::importers) fn too_deep(line: &str) -> bool {
    // A line with few brackets cannot be deep, and counting them is quick.
    // Sums of bytes in small parts: the compiler makes wide instructions of them, and the two brackets differ in one bit.
    let opening = |part: &[u8]| usize::from(part.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>());
    let brackets: usize = line.as_bytes().chunks(255).map(opening).sum();
    brackets > LEVELS_MAX && depth(line) > LEVELS_MAX
}

fn depth(json: &str) -> usize {
    let (mut now, mut most, mut rest) = (0_usize, 0, json);
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']')) {
        let (_, after) = rest.split_at_checked(at).unwrap_or_default();
        let taken = match after.as_bytes().first() {
            Some(b'"') => string_length(after),
            Some(b'{' | b'[') => {
                now += 1;
                most = most.max(now);
                1
            }
            _ => {
                now = now.saturating_sub(1);
                1
            }
        };
        rest = after.get(taken..).unwrap_or_default();
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_strings_stay() {
        assert_eq!(compact("{ \"a b\" : [1,\n  \"x \\\" y\\\\\" ] , \"c\":\tnull }"), r#"{"a b":[1,"x \" y\\"],"c":null}"#);
        assert_eq!(compact("\"open \\"), "\"open \\");
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth(r#"{"a":[{"[[[":1}],"b":"]]"}"#), 3);
        assert!(too_deep(&format!("{}{}", "[".repeat(128), "]".repeat(128))));
        assert!(!too_deep(&format!("[{}]", vec!["[]"; 200].join(","))));
    }
}
