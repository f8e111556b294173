//! THE DOOR: the steps over every HTTP request, each a line with its reason, in the order that a request meets them.
//!
//! Promises: each refusal costs less than what stands behind it; nothing of a body is read before its sender is known; what comes out at
//! the end is one decoded [`Message`] with a [`Visit`](super::visit::Visit) that is filled in.
//! Does not: accept connections (`serve`), or answer messages (the endpoint behind it).

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

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
    dialect::DialectLayer,
    documents::{Document, DocumentsLayer},
    framing::FramingLayer,
    headers::HeadersLayer,
    health::{HealthLayer, Probe},
    host::{HostLayer, HostRules},
    inflight::InflightLayer,
    ingest::{Ingest, IngestLayer},
    measure::MeasureLayer,
    message::Message,
    origin::{OriginLayer, OriginRules},
    panics::PanicsLayer,
    rate::RateLayer,
    request_id::RequestIdLayer,
    route::{RouteLayer, Routes},
    tenant_rate::TenantRateLayer,
    tool_api::{ToolApi, ToolCallLayer, ToolListLayer},
};
use crate::{
    auth::{
        authority::Authority,
        metadata::{Challenges, Metadata},
    },
    telemetry::hook::Hooks,
};

/// One MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its path, such as `/mcp`.
    pub path: String,
    /// Whether its legacy answers are event streams (DESIGN.md section 3).
    pub legacy_streams: bool,
}

/// Where logs are sent to, and how long one request of it may take.
#[derive(Clone)]
pub struct Push {
    /// Who takes them.
    pub desk: Arc<dyn Ingest>,
    /// From a request's head to its answer.
    pub within: Duration,
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
    /// Addresses that the request rate remembers at most.
    pub limiter_keys_max: usize,
    /// Whom the server believes.
    pub authority: Authority,
    /// Documents that anybody may read.
    pub documents: Vec<Document>,
    /// Where clients log in, where there is somewhere.
    pub metadata: Option<Metadata>,
    /// Whether paths may name an organization and a project below an endpoint.
    pub placed: bool,
    /// Requests a minute of one organization; 0 is off.
    pub tenant_requests_per_minute: u32,
    /// What counts requests.
    pub measure: MeasureLayer,
    /// `--max-body`.
    pub body_bytes_max: usize,
    /// A body is due in full within this.
    pub body_within: Duration,
    /// How the server is.
    pub probe: Probe,
    /// Where logs are sent to, on a server that takes any.
    pub push: Option<Push>,
    /// Who answers the tool API, on a server that has it.
    pub tools: Option<Arc<dyn ToolApi>>,
    /// Who is told of faults.
    pub hooks: Hooks,
}

/// The door, ready to be put before an endpoint: the steps that have a state of their own, made once.
#[derive(Clone)]
pub struct Door {
    settings: Settings,
    /// The places of the in-flight cap, for metrics.
    pub inflight: InflightLayer,
    /// The request rate, for metrics.
    pub rate: RateLayer,
    /// The rate of each organization, for metrics.
    pub tenant_rate: TenantRateLayer,
}

impl Door {
    /// The door of these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let inflight = InflightLayer::new(settings.inflight_max, settings.inflight_per_caller);
        let rate = RateLayer::new(settings.requests_per_minute, settings.limiter_keys_max);
        let tenant_rate = TenantRateLayer::new(settings.tenant_requests_per_minute, settings.limiter_keys_max);
        Self { settings, inflight, rate, tenant_rate }
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
            // Around all that refuses: a client of the tool API reads its own envelope, whatever refused it.
            .layer(DialectLayer::new(set.tools.is_some()))
            // Around all that could panic.
            .layer(PanicsLayer::new(set.hooks.clone()))
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
            .layer(self.deadline())
            // Before a credential is looked at, so that guessing is counted.
            .layer(self.rate.clone())
            // Before the body: nothing is read for someone who may not ask. Health needs no one. Who brings no credential and may ask what
            // there is goes on as nobody: what needs a caller is known once the message is, and is refused there.
            .layer(AuthenticateLayer::new(set.authority.clone(), self.challenges()))
            // Once it is known whose it is, and before its body is waited for: no organization takes the places of the others.
            .layer(self.tenant_rate.clone())
            // Ends the route that has no body.
            .layer(HealthLayer::new(set.probe.clone()))
            // And those.
            .layer(DocumentsLayer::new(&set.documents))
            // And the tool API's list, for whom may read.
            .layer(ToolListLayer::new(set.tools.clone()))
            // Ends the routes whose bodies are too large to be held.
            .layer(IngestLayer::new(set.push.as_ref().map(|push| push.desk.clone())))
            // Whole, in bounds, or not at all.
            .layer(BodyLayer::new(self.body()))
            // Ends the route whose bodies are no JSON-RPC; its calls go down the same list as all others.
            .layer(ToolCallLayer::new(set.tools.clone()))
            // Once, strictly; everything after works on what this understood.
            .layer(DecodeLayer)
            .service(endpoint)
    }

    fn challenges(&self) -> Arc<[Challenges]> {
        let set = &self.settings;
        set.endpoints.iter().map(|endpoint| Challenges::new(set.metadata.as_ref(), &endpoint.path)).collect()
    }

    fn deadline(&self) -> HttpDeadlineLayer {
        let set = &self.settings;
        let calls = computed(set.body_within, set.slot_wait, set.call_timeout);
        HttpDeadlineLayer::new(calls, set.push.as_ref().map_or(calls, |push| computed(push.within, Duration::ZERO, Duration::ZERO)))
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
        Routes::new(&paths, &self.settings.documents, self.settings.placed).with_tools(self.settings.tools.is_some())
    }

    fn body(&self) -> BodyRules {
        let legacy_streams = self.settings.endpoints.iter().map(|endpoint| endpoint.legacy_streams).collect();
        BodyRules { bytes_max: self.settings.body_bytes_max, within: self.settings.body_within, legacy_streams }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;
    use crate::{
        auth::{
            authority::Credentials,
            token::{Sources, StaticToken},
        },
        gate::{
            BoxFuture,
            health::Health,
            trial::{Ends, Shows, pieces, text},
            visit::Visit,
        },
    };

    fn settings() -> Settings {
        let token = StaticToken::load(Sources { flag: Some("s3cret"), ..Sources::default() }).unwrap().unwrap();
        let known = Health { ok: true, version: "1", tools: 1, public: false, read_only: false };
        let ready: Arc<dyn Fn() -> BoxFuture<bool> + Send + Sync> = Arc::new(|| Box::pin(std::future::ready(true)));
        Settings {
            bind: None,
            port: 4986,
            allowed_hosts: Vec::new(),
            allowed_origins: vec!["https://app.example".to_owned()],
            client: ClientRules::new(Some(http::HeaderName::from_static("x-real-ip")), Vec::new()),
            endpoints: vec![Endpoint { path: "/mcp".to_owned(), legacy_streams: false }],
            inflight_max: 10,
            inflight_per_caller: 8,
            slot_wait: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            requests_per_minute: 0,
            limiter_keys_max: 1000,
            authority: Authority { credentials: Credentials::Token(token), stranger: None },
            documents: Vec::new(),
            metadata: None,
            placed: false,
            tenant_requests_per_minute: 0,
            measure: MeasureLayer::new(Arc::new(crate::telemetry::metrics::Metrics::new([]).unwrap()), vec!["/mcp".to_owned()]),
            body_bytes_max: 200,
            body_within: Duration::from_millis(50),
            probe: Probe { known, ready },
            push: None,
            tools: None,
            hooks: Hooks::default(),
        }
    }

    /// What can be wrong with a request, in the order in which the door says so.
    const FAULTS: [(&str, u16); 14] = [
        ("framing", 400),
        ("host", 421),
        ("origin", 403),
        ("path", 404),
        ("method", 405),
        ("places", 503),
        ("rate", 429),
        ("token", 401),
        ("media type", 415),
        ("accept", 406),
        ("declared size", 413),
        ("late body", 408),
        ("syntax", 400),
        ("envelope", 400),
    ];

    /// A request with these faults, sent to a door that is in the state that they need.
    async fn sent(faults: &[&str]) -> Response<Body> {
        let has = |fault: &str| faults.contains(&fault);
        let or = |fault: &str, wrong: &'static str, right: &'static str| if has(fault) { wrong } else { right };
        let mut set = settings();
        set.inflight_max = if has("places") { 0 } else { 10 };
        set.requests_per_minute = u32::from(has("rate"));
        let mut request = Request::builder().method(or("method", "PUT", "POST")).uri(or("path", "/nothing", "/mcp"));
        request = request.header("host", or("host", "evil.example", "localhost:4986"));
        request = request.header("authorization", or("token", "Bearer guess", "Bearer s3cret"));
        request = request.header("content-type", or("media type", "text/plain", "application/json"));
        request = request.header("accept", or("accept", "text/html", "*/*"));
        for (fault, name, value) in
            [("framing", "transfer-encoding", "gzip"), ("origin", "origin", "null"), ("declared size", "content-length", "201")]
        {
            request = if has(fault) { request.header(name, value) } else { request };
        }
        let body = match (has("syntax"), has("envelope")) {
            (true, _) => "{",
            (false, true) => r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            (false, false) => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        };
        let body = if has("late body") { pieces(&[], Ends::Never) } else { pieces(&[body], Ends::Well) };
        let request = request.extension(Visit::new("127.0.0.1:5000".parse().unwrap())).body(body).unwrap();
        let door = Door::new(set);
        if has("rate") {
            door.rate.limiter().check(&[127, 0, 0, 1].into()).unwrap();
        }
        door.before(Shows).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn a_good_request_arrives_decoded_with_its_visit() {
        let response = sent(&[]).await;
        assert_eq!(response.status(), 200);
        let visit: &Visit = response.extensions().get().unwrap();
        assert_eq!(
            (visit.caller.as_ref().unwrap().principal(), &*visit.request_id),
            ("token", response.headers()["x-request-id"].to_str().unwrap())
        );
    }

    #[tokio::test]
    async fn each_step_answers_before_the_next() {
        for (at, (fault, status)) in FAULTS.iter().enumerate() {
            let response = sent(&[fault]).await;
            assert_eq!(response.status(), *status, "{fault}");
            assert!(response.headers().contains_key("x-request-id") && response.headers()["cache-control"] == "no-store");
            let body: Value = serde_json::from_str(&text(response).await).unwrap();
            assert_eq!((&body["jsonrpc"], body["error"]["message"].is_string()), (&json!("2.0"), true), "{fault}");
            assert!(body["error"]["data"]["requestId"].is_string(), "{fault}");
            if let Some((next, _)) = FAULTS.get(at + 1) {
                assert_eq!(sent(&[fault, next]).await.status(), *status, "{fault} before {next}");
            }
        }
        let all: Vec<&str> = FAULTS.iter().map(|(fault, _)| *fault).collect();
        assert_eq!(sent(&all).await.status(), FAULTS[0].1);
        let code = |response: Response<Body>| async move {
            serde_json::from_str::<Value>(&text(response).await).unwrap()["error"]["code"].clone()
        };
        assert_eq!(
            (code(sent(&["syntax", "envelope"]).await).await, code(sent(&["envelope"]).await).await),
            (json!(-32700), json!(-32600))
        );
    }

    #[tokio::test]
    async fn health_is_behind_host_and_rate_and_before_the_token() {
        let mut set = settings();
        set.requests_per_minute = 2;
        let door = Door::new(set);
        let ask = |host: &str| {
            let visit = Visit::new("127.0.0.1:5000".parse().unwrap());
            let request = Request::builder().uri("/mcp/health").header("host", host).extension(visit);
            door.before(Shows).oneshot(request.body(Body::empty()).unwrap())
        };
        assert_eq!(ask("evil.example").await.unwrap().status(), 421, "and it takes nothing of the rate");
        assert_eq!(
            (ask("localhost:4986").await.unwrap().status(), ask("localhost:4986").await.unwrap().status()),
            (200.try_into().unwrap(), 200.try_into().unwrap())
        );
        assert_eq!(ask("localhost:4986").await.unwrap().status(), 429);
    }

    #[tokio::test]
    async fn a_page_of_the_list_can_read_its_refusals() {
        let request =
            Request::builder().method("POST").uri("/mcp").header("host", "localhost:4986").header("origin", "https://app.example");
        let request = request.extension(Visit::new("127.0.0.1:5000".parse().unwrap())).body(Body::empty()).unwrap();
        let response = Door::new(settings()).before(Shows).oneshot(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["access-control-allow-origin"]),
            (401, &"https://app.example".parse().unwrap())
        );
    }
}
