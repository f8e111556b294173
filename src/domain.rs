//! The words of runlore as types, and the rules over them.
//!
//! Promises: no IO, no async, no clock, no SQL, no MCP. What is here can be called from anywhere and tested with plain values.
//! Does not: decide where data comes from or how it is shown.

pub mod attempt;
pub mod cell;
pub mod comparable;
pub mod compare;
pub mod connection;
pub mod decision;
pub mod declared;
pub mod evidence;
pub mod evidence_summary;
pub mod extras;
pub mod figures;
pub mod flake;
pub mod goal;
pub mod grouping;
pub mod hex;
pub mod json;
pub mod key;
pub mod log;
pub mod outcome;
pub mod planned;
pub mod planning;
pub mod reference;
pub mod run_record;
pub mod signature;
pub mod text;
pub mod time;
pub mod words;
