//! The toolset `workspace`: who calls, and what can be planned and changed.
//!
//! Promises: one file for each tool.
//! Does not: hold logic of its own.

pub mod baseline_lineage;
pub mod connections_catalog;
pub mod connections_list;
pub mod connector_health;
pub mod docs_search;
pub mod evaluations_list;
pub mod project_inspect;
pub mod project_plan;
pub mod run_explain;
mod sources;
pub mod whoami;
