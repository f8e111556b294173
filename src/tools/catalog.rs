//! The catalog: what there is at a glance, where to find it, how goals stand (issue "catalog").
//!
//! Promises: each view is one value of titled tables and lines (`blocks`), of which text and JSON are made, so that they cannot disagree.
//! Does not: run anything: the views are in-process (decision 26).

pub mod activity;
pub mod arms;
pub mod blocks;
pub mod dataset_items;
pub mod datasets;
pub mod goals;
pub mod inspect;
pub mod metrics;
pub mod overview;
pub mod references;
pub mod rounds;
pub mod search;
mod standings;
pub mod validate;

use super::Ctx;

/// Whether `id` holds the filter, ignoring case.
fn kept(filter: Option<&str>, ids: &[&str]) -> bool {
    let part = filter.unwrap_or_default().to_lowercase();
    part.is_empty() || ids.iter().any(|id| id.to_lowercase().contains(&part))
}

/// Whether texts may be read by this call.
fn sees_text(ctx: &Ctx) -> bool {
    ctx.caller.holds("traces:read")
}
