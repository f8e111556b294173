//! Which stack fields differ between the two sides of a comparison.
//!
//! Promises: factors of arms that match, and the code's state; each difference once.
//! Does not: say which of them caused anything.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    store::RunArm,
    tools::{Ctx, ToolError},
};

/// Differences listed at most: more would drown the rows.
const MAX: usize = 100;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Change {
    /// The factor's name; `arm: name` where a side has several arms.
    pub field: String,
    /// What it was.
    pub base: Option<String>,
    /// What it is.
    pub head: Option<String>,
}

/// The differences between each (head, base) pair of runs, together.
///
/// # Errors
/// As the store.
pub fn between(ctx: &Ctx, runs: &[(String, String)]) -> Result<Vec<Change>, ToolError> {
    let ids: BTreeSet<&String> = runs.iter().flat_map(|(head, base)| [head, base]).collect();
    let arms = ctx.store.arms(&ids.into_iter().cloned().collect::<Vec<_>>())?;
    let of = |run: &String| arms.get(run).map_or(&[][..], Vec::as_slice);
    let mut changes: BTreeSet<Change> = BTreeSet::new();
    for (head, base) in runs.iter().filter(|(head, base)| head != base) {
        changes.extend(arms_differ(of(head), of(base)));
    }
    Ok(changes.into_iter().take(MAX).collect())
}

fn arms_differ(head: &[RunArm], base: &[RunArm]) -> Vec<Change> {
    if let ([head], [base]) = (head, base) {
        return factors_differ("", head, base);
    }
    let named = |arm: &RunArm| {
        base.iter().find(|other| other.info.name == arm.info.name).map(|other| factors_differ(&format!("{}: ", arm.info.name), arm, other))
    };
    head.iter().filter_map(named).flatten().collect()
}

fn factors_differ(prefix: &str, head: &RunArm, base: &RunArm) -> Vec<Change> {
    let names: BTreeSet<&String> = head.info.factors.keys().chain(base.info.factors.keys()).collect();
    let mut out: Vec<Change> = Vec::new();
    for name in names {
        let (now, before) = (head.info.factors.get(name), base.info.factors.get(name));
        if now != before {
            out.push(Change { field: format!("{prefix}{name}"), base: before.cloned(), head: now.cloned() });
        }
    }
    out
}
