//! What runlore says about itself, and what it must never say.
//!
//! Promises: secrets are replaced before text leaves or is kept.
//! Does not: yet export metrics or traces (they come with the HTTP service).

pub mod redaction;
