//! One line of samples, as its members.
//!
//! Promises: lines of every age are read; bare NaN is null, half surrogates and bytes that are no UTF-8 become U+FFFD.
//! Does not: judge.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use crate::importers::{
    inspect::build::text_of,
    nan::strict,
    raw::{Fields, fields, list, read, text},
};

/// Members of a line that are no metrics.
const NO_METRICS: [&str; 11] =
    ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"];
/// Members that a line may have: each metric is looked for among them.
const MEMBERS_MAX: usize = 10_000;
/// Metrics of one line that are kept.
pub(super) const METRICS_MAX: usize = 1000;

/// A line as strict JSON, and whether some of its bytes had to be replaced.
pub(super) fn json_of(bytes: Vec<u8>) -> (String, bool) {
    let (json, replaced) = text_of(strict(bytes));
    match json.strip_prefix('\u{feff}') {
        Some(rest) => (rest.to_owned(), replaced),
        None => (json, replaced),
    }
}

/// A line.
pub(super) struct Row<'a>(Fields<'a>);

/// One request of a doc: what the model was asked.
#[derive(Debug, Default)]
pub(super) struct Request<'a> {
    /// The context: a prompt, or messages of a chat.
    pub(super) context: Option<&'a RawValue>,
    /// The continuation whose likelihood was asked.
    pub(super) continuation: Option<&'a RawValue>,
    /// The settings of generation, where a text was asked.
    pub(super) generation: Option<&'a RawValue>,
    /// What came back, one for each repeat.
    pub(super) responses: Vec<&'a RawValue>,
}

impl<'a> Row<'a> {
    pub(super) fn read(json: &'a str) -> Result<Self, String> {
        let fields: Fields<'_> = serde_json::from_str(json.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())?;
        if fields.0.len() > MEMBERS_MAX {
            return Err(format!("it has more than {MEMBERS_MAX} members, the most that a line may"));
        }
        Ok(Self(fields))
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key)
    }

    pub(super) fn id(&self) -> Value {
        read(self.get("doc_id")).unwrap_or(Value::Null)
    }

    /// The metrics that this line has: as it lists them, or in old lines what is there beside the members that every line has. A text or an
    /// object there is a metric only where the task `knows` it.
    pub(super) fn metrics(&self, knows: &dyn Fn(&str) -> bool) -> Vec<String> {
        if let Some(listed) = self.get("metrics").filter(|raw| raw.get().starts_with('[')) {
            return list(Some(listed)).0.iter().filter_map(|raw| text(Some(raw))).map(Cow::into_owned).take(METRICS_MAX).collect();
        }
        let counts = |raw: &RawValue| !raw.get().starts_with(['"', '{']);
        let others = self.0.0.iter().filter(|(name, raw)| !NO_METRICS.contains(&name.as_ref()) && (counts(raw) || knows(name)));
        others.map(|(name, _)| name.clone().into_owned()).take(METRICS_MAX).collect()
    }

    /// The requests: since 0.4.3 as objects by number, before as lists.
    pub(super) fn requests(&self) -> Vec<Request<'a>> {
        let arguments = self.get("arguments");
        let all: Vec<&RawValue> = match list(arguments).0 {
            listed if listed.is_empty() => fields(arguments).0.into_iter().map(|(_, raw)| raw).collect(),
            listed => listed,
        };
        let mut responses = list(self.get("resps")).0.into_iter();
        all.into_iter().map(|raw| Request::of(raw, responses.next())).collect()
    }

    pub(super) fn filtered(&self) -> Option<&'a RawValue> {
        self.get("filtered_resps")
    }

    /// What was judged, where it is one thing: of several continuations none is the answer.
    pub(super) fn answer(&self) -> Option<&'a RawValue> {
        match list(self.filtered()).0.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl<'a> Request<'a> {
    fn of(raw: &'a RawValue, responses: Option<&'a RawValue>) -> Self {
        let parts: Vec<&RawValue> = match list(Some(raw)).0 {
            listed if listed.is_empty() => fields(Some(raw)).0.into_iter().map(|(_, raw)| raw).collect(),
            listed => listed,
        };
        let mut parts = parts.into_iter();
        let (context, second) = (parts.next(), parts.next());
        Self {
            context,
            continuation: second.filter(|raw| raw.get().starts_with('"')),
            generation: second.filter(|raw| raw.get().starts_with('{')),
            responses: list(responses).0,
        }
    }

    /// The context as messages, where it is a chat: the harness writes it as JSON in a text, in a list of one.
    pub(super) fn chat(&self) -> Option<String> {
        let context = self.context?;
        text(Some(context))
            .or_else(|| text(list(Some(context)).0.first().copied()))
            .filter(|text| text.starts_with("[{"))
            .map(Cow::into_owned)
    }
}
