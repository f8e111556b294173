//! MCP: the only place that knows rmcp.
//!
//! Promises: one handler for every transport, both protocol eras, no session; calls go through the gate's call list.
//! Does not: know any tool.

#[cfg(feature = "fixtures")]
pub mod fixtures;
pub mod handler;
pub mod stdio;
