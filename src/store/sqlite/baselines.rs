//! Baselines: the runs that others are held against, and their lineage.
//!
//! Promises: one reference for each evaluation and one for the project; an acceptance stays when its run goes, and then says so.
//! Does not: decide whether a run is good enough.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    deed::{self, Did},
    names::{self, Word as _},
};
use crate::{
    domain::log::RunStatus,
    store::{
        Kind, LogChange, Result,
        workspace::{Acted, BaselineRow, Deed, rules},
    },
};

/// Makes a run the reference for an evaluation, or for the project.
pub(super) fn accept(connection: &Connection, deed: &Deed, run_id: &str, evaluation: Option<&str>, note: Option<&str>) -> Did {
    let sql = "SELECT run_no, kind, status FROM runs_m WHERE run_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found: Option<(i64, i64, i64)> = statement.query_row([run_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    let (run_no, kind, status) = found.ok_or_else(|| rules::no_run(run_id))?;
    let eval_no = match evaluation {
        Some(id) => Some(names::eval_no(connection, id)?.ok_or_else(|| rules::no_evaluation(id))?),
        None => None,
    };
    if Kind::from_code(kind)? != Kind::Recorded {
        return Err(rules::not_recorded(run_id).into());
    }
    let status = RunStatus::from_code(status)?;
    if status != RunStatus::Completed {
        return Err(rules::not_completed(run_id, status.word()).into());
    }
    let counted = "SELECT 1 FROM cells_m WHERE run_no = ?1 AND (?2 IS NULL OR eval_no = ?2) AND passed + failed > 0";
    if !connection.prepare_cached(counted)?.exists(params![run_no, eval_no])? {
        return Err(rules::nothing_counted(run_id, evaluation).into());
    }
    let now = "SELECT run_id FROM baselines_m WHERE ifnull(eval_no, 0) = ifnull(?1, 0) AND superseded_at IS NULL";
    let replaces: Option<String> = connection.prepare_cached(now)?.query_row([eval_no], |row| row.get(0)).optional()?;
    if replaces.as_deref() == Some(run_id) {
        return Err(rules::is_baseline(run_id).into());
    }
    let sql = "UPDATE baselines_m SET superseded_at = ?2 WHERE ifnull(eval_no, 0) = ifnull(?1, 0) AND superseded_at IS NULL";
    connection.prepare_cached(sql)?.execute(params![eval_no, deed.at.millis()])?;
    let sql = "INSERT INTO baselines_m (run_id, eval_no, accepted_at, accepted_by, note, replaces) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![run_id, eval_no, deed.at.millis(), deed.actor.principal, note, replaces])?;
    Ok(Acted::Baseline { run_id: run_id.to_owned(), evaluation: evaluation.map(str::to_owned), replaces })
}

/// What a run counts: how many attempts of each case by each arm ended how.
type Tally = Vec<(i64, i64, i64, i64, i64)>;

/// The references of today that a log may add to or take from, by what it shares with their logs, with what they count now.
pub(super) fn near(connection: &Connection, change: &LogChange<'_>) -> Result<Vec<(String, Tally)>> {
    let sql = "SELECT DISTINCT b.run_id FROM baselines_m b JOIN runs_m r ON r.run_id = b.run_id JOIN logs_m l ON l.run_no = r.run_no
               WHERE b.superseded_at IS NULL AND (l.run_key = ?1 OR l.log_id = ?2 OR l.path = ?3 OR l.task_id = ?4 OR b.run_id = ?1)";
    let header = &change.header;
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![header.run_key, header.log_id, change.file.path, header.task_id], |row| row.get(0))?;
    let runs: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    runs.into_iter().map(|run| tally(connection, &run).map(|tally| (run, tally))).collect()
}

/// What the run counts now; nothing where it is gone.
pub(super) fn tally(connection: &Connection, run_id: &str) -> Result<Tally> {
    let sql = "SELECT a.eval_no, a.case_no, a.arm_no, a.outcome, count(*) FROM runs_m r JOIN attempts_m a ON a.run_no = r.run_no
               WHERE r.run_id = ?1 AND a.n IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([run_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const READ: &str = "SELECT b.run_id, e.id, b.accepted_at, b.accepted_by, b.note, b.replaces, b.superseded_at,
    EXISTS (SELECT 1 FROM runs_m r WHERE r.run_id = b.run_id)
    FROM baselines_m b LEFT JOIN evaluations_m e ON e.eval_no = b.eval_no WHERE ?1 IS NULL OR b.eval_no IS NULL OR e.id = ?1
    ORDER BY b.baseline_no DESC";

/// Acceptances, the newest first: of one evaluation and of the project; with none given, all.
pub(super) fn read(connection: &Connection, evaluation: Option<&str>) -> Result<Vec<BaselineRow>> {
    let mut statement = connection.prepare_cached(READ)?;
    let rows = statement.query_map([evaluation], |row| {
        Ok(BaselineRow {
            run_id: row.get(0)?,
            evaluation: row.get(1)?,
            accepted_at: deed::at(row, 2)?,
            accepted_by: row.get(3)?,
            note: row.get(4)?,
            replaces: row.get(5)?,
            superseded_at: deed::maybe_at(row, 6)?,
            present: row.get(7)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
