//! Arguments: one struct is the schema, the decoder and the command line.
//!
//! Promises: a wrong argument is refused by name, with its value and what is allowed; an unknown one too; `null` means absent.
//! Does not: know any tool.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::ToolError;
use crate::domain::text::clean;

/// A whole number from `MIN` to `MAX`, `DEFAULT` when absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bounded<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Bounded<MIN, MAX, DEFAULT> {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number, as a count of items in memory.
    #[must_use]
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn check(number: Option<u64>, shown: &dyn fmt::Display) -> Result<Self, String> {
        number
            .filter(|number| (MIN..=MAX).contains(number))
            .map(Self)
            .ok_or_else(|| format!("{shown} is not a whole number from {MIN} to {MAX}"))
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Bounded<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> fmt::Display for Bounded<MIN, MAX, DEFAULT> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> FromStr for Bounded<MIN, MAX, DEFAULT> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::check(text.parse().ok(), &text)
    }
}

impl<'de, const MIN: u64, const MAX: u64, const DEFAULT: u64> Deserialize<'de> for Bounded<MIN, MAX, DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        // 10.0 is the integer 10 to JSON Schema, and some clients write it so.
        let whole = value
            .as_u64()
            .or_else(|| value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number)).map(|number| number as u64));
        Self::check(whole, &value).map_err(serde::de::Error::custom)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Bounded<MIN, MAX, DEFAULT> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Bounded{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

/// A number from `MIN` to `MAX` hundredths, `DEFAULT` hundredths when absent: a share, a power.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Hundredths<const MIN: u64, const MAX: u64, const DEFAULT: u64>(f64);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Hundredths<MIN, MAX, DEFAULT> {
    const LEAST: f64 = MIN as f64 / 100.0;
    const MOST: f64 = MAX as f64 / 100.0;

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// `number`, where it lies between the ends.
    ///
    /// # Errors
    /// What is allowed.
    pub fn new(number: f64) -> Result<Self, String> {
        Self::check(Some(number), &number)
    }

    fn check(number: Option<f64>, shown: &dyn fmt::Display) -> Result<Self, String> {
        number
            .filter(|number| (Self::LEAST..=Self::MOST).contains(number))
            .map(Self)
            .ok_or_else(|| format!("{shown} is not a number from {} to {}", Self::LEAST, Self::MOST))
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Hundredths<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT as f64 / 100.0)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> fmt::Display for Hundredths<MIN, MAX, DEFAULT> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> FromStr for Hundredths<MIN, MAX, DEFAULT> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::check(text.parse().ok(), &text)
    }
}

impl<'de, const MIN: u64, const MAX: u64, const DEFAULT: u64> Deserialize<'de> for Hundredths<MIN, MAX, DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::check(value.as_f64(), &value).map_err(serde::de::Error::custom)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Hundredths<MIN, MAX, DEFAULT> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Hundredths{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": Self::LEAST, "maximum": Self::MOST})
    }
}

/// A text of 1 to `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> FromStr for Text<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.chars().count() {
            0 => Err("it must not be empty".to_owned()),
            count if count > MAX => Err(format!("it has {count} characters; at most {MAX} are taken")),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<const MAX: usize> JsonSchema for Text<MAX> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("TextTo{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": MAX})
    }
}

/// The run that a tool is about when none is named.
#[must_use]
pub fn latest() -> String {
    "latest".to_owned()
}

/// Decodes a tool's arguments.
///
/// # Errors
/// [`ToolError::Argument`] that names the argument.
pub fn decode<I: DeserializeOwned>(mut given: Map<String, Value>) -> Result<I, ToolError> {
    given.retain(|_, value| !value.is_null());
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let path = error.path().to_string();
        // It repeats the caller's own words.
        let (path, inner) = (clean(&path), clean(&error.into_inner().to_string()));
        // serde's own words for an unknown or missing argument name it already.
        ToolError::Argument(if path == "." || inner.starts_with("unknown field") {
            argument_words(&inner)
        } else {
            format!("argument {path}: {inner}")
        })
    })
}

fn argument_words(inner: &str) -> String {
    inner.replacen("unknown field", "unknown argument", 1).replacen("missing field", "missing argument", 1)
}

/// The JSON Schema (2020-12) of a tool's arguments: an object that takes no others.
#[must_use]
pub fn input_schema<I: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<I>(true);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

/// The JSON Schema of a tool's result. Short and without prose: it is for validators, and would be paid for in every agent's context.
#[must_use]
pub fn output_schema<O: JsonSchema>() -> Map<String, Value> {
    let mut schema = Value::Object(schema_of::<O>(false));
    strip_prose(&mut schema);
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The same with the types of the result's own fields alone: for a result whose parts have a shape of their own that is documented elsewhere, and
/// that nobody would pay for in every list of tools.
#[must_use]
pub fn shallow_schema<O: JsonSchema>() -> Map<String, Value> {
    let mut schema = output_schema::<O>();
    schema.remove("$defs");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| *property = shallow(property));
    }
    schema
}

/// A field's type, without what is inside.
fn shallow(property: &Value) -> Value {
    // What has a shape of its own may be a word as well as an object.
    property.get("type").map_or_else(|| serde_json::json!({}), |kind| serde_json::json!({ "type": kind }))
}

fn schema_of<T: JsonSchema>(inline: bool) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = inline;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut map = schema.as_object().cloned().unwrap_or_default();
    map.remove("title");
    map.remove("description");
    map
}

/// An absent argument is written by leaving it out, so `null` need not stand in every type; documented words of an enum become one list.
fn simplify(property: &mut Value) {
    let Value::Object(map) = property else { return };
    if let Some(Value::Array(types)) = map.get("type") {
        let first = types.iter().find(|kind| *kind != "null").cloned();
        map.insert("type".to_owned(), first.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(choices)) = map.remove("anyOf") {
        let kept = choices.into_iter().find(|choice| choice.get("type") != Some(&Value::from("null")));
        map.extend(kept.and_then(|choice| choice.as_object().cloned()).unwrap_or_default());
    }
    if let Some(Value::Array(choices)) = map.remove("oneOf") {
        let words: Vec<Value> = choices.iter().filter_map(|choice| choice.get("const").cloned()).collect();
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), words.into());
    }
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
    map.remove("format");
}

/// Words that each stand as a schema of their own become one list of words.
fn one_list(map: &mut Map<String, Value>) {
    let word = |choice: &Value| choice.get("const").filter(|word| word.is_string()).cloned();
    let words: Option<Vec<Value>> = map.get("oneOf").and_then(Value::as_array).and_then(|choices| choices.iter().map(word).collect());
    if let Some(words) = words {
        map.remove("oneOf");
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), words.into());
    }
}

fn strip_prose(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // A property may itself be called "description" or "title": only text is prose.
            map.retain(|key, inner| match key.as_str() {
                "description" | "title" | "format" => !inner.is_string(),
                // Every count is at least 0, and a result has no defaults.
                "minimum" => inner != &Value::from(0),
                "default" => inner.is_object(),
                _ => true,
            });
            one_list(map);
            map.values_mut().for_each(strip_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_prose),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Input {
        attempt: String,
        #[serde(default)]
        limit: Bounded<1, 100, 10>,
        #[serde(default)]
        filter: Option<String>,
    }

    fn fault(value: Value) -> String {
        let map = value.as_object().cloned().unwrap_or_default();
        decode::<Input>(map).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn wrong_arguments_are_named() {
        assert_eq!(fault(json!({"attempt": "a", "limit": 0})), "argument limit: 0 is not a whole number from 1 to 100");
        assert_eq!(fault(json!({"attempt": "a", "limit": 1e300})), "argument limit: 1e+300 is not a whole number from 1 to 100");
        assert_eq!(fault(json!({"attempt": 7})), "argument attempt: invalid type: integer `7`, expected a string");
        assert_eq!(fault(json!({"limit": 1})), "missing argument `attempt`");
        assert_eq!(fault(json!({"attempt": "a", "limt": 1})), "unknown argument `limt`, expected one of `attempt`, `limit`, `filter`");
    }

    #[test]
    fn null_means_absent_and_whole_floats_are_whole() {
        let map = json!({"attempt": "a", "limit": null, "filter": null}).as_object().cloned().unwrap_or_default();
        assert_eq!(decode::<Input>(map).ok(), Some(Input { attempt: "a".into(), limit: Bounded::default(), filter: None }));
        let map = json!({"attempt": "a", "limit": 20.0}).as_object().cloned().unwrap_or_default();
        assert_eq!(decode::<Input>(map).ok().map(|input| input.limit.get()), Some(20));
    }

    /// One of two words, each with its own documentation.
    #[derive(Debug, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Word {
        /// This.
        OneThing,
        /// That.
        Another,
    }

    #[derive(Debug, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Found {
        /// A count.
        n: u32,
        word: Word,
        default: Option<u32>,
    }

    #[test]
    fn the_schema_of_a_result_is_short() {
        let wanted = json!({"type": "object", "required": ["n", "word"], "properties": {
            "n": {"type": "integer"}, "word": {"$ref": "#/$defs/Word"}, "default": {"type": ["integer", "null"]}},
            "$defs": {"Word": {"type": "string", "enum": ["one_thing", "another"]}}});
        assert_eq!(Value::Object(output_schema::<Found>()), wanted);
    }

    #[test]
    fn shares_are_bounded() {
        type Power = Hundredths<50, 99, 80>;
        let said = |value: Value| serde_json::from_value::<Power>(value).map(Power::get).map_err(|error| error.to_string());
        assert_eq!((said(json!(0.9)), Power::default().get()), (Ok(0.9), 0.8));
        assert_eq!(said(json!(1)), Err("1 is not a number from 0.5 to 0.99".to_owned()));
        assert_eq!(said(json!("x")), Err("\"x\" is not a number from 0.5 to 0.99".to_owned()));
        assert_eq!("nan".parse::<Power>(), Err("nan is not a number from 0.5 to 0.99".to_owned()));
    }

    #[test]
    fn texts_are_bounded() {
        let said = |text: &str| text.parse::<Text<3>>().map(|text| text.get().to_owned());
        assert_eq!((said("äöü"), said(" ")), (Ok("äöü".into()), Ok(" ".into())));
        assert_eq!(
            (said("").unwrap_err(), said("abcd").unwrap_err()),
            ("it must not be empty".into(), "it has 4 characters; at most 3 are taken".into())
        );
    }

    #[test]
    fn the_schema_is_small_and_closed() {
        let schema = Value::Object(input_schema::<Input>());
        assert_eq!(
            schema,
            json!({"type": "object", "additionalProperties": false, "required": ["attempt"], "properties": {
            "attempt": {"type": "string"}, "filter": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}}})
        );
    }
}
