//! The HTTP service, put together: what stands between the configuration and a listening socket.
//!
//! Promises: the only place that knows everything.
//! Does not: decide anything about a request; the gate does.

pub mod accept;
