//! The helper tables that statistics stand in: what is marked as stale by writes, and worked out anew by one change of its own.
//!
//! Promises: a mark costs a row; what is worked out depends on what is stored and not on the changes that led there (a test works all out
//! from nothing and compares); an evaluation that no write touched is not looked at.
//! Does not: hold a formula (`stats` does), or show anything (the views of 0004_views.sql do).

mod evaluation;
mod measure;
mod part;
mod series;
mod sums;
mod whole;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    rc::Rc,
};

use rusqlite::{Connection, OptionalExtension as _, params};

use self::{part::Numbers, sums::Section, sums::Sums};
use super::names::natural;
use crate::{stats, store::Result};

/// What stands for the arms of a run among the marks.
const ARMS: i64 = 0;

/// Marks an evaluation of a run: its cells, attempts or checks changed.
pub(super) fn mark(connection: &Connection, run_no: i64, eval_no: i64) -> Result<()> {
    connection.prepare_cached("INSERT OR IGNORE INTO stale_m (eval_no, run_no) VALUES (?1, ?2)")?.execute([eval_no, run_no])?;
    Ok(())
}

/// Marks the arms of a run: their roles may have changed.
pub(super) fn mark_arms(connection: &Connection, run_no: i64) -> Result<()> {
    mark(connection, run_no, ARMS)
}

/// Marks all that a run has: whether it counts, its time or its arms' factors changed.
pub(super) fn mark_run(connection: &Connection, run_no: i64) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO stale_m (eval_no, run_no) SELECT eval_no, run_no FROM run_evaluations_m WHERE run_no = ?1";
    connection.prepare_cached(sql)?.execute([run_no])?;
    mark_arms(connection, run_no)
}

/// Whether anything is marked.
pub(super) fn is_stale(connection: &Connection) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM stale_m LIMIT 1")?.exists([])?)
}

/// Tables whose rows of what is marked are all written anew: cleared at once, which costs less than one by one.
const CLEAR: [&str; 4] = [
    "DELETE FROM flaky_m WHERE (run_no, eval_no) IN (SELECT run_no, eval_no FROM stale_m)",
    "DELETE FROM effort_m WHERE eval_no IN (SELECT eval_no FROM stale_m)",
    "DELETE FROM levels_m WHERE eval_no IN (SELECT eval_no FROM stale_m)",
    "DELETE FROM check_rates_m WHERE eval_no IN (SELECT eval_no FROM stale_m)",
];

/// Works out what is marked; whether anything was.
pub(super) fn apply(connection: &Connection) -> Result<bool> {
    if !is_stale(connection)? {
        return Ok(false);
    }
    let mut numbers = Numbers::default();
    let marks: Vec<(i64, i64)> = {
        let mut statement =
            connection.prepare_cached("SELECT eval_no, run_no FROM stale_m WHERE eval_no <> ?1 ORDER BY eval_no, run_no")?;
        let rows = statement.query_map([ARMS], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for sql in CLEAR {
        connection.prepare_cached(sql)?.execute([])?;
    }
    for marks in marks.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((eval_no, _)) = marks.first() else { continue };
        let changed = add_up(connection, &mut numbers, *eval_no, marks.iter().map(|(_, run_no)| *run_no))?;
        evaluation::write(connection, *eval_no, &changed)?;
        series::write(connection, *eval_no, &changed)?;
    }
    whole::write(connection)?;
    connection.prepare_cached("DELETE FROM stale_m")?.execute([])?;
    Ok(true)
}

/// What the marked runs made of an evaluation's sums.
pub(super) struct Changed {
    /// The sums now.
    sums: Sums,
    /// The arms in a part that came or went.
    arms: BTreeMap<i64, Touched>,
    /// The arm and the factors of each variant in the sums.
    variants: BTreeMap<i64, Rc<Variant>>,
}

/// The runs whose part of an arm came or went.
#[derive(Debug, Clone, Default)]
struct Touched {
    runs: BTreeSet<i64>,
    /// Whether one of them counted before: what was worked out from older runs may hold it, wherever it stands now.
    counted: bool,
}

/// An arm as some runs had it.
struct Variant {
    arm_no: i64,
    factors: BTreeMap<String, String>,
}

/// Brings the parts and the sums of an evaluation up to date. Sums are of the parts that were measured as the newest was.
fn add_up(connection: &Connection, numbers: &mut Numbers, eval_no: i64, runs: impl Iterator<Item = i64>) -> Result<Changed> {
    let (mut sums, before) = held_sums(connection, eval_no)?;
    let (mut arms, mut variants) = (BTreeMap::<i64, Touched>::new(), BTreeMap::new());
    know(connection, numbers, &mut variants, &sums)?;
    let (mut changes, none) = (Vec::new(), Sums::default());
    for run_no in runs {
        let old = measure::held(connection, eval_no, run_no)?;
        let new = part::read(connection, numbers, run_no, eval_no)?;
        know(connection, numbers, &mut variants, &old.part)?;
        know(connection, numbers, &mut variants, &new)?;
        flaky(connection, [run_no, eval_no], &new, &variants)?;
        let part = if numbers.counts(connection, run_no)? { new } else { Sums::default() };
        let measure_no = if part.is_empty() { measure::UNKNOWN } else { measure::number(connection, numbers, [run_no, eval_no], &part)? };
        let new = measure::Held { run_no, apart: measure::apart(connection, measure_no, before)?, measure_no, part };
        measure::put(connection, eval_no, &new)?;
        // Even where the part is as it was: the run may stand at another time now.
        for (part, counted) in [(&old.part, true), (&new.part, false)] {
            for variant in part.of(Section::Cases).filter_map(|([variant, ..], _)| variants.get(&variant)) {
                let touched = arms.entry(variant.arm_no).or_default();
                touched.runs.insert(run_no);
                touched.counted |= counted;
            }
        }
        changes.push((old, new));
    }
    let newest = measure::newest(connection, eval_no)?;
    if newest == before {
        for (old, new) in changes {
            sums.subtract(if old.apart { &none } else { &old.part });
            sums.add(if new.apart { &none } else { &new.part });
        }
    } else {
        sums = measure::anew(connection, eval_no, newest)?;
        know(connection, numbers, &mut variants, &sums)?;
        // What was worked out of any arm may hold what is apart now.
        variants.values().for_each(|variant| arms.entry(variant.arm_no).or_default().counted = true);
    }
    put_sums(connection, eval_no, &sums, newest)?;
    Ok(Changed { sums, arms, variants })
}

/// The sums as they were last worked out, and the way of measuring that they are of.
fn held_sums(connection: &Connection, eval_no: i64) -> Result<(Sums, i64)> {
    let sql = "SELECT data, measure_no FROM sums_m WHERE eval_no = ?1";
    let held: Option<(Vec<u8>, i64)> =
        connection.prepare_cached(sql)?.query_row([eval_no], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    held.map_or_else(|| Ok((Sums::default(), measure::UNKNOWN)), |(data, measure_no)| Ok((Sums::unpacked(&data)?, measure_no)))
}

/// The newest run's word on the evaluation's family. From the newest run down, so that it is found at once as a rule.
const FAMILY: &str =
    "SELECT json_extract(m.info, '$.family') FROM runs_m r CROSS JOIN run_evaluations_m m ON m.run_no = r.run_no AND m.eval_no = ?1
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1";

fn put_sums(connection: &Connection, eval_no: i64, sums: &Sums, measure_no: i64) -> Result<()> {
    if sums.is_empty() {
        connection.prepare_cached("DELETE FROM sums_m WHERE eval_no = ?1")?.execute([eval_no])?;
        return Ok(());
    }
    let family: Option<String> = connection.prepare_cached(FAMILY)?.query_row([eval_no], |row| row.get(0)).optional()?.flatten();
    let sql = "INSERT OR REPLACE INTO sums_m (eval_no, family, data, measure_no) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![eval_no, family, sums.packed(), measure_no])?;
    Ok(())
}

/// Looks up the variants that are not known yet.
fn know(connection: &Connection, numbers: &mut Numbers, variants: &mut BTreeMap<i64, Rc<Variant>>, sums: &Sums) -> Result<()> {
    for ([number, ..], _) in sums.of(Section::Cases) {
        if let Entry::Vacant(free) = variants.entry(number) {
            free.insert(numbers.known(connection, number)?);
        }
    }
    Ok(())
}

/// Writes the flip rate of each of the run's cells that has one above 0: the mean over the cases that were counted twice or more.
fn flaky(connection: &Connection, [run_no, eval_no]: [i64; 2], part: &Sums, variants: &BTreeMap<i64, Rc<Variant>>) -> Result<()> {
    let mut rates = BTreeMap::<i64, Vec<f64>>::new();
    for ([variant, ..], [passed, counted]) in part.of(Section::Cases) {
        let Some(variant) = variants.get(&variant) else { continue };
        rates.entry(variant.arm_no).or_default().extend(stats::flip_rate(natural(passed), natural(counted)));
    }
    let sql = "INSERT INTO flaky_m (run_no, eval_no, arm_no, flip_rate) VALUES (?1, ?2, ?3, ?4)";
    for (arm_no, rates) in rates {
        let sum: f64 = rates.iter().sum();
        if sum > 0.0 {
            connection.prepare_cached(sql)?.execute(params![run_no, eval_no, arm_no, sum / rates.len() as f64])?;
        }
    }
    Ok(())
}

/// Passed and counted attempts, or answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    counted: u64,
}

impl Tally {
    fn add(&mut self, [passed, counted]: [i64; 2]) {
        self.passed = self.passed.saturating_add(natural(passed));
        self.counted = self.counted.saturating_add(natural(counted));
    }

    fn rate(self) -> f64 {
        self.passed as f64 / self.counted as f64
    }
}

/// Tallies by case.
type Cases = BTreeMap<i64, Tally>;

fn together(cases: &Cases) -> Tally {
    let sum = |all: Tally, one: &Tally| Tally { passed: all.passed + one.passed, counted: all.counted + one.counted };
    cases.values().fold(Tally::default(), sum)
}

/// The interval of a rate over cases, as two columns.
fn interval_of(cases: &Cases) -> [Option<f64>; 2] {
    let cases: Vec<(u64, u64)> = cases.values().map(|tally| (tally.passed, tally.counted)).collect();
    ends(stats::clustered_rate(&cases))
}

fn ends(interval: Option<stats::Interval>) -> [Option<f64>; 2] {
    [interval.map(|interval| interval.low), interval.map(|interval| interval.high)]
}

/// The cases of two sides as pairs; those that only one side counted are no pairs.
fn pairs(head: &Cases, base: &Cases) -> Vec<stats::PairedCase> {
    let pair = |(case, head): (&i64, &Tally)| {
        let base = base.get(case)?;
        Some(stats::PairedCase {
            head: head.rate(),
            base: base.rate(),
            head_attempts: head.counted,
            base_attempts: base.counted,
            group: None,
        })
    };
    head.iter().filter_map(pair).collect()
}
