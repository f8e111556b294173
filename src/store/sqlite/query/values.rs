//! Values on their way in and out of a question (decision 63).
//!
//! Promises: what comes out is JSON that every client reads exactly: integers beyond 2^53 are texts, NaN and infinities null, blobs base64.
//! Does not: convert between types that mean different things.

use base64::Engine as _;
use rusqlite::types::{Value as Sql, ValueRef};
use serde_json::{Value, json};

use crate::store::query::QueryFault;

/// The largest integer that a double holds exactly with all its neighbours.
const EXACT: u64 = 1 << 53;

/// A parameter's value.
pub(super) fn bound(value: &Value) -> Result<Sql, QueryFault> {
    Ok(match value {
        Value::Null => Sql::Null,
        Value::Bool(truth) => Sql::Integer(i64::from(*truth)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Sql::Integer(integer),
            (None, Some(real)) => Sql::Real(real),
            (None, None) => return Err(QueryFault::Refused(format!("the value {number} is no number that the store holds"))),
        },
        Value::String(text) => Sql::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => {
            return Err(QueryFault::Refused("a value is a list or an object; give a text, a number, a boolean or null".to_owned()));
        }
    })
}

/// A value of a row as JSON, and about how many bytes that takes.
pub(super) fn json(value: ValueRef<'_>) -> (Value, usize) {
    match value {
        ValueRef::Null => (Value::Null, 5),
        ValueRef::Integer(integer) if integer.unsigned_abs() <= EXACT => (json!(integer), 12),
        ValueRef::Integer(integer) => (json!(integer.to_string()), 24),
        // JSON has no NaN: `from_f64` gives none, and so null.
        ValueRef::Real(real) => (serde_json::Number::from_f64(real).map_or(Value::Null, Value::Number), 20),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let size = text.len() + 3;
            (Value::String(text), size)
        }
        ValueRef::Blob(bytes) => {
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            let size = text.len() + 16;
            (json!({ "base64": text }), size)
        }
    }
}
