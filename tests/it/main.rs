//! The real binary, from outside: command lines, files and MCP clients.
//!
//! Promises: each test has a project of its own; nothing sleeps; nothing but loopback and pipes.
//! Does not: look inside the library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "the whole program is a test, and clippy takes only what stands under #[test] for one"
)]

mod bad_input;
mod caddy;
mod care;
mod catalog;
mod cli;
mod clients;
mod commands;
mod container;
mod day;
mod decision;
mod demo;
mod deploy;
mod evidence;
mod examples;
mod harness;
mod http;
mod ids;
mod junit;
mod lm_eval;
mod logs;
mod mcp;
mod notes;
mod projections;
mod promptfoo;
mod push;
mod query;
mod readme;
mod real_files;
mod records;
mod release;
mod resources;
mod scenarios;
mod soak;
mod stats;
mod tokens;
mod watched;
mod worker;
