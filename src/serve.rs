//! The composition root of the HTTP service: settings -> store -> tools -> gate -> listeners -> drain.
//!
//! Promises: everything is put together here and nowhere else.
//! Does not: decide anything about one request.

pub mod accept;
pub mod flags;
pub mod settings;
