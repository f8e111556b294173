//! Records of whole runs beside those runs' own logs: both would count the same attempts, so the record gives way.
//!
//! Promises: whichever came first, the run's own logs count and the record is a copy of them.
//! Does not: compare what they say.

use rusqlite::{Connection, params};

use super::{
    names::{COPY, LOG},
    regroup::{self, Touched},
};
use crate::store::Result;

/// Where a log is the record of a run that has logs of its own: the file of the first of these.
pub(super) fn own_log(connection: &Connection, log_no: i64) -> Result<Option<String>> {
    let sql = "SELECT own.path FROM logs_m r JOIN logs_m own ON own.run_no = r.run_no AND own.record = 0
               WHERE r.log_no = ?1 AND r.record = 1 AND r.run_no <> 0 ORDER BY own.path LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([log_no])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

/// Takes the records of the run out that a log of its own, in the file at `path`, is in now.
pub(super) fn give_way(connection: &Connection, log_no: i64, path: &str, touched: &mut Touched) -> Result<()> {
    let sql = "SELECT r.log_no, r.path FROM logs_m own CROSS JOIN logs_m r ON r.run_no = own.run_no AND r.record = 1 WHERE own.log_no = ?1 AND own.record = 0";
    let records: Vec<(i64, String)> = {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([log_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (record, file) in records {
        regroup::remove(connection, record, touched)?;
        let sql = "UPDATE files SET state = ?2, detail = ?3 WHERE path = ?1 AND state = ?4";
        connection.prepare_cached(sql)?.execute(params![file, COPY, path, LOG])?;
    }
    Ok(())
}
