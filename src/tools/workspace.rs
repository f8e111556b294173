//! The toolset `workspace`: who calls, and what can be planned and changed.
//!
//! Promises: one file for each tool.
//! Does not: hold logic of its own.

pub mod authoring;
mod connecting;
pub mod connections_create;
pub mod connections_delete;
pub mod connections_sync;
pub mod connections_update;
pub mod evaluations_create;
pub mod runs_start;
pub mod test_cases_add;
pub mod traces_create;
pub mod whoami;
