//! Arguments as one text, whatever order they came in: what makes two calls one to the cache, to an approval and to the trail.
//!
//! Promises: two texts are equal only where the values are.
//! Does not: decode arguments, or write out defaults; what it is given has been through that.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::domain::hex::hex;

/// SHA-256 of the arguments' text, hexadecimal.
#[must_use]
pub fn digest(arguments: &Map<String, Value>) -> String {
    hex(&Sha256::digest(canonical(arguments)))
}

/// A text of the arguments, names sorted at every level. Two texts are equal only where the values are. (Not JSON: commas end, so as to need no
/// look ahead.)
#[must_use]
pub fn canonical(arguments: &Map<String, Value>) -> String {
    let mut text = Vec::with_capacity(256);
    object(arguments, &mut text);
    // What serde_json writes is UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

fn object(map: &Map<String, Value>, text: &mut Vec<u8>) {
    let mut names: Vec<(&String, &Value)> = map.iter().collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    text.push(b'{');
    for (name, value) in names {
        scalar(name, text);
        text.push(b':');
        written(value, text);
        text.push(b',');
    }
    text.push(b'}');
}

fn written(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(map) => object(map, text),
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                written(item, text);
                text.push(b',');
            }
            text.push(b']');
        }
        other => scalar(other, text),
    }
}

/// Writing to memory cannot fail.
fn scalar(value: &impl Serialize, text: &mut Vec<u8>) {
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a,:{}\\[\\]\"\\\\\u{0}é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ab\",:]{0,3}", inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn arguments() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::vec(("[ab\",:]{0,3}", value()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
    }

    /// The same with names put in the other way round, at every level.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(map.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect()),
            Value::Array(items) => items.iter().map(reversed).collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn different_arguments_have_different_texts_and_equal_ones_the_same(one in arguments(), other in arguments()) {
            prop_assert_eq!(canonical(&one) == canonical(&other), one == other);
        }

        #[test]
        fn the_order_of_names_does_not_matter(one in arguments()) {
            let turned = reversed(&Value::Object(one.clone()));
            prop_assert_eq!(canonical(&one), canonical(turned.as_object().unwrap()));
        }
    }
}
