//! Reads the runs of one evaluation by page, and keeps the order that they are read in.
//!
//! Promises: a page costs what it shows, wherever in the list it stands; all of it is of one state.
//! Does not: know cursors.

use rusqlite::{Connection, ToSql, params};

use super::{names, runs};
use crate::{
    domain::{log::Source, outcome::Counts},
    store::{
        CheckMean, Error, Projection, ProjectionArm, ProjectionPage, ProjectionPlace, ProjectionQuery, ProjectionSort, Result, Run, Said,
        SaidByLog,
    },
};

/// What a run's evaluations repeat of it, for the order.
pub(super) const OF_RUN: &str =
    "SELECT created_at, CASE status WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'completed'
    WHEN 4 THEN 'failed' ELSE 'cancelled' END, ifnull(number, 0) FROM runs_m WHERE run_no = ?1";

/// Puts the run's evaluations where the run now stands.
pub(super) fn moved(connection: &Connection, run_no: i64) -> Result<()> {
    let sql = format!("UPDATE run_evaluations_m SET (created_at, status, number) = ({OF_RUN}) WHERE run_no = ?1");
    connection.prepare_cached(&sql)?.execute([run_no])?;
    Ok(())
}

/// The key that is the project's own.
pub(super) fn cursor_key(connection: &Connection) -> Result<[u8; 32]> {
    let sql = "SELECT value FROM meta WHERE name = 'cursor_key'";
    let key: Vec<u8> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    key.try_into().map_err(|_| Error::Damaged)
}

/// The page; none where the project has never seen the evaluation.
pub(super) fn page(connection: &Connection, query: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>> {
    let Some(eval_no) = names::eval_no(connection, query.evaluation)? else { return Ok(None) };
    // In the order in which they are found, which is from the place on: backwards where the page before it is asked for.
    let descending = query.descending != query.back;
    let mut found = beyond(connection, eval_no, query, query.from, descending, query.limit.saturating_add(1))?;
    let further = found.len() > query.limit;
    found.truncate(query.limit);
    let mut rows = found.into_iter().map(|run_no| projection(connection, run_no, eval_no)).collect::<Result<Vec<_>>>()?;
    let behind = match (query.from, rows.first()) {
        // The list begins here.
        (None, _) => false,
        (Some(_), Some(first)) => {
            let place = ProjectionPlace::of(&first.run);
            !beyond(connection, eval_no, query, Some(place), !descending, 1)?.is_empty()
        }
        (Some(place), None) => !beyond(connection, eval_no, query, Some(place.after(descending)), !descending, 1)?.is_empty(),
    };
    let (before, after) = if query.back { (further, behind) } else { (behind, further) };
    if query.back {
        rows.reverse();
    }
    Ok(Some(ProjectionPage { rows, before, after }))
}

/// The numbers of the runs from a place on, nearest first.
fn beyond(
    connection: &Connection,
    eval_no: i64,
    query: &ProjectionQuery<'_>,
    from: Option<ProjectionPlace>,
    descending: bool,
    limit: usize,
) -> Result<Vec<i64>> {
    let (direction, than) = if descending { ("DESC", "<") } else { ("ASC", ">") };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The order and the bound are those of an index, so that a late page is one seek and not a walk to it.
    let (columns, places) = match query.sort {
        ProjectionSort::CreatedAt => ("created_at, number", "?3, ?4"),
        ProjectionSort::Status => ("status, created_at, number", "?5, ?3, ?4"),
    };
    let bound = if from.is_some() { format!("AND ({columns}) {than} ({places})") } else { String::new() };
    let order = columns.replace(',', &format!(" {direction},"));
    let sql = format!("SELECT run_no FROM run_evaluations_m WHERE eval_no = ?1 {bound} ORDER BY {order} {direction} LIMIT ?2");
    let place = from.map(|place| (place.created_at.millis(), place.number, place.status.word()));
    let (at, number, word) = place.map_or((0, 0, ""), |place| place);
    let values: [&dyn ToSql; 5] = [&eval_no, &limit, &at, &number, &word];
    let used = match (from, query.sort) {
        (None, _) => 2,
        (Some(_), ProjectionSort::CreatedAt) => 4,
        (Some(_), ProjectionSort::Status) => 5,
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(values.get(..used).unwrap_or_default(), |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn projection(connection: &Connection, run_no: i64, eval_no: i64) -> Result<Projection> {
    let run: Run = runs::numbered(connection, run_no)?.ok_or(Error::Damaged)?;
    let (mut arms, counts) = tried(connection, run_no, eval_no)?;
    if arms.is_empty() {
        arms = of_run(connection, run_no)?;
    }
    let checks = if run.status.ended() { checks(connection, run_no, eval_no)? } else { Vec::new() };
    Ok(Projection { arms, source: source(connection, run_no, eval_no)?, counts, checks, said: said(connection, run_no)?, run })
}

/// Where the run has the evaluation from.
fn source(connection: &Connection, run_no: i64, eval_no: i64) -> Result<Option<Source>> {
    let sql = "SELECT info ->> '$.source' FROM run_evaluations_m WHERE run_no = ?1 AND eval_no = ?2";
    let text: Option<String> = connection.prepare_cached(sql)?.query_row([run_no, eval_no], |row| row.get(0))?;
    Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
}

const TRIED: &str = "SELECT a.name, m.role, c.passed, c.failed, c.infra, c.unscored, c.missing FROM cells_m c
    CROSS JOIN arms_m a ON a.arm_no = c.arm_no LEFT JOIN run_arms_m m ON m.run_no = c.run_no AND m.arm_no = c.arm_no
    WHERE c.run_no = ?1 AND c.eval_no = ?2 ORDER BY a.name";

/// The arms that tried the evaluation, and the sum of their counts.
fn tried(connection: &Connection, run_no: i64, eval_no: i64) -> Result<(Vec<ProjectionArm>, Counts)> {
    let mut statement = connection.prepare_cached(TRIED)?;
    let mut rows = statement.query([run_no, eval_no])?;
    let (mut arms, mut sum) = (Vec::new(), Counts::default());
    while let Some(row) = rows.next()? {
        arms.push(ProjectionArm { name: row.get(0)?, role: row.get(1)? });
        sum = sum.plus(runs::counts(row, 2)?);
    }
    Ok((arms, sum))
}

fn of_run(connection: &Connection, run_no: i64) -> Result<Vec<ProjectionArm>> {
    let sql = "SELECT a.name, m.role FROM run_arms_m m CROSS JOIN arms_m a ON a.arm_no = m.arm_no WHERE m.run_no = ?1 ORDER BY a.name";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([run_no], |row| Ok(ProjectionArm { name: row.get(0)?, role: row.get(1)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Outcomes 0, 1 and 3: passed, failed, and measured without being judged.
const CHECKS: &str = "SELECT name, avg(mean), count(*), sum(answers) FROM (
    SELECT k.name AS name, avg(coalesce(k.value, k.passed)) AS mean, count(*) AS answers
    FROM attempts_m a CROSS JOIN checks_m k ON k.attempt_no = a.attempt_no
    WHERE a.run_no = ?1 AND a.eval_no = ?2 AND a.n IS NOT NULL AND a.outcome IN (0, 1, 3) AND coalesce(k.value, k.passed) IS NOT NULL
    GROUP BY k.name, a.case_no) GROUP BY name ORDER BY name";

fn checks(connection: &Connection, run_no: i64, eval_no: i64) -> Result<Vec<CheckMean>> {
    let mut statement = connection.prepare_cached(CHECKS)?;
    let rows = statement.query_and_then([run_no, eval_no], |row| -> Result<CheckMean> {
        Ok(CheckMean { name: row.get(0)?, mean: row.get(1)?, cases: names::natural(row.get(2)?), answers: names::natural(row.get(3)?) })
    })?;
    rows.collect()
}

/// Of a header only what is wanted is read: of a log of many evaluations the rest is long.
fn said(connection: &Connection, run_no: i64) -> Result<Said> {
    let mut statement = connection.prepare_cached("SELECT header FROM logs_m WHERE run_no = ?1 ORDER BY created_at, log_id")?;
    let mut rows = statement.query(params![run_no])?;
    let mut logs: Vec<SaidByLog> = Vec::new();
    while let Some(row) = rows.next()? {
        logs.push(serde_json::from_str(row.get_ref(0)?.as_str().map_err(|_| Error::Damaged)?)?);
    }
    Ok(Said::together(logs))
}
