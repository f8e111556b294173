//! Arguments that several writes have, each with its bounds in its type: schema, decoder and sentence are one.
//!
//! Promises: what is wrong is said with the value and what is allowed.
//! Does not: know any tool.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use crate::domain::text::hidden;

/// What something is called: 1 to `MAX` characters, none of them hidden, without spaces around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Name<const MAX: usize>(String);

impl<const MAX: usize> Name<MAX> {
    /// The name.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The name, to be kept.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Name<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.chars().count() {
            0 => Err(D::Error::custom("it must not be empty")),
            count if count > MAX => Err(D::Error::custom(format!("it has {count} characters; at most {MAX} are taken"))),
            _ if text.trim() != text => Err(D::Error::custom(format!("\"{text}\" has spaces around it"))),
            _ if text.chars().any(hidden) => Err(D::Error::custom(format!("\"{text}\" has characters that cannot be seen"))),
            _ => Ok(Self(text)),
        }
    }
}

impl<const MAX: usize> JsonSchema for Name<MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("NameTo{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": MAX})
    }
}

/// Dollars that something may cost at most.
const DOLLARS_MAX: f64 = 1_000_000.0;

/// Dollars: from 0 to a million.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Dollars(f64);

impl Dollars {
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = value.as_f64().filter(|number| (0.0..=DOLLARS_MAX).contains(number));
        number.map(Self).ok_or_else(|| D::Error::custom(format!("{value} is not a number from 0 to {DOLLARS_MAX}")))
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0, "maximum": DOLLARS_MAX})
    }
}

/// `true`, and nothing else: whoever sends it says that somebody has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reviewed(bool);

impl<'de> Deserialize<'de> for Reviewed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == Value::Bool(true) {
            Ok(Self(true))
        } else {
            Err(D::Error::custom(format!("{value} is not true: nothing is kept that nobody has reviewed")))
        }
    }
}

impl JsonSchema for Reviewed {
    fn schema_name() -> Cow<'static, str> {
        "Reviewed".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "boolean", "const": true})
    }
}

/// Free pairs of at most `BYTES` as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pairs<const BYTES: usize>(Map<String, Value>);

impl<const BYTES: usize> Pairs<BYTES> {
    /// The pairs.
    #[must_use]
    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

impl<'de, const BYTES: usize> Deserialize<'de> for Pairs<BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let bytes = serde_json::to_vec(&map).map_or(usize::MAX, |json| json.len());
        if bytes > BYTES {
            Err(D::Error::custom(format!("it takes {bytes} bytes as JSON; at most {BYTES} are taken")))
        } else {
            Ok(Self(map))
        }
    }
}

impl<const BYTES: usize> JsonSchema for Pairs<BYTES> {
    fn schema_name() -> Cow<'static, str> {
        format!("PairsTo{BYTES}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_allowed() {
        assert_eq!(said::<Name<3>>(json!("äöü")).unwrap().get(), "äöü");
        assert_eq!(said::<Name<3>>(json!("abcd")).unwrap_err(), "it has 4 characters; at most 3 are taken");
        for wrong in ["", " a", "a\u{202e}", "\n"] {
            assert!(said::<Name<3>>(json!(wrong)).is_err(), "{wrong:?}");
        }
        assert_eq!(said::<Dollars>(json!(1.5)).unwrap().get(), 1.5);
        assert_eq!(said::<Dollars>(json!(-1)).unwrap_err(), "-1 is not a number from 0 to 1000000");
        assert!(said::<Dollars>(json!("1")).is_err() && said::<Dollars>(json!(1e300)).is_err());
        assert!(said::<Reviewed>(json!(true)).is_ok());
        assert_eq!(said::<Reviewed>(json!(false)).unwrap_err(), "false is not true: nothing is kept that nobody has reviewed");
        assert_eq!(said::<Pairs<9>>(json!({"a": 1})).unwrap().into_map().len(), 1);
        assert_eq!(said::<Pairs<6>>(json!({"a": 1})).unwrap_err(), "it takes 7 bytes as JSON; at most 6 are taken");
    }
}
