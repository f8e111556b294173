//! Lists and objects of JSON whose values stay text: one pass over the bytes, nothing built.
//!
//! Promises: order is kept; a value of another type than asked for is empty, never an error, since logs of every age come by.
//! Does not: look into the values.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::telemetry::redaction::plain_escapes;

/// Each item of a list of two-byte items takes sixteen here: more than this many is no log but an attack on memory.
const ITEMS_MAX: usize = 1_000_000;

/// The elements of a list.
#[derive(Debug, Default)]
pub(super) struct List<'a>(pub(super) Vec<&'a RawValue>);

/// The members of an object, as they stand.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The last value under `key`, null being none: where a key repeats, Python's reader takes the last.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value).filter(|value| value.get() != "null")
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Default)]
struct Collect<T>(std::marker::PhantomData<T>);

/// Everything that is neither list nor object is empty.
macro_rules! scalars_are_empty {
    () => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("any JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Visitor<'de> for Collect<List<'de>> {
    type Value = List<'de>;
    scalars_are_empty!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<'de>, A::Error> {
        let mut found = Vec::new();
        while let Some(value) = seq.next_element()? {
            found.push(value);
            bounded(found.len())?;
        }
        Ok(List(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List::default())
    }
}

impl<'de> Visitor<'de> for Collect<Fields<'de>> {
    type Value = Fields<'de>;
    scalars_are_empty!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Fields<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut found = Vec::new();
        while let Some((Key(key), value)) = map.next_entry()? {
            found.push((key, value));
            bounded(found.len())?;
        }
        Ok(Fields(found))
    }
}

fn bounded<E: serde::de::Error>(items: usize) -> Result<(), E> {
    if items > ITEMS_MAX { Err(E::custom(format!("it has more than {ITEMS_MAX} items, the most that a list may"))) } else { Ok(()) }
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Collect::<List<'de>>::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Collect::<Fields<'de>>::default())
    }
}

/// `raw` as a `T`, or nothing.
pub(super) fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// `raw` as members; none of them where it is no object.
pub(super) fn fields(raw: Option<&RawValue>) -> Fields<'_> {
    read(raw).unwrap_or_default()
}

/// `raw` as elements; none of them where it is no list.
pub(super) fn list(raw: Option<&RawValue>) -> List<'_> {
    read(raw).unwrap_or_default()
}

/// `raw` as text, where it is a string that says something.
pub(super) fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    read::<Key<'_>>(raw).map(|Key(text)| text).filter(|text| !text.is_empty())
}

/// `raw` as JSON text that may be shown: patterns find secrets in plain text only.
pub(super) fn json(raw: &RawValue) -> Cow<'_, str> {
    plain_escapes(raw.get())
}

/// `raw` as a finite number.
pub(super) fn number(raw: Option<&RawValue>) -> Option<f64> {
    read::<f64>(raw).filter(|number| number.is_finite())
}

/// `raw` as a count: a whole number, or a float that is one.
pub(super) fn count(raw: Option<&RawValue>) -> Option<u64> {
    // Casting a float saturates, and negative ones are turned away before.
    read::<u64>(raw).or_else(|| number(raw).filter(|number| *number >= 0.0).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_types_are_empty() {
        for text in ["1", "-1", "1.5", "true", "null", "\"x\"", "{\"a\":1}"] {
            assert!(serde_json::from_str::<List<'_>>(text).unwrap().0.is_empty(), "{text}");
        }
        for text in ["1", "-1", "1.5", "true", "null", "\"x\"", "[1]"] {
            assert!(serde_json::from_str::<Fields<'_>>(text).unwrap().0.is_empty(), "{text}");
        }
    }

    #[test]
    fn items_are_bounded() {
        let many = format!("[{}0]", "0,".repeat(ITEMS_MAX));
        assert!(serde_json::from_str::<List<'_>>(&many).is_err());
    }

    #[test]
    fn json_that_is_shown_hides_nothing_in_escapes() {
        let fields: Fields<'_> = serde_json::from_str(r#"{"a": ["postgres:\/\/b", "\u003d\u00e9"]}"#).unwrap();
        assert_eq!(json(fields.0[0].1), r#"["postgres://b", "=\u00e9"]"#);
    }

    #[test]
    fn values_stay_as_written() {
        let fields: Fields<'_> = serde_json::from_str(r#"{"a": [1, 2.50], "a\n": "\u00e9", "a": 7}"#).unwrap();
        assert_eq!(fields.get("a").map(RawValue::get), Some("7"));
        assert_eq!(fields.0[1].0, "a\n");
        assert_eq!(fields.0[1].1.get(), r#""\u00e9""#);
        assert_eq!(count(Some(fields.0[2].1)), Some(7));
    }
}
