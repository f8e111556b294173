//! The toolset `workspace`: who calls, and what can be planned and changed.
//!
//! Promises: one file for each tool.
//! Does not: hold logic of its own.

pub mod authoring;
pub mod evaluations_create;
pub mod whoami;
