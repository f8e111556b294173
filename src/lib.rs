//! runlore: the run history of AI evaluations, served to agents and teams over MCP.

pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod gate;
pub mod importers;
pub mod local;
pub mod mcp;
pub mod stats;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod transcript;
