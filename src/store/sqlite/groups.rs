//! The groups that cases come in: written with their log, read by run.
//!
//! Promises: of a log's attempts at a case the first that names a group says it, and of a run's logs the newest; where nobody names one a read is
//! one seek for each log.
//! Does not: know what groups are for (`stats` does).

use rusqlite::{Connection, params};

use super::names;
use crate::store::{Groups, Result};

/// Keeps the group of a case, unless the log has named one.
pub(super) fn put(connection: &Connection, log_no: i64, case_no: i64, group: &str) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO case_groups_m (log_no, case_no, name) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![log_no, case_no, group])?;
    Ok(())
}

const READ: &str = "SELECT e.id, c.id, g.name FROM logs_m l CROSS JOIN case_groups_m g ON g.log_no = l.log_no
    JOIN cases_m c ON c.case_no = g.case_no JOIN evaluations_m e ON e.eval_no = c.eval_no
    WHERE l.run_no = ?1 ORDER BY l.created_at, l.log_id";

/// The groups of one run's cases.
pub(super) fn of_run(connection: &Connection, run: &str) -> Result<Groups> {
    let mut out = Groups::new();
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(out) };
    let mut statement = connection.prepare_cached(READ)?;
    let mut rows = statement.query([run_no])?;
    while let Some(row) = rows.next()? {
        let (evaluation, case, group): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        out.entry(evaluation).or_default().insert(case, group);
    }
    Ok(out)
}
