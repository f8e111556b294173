//! Which run each log belongs to, and which (run, evaluation) pairs a change has touched.
//!
//! Promises: only the logs of one task are looked at for one log; what is touched is rebuilt once, at the end of the change.
//! Does not: decide the grouping (`domain::grouping` does).

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    count, extras,
    names::{self, Word as _},
    projections, rebuild, search,
};
use crate::{
    domain::{
        declared::Declared,
        grouping::{self, LogStub},
        log::RunStatus,
        time::Timestamp,
    },
    store::Result,
};

/// What a change has touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Touched {
    runs: BTreeSet<i64>,
    cells: BTreeSet<(i64, i64)>,
}

impl Touched {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn run(&mut self, run_no: i64) {
        // 0 stands for "not yet in a run".
        if run_no != 0 {
            self.runs.insert(run_no);
        }
    }

    fn cell(&mut self, run_no: i64, eval_no: i64) {
        if run_no != 0 {
            self.run(run_no);
            self.cells.insert((run_no, eval_no));
        }
    }

    /// All that a log has a say in, in the run that it is in.
    pub(super) fn log(&mut self, connection: &Connection, log_no: i64) -> Result<()> {
        let run_no = connection.prepare_cached("SELECT run_no FROM logs_m WHERE log_no = ?1")?.query_row([log_no], |row| row.get(0))?;
        self.run(run_no);
        let mut statement = connection.prepare_cached(EVALUATIONS_OF_TASK)?;
        let mut rows = statement.query([log_no])?;
        while let Some(row) = rows.next()? {
            self.cell(run_no, row.get(0)?);
        }
        Ok(())
    }
}

/// The evaluations of a log and of its siblings: which log is its task's last decides what is planned, whichever evaluations that one has.
const EVALUATIONS_OF_TASK: &str = "SELECT eval_no FROM log_evaluations_m WHERE log_no = ?1
    UNION SELECT le.eval_no FROM logs_m own JOIN logs_m l ON l.task_id = own.task_id AND l.run_no = own.run_no
        JOIN log_evaluations_m le ON le.log_no = l.log_no WHERE own.log_no = ?1";

struct Placed {
    log_no: i64,
    run_no: i64,
    stub: LogStub,
}

const STUBS: &str = "SELECT log_no, run_no, log_id, run_key, pinned, task_id, created_at, status FROM logs_m";

fn placed(row: &rusqlite::Row<'_>) -> Result<Placed> {
    let stub = LogStub {
        log_id: row.get(2)?,
        run_key: row.get(3)?,
        pinned: row.get(4)?,
        task_id: row.get(5)?,
        created_at: Timestamp::from_millis(row.get(6)?),
        status: RunStatus::from_code(row.get(7)?)?,
    };
    Ok(Placed { log_no: row.get(0)?, run_no: row.get(1)?, stub })
}

/// Puts a log, and every other log of its task, into the run where it belongs.
pub(super) fn place(connection: &Connection, log_no: i64, touched: &mut Touched) -> Result<()> {
    let mut statement = connection.prepare_cached("SELECT task_id FROM logs_m WHERE log_no = ?1")?;
    match statement.query_row([log_no], |row| row.get::<_, Option<String>>(0))? {
        Some(task) => place_task(connection, &task, touched),
        None => place_all(connection, &format!("{STUBS} WHERE log_no = ?1"), log_no, touched),
    }
}

fn place_task(connection: &Connection, task: &str, touched: &mut Touched) -> Result<()> {
    place_all(connection, &format!("{STUBS} WHERE task_id = ?1"), task, touched)
}

fn place_all(connection: &Connection, sql: &str, key: impl rusqlite::ToSql, touched: &mut Touched) -> Result<()> {
    let logs: Vec<Placed> = connection.prepare_cached(sql)?.query_and_then([key], placed)?.collect::<Result<_>>()?;
    let stubs: Vec<LogStub> = logs.iter().map(|log| log.stub.clone()).collect();
    for (log, run_id) in logs.iter().zip(grouping::runs(&stubs)) {
        let run_no = give_run_no(connection, run_id)?;
        if run_no != log.run_no {
            touched.log(connection, log.log_no)?;
            if log.run_no != 0 {
                search::index::mark_again(connection, log.log_no)?;
            }
            connection.prepare_cached("UPDATE logs_m SET run_no = ?2 WHERE log_no = ?1")?.execute([log.log_no, run_no])?;
            connection.prepare_cached("UPDATE attempts_m SET run_no = ?2 WHERE log_no = ?1")?.execute([log.log_no, run_no])?;
            touched.log(connection, log.log_no)?;
        }
    }
    Ok(())
}

/// The run's row, made now if there is none; `settle` fills it in.
fn give_run_no(connection: &Connection, run_id: &str) -> Result<i64> {
    if let Some(number) = names::run_no(connection, run_id)? {
        return Ok(number);
    }
    let sql = "INSERT INTO runs_m (run_id, kind, status, created_at, git, arms, passed, failed, infra, unscored, missing)
               VALUES (?1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)";
    connection.prepare_cached(sql)?.execute([run_id])?;
    Ok(connection.last_insert_rowid())
}

const REMOVE: [&str; 10] = [
    // A case's texts go with the log that they are of, unless another copy of it is there: what was deleted must not be read. An older log's
    // text of the case is not brought back.
    "UPDATE cases_m SET input = NULL, target = NULL, text_at = NULL, text_log = NULL
     WHERE case_no IN (SELECT case_no FROM attempts_m WHERE log_no = ?1) AND text_log = (SELECT log_id FROM logs_m WHERE log_no = ?1)
         AND NOT EXISTS (SELECT 1 FROM logs_m other WHERE other.log_id = text_log AND other.log_no <> ?1)",
    "DELETE FROM checks_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM outputs_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM transcripts_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM shared_m WHERE first_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM attempts_m WHERE log_no = ?1",
    "DELETE FROM log_evaluations_m WHERE log_no = ?1",
    "DELETE FROM log_arms_m WHERE log_no = ?1",
    "DELETE FROM case_groups_m WHERE log_no = ?1",
    "DELETE FROM logs_m WHERE log_no = ?1",
];

/// Removes a log with all that it holds; what is left of its task may move to another run.
pub(super) fn remove(connection: &Connection, log_no: i64, touched: &mut Touched) -> Result<()> {
    touched.log(connection, log_no)?;
    let mut statement = connection.prepare_cached("SELECT task_id FROM logs_m WHERE log_no = ?1")?;
    let task: Option<String> = statement.query_row([log_no], |row| row.get(0))?;
    search::index::forget(connection, log_no)?;
    for sql in extras::REMOVE.into_iter().chain(REMOVE) {
        connection.prepare_cached(sql)?.execute([log_no])?;
    }
    task.map_or(Ok(()), |task| place_task(connection, &task, touched))
}

/// The id of the run that a log is in.
pub(super) fn run_of(connection: &Connection, log_no: i64) -> Result<Option<String>> {
    let sql = "SELECT r.run_id FROM logs_m l JOIN runs_m r ON r.run_no = l.run_no WHERE l.log_no = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([log_no], |row| row.get(0)).optional()?)
}

/// Brings every touched run and cell up to date, and numbers new runs.
pub(super) fn settle(connection: &Connection, declared: &Declared, touched: Touched) -> Result<()> {
    for run_no in touched.runs {
        let evaluations = touched.cells.range((run_no, i64::MIN)..=(run_no, i64::MAX)).map(|(_, eval_no)| *eval_no).collect();
        rebuild::run(connection, declared, run_no, evaluations)?;
    }
    let new: Vec<i64> = {
        let mut statement = connection.prepare_cached("SELECT run_no FROM runs_m WHERE number IS NULL ORDER BY run_id")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for run_no in new {
        connection.prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'last_run'")?.execute([])?;
        let sql = "UPDATE runs_m SET number = (SELECT value FROM meta WHERE name = 'last_run') WHERE run_no = ?1";
        connection.prepare_cached(sql)?.execute([run_no])?;
        projections::moved(connection, run_no)?;
    }
    Ok(())
}

/// Judges anew the cells of every evaluation whose declared threshold or family has changed.
pub(super) fn evaluations_declared(connection: &Connection, old: &Declared, new: &Declared) -> Result<()> {
    for (eval_no, id) in names::evaluations_containing(connection, "")? {
        if old.threshold(&id) == new.threshold(&id) && old.family(&id) == new.family(&id) {
            continue;
        }
        let runs: Vec<i64> = {
            let mut statement = connection.prepare_cached("SELECT run_no FROM run_evaluations_m WHERE eval_no = ?1")?;
            let rows = statement.query_map([eval_no], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        runs.into_iter().try_for_each(|run_no| count::judge_anew(connection, new, run_no, eval_no))?;
    }
    Ok(())
}

/// Renames arms, and touches the logs of those whose declared name or role has changed.
pub(super) fn arms_declared(connection: &Connection, old: &Declared, new: &Declared, touched: &mut Touched) -> Result<()> {
    let arms: Vec<String> = {
        let mut statement = connection.prepare_cached("SELECT name FROM arms_m WHERE effective_no IS NOT NULL ORDER BY name")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for name in arms {
        let (before, after) = (old.arm_name(&name), new.arm_name(&name));
        if before == after && old.role(&name) == new.role(&name) && old.role(after) == new.role(after) {
            continue;
        }
        let arm_no = names::give_arm_no(connection, new, &name)?;
        let sql =
            "UPDATE attempts_m SET arm_no = (SELECT effective_no FROM arms_m WHERE arm_no = ?1) WHERE log_no = ?2 AND raw_arm_no = ?1";
        let mut statement = connection.prepare_cached("SELECT log_no FROM log_arms_m WHERE arm_no = ?1")?;
        let mut rows = statement.query([arm_no])?;
        while let Some(row) = rows.next()? {
            let log_no: i64 = row.get(0)?;
            if before != after {
                connection.prepare_cached(sql)?.execute(params![arm_no, log_no])?;
            }
            touched.log(connection, log_no)?;
        }
    }
    Ok(())
}
