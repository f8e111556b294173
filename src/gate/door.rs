//! THE DOOR: the steps over every HTTP request, each a line with its reason, in the order that a request meets them.
//!
//! Promises: each refusal costs less than what stands behind it; nothing of a body is read before its sender is known; what comes out at
//! the end is one decoded [`Message`] with a [`Visit`](super::visit::Visit) that is filled in.
//! Does not: accept connections (`serve`), or answer messages (the endpoint behind it).

use std::{convert::Infallible, net::IpAddr, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tower::{Service, ServiceBuilder};

use super::{
    authenticate::AuthenticateLayer,
    body::{BodyLayer, BodyRules},
    client::{ClientLayer, ClientRules},
    deadline_http::{HttpDeadlineLayer, computed},
    decode::DecodeLayer,
    framing::FramingLayer,
    headers::HeadersLayer,
    health::{HealthLayer, Probe},
    host::{HostLayer, HostRules},
    inflight::InflightLayer,
    measure::MeasureLayer,
    message::Message,
    origin::{OriginLayer, OriginRules},
    panics::PanicsLayer,
    rate::RateLayer,
    request_id::RequestIdLayer,
    route::{RouteLayer, Routes},
};
use crate::auth::{Caller, token::StaticToken};

/// One MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its path, such as `/mcp`.
    pub path: String,
    /// Whether its legacy answers are event streams (DESIGN.md section 3).
    pub legacy_streams: bool,
}

/// What the door needs to know. Each limit is a key of the configuration.
#[derive(Clone)]
pub struct Settings {
    /// The address that is listened on, where it is one.
    pub bind: Option<IpAddr>,
    /// The port that is listened on.
    pub port: u16,
    /// `--allowed-host`.
    pub allowed_hosts: Vec<String>,
    /// `--allowed-origin`.
    pub allowed_origins: Vec<String>,
    /// `--client-header` and `--trusted-proxy`.
    pub client: ClientRules,
    /// `--path`.
    pub endpoints: Vec<Endpoint>,
    /// Requests in flight at most, in all.
    pub inflight_max: usize,
    /// Requests in flight at most for one proxied caller.
    pub inflight_per_caller: usize,
    /// How long one call may wait for a slot.
    pub slot_wait: Duration,
    /// How long one call may run (`--timeout`).
    pub call_timeout: Duration,
    /// `--request-rate`; 0 is off.
    pub requests_per_minute: u32,
    /// The token, where one is asked for.
    pub token: Option<StaticToken>,
    /// Who everyone is where none is.
    pub anonymous: Caller,
    /// What counts requests.
    pub measure: MeasureLayer,
    /// `--max-body`.
    pub body_bytes_max: usize,
    /// A body is due in full within this.
    pub body_within: Duration,
    /// How the server is.
    pub probe: Probe,
}

/// The door, ready to be put before an endpoint: the steps that have a state of their own, made once.
#[derive(Clone)]
pub struct Door {
    settings: Settings,
    /// The places of the in-flight cap, for metrics.
    pub inflight: InflightLayer,
    /// The request rate, for metrics.
    pub rate: RateLayer,
}

impl Door {
    /// The door of these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let inflight = InflightLayer::new(settings.inflight_max, settings.inflight_per_caller);
        let rate = RateLayer::new(settings.requests_per_minute);
        Self { settings, inflight, rate }
    }

    /// Puts the steps in their order before `endpoint`.
    pub fn before<S, B>(
        &self,
        endpoint: S,
    ) -> impl Service<Request<B>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + use<S, B>
    where
        S: Service<Request<Message>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send + 'static,
        B: HttpBody + Send + 'static,
        B::Data: Send,
    {
        let set = &self.settings;
        ServiceBuilder::new()
            // First, so that every answer and every line of the log has it.
            .layer(RequestIdLayer)
            // Around everything that can refuse, so that every answer is counted.
            .layer(set.measure.clone())
            // Around all that could panic.
            .layer(PanicsLayer)
            // Around everything that answers, refusals included.
            .layer(HeadersLayer)
            // Before anyone is counted or named.
            .layer(ClientLayer::new(set.client.clone()))
            // Before the request is believed to be one request.
            .layer(FramingLayer)
            // The wall against DNS rebinding: a request for another host gets nothing, not even a 404.
            .layer(HostLayer::new(self.hosts()))
            // A page of another site gets nothing either; a page of the list may ask first.
            .layer(OriginLayer::new(self.origins()))
            // The route's class decides what is asked of the request from here on; unknown paths end before they are counted or kept.
            .layer(RouteLayer::new(self.routes()))
            // From here on a request holds something: no more of them than can be held.
            .layer(self.inflight.clone())
            // Around all that waits.
            .layer(HttpDeadlineLayer::new(computed(set.body_within, set.slot_wait, set.call_timeout)))
            // Before a credential is looked at, so that guessing is counted.
            .layer(self.rate.clone())
            // Before the body: nothing is read for someone who may not ask. Health needs no one.
            .layer(AuthenticateLayer::new(set.token.clone(), set.anonymous.clone()))
            // Ends the route that has no body.
            .layer(HealthLayer::new(set.probe.clone()))
            // Whole, in bounds, or not at all.
            .layer(BodyLayer::new(self.body()))
            // Once, strictly; everything after works on what this understood.
            .layer(DecodeLayer)
            .service(endpoint)
    }

    fn hosts(&self) -> HostRules {
        HostRules::new(self.settings.bind, self.settings.port, &self.settings.allowed_hosts)
    }

    fn origins(&self) -> OriginRules {
        let set = &self.settings;
        OriginRules::new(set.bind, set.port, &set.allowed_hosts, &set.allowed_origins)
    }

    fn routes(&self) -> Routes {
        let paths: Vec<String> = self.settings.endpoints.iter().map(|endpoint| endpoint.path.clone()).collect();
        Routes::new(&paths)
    }

    fn body(&self) -> BodyRules {
        let legacy_streams = self.settings.endpoints.iter().map(|endpoint| endpoint.legacy_streams).collect();
        BodyRules { bytes_max: self.settings.body_bytes_max, within: self.settings.body_within, legacy_streams }
    }
}
