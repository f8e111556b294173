//! Child processes, started under one set of rules.
//!
//! Promises: a child has a cleared environment, is killed at its deadline, and its output is bounded.
//! Does not: open a store.

pub mod argv;
pub mod executor;
pub mod queries;
pub mod schema;
pub mod work;
