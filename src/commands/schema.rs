//! What a declared command's tool takes, as a JSON Schema for agents.
//!
//! Promises: it says the same as `argv` checks; strangers' has only what is public.
//! Does not: check a call.

use serde_json::{Map, Value};

use super::argv::{Taken, taken};
use crate::config::commands::Command;

/// The schema of `command`'s arguments; a stranger's where `public`.
#[must_use]
pub fn input(command: &Command, public: bool) -> Map<String, Value> {
    let properties: Map<String, Value> = taken(command, public).map(|one| (one.name.to_owned(), property(one))).collect();
    let required: Vec<&str> = taken(command, public).filter(|one| one.required).map(|one| one.name).collect();
    let mut schema = Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties.into()),
        ("additionalProperties".to_owned(), false.into()),
    ]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn property(one: Taken<'_>) -> Value {
    let mut value = match one.kind {
        // A value that begins with - is refused, whatever its type.
        "integer" | "number" => Map::from_iter([("type".to_owned(), one.kind.into()), ("minimum".to_owned(), 0.into())]),
        "boolean" => Map::from_iter([("type".to_owned(), "boolean".into())]),
        _ => Map::from_iter([("type".to_owned(), "string".into())]),
    };
    if !one.choices.is_empty() {
        value.insert("enum".to_owned(), one.choices.iter().map(|choice| typed(one.kind, choice)).collect());
    }
    if one.repeated {
        value = Map::from_iter([("type".to_owned(), "array".into()), ("items".to_owned(), value.into())]);
    }
    if !one.default.is_empty() {
        value.insert("default".to_owned(), typed(one.kind, one.default));
    }
    if !one.help.is_empty() {
        value.insert("description".to_owned(), one.help.into());
    }
    value.into()
}

/// A text of the declaration as the value that it means.
fn typed(kind: &str, text: &str) -> Value {
    match kind {
        "integer" | "number" | "boolean" => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_schema_says_what_is_taken() {
        let text = r#"
[[command]]
name = "probe"
description = "x"
program = "probe"
[[command.option]]
name = "limit"
flag = "--limit"
type = "integer"
default = "20"
choices = ["10", "20"]
help = "How many."
[[command.option]]
name = "tags"
flag = "--tag"
repeated = true
required = true
[[command.option]]
name = "item"
flag = "--item"
public = false
[[command.positional]]
name = "dataset"
type = "name"
"#;
        let command = &Config::parse(text, "x").unwrap().command[0];
        let whole = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 0, "enum": [10, 20], "default": 20, "description": "How many."},
                "tags": {"type": "array", "items": {"type": "string"}},
                "item": {"type": "string"},
                "dataset": {"type": "string"},
            },
            "additionalProperties": false,
            "required": ["tags", "dataset"],
        });
        assert_eq!(Value::Object(input(command, false)), whole);
        let public = input(command, true);
        assert!(public["properties"].get("item").is_none() && public["properties"].get("limit").is_some());
    }
}
