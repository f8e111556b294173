//! What the catalog's views read: evaluations with their datasets, cases, arms, rounds, scores, and whether the file is sound.
//!
//! Promises: each is one pass over an index or a table that is as small as what is shown; a hundred thousand cells are added up and not listed.
//! Does not: search (`search` does) or judge.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    Sqlite,
    names::{self, ByNumber, Names, Word as _},
    runs, search,
};
use crate::{
    domain::{
        log::{ArmInfo, RunStatus},
        time::Timestamp,
    },
    store::{ArmTotal, Catalog, Dataset, Error, Found, Item, ItemText, Kind, Result, Round, RunPoint, Score, SearchQuery, Totals},
};

impl Catalog for Sqlite {
    fn totals(&self) -> Result<Totals> {
        self.read(totals)
    }

    fn datasets(&self) -> Result<Vec<Dataset>> {
        self.read(datasets)
    }

    fn items(&self, evaluation: &str) -> Result<Vec<Item>> {
        self.read(|connection| items(connection, evaluation, self.text))
    }

    fn item_text(&self, evaluation: &str, case: &str) -> Result<Option<ItemText>> {
        if self.text { self.read(|connection| item_text(connection, evaluation, case)) } else { Ok(None) }
    }

    fn arm_totals(&self) -> Result<Vec<ArmTotal>> {
        self.read(arm_totals)
    }

    fn rounds(&self) -> Result<Vec<Round>> {
        self.read(rounds)
    }

    fn scores(&self, run: &str, evaluation: Option<&str>, check: Option<&str>) -> Result<Vec<Score>> {
        self.read(|connection| scores(connection, run, evaluation, check))
    }

    fn search(&self, query: &SearchQuery<'_>) -> Result<Found> {
        self.searchable()?;
        self.read(|connection| search::find(connection, query, self.text))
    }

    fn integrity(&self) -> Result<Vec<String>> {
        self.read(integrity)
    }

    fn known_p(&self, key: &str) -> Option<f64> {
        self.kept.as_ref()?.known(key)
    }

    fn keep_p(&self, key: &str, p: f64) {
        if let Some(kept) = &self.kept {
            kept.keep(key, p);
        }
    }
}

fn totals(connection: &Connection) -> Result<Totals> {
    let sql = "SELECT kind, count(*), min(created_at), max(created_at), sum(passed), sum(failed), sum(infra), sum(unscored), sum(missing)
               FROM runs_m GROUP BY kind";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut out = Totals::default();
    while let Some(row) = rows.next()? {
        let (count, oldest, newest) = (names::natural(row.get(1)?), names::time(row.get(2)?), names::time(row.get(3)?));
        match Kind::from_code(row.get(0)?)? {
            Kind::Recorded => (out.recorded, out.counts) = (count, runs::counts(row, 4)?),
            Kind::Scratch => out.scratch = count,
        }
        out.oldest = [out.oldest, oldest].into_iter().flatten().min();
        out.newest = [out.newest, newest].into_iter().flatten().max();
    }
    Ok(out)
}

/// The runs' places in time, by number.
fn points(connection: &Connection) -> Result<ByNumber<RunPoint>> {
    let mut statement = connection.prepare_cached("SELECT run_no, created_at, run_id FROM runs_m")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, RunPoint { created_at: Timestamp::from_millis(row.get(1)?), run_id: row.get(2)? }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn age(point: &RunPoint) -> (Timestamp, &str) {
    (point.created_at, &point.run_id)
}

/// How many runs hold something, and the newest of them.
struct Held {
    runs: u64,
    run_no: i64,
}

/// By number of the thing: the runs that hold it. `sql` gives its number and the run's.
fn held(connection: &Connection, sql: &str, points: &ByNumber<RunPoint>) -> Result<BTreeMap<i64, Held>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut out = BTreeMap::<i64, Held>::new();
    while let Some(row) = rows.next()? {
        let (number, run_no): (i64, i64) = (row.get(0)?, row.get(1)?);
        let Some(point) = points.get(&run_no) else { continue };
        let held = out.entry(number).or_insert(Held { runs: 0, run_no });
        held.runs += 1;
        if points.get(&held.run_no).is_some_and(|newest| age(newest) < age(point)) {
            held.run_no = run_no;
        }
    }
    Ok(out)
}

pub(super) fn datasets(connection: &Connection) -> Result<Vec<Dataset>> {
    let points = points(connection)?;
    let held = held(connection, "SELECT eval_no, run_no FROM run_evaluations_m ORDER BY eval_no, run_no", &points)?;
    let mut info = connection.prepare_cached("SELECT info FROM run_evaluations_m WHERE run_no = ?1 AND eval_no = ?2")?;
    let mut tried = connection.prepare_cached("SELECT count(DISTINCT case_no) FROM case_cells_m WHERE run_no = ?1 AND eval_no = ?2")?;
    let mut out = Vec::with_capacity(held.len());
    for (eval_no, Held { runs, run_no }) in held {
        let text: String = info.query_row([run_no, eval_no], |row| row.get(0))?;
        out.push(Dataset {
            number: eval_no,
            info: serde_json::from_str(&text)?,
            runs,
            tried: names::natural(tried.query_row([run_no, eval_no], |row| row.get(0))?),
            newest: points.get(&run_no).cloned().ok_or(Error::Damaged)?,
        });
    }
    out.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    Ok(out)
}

/// Cases that some run tried: those of recorded runs stand in one index.
pub(super) const TRIED: &str = "(EXISTS (SELECT 1 FROM case_cells_m k WHERE k.recorded = 1 AND k.eval_no = c.eval_no AND k.case_no = c.case_no)
    OR EXISTS (SELECT 1 FROM run_evaluations_m r JOIN case_cells_m k ON k.run_no = r.run_no AND k.eval_no = r.eval_no AND k.case_no = c.case_no
        WHERE r.eval_no = c.eval_no))";

fn items(connection: &Connection, evaluation: &str, text: bool) -> Result<Vec<Item>> {
    let Some(eval_no) = names::eval_no(connection, evaluation)? else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT c.id, length(c.input), length(c.target),
            (SELECT g.name FROM case_groups_m g CROSS JOIN logs_m l ON l.log_no = g.log_no WHERE g.case_no = c.case_no
             ORDER BY l.created_at DESC, l.log_id DESC LIMIT 1)
         FROM cases_m c WHERE c.eval_no = ?1 AND {TRIED} ORDER BY c.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([eval_no], |row| {
        let chars = |at| row.get::<_, Option<i64>>(at).map(|chars| chars.filter(|_| text).map(names::natural));
        Ok(Item { case: row.get(0)?, input_chars: chars(1)?, target_chars: chars(2)?, group: row.get(3)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn item_text(connection: &Connection, evaluation: &str, case: &str) -> Result<Option<ItemText>> {
    let Some(eval_no) = names::eval_no(connection, evaluation)? else { return Ok(None) };
    let sql = format!("SELECT c.input, c.target FROM cases_m c WHERE c.eval_no = ?1 AND c.id = ?2 AND {TRIED}");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row(params![eval_no, case], |row| Ok(ItemText { input: row.get(0)?, target: row.get(1)? }));
    Ok(found.optional()?)
}

fn arm_totals(connection: &Connection) -> Result<Vec<ArmTotal>> {
    let points = points(connection)?;
    let held = held(connection, "SELECT arm_no, run_no FROM run_arms_m", &points)?;
    // In the order of the index, which holds all that is added up.
    let sql = "SELECT arm_no, sum(passed), sum(failed), sum(infra), sum(unscored), sum(missing) FROM cells_m INDEXED BY cells_by_time
               WHERE recorded = 1 GROUP BY eval_no, arm_no";
    let mut sums = BTreeMap::<i64, (u64, crate::domain::outcome::Counts)>::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (evaluations, counts) = sums.entry(row.get(0)?).or_default();
        (*evaluations, *counts) = (*evaluations + 1, counts.plus(runs::counts(row, 1)?));
    }
    let mut arm = connection.prepare_cached("SELECT role, factors FROM run_arms_m WHERE run_no = ?1 AND arm_no = ?2")?;
    let mut names = Names::arms(connection);
    let mut out = Vec::new();
    for (arm_no, Held { runs, run_no }) in held {
        let (role, factors): (Option<String>, String) = arm.query_row([run_no, arm_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let info = ArmInfo { name: names.get(arm_no)?.to_owned(), role, factors: serde_json::from_str(&factors)? };
        let (evaluations, counts) = sums.get(&arm_no).copied().unwrap_or_default();
        out.push(ArmTotal { info, runs, evaluations, counts, newest: points.get(&run_no).cloned().ok_or(Error::Damaged)? });
    }
    out.sort_by(|a, b| a.info.name.cmp(&b.info.name));
    Ok(out)
}

fn rounds(connection: &Connection) -> Result<Vec<Round>> {
    let sql = "SELECT round, run_id, created_at, status, passed, failed, infra, unscored, missing FROM runs_m WHERE round IS NOT NULL
               ORDER BY created_at, run_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut out = BTreeMap::<String, Round>::new();
    while let Some(row) = rows.next()? {
        let round: String = row.get(0)?;
        let point = RunPoint { run_id: row.get(1)?, created_at: Timestamp::from_millis(row.get(2)?) };
        let ended = RunStatus::from_code(row.get(3)?)?.ended();
        let counts = runs::counts(row, 4)?;
        let held = out.entry(round.clone()).or_insert_with(|| Round {
            round,
            runs: 0,
            unended: 0,
            counts: crate::domain::outcome::Counts::default(),
            oldest: point.clone(),
            newest: point.clone(),
        });
        (held.runs, held.unended, held.counts) = (held.runs + 1, held.unended + u64::from(!ended), held.counts.plus(counts));
        held.newest = point;
    }
    let mut out: Vec<Round> = out.into_values().collect();
    out.sort_by(|a, b| age(&b.newest).cmp(&age(&a.newest)).then_with(|| a.round.cmp(&b.round)));
    Ok(out)
}

const SCORES: &str =
    "SELECT a.eval_no, a.case_no, a.arm_no, k.name, max(k.kind), count(coalesce(k.value, k.passed)), total(coalesce(k.value, k.passed)),
        count(k.passed), ifnull(sum(k.passed), 0)
    FROM attempts_m a CROSS JOIN checks_m k ON k.attempt_no = a.attempt_no
    WHERE a.run_no = ?1 AND a.n IS NOT NULL AND a.outcome IN (0, 1) AND (?2 IS NULL OR k.name = ?2)";
const SCORES_BY: &str = "GROUP BY a.eval_no, a.case_no, a.arm_no, k.name";

fn scores(connection: &Connection, run: &str, evaluation: Option<&str>, check: Option<&str>) -> Result<Vec<Score>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    let eval_no = match evaluation.map(|id| names::eval_no(connection, id)).transpose()? {
        Some(None) => return Ok(Vec::new()),
        found => found.flatten(),
    };
    // One evaluation is sought; of a whole run the index is read in a row.
    let of = if eval_no.is_some() { "AND a.eval_no = ?3" } else { "AND ?3 IS NULL" };
    let mut statement = connection.prepare_cached(&format!("{SCORES} {of} {SCORES_BY}"))?;
    let mut rows = statement.query(params![run_no, check, eval_no])?;
    let (mut evaluations, mut cases, mut arms) = (Names::evaluations(connection), Names::cases(connection), Names::arms(connection));
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        out.push(Score {
            evaluation: evaluations.get(row.get(0)?)?.to_owned(),
            case: cases.get(row.get(1)?)?.to_owned(),
            arm: arms.get(row.get(2)?)?.to_owned(),
            check: row.get(3)?,
            kind: row.get(4)?,
            n: names::natural(row.get(5)?),
            sum: row.get(6)?,
            answered: names::natural(row.get(7)?),
            passed: names::natural(row.get(8)?),
        });
    }
    let order = |score: &Score| (score.evaluation.clone(), score.case.clone(), score.arm.clone(), score.check.clone());
    out.sort_by_cached_key(order);
    Ok(out)
}

/// Sentences of SQLite's own check at most.
const FAULTS_MAX: u32 = 20;

fn integrity(connection: &Connection) -> Result<Vec<String>> {
    let mut out = BTreeSet::new();
    let mut statement = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let said: String = row.get(0)?;
        if said != "ok" {
            out.insert(format!("the file is damaged: {said}"));
        }
    }
    for (sql, what) in ORPHANS {
        let count: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        if count > 0 {
            out.insert(format!("{count} {what}"));
        }
    }
    Ok(out.into_iter().collect())
}

/// Rows that nothing stands behind: there are no foreign keys, since the one function that writes keeps rows together.
const ORPHANS: [(&str, &str); 3] = [
    ("SELECT count(*) FROM attempts_m a WHERE NOT EXISTS (SELECT 1 FROM logs_m l WHERE l.log_no = a.log_no)", "attempts are of no log"),
    ("SELECT count(*) FROM logs_m l WHERE NOT EXISTS (SELECT 1 FROM runs_m r WHERE r.run_no = l.run_no)", "logs are of no run"),
    ("SELECT count(*) FROM cells_m c WHERE NOT EXISTS (SELECT 1 FROM runs_m r WHERE r.run_no = c.run_no)", "cells are of no run"),
];
