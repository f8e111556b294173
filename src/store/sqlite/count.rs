//! Counts and judges the cells of one evaluation in one run.
//!
//! Promises: both grains are judged by one threshold; what is planned and has no record is missing, once.
//! Does not: number attempts, or decide which of them count (`rebuild` does).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::{
    names::{self, Names, Word as _},
    rebuild::{Attempt, Log, Place},
    runs,
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

const NEWEST_INFO: &str = "SELECT e.info FROM logs_m l JOIN log_evaluations_m e ON e.log_no = l.log_no AND e.eval_no = ?2
    WHERE l.run_no = ?1 ORDER BY l.created_at DESC, l.log_id DESC LIMIT 1";

/// Judges the cells of an evaluation anew after its declaration changed: no attempt has, so none is read.
pub(super) fn judge_anew(connection: &Connection, declared: &Declared, run_no: i64, eval_no: i64) -> Result<()> {
    let info: String = connection.prepare_cached(NEWEST_INFO)?.query_row([run_no, eval_no], |row| row.get(0))?;
    let info = with_declared(declared, serde_json::from_str(&info)?);
    let sql = "UPDATE run_evaluations_m SET info = ?3 WHERE run_no = ?1 AND eval_no = ?2";
    connection.prepare_cached(sql)?.execute(params![run_no, eval_no, serde_json::to_string(&info)?])?;
    let sql = "SELECT count(DISTINCT case_no) FROM case_cells_m WHERE run_no = ?1 AND eval_no = ?2";
    let distinct: i64 = connection.prepare_cached(sql)?.query_row([run_no, eval_no], |row| row.get(0))?;
    let cases = names::small(distinct).max(info.dataset_cases.unwrap_or(0));
    let threshold = cell::threshold(info.threshold, cases);
    let flags = flags(&info, cases);
    for table in ["cells_m", "case_cells_m"] {
        let sql =
            format!("SELECT case_no, arm_no, passed, failed, infra, unscored, missing FROM {table} WHERE run_no = ?1 AND eval_no = ?2");
        let cells: Vec<(i64, i64, Counts)> = {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement
                .query_and_then([run_no, eval_no], |row| -> Result<_> { Ok((row.get(0)?, row.get(1)?, runs::counts(row, 2)?)) })?;
            rows.collect::<Result<_>>()?
        };
        let sql = format!(
            "UPDATE {table} SET threshold = ?5, flags = ?6, verdict = ?7 WHERE run_no = ?1 AND eval_no = ?2 AND case_no = ?3 AND arm_no = ?4"
        );
        for (case_no, arm_no, counts) in cells {
            let verdict = Verdict::judge(counts, threshold).code();
            connection.prepare_cached(&sql)?.execute(params![run_no, eval_no, case_no, arm_no, threshold, flags, verdict])?;
        }
    }
    Ok(())
}

/// 1: several cases. 2: the threshold was declared.
fn flags(info: &EvaluationInfo, cases: u32) -> i64 {
    i64::from(cases > 1) + 2 * i64::from(info.threshold.is_some())
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
        let Some(planned) = info.planned else { continue };
        let mut recorded: BTreeMap<i64, u32> = BTreeMap::new();
        for attempt in attempts.iter().filter(|attempt| task_of.get(&attempt.log_no) == Some(&log.task())) {
            *recorded.entry(attempt.arm_no).or_default() += 1;
        }
        let by_name = candidates(connection, log.log_no, &recorded)?;
        let have: Vec<u32> = by_name.iter().map(|arm_no| recorded.get(arm_no).copied().unwrap_or(0)).collect();
        for (arm_no, count) in by_name.into_iter().zip(planned::missing(planned, &have)) {
            let sum = out.entry(arm_no).or_insert(0_u32);
            *sum = sum.saturating_add(count);
        }
    }
    Ok(out)
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

const INSERT_CELL: &str =
    "(run_no, eval_no, case_no, arm_no, passed, failed, infra, unscored, missing, threshold, flags, verdict, recorded,
    created_at, run_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

pub(super) fn cells(
    connection: &Connection,
    place: &Place,
    eval_no: i64,
    info: &EvaluationInfo,
    attempts: &[Attempt],
    missing: &BTreeMap<i64, u32>,
) -> Result<()> {
    let mut by_case: BTreeMap<(i64, i64), Counts> = BTreeMap::new();
    let mut by_arm: BTreeMap<i64, Counts> = BTreeMap::new();
    for attempt in attempts {
        by_case.entry((attempt.case_no, attempt.arm_no)).or_default().add(attempt.outcome);
        by_arm.entry(attempt.arm_no).or_default().add(attempt.outcome);
    }
    for (arm_no, count) in missing.iter().filter(|(_, count)| **count > 0) {
        let counts = by_arm.entry(*arm_no).or_default();
        counts.missing = counts.missing.saturating_add(*count);
    }
    let distinct = by_case.keys().map(|(case_no, _)| case_no).collect::<BTreeSet<_>>().len();
    let cases = u32::try_from(distinct).unwrap_or(u32::MAX).max(info.dataset_cases.unwrap_or(0));
    let threshold = cell::threshold(info.threshold, cases);
    let flags = flags(info, cases);
    let evaluation_cells = by_arm.into_iter().map(|(arm_no, counts)| ("cells_m", 0, arm_no, counts));
    let case_cells = by_case.into_iter().map(|((case_no, arm_no), counts)| ("case_cells_m", case_no, arm_no, counts));
    for (table, case_no, arm_no, counts) in evaluation_cells.chain(case_cells) {
        let Counts { passed, failed, infra, unscored, missing } = counts;
        let verdict = Verdict::judge(counts, threshold).code();
        connection.prepare_cached(&format!("INSERT INTO {table} {INSERT_CELL}"))?.execute(params![
            place.run_no,
            eval_no,
            case_no,
            arm_no,
            passed,
            failed,
            infra,
            unscored,
            missing,
            threshold,
            flags,
            verdict,
            place.recorded,
            place.created_at,
            place.run_id
        ])?;
    }
    Ok(())
}
