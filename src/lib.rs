//! runlore: the run history of AI evaluations, served to agents and teams over MCP.
//!
//! # The map of the house
//!
//! Read it from the inside out; what stands lower knows nothing of what stands higher (`tests/tidy.rs` holds the imports against this).
//!
//! | module | what it is |
//! | --- | --- |
//! | [`domain`] | the words as types and the rules over them: outcomes and counts, verdicts, keys, references, grouping, comparing |
//! | [`stats`] | intervals, paired tests, corrections, power: pure functions, each with its source |
//! | [`transcript`] | JSON lines packed as compressed chunks, read by page |
//! | [`auth`] | who calls: keys and tokens of organizations' callers; a [`auth::Scope`] only comes from a [`auth::Caller`] |
//! | [`store`] | the port: a handle on one project; [`store::sqlite`] is the adapter, a plain model passes the same contract |
//! | [`importers`] | bytes to a header and attempts, in bounded memory |
//! | [`local`] | a project on this disk: its root, `runlore.toml`, and the index of its logs |
//! | [`tools`] | what an agent calls and a person runs, one file each |
//! | [`commands`] | child processes: questions in SQL run in workers that can be killed |
//! | [`gate`] | THE WAY OF A REQUEST: the list of steps over every call |
//! | [`mcp`] | the only place that knows rmcp |
//! | [`tool_api`] | the HTTP tool API: another face of the same list of calls |
//! | [`serve`] | the HTTP service, put together; [`serve::accept`] is its accept loop, [`serve::tenants`] the projects of organizations, [`serve::ingest`] what is pushed |
//! | [`health`] | whether the service can answer |
//! | [`admin`] | the private listener: liveness, readiness, metrics |
//! | [`cli`] | the command line, and where a local run is put together |
//!
//! # How a question is answered
//!
//! `runlore mcp` ([`cli::mcp`]) opens the project ([`cli::session`]) and serves [`mcp::handler`] over stdio. A `tools/call` becomes a
//! [`gate::Call`] and goes down [`gate::Gate`]: audit, the caller's rate, authorize, arguments, fresh ([`local::index`] reads logs that changed),
//! the answer cache, slots, the total rate, deadline, redact, run. The tool reads cells, attempts and transcripts through [`store::Store`], applies the rules of [`domain`], and returns a typed result that is
//! serialised once. The command line takes the same way.
//!
//! # How a log comes in
//!
//! [`local::walk`] finds files, [`importers::open`] recognises and reads them, [`telemetry::redaction`] takes the secrets out, and one
//! [`store::Change`] writes a log in one transaction: its attempts, the run that it belongs to ([`domain::grouping`]) and the cells that answers
//! are read from.
//!
//! # What always holds
//!
//! * A rate is passed over counted, and cannot be built without its five counts.
//! * Cases are the unit of evidence; attempts inside a case are its replicates.
//! * One way to write; a write is whole or not there; the order of import does not matter.
//! * Every wait has a deadline and every buffer a cap, each a key of `config/reference.md`.
//! * Bad input is a sentence, never a panic; no sentence carries SQL, a secret or a path that the asker did not give.

pub mod admin;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod domain;
pub mod gate;
pub mod health;
pub mod importers;
pub mod local;
pub mod mcp;
pub mod serve;
pub mod stats;
pub mod store;
pub mod telemetry;
pub mod tool_api;
pub mod tools;
pub mod transcript;
