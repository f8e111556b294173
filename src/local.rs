//! The local project: where it is, what it declares, and how its logs come into the store.
//!
//! Promises: a look at unchanged files costs a directory listing and a `stat` each; one broken file never stops the rest; what a message
//! names is relative to the project where it is inside.
//! Does not: read logs (`importers`), decide which run a log belongs to (`domain::grouping`), open a store, or read a clock.

pub mod bundle;
pub mod declared;
pub mod freshness;
pub mod git;
pub mod index;
pub mod progress;
pub mod report;
pub mod root;
pub mod walk;
