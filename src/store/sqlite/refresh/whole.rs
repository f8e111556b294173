//! The helper tables over all evaluations: roles of arms, lift of families, effects of factors. Worked out whole from what each evaluation
//! has, which is a row or two of it.
//!
//! Promises: an evaluation counts once, however many cases it has; what one evaluation alone says has no interval.
//! Does not: look at runs or attempts, but for the newest word on an arm.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::{ends, natural};
use crate::{stats, store::Result};

/// Writes the tables.
pub(super) fn write(connection: &Connection) -> Result<()> {
    roles(connection)?;
    families(connection)?;
    factors(connection)
}

/// Each arm's role as its newest run has it. From the newest run down, so that it is found at once as a rule.
const ROLES: &str = "INSERT INTO arm_roles_m (arm_no, role) SELECT arm_no, role FROM (SELECT a.arm_no, (
        SELECT m.role FROM runs_m r CROSS JOIN run_arms_m m ON m.run_no = r.run_no AND m.arm_no = a.arm_no
        ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1) AS role FROM arms_m a) WHERE role IS NOT NULL";

fn roles(connection: &Connection) -> Result<()> {
    connection.prepare_cached("DELETE FROM arm_roles_m")?.execute([])?;
    connection.prepare_cached(ROLES)?.execute([])?;
    Ok(())
}

const LIFTS: &str = "SELECT s.family, k.arm_a, k.arm_b, k.eval_no, k.difference FROM contrasts_m k
    JOIN arm_roles_m a ON a.arm_no = k.arm_a AND a.role = 'variant' JOIN arm_roles_m b ON b.arm_no = k.arm_b AND b.role = 'control'
    JOIN sums_m s ON s.eval_no = k.eval_no WHERE s.family IS NOT NULL AND k.difference IS NOT NULL ORDER BY k.eval_no";

fn families(connection: &Connection) -> Result<()> {
    connection.prepare_cached("DELETE FROM family_lift_m")?.execute([])?;
    let mut lifts = BTreeMap::<(String, i64, i64), Vec<(i64, f64)>>::new();
    let mut statement = connection.prepare_cached(LIFTS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        lifts.entry((row.get(0)?, row.get(1)?, row.get(2)?)).or_default().push((row.get(3)?, row.get(4)?));
    }
    let sql = "INSERT INTO family_lift_m (family, treatment_no, control_no, lift, se, ci_low, ci_high, n_evaluations)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    for ((family, treatment, control), lifts) in lifts {
        let Mean { mean, se, ends: [low, high] } = Mean::of(&lifts);
        let values = params![family, treatment, control, mean, se, low, high, lifts.len() as i64];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// A mean over evaluations.
struct Mean {
    mean: f64,
    se: Option<f64>,
    ends: [Option<f64>; 2],
}

impl Mean {
    /// Of one difference of rates from each evaluation; there is at least one.
    fn of(differences: &[(i64, f64)]) -> Self {
        let sum: f64 = differences.iter().map(|(_, difference)| difference).sum();
        let found = stats::clustered_mean(differences);
        let interval = found.and_then(|found| found.interval).map(|interval| interval.clamped(-1.0, 1.0));
        Self { mean: sum / differences.len() as f64, se: found.map(|found| found.se), ends: ends(interval) }
    }
}

/// A level of a factor over the evaluations that have it.
#[derive(Default)]
struct Level {
    passed: u64,
    counted: u64,
    differences: Vec<(i64, f64)>,
}

fn factors(connection: &Connection) -> Result<()> {
    connection.prepare_cached("DELETE FROM factor_effects_m")?.execute([])?;
    let mut levels = BTreeMap::<(String, String), Level>::new();
    let sql = "SELECT factor, level, eval_no, passed, counted, difference FROM levels_m ORDER BY eval_no";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let level = levels.entry((row.get(0)?, row.get(1)?)).or_default();
        level.passed += natural(row.get(3)?);
        level.counted += natural(row.get(4)?);
        let (eval_no, difference): (i64, Option<f64>) = (row.get(2)?, row.get(5)?);
        level.differences.extend(difference.map(|difference| (eval_no, difference)));
    }
    let sql = "INSERT INTO factor_effects_m (factor, level, n, rate, effect, ci_low, ci_high, n_evaluations)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    for ((factor, name), level) in levels {
        let found = (!level.differences.is_empty()).then(|| Mean::of(&level.differences));
        let [low, high] = found.as_ref().map_or([None, None], |found| found.ends);
        connection.prepare_cached(sql)?.execute(params![
            factor,
            name,
            level.counted as i64,
            level.passed as f64 / level.counted as f64,
            found.map(|found| found.mean),
            low,
            high,
            level.differences.len() as i64
        ])?;
    }
    Ok(())
}
