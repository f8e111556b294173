//! Follows a series (one evaluation by one arm, or one case of it) over the recorded runs.
//!
//! Promises: a fixed number of index seeks per series, however many runs are stored.
//! Does not: look at scratch runs, or tell how a series came to be so (`streaks` does).

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    cells::{self, Keys, Raw},
    names::{self, Word as _},
};
use crate::{
    domain::{
        cell::{CellKey, Grain, Verdict},
        time::Timestamp,
    },
    store::{Pick, Point, PointQuery, Result, RunPoint},
};

const COUNTED: [Verdict; 3] = [Verdict::Pass, Verdict::Fail, Verdict::Mixed];
/// Sorts after every run id, so that "after this instant" is a place in the order too.
const AFTER_ALL: &str = "\u{10ffff}\u{10ffff}";

#[derive(Clone, Copy)]
struct Series {
    grain: Grain,
    eval_no: i64,
    case_no: i64,
    arm_no: i64,
}

/// A place in the order of runs.
type At<'a> = (i64, &'a str);

struct Found {
    run_no: i64,
    run: RunPoint,
}

impl Found {
    fn at(&self) -> At<'_> {
        (self.run.created_at.millis(), &self.run.run_id)
    }
}

/// How to seek.
struct Seek<'a> {
    connection: &'a Connection,
    series: Series,
    /// A bit per status that the run may have; 0 for any.
    statuses: i64,
}

impl Seek<'_> {
    /// The last cell before `end` with one of the verdicts.
    fn last(&self, verdicts: &[Verdict], end: At<'_>) -> Result<Option<Found>> {
        let mut best: Option<Found> = None;
        for verdict in verdicts {
            let found = self.seek(*verdict, "<", end, "DESC")?;
            best = match (best, found) {
                (Some(a), Some(b)) => Some(if b.at() > a.at() { b } else { a }),
                (a, b) => a.or(b),
            };
        }
        Ok(best)
    }

    /// The first cell after `start` with one of the verdicts.
    fn first(&self, verdicts: &[Verdict], start: At<'_>) -> Result<Option<Found>> {
        let mut best: Option<Found> = None;
        for verdict in verdicts {
            let found = self.seek(*verdict, ">", start, "ASC")?;
            best = match (best, found) {
                (Some(a), Some(b)) => Some(if b.at() < a.at() { b } else { a }),
                (a, b) => a.or(b),
            };
        }
        Ok(best)
    }

    fn seek(&self, verdict: Verdict, side: &str, (at, id): At<'_>, order: &str) -> Result<Option<Found>> {
        let Series { grain, eval_no, case_no, arm_no } = self.series;
        let sql = format!(
            "SELECT c.run_no, c.created_at, c.run_id FROM {} c WHERE c.recorded = 1 AND c.eval_no = ?1 AND c.case_no = ?2 AND c.arm_no = ?3
             AND c.verdict = ?4 AND (c.created_at, c.run_id) {side} (?5, ?6)
             AND (?7 = 0 OR (SELECT 1 << r.status FROM runs_m r WHERE r.run_no = c.run_no) & ?7)
             ORDER BY c.created_at {order}, c.run_id {order} LIMIT 1",
            cells::table(grain)
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_row(params![eval_no, case_no, arm_no, verdict.code(), at, id, self.statuses], |row| {
            let run = RunPoint { created_at: Timestamp::from_millis(row.get(1)?), run_id: row.get(2)? };
            Ok(Found { run_no: row.get(0)?, run })
        });
        Ok(found.optional()?)
    }
}

/// The series of a key; none where nothing of it was ever stored, or where it is of the other grain.
fn series(connection: &Connection, grain: Grain, key: &CellKey) -> Result<Option<Series>> {
    let Some(eval_no) = names::eval_no(connection, &key.evaluation)? else { return Ok(None) };
    let Some(arm_no) = names::arm_no(connection, &key.arm)? else { return Ok(None) };
    let case_no = match (grain, &key.case) {
        (Grain::Evaluation, None) => Some(0),
        (Grain::Case, Some(case)) => names::case_no(connection, eval_no, case)?,
        _ => None,
    };
    Ok(case_no.map(|case_no| Series { grain, eval_no, case_no, arm_no }))
}

pub(super) fn points(connection: &Connection, query: &PointQuery<'_>) -> Result<Vec<Point>> {
    let verdicts: &[Verdict] = if query.counted { &COUNTED } else { &Verdict::ALL };
    let statuses =
        query.statuses.iter().fold(0_i64, |bits, status| bits | 1_i64.checked_shl(u32::try_from(status.code()).unwrap_or(63)).unwrap_or(0));
    let grain = if query.keys.is_some() { query.grain } else { Grain::Evaluation };
    let mut keys = Keys::new(connection, grain);
    let mut out = BTreeMap::new();
    for series in wanted(connection, query, grain)? {
        let seek = Seek { connection, series, statuses };
        let found = match query.pick {
            Pick::Newest => seek.last(verdicts, (i64::MAX, AFTER_ALL))?,
            Pick::NewestUpTo(time) => seek.last(verdicts, (time.millis(), AFTER_ALL))?,
            Pick::OldestAfter(time) => seek.first(verdicts, (time.millis(), AFTER_ALL))?,
        };
        if let Some(found) = found {
            let raw = cell(connection, series, found.run_no)?;
            let key = keys.get(&raw)?;
            out.insert(key.clone(), Point { cell: raw.named(key, found.run.run_id.clone()), run: found.run });
        }
    }
    Ok(out.into_values().collect())
}

fn cell(connection: &Connection, series: Series, run_no: i64) -> Result<Raw> {
    let Series { grain, eval_no, case_no, arm_no } = series;
    let sql = format!(
        "SELECT {} FROM {} WHERE run_no = ?1 AND eval_no = ?2 AND case_no = ?3 AND arm_no = ?4",
        cells::COLUMNS,
        cells::table(grain)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then([run_no, eval_no, case_no, arm_no], Raw::read)?.next().unwrap_or(Err(crate::store::Error::Damaged))
}

fn wanted(connection: &Connection, query: &PointQuery<'_>, grain: Grain) -> Result<Vec<Series>> {
    let part = query.evaluation_contains.map(str::to_lowercase);
    let Some(keys) = query.keys else {
        return all(connection, query.evaluation_contains.unwrap_or(""));
    };
    let mut out = Vec::new();
    for key in keys.iter().filter(|key| part.as_ref().is_none_or(|part| key.evaluation.to_lowercase().contains(part))) {
        out.extend(series(connection, grain, key)?);
    }
    Ok(out)
}

/// Every series at evaluation grain, by leaps over the index: two seeks per evaluation and arm.
fn all(connection: &Connection, part: &str) -> Result<Vec<Series>> {
    let sql = "SELECT arm_no FROM cells_m WHERE recorded = 1 AND eval_no = ?1 AND case_no = 0 AND arm_no > ?2 ORDER BY arm_no LIMIT 1";
    let mut out = Vec::new();
    for (eval_no, _) in names::evaluations_containing(connection, part)? {
        let mut arm_no = 0;
        while let Some(next) = connection.prepare_cached(sql)?.query_row([eval_no, arm_no], |row| row.get(0)).optional()? {
            arm_no = next;
            out.push(Series { grain: Grain::Evaluation, eval_no, case_no: 0, arm_no });
        }
    }
    Ok(out)
}
