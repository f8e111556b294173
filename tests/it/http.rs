//! `runlore mcp --http` and `runlore serve`, from outside: sockets, signals, metrics.
//!
//! Promises: each test has a server of its own on a port of its own; waits are for conditions, with deadlines.
//! Does not: use an HTTP library: what goes over the wire stands in the tests.

mod approval;
mod auth;
mod bodies;
mod cache;
mod callers;
mod canary;
mod connections;
mod drain;
mod envelope;
mod given_up;
mod h2;
mod held;
mod hooks;
mod hosts;
mod limits;
mod matrix;
pub mod metrics;
mod order;
mod protocol;
mod reads;
pub mod receiver;
pub mod service;
mod tenants;
mod tokens;
mod tool_api;
pub mod town;
pub mod wire;
