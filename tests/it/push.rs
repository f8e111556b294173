//! Logs and records sent to a server of many organizations: `runlore push`, and the requests that it makes.
//!
//! Promises: each test has a data directory of its own, in which servers are started, killed and started again; what is waited for is seen from
//! outside, with a deadline.
//! Does not: look inside the library.

mod client;
mod formats;
pub mod house;
mod kills;
mod requests;
