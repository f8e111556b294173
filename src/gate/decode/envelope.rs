//! The JSON-RPC envelope.
//!
//! Promises: exactly the members of JSON-RPC 2.0, each once, spelled exactly; an id is a whole number or a text. Bytes that are no JSON, or
//! an object with a key twice inside, are -32700; JSON that is no message is -32600, with the id where one could be read.
//! Does not: judge versions or headers (`era`).

use std::{fmt, sync::Arc};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Fault;
use crate::{
    domain::json::Strict,
    gate::{
        message::{Era, Id, Message},
        refusal::Barred,
    },
};

const PARSE: i64 = -32700;
const INVALID: i64 = -32600;

/// A valid envelope.
#[derive(Debug, PartialEq)]
pub struct Envelope {
    /// None for a notification, and for a response to nothing.
    pub id: Option<Id>,
    /// Empty for a response.
    pub method: String,
    /// Empty where there are none.
    pub params: Map<String, Value>,
    /// Whether it answers a request of ours.
    pub response: bool,
}

impl Envelope {
    /// Whether an answer is due.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.id.is_some() && !self.response
    }

    /// The message, once its era and version are known.
    #[must_use]
    pub fn message(self, era: Era, version: &'static str) -> Message {
        let Self { id, method, params, response } = self;
        Message { id, method: Arc::from(method), params, era, version, response }
    }
}

/// Reads `body`.
///
/// # Errors
/// [`Barred::Malformed`] with -32700 or -32600.
pub fn read(body: &[u8]) -> Result<Envelope, Barred> {
    // Checked once over the whole: cheaper than by each text, and a byte that is no UTF-8 has no place outside texts either.
    let text = std::str::from_utf8(body).map_err(|_| Fault::new(PARSE, "the body is not UTF-8").barred(None))?;
    let found: Found = serde_json::from_str(text)
        .map_err(|error| Fault::new(PARSE, format!("the body is not valid JSON, or not in one way only: {error}")).barred(None))?;
    match found {
        Found::Batch => Err(invalid("batches are not taken: send one message a request").barred(None)),
        Found::Other => Err(invalid("the body must be one JSON object").barred(None)),
        Found::Members(members) => {
            let id = members.readable_id();
            members.envelope().map_err(|fault| fault.barred(id))
        }
    }
}

fn invalid(message: &str) -> Fault {
    Fault::new(INVALID, message)
}

/// What the body is.
enum Found {
    Batch,
    Other,
    Members(Box<Members>),
}

/// The members as they came. The first thing wrong is kept and reading goes on: the rest must be JSON too, and the id may still come.
#[derive(Default)]
struct Members {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    result: bool,
    error: bool,
    wrong: Option<&'static str>,
    id_twice: bool,
}

/// A member's name.
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Unknown,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "jsonrpc" => Name::Jsonrpc,
                    "id" => Name::Id,
                    "method" => Name::Method,
                    "params" => Name::Params,
                    "result" => Name::Result,
                    "error" => Name::Error,
                    _ => Name::Unknown,
                })
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundReader)
    }
}

struct FoundReader;

impl<'de> Visitor<'de> for FoundReader {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Batch)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut members = Box::<Members>::default();
        while let Some(name) = map.next_key::<Name>()? {
            let value = map.next_value_seed(Strict)?;
            members.take(name, value);
        }
        Ok(Found::Members(members))
    }
}

impl Members {
    fn take(&mut self, name: Name, value: Value) {
        let twice = match name {
            Name::Jsonrpc => self.jsonrpc.replace(value).is_some(),
            Name::Id => {
                self.id_twice |= self.id.replace(value).is_some();
                self.id_twice
            }
            Name::Method => self.method.replace(value).is_some(),
            Name::Params => self.params.replace(value).is_some(),
            Name::Result => std::mem::replace(&mut self.result, true),
            Name::Error => std::mem::replace(&mut self.error, true),
            Name::Unknown => {
                self.blame("the message has a member that JSON-RPC does not know; names are case-sensitive");
                false
            }
        };
        if twice {
            self.blame("a member of the message stands twice");
        }
    }

    fn blame(&mut self, what: &'static str) {
        self.wrong.get_or_insert(what);
    }

    /// The id for an error: none where it is missing, no id, or not one.
    fn readable_id(&self) -> Option<Id> {
        self.id.as_ref().filter(|_| !self.id_twice).and_then(id)
    }

    fn envelope(self) -> Result<Envelope, Fault> {
        if let Some(wrong) = self.wrong {
            return Err(invalid(wrong));
        }
        if self.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        if self.method.is_none() && (self.result || self.error) {
            return self.response();
        }
        if self.result || self.error {
            return Err(invalid("a message has a method, or a result or an error, not both"));
        }
        let id = self.id.as_ref().map(|value| id(value).ok_or_else(|| invalid("id must be a whole number or a text"))).transpose()?;
        let Some(Value::String(method)) = self.method else { return Err(invalid("method must be a text")) };
        let params = match self.params {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(invalid("params must be an object")),
        };
        Ok(Envelope { id, method, params, response: false })
    }

    /// We never ask, so what a response holds does not matter, only that it is one.
    fn response(self) -> Result<Envelope, Fault> {
        let readable = match &self.id {
            Some(Value::Null) => self.error,
            Some(value) => id(value).is_some(),
            None => false,
        };
        if !readable || self.params.is_some() || (self.result && self.error) {
            return Err(invalid("a response has an id and either a result or an error"));
        }
        Ok(Envelope { id: self.id.as_ref().and_then(id), method: String::new(), params: Map::new(), response: true })
    }
}

fn id(value: &Value) -> Option<Id> {
    match value {
        Value::Number(number) => number.as_i64().map(Id::Number),
        Value::String(text) => Some(Id::Text(text.clone())),
        _ => None,
    }
}
