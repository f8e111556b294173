//! What the door has learnt of a request so far. Each step fills in its part; later steps read it.
//!
//! Promises: one extension of the request holds it all; nothing here is taken from a header but by the step that checked it.
//! Does not: hold the request itself.

use std::{net::SocketAddr, sync::Arc};

use super::project::Place;
use crate::auth::Caller;

/// The class of a route, which decides its limits and who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// An MCP endpoint: POST, JSON. The index is into the configured endpoints.
    Mcp(usize),
    /// Health of an endpoint: GET, no token.
    Health,
    /// A document that anybody may read: GET, no token. The index is into the documents.
    Document(usize),
    /// A log or a run record that is sent: POST.
    Runs,
    /// A part of one, or how much of it is there: PUT, GET, HEAD.
    Upload,
    /// The tool API's list of tools (S-tenant): GET, HEAD.
    Tools,
    /// A call of one of them: POST, JSON.
    Call,
}

impl Route {
    /// Whether logs are sent here (`ingest` answers), so that a body may be large and slow.
    #[must_use]
    pub const fn is_push(self) -> bool {
        matches!(self, Self::Runs | Self::Upload)
    }
}

/// What is known of one request.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The id that the answer and the log share. Set by the `request_id` step.
    pub request_id: Arc<str>,
    /// The other end of the connection. Set by the accept loop.
    pub peer: SocketAddr,
    /// Who is counted: the caller's address, an IPv6 one by its /64. Set by the `client` step.
    pub client: Client,
    /// Where it goes. Set by the `route` step; before that, none.
    pub route: Option<Route>,
    /// Who asks. Set by the `authenticate` step; before that, none.
    pub caller: Option<Caller>,
    /// The project that the path names. Set by the `route` step; none where it names none.
    pub place: Option<Arc<Place>>,
    /// Which toolsets the request asks for, as it says it. Set by the `route` step; none for all.
    pub toolsets: Option<Arc<str>>,
}

/// The address that limits are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client {
    /// IPv4 as it is (IPv4-mapped IPv6 unmapped), IPv6 masked to its /64.
    pub address: std::net::IpAddr,
    /// Whether a trusted proxy spoke for it, be it in words that name no one: then the peer's connections are many callers'.
    pub proxied: bool,
}

impl Visit {
    /// What is known of `request`; none only where the accept loop forgot to say who is at the other end.
    #[must_use]
    pub fn of<B>(request: &http::Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    /// The id that a refusal of `request` carries.
    #[must_use]
    pub fn id_of<B>(request: &http::Request<B>) -> Arc<str> {
        Self::of(request).map_or_else(|| Arc::from(""), |visit| visit.request_id.clone())
    }

    /// A request that has just come over a connection from `peer`.
    #[must_use]
    pub fn new(peer: SocketAddr) -> Self {
        Self {
            request_id: Arc::from(""),
            peer,
            client: Client { address: peer.ip(), proxied: false },
            route: None,
            caller: None,
            place: None,
            toolsets: None,
        }
    }
}
