//! The `query` toolset: any question an analyst has, in SQL, and the views that answer the usual ones (S-history).
//!
//! Promises: only reads; what may be asked is what `query_schema` lists.
//! Does not: bound or sandbox (the store does).

pub mod free;
pub mod schema;
pub mod views;
