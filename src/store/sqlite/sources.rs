//! Connections: the sources that runs are synced from, and what the last look at each came to.
//!
//! Promises: names are unique; a source that is deleted leaves what it brought.
//! Does not: look at any source.

use rusqlite::{Connection as Sql, OptionalExtension as _, params};

use super::{
    deed::{self, Did},
    names,
};
use crate::store::{
    Applied, Result,
    workspace::{Acted, Connection, Deed, Health, rules},
};

fn did(id: &str) -> Did {
    Ok(Acted::Connection { connection: id.to_owned() })
}

/// A new source.
pub(super) fn create(connection: &Sql, deed: &Deed, [id, kind, name]: [&str; 3], config: &serde_json::Value) -> Did {
    if enabled(connection, id)?.is_some() {
        return Err(rules::connection_exists(id).into());
    }
    if named(connection, name)?.is_some() {
        return Err(rules::connection_named(name).into());
    }
    let sql = "INSERT INTO connections_m (id, kind, name, config, enabled, created_at, created_by) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6)";
    let values = params![id, kind, name, serde_json::to_string(config)?, deed.at.millis(), deed.actor.principal];
    connection.prepare_cached(sql)?.execute(values)?;
    did(id)
}

/// Another name, other settings, on or off.
pub(super) fn update(connection: &Sql, id: &str, name: Option<&str>, config: Option<&serde_json::Value>, on: Option<bool>) -> Did {
    enabled(connection, id)?.ok_or_else(|| rules::no_connection(id))?;
    if let Some(name) = name
        && named(connection, name)?.is_some_and(|holder| holder != id)
    {
        return Err(rules::connection_named(name).into());
    }
    let config = config.map(serde_json::to_string).transpose()?;
    let sql = "UPDATE connections_m SET name = ifnull(?2, name), config = ifnull(?3, config), enabled = ifnull(?4, enabled) WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![id, name, config, on])?;
    did(id)
}

/// No source any more.
pub(super) fn delete(connection: &Sql, id: &str) -> Did {
    if connection.prepare_cached("DELETE FROM connections_m WHERE id = ?1")?.execute([id])? == 0 {
        return Err(rules::no_connection(id).into());
    }
    did(id)
}

/// Asks for a look.
pub(super) fn ask(connection: &Sql, deed: &Deed, id: &str) -> Did {
    if !enabled(connection, id)?.ok_or_else(|| rules::no_connection(id))? {
        return Err(rules::connection_off(id).into());
    }
    connection.prepare_cached("UPDATE connections_m SET asked_at = ?2 WHERE id = ?1")?.execute(params![id, deed.at.millis()])?;
    did(id)
}

/// Keeps what a look came to; a wish that is older than it is fulfilled. One that is gone has nothing to keep.
pub(super) fn synced(connection: &Sql, id: &str, health: &Health) -> Result<Applied> {
    deed::sweep(connection, health.at)?;
    let sql = "UPDATE connections_m SET health = ?2, asked_at = iif(asked_at <= ?3, NULL, asked_at) WHERE id = ?1";
    let kept = connection.prepare_cached(sql)?.execute(params![id, serde_json::to_string(health)?, health.at.millis()])?;
    Ok(Applied { changed: kept > 0, ..Applied::default() })
}

/// Whether the source is synced; none where there is none.
fn enabled(connection: &Sql, id: &str) -> Result<Option<bool>> {
    let mut statement = connection.prepare_cached("SELECT enabled FROM connections_m WHERE id = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?)
}

/// The source that is called so.
fn named(connection: &Sql, name: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT id FROM connections_m WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// All sources, by name.
pub(super) fn read(connection: &Sql) -> Result<Vec<Connection>> {
    let sql = "SELECT id, kind, name, config, enabled, created_at, created_by, asked_at, health FROM connections_m ORDER BY name";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then([], |row| -> Result<Connection> {
        let (config, health): (String, Option<String>) = (row.get(3)?, row.get(8)?);
        Ok(Connection {
            id: row.get(0)?,
            kind: row.get(1)?,
            name: row.get(2)?,
            config: serde_json::from_str(&config)?,
            enabled: row.get(4)?,
            created_at: deed::at(row, 5)?,
            created_by: row.get(6)?,
            asked_at: row.get::<_, Option<i64>>(7).map(names::time)?,
            health: health.map(|text| serde_json::from_str(&text)).transpose()?,
        })
    })?;
    rows.collect()
}
