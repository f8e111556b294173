//! Transcripts outside a run, until their day.
//!
//! Promises: lines are kept as they were handed over, compressed; what is past its day is taken out with the next write, and not read before.
//! Does not: redact (who makes them does).

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    deed::{self, Did},
    names,
};
use crate::{
    domain::time::Timestamp,
    store::{
        Result,
        workspace::{Acted, Deed, NewTrace, Trace, rules},
    },
    transcript::Chunk,
};

/// Takes out what is past its day.
pub(super) fn sweep(connection: &Connection, now: Timestamp) -> Result<()> {
    let sql = "DELETE FROM trace_chunks_m WHERE trace_no IN (SELECT trace_no FROM traces_m WHERE expires_at <= ?1)";
    connection.prepare_cached(sql)?.execute([now.millis()])?;
    connection.prepare_cached("DELETE FROM traces_m WHERE expires_at <= ?1")?.execute([now.millis()])?;
    Ok(())
}

/// Keeps a trace.
pub(super) fn create(connection: &Connection, deed: &Deed, new: &NewTrace) -> Did {
    if connection.prepare_cached("SELECT 1 FROM traces_m WHERE trace_id = ?1")?.exists([&new.trace_id])? {
        return Err(rules::trace_exists(&new.trace_id).into());
    }
    let (lines, bytes) = (new.lines.len() as u64, rules::bytes_of(&new.lines));
    rules::trace_fits(&new.trace_id, lines, bytes)?;
    let sql = "INSERT INTO traces_m (trace_id, name, status, duration_ms, metadata, created_at, created_by, expires_at, lines, bytes)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    connection.prepare_cached(sql)?.execute(params![
        new.trace_id,
        new.name,
        new.status,
        new.duration_ms.map(names::int),
        serde_json::to_string(&new.metadata)?,
        deed.at.millis(),
        deed.actor.principal,
        new.expires_at.millis(),
        names::int(lines),
        names::int(bytes),
    ])?;
    put_lines(connection, connection.last_insert_rowid(), 0, &new.lines)?;
    Ok(Acted::Trace { trace_id: new.trace_id.clone(), expires_at: new.expires_at })
}

/// Adds lines to a trace.
pub(super) fn add(connection: &Connection, trace_id: &str, lines: &[String]) -> Did {
    let sql = "SELECT trace_no, lines, bytes, expires_at FROM traces_m WHERE trace_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let held: Option<(i64, u64, u64, Timestamp)> = statement
        .query_row([trace_id], |row| Ok((row.get(0)?, row.get(1).map(names::natural)?, row.get(2).map(names::natural)?, deed::at(row, 3)?)))
        .optional()?;
    let (trace_no, first, bytes, expires_at) = held.ok_or_else(|| rules::no_trace(trace_id))?;
    let (all, bytes) = (first + lines.len() as u64, bytes + rules::bytes_of(lines));
    rules::trace_fits(trace_id, all, bytes)?;
    put_lines(connection, trace_no, first, lines)?;
    let sql = "UPDATE traces_m SET lines = ?2, bytes = ?3 WHERE trace_no = ?1";
    connection.prepare_cached(sql)?.execute(params![trace_no, names::int(all), names::int(bytes)])?;
    Ok(Acted::Trace { trace_id: trace_id.to_owned(), expires_at })
}

fn put_lines(connection: &Connection, trace_no: i64, first: u64, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = lines.iter().map(|line| rules::one_line(line)).collect();
    let chunk = Chunk::of(first, lines.iter().map(AsRef::as_ref));
    let sql = "INSERT INTO trace_chunks_m (trace_no, first_line, lines, data) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![trace_no, names::int(first), chunk.lines, chunk.data])?;
    Ok(())
}

/// The trace, where its day has not come.
pub(super) fn read(connection: &Connection, trace_id: &str, now: Timestamp) -> Result<Option<Trace>> {
    let sql = "SELECT trace_no, name, status, duration_ms, metadata, created_at, created_by, expires_at FROM traces_m
               WHERE trace_id = ?1 AND expires_at > ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query_and_then(params![trace_id, now.millis()], |row| -> Result<Trace> {
        Ok(Trace {
            trace_id: trace_id.to_owned(),
            name: row.get(1)?,
            status: row.get(2)?,
            duration_ms: row.get::<_, Option<i64>>(3)?.map(names::natural),
            metadata: deed::pairs(&row.get::<_, String>(4)?)?,
            created_at: deed::at(row, 5)?,
            created_by: row.get(6)?,
            expires_at: deed::at(row, 7)?,
            lines: lines(connection, row.get(0)?)?,
        })
    })?;
    rows.next().transpose()
}

fn lines(connection: &Connection, trace_no: i64) -> Result<Vec<String>> {
    let sql = "SELECT first_line, lines, data FROM trace_chunks_m WHERE trace_no = ?1 ORDER BY first_line";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([trace_no])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        out.extend(Chunk { first_line: row.get(0).map(names::natural)?, lines: row.get(1)?, data: row.get(2)? }.unpack()?);
    }
    Ok(out)
}
