//! JSON whose meaning does not depend on who reads it.
//!
//! Promises: a key that stands twice in an object, at any depth, is refused; so is all that is no JSON and what stands after its end.
//! Does not: bound its input; the token's size is, and serde_json stops at 128 levels.

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value};

use crate::domain::json::Strict;

/// The object in `bytes`; none where it is no object or has a key twice.
#[must_use]
pub fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    if let Value::Object(object) = value { Some(object) } else { None }
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
