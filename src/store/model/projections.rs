//! The pages of an evaluation's runs, from a whole sorted list.
//!
//! Promises: sorts everything and cuts: what the adapter does with an index is held against this.
//! Does not: care how long it takes.

use std::collections::BTreeMap;

use super::{
    super::*,
    world::{ModelRun, World},
};

/// The page of `query`; the evaluation is one that was seen.
pub(super) fn page(world: &World, query: &ProjectionQuery<'_>) -> ProjectionPage {
    let holds = |run: &&ModelRun| run.evaluations.iter().any(|evaluation| evaluation.info.id == query.evaluation);
    let mut all: Vec<&ModelRun> = world.runs.values().filter(holds).collect();
    let key = |place: ProjectionPlace| {
        let word = if query.sort == ProjectionSort::Status { place.status.word() } else { "" };
        (word, place.created_at, place.number)
    };
    let of = |run: &&ModelRun| key(ProjectionPlace::of(&run.run));
    all.sort_by_key(of);
    if query.descending {
        all.reverse();
    }
    let comes_before = |run: &&ModelRun, place| if query.descending { of(run) > key(place) } else { of(run) < key(place) };
    let comes_after = |run: &&ModelRun, place| of(run) != key(place) && !comes_before(run, place);
    let at_or_before = all.iter().filter(|run| query.from.is_some_and(|place| !comes_after(run, place))).count();
    let before = all.iter().filter(|run| query.from.is_some_and(|place| comes_before(run, place))).count();
    let (first, last) =
        if query.back { (before.saturating_sub(query.limit), before) } else { (at_or_before, (at_or_before + query.limit).min(all.len())) };
    ProjectionPage {
        rows: all[first..last].iter().map(|run| projection(run, query.evaluation)).collect(),
        before: first > 0,
        after: last < all.len(),
    }
}

fn projection(model: &ModelRun, evaluation: &str) -> Projection {
    let cells: Vec<&Cell> = model.cells.iter().filter(|cell| cell.key.case.is_none() && cell.key.evaluation == evaluation).collect();
    let tried = |arm: &RunArm| cells.is_empty() || cells.iter().any(|cell| cell.key.arm == arm.info.name);
    let arms = model.arms.iter().filter(|arm| tried(arm));
    Projection {
        run: model.run.clone(),
        arms: arms.map(|arm| ProjectionArm { name: arm.info.name.clone(), role: arm.info.role.clone() }).collect(),
        counts: cells.iter().fold(Counts::default(), |sum, cell| sum.plus(cell.counts)),
        checks: if model.run.status.ended() { checks(model, evaluation) } else { Vec::new() },
        source: model.evaluations.iter().find(|one| one.info.id == evaluation).and_then(|one| one.info.source.clone()),
        said: Said {
            error: model.extras.error.clone(),
            report_path: model.extras.report_path.clone(),
            metadata: model.extras.metadata.clone(),
        },
    }
}

fn checks(model: &ModelRun, evaluation: &str) -> Vec<CheckMean> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for row in model.attempts.iter().map(|kept| &kept.row).filter(|row| row.evaluation == evaluation) {
        if matches!(row.outcome, Outcome::InfraError | Outcome::Cancelled) {
            continue;
        }
        for check in &row.checks {
            if let Some(value) = check.value.or(check.passed.map(|passed| f64::from(u8::from(passed)))) {
                values.entry(&check.name).or_default().entry(&row.case).or_default().push(value);
            }
        }
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let one = |(name, cases): (&str, BTreeMap<&str, Vec<f64>>)| CheckMean {
        name: name.to_owned(),
        mean: mean(&cases.values().map(|values| mean(values)).collect::<Vec<_>>()),
        cases: cases.len() as u64,
        answers: cases.values().map(|values| values.len() as u64).sum(),
    };
    values.into_iter().map(one).collect()
}
