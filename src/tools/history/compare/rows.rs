//! The rows of a comparison: how each stands, with its evidence.
//!
//! Promises: p is adjusted over every row of the answer, whatever page or status is listed, and the status follows the adjusted evidence; what
//! was not measured in the same way on both sides is `not_comparable`.
//! Does not: list, order or cut rows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    super::record::{CellSide, RunMark},
    BothCounts, Input,
    cases::Cases,
    stacks::Stacks,
};
use crate::{
    domain::{
        cell::{Cell, CellKey, Grain},
        compare::{Pair, Status},
        evidence::{Evidence, Family, adjust},
        outcome::Counts,
    },
    stats::Word,
    store::RunPoint,
    tools::{Ctx, ToolError},
};

/// One evaluation, or case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The evaluation's id.
    pub id: String,
    /// The case's id, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The arm, where a side has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// How it stands.
    pub status: Status,
    /// Now.
    pub head: Option<CellSide>,
    /// Then.
    pub base: Option<CellSide>,
    /// With `since`: the first run from which a changed verdict holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<RunMark>,
    /// Whether the difference is real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Row {
    /// As it is listed: numbers short, and no evidence where nothing differs, unless a margin asks what the cases say of that, or the same rate
    /// was measured in another way.
    #[must_use]
    pub fn shown(mut self, margin: bool) -> Self {
        let says = |found: &Evidence| margin || self.status != Status::Same || found.word == Word::NotComparable;
        self.evidence = self.evidence.filter(says).map(Evidence::shown);
        self
    }
}

/// Everything that is measured.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) rows: Vec<(Row, Pair)>,
    pub(super) counts: BothCounts,
    pub(super) suite: Option<Evidence>,
    /// Why there is none.
    pub(super) suite_reason: Option<String>,
    pub(super) family: Option<Family>,
    /// Rows whose sides were not measured in the same way.
    pub(super) apart: usize,
}

/// Measures the pairs of evaluations, or of their cases.
pub(super) fn measured(
    ctx: &Ctx,
    input: &Input,
    pairs: Vec<Pair>,
    stacks: &Stacks,
    places: &BTreeMap<String, RunPoint>,
) -> Result<Measured, ToolError> {
    let margin = input.margin.map(|margin| margin.get());
    let cases = Cases::read(ctx, input.filter.as_deref(), &pairs)?;
    let counts = sums(&pairs);
    let units: Vec<(Pair, Vec<String>)> =
        pairs.into_iter().map(|pair| (stacks.changed(&pair), pair)).map(|(why, pair)| (pair, why)).collect();
    let (suite, suite_reason) = match cases.suite(&units, margin) {
        Ok(suite) => (Some(suite), None),
        Err(why) => (None, Some(why.to_owned())),
    };
    let units = if input.by == Grain::Case { by_case(&cases, &units, stacks) } else { units };
    let apart = units.iter().filter(|(_, changed)| !changed.is_empty()).count();
    let mut rows: Vec<(Row, Pair)> =
        units.into_iter().map(|(pair, changed)| (row(&pair, &changed, &cases, places, margin), pair)).collect();
    let family = adjust(rows.iter_mut().filter_map(|(row, _)| row.evidence.as_mut()));
    rows.iter_mut().for_each(|(row, pair)| row.status = pair.status(row.evidence.as_ref()));
    Ok(Measured { rows, counts, suite, suite_reason, family, apart })
}

/// The pairs of cases under pairs of evaluations. What changed is the same for all cases of a pair, and no case has a threshold.
fn by_case(cases: &Cases, units: &[(Pair, Vec<String>)], stacks: &Stacks) -> Vec<(Pair, Vec<String>)> {
    let inner = |pair: &Pair| {
        let inner = cases.pairs(pair);
        let both = inner.iter().find(|inner| inner.head.is_some() && inner.base.is_some());
        let changed = both.map(|both| stacks.changed(both)).unwrap_or_default();
        inner.into_iter().map(move |inner| (inner, changed.clone())).collect::<Vec<_>>()
    };
    units.iter().flat_map(|(pair, _)| inner(pair)).collect()
}

fn sums(pairs: &[Pair]) -> BothCounts {
    let sum = |side: fn(&Pair) -> Option<&Cell>| pairs.iter().filter_map(side).fold(Counts::default(), |sum, cell| sum.plus(cell.counts));
    BothCounts { head: sum(|pair| pair.head.as_ref()), base: sum(|pair| pair.base.as_ref()) }
}

fn row(pair: &Pair, changed: &[String], cases: &Cases, places: &BTreeMap<String, RunPoint>, margin: Option<f64>) -> Row {
    let side =
        |cell: &Option<Cell>| cell.as_ref().map(|cell| CellSide { run: places.get(&cell.run_id).cloned().map(Into::into), ..cell.into() });
    Row {
        id: pair.evaluation.clone(),
        case: pair.case.clone(),
        arm: pair.arm.clone(),
        // Until p is adjusted over all rows.
        status: Status::Same,
        head: side(&pair.head),
        base: side(&pair.base),
        changed_at: None,
        evidence: (pair.head.is_some() && pair.base.is_some()).then(|| cases.evidence(pair, changed, margin)),
    }
}

/// Fills in since when a changed verdict holds, one look-up per head run.
pub(super) fn changed_at(ctx: &Ctx, rows: &mut [(Row, Pair)], places: &BTreeMap<String, RunPoint>) -> Result<(), ToolError> {
    if places.is_empty() {
        return Ok(());
    }
    let mut by_run = BTreeMap::<String, Vec<(usize, CellKey)>>::new();
    for (index, (_, pair)) in rows.iter().enumerate() {
        if let (Some(head), Some(base)) = (&pair.head, &pair.base)
            && head.verdict.counted()
            && head.verdict != base.verdict
        {
            by_run.entry(head.run_id.clone()).or_default().push((index, head.key.clone()));
        }
    }
    for (run, wanted) in by_run {
        let Some(place) = places.get(&run) else { continue };
        let (indexes, keys): (Vec<usize>, Vec<CellKey>) = wanted.into_iter().unzip();
        let grain = if keys.iter().any(|key| key.case.is_some()) { Grain::Case } else { Grain::Evaluation };
        for (index, streak) in indexes.into_iter().zip(ctx.store.streaks(place, grain, &keys)?) {
            if let Some((row, _)) = rows.get_mut(index) {
                row.changed_at = streak.verdict_since.map(Into::into);
            }
        }
    }
    Ok(())
}
