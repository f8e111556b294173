//! The `projections` toolset: the runs of one evaluation as other systems know them (S-projection).
//!
//! Promises: the schemas are the document's, byte for meaning, snake_case and all.
//! Does not: open a run (`show` does).

pub mod cursor;
pub mod list_eval_run_projections;
