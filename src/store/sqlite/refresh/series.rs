//! The helper tables of one evaluation that follow the time: drift of an arm, streaks of its checks.
//!
//! Promises: only arms that a changed run has are looked at, from their newest run back, and no further than drift and streaks reach; a streak
//! that newer runs only lengthen is lengthened, without being counted again.
//! Does not: look at runs that do not count across runs.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::{Cases, Changed, Touched, pairs, sums::Packed, sums::Section, together};
use crate::{stats, store::Result};

/// The runs, from the newest, that drift is about.
const RUNS: usize = 10;

/// Writes the tables.
pub(super) fn write(connection: &Connection, eval_no: i64, changed: &Changed) -> Result<()> {
    for (arm_no, touched) in &changed.arms {
        let arm = Arm { connection, eval_no, arm_no: *arm_no, changed };
        arm.write(touched.clone())?;
    }
    Ok(())
}

/// The runs that count an arm, newest first, with their parts. What was measured in another way than the newest run did is passed over.
const PARTS: &str =
    "SELECT c.run_no, p.data FROM cells_m c CROSS JOIN parts_m p ON p.run_no = c.run_no AND p.eval_no = c.eval_no AND p.apart = 0
    WHERE c.recorded = 1 AND c.eval_no = ?1 AND c.arm_no = ?2 ORDER BY c.created_at DESC, c.run_id DESC";

struct Arm<'a> {
    connection: &'a Connection,
    eval_no: i64,
    arm_no: i64,
    changed: &'a Changed,
}

/// A streak of a check, from its newest run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Streak {
    passing: bool,
    runs: i64,
    since: i64,
    last: i64,
}

impl Arm<'_> {
    fn write(&self, touched: Touched) -> Result<()> {
        let known = self.known()?;
        let mut open: BTreeMap<i64, Option<Streak>> = self.checks().map(|check_no| (check_no, None)).collect();
        let (mut ended, mut newest, none) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut unmet = touched.runs;
        let mut statement = self.connection.prepare_cached(PARTS)?;
        let mut rows = statement.query([self.eval_no, self.arm_no])?;
        while newest.len() < RUNS || !open.is_empty() {
            let Some(row) = rows.next()? else { break };
            let run_no: i64 = row.get(0)?;
            let part = row.get_ref(1)?.as_blob().unwrap_or_default();
            let changed = unmet.remove(&run_no);
            if newest.len() < RUNS {
                newest.extend(Some(self.cases(part)?).filter(|cases| !cases.is_empty()));
            }
            if !open.is_empty() {
                // Once every changed run has been met, what was known of older ones still holds, unless it holds one that stood there.
                let held = if unmet.is_empty() && !changed && !touched.counted { &known } else { &none };
                self.lengthen(&mut open, &mut ended, run_no, part, held)?;
            }
        }
        ended.extend(open.into_iter().filter_map(|(check, streak)| Some((check, streak?))));
        self.put_streaks(&known, &ended)?;
        self.put_drift(&newest)
    }

    /// The checks that the arm's runs have answered.
    fn checks(&self) -> impl Iterator<Item = i64> {
        let own = self.changed.sums.of(Section::Checks).filter(|([arm_no, ..], _)| *arm_no == self.arm_no);
        own.map(|([_, check_no, ..], _)| check_no)
    }

    fn cases(&self, part: &[u8]) -> Result<Cases> {
        let mut out = Cases::new();
        for row in Packed::of(Section::Cases, part) {
            let ([variant, case, ..], values) = row?;
            if self.changed.variants.get(&variant).is_some_and(|variant| variant.arm_no == self.arm_no) {
                out.entry(case).or_default().add(values);
            }
        }
        Ok(out)
    }

    /// Adds an older run to the streaks that are still open, and closes those that it ends.
    fn lengthen(
        &self,
        open: &mut BTreeMap<i64, Option<Streak>>,
        ended: &mut BTreeMap<i64, Streak>,
        run_no: i64,
        part: &[u8],
        known: &BTreeMap<i64, Streak>,
    ) -> Result<()> {
        let mut answers = BTreeMap::<i64, [i64; 2]>::new();
        for row in Packed::of(Section::Checks, part) {
            let ([arm_no, check_no, ..], [passed, n]) = row?;
            if arm_no == self.arm_no {
                let [held_passed, held_n] = answers.entry(check_no).or_default();
                (*held_passed, *held_n) = (*held_passed + passed, *held_n + n);
            }
        }
        for (check_no, [passed, n]) in answers {
            let Some(streak) = open.get_mut(&check_no) else { continue };
            let passing = passed == n;
            let known = known.get(&check_no).filter(|known| known.last == run_no);
            let held = *streak.get_or_insert(Streak { passing, runs: 0, since: run_no, last: run_no });
            if held.passing != passing {
                ended.insert(check_no, held);
                open.remove(&check_no);
            } else if let Some(known) = known {
                ended.insert(check_no, Streak { runs: held.runs + known.runs, since: known.since, ..held });
                open.remove(&check_no);
            } else {
                *streak = Some(Streak { runs: held.runs + 1, since: run_no, ..held });
            }
        }
        Ok(())
    }

    /// The streaks as they were last worked out, by check.
    fn known(&self) -> Result<BTreeMap<i64, Streak>> {
        let sql = "SELECT check_no, passing, streak, since_run_no, last_run_no FROM check_streaks_m WHERE eval_no = ?1 AND arm_no = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([self.eval_no, self.arm_no], |row| {
            Ok((row.get(0)?, Streak { passing: row.get(1)?, runs: row.get(2)?, since: row.get(3)?, last: row.get(4)? }))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn put_streaks(&self, known: &BTreeMap<i64, Streak>, now: &BTreeMap<i64, Streak>) -> Result<()> {
        let delete = "DELETE FROM check_streaks_m WHERE eval_no = ?1 AND arm_no = ?2 AND check_no = ?3";
        for check_no in known.keys().filter(|check_no| !now.contains_key(check_no)) {
            self.connection.prepare_cached(delete)?.execute([self.eval_no, self.arm_no, *check_no])?;
        }
        let sql = "INSERT OR REPLACE INTO check_streaks_m (eval_no, arm_no, check_no, passing, streak, since_run_no, last_run_no)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        for (check_no, Streak { passing, runs, since, last }) in now {
            let values = params![self.eval_no, self.arm_no, check_no, passing, runs, since, last];
            self.connection.prepare_cached(sql)?.execute(values)?;
        }
        Ok(())
    }

    /// The newer half of the newest runs against the older half.
    fn put_drift(&self, newest: &[Cases]) -> Result<()> {
        if newest.len() < 2 {
            let delete = "DELETE FROM drift_m WHERE eval_no = ?1 AND arm_no = ?2";
            self.connection.prepare_cached(delete)?.execute([self.eval_no, self.arm_no])?;
            return Ok(());
        }
        let (recent, earlier) = newest.split_at(newest.len() / 2);
        let [recent, earlier] = [recent, earlier].map(|runs| super::evaluation::merged(runs.iter()));
        let found = stats::paired(&pairs(&recent, &earlier));
        let (now, before) = (together(&recent), together(&earlier));
        let sql = "INSERT OR REPLACE INTO drift_m (eval_no, arm_no, runs, earlier_rate, recent_rate, change, p_value, n_earlier, n_recent)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.eval_no,
            self.arm_no,
            newest.len() as i64,
            before.rate(),
            now.rate(),
            found.map(|found| found.difference),
            found.map(|found| found.p),
            before.counted as i64,
            now.counted as i64
        ])?;
        Ok(())
    }
}
