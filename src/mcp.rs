//! MCP: the only place that knows rmcp.
//!
//! Promises: one handler for every transport, both protocol eras, no session; calls go through the gate's call list.
//! Does not: know any tool.

pub mod core;
pub mod faults;
#[cfg(feature = "fixtures")]
pub mod fixtures;
pub mod handler;
pub mod http;
pub mod lines;
pub mod stdio;
pub mod versions;
