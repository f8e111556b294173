//! runlore: the run history of AI evaluations, served to agents and teams over MCP.

pub mod auth;
pub mod cli;
pub mod domain;
pub mod importers;
pub mod local;
pub mod stats;
pub mod store;
pub mod telemetry;
pub mod transcript;
