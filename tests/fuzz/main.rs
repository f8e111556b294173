//! What strangers send, changed at random for a bounded time: the decode step and the client-address step of the door.
//!
//! Promises: each target runs for ten seconds (`RUNLORE_FUZZ_SECONDS` says otherwise) over the inputs of HARDENING's "Requests" and what grows
//! out of them; whatever comes in, nothing panics, what goes out is bounded and well formed, and what was understood is what an independent
//! reader understands. A failure prints the input and the seed (`RUNLORE_FUZZ_SEED` repeats it).
//! Does not: measure coverage: libFuzzer wants a nightly compiler, and this runs where the tests run. Inputs whose outcome is new are kept and
//! changed further instead.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the whole program is a test, and clippy takes only what stands under #[test] for one"
)]

mod client;
mod decode;
mod mutate;
