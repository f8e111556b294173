//! Adds a new log to a run that has others, where it replaces and renames nothing of theirs: the usual case of a run of many logs.
//!
//! Promises: leaves the very rows that `rebuild` would, at a cost that the log has and not the run; where it cannot, it has written nothing.
//! Does not: take anything away.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    count,
    names::{self, Names, Word as _},
    projections,
    rebuild::{self, Attempt, Log, Place},
    refresh,
};
use crate::{
    domain::{declared::Declared, grouping, log::RunStatus, outcome::Counts, time::Timestamp},
    store::{Error, Kind, Result},
};

/// A run as it stood before the log came.
struct Run {
    place: Place,
    status: RunStatus,
    started_at: Option<i64>,
    completed_at: Option<i64>,
    round: Option<String>,
    arms: i64,
}

/// Whether the log, which stands in its run's rows and has not been counted, could be added.
pub(super) fn log(connection: &Connection, declared: &Declared, log_no: i64) -> Result<bool> {
    let sql = format!("{} WHERE log_no = ?1", rebuild::LOG);
    let log = connection.prepare_cached(&sql)?.query_and_then([log_no], rebuild::log)?.next().unwrap_or(Err(Error::Damaged))?;
    let Some(mut run) = run(connection, log_no)? else { return Ok(false) };
    let arms = numbers(connection, ARMS, log_no)?;
    let evaluations = numbers(connection, "SELECT eval_no FROM log_evaluations_m WHERE log_no = ?1", log_no)?;
    if replaces(connection, &log)? || leads(connection, &run, &log)? || renames(connection, &mut run, &arms, &evaluations)? {
        return Ok(false);
    }
    refresh::mark_arms(connection, run.place.run_no)?;
    for arm_no in &arms {
        arm(connection, declared, run.place.run_no, *arm_no)?;
    }
    let mut added = Counts::default();
    for eval_no in evaluations {
        added = added.plus(evaluation(connection, declared, &run.place, &log, eval_no)?);
    }
    head(connection, &run, &log, added)?;
    Ok(true)
}

/// Writes an arm of the run. One that other evaluations have too may have other factors now.
fn arm(connection: &Connection, declared: &Declared, run_no: i64, arm_no: i64) -> Result<()> {
    let factors = || -> Result<Option<String>> {
        let sql = "SELECT factors FROM run_arms_m WHERE run_no = ?1 AND arm_no = ?2";
        Ok(connection.prepare_cached(sql)?.query_row([run_no, arm_no], |row| row.get(0)).optional()?)
    };
    let before = factors()?;
    rebuild::put_arm(connection, declared, run_no, arm_no)?;
    if before.is_some() && before != factors()? {
        refresh::mark_run(connection, run_no)?;
    }
    Ok(())
}

const ARMS: &str = "SELECT DISTINCT a.effective_no FROM log_arms_m la JOIN arms_m a ON a.arm_no = la.arm_no WHERE la.log_no = ?1";

fn numbers(connection: &Connection, sql: &str, log_no: i64) -> Result<BTreeSet<i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([log_no], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The run of the log; none where this log has made it.
fn run(connection: &Connection, log_no: i64) -> Result<Option<Run>> {
    let sql = "SELECT r.run_no, r.run_id, r.kind, r.created_at, r.status, r.started_at, r.completed_at, r.round, r.arms
               FROM logs_m l JOIN runs_m r ON r.run_no = l.run_no WHERE l.log_no = ?1 AND r.number IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query_and_then([log_no], |row| -> Result<Run> {
        let (kind, arms) = (Kind::from_code(row.get(2)?)?, row.get(8)?);
        let place = Place {
            run_no: row.get(0)?,
            run_id: row.get(1)?,
            recorded: kind == Kind::Recorded,
            created_at: row.get(3)?,
            several_arms: arms > 1,
        };
        let status = RunStatus::from_code(row.get(4)?)?;
        Ok(Run { place, status, started_at: row.get(5)?, completed_at: row.get(6)?, round: row.get(7)?, arms })
    })?;
    rows.next().transpose()
}

/// Whether another log is of the same task, so that attempts may be replaced and what was planned is counted once.
fn replaces(connection: &Connection, log: &Log) -> Result<bool> {
    let task = log.task();
    let by_task = "SELECT 1 FROM logs_m WHERE task_id = ?1 AND log_no <> ?2";
    let by_id = "SELECT 1 FROM logs_m WHERE log_id = ?1 AND task_id IS NULL AND log_no <> ?2";
    Ok(connection.prepare_cached(by_task)?.exists(params![task, log.log_no])?
        || connection.prepare_cached(by_id)?.exists(params![task, log.log_no])?)
}

/// Whether the log changes what every cell repeats of its run, or may say something that only the run's first log can.
fn leads(connection: &Connection, run: &Run, log: &Log) -> Result<bool> {
    let sql = "SELECT log_no FROM logs_m WHERE run_no = ?1 ORDER BY created_at, log_id LIMIT 1";
    let first: i64 = connection.prepare_cached(sql)?.query_row([run.place.run_no], |row| row.get(0))?;
    let round = run.round.is_some() && log.round.is_some() && run.round != log.round;
    Ok(first == log.log_no || (log.kind == Kind::Recorded && !run.place.recorded) || round)
}

/// Whether keys of other attempts change: the arm enters them, or an evaluation's namesake does. Counts the run's arms on the way.
fn renames(connection: &Connection, run: &mut Run, arms: &BTreeSet<i64>, evaluations: &BTreeSet<i64>) -> Result<bool> {
    let sql = "SELECT 1 FROM run_arms_m WHERE run_no = ?1 AND arm_no = ?2";
    for arm_no in arms {
        run.arms += i64::from(!connection.prepare_cached(sql)?.exists(params![run.place.run_no, arm_no])?);
    }
    let mut names = Names::evaluations(connection);
    for eval_no in evaluations {
        if !rebuild::namesakes(connection, run.place.run_no, names.get(*eval_no)?)?.is_empty() {
            return Ok(true);
        }
    }
    // Two evaluations of the log itself can be namesakes too, and are not among the run's yet.
    let ids = evaluations.iter().map(|eval_no| names.get(*eval_no).map(str::to_owned)).collect::<Result<Vec<String>>>()?;
    let namesake = |id: &String| ids.iter().any(|other| id.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/')));
    Ok((run.arms > 1) != run.place.several_arms || ids.iter().any(namesake))
}

fn evaluation(connection: &Connection, declared: &Declared, place: &Place, log: &Log, eval_no: i64) -> Result<Counts> {
    let info = count::newest_info(connection, declared, place.run_no, eval_no)?;
    count::put_info(connection, place.run_no, eval_no, &info)?;
    let sql = format!("{} WHERE a.log_no = ?1 AND a.eval_no = ?2", rebuild::ATTEMPT);
    let mut attempts: Vec<Attempt> =
        connection.prepare_cached(&sql)?.query_and_then([log.log_no, eval_no], |row| rebuild::attempt(row, log))?.collect::<Result<_>>()?;
    attempts.sort_by(Attempt::order);
    for group in attempts.chunk_by_mut(|a, b| a.group() == b.group()) {
        number(connection, place, eval_no, &info.id, group)?;
    }
    let sql = "SELECT info FROM log_evaluations_m WHERE log_no = ?1 AND eval_no = ?2";
    let own: String = connection.prepare_cached(sql)?.query_row([log.log_no, eval_no], |row| row.get(0))?;
    let infos = [(log, serde_json::from_str(&own)?)];
    let missing = count::missing(connection, std::slice::from_ref(log), &infos, &attempts)?;
    count::add(connection, place, eval_no, &info, &attempts, &missing)
}

const LAST: &str = "SELECT a.n, a.epoch, l.created_at, l.log_id FROM attempts_m a CROSS JOIN logs_m l ON l.log_no = a.log_no
    WHERE a.run_no = ?1 AND a.eval_no = ?2 AND a.case_no = ?3 AND a.arm_no = ?4 AND a.n > 0 ORDER BY a.n DESC LIMIT 1";

/// Numbers the new attempts of one case and arm after those that are there; where an older one is new, all that come after it anew.
fn number(connection: &Connection, place: &Place, eval_no: i64, id: &str, group: &mut [Attempt]) -> Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let values = [place.run_no, eval_no, first.case_no, first.arm_no];
    let mut statement = connection.prepare_cached(LAST)?;
    let mut rows = statement.query_and_then(values, |row| -> Result<_> {
        let age = (Timestamp::from_millis(row.get(2)?), row.get::<_, String>(3)?);
        Ok((row.get::<_, u32>(0)?, names::small(row.get(1)?), age))
    })?;
    let Some((n, epoch, age)) = rows.next().transpose()? else { return rebuild::keys(connection, place, eval_no, id, group, 1) };
    drop(rows);
    if (epoch, &age) <= (first.stub.epoch, &first.stub.log_age) {
        return rebuild::keys(connection, place, eval_no, id, group, n.saturating_add(1));
    }
    let mut all = members(connection, values)?;
    all.extend_from_slice(group);
    all.sort_by(Attempt::order);
    rebuild::keys(connection, place, eval_no, id, &mut all, 1)
}

/// The attempts of a case and arm that have a number.
fn members(connection: &Connection, values: [i64; 4]) -> Result<Vec<Attempt>> {
    let one = format!("{} WHERE log_no = ?1", rebuild::LOG);
    let mut logs = connection.prepare_cached(&one)?;
    let sql = format!("{} WHERE a.run_no = ?1 AND a.eval_no = ?2 AND a.case_no = ?3 AND a.arm_no = ?4 AND a.n > 0", rebuild::ATTEMPT);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_and_then(values, |row| {
        let log_no: i64 = row.get(1)?;
        let log = logs.query_and_then([log_no], rebuild::log)?.next().unwrap_or(Err(Error::Damaged))?;
        rebuild::attempt(row, &log)
    })?;
    rows.collect()
}

/// Brings the run's own row up to date.
fn head(connection: &Connection, run: &Run, log: &Log, added: Counts) -> Result<()> {
    let sql = "UPDATE runs_m SET status = ?2, started_at = ?3, completed_at = ?4, round = ?5, arms = ?6, passed = passed + ?7,
               failed = failed + ?8, infra = infra + ?9, unscored = unscored + ?10, missing = missing + ?11 WHERE run_no = ?1";
    let Counts { passed, failed, infra, unscored, missing } = added;
    let status = grouping::together(run.status, log.stub.status);
    connection.prepare_cached(sql)?.execute(params![
        run.place.run_no,
        status.code(),
        run.started_at.into_iter().chain(log.started_at).min(),
        // None where any log has none.
        run.completed_at.zip(log.completed_at).map(|(a, b)| a.max(b)),
        run.round.as_ref().or(log.round.as_ref()),
        run.arms,
        passed,
        failed,
        infra,
        unscored,
        missing,
    ])?;
    if status != run.status {
        refresh::mark_run(connection, run.place.run_no)?;
        projections::moved(connection, run.place.run_no)?;
    }
    Ok(())
}
