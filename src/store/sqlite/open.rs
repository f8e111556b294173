//! The open objects of the schema: what analysts may ask `query` for (DESIGN.md section 6, decision 64).
//!
//! Promises: told from the schema itself, so that it cannot say anything else.
//! Does not: answer queries.

use rusqlite::Connection;

use super::connect;
use crate::store::Result;

/// An open table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// The names of its columns, in order.
    pub columns: Vec<String>,
}

/// The open objects of today's schema, by name.
///
/// # Errors
/// As opening a store in memory.
pub fn objects() -> Result<Vec<Object>> {
    let mut connection = Connection::open_in_memory()?;
    connect::migrate(&mut connection)?;
    let names: Vec<String> = {
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'view' AND name NOT GLOB '*_m' ORDER BY name")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    names.into_iter().map(|name| object(&connection, name)).collect()
}

fn object(connection: &Connection, name: String) -> Result<Object> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let columns = statement.query_map([&name], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(Object { name, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_objects_are_those_of_the_design() {
        let objects = objects().unwrap();
        let names: Vec<&str> = objects.iter().map(|object| object.name.as_str()).collect();
        let designed = [
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
        assert_eq!(names, designed);
        assert!(objects.iter().all(|object| object.columns.len() > 2), "{objects:?}");
    }
}
