//! The two sides of a comparison as the evidence of the decision contract.
//!
//! Promises: what attempts took is added up over the evaluations that both sides hold, so that one side's more work is not the other's gain.
//! Does not: say what the evidence comes to (`domain::evidence_summary` does).

use std::collections::BTreeSet;

use super::{Whole, rows::Row};
use crate::{
    domain::{
        compare::Pair,
        decision::EvidenceSummary,
        evidence_summary::{Known, Side, summary},
        figures::Figures,
        outcome::Counts,
    },
    store::Run,
    tools::{Ctx, ToolError},
};

/// The evidence of a whole comparison.
///
/// # Errors
/// As the store.
pub fn evidence(ctx: &Ctx, whole: &Whole) -> Result<EvidenceSummary, ToolError> {
    let counts = whole.output.counts;
    let suite = whole.suite().cloned().map(crate::domain::evidence::Evidence::shown);
    let (candidate, baseline) = match &whole.runs {
        None => (several("now", counts.head), Some(several("then", counts.base))),
        Some((head, None)) => (side(ctx, head, counts.head, None)?, None),
        Some((head, Some(base))) => {
            let shared = shared(&whole.rows);
            (side(ctx, head, counts.head, Some(&shared))?, Some(side(ctx, base, counts.base, Some(&shared))?))
        }
    };
    let suite_reason = whole.output.suite_reason.as_deref();
    Ok(summary(&Known { candidate: Some(candidate), baseline, suite: suite.as_ref(), suite_reason }))
}

/// A run of its own.
///
/// # Errors
/// As the store.
pub fn alone(ctx: &Ctx, run: &Run) -> Result<EvidenceSummary, ToolError> {
    Ok(summary(&Known { candidate: Some(side(ctx, run, run.counts, None)?), ..Known::default() }))
}

fn several(name: &str, counts: Counts) -> Side {
    Side { name: name.to_owned(), status: None, counts, figures: None }
}

fn side(ctx: &Ctx, run: &Run, counts: Counts, of: Option<&BTreeSet<&str>>) -> Result<Side, ToolError> {
    let figures = ctx.store.figures(&run.run_id)?;
    let kept = figures.iter().filter(|(id, _)| of.is_none_or(|of| of.contains(id.as_str())));
    let figures = Some(kept.fold(Figures::default(), |sum, (_, one)| sum.plus(*one)));
    Ok(Side { name: run.run_id.clone(), status: Some(run.status), counts, figures })
}

fn shared(rows: &[(Row, Pair)]) -> BTreeSet<&str> {
    rows.iter().filter(|(_, pair)| pair.head.is_some() && pair.base.is_some()).map(|(_, pair)| pair.evaluation.as_str()).collect()
}
