//! Counts and judges the cells of one evaluation in one run.
//!
//! Promises: an evaluation is judged by its threshold, a case by its attempts alone; what is planned and has no record is missing, once.
//! Does not: number attempts, or decide which of them count (`rebuild` does).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::{
    names::{self, Names, Word as _},
    projections,
    rebuild::{Attempt, Log, Place},
    refresh, runs,
};
use crate::{
    domain::{
        cell::{self, Verdict},
        declared::Declared,
        log::EvaluationInfo,
        outcome::Counts,
        planned,
    },
    store::Result,
};

/// The log's word with the project's in place.
pub(super) fn with_declared(declared: &Declared, info: EvaluationInfo) -> EvaluationInfo {
    EvaluationInfo {
        threshold: declared.threshold(&info.id).or(info.threshold),
        family: declared.family(&info.id).map(str::to_owned).or(info.family),
        ..info
    }
}

const NEWEST_INFO: &str = "SELECT e.info FROM logs_m l CROSS JOIN log_evaluations_m e ON e.log_no = l.log_no AND e.eval_no = ?2
    WHERE l.run_no = ?1 ORDER BY l.created_at DESC, l.log_id DESC LIMIT 1";

/// The run's newest word on an evaluation, with the project's in place. From the newest log down, so that it is found at once as a rule.
pub(super) fn newest_info(connection: &Connection, declared: &Declared, run_no: i64, eval_no: i64) -> Result<EvaluationInfo> {
    let info: String = connection.prepare_cached(NEWEST_INFO)?.query_row([run_no, eval_no], |row| row.get(0))?;
    Ok(with_declared(declared, serde_json::from_str(&info)?))
}

/// Writes what a run says of an evaluation.
pub(super) fn put_info(connection: &Connection, run_no: i64, eval_no: i64, info: &EvaluationInfo) -> Result<()> {
    refresh::mark(connection, run_no, eval_no)?;
    let sql = format!(
        "INSERT OR REPLACE INTO run_evaluations_m (run_no, created_at, status, number, eval_no, info) SELECT ?1, *, ?2, ?3 FROM ({})",
        projections::OF_RUN
    );
    connection.prepare_cached(&sql)?.execute(params![run_no, eval_no, serde_json::to_string(info)?])?;
    Ok(())
}

/// Judges an evaluation anew after its declaration changed: no attempt has, and no case is judged by what is declared.
pub(super) fn judge_anew(connection: &Connection, declared: &Declared, run_no: i64, eval_no: i64) -> Result<()> {
    let info = newest_info(connection, declared, run_no, eval_no)?;
    put_info(connection, run_no, eval_no, &info)?;
    let cases = some_cases(connection, run_no, eval_no)?;
    Judge::new(&info, cases.len()).evaluation(connection, run_no, eval_no)
}

/// The first two of the evaluation's cases in the run, which is all that a verdict needs to know of how many there are.
fn some_cases(connection: &Connection, run_no: i64, eval_no: i64) -> Result<BTreeSet<i64>> {
    let sql = "SELECT DISTINCT case_no FROM case_cells_m WHERE run_no = ?1 AND eval_no = ?2 ORDER BY case_no LIMIT 2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([run_no, eval_no], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What judges the cells of an evaluation in a run.
struct Judge {
    threshold: Option<f64>,
    several: bool,
    declared: bool,
}

impl Judge {
    fn new(info: &EvaluationInfo, cases: usize) -> Self {
        let cases = u32::try_from(cases).unwrap_or(u32::MAX).max(info.dataset_cases.unwrap_or(0));
        Self { threshold: cell::threshold(info.threshold, cases), several: cases > 1, declared: info.threshold.is_some() }
    }

    /// The threshold, and the flags (1: several cases, 2: the threshold was declared), of a cell. A case is judged by its attempts alone.
    fn of(&self, table: Table) -> (Option<f64>, i64) {
        let several = i64::from(self.several);
        if table == Table::Cases { (None, several) } else { (self.threshold, several + 2 * i64::from(self.declared)) }
    }

    /// Judges the cells at evaluation grain anew.
    fn evaluation(&self, connection: &Connection, run_no: i64, eval_no: i64) -> Result<()> {
        let sql = "SELECT arm_no, passed, failed, infra, unscored, missing FROM cells_m WHERE run_no = ?1 AND eval_no = ?2";
        let cells: Vec<(i64, Counts)> = {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_and_then([run_no, eval_no], |row| -> Result<_> { Ok((row.get(0)?, runs::counts(row, 1)?)) })?;
            rows.collect::<Result<_>>()?
        };
        let (threshold, flags) = self.of(Table::Evaluations);
        let sql = "UPDATE cells_m SET threshold = ?4, flags = ?5, verdict = ?6 WHERE run_no = ?1 AND eval_no = ?2 AND case_no = 0 AND arm_no = ?3";
        for (arm_no, counts) in cells {
            let verdict = Verdict::judge(counts, threshold).code();
            connection.prepare_cached(sql)?.execute(params![run_no, eval_no, arm_no, threshold, flags, verdict])?;
        }
        Ok(())
    }
}

/// Planned attempts without a record, by arm, from the last log of each task.
pub(super) fn missing(
    connection: &Connection,
    logs: &[Log],
    infos: &[(&Log, EvaluationInfo)],
    attempts: &[Attempt],
) -> Result<BTreeMap<i64, u32>> {
    let last: BTreeMap<&str, i64> = logs.iter().map(|log| (log.task(), log.log_no)).collect();
    let task_of: BTreeMap<i64, &str> = logs.iter().map(|log| (log.log_no, log.task())).collect();
    let mut out = BTreeMap::new();
    for (log, info) in infos.iter().filter(|(log, _)| last.get(log.task()) == Some(&log.log_no)) {
        let mut recorded: BTreeMap<i64, u32> = BTreeMap::new();
        for attempt in attempts.iter().filter(|attempt| task_of.get(&attempt.log_no) == Some(&log.task())) {
            *recorded.entry(attempt.arm_no).or_default() += 1;
        }
        for (arm_no, count) in of_log(connection, log.log_no, info, &recorded)? {
            let sum = out.entry(arm_no).or_insert(0_u32);
            *sum = sum.saturating_add(count);
        }
    }
    Ok(out)
}

/// What one log planned and its task has not recorded, by arm.
fn of_log(connection: &Connection, log_no: i64, info: &EvaluationInfo, recorded: &BTreeMap<i64, u32>) -> Result<Vec<(i64, u32)>> {
    let have = |arm_no: &i64| recorded.get(arm_no).copied().unwrap_or(0);
    if !info.planned_by_arm.is_empty() {
        let mut planned = BTreeMap::<i64, u32>::new();
        for (name, count) in &info.planned_by_arm {
            // An importer lists the arms that it plans for; one that does not has planned nothing for them.
            let Some(arm_no) = names::effective_arm_no(connection, name)? else { continue };
            let sum = planned.entry(arm_no).or_default();
            *sum = sum.saturating_add(*count);
        }
        return Ok(planned
            .into_iter()
            .map(|(arm_no, count)| (arm_no, count.saturating_sub(have(&arm_no))))
            .filter(|(_, left)| *left > 0)
            .collect());
    }
    let Some(planned) = info.planned else { return Ok(Vec::new()) };
    let by_name = candidates(connection, log_no, recorded)?;
    let have: Vec<u32> = by_name.iter().map(have).collect();
    Ok(by_name.into_iter().zip(planned::missing(planned, &have)).collect())
}

/// The arms that a log may have planned attempts for, by name: all of its arms where it has one evaluation; else those with attempts, if any.
fn candidates(connection: &Connection, log_no: i64, recorded: &BTreeMap<i64, u32>) -> Result<Vec<i64>> {
    let sql = "SELECT count(*) FROM log_evaluations_m WHERE log_no = ?1";
    let evaluations: i64 = connection.prepare_cached(sql)?.query_row([log_no], |row| row.get(0))?;
    let mut numbers: BTreeSet<i64> = recorded.keys().copied().collect();
    if evaluations == 1 || numbers.is_empty() {
        let sql = "SELECT a.effective_no FROM log_arms_m la JOIN arms_m a ON a.arm_no = la.arm_no WHERE la.log_no = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([log_no])?;
        while let Some(row) = rows.next()? {
            numbers.insert(row.get(0)?);
        }
    }
    let mut names = Names::arms(connection);
    let named: BTreeMap<String, i64> =
        numbers.into_iter().map(|number| Ok((names.get(number)?.to_owned(), number))).collect::<Result<_>>()?;
    Ok(named.into_values().collect())
}

/// The two grains of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Cases,
    Evaluations,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Cases => "case_cells_m",
            Self::Evaluations => "cells_m",
        }
    }

    /// The statement that writes a row of it.
    fn put(self, connection: &Connection) -> Result<CachedStatement<'_>> {
        Ok(connection.prepare_cached(&format!("INSERT OR REPLACE INTO {} {PUT_CELL}", self.name()))?)
    }
}

const PUT_CELL: &str = "(run_no, eval_no, case_no, arm_no, passed, failed, infra, unscored, missing, threshold, flags, verdict, recorded,
    created_at, run_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// Counts by table, case and arm.
type Tally = BTreeMap<(Table, i64, i64), Counts>;

fn tally(attempts: &[Attempt], missing: &BTreeMap<i64, u32>) -> Tally {
    let mut tally = Tally::new();
    for attempts in attempts.chunk_by(|a, b| a.group() == b.group()) {
        let Some(first) = attempts.first() else { continue };
        let counts = Counts::of(attempts.iter().map(|attempt| attempt.outcome));
        for (table, case_no) in [(Table::Cases, first.case_no), (Table::Evaluations, 0)] {
            let held = tally.entry((table, case_no, first.arm_no)).or_default();
            *held = held.plus(counts);
        }
    }
    for (arm_no, count) in missing.iter().filter(|(_, count)| **count > 0) {
        let counts = tally.entry((Table::Evaluations, 0, *arm_no)).or_default();
        counts.missing = counts.missing.saturating_add(*count);
    }
    tally
}

/// The case of each cell, in order.
fn cases_of(tally: &Tally) -> impl Iterator<Item = i64> {
    tally.keys().filter(|(table, ..)| *table == Table::Cases).map(|(_, case_no, _)| *case_no)
}

/// Writes the cells of an evaluation that has none in the run.
pub(super) fn cells(
    connection: &Connection,
    place: &Place,
    eval_no: i64,
    info: &EvaluationInfo,
    attempts: &[Attempt],
    missing: &BTreeMap<i64, u32>,
) -> Result<()> {
    let tally = tally(attempts, missing);
    // By case: an equal one stands beside.
    let mut cases: Vec<i64> = cases_of(&tally).collect();
    cases.dedup();
    let mut cells = Cells::new(connection, place, eval_no, Judge::new(info, cases.len()))?;
    tally.into_iter().try_for_each(|(at, counts)| cells.put(at, counts))
}

/// Adds to the cells of an evaluation; what was added in all.
pub(super) fn add(
    connection: &Connection,
    place: &Place,
    eval_no: i64,
    info: &EvaluationInfo,
    attempts: &[Attempt],
    missing: &BTreeMap<i64, u32>,
) -> Result<Counts> {
    let tally = tally(attempts, missing);
    let mut cases = some_cases(connection, place.run_no, eval_no)?;
    cases.extend(cases_of(&tally));
    let judge = Judge::new(info, cases.len());
    let (_, flags) = judge.of(Table::Cases);
    let sql = "SELECT flags <> ?3 FROM case_cells_m WHERE run_no = ?1 AND eval_no = ?2 LIMIT 1";
    if connection.prepare_cached(sql)?.query_row([place.run_no, eval_no, flags], |row| row.get(0)).optional()?.unwrap_or(false) {
        // The second case has come: once in an evaluation's life.
        let sql = "UPDATE case_cells_m SET flags = ?3 WHERE run_no = ?1 AND eval_no = ?2";
        connection.prepare_cached(sql)?.execute([place.run_no, eval_no, flags])?;
    }
    let mut added = Counts::default();
    let mut cells = Cells::new(connection, place, eval_no, judge)?;
    for (at, counts) in tally {
        added = if at.0 == Table::Evaluations { added.plus(counts) } else { added };
        cells.put(at, held_counts(connection, place, eval_no, at)?.plus(counts))?;
    }
    cells.judge.evaluation(connection, place.run_no, eval_no)?;
    Ok(added)
}

fn held_counts(connection: &Connection, place: &Place, eval_no: i64, at: (Table, i64, i64)) -> Result<Counts> {
    let (table, case_no, arm_no) = at;
    let sql = format!(
        "SELECT passed, failed, infra, unscored, missing FROM {} WHERE run_no = ?1 AND eval_no = ?2 AND case_no = ?3 AND arm_no = ?4",
        table.name()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query_and_then([place.run_no, eval_no, case_no, arm_no], |row| runs::counts(row, 0))?;
    Ok(rows.next().transpose()?.unwrap_or_default())
}

/// Writes the cells of an evaluation.
struct Cells<'a> {
    place: &'a Place,
    eval_no: i64,
    judge: Judge,
    cases: CachedStatement<'a>,
    evaluations: CachedStatement<'a>,
}

impl<'a> Cells<'a> {
    fn new(connection: &'a Connection, place: &'a Place, eval_no: i64, judge: Judge) -> Result<Self> {
        let (cases, evaluations) = (Table::Cases.put(connection)?, Table::Evaluations.put(connection)?);
        Ok(Self { place, eval_no, judge, cases, evaluations })
    }

    fn put(&mut self, (table, case_no, arm_no): (Table, i64, i64), counts: Counts) -> Result<()> {
        let (threshold, flags) = self.judge.of(table);
        let Counts { passed, failed, infra, unscored, missing } = counts;
        let statement = if table == Table::Cases { &mut self.cases } else { &mut self.evaluations };
        statement.execute(params![
            self.place.run_no,
            self.eval_no,
            case_no,
            arm_no,
            passed,
            failed,
            infra,
            unscored,
            missing,
            threshold,
            flags,
            Verdict::judge(counts, threshold).code(),
            self.place.recorded,
            self.place.created_at,
            self.place.run_id
        ])?;
        Ok(())
    }
}
