//! Child processes, started under one set of rules.
//!
//! Promises: a child has a cleared environment, is killed at its deadline, and its output is bounded.
//! Does not: open a store.

pub mod argv;
pub mod child;
pub mod executor;
pub mod program;
pub mod queries;
mod said;
pub mod scan;
pub mod schema;
pub mod strays;
pub mod tool;
pub mod work;
