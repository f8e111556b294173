//! What the runs of a comparison say of their arms and evaluations, read once.
//!
//! Promises: one read per run, whatever asks for it; whether two cells may be compared is told by `domain::comparable` alone.
//! Does not: list what changed (`changes` does).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    domain::{
        cell::Cell,
        comparable::{self, Side},
        compare::Pair,
        log::EvaluationInfo,
    },
    store::RunArm,
    tools::{Ctx, ToolError},
};

/// Arms and evaluations, by run.
pub struct Stacks {
    arms: BTreeMap<String, Vec<RunArm>>,
    evaluations: BTreeMap<String, BTreeMap<String, EvaluationInfo>>,
}

impl Stacks {
    /// Those of the runs of `pairs` that have both sides.
    ///
    /// # Errors
    /// As the store.
    pub fn read(ctx: &Ctx, pairs: &[Pair]) -> Result<Self, ToolError> {
        let runs: BTreeSet<&String> = pairs.iter().filter_map(both).flat_map(|(head, base)| [&head.run_id, &base.run_id]).collect();
        let arms = ctx.store.arms(&runs.iter().map(|run| (*run).clone()).collect::<Vec<_>>())?;
        let mut evaluations = BTreeMap::new();
        for run in runs {
            let of_run = ctx.store.evaluations(run)?.into_iter().map(|evaluation| (evaluation.info.id.clone(), evaluation.info));
            evaluations.insert(run.clone(), of_run.collect());
        }
        Ok(Self { arms, evaluations })
    }

    /// The arms of a run.
    pub fn arms(&self, run: &str) -> &[RunArm] {
        self.arms.get(run).map_or(&[], Vec::as_slice)
    }

    /// The evaluations of a run.
    pub fn evaluations(&self, run: &str) -> impl Iterator<Item = &EvaluationInfo> {
        self.evaluations.get(run).into_iter().flat_map(BTreeMap::values)
    }

    /// What changed in how a pair was measured; nothing where it may be compared, or is of one run.
    pub fn changed(&self, pair: &Pair) -> Vec<String> {
        let Some((head, base)) = both(pair).filter(|(head, base)| head.run_id != base.run_id) else { return Vec::new() };
        let (Some(head), Some(base)) = (self.side(head), self.side(base)) else { return Vec::new() };
        comparable::changed(head, base)
    }

    fn side<'a>(&'a self, cell: &'a Cell) -> Option<Side<'a>> {
        let info = self.evaluations.get(&cell.run_id)?.get(&cell.key.evaluation)?;
        let arm = self.arms(&cell.run_id).iter().find(|arm| arm.info.name == cell.key.arm);
        Some(Side { info, factors: arm.map(|arm| &arm.info.factors), cell })
    }
}

fn both(pair: &Pair) -> Option<(&Cell, &Cell)> {
    Some((pair.head.as_ref()?, pair.base.as_ref()?))
}
