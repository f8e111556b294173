//! Holds a parsed config file against the rows: unknown names, wrong types and numbers out of bounds become sentences.
//!
//! Promises: every complaint names the key as `section.key`, what it is and what is allowed; all complaints are found, not only the first.
//! Does not: read files, or build the [`Config`](super::Config).

use super::keys::{Row, SECTIONS, Section, Shape};
use toml::{Table, Value};

/// What is wrong with `table`, one sentence each; empty where nothing is.
#[must_use]
pub fn complaints(table: &Table) -> Vec<String> {
    table.iter().flat_map(|(name, value)| section(name, value)).collect()
}

fn section(name: &str, value: &Value) -> Vec<String> {
    let Some(section) = Section::named(name) else {
        return vec![format!("[{name}] is no section; the sections are {}", list(SECTIONS.iter().map(|section| section.name)))];
    };
    let Value::Table(keys) = value else {
        return vec![format!("{name} is {}; it must be a section, [{name}]", shown(value))];
    };
    keys.iter().filter_map(|(key, value)| complaint(section, key, value)).collect()
}

fn complaint(section: &Section, key: &str, value: &Value) -> Option<String> {
    match section.row(key) {
        Some(row) => mismatch(row, value),
        None => {
            let keys = list(section.rows.iter().map(|row| row.key));
            Some(format!("{}.{key} is no key; the keys of [{}] are {keys}", section.name, section.name))
        }
    }
}

fn mismatch(row: &Row, value: &Value) -> Option<String> {
    let fits = match (row.shape, value) {
        (Shape::Number { min, max, .. }, Value::Integer(number)) => {
            u64::try_from(*number).is_ok_and(|number| (min..=max).contains(&number))
        }
        (Shape::Flag { .. }, Value::Boolean(_)) | (Shape::Text { .. }, Value::String(_)) => true,
        (Shape::Texts { most, .. }, Value::Array(all)) => all.len() <= most && all.iter().all(Value::is_str),
        _ => false,
    };
    (!fits).then(|| format!("{}.{} is {}; it must be {}", row.section, row.key, shown(value), allowed(row.shape, value)))
}

/// What a key takes; the kind of value is said only where that is what was wrong.
fn allowed(shape: Shape, value: &Value) -> String {
    match shape {
        Shape::Number { min, max, .. } if value.is_integer() => format!("from {min} to {max}"),
        Shape::Number { min, max, .. } => format!("a whole number from {min} to {max}"),
        Shape::Flag { .. } => "true or false".to_owned(),
        Shape::Text { .. } => "a text".to_owned(),
        Shape::Texts { most, .. } => format!("a list of at most {most} texts"),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
