//! The commands.
//!
//! Promises: one file per verb. Does not: print but to the writers that it is handed.

pub mod import;
pub mod progress;
