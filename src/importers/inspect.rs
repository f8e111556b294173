//! Logs of Inspect AI: archives (`.eval`) and JSON (`.json`), of every version since 2024, the chunked layout included (FORMATS.md 1).
//!
//! Promises: memory is one sample; declared sizes are never trusted; a log without a header is read from its journal; what cannot be read of
//! a log is named in a complaint, and the rest stands.
//! Does not: touch the disk.

mod archive;
pub(super) mod arm;
mod attachments;
pub(super) mod build;
mod chunked;
mod cluster;
pub(super) mod eval_log;
pub(super) mod header;
pub(super) mod json_log;
pub(super) mod lines;
mod pool;
mod sample;
mod score;
mod stable_id;
#[cfg(test)]
mod tests;
