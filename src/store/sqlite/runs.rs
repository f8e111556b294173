//! Reads runs: lists, references, arms, evaluations, ancestors.
//!
//! Promises: newest first, tie by id descending; the page and the total are of one state.
//! Does not: read cells or attempts.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::names::{self, Word as _};
use crate::{
    domain::{
        log::{ArmInfo, EvaluationInfo, Git, RunStatus},
        outcome::Counts,
        time::Timestamp,
    },
    store::{Result, Run, RunArm, RunEvaluation, RunQuery, Selector},
};

const RUN: &str =
    "SELECT run_id, number, kind, status, created_at, started_at, completed_at, git, sha, branch, dirty, round, passed, failed, infra,
    unscored, missing FROM runs_m";
const NEWEST_FIRST: &str = "ORDER BY created_at DESC, run_id DESC";
/// The filters of a list. Lists of numbers and shas come as JSON texts; null lets everything through.
const FILTER: &str =
    "(?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR round = ?3) AND (?4 IS NULL OR created_at >= ?4)
    AND (?6 IS NULL OR sha_key IN (SELECT value FROM json_each(?6)))";
/// Of many evaluations nearly every run has one: the first hit ends the search.
const HAS_ONE_OF_MANY: &str =
    "(?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(?5) e JOIN cells_m c ON c.run_no = runs_m.run_no AND c.eval_no = e.value))";
/// Of few evaluations few runs may have one: their runs are gathered once, instead of asking each run.
const HAS_ONE_OF_FEW: &str = "run_no IN (SELECT c.run_no FROM json_each(?5) e CROSS JOIN run_evaluations_m r ON r.eval_no = e.value
    CROSS JOIN cells_m c ON c.run_no = r.run_no AND c.eval_no = r.eval_no)";
const FEW: usize = 16;

fn run(row: &Row<'_>) -> Result<Run> {
    let git = row.get::<_, bool>(7)?;
    let git = if git { Some(Git { sha: row.get(8)?, branch: row.get(9)?, dirty: row.get(10)? }) } else { None };
    Ok(Run {
        run_id: row.get(0)?,
        number: row.get(1)?,
        kind: crate::store::Kind::from_code(row.get(2)?)?,
        status: RunStatus::from_code(row.get(3)?)?,
        created_at: Timestamp::from_millis(row.get(4)?),
        started_at: names::time(row.get(5)?),
        completed_at: names::time(row.get(6)?),
        git,
        round: row.get(11)?,
        counts: counts(row, 12)?,
    })
}

/// The five counts, which stand beside each other from column `from`.
pub(super) fn counts(row: &Row<'_>, from: usize) -> Result<Counts> {
    let at = |offset: usize| row.get::<_, i64>(from + offset).map(names::small);
    Ok(Counts { passed: at(0)?, failed: at(1)?, infra: at(2)?, unscored: at(3)?, missing: at(4)? })
}

pub(super) fn list(connection: &Connection, query: &RunQuery) -> Result<(Vec<Run>, u64)> {
    let numbers: Option<Vec<i64>> = match &query.evaluation_contains {
        Some(part) => Some(names::evaluations_containing(connection, part)?.into_iter().map(|(number, _)| number).collect()),
        None => None,
    };
    let has = if numbers.as_ref().is_some_and(|numbers| numbers.len() <= FEW) { HAS_ONE_OF_FEW } else { HAS_ONE_OF_MANY };
    let evaluations = numbers.map(|numbers| serde_json::to_string(&numbers)).transpose()?;
    let shas = match &query.shas {
        Some(shas) => Some(serde_json::to_string(&same_commits(connection, shas)?)?),
        None => None,
    };
    let (kind, status) = (query.kind.map(|kind| kind.code()), query.status.map(|status| status.code()));
    let since = names::millis(query.since);
    let values = params![kind, status, query.round, since, evaluations, shas];
    // SQLite counts a whole table without reading its rows.
    let whole = kind.is_none() && status.is_none() && query.round.is_none() && since.is_none() && evaluations.is_none() && shas.is_none();
    let total: i64 = if whole {
        connection.prepare_cached("SELECT count(*) FROM runs_m")?.query_row([], |row| row.get(0))?
    } else {
        let count = format!("SELECT count(*) FROM runs_m WHERE {FILTER} AND {has}");
        connection.prepare_cached(&count)?.query_row(values, |row| row.get(0))?
    };
    let (before_at, before_id) = query.before.as_ref().map(|point| (point.created_at.millis(), point.run_id.as_str())).unzip();
    // Said outright rather than as "no cursor, or before it": only so is a late page one seek into the index, and not a walk to it.
    let before = if query.before.is_some() { "(created_at, run_id) < (?7, ?8)" } else { "?7 IS NULL AND ?8 IS NULL" };
    let page = format!("{RUN} WHERE {FILTER} AND {has} AND {before} {NEWEST_FIRST} LIMIT ?9");
    let mut statement = connection.prepare_cached(&page)?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let values = params![kind, status, query.round, since, evaluations, shas, before_at, before_id, limit];
    let rows = statement.query_and_then(values, run)?;
    Ok((rows.collect::<Result<_>>()?, names::natural(total)))
}

/// The run with this number.
pub(super) fn numbered(connection: &Connection, run_no: i64) -> Result<Option<Run>> {
    let mut statement = connection.prepare_cached(&format!("{RUN} WHERE run_no = ?1"))?;
    statement.query_and_then([run_no], run)?.next().transpose()
}

/// The recorded runs whose commit is one of `shas`, with their places in time.
pub(super) fn of_commits(connection: &Connection, shas: &[String]) -> Result<BTreeMap<i64, (i64, String)>> {
    let sql = "SELECT run_no, created_at, run_id FROM runs_m WHERE sha_key = ?1 AND kind = 0";
    let mut out = BTreeMap::new();
    for sha in same_commits(connection, shas)? {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([sha])?;
        while let Some(row) = rows.next()? {
            out.insert(row.get(0)?, (row.get(1)?, row.get(2)?));
        }
    }
    Ok(out)
}

/// The stored shas that name the same commit as one of `shas` (`reference::same_commit`, for many at once).
fn same_commits(connection: &Connection, shas: &[String]) -> Result<Vec<String>> {
    let mut given: Vec<String> = shas.iter().filter(|sha| sha.len() >= 4).map(|sha| sha.to_ascii_lowercase()).collect();
    given.sort_unstable();
    let exact: HashSet<&str> = given.iter().map(String::as_str).collect();
    let mut statement = connection.prepare_cached("SELECT DISTINCT sha_key FROM runs_m WHERE sha_key IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let stored: String = row.get(0)?;
        let next = given.partition_point(|sha| sha.as_str() < stored.as_str());
        let longer = stored.len() >= 4 && given.get(next).is_some_and(|sha| sha.starts_with(&stored));
        let shorter = || (4..=stored.len()).any(|end| stored.get(..end).is_some_and(|head| exact.contains(head)));
        if longer || shorter() {
            out.push(stored);
        }
    }
    Ok(out)
}

pub(super) fn select(connection: &Connection, selector: &Selector<'_>, limit: usize) -> Result<Vec<Run>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The end of the range: no text that begins with the prefix is greater.
    let end = |prefix: &str| format!("{prefix}\u{10ffff}\u{10ffff}");
    let query = |filter: &str, values: &[&dyn rusqlite::ToSql]| -> Result<Vec<Run>> {
        let mut statement = connection.prepare_cached(&format!("{RUN} {filter}"))?;
        let rows = statement.query_and_then(values, run)?;
        rows.collect()
    };
    match selector {
        Selector::Latest(back) => query(&format!("{NEWEST_FIRST} LIMIT min(?1, 1) OFFSET ?2"), &[&limit, back]),
        Selector::Id(id) => query("WHERE run_id = ?1 LIMIT ?2", &[id, &limit]),
        Selector::IdPrefix(prefix) => {
            query(&format!("WHERE run_id >= ?1 AND run_id <= ?2 {NEWEST_FIRST} LIMIT ?3"), &[prefix, &end(prefix), &limit])
        }
        Selector::ShaPrefix(prefix) => {
            query(&format!("WHERE sha_key >= ?1 AND sha_key <= ?2 {NEWEST_FIRST} LIMIT ?3"), &[prefix, &end(prefix), &limit])
        }
    }
}

pub(super) fn arms(connection: &Connection, runs: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>> {
    let sql = "SELECT a.name, m.role, m.factors FROM run_arms_m m JOIN arms_m a ON a.arm_no = m.arm_no WHERE m.run_no = ?1 ORDER BY a.name";
    let mut out = BTreeMap::new();
    for run in runs {
        let Some(run_no) = names::run_no(connection, run)? else { continue };
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_and_then([run_no], |row| -> Result<RunArm> {
            let factors: String = row.get(2)?;
            Ok(RunArm { info: ArmInfo { name: row.get(0)?, role: row.get(1)?, factors: serde_json::from_str(&factors)? } })
        })?;
        out.insert(run.clone(), rows.collect::<Result<_>>()?);
    }
    Ok(out)
}

pub(super) fn evaluations(connection: &Connection, run: &str) -> Result<Vec<RunEvaluation>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    let sql =
        "SELECT m.eval_no, m.info FROM run_evaluations_m m JOIN evaluations_m e ON e.eval_no = m.eval_no WHERE m.run_no = ?1 ORDER BY e.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_and_then(params![run_no], |row| -> Result<RunEvaluation> {
        let info: String = row.get(1)?;
        let info: EvaluationInfo = serde_json::from_str(&info)?;
        Ok(RunEvaluation { number: row.get(0)?, info })
    })?;
    rows.collect()
}

pub(super) fn ancestors(connection: &Connection, run: &str) -> Result<Vec<String>> {
    let sql = "SELECT a.shas FROM runs_m r JOIN ancestors_m a ON a.ancestors_no = r.ancestors_no WHERE r.run_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let shas: Option<String> = statement.query_row([run], |row| row.get(0)).optional()?;
    Ok(shas.map(|shas| shas.lines().map(str::to_owned).collect()).unwrap_or_default())
}
