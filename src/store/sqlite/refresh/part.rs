//! A part: what the counted attempts of one run at one evaluation say, as sums.
//!
//! Promises: only attempts that count and passed or failed; money is held in billionths of a dollar and durations to three digits, so that
//! sums are whole numbers and the same in whatever order they are added.
//! Does not: decide which runs are added up (`refresh` does).

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    Variant,
    sums::{Building, Section, Sums},
};
use crate::{
    domain::{
        attempt::{COST_USD_MAX, FIGURE_MAX},
        log::{Kind, RunStatus},
    },
    store::{Result, sqlite::names::Word as _},
};

/// Parts of a dollar that costs are held in.
const COST_STEPS: f64 = 1e9;

/// Each attempt with each of its checks that answered, or with none.
const ATTEMPTS: &str =
    "SELECT a.attempt_no, a.case_no, a.arm_no, a.outcome, a.cost_usd, a.input_tokens, a.output_tokens, a.messages, a.duration_ms, k.name, k.passed
    FROM attempts_m a LEFT JOIN checks_m k ON k.attempt_no = a.attempt_no AND k.passed IS NOT NULL
    WHERE a.run_no = ?1 AND a.eval_no = ?2 AND a.n > 0 AND a.outcome <= 1";

/// Numbers that were given or looked up, kept through one refresh.
#[derive(Default)]
pub(super) struct Numbers {
    checks: HashMap<String, i64>,
    /// By run and arm.
    variants: HashMap<(i64, i64), i64>,
    known: BTreeMap<i64, Rc<Variant>>,
    counting: HashMap<i64, bool>,
}

impl Numbers {
    fn check(&mut self, connection: &Connection, name: &str) -> Result<i64> {
        if let Some(number) = self.checks.get(name) {
            return Ok(*number);
        }
        let held = connection.prepare_cached("SELECT check_no FROM check_names_m WHERE name = ?1")?;
        let number = given(connection, held, "INSERT INTO check_names_m (name) VALUES (?1)", params![name])?;
        self.checks.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The number of an arm with the factors that it has in this run.
    fn variant(&mut self, connection: &Connection, run_no: i64, arm_no: i64) -> Result<i64> {
        if let Some(number) = self.variants.get(&(run_no, arm_no)) {
            return Ok(*number);
        }
        let sql = "SELECT factors FROM run_arms_m WHERE run_no = ?1 AND arm_no = ?2";
        let factors: Option<String> = connection.prepare_cached(sql)?.query_row([run_no, arm_no], |row| row.get(0)).optional()?;
        let factors = factors.unwrap_or_else(|| "{}".to_owned());
        let held = connection.prepare_cached("SELECT variant_no FROM variants_m WHERE arm_no = ?1 AND factors = ?2")?;
        let number = given(connection, held, "INSERT INTO variants_m (arm_no, factors) VALUES (?1, ?2)", params![arm_no, factors])?;
        self.variants.insert((run_no, arm_no), number);
        Ok(number)
    }

    /// What a variant is.
    pub(super) fn known(&mut self, connection: &Connection, number: i64) -> Result<Rc<Variant>> {
        if let Some(known) = self.known.get(&number) {
            return Ok(known.clone());
        }
        let sql = "SELECT arm_no, factors FROM variants_m WHERE variant_no = ?1";
        let (arm_no, factors): (i64, String) = connection.prepare_cached(sql)?.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let variant = Rc::new(Variant { arm_no, factors: serde_json::from_str(&factors)? });
        self.known.insert(number, variant.clone());
        Ok(variant)
    }

    /// Whether a run is recorded and completed, and so counts across runs.
    pub(super) fn counts(&mut self, connection: &Connection, run_no: i64) -> Result<bool> {
        if let Some(counts) = self.counting.get(&run_no) {
            return Ok(*counts);
        }
        let sql = "SELECT 1 FROM runs_m WHERE run_no = ?1 AND kind = ?2 AND status = ?3";
        let counts = connection.prepare_cached(sql)?.exists([run_no, Kind::Recorded.code(), RunStatus::Completed.code()])?;
        self.counting.insert(run_no, counts);
        Ok(counts)
    }
}

/// The number that a row has, or is given now.
pub(super) fn given(
    connection: &Connection,
    mut held: rusqlite::CachedStatement<'_>,
    insert: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<i64> {
    if let Some(number) = held.query_row(values, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    connection.prepare_cached(insert)?.execute(values)?;
    Ok(connection.last_insert_rowid())
}

/// Reads the part of a run.
pub(super) fn read(connection: &Connection, numbers: &mut Numbers, run_no: i64, eval_no: i64) -> Result<Sums> {
    let mut sums = Building::default();
    let mut statement = connection.prepare_cached(ATTEMPTS)?;
    let mut rows = statement.query([run_no, eval_no])?;
    let mut open = Answers::default();
    while let Some(row) = rows.next()? {
        let (attempt_no, case_no, arm_no): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // The rows of an attempt stand together: it is the outer one of the join.
        if open.attempt_no != attempt_no {
            open.put(&mut sums);
            open = Answers { attempt_no, arm_no, case_no, answers: Vec::new() };
            let variant = numbers.variant(connection, run_no, arm_no)?;
            attempt(row, &mut sums, [variant, case_no])?;
        }
        if let Some(passed) = row.get::<_, Option<i64>>(10)? {
            open.answers.push((numbers.check(connection, row.get_ref(9)?.as_str().unwrap_or_default())?, passed));
        }
    }
    open.put(&mut sums);
    Ok(sums.done())
}

/// What an attempt says besides its checks.
fn attempt(row: &rusqlite::Row<'_>, sums: &mut Building, [variant, case_no]: [i64; 2]) -> Result<()> {
    let passed = i64::from(row.get::<_, i64>(3)? == 0);
    sums.put(Section::Cases, [variant, case_no, 0, 0], [passed, 1]);
    let cost: Option<f64> = row.get(4)?;
    // A transcript without a conversation says nothing of turns.
    let turns = Some(row.get::<_, i64>(7)?).filter(|turns| *turns > 0);
    let figures = [cost.map(|cost| (cost * COST_STEPS).round() as i64), row.get(5)?, row.get(6)?, turns];
    for (place, figure) in (0_i64..).zip(figures) {
        // What an older version kept may be beyond belief; a newer one keeps no such figure.
        if let Some(figure) = figure.filter(|figure| (0..=figure_max(place)).contains(figure)) {
            sums.put(Section::Usage, [variant, place, 0, 0], [figure, 1]);
        }
    }
    if let Some(duration) = row.get::<_, Option<i64>>(8)? {
        sums.put(Section::Durations, [variant, three_digits(duration), 0, 0], [1, 0]);
    }
    Ok(())
}

/// The most that a figure of [`Section::Usage`] can be of one attempt.
fn figure_max(place: i64) -> i64 {
    let cost = (COST_USD_MAX * COST_STEPS) as i64;
    if place == 0 { cost } else { i64::try_from(FIGURE_MAX).unwrap_or(i64::MAX) }
}

/// The mean of a figure that `n` attempts have; none where there are so many that their sum may have passed what is held.
pub(super) fn mean(place: i64, [sum, n]: [i64; 2]) -> Option<f64> {
    figure_max(place).checked_mul(n)?;
    let scale = if place == 0 { COST_STEPS } else { 1.0 };
    (n > 0).then(|| sum as f64 / scale / n as f64)
}

/// The checks of one attempt that answered.
#[derive(Default)]
struct Answers {
    attempt_no: i64,
    arm_no: i64,
    case_no: i64,
    answers: Vec<(i64, i64)>,
}

impl Answers {
    /// Each answer, and beside it how the attempt's other checks answered.
    fn put(&self, sums: &mut Building) {
        let (passed, all) = (self.answers.iter().map(|(_, passed)| passed).sum::<i64>(), self.answers.len() as i64);
        for (check_no, answer) in &self.answers {
            sums.put(Section::Checks, [self.arm_no, *check_no, self.case_no, 0], [*answer, 1]);
            if all > 1 {
                sums.put(Section::Rests, [*check_no, *answer, passed - answer, all - 1], [1, 0]);
            }
        }
    }
}

/// A duration with its first three digits kept, so that however long a history grows, few different ones are held.
fn three_digits(millis: i64) -> i64 {
    let mut step = 1_i64;
    while millis / step >= 1000 {
        step *= 10;
    }
    // Half a step up; what lies beside the largest number is that number.
    millis.saturating_add(step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::{figure_max, mean, three_digits};

    #[test]
    fn means_are_of_sums_that_cannot_have_wrapped() {
        assert_eq!((mean(0, [3_000_000_000, 2]), mean(1, [7, 2]), mean(2, [0, 0])), (Some(1.5), Some(3.5), None));
        for place in [0, 1] {
            let most = i64::MAX / figure_max(place);
            assert!(most > 900_000 && mean(place, [figure_max(place) * most, most]).is_some() && mean(place, [5, most + 1]).is_none());
        }
    }

    #[test]
    fn three_digits_are_kept() {
        for (millis, kept) in [(0, 0), (7, 7), (999, 999), (1000, 1000), (1004, 1000), (1005, 1010), (9996, 10_000), (123_456, 123_000)] {
            assert_eq!(three_digits(millis), kept, "{millis}");
        }
        assert!(three_digits(i64::MAX) > 9_000_000_000_000_000_000 && three_digits(-5) == -5);
    }
}
