//! Holds a parsed config file against the rows: unknown names, wrong types and numbers out of bounds become sentences.
//!
//! Promises: every complaint names the key as `section.key`, what it is and what is allowed; all complaints are found, not only the first.
//! Does not: read files, or build the [`Config`](super::Config).

use super::{
    commands, executors, issuers,
    keys::{LISTS, Row, SECTIONS, Section, Shape},
    outside,
};
use toml::{Table, Value};

/// What is wrong with `table`, one sentence each; empty where nothing is.
#[must_use]
pub fn complaints(table: &Table) -> Vec<String> {
    let shapes = table.iter().flat_map(|(name, value)| section(name, value));
    let auth = table.get("auth").into_iter().flat_map(issuers::complaints);
    let commands = table.get("command").into_iter().flat_map(commands::complaints);
    shapes.chain(auth).chain(executors::complaints(table)).chain(commands).chain(outside::complaints(table)).collect()
}

fn section(name: &str, value: &Value) -> Vec<String> {
    if let Some(list) = LISTS.iter().find(|list| list.key == name) {
        return complaint("", "", std::slice::from_ref(list), name, value);
    }
    let Some(section) = Section::named(name) else {
        let lists = LISTS.iter().map(|list| format!("[[{}]]", list.key)).collect::<Vec<_>>().join(", ");
        return vec![format!(
            "[{name}] is no section; the sections are {}; and there is {lists}",
            list(SECTIONS.iter().map(|section| section.name))
        )];
    };
    let Value::Table(keys) = value else {
        return vec![format!("{name} is {}; it must be a section, [{name}]", shown(value))];
    };
    keys.iter().flat_map(|(key, value)| complaint(section.name, &format!("[{}]", section.name), section.rows, key, value)).collect()
}

/// What is wrong with the key of the table that is called `table` in sentences and has the `rows`; `place` stands before its keys.
fn complaint(place: &str, table: &str, rows: &'static [Row], key: &str, value: &Value) -> Vec<String> {
    let dot = if place.is_empty() { "" } else { "." };
    let Some(row) = rows.iter().find(|row| row.key == key) else {
        let keys = list(rows.iter().map(|row| row.key));
        return vec![format!("{place}{dot}{key} is no key; the keys of {table} are {keys}")];
    };
    match (row.shape, value) {
        (Shape::Tables { rows, most }, Value::Array(all)) if all.len() <= most && all.iter().all(Value::is_table) => {
            let inner = |(index, one): (usize, &Value)| {
                let (place, table) = (format!("{place}{dot}{key}[{index}]"), format!("[[{}]]", row.full_name()));
                let keys = one.as_table().into_iter().flatten();
                keys.flat_map(|(key, value)| complaint(&place, &table, rows, key, value)).collect::<Vec<_>>()
            };
            all.iter().enumerate().flat_map(inner).collect()
        }
        _ => mismatch(place, row, value).into_iter().collect(),
    }
}

fn mismatch(place: &str, row: &Row, value: &Value) -> Option<String> {
    let fits = match (row.shape, value) {
        (Shape::Number { min, max, .. }, Value::Integer(number)) => {
            u64::try_from(*number).is_ok_and(|number| (min..=max).contains(&number))
        }
        (Shape::Flag { .. }, Value::Boolean(_)) | (Shape::Text { .. }, Value::String(_)) => true,
        (Shape::Texts { most, .. }, Value::Array(all)) => all.len() <= most && all.iter().all(Value::is_str),
        (Shape::Pairs { most }, Value::Table(all)) => all.len() <= most && all.values().all(Value::is_str),
        _ => false,
    };
    let dot = if place.is_empty() { "" } else { "." };
    (!fits).then(|| format!("{place}{dot}{} is {}; it must be {}", row.key, shown(value), allowed(row, value)))
}

/// What a key takes; the kind of value is said only where that is what was wrong.
fn allowed(row: &Row, value: &Value) -> String {
    match row.shape {
        Shape::Number { min, max, .. } if value.is_integer() => format!("from {min} to {max}"),
        Shape::Number { min, max, .. } => format!("a whole number from {min} to {max}"),
        Shape::Flag { .. } => "true or false".to_owned(),
        Shape::Text { .. } => "a text".to_owned(),
        Shape::Texts { most, .. } => format!("a list of at most {most} texts"),
        Shape::Pairs { most } => format!("a table of at most {most} texts"),
        Shape::Tables { most, .. } => format!("at most {most} tables [[{}]]", row.full_name()),
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
