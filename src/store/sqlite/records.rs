//! Records of whole runs beside those runs' own logs: both would count the same attempts, so the record gives way.
//!
//! Promises: whichever came first, the run's own logs count and the record is a copy of them; its analyses stay the run's.
//! Does not: compare what they say.

use rusqlite::{Connection, params};

use super::{
    extras,
    names::{self, COPY, LOG},
    record,
    regroup::{self, Touched},
};
use crate::{
    domain::{extras::Analysis, grouping::record_log_id},
    store::{FileRow, FileState, Result},
};

/// Where a log is the record of a run that has logs of its own: the file of the first of these.
pub(super) fn own_log(connection: &Connection, log_no: i64) -> Result<Option<String>> {
    let sql = "SELECT own.path FROM logs_m r JOIN logs_m own ON own.run_no = r.run_no AND own.record = 0
               WHERE r.log_no = ?1 AND r.record = 1 AND r.run_no <> 0 ORDER BY own.path LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([log_no])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

/// Takes the records of the run out that a log of its own is in now.
pub(super) fn give_way(connection: &Connection, log_no: i64, touched: &mut Touched) -> Result<()> {
    let sql = "SELECT r.log_no, r.path FROM logs_m own CROSS JOIN logs_m r ON r.run_no = own.run_no AND r.record = 1 WHERE own.log_no = ?1 AND own.record = 0";
    let records: Vec<(i64, String)> = {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([log_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (record, file) in records {
        regroup::remove(connection, record, touched)?;
        // Forgotten, it is read at the next look, where what it holds beside the run's own logs is told.
        connection.prepare_cached("DELETE FROM files WHERE path = ?1 AND state = ?2")?.execute(params![file, LOG])?;
    }
    // One that gave way before is looked at again too: what it held beyond the others may be here now.
    let sql = "DELETE FROM files WHERE state = ?2 AND log_id = (SELECT ?3 || r.run_id FROM logs_m l JOIN runs_m r ON r.run_no = l.run_no
               WHERE l.log_no = ?1 AND l.record = 0)";
    connection.prepare_cached(sql)?.execute(params![log_no, COPY, record_log_id("")])?;
    Ok(())
}

/// Keeps the analyses of a record that gives way: they are the run's, whose own logs have none. Whether there were any.
pub(super) fn keep_analyses(connection: &Connection, winner: &str, path: &str, analyses: &[Analysis]) -> Result<bool> {
    let Some(FileRow { state: FileState::Log(log_id), .. }) = names::file(connection, winner)? else { return Ok(false) };
    let Some(log_no) = record::log_no(connection, &log_id)? else { return Ok(false) };
    extras::put_analyses(connection, log_no, analyses, Some(path))?;
    Ok(!analyses.is_empty())
}
