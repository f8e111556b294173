//! The toolset `workspace`: who calls, and what can be planned and changed.
//!
//! Promises: one file for each tool.
//! Does not: hold logic of its own.

pub mod authoring;
pub mod baseline_lineage;
mod connecting;
pub mod connections_catalog;
pub mod connections_create;
pub mod connections_delete;
pub mod connections_list;
pub mod connections_sync;
pub mod connections_update;
pub mod connector_health;
pub mod docs_search;
pub mod evaluations_create;
pub mod evaluations_list;
pub mod project_inspect;
pub mod project_plan;
pub mod run_explain;
pub mod runs_start;
mod sources;
pub mod test_cases_add;
pub mod traces_create;
pub mod whoami;

#[cfg(test)]
mod tests;
