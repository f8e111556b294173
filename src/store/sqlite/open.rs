//! The open objects of the schema: what analysts may ask `query` for (DESIGN.md section 6, decision 64).
//!
//! Promises: told from the schema itself, so that it cannot say anything else.
//! Does not: answer queries.

use std::sync::LazyLock;

use rusqlite::Connection;

use super::connect;
use crate::store::{
    Result,
    query::{Column, Object},
};

/// The open objects that are tables to an analyst; the others are the views that answer a question by themselves.
pub const TABLES: [&str; 12] = [
    "arm_factors",
    "arms",
    "attempts",
    "baselines",
    "cases",
    "cells",
    "checks",
    "evaluations",
    "goals",
    "reference_scores",
    "rounds",
    "runs",
];

/// Columns that are texts of cases and attempts, by object (decision 35).
pub const TEXTS: [(&str, &str); 11] = [
    ("attempts", "signature"),
    ("cases", "input"),
    ("cases", "target"),
    ("attempts", "error"),
    ("attempts", "output"),
    ("checks", "value"),
    ("checks", "label"),
    ("checks", "answer"),
    ("checks", "reason"),
    ("attempt_answers", "answer"),
    ("failing_attempts", "reason"),
];

/// Columns that are worked out and are numbers; all others that the schema gives no type are texts.
const REALS: &[&str] = &["rate", "threshold", "margin", "value", "share", "moving_rate"];
const INTEGERS: &[&str] = &[
    "n",
    "duration_ms",
    "runs",
    "runs_apart",
    "dataset_cases",
    "passed",
    "failed",
    "counted",
    "infra",
    "unscored",
    "missing",
    "is_new",
    "consistent",
];

/// The names of the open objects in a file's own schema, in order.
///
/// # Errors
/// As every read.
pub(super) fn names(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'view' AND name NOT GLOB '*_m' ORDER BY name")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The open objects of today's schema, by name.
///
/// # Errors
/// As opening a store in memory.
pub fn objects() -> Result<Vec<Object>> {
    static TODAY: LazyLock<Result<Vec<Object>>> = LazyLock::new(read);
    TODAY.clone()
}

fn read() -> Result<Vec<Object>> {
    let mut connection = Connection::open_in_memory()?;
    connect::migrate(&mut connection)?;
    names(&connection)?.into_iter().map(|name| object(&connection, name)).collect()
}

fn object(connection: &Connection, name: String) -> Result<Object> {
    let mut statement = connection.prepare("SELECT name, type FROM pragma_table_info(?1) ORDER BY cid")?;
    let rows = statement.query_map([&name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let columns = rows.map(|row| row.map(|(name, kind)| column(name, &kind))).collect::<rusqlite::Result<_>>()?;
    Ok(Object { view: !TABLES.contains(&name.as_str()), name, columns })
}

fn column(name: String, kind: &str) -> Column {
    let kind = match kind {
        // Instants and words stand as numbers in helper tables, and as texts in what is open.
        "INTEGER" | "INT" if name.ends_with("_at") => "TEXT",
        "INTEGER" | "INT" => "INTEGER",
        "REAL" => "REAL",
        "TEXT" => "TEXT",
        _ if REALS.contains(&name.as_str()) => "REAL",
        _ if INTEGERS.contains(&name.as_str()) => "INTEGER",
        _ => "TEXT",
    };
    Column { name, kind: kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_objects_are_those_of_the_design() {
        let objects = objects().unwrap();
        let names: Vec<&str> = objects.iter().filter(|object| !object.view).map(|object| object.name.as_str()).collect();
        assert_eq!(names, TABLES);
        assert!(objects.iter().all(|object| object.columns.len() > 2), "{objects:?}");
        for (object, column) in TEXTS {
            let held = objects.iter().find(|other| other.name == object).unwrap();
            assert!(held.columns.iter().any(|other| other.name == column), "{object}.{column}");
        }
    }
}
