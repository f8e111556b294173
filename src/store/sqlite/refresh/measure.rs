//! Which parts are added up: those of runs that measured the evaluation as its newest run that counts did.
//!
//! Promises: another dataset, scorer, judge or sampling than the newest run's is never added up with it; what either does not say is no
//! difference; a change of the newest run's way works the sums out anew, and nothing else does.
//! Does not: say what makes two ways differ (`domain::comparable` does).

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    part::{self, Numbers},
    sums::{Section, Sums},
};
use crate::{
    domain::{comparable::Measure, log::EvaluationInfo},
    store::Result,
};

/// What stands for a way that nothing is known of.
pub(super) const UNKNOWN: i64 = 0;

/// A part as it is kept.
pub(super) struct Held {
    pub run_no: i64,
    pub part: Sums,
    pub measure_no: i64,
    pub apart: bool,
}

/// The part of a run as it was last worked out; empty where there is none.
pub(super) fn held(connection: &Connection, eval_no: i64, run_no: i64) -> Result<Held> {
    let sql = "SELECT data, measure_no, apart FROM parts_m WHERE eval_no = ?1 AND run_no = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found: Option<(Vec<u8>, i64, bool)> =
        statement.query_row([eval_no, run_no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    let Some((data, measure_no, apart)) = found else {
        return Ok(Held { run_no, part: Sums::default(), measure_no: UNKNOWN, apart: false });
    };
    Ok(Held { run_no, part: Sums::unpacked(&data)?, measure_no, apart })
}

/// Keeps a part; an empty one is none.
pub(super) fn put(connection: &Connection, eval_no: i64, held: &Held) -> Result<()> {
    if held.part.is_empty() {
        connection.prepare_cached("DELETE FROM parts_m WHERE eval_no = ?1 AND run_no = ?2")?.execute([eval_no, held.run_no])?;
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO parts_m (eval_no, run_no, data, measure_no, apart) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute(params![eval_no, held.run_no, held.part.packed(), held.measure_no, held.apart])?;
    Ok(())
}

/// The number of the way that a run measured an evaluation; its judges are those of the arms in its part.
pub(super) fn number(connection: &Connection, numbers: &mut Numbers, [run_no, eval_no]: [i64; 2], part: &Sums) -> Result<i64> {
    let sql = "SELECT info FROM run_evaluations_m WHERE run_no = ?1 AND eval_no = ?2";
    let info: Option<String> = connection.prepare_cached(sql)?.query_row([run_no, eval_no], |row| row.get(0)).optional()?;
    let info: EvaluationInfo = info.map_or_else(|| Ok(EvaluationInfo::default()), |info| serde_json::from_str(&info))?;
    let mut variants: Vec<i64> = part.of(Section::Cases).map(|([variant, ..], _)| variant).collect();
    variants.dedup();
    let arms = variants.into_iter().map(|variant| numbers.known(connection, variant)).collect::<Result<Vec<_>>>()?;
    let measure = Measure::of(&info, arms.iter().map(|arm| &arm.factors));
    if measure == Measure::default() {
        return Ok(UNKNOWN);
    }
    let text = serde_json::to_string(&measure)?;
    let held = connection.prepare_cached("SELECT measure_no FROM measures_m WHERE measure = ?1")?;
    part::given(connection, held, "INSERT INTO measures_m (measure) VALUES (?1)", params![text])
}

/// From the newest run down, so that it is found at once as a rule.
const NEWEST: &str = "SELECT p.measure_no FROM runs_m r CROSS JOIN parts_m p ON p.run_no = r.run_no AND p.eval_no = ?1
    ORDER BY r.created_at DESC, r.run_id DESC LIMIT 1";

/// The way of the newest run with a part.
pub(super) fn newest(connection: &Connection, eval_no: i64) -> Result<i64> {
    Ok(connection.prepare_cached(NEWEST)?.query_row([eval_no], |row| row.get(0)).optional()?.unwrap_or(UNKNOWN))
}

/// Whether what was measured in one way may not be added up with another.
pub(super) fn apart(connection: &Connection, one: i64, other: i64) -> Result<bool> {
    if one == other || one == UNKNOWN || other == UNKNOWN {
        return Ok(false);
    }
    let read = |number: i64| -> Result<Measure> {
        let sql = "SELECT measure FROM measures_m WHERE measure_no = ?1";
        let text: String = connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
        Ok(serde_json::from_str(&text)?)
    };
    Ok(!read(one)?.agrees(&read(other)?))
}

/// Every part of an evaluation.
const PARTS: &str = "SELECT m.run_no FROM run_evaluations_m m WHERE m.eval_no = ?1 ORDER BY m.run_no";

/// Works out anew what is apart from `newest`, and the sums of what is not.
pub(super) fn anew(connection: &Connection, eval_no: i64, newest: i64) -> Result<Sums> {
    let runs: Vec<i64> = {
        let mut statement = connection.prepare_cached(PARTS)?;
        let rows = statement.query_map([eval_no], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut sums = Sums::default();
    for run_no in runs {
        let held = held(connection, eval_no, run_no)?;
        if held.part.is_empty() {
            continue;
        }
        let apart = apart(connection, held.measure_no, newest)?;
        if apart != held.apart {
            let sql = "UPDATE parts_m SET apart = ?3 WHERE eval_no = ?1 AND run_no = ?2";
            connection.prepare_cached(sql)?.execute(params![eval_no, run_no, apart])?;
        }
        if !apart {
            sums.add(&held.part);
        }
    }
    Ok(sums)
}
