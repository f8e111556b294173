//! Works out a run and its touched evaluations anew from the logs and attempts that are stored: status, arms, keys, cells.
//!
//! Promises: reads only the run's logs and the attempts of the touched evaluations; writes a row only where it differs, cells always.
//! Does not: move logs between runs.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    count,
    names::{self, Names, Word as _},
    projections, refresh,
};
use crate::{
    domain::{
        declared::Declared,
        grouping::{self, AttemptStub, LogStub},
        key,
        log::{ArmInfo, EvaluationInfo, Git, RunStatus},
        outcome::Outcome,
        time::Timestamp,
    },
    store::{Kind, Result},
};

pub(super) struct Log {
    pub log_no: i64,
    pub stub: LogStub,
    pub kind: Kind,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub git: Option<Git>,
    pub round: Option<String>,
    pub ancestors_no: Option<i64>,
}

impl Log {
    /// What stands for the task: its id, or the log's own where it has none.
    pub(super) fn task(&self) -> &str {
        self.stub.task_id.as_deref().unwrap_or(&self.stub.log_id)
    }
}

/// What cells take over from their run.
pub(super) struct Place {
    pub run_no: i64,
    pub run_id: String,
    pub recorded: bool,
    pub created_at: i64,
    pub several_arms: bool,
}

/// What [`log`] is read from.
pub(super) const LOG: &str = "SELECT log_no, log_id, run_key, pinned, task_id, created_at, status, kind, started_at, completed_at, git, round, ancestors_no FROM logs_m";

pub(super) fn log(row: &Row<'_>) -> Result<Log> {
    let stub = LogStub {
        log_id: row.get(1)?,
        run_key: row.get(2)?,
        pinned: row.get(3)?,
        task_id: row.get(4)?,
        created_at: Timestamp::from_millis(row.get(5)?),
        status: RunStatus::from_code(row.get(6)?)?,
    };
    let git: Option<String> = row.get(10)?;
    Ok(Log {
        log_no: row.get(0)?,
        stub,
        kind: Kind::from_code(row.get(7)?)?,
        started_at: row.get(8)?,
        completed_at: row.get(9)?,
        git: git.map(|text| serde_json::from_str(&text)).transpose()?,
        round: row.get(11)?,
        ancestors_no: row.get(12)?,
    })
}

/// Rebuilds the run; `evaluations` are those whose cells are touched.
pub(super) fn run(connection: &Connection, declared: &Declared, run_no: i64, mut evaluations: BTreeSet<i64>) -> Result<()> {
    let sql = format!("{LOG} WHERE run_no = ?1 ORDER BY created_at, log_id");
    let logs: Vec<Log> = connection.prepare_cached(&sql)?.query_and_then([run_no], log)?.collect::<Result<_>>()?;
    let Some(first) = logs.first() else { return forget(connection, run_no) };
    refresh::mark_arms(connection, run_no)?;
    let arms = arms(connection, declared, run_no)?;
    let place = head(connection, run_no, &logs, first, arms, &mut evaluations)?;
    for eval_no in with_namesakes(connection, run_no, evaluations)? {
        evaluation(connection, declared, &place, &logs, eval_no)?;
    }
    let sql = "UPDATE runs_m SET (passed, failed, infra, unscored, missing) = (SELECT coalesce(sum(passed), 0), coalesce(sum(failed), 0),
        coalesce(sum(infra), 0), coalesce(sum(unscored), 0), coalesce(sum(missing), 0) FROM cells_m WHERE run_no = ?1) WHERE run_no = ?1";
    connection.prepare_cached(sql)?.execute([run_no])?;
    Ok(())
}

fn forget(connection: &Connection, run_no: i64) -> Result<()> {
    refresh::mark_run(connection, run_no)?;
    for table in ["runs_m", "cells_m", "case_cells_m", "run_arms_m", "run_evaluations_m"] {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE run_no = ?1"))?.execute([run_no])?;
    }
    Ok(())
}

/// From the newest log down, so that it is found at once as a rule.
const NEWEST_ARM: &str =
    "SELECT la.info FROM logs_m l CROSS JOIN log_arms_m la ON la.log_no = l.log_no CROSS JOIN arms_m a ON a.arm_no = la.arm_no
    WHERE l.run_no = ?1 AND a.effective_no = ?2 ORDER BY l.created_at DESC, l.log_id DESC, a.name DESC LIMIT 1";

/// Writes the run's arms, each as its newest log has it; how many there are.
fn arms(connection: &Connection, declared: &Declared, run_no: i64) -> Result<i64> {
    let sql =
        "SELECT DISTINCT a.effective_no FROM logs_m l JOIN log_arms_m la ON la.log_no = l.log_no JOIN arms_m a ON a.arm_no = la.arm_no
               WHERE l.run_no = ?1";
    let numbers: Vec<i64> = {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([run_no], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let before = factors(connection, run_no)?;
    connection.prepare_cached("DELETE FROM run_arms_m WHERE run_no = ?1")?.execute([run_no])?;
    numbers.iter().try_for_each(|arm_no| put_arm(connection, declared, run_no, *arm_no))?;
    if before.is_some() && before != factors(connection, run_no)? {
        refresh::mark_run(connection, run_no)?;
    }
    Ok(i64::try_from(numbers.len()).unwrap_or(i64::MAX))
}

/// The factors of all of the run's arms as one text; none where it has no arm.
fn factors(connection: &Connection, run_no: i64) -> Result<Option<String>> {
    let sql = "SELECT json_group_array(arm_no || factors ORDER BY arm_no) FROM run_arms_m WHERE run_no = ?1 HAVING count(*) > 0";
    Ok(connection.prepare_cached(sql)?.query_row([run_no], |row| row.get(0)).optional()?)
}

/// Writes one of the run's arms as its newest log has it.
pub(super) fn put_arm(connection: &Connection, declared: &Declared, run_no: i64, arm_no: i64) -> Result<()> {
    let info: String = connection.prepare_cached(NEWEST_ARM)?.query_row([run_no, arm_no], |row| row.get(0))?;
    let info: ArmInfo = serde_json::from_str(&info)?;
    let mut names = Names::arms(connection);
    let role = declared.role(&info.name).or_else(|| names.get(arm_no).ok().and_then(|name| declared.role(name)));
    let role = role.map(|role| role.word().to_owned()).or(info.role);
    let sql = "INSERT OR REPLACE INTO run_arms_m (run_no, arm_no, role, factors) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![run_no, arm_no, role, serde_json::to_string(&info.factors)?])?;
    Ok(())
}

const HEAD: &str =
    "UPDATE runs_m SET kind = ?2, status = ?3, created_at = ?4, started_at = ?5, completed_at = ?6, git = ?7, sha = ?8, sha_key = ?9,
    branch = ?10, dirty = ?11, round = ?12, ancestors_no = ?13, arms = ?14 WHERE run_no = ?1";

/// Writes what the run's logs say together. What every cell or key repeats of it is brought up to date where it changed.
fn head(connection: &Connection, run_no: i64, logs: &[Log], first: &Log, arms: i64, evaluations: &mut BTreeSet<i64>) -> Result<Place> {
    let sql = "SELECT run_id, kind, created_at, arms, status FROM runs_m WHERE run_no = ?1";
    let (run_id, kind, created_at, arms_before, status_before): (String, i64, i64, i64, i64) =
        connection.prepare_cached(sql)?.query_row([run_no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    let recorded = logs.iter().any(|log| log.kind == Kind::Recorded);
    let place = Place { run_no, run_id, recorded, created_at: first.stub.created_at.millis(), several_arms: arms > 1 };
    let stubs: Vec<LogStub> = logs.iter().map(|log| log.stub.clone()).collect();
    let (now, status) = (if recorded { Kind::Recorded } else { Kind::Scratch }, grouping::status(&stubs).code());
    let git = first.git.as_ref();
    let sha = git.and_then(|git| git.sha.as_deref());
    connection.prepare_cached(HEAD)?.execute(params![
        run_no,
        now.code(),
        status,
        place.created_at,
        logs.iter().filter_map(|log| log.started_at).min(),
        logs.iter().map(|log| log.completed_at).collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max()),
        git.is_some(),
        sha,
        sha.map(str::to_ascii_lowercase),
        git.and_then(|git| git.branch.as_deref()),
        git.and_then(|git| git.dirty),
        logs.iter().find_map(|log| log.round.as_deref()),
        first.ancestors_no,
        arms,
    ])?;
    if (kind, created_at, status_before) != (now.code(), place.created_at, status) {
        refresh::mark_run(connection, run_no)?;
        projections::moved(connection, run_no)?;
    }
    if kind != now.code() || created_at != place.created_at {
        for table in ["cells_m", "case_cells_m"] {
            let sql = format!("UPDATE {table} SET recorded = ?2, created_at = ?3 WHERE run_no = ?1");
            connection.prepare_cached(&sql)?.execute(params![run_no, recorded, place.created_at])?;
        }
    }
    if (arms_before > 1) != place.several_arms {
        // The arm enters or leaves every key of the run.
        let mut statement = connection.prepare_cached("SELECT eval_no FROM run_evaluations_m WHERE run_no = ?1")?;
        let mut rows = statement.query([run_no])?;
        while let Some(row) = rows.next()? {
            evaluations.insert(row.get(0)?);
        }
    }
    Ok(place)
}

/// Evaluations of the run whose keys can repeat those of the one with this id.
pub(super) fn namesakes(connection: &Connection, run_no: i64, id: &str) -> Result<Vec<(i64, String)>> {
    let sql = "SELECT e.eval_no, e.id FROM evaluations_m e JOIN run_evaluations_m r ON r.run_no = ?1 AND r.eval_no = e.eval_no
               WHERE e.id > ?2 || '/' AND e.id < ?2 || '0'";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![run_no, id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The evaluations by id, with those whose keys can repeat a touched one's (`a/b` without a case, after `a` with case `b`).
fn with_namesakes(connection: &Connection, run_no: i64, evaluations: BTreeSet<i64>) -> Result<Vec<i64>> {
    let mut names = Names::evaluations(connection);
    let mut out = BTreeMap::new();
    for eval_no in evaluations {
        let id = names.get(eval_no)?.to_owned();
        out.extend(namesakes(connection, run_no, &id)?.into_iter().map(|(eval_no, id)| (id, eval_no)));
        out.insert(id, eval_no);
    }
    Ok(out.into_values().collect())
}

#[derive(Clone)]
pub(super) struct Attempt {
    pub stub: AttemptStub,
    pub log_no: i64,
    pub case_no: i64,
    pub arm_no: i64,
    pub raw_arm_no: i64,
    pub outcome: Outcome,
    pub n: Option<u32>,
    pub key: Option<String>,
}

impl Attempt {
    pub(super) const fn group(&self) -> (i64, i64) {
        (self.case_no, self.arm_no)
    }

    /// By case and arm, then as they are numbered.
    pub(super) fn order(&self, other: &Self) -> std::cmp::Ordering {
        let place = |attempt: &Self| (attempt.case_no, attempt.arm_no, attempt.stub.epoch);
        place(self)
            .cmp(&place(other))
            .then_with(|| self.stub.log_age.cmp(&other.stub.log_age))
            .then_with(|| self.stub.row.cmp(&other.stub.row))
    }
}

/// What [`attempt`] is read from.
pub(super) const ATTEMPT: &str =
    "SELECT a.attempt_no, a.log_no, a.case_no, c.id, a.arm_no, a.raw_arm_no, a.outcome, a.n, a.key, a.epoch, a.uuid
    FROM attempts_m a CROSS JOIN cases_m c ON c.case_no = a.case_no";

fn evaluation(connection: &Connection, declared: &Declared, place: &Place, logs: &[Log], eval_no: i64) -> Result<()> {
    refresh::mark(connection, place.run_no, eval_no)?;
    let infos = infos(connection, logs, eval_no)?;
    for table in ["cells_m", "case_cells_m", "run_evaluations_m"] {
        let sql = format!("DELETE FROM {table} WHERE run_no = ?1 AND eval_no = ?2");
        connection.prepare_cached(&sql)?.execute([place.run_no, eval_no])?;
    }
    let Some((_, newest)) = infos.last() else { return Ok(()) };
    let info = count::with_declared(declared, newest.clone());
    count::put_info(connection, place.run_no, eval_no, &info)?;
    let mut attempts = counting(connection, place, logs, eval_no)?;
    for group in attempts.chunk_by_mut(|a, b| a.group() == b.group()) {
        keys(connection, place, eval_no, &info.id, group, 1)?;
    }
    let missing = count::missing(connection, logs, &infos, &attempts)?;
    count::cells(connection, place, eval_no, &info, &attempts, &missing)
}

/// What each log of the run says of the evaluation, oldest log first.
fn infos<'a>(connection: &Connection, logs: &'a [Log], eval_no: i64) -> Result<Vec<(&'a Log, EvaluationInfo)>> {
    let mut out = Vec::new();
    let mut statement = connection.prepare_cached("SELECT info FROM log_evaluations_m WHERE log_no = ?1 AND eval_no = ?2")?;
    for log in logs {
        if let Some(info) = statement.query_row([log.log_no, eval_no], |row| row.get::<_, String>(0)).optional()? {
            out.push((log, serde_json::from_str(&info)?));
        }
    }
    Ok(out)
}

/// The attempts that count, by case and arm, then in the order that they are numbered in; the others lose their keys.
fn counting(connection: &Connection, place: &Place, logs: &[Log], eval_no: i64) -> Result<Vec<Attempt>> {
    let by_no: BTreeMap<i64, &Log> = logs.iter().map(|log| (log.log_no, log)).collect();
    let mut attempts = Vec::new();
    let mut statement = connection.prepare_cached(&format!("{ATTEMPT} WHERE a.run_no = ?1 AND a.eval_no = ?2"))?;
    let mut rows = statement.query([place.run_no, eval_no])?;
    while let Some(row) = rows.next()? {
        if let Some(log) = by_no.get(&row.get(1)?) {
            attempts.push(attempt(row, log)?);
        }
    }
    let tasks: BTreeSet<&str> = logs.iter().map(Log::task).collect();
    // Without a retry nothing can be superseded, which is the usual case and spares a copy of every id.
    if tasks.len() < logs.len() {
        keep_arms_apart(connection, place.run_no, &by_no, &mut attempts)?;
        let stubs: Vec<AttemptStub> = attempts.iter().map(|attempt| attempt.stub.clone()).collect();
        let gone = grouping::superseded(&stubs);
        let (lost, kept): (Vec<_>, Vec<_>) = attempts.into_iter().partition(|attempt| gone.binary_search(&attempt.stub.row).is_ok());
        for attempt in lost.iter().filter(|attempt| attempt.n.is_some()) {
            connection.prepare_cached("UPDATE attempts_m SET n = NULL, key = NULL WHERE attempt_no = ?1")?.execute([attempt.stub.row])?;
        }
        attempts = kept;
    }
    attempts.sort_by(Attempt::order);
    Ok(attempts)
}

/// A retry replaces what its task tried, whatever its arm is called now: a log of one arm is told from another by its task. Where a log of the
/// task has several arms, they try the same case side by side without replacing each other.
fn keep_arms_apart(connection: &Connection, run_no: i64, logs: &BTreeMap<i64, &Log>, attempts: &mut [Attempt]) -> Result<()> {
    let sql = "SELECT l.log_no FROM logs_m l CROSS JOIN log_arms_m la ON la.log_no = l.log_no WHERE l.run_no = ?1
               GROUP BY l.log_no HAVING count(*) > 1";
    let several: Vec<i64> = {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([run_no], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let tasks: BTreeSet<&str> = several.iter().filter_map(|log_no| logs.get(log_no)).map(|log| log.task()).collect();
    for attempt in attempts.iter_mut().filter(|attempt| tasks.contains(attempt.stub.task.as_str())) {
        attempt.stub.task = format!("{} {}", attempt.raw_arm_no, attempt.stub.task);
    }
    Ok(())
}

/// An attempt of `log`.
pub(super) fn attempt(row: &Row<'_>, log: &Log) -> Result<Attempt> {
    let stub = AttemptStub {
        row: row.get(0)?,
        task: log.task().to_owned(),
        log_age: (log.stub.created_at, log.stub.log_id.clone()),
        uuid: row.get(10)?,
        case: row.get(3)?,
        epoch: names::small(row.get(9)?),
    };
    Ok(Attempt {
        stub,
        log_no: log.log_no,
        case_no: row.get(2)?,
        arm_no: row.get(4)?,
        raw_arm_no: row.get(5)?,
        outcome: Outcome::from_code(row.get(6)?)?,
        n: row.get(7)?,
        key: row.get(8)?,
    })
}

const KEY_TAKEN: &str = "SELECT 1 FROM attempts_m WHERE run_no = ?1 AND key = ?2 AND eval_no <> ?3";

/// Numbers the attempts of one case and arm from `first`, and gives each its key.
pub(super) fn keys(connection: &Connection, place: &Place, eval_no: i64, id: &str, group: &mut [Attempt], first: u32) -> Result<()> {
    let mut names = Names::arms(connection);
    for (n, attempt) in (first..).zip(group) {
        let arm = if place.several_arms { Some(names.get(attempt.arm_no)?) } else { None };
        let mut key = key::attempt_key(id, &attempt.stub.case, arm, n);
        if attempt.stub.case.is_empty() && id.contains('/') {
            // The other one's id is the beginning of this one, so in the order of `key::distinct` it comes first and keeps the key.
            let taken = connection.prepare_cached(KEY_TAKEN)?.exists(params![place.run_no, key, eval_no])?;
            let mut both = if taken { vec![key.clone(), key] } else { vec![key] };
            key::distinct(&mut both);
            key = both.pop().unwrap_or_default();
        }
        if attempt.n != Some(n) || attempt.key.as_ref() != Some(&key) {
            let sql = "UPDATE attempts_m SET n = ?2, key = ?3 WHERE attempt_no = ?1";
            connection.prepare_cached(sql)?.execute(params![attempt.stub.row, n, key])?;
        }
        attempt.n = Some(n);
        attempt.key = Some(key);
    }
    Ok(())
}
