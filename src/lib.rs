//! runlore: the run history of AI evaluations, served to agents and teams over MCP.

pub mod auth;
pub mod config;
pub mod domain;
pub mod importers;
pub mod stats;
pub mod store;
pub mod telemetry;
pub mod transcript;
