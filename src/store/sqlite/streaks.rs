//! Tells how series stood before a run: what its cells are a continuation of.
//!
//! Promises: three index seeks per series and one for the run's own cell, in one statement; one more for each row of verdicts that has a
//! beginning to be found. 10,000 series are asked about at once.
//! Does not: look at scratch runs, but for the run's own cells.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::{
    cells,
    names::{self, ByNumber, Word as _},
};
use crate::{
    domain::{
        cell::{CellKey, Grain, Verdict},
        time::Timestamp,
    },
    store::{Error, Result, RunPoint, Streak},
};

const COUNTED: [Verdict; 3] = [Verdict::Pass, Verdict::Fail, Verdict::Mixed];

pub(super) fn read(connection: &Connection, run: &RunPoint, grain: Grain, keys: &[CellKey]) -> Result<Vec<Streak>> {
    let mut reader = Reader::new(connection, run, grain)?;
    keys.iter().map(|key| reader.streak(key)).collect()
}

/// Numbers of a series: evaluation, case, arm.
type Series = [i64; 3];

/// The last cell of each counted verdict before the run, and the run's own verdict.
struct Before {
    last: [Option<RunPoint>; 3],
    own: Option<Verdict>,
}

impl Before {
    /// The newest of the verdicts' last cells.
    fn newest(&self, of: impl Fn(Verdict) -> bool) -> Option<(Verdict, &RunPoint)> {
        let found = COUNTED.into_iter().zip(&self.last).filter(|(verdict, _)| of(*verdict));
        found.filter_map(|(verdict, last)| Some((verdict, last.as_ref()?))).max_by_key(|(_, last)| at(last))
    }

    /// The verdict's last cell, where it comes after `start`.
    fn after(&self, verdict: Verdict, start: Option<&RunPoint>) -> Option<&RunPoint> {
        let (_, last) = self.newest(|other| other == verdict)?;
        start.is_none_or(|start| at(last) > at(start)).then_some(last)
    }
}

fn at(run: &RunPoint) -> (i64, &str) {
    (run.created_at.millis(), &run.run_id)
}

/// What is the same for every key.
struct Reader<'a> {
    connection: &'a Connection,
    grain: Grain,
    run: &'a RunPoint,
    run_no: Option<i64>,
    before: CachedStatement<'a>,
    first: CachedStatement<'a>,
    case: CachedStatement<'a>,
    evaluations: HashMap<String, Option<i64>>,
    arms: HashMap<String, Option<i64>>,
    runs: ByNumber<RunPoint>,
}

/// The last cell of each counted verdict before a run, and the verdict of the run's own. Numbers of runs: their places are few and kept.
fn before_sql(table: &str) -> String {
    let last = |verdict: Verdict| {
        format!(
            "(SELECT c.run_no FROM {table} c WHERE c.recorded = 1 AND c.eval_no = ?1 AND c.case_no = ?2 AND c.arm_no = ?3 AND c.verdict = {}
             AND (c.created_at, c.run_id) < (?4, ?5) ORDER BY c.created_at DESC, c.run_id DESC LIMIT 1)",
            verdict.code()
        )
    };
    let [pass, fail, mixed] = COUNTED.map(last);
    let own = format!("(SELECT c.verdict FROM {table} c WHERE c.run_no = ?6 AND c.eval_no = ?1 AND c.case_no = ?2 AND c.arm_no = ?3)");
    format!("SELECT {pass}, {fail}, {mixed}, {own}")
}

fn first_sql(table: &str) -> String {
    format!(
        "SELECT c.run_no FROM {table} c WHERE c.recorded = 1 AND c.eval_no = ?1 AND c.case_no = ?2 AND c.arm_no = ?3 AND c.verdict = ?4
         AND (c.created_at, c.run_id) > (?5, ?6) ORDER BY c.created_at, c.run_id LIMIT 1"
    )
}

impl<'a> Reader<'a> {
    fn new(connection: &'a Connection, run: &'a RunPoint, grain: Grain) -> Result<Self> {
        let table = cells::table(grain);
        Ok(Self {
            connection,
            grain,
            run,
            run_no: names::run_no(connection, &run.run_id)?,
            before: connection.prepare_cached(&before_sql(table))?,
            first: connection.prepare_cached(&first_sql(table))?,
            case: connection.prepare_cached("SELECT case_no FROM cases_m WHERE eval_no = ?1 AND id = ?2")?,
            evaluations: HashMap::new(),
            arms: HashMap::new(),
            runs: ByNumber::default(),
        })
    }

    fn streak(&mut self, key: &CellKey) -> Result<Streak> {
        let Some(series) = self.series(key)? else { return Ok(Streak::default()) };
        let before = self.before(series)?;
        let last_pass = before.newest(|verdict| verdict == Verdict::Pass).map(|(_, run)| run);
        Ok(Streak {
            previous: before.newest(|_| true).map(|(verdict, run)| (verdict, run.clone())),
            last_pass: last_pass.cloned(),
            failing_since: self.failing_since(series, &before, last_pass)?,
            failed_before: before.newest(|verdict| verdict != Verdict::Pass).is_some(),
            verdict_since: self.verdict_since(series, &before)?,
        })
    }

    /// The series of a key; none where nothing of it was ever stored, or where it is of the other grain.
    fn series(&mut self, key: &CellKey) -> Result<Option<Series>> {
        let connection = self.connection;
        let eval_no = known(&mut self.evaluations, &key.evaluation, |id| names::eval_no(connection, id))?;
        let arm_no = known(&mut self.arms, &key.arm, |name| names::arm_no(connection, name))?;
        let (Some(eval_no), Some(arm_no)) = (eval_no, arm_no) else { return Ok(None) };
        let case_no = match (self.grain, &key.case) {
            (Grain::Evaluation, None) => Some(0),
            (Grain::Case, Some(case)) => self.case.query_row(params![eval_no, case], |row| row.get(0)).optional()?,
            _ => None,
        };
        Ok(case_no.map(|case_no| [eval_no, case_no, arm_no]))
    }

    fn before(&mut self, [eval_no, case_no, arm_no]: Series) -> Result<Before> {
        let (created_at, run_id) = at(self.run);
        let (numbers, own) = self.before.query_row(params![eval_no, case_no, arm_no, created_at, run_id, self.run_no], |row| {
            Ok(([row.get::<_, Option<i64>>(0)?, row.get(1)?, row.get(2)?], row.get::<_, Option<i64>>(3)?))
        })?;
        let mut last = [None, None, None];
        for (place, number) in last.iter_mut().zip(numbers) {
            *place = number.map(|number| self.place(number)).transpose()?;
        }
        Ok(Before { last, own: own.map(Verdict::from_code).transpose()? })
    }

    fn place(&mut self, run_no: i64) -> Result<RunPoint> {
        if let Some(place) = self.runs.get(&run_no) {
            return Ok(place.clone());
        }
        let mut statement = self.connection.prepare_cached("SELECT created_at, run_id FROM runs_m WHERE run_no = ?1")?;
        let place = statement
            .query_row([run_no], |row| Ok(RunPoint { created_at: Timestamp::from_millis(row.get(0)?), run_id: row.get(1)? }))
            .optional()?
            .ok_or(Error::Damaged)?;
        self.runs.insert(run_no, place.clone());
        Ok(place)
    }

    /// The first run of a verdict after `start`, where the verdict comes after it at all.
    fn first(&mut self, series: Series, before: &Before, verdict: Verdict, start: Option<&RunPoint>) -> Result<Option<RunPoint>> {
        if before.after(verdict, start).is_none() {
            return Ok(None);
        }
        let [eval_no, case_no, arm_no] = series;
        let (created_at, run_id) = start.map_or((i64::MIN, ""), at);
        let values = params![eval_no, case_no, arm_no, verdict.code(), created_at, run_id];
        let number: Option<i64> = self.first.query_row(values, |row| row.get(0)).optional()?;
        number.map(|number| self.place(number)).transpose()
    }

    /// The first run after the last pass that did not pass.
    fn failing_since(&mut self, series: Series, before: &Before, last_pass: Option<&RunPoint>) -> Result<Option<RunPoint>> {
        let failed = self.first(series, before, Verdict::Fail, last_pass)?;
        let mixed = self.first(series, before, Verdict::Mixed, last_pass)?;
        Ok(failed.into_iter().chain(mixed).min_by(|a, b| at(a).cmp(&at(b))))
    }

    /// The first run of the row of cells that have the given run's verdict; that run itself where its cell is not counted.
    fn verdict_since(&mut self, series: Series, before: &Before) -> Result<Option<RunPoint>> {
        let Some(own) = before.own else { return Ok(None) };
        let other = before.newest(|verdict| verdict != own).map(|(_, run)| run);
        let first = if own.counted() { self.first(series, before, own, other)? } else { None };
        Ok(Some(first.unwrap_or_else(|| self.run.clone())))
    }
}

fn known(held: &mut HashMap<String, Option<i64>>, name: &str, find: impl FnOnce(&str) -> Result<Option<i64>>) -> Result<Option<i64>> {
    if let Some(number) = held.get(name) {
        return Ok(*number);
    }
    let number = find(name)?;
    held.insert(name.to_owned(), number);
    Ok(number)
}
