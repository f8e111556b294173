//! Evaluations and cases that are made here, and evaluations as the workspace has them: made here, or seen in logs, or both.
//!
//! Promises: cases are only added, so that the cases of a run that was queued are those up to a number; a locked evaluation is not changed.
//! Does not: know runs, but for how many hold an evaluation and what the newest says of it.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    deed::{self, Did, Stop},
    names::{self, Word as _},
};
use crate::{
    domain::log::EvaluationInfo,
    store::{
        Error, Result,
        workspace::{Acted, Authored, AuthoredCase, AuthoredQuery, Deed, EvaluationStatus, Lock, NewCase, NewEvaluation, rules},
    },
};

/// A new evaluation, a draft.
pub(super) fn create(connection: &Connection, deed: &Deed, new: &NewEvaluation) -> Did {
    if known(connection, &new.id)?.is_some() {
        return Err(rules::evaluation_exists(&new.id).into());
    }
    let eval_no = names::give_eval_no(connection, &new.id)?;
    let sql = "INSERT INTO authored_m (eval_no, name, description, family, threshold, status, created_at, created_by)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.prepare_cached(sql)?.execute(params![
        eval_no,
        new.name,
        new.description,
        new.family,
        new.threshold,
        EvaluationStatus::Draft.code(),
        deed.at.millis(),
        deed.actor.principal,
    ])?;
    for case in &new.cases {
        put_case(connection, deed, eval_no, &new.id, case)?;
    }
    Ok(Acted::Evaluation { evaluation: new.id.clone(), number: eval_no, status: EvaluationStatus::Draft })
}

/// A case more.
pub(super) fn add_case(connection: &Connection, deed: &Deed, evaluation: &str, case: &NewCase) -> Did {
    let held = here(connection, evaluation)?;
    rules::may_grow(evaluation, held.status, held.lock.as_ref())?;
    make_ours(connection, deed, held.number)?;
    let case = put_case(connection, deed, held.number, evaluation, case)?;
    Ok(Acted::Case { evaluation: evaluation.to_owned(), case })
}

/// Another status.
pub(super) fn set_status(connection: &Connection, deed: &Deed, evaluation: &str, status: EvaluationStatus) -> Did {
    let held = here(connection, evaluation)?;
    rules::unlocked(evaluation, held.lock.as_ref())?;
    make_ours(connection, deed, held.number)?;
    let sql = "UPDATE authored_m SET status = ?2 WHERE eval_no = ?1";
    connection.prepare_cached(sql)?.execute(params![held.number, status.code()])?;
    Ok(Acted::Evaluation { evaluation: evaluation.to_owned(), number: held.number, status })
}

/// Locks it, or opens it.
pub(super) fn set_lock(connection: &Connection, deed: &Deed, evaluation: &str, reason: Option<&str>) -> Did {
    let held = here(connection, evaluation)?;
    match (&held.lock, reason) {
        (Some(_), Some(_)) => rules::unlocked(evaluation, held.lock.as_ref())?,
        (None, None) => return Err(rules::not_locked(evaluation).into()),
        _ => make_ours(connection, deed, held.number)?,
    }
    let (by, at) = reason.map(|_| (&deed.actor.principal, deed.at.millis())).unzip();
    let sql = "UPDATE authored_m SET locked_by = ?2, locked_at = ?3, lock_reason = ?4 WHERE eval_no = ?1";
    connection.prepare_cached(sql)?.execute(params![held.number, by, at, reason])?;
    Ok(Acted::Evaluation { evaluation: evaluation.to_owned(), number: held.number, status: held.status })
}

/// The evaluation, which is to be there.
pub(super) fn here(connection: &Connection, id: &str) -> std::result::Result<Authored, Stop> {
    Ok(known(connection, id)?.ok_or_else(|| rules::no_evaluation(id))?)
}

fn known(connection: &Connection, id: &str) -> Result<Option<Authored>> {
    names::eval_no(connection, id)?.map_or(Ok(None), |eval_no| one(connection, eval_no))
}

/// Gives an evaluation that only came with logs a row; it is active.
fn make_ours(connection: &Connection, deed: &Deed, eval_no: i64) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO authored_m (eval_no, status, created_at, created_by) VALUES (?1, ?2, ?3, ?4)";
    let values = params![eval_no, EvaluationStatus::Active.code(), deed.at.millis(), deed.actor.principal];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn count(connection: &Connection, eval_no: i64) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM authored_cases_m WHERE eval_no = ?1")?;
    Ok(statement.query_row([eval_no], |row| row.get(0).map(names::natural))?)
}

fn put_case(connection: &Connection, deed: &Deed, eval_no: i64, evaluation: &str, case: &NewCase) -> std::result::Result<String, Stop> {
    let held = count(connection, eval_no)?;
    if held >= rules::CASES_MAX {
        return Err(rules::too_many_cases(evaluation).into());
    }
    let id = match &case.id {
        Some(id) if taken(connection, eval_no, id)? => return Err(rules::case_exists(evaluation, id).into()),
        Some(id) => id.clone(),
        None => free_id(connection, eval_no, held)?,
    };
    let sql = "INSERT INTO authored_cases_m (eval_no, id, input, expected, metadata, created_at, created_by)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let metadata = serde_json::to_string(&case.metadata.clone().unwrap_or_default())?;
    let values = params![eval_no, id, case.input, case.expected, metadata, deed.at.millis(), deed.actor.principal];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(id)
}

fn taken(connection: &Connection, eval_no: i64, id: &str) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM authored_cases_m WHERE eval_no = ?1 AND id = ?2")?.exists(params![eval_no, id])?)
}

/// The first `case-<n>` that is free, from one more than there are cases.
fn free_id(connection: &Connection, eval_no: i64, held: u64) -> Result<String> {
    for number in held + 1.. {
        let id = format!("case-{number}");
        if !taken(connection, eval_no, &id)? {
            return Ok(id);
        }
    }
    Err(Error::Internal("there are more cases than numbers".to_owned()))
}

const ONE: &str = "SELECT e.id, a.eval_no IS NOT NULL, a.name, a.description, a.family, a.threshold, a.status, a.created_at, a.created_by,
    a.locked_by, a.locked_at, a.lock_reason, (SELECT count(*) FROM authored_cases_m c WHERE c.eval_no = e.eval_no),
    (SELECT count(*) FROM run_evaluations_m r WHERE r.eval_no = e.eval_no),
    (SELECT min(r.created_at) FROM run_evaluations_m r WHERE r.eval_no = e.eval_no)
    FROM evaluations_m e LEFT JOIN authored_m a ON a.eval_no = e.eval_no WHERE e.eval_no = ?1";

/// The evaluation with this number; none where nothing of it is left but the number.
pub(super) fn one(connection: &Connection, eval_no: i64) -> Result<Option<Authored>> {
    let mut statement = connection.prepare_cached(ONE)?;
    let found = statement.query_and_then([eval_no], |row| authored(row, eval_no))?.next().transpose()?;
    let Some(mut found) = found.filter(|found| found.authored || found.runs > 0) else { return Ok(None) };
    if found.runs > 0 && (found.family.is_none() || found.threshold.is_none()) {
        let sql = "SELECT m.info FROM run_evaluations_m m JOIN runs_m r ON r.run_no = m.run_no WHERE m.eval_no = ?1
                   ORDER BY m.created_at DESC, r.run_id DESC LIMIT 1";
        let info: Option<String> = connection.prepare_cached(sql)?.query_row([eval_no], |row| row.get(0)).optional()?;
        let info: EvaluationInfo = info.map_or_else(|| Ok(EvaluationInfo::default()), |info| serde_json::from_str(&info))?;
        found.threshold = found.threshold.or(info.threshold);
        found.family = found.family.or(info.family);
    }
    Ok(Some(found))
}

fn authored(row: &Row<'_>, number: i64) -> Result<Authored> {
    let locked = (row.get::<_, Option<String>>(9)?, deed::maybe_at(row, 10)?, row.get::<_, Option<String>>(11)?);
    let status: Option<i64> = row.get(6)?;
    let made = deed::maybe_at(row, 7)?;
    let seen = deed::maybe_at(row, 14)?;
    Ok(Authored {
        id: row.get(0)?,
        number,
        name: row.get(2)?,
        description: row.get(3)?,
        family: row.get(4)?,
        threshold: row.get(5)?,
        status: status.map_or(Ok(EvaluationStatus::Active), EvaluationStatus::from_code)?,
        authored: row.get(1)?,
        created_at: made.or(seen).unwrap_or_default(),
        created_by: row.get(8)?,
        lock: if let (Some(by), Some(at), Some(reason)) = locked { Some(Lock { by, at, reason }) } else { None },
        cases: row.get(12).map(names::natural)?,
        runs: row.get(13).map(names::natural)?,
    })
}

/// What decides which evaluations are listed, and in which order.
struct Listed {
    number: i64,
    id: String,
    name: Option<String>,
    status: EvaluationStatus,
    created_at: i64,
}

const LIST: &str = "SELECT e.eval_no, e.id, a.name, a.status,
    coalesce(a.created_at, (SELECT min(r.created_at) FROM run_evaluations_m r WHERE r.eval_no = e.eval_no)) AS since
    FROM evaluations_m e LEFT JOIN authored_m a ON a.eval_no = e.eval_no WHERE since IS NOT NULL";

/// Evaluations, newest first, and how many there are without offset and limit.
pub(super) fn list(connection: &Connection, query: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)> {
    let mut found = listed(connection, query)?;
    let part = query.contains.unwrap_or("").to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&part);
    found.retain(|one| {
        query.status.is_none_or(|status| status == one.status)
            && (part.is_empty() || holds(&one.id) || one.name.as_deref().is_some_and(holds))
    });
    found.sort_by_key(|one| std::cmp::Reverse((one.created_at, one.number)));
    let total = found.len() as u64;
    let page = found.into_iter().skip(usize::try_from(query.offset).unwrap_or(usize::MAX)).take(query.limit);
    let rows = page.filter_map(|listed| one(connection, listed.number).transpose()).collect::<Result<_>>()?;
    Ok((rows, total))
}

fn listed(connection: &Connection, query: &AuthoredQuery<'_>) -> Result<Vec<Listed>> {
    let number = match query.id {
        Some(id) => {
            let Some(number) = names::eval_no(connection, id)? else { return Ok(Vec::new()) };
            if query.number.is_some_and(|other| other != number) {
                return Ok(Vec::new());
            }
            Some(number)
        }
        None => query.number,
    };
    let only = if number.is_some() { "AND e.eval_no = ?1" } else { "AND ?1 IS NULL" };
    let mut statement = connection.prepare_cached(&format!("{LIST} {only}"))?;
    let rows = statement.query_and_then([number], |row| -> Result<Listed> {
        let status: Option<i64> = row.get(3)?;
        let status = status.map_or(Ok(EvaluationStatus::Active), EvaluationStatus::from_code)?;
        Ok(Listed { number: row.get(0)?, id: row.get(1)?, name: row.get(2)?, status, created_at: row.get(4)? })
    })?;
    rows.collect()
}

const CASES: &str = "SELECT id, input, expected, metadata, created_at, created_by FROM authored_cases_m WHERE eval_no = ?1";

fn case(row: &Row<'_>) -> Result<AuthoredCase> {
    Ok(AuthoredCase {
        id: row.get(0)?,
        input: row.get(1)?,
        expected: row.get(2)?,
        metadata: deed::pairs(&row.get::<_, String>(3)?)?,
        created_at: deed::at(row, 4)?,
        created_by: row.get(5)?,
    })
}

/// Cases as they were made, and how many there are.
pub(super) fn cases(connection: &Connection, evaluation: &str, offset: u64, limit: usize) -> Result<(Vec<AuthoredCase>, u64)> {
    let Some(eval_no) = names::eval_no(connection, evaluation)? else { return Ok((Vec::new(), 0)) };
    let mut statement = connection.prepare_cached(&format!("{CASES} ORDER BY authored_no LIMIT ?2 OFFSET ?3"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_and_then([eval_no, limit, names::int(offset)], case)?;
    Ok((rows.collect::<Result<_>>()?, count(connection, eval_no)?))
}

/// The number of the last case that there is; 0 where there is none.
pub(super) fn last_case(connection: &Connection, eval_no: i64) -> Result<i64> {
    let sql = "SELECT ifnull(max(authored_no), 0) FROM authored_cases_m WHERE eval_no = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([eval_no], |row| row.get(0))?)
}

/// The cases up to the one with a number.
pub(super) fn cases_up_to(connection: &Connection, eval_no: i64, last_no: i64) -> Result<Vec<AuthoredCase>> {
    let mut statement = connection.prepare_cached(&format!("{CASES} AND authored_no <= ?2 ORDER BY authored_no"))?;
    let rows = statement.query_and_then([eval_no, last_no], case)?;
    rows.collect()
}
