//! MCP: the only place that knows rmcp.
//!
//! Promises: one handler for every transport, both protocol eras, no session; calls go through the gate's call list.
//! Does not: know any tool.

pub mod approval;
pub mod completion;
pub mod core;
pub mod faults;
#[cfg(feature = "fixtures")]
pub mod fixtures;
pub mod handler;
pub mod http;
pub mod lines;
pub mod prompts;
pub mod resources;
pub mod results;
pub mod stdio;
#[cfg(test)]
pub(crate) mod trial;
pub mod versions;

use crate::tools::Entry;

/// The calls that go down the gate's list and are no tools: what they are counted and logged as.
pub static CALLS: [&Entry; 6] = [
    &resources::calls::LIST,
    &resources::calls::RUN,
    &resources::calls::TRANSCRIPT,
    &resources::calls::TRACE,
    &resources::calls::DECISION_CONTRACT,
    &completion::COMPLETE,
];
