//! The cases behind a comparison's rows, and the evidence that they give.
//!
//! Promises: a look-up of one case is one step, however many there are; the suite counts no case twice.
//! Does not: adjust p over rows (`rows` does).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        cell::{Cell, Grain},
        compare::{Pair, pairs},
        evidence::{Evidence, evidence_in_groups, not_comparable},
    },
    store::{CellQuery, Groups},
    tools::{Ctx, ToolError},
};

/// The cells of `runs` that the filter keeps.
pub(super) fn cells(ctx: &Ctx, runs: &[String], filter: Option<&str>, grain: Grain) -> Result<Vec<Cell>, ToolError> {
    Ok(ctx.store.cells(&CellQuery {
        runs: runs.to_vec(),
        evaluation_contains: filter.map(str::to_owned),
        grain,
        ..CellQuery::default()
    })?)
}

const SEVERAL_ARMS: &str = "several arms are compared, which share their cases: together each case would count once for each arm. Each row is an arm's own result.";
const NO_CASES: &str = "no case was counted on both sides";

/// A cell's place in `Cases`: its run, evaluation and arm.
type Place = (String, String, String);

/// The case cells of both sides, by their place and then by case: each look-up of one case is one step, however many there are.
pub(super) struct Cases {
    cells: BTreeMap<Place, BTreeMap<Option<String>, Cell>>,
    /// The groups of each run's cases, where it names any.
    groups: BTreeMap<String, Groups>,
}

impl Cases {
    /// Those of the runs of `pairs`.
    ///
    /// # Errors
    /// As the store.
    pub(super) fn read(ctx: &Ctx, filter: Option<&str>, pairs: &[Pair]) -> Result<Self, ToolError> {
        let runs: BTreeSet<&String> = pairs.iter().flat_map(|pair| [&pair.head, &pair.base]).flatten().map(|cell| &cell.run_id).collect();
        let runs: Vec<String> = runs.into_iter().cloned().collect();
        let mut grouped = BTreeMap::<Place, BTreeMap<Option<String>, Cell>>::new();
        for cell in cells(ctx, &runs, filter, Grain::Case)? {
            grouped.entry(place(&cell)).or_default().insert(cell.key.case.clone(), cell);
        }
        let mut groups = BTreeMap::new();
        for run in runs {
            let found = ctx.store.groups(&run)?;
            if !found.is_empty() {
                groups.insert(run, found);
            }
        }
        Ok(Self { cells: grouped, groups })
    }

    /// The group of a case: the head's word, else the base's.
    fn group<'a>(&'a self, head: &Cell, base: &Cell) -> Option<&'a str> {
        [head, base].into_iter().find_map(|cell| {
            let cases = self.groups.get(&cell.run_id)?.get(&cell.key.evaluation)?;
            cases.get(cell.key.case.as_deref().unwrap_or_default()).map(String::as_str)
        })
    }

    fn measured<'a>(&'a self, head: &[&'a Cell], base: &[&'a Cell], margin: Option<f64>) -> Evidence {
        evidence_in_groups(head, base, &|head, base| self.group(head, base), margin)
    }

    /// The cases of one side: of its evaluation and arm, or the one case.
    fn of(&self, cell: Option<&Cell>) -> Vec<&Cell> {
        let Some((cell, cases)) = cell.and_then(|cell| Some((cell, self.cells.get(&place(cell))?))) else { return Vec::new() };
        if cell.key.case.is_none() { cases.values().collect() } else { cases.get(&cell.key.case).into_iter().collect() }
    }

    /// The evidence of a pair; none of its figures where something `changed`.
    pub(super) fn evidence(&self, pair: &Pair, changed: &[String], margin: Option<f64>) -> Evidence {
        let (head, base) = (self.of(pair.head.as_ref()), self.of(pair.base.as_ref()));
        if changed.is_empty() { self.measured(&head, &base, margin) } else { not_comparable(&head, &base, changed) }
    }

    /// Over every evaluation that has one arm on both sides, or the same arm: an arm's cases are its own. What may not be compared is left out,
    /// and said.
    ///
    /// # Errors
    /// In a sentence, why there is no such result.
    pub(super) fn suite(&self, units: &[(Pair, Vec<String>)], margin: Option<f64>) -> Result<Evidence, &'static str> {
        let both = || units.iter().filter(|(pair, _)| pair.head.is_some() && pair.base.is_some());
        let kept: Vec<&Pair> = both().filter(|(_, changed)| changed.is_empty()).map(|(pair, _)| pair).collect();
        let left_out = both().count() - kept.len();
        let arms: BTreeSet<Option<&str>> = both().map(|(pair, _)| pair.arm.as_deref()).collect();
        // Several arms share their cases: the suite would count a case twice.
        if arms.len() > 1 {
            return Err(SEVERAL_ARMS);
        }
        let side = |cell: fn(&Pair) -> Option<&Cell>| kept.iter().flat_map(|pair| self.of(cell(pair))).collect::<Vec<&Cell>>();
        let found = self.measured(&side(|pair| pair.head.as_ref()), &side(|pair| pair.base.as_ref()), margin);
        if left_out == 0 {
            return if found.n > 0 { Ok(found) } else { Err(NO_CASES) };
        }
        let said = format!("{left_out} of {} evaluations left out: not comparable", both().count());
        let reason = found.reason.as_ref().filter(|_| found.n > 0).map_or_else(|| said.clone(), |own| format!("{own}; {said}"));
        Ok(Evidence { reason: Some(reason), ..found })
    }

    /// The pairs of cases under a pair of evaluations.
    pub(super) fn pairs(&self, pair: &Pair) -> Vec<Pair> {
        let owned = |cell: Option<&Cell>| self.of(cell).into_iter().cloned().collect::<Vec<Cell>>();
        let inner = pairs(owned(pair.head.as_ref()), owned(pair.base.as_ref()));
        inner.into_iter().map(|inner| Pair { arm: pair.arm.clone(), ..inner }).collect()
    }
}

fn place(cell: &Cell) -> Place {
    (cell.run_id.clone(), cell.key.evaluation.clone(), cell.key.arm.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{cell::CellKey, compare::Status, outcome::Counts};

    fn cell(run: &str, case: Option<usize>, passed: bool) -> Cell {
        let counts = Counts { passed: u32::from(passed), failed: u32::from(!passed), ..Counts::default() };
        Cell {
            key: CellKey { evaluation: "e".into(), case: case.map(|case| case.to_string()), arm: "m".into() },
            run_id: run.into(),
            counts,
            threshold: None,
            several_cases: true,
            declared: false,
            verdict: crate::domain::cell::Verdict::judge(counts, None),
        }
    }

    /// In steps rather than seconds: a look-up of one case gives that case's cell alone. A scan of 20,000 for each of 20,000 would not end here.
    #[test]
    fn each_case_is_looked_up_and_not_searched_for() {
        const CASES: usize = 20_000;
        let side = |run: &str, passed: bool| (0..CASES).map(|case| (Some(case.to_string()), cell(run, Some(case), passed))).collect();
        let place = |run: &str| (run.to_owned(), "e".to_owned(), "m".to_owned());
        let cases =
            Cases { cells: BTreeMap::from([(place("h"), side("h", false)), (place("b"), side("b", true))]), groups: BTreeMap::new() };
        let whole = pairs(vec![cell("h", None, false)], vec![cell("b", None, true)]).remove(0);
        let began = std::time::Instant::now();
        let each = cases.pairs(&whole);
        let worse = each.iter().filter(|pair| pair.status(Some(&cases.evidence(pair, &[], None))) == Status::Regressed).count();
        let suite = cases.suite(&[(whole, Vec::new())], None).unwrap();
        assert_eq!((each.len(), worse, suite.n), (CASES, CASES, CASES as u64));
        // Measured: 0.1 s in a debug build; the scan took minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
