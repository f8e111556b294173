//! The `history` toolset: what happened, run by run (S-history).
//!
//! Promises: one file per tool; what several answers share stands in `record`.
//! Does not: plan, judge releases, or write.

pub mod analysis;
pub mod base;
pub mod compare;
pub mod failures;
#[expect(clippy::module_inception, reason = "the toolset and its first tool have one name")]
pub mod history;
pub mod kept;
#[cfg(test)]
mod paging;
pub mod plan_run;
pub mod record;
pub mod run_record;
pub mod runs_list;
pub mod show;
pub mod since;
pub mod transcript;
pub mod verify;
