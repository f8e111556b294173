//! The trail of who did what: rows are added and read.
//!
//! Promises: numbers have no gaps, since nothing takes a row away (the schema's triggers see to that, also for who opens the file with another
//! program).
//! Does not: decide what is worth a row.

use rusqlite::{Connection, Row, params};

use super::names;
use crate::{
    domain::time::Timestamp,
    store::{
        Result,
        workspace::{AuditQuery, AuditRow, Deed},
    },
};

/// Adds a row.
pub(super) fn put(connection: &Connection, deed: &Deed, outcome: &str, detail: &str) -> Result<()> {
    let sql = "INSERT INTO audit_m (at, actor, role, tool, digest, outcome, detail, address, request_id)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute(params![
        deed.at.millis(),
        deed.actor.principal,
        deed.actor.role.word(),
        deed.tool,
        deed.digest,
        outcome,
        detail,
        deed.actor.address.map(|address| address.to_string()),
        deed.actor.request_id,
    ])?;
    Ok(())
}

const FILTER: &str =
    "(?1 IS NULL OR actor = ?1) AND (?2 IS NULL OR tool = ?2) AND (?3 IS NULL OR outcome = ?3) AND (?4 IS NULL OR at >= ?4)";

/// Rows, the newest first, and how many there are without cursor and limit.
pub(super) fn read(connection: &Connection, query: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)> {
    let since = names::millis(query.since);
    let sql = format!("SELECT count(*) FROM audit_m WHERE {FILTER}");
    let filter = params![query.actor, query.tool, query.outcome, since];
    let total: i64 = connection.prepare_cached(&sql)?.query_row(filter, |row| row.get(0))?;
    let sql = format!(
        "SELECT number, at, actor, role, tool, digest, outcome, detail, address, request_id FROM audit_m
         WHERE number < ?5 AND {FILTER} ORDER BY number DESC LIMIT ?6"
    );
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let values = params![query.actor, query.tool, query.outcome, since, query.before.unwrap_or(i64::MAX), limit];
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(values, row)?;
    Ok((rows.collect::<rusqlite::Result<_>>()?, names::natural(total)))
}

fn row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        number: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        actor: row.get(2)?,
        role: row.get(3)?,
        tool: row.get(4)?,
        digest: row.get(5)?,
        outcome: row.get(6)?,
        detail: row.get(7)?,
        address: row.get(8)?,
        request_id: row.get(9)?,
    })
}
