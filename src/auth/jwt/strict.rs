//! JSON whose meaning does not depend on who reads it.
//!
//! Promises: a key that stands twice in an object, at any depth, is refused; so is all that is no JSON and what stands after its end.
//! Does not: bound its input; the token's size is, and serde_json stops at 128 levels.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// The object in `bytes`; none where it is no object or has a key twice.
#[must_use]
pub fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Strict(Value::Object(object))) => Some(object),
        _ => None,
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Once).map(Self)
    }
}

struct Once;

impl<'de> Visitor<'de> for Once {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without a key twice")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_means_what_serde_json_says() {
        for text in [r#"{}"#, r#"{"a":[1,-2,1.5,true,null,"\u00e9"],"b":{"a":{}}}"#, " {\"n\":18446744073709551615} "] {
            assert_eq!(object(text.as_bytes()).map(Value::Object), serde_json::from_str(text).ok(), "{text}");
        }
    }

    #[test]
    fn twice_is_refused_at_any_depth_and_so_is_no_object() {
        for text in
            [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":[{"b":1,"b":2}]}"#, "[]", "1", "", "{}x", "{\"a\":NaN}", "{\"a\":1e999}"]
        {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        assert_eq!(object(&[b'{', b'"', 0xff, b'"', b':', b'1', b'}']), None);
    }
}
