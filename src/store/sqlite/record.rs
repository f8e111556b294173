//! Writes one log as it came: header, evaluations, arms, attempts with checks and transcripts.
//!
//! Promises: attempts are pulled one by one, so memory is bounded by one of them; an error of the importer is an error here.
//! Does not: give keys or cells, or decide whether the log counts.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    extras,
    intake::{Names, Writer},
    names::{self, Word as _},
    regroup::{self, Touched},
    search,
};
use crate::{
    domain::{
        declared::Declared,
        extras::Extras,
        grouping::{self, Copy},
        outcome::Counts,
    },
    store::{Error, LogChange, Result},
};

/// A log that was written.
pub(super) struct Kept {
    pub log_no: i64,
    /// What decides between it and other files of the same log; the path is the caller's to fill in.
    pub copy: Copy,
    pub counts: Counts,
    /// What was read besides.
    pub extras: Extras,
}

const INSERT_LOG: &str =
    "INSERT INTO logs_m (log_id, path, run_no, run_key, pinned, task_id, kind, status, created_at, started_at, completed_at,
    git, round, ancestors_no, header, record) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// Writes the log; with `place` it joins its run before the attempts come, which saves moving them.
pub(super) fn log(connection: &Connection, declared: &Declared, change: LogChange<'_>, place: Option<&mut Touched>) -> Result<Kept> {
    let LogChange { file, kind, header, extras, pinned, ancestors, attempts } = change;
    let ancestors_no = give_ancestors(connection, &ancestors)?;
    connection.prepare_cached(INSERT_LOG)?.execute(params![
        header.log_id,
        file.path,
        header.run_key,
        pinned,
        header.task_id,
        kind.code(),
        header.status.code(),
        header.created_at.millis(),
        names::millis(header.started_at),
        names::millis(header.completed_at),
        header.git.as_ref().map(serde_json::to_string).transpose()?,
        header.round,
        ancestors_no,
        serde_json::to_string(&header)?,
        grouping::is_record(&header.format, pinned),
    ])?;
    let log_no = connection.last_insert_rowid();
    search::index::mark(connection, log_no)?;
    let mut names = Names::new(connection, declared, log_no);
    header.evaluations.iter().try_for_each(|info| names.evaluation(info).map(drop))?;
    header.arms.iter().try_for_each(|info| names.arm(info).map(drop))?;
    if let Some(touched) = place {
        regroup::place(connection, log_no, touched)?;
    }
    let mut writer = Writer::new(connection, names, &header, !extras.pairs.is_empty())?;
    let mut counts = Counts::default();
    let mut written = 0_u64;
    for attempt in attempts {
        let attempt = attempt.map_err(Error::Import)?;
        writer.attempt(&attempt)?;
        counts.add(attempt.outcome);
        written += 1;
    }
    let labels = writer.finish()?;
    extras::log(connection, log_no, &extras, &labels)?;
    let copy = Copy { kind, status: header.status, attempts: written, completed_at: header.completed_at, path: String::new() };
    Ok(Kept { log_no, copy, counts, extras })
}

fn give_ancestors(connection: &Connection, ancestors: &[String]) -> Result<Option<i64>> {
    if ancestors.is_empty() {
        return Ok(None);
    }
    let shas = ancestors.join("\n");
    connection.prepare_cached("INSERT OR IGNORE INTO ancestors_m (shas) VALUES (?1)")?.execute([&shas])?;
    let number = connection.prepare_cached("SELECT ancestors_no FROM ancestors_m WHERE shas = ?1")?.query_row([&shas], |row| row.get(0))?;
    Ok(Some(number))
}

/// The log with this id that counts.
pub(super) fn log_no(connection: &Connection, log_id: &str) -> Result<Option<i64>> {
    other_log_no(connection, log_id, 0)
}

/// The log with this id that is not `but`.
pub(super) fn other_log_no(connection: &Connection, log_id: &str, but: i64) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT log_no FROM logs_m WHERE log_id = ?1 AND log_no <> ?2")?;
    Ok(statement.query_row(params![log_id, but], |row| row.get(0)).optional()?)
}

/// The stored log, where it was imported just as `change` would be.
pub(super) fn same(connection: &Connection, log_id: &str, change: &LogChange<'_>) -> Result<Option<i64>> {
    let sql = "SELECT log_no FROM logs_m WHERE log_id = ?1 AND run_key = ?2 AND pinned = ?3 AND kind = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let values = params![log_id, change.header.run_key, change.pinned, change.kind.code()];
    Ok(statement.query_row(values, |row| row.get(0)).optional()?)
}
