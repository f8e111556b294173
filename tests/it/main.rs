//! The real binary, from outside: command lines, files and MCP clients.
//!
//! Promises: each test has a project of its own; nothing sleeps; nothing but loopback and pipes.
//! Does not: look inside the library.

mod bad_input;
mod cli;
mod clients;
mod demo;
mod harness;
mod ids;
mod logs;
mod mcp;
mod real_files;
mod scenarios;
