//! Runs that go because they are old.
//!
//! Promises: a run that is a baseline now, has not ended, came by the queue, or stands in a file that would be read again does not go.
//! Does not: decide which are old enough (`runlore prune` does).

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::{deed::Did, names::Word as _, queue, write};
use crate::{
    domain::log::RunStatus,
    store::{
        Result,
        workspace::{Acted, rules},
    },
};

/// Takes a run out, with its logs and all that is known of them.
pub(super) fn run(transaction: &mut Transaction<'_>, run_id: &str) -> Did {
    let sql = "SELECT run_no, status FROM runs_m WHERE run_id = ?1";
    let found: Option<(i64, i64)> =
        transaction.prepare_cached(sql)?.query_row([run_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (run_no, status) = found.ok_or_else(|| rules::no_run(run_id))?;
    if queue::has(transaction, run_id)? {
        return Err(rules::came_by_queue(run_id).into());
    }
    let status = RunStatus::from_code(status)?;
    if !status.ended() {
        return Err(rules::not_ended(run_id, status.word()).into());
    }
    let holds = "SELECT 1 FROM baselines_m WHERE run_id = ?1 AND superseded_at IS NULL";
    if transaction.prepare_cached(holds)?.exists([run_id])? {
        return Err(rules::holds_as_baseline(run_id).into());
    }
    let files = files(transaction, run_no)?;
    if let Some((path, _)) = files.iter().find(|(_, source)| rules::is_looked_at(source.as_deref())) {
        return Err(rules::stands_in_file(run_id, path).into());
    }
    let paths: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
    write::vanished(transaction, &paths)?;
    Ok(Acted::Forgotten { run_id: run_id.to_owned() })
}

/// The files that hold the run's logs, copies too, with the source that found each.
fn files(connection: &Connection, run_no: i64) -> Result<Vec<(String, Option<String>)>> {
    let sql = "SELECT f.path, f.source FROM logs_m l JOIN files f ON f.log_id = l.log_id WHERE l.run_no = ?1 ORDER BY f.path";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![run_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
