//! The limits of the accept loop, each with its reason.
//!
//! Promises: the defaults are those of decision 32 and of HARDENING.md.
//! Does not: check what it is given; the configuration does (every number at least 1, every duration above zero).

use std::time::Duration;

/// What a connection may cost.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Connections open at once: each holds buffers and a file descriptor.
    pub connections_max: usize,
    /// Connections open at once from one address (IPv6: one /64), so that one caller cannot take all of them. Does not hold for
    /// peers in `trusted`, whose connections are many callers' (decision 6).
    pub connections_per_address_max: usize,
    /// A request's head is due this long after the connection opened or its last request ended. Also the longest that a connection
    /// lives on bytes that make no request: half a preface, pings, settings.
    pub header_deadline: Duration,
    /// Bytes of a request's head; over it 431. Hyper takes 430 KB otherwise. At least 8,192, hyper's smallest buffer.
    pub header_bytes_max: usize,
    /// Headers of a request; over it 431. Each costs a hash and an entry.
    pub headers_max: usize,
    /// A connection with nothing in flight and no byte moving lives this long.
    pub idle: Duration,
    /// A client that does not take the next piece (16 KiB) of its response in this time is cut off, with its connection.
    pub stall: Duration,
    /// Streams open at once on one HTTP/2 connection: more than the gate lets one caller have in flight, enough for a proxy.
    pub h2_streams_max: u32,
    /// Streams that were reset before the gate saw them (rapid reset within one packet); over it GOAWAY.
    pub h2_pending_resets_max: usize,
    /// Streams that we had to reset for the client's faults; over it GOAWAY.
    pub h2_error_resets_max: usize,
    /// How many more requests a connection may cancel than have been answered (rapid reset, paced so that each one reaches the
    /// gate); over it GOAWAY, at twice that the end.
    pub h2_cancelled_max: usize,
    /// How often a silent HTTP/2 client with requests in flight is asked whether it is there.
    pub h2_ping_interval: Duration,
    /// How long its answer may take.
    pub h2_ping_timeout: Duration,
    /// The proxies in front of us.
    pub trusted: Vec<ipnet::IpNet>,
    /// How long requests in flight may take to finish once the service shuts down (decision 80).
    pub drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections_max: 64,
            connections_per_address_max: 8,
            header_deadline: Duration::from_secs(10),
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            idle: Duration::from_secs(5),
            stall: Duration::from_secs(30),
            h2_streams_max: 32,
            h2_pending_resets_max: 20,
            h2_error_resets_max: 64,
            h2_cancelled_max: 100,
            h2_ping_interval: Duration::from_secs(20),
            h2_ping_timeout: Duration::from_secs(10),
            trusted: Vec::new(),
            drain: Duration::from_secs(20),
        }
    }
}
