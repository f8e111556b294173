//! Reads cells of given runs.
//!
//! Promises: cost grows with the cells of the runs asked for, not with the runs stored.
//! Does not: follow a series over runs (`series` does).

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, Row, params};

use super::{
    names::{self, ByNumber, Names, Word as _},
    runs,
};
use crate::{
    domain::cell::{Cell, CellKey, Grain, Verdict},
    store::{CellQuery, Result},
};

/// The table of a grain; both have the same columns.
pub(super) const fn table(grain: Grain) -> &'static str {
    match grain {
        Grain::Evaluation => "cells_m",
        Grain::Case => "case_cells_m",
    }
}

/// The columns that [`Raw`] is read from.
pub(super) const COLUMNS: &str = "eval_no, case_no, arm_no, passed, failed, infra, unscored, missing, threshold, flags, verdict";

/// A cell with numbers for names.
pub(super) struct Raw {
    pub eval_no: i64,
    pub case_no: i64,
    pub arm_no: i64,
    counts: crate::domain::outcome::Counts,
    threshold: Option<f64>,
    flags: i64,
    verdict: Verdict,
}

impl Raw {
    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            eval_no: row.get(0)?,
            case_no: row.get(1)?,
            arm_no: row.get(2)?,
            counts: runs::counts(row, 3)?,
            threshold: row.get(8)?,
            flags: row.get(9)?,
            verdict: Verdict::from_code(row.get(10)?)?,
        })
    }

    pub(super) fn named(self, key: CellKey, run_id: String) -> Cell {
        Cell {
            key,
            run_id,
            counts: self.counts,
            threshold: self.threshold,
            several_cases: self.flags & 1 != 0,
            declared: self.flags & 2 != 0,
            verdict: self.verdict,
        }
    }
}

/// The names that cells need.
pub(super) struct Keys<'a> {
    grain: Grain,
    evaluations: Names<'a>,
    cases: Names<'a>,
    arms: Names<'a>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(connection: &'a Connection, grain: Grain) -> Self {
        Self { grain, evaluations: Names::evaluations(connection), cases: Names::cases(connection), arms: Names::arms(connection) }
    }

    pub(super) fn get(&mut self, raw: &Raw) -> Result<CellKey> {
        self.named((raw.eval_no, raw.case_no, raw.arm_no))
    }

    fn named(&mut self, (eval_no, case_no, arm_no): Numbers) -> Result<CellKey> {
        Ok(CellKey {
            evaluation: self.evaluations.get(eval_no)?.to_owned(),
            case: match self.grain {
                Grain::Evaluation => None,
                Grain::Case => Some(self.cases.get(case_no)?.to_owned()),
            },
            arm: self.arms.get(arm_no)?.to_owned(),
        })
    }
}

/// A key in numbers: evaluation, case (0 at evaluation grain), arm.
type Numbers = (i64, i64, i64);

/// Beyond so many evaluations reading a run's cells in a row is quicker than seeking each.
const SOUGHT_MAX: usize = 100;

pub(super) fn read(connection: &Connection, query: &CellQuery) -> Result<Vec<Cell>> {
    let mut found: Vec<(usize, Raw)> = Vec::new();
    each(connection, query, |place, row| {
        found.push((place, Raw::read(row)?));
        Ok(())
    })?;
    in_order(connection, query, found)
}

/// Names are looked up once for each key, however many runs hold it.
pub(super) fn keys(connection: &Connection, query: &CellQuery) -> Result<Vec<CellKey>> {
    let mut distinct = HashSet::<Numbers>::new();
    each(connection, query, |_, row| {
        distinct.insert(numbers(row)?);
        Ok(())
    })?;
    let mut names = Keys::new(connection, query.grain);
    let mut keys = distinct.into_iter().map(|numbers| names.named(numbers)).collect::<Result<Vec<CellKey>>>()?;
    keys.sort_unstable();
    Ok(keys)
}

fn numbers(row: &Row<'_>) -> Result<Numbers> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Hands each cell that the query finds to `take`, with the place of its run in the query.
fn each(connection: &Connection, query: &CellQuery, mut take: impl FnMut(usize, &Row<'_>) -> Result<()>) -> Result<()> {
    let keys = query.keys.as_ref().map(|keys| known(connection, query.grain, keys)).transpose()?;
    let wanted = match wanted(connection, query, keys.as_ref())? {
        Some(wanted) if wanted.is_empty() => return Ok(()),
        wanted => wanted,
    };
    // Few evaluations are sought by key; many are sifted, since a run's cells stand side by side.
    let list = match wanted.as_ref().filter(|wanted| wanted.len() <= SOUGHT_MAX) {
        Some(wanted) => Some(serde_json::to_string(wanted)?),
        None => None,
    };
    let from = if list.is_some() { "json_each(?2) e CROSS JOIN" } else { "" };
    let sought = if list.is_some() { "c.eval_no = e.value" } else { "?2 IS NULL" };
    let failing = if query.failing { "AND c.failed + c.infra > 0" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM {from} {} c WHERE c.run_no = ?1 AND {sought} {failing}", table(query.grain));
    let mut seen = HashSet::new();
    for (place, run) in query.runs.iter().enumerate() {
        let Some(run_no) = names::run_no(connection, run)?.filter(|run_no| seen.insert(*run_no)) else { continue };
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![run_no, list])?;
        while let Some(row) = rows.next()? {
            let evaluation = list.is_some() || wanted.as_ref().is_none_or(|wanted| row.get(0).is_ok_and(|number| wanted.contains(&number)));
            if evaluation && keys.as_ref().is_none_or(|keys| numbers(row).is_ok_and(|numbers| keys.contains(&numbers))) {
                take(place, row)?;
            }
        }
    }
    Ok(())
}

/// Those of `keys` that are of the grain and of things ever stored, in numbers.
fn known(connection: &Connection, grain: Grain, keys: &[CellKey]) -> Result<HashSet<Numbers>> {
    let mut out = HashSet::new();
    for key in keys {
        let (Some(eval_no), Some(arm_no)) = (names::eval_no(connection, &key.evaluation)?, names::arm_no(connection, &key.arm)?) else {
            continue;
        };
        let case_no = match (grain, &key.case) {
            (Grain::Evaluation, None) => Some(0),
            (Grain::Case, Some(case)) => names::case_no(connection, eval_no, case)?,
            _ => None,
        };
        out.extend(case_no.map(|case_no| (eval_no, case_no, arm_no)));
    }
    Ok(out)
}

/// The evaluations that the query leaves; none for all.
fn wanted(connection: &Connection, query: &CellQuery, keys: Option<&HashSet<Numbers>>) -> Result<Option<HashSet<i64>>> {
    let of_keys = keys.map(|keys| keys.iter().map(|(eval_no, ..)| *eval_no).collect::<HashSet<_>>());
    let exact = match &query.evaluation {
        Some(id) => {
            let named = names::eval_no(connection, id)?.into_iter();
            Some(named.filter(|number| of_keys.as_ref().is_none_or(|keys| keys.contains(number))).collect::<HashSet<_>>())
        }
        None => of_keys,
    };
    let Some(part) = query.evaluation_contains.as_deref().filter(|part| !part.is_empty()) else { return Ok(exact) };
    let containing = names::evaluations_containing(connection, part)?.into_iter().map(|(number, _)| number);
    Ok(Some(containing.filter(|number| exact.as_ref().is_none_or(|exact| exact.contains(number))).collect()))
}

/// By evaluation, case, arm and the query's runs. Names are ranked once, since comparing integers is what keeps 10,000 cells quick.
fn in_order(connection: &Connection, query: &CellQuery, mut found: Vec<(usize, Raw)>) -> Result<Vec<Cell>> {
    let mut keys = Keys::new(connection, query.grain);
    let evaluations = ranks(&mut keys.evaluations, found.iter().map(|(_, raw)| raw.eval_no))?;
    let arms = ranks(&mut keys.arms, found.iter().map(|(_, raw)| raw.arm_no))?;
    let cases = match query.grain {
        Grain::Evaluation => ByNumber::default(),
        Grain::Case => ranks(&mut keys.cases, found.iter().map(|(_, raw)| raw.case_no))?,
    };
    // One wide integer per cell: comparing four options instead is a fifth of the whole read.
    let rank = |ranks: &ByNumber<usize>, number: i64| ranks.get(&number).map_or(0, |rank| *rank as u128);
    found.sort_by_cached_key(|(place, raw)| {
        let parts = [rank(&evaluations, raw.eval_no), rank(&cases, raw.case_no), rank(&arms, raw.arm_no), *place as u128];
        parts.into_iter().fold(0_u128, |key, part| (key << 32) | part)
    });
    let run = |place: usize| query.runs.get(place).cloned().unwrap_or_default();
    found
        .into_iter()
        .map(|(place, raw)| {
            let key = keys.get(&raw)?;
            Ok(raw.named(key, run(place)))
        })
        .collect()
}

fn ranks(names: &mut Names<'_>, numbers: impl Iterator<Item = i64>) -> Result<ByNumber<usize>> {
    let distinct: ByNumber<()> = numbers.map(|number| (number, ())).collect();
    let mut named = BTreeMap::new();
    for number in distinct.into_keys() {
        // Cases of two evaluations may share a name: the number keeps them apart.
        named.insert((names.get(number)?.to_owned(), number), ());
    }
    Ok(named.into_keys().enumerate().map(|(rank, (_, number))| (number, rank)).collect())
}
