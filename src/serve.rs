//! The composition root of the HTTP service: settings -> store -> tools -> gate -> listeners -> drain.
//!
//! Promises: everything is put together here and nowhere else; what cannot be opened is a sentence before anything is answered; ends with 0 on
//! SIGTERM and SIGINT once what is in flight has finished or its time is up, at once on a second signal (decision 80).
//! Does not: decide anything about one request.

pub mod accept;
pub mod connections;
pub mod flags;
pub mod hooks;
pub mod ingest;
pub mod quiet;
pub mod settings;
pub mod tenants;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::HeaderName;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use self::{accept::Counters, connections::Keeper, ingest::Desk, settings::Settings, tenants::House};
use crate::{
    admin::{self, Admin},
    auth::{
        authority::{Authority, Credentials},
        metadata::{Metadata, WELL_KNOWN},
    },
    cli::{
        CliError,
        session::{self, Session},
    },
    commands::tool::{self, Commands},
    config::Config,
    domain::decision,
    gate::{
        Bounds, Gate,
        client::ClientRules,
        documents::Document,
        door::{self, Door},
        health::{Health as Said, Probe},
        listed,
        measure::MeasureLayer,
        tool_api::ToolApi,
    },
    health::{self, Health},
    mcp::{
        CALLS,
        core::Core,
        http::{Endpoint, Framing},
    },
    telemetry::{
        hook::Hooks,
        metrics::{self, Metrics},
        redaction::Redactor,
    },
    tool_api::Desk as ToolDesk,
    tools::{render::Style, tool_api},
};

/// How long readiness is off before the listener closes, so that a balancer sees it (decision 80).
const LAME_DUCK: Duration = Duration::from_secs(1);

/// Serves `session`'s project until a signal comes.
///
/// # Errors
/// [`CliError`] when the address is taken or cannot be listened on, or something of the service cannot be made.
pub fn run(session: &Session, settings: Settings) -> Result<u8, CliError> {
    let commands = session::commands(session.config(), Some(session.root()), Some(settings.timeout), settings.toolsets)?;
    let credentials = settings.token.clone().map_or(Credentials::None, Credentials::Token);
    let store = session.shared_store();
    let answers = Arc::new(move || health::answers(&*store).is_ok());
    let served = Served {
        gate: session.settings(Style::PLAIN, true),
        credentials,
        answers,
        metadata: None,
        documents: vec![contract()],
        read_only: session.read_only(),
        desk: None,
        commands: commands.clone(),
        secrets: tool::secrets(session.config()).collect(),
        outside: hooks::Outside::of(session.config())?,
    };
    let ended = session::serve(serve(served, settings, || session.begin_index(), std::future::pending()));
    commands.close();
    ended?.map(|()| 0)
}

/// Serves the organizations of `house` until a signal comes.
///
/// # Errors
/// As [`run`].
pub fn run_tenants(house: &House, config: &Config, settings: Settings) -> Result<u8, CliError> {
    let commands = session::commands(config, None, Some(settings.timeout), settings.toolsets)?;
    let gate = crate::gate::Settings { writes: Some(config.write_rules()), ..session::settings_for(config, house.projects()) };
    let metadata = config.metadata(&SCOPES);
    let desk = Desk::new(house.opened(), config);
    desk.sweep();
    let served = Served {
        gate,
        credentials: Credentials::Tenants(house.tenants()),
        answers: house.answers(),
        documents: documents(config, metadata.as_ref(), &settings.endpoints)?,
        metadata,
        read_only: false,
        desk: Some(desk.clone()),
        commands: commands.clone(),
        secrets: tool::secrets(config).collect(),
        outside: hooks::Outside::of(config)?,
    };
    let keeper = Keeper::new(house.opened(), house.tenants(), config);
    let connections = async {
        match &keeper {
            Some(keeper) => keeper.keep().await,
            None => std::future::pending().await,
        }
    };
    let keep = async {
        tokio::select! {
            () = house.keep() => {}
            () = desk.keep() => {}
            () = connections => {}
        }
    };
    let ended = session::serve(serve(served, settings, || (), keep))?;
    commands.close();
    house.close();
    ended.map(|()| 0)
}

/// What is served: a project, or the projects of organizations.
struct Served {
    gate: crate::gate::Settings,
    credentials: Credentials,
    /// Whether what is behind it answers.
    answers: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Where clients log in, where there is somewhere.
    metadata: Option<Metadata>,
    /// What anybody may read.
    documents: Vec<Document>,
    read_only: bool,
    /// Who takes what is sent, where anything is.
    desk: Option<Desk>,
    /// The operator's commands.
    commands: Commands,
    /// Values of theirs that no answer may hold.
    secrets: Vec<String>,
    /// Which other servers are told of calls and faults.
    outside: hooks::Outside,
}

/// The scopes that a client asks for at first.
const SCOPES: [&str; 3] = ["eval:read", "runs:read", "traces:read"];

/// Where our own key's set is.
const JWKS: &str = "/.well-known/jwks.json";

/// Where clients log in, for the whole server and for each endpoint, and our own key's set.
fn documents(config: &Config, metadata: Option<&Metadata>, endpoints: &[String]) -> Result<Vec<Document>, CliError> {
    let key = config.local_key().map_err(CliError::Usage)?;
    let paths = std::iter::once("").chain(endpoints.iter().map(String::as_str));
    let login = metadata.into_iter().flat_map(|metadata| {
        paths.clone().map(|path| Document { path: format!("{WELL_KNOWN}{path}"), json: metadata.document(path).into() })
    });
    let keys = key.map(|key| Document { path: JWKS.to_owned(), json: key.jwks().into() });
    Ok(login.chain(keys).chain([contract()]).collect())
}

/// The schema of what agents hand over when they have evaluated a change (decision 27).
fn contract() -> Document {
    Document { path: decision::PATH.to_owned(), json: decision::SCHEMA.into() }
}

/// `begin` once it listens; `meanwhile` as long as it does.
async fn serve(served: Served, settings: Settings, begin: impl FnOnce(), meanwhile: impl Future<Output = ()>) -> Result<(), CliError> {
    let listener = listen(&settings).await?;
    let own = listener.local_addr().map_err(|error| CliError::Refused(error.to_string()))?;
    let service = Service::new(served, &settings)?;
    let admin = service.admin(&settings).await?;
    let mut signals = Signals::new()?;
    announce(&settings, own);
    begin();
    let shutdown = CancellationToken::new();
    let public =
        accept::serve(listener, service.door(&settings, own), loop_settings(&settings), service.counters.clone(), shutdown.clone());
    tokio::pin!(public, meanwhile);
    tokio::select! {
        () = &mut public => return Ok(()),
        () = &mut meanwhile => return Ok(()),
        () = signals.next() => service.health.drain(),
    }
    let drain = async {
        let _ = tokio::time::timeout(LAME_DUCK, &mut public).await;
        shutdown.cancel();
        public.await;
        hooks::finish(service.hooks.clone(), Duration::from_millis(settings.http.flush_ms)).await;
    };
    tokio::select! {
        () = drain => {}
        () = signals.next() => {}
    }
    if let Some(admin) = admin {
        admin.abort();
    }
    Ok(())
}

async fn listen(settings: &Settings) -> Result<TcpListener, CliError> {
    let addresses = settings::addresses(&settings.host, settings.port).await.map_err(CliError::Usage)?;
    if !settings.is_loopback() {
        let who = match (settings.tenants, settings.token.is_some()) {
            (true, _) => "with the keys and tokens of its organizations",
            (false, true) => "with the token",
            (false, false) => "without a token",
        };
        tracing::warn!(host = settings.host, "the service can be reached from other machines, {who}");
    }
    let taken =
        |error: std::io::Error| CliError::Usage(format!("port {} on {} cannot be listened on: {error}", settings.port, settings.host));
    TcpListener::bind(addresses.as_slice()).await.map_err(taken)
}

/// Says where it listens and who may ask, as a line of the log.
fn announce(settings: &Settings, own: SocketAddr) {
    let urls: Vec<String> = settings.endpoints.iter().map(|path| format!("http://{own}{path}")).collect();
    let auth = match (settings.public, &settings.token, settings.tenants) {
        (_, _, true) => "tenants",
        (true, ..) => "public",
        (false, Some(_), _) => "token",
        (false, None, _) => "none",
    };
    crate::telemetry::line(&serde_json::json!({"event": "listening", "urls": urls, "auth": auth, "admin": settings.admin}));
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let watch = |kind| signal(kind).map_err(|error| CliError::Refused(format!("signals cannot be watched: {error}")));
        Ok(Self { terminate: watch(SignalKind::terminate())?, interrupt: watch(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The parts that the listeners share.
struct Service {
    gate: Gate,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    counters: Arc<Counters>,
    hooks: Hooks,
    authority: Authority,
    metadata: Option<Metadata>,
    documents: Vec<Document>,
    tools: usize,
    read_only: bool,
    desk: Option<Desk>,
}

impl Service {
    fn new(served: Served, settings: &Settings) -> Result<Self, CliError> {
        let fault = |error: metrics::Error| CliError::Refused(format!("metrics cannot be kept: {error}"));
        let registry = served.commands.registry;
        let names = registry.entries().chain(tool_api::ENTRIES).chain(CALLS).map(|entry| entry.name);
        let metrics = Arc::new(Metrics::new(names).map_err(fault)?);
        let hooks = hooks::all(&served.outside, &metrics)?;
        // The token is a known value too: whoever may read must not find it in an answer.
        let secrets = settings.token.iter().map(|token| token.secret().to_owned()).chain(served.secrets);
        let gate = Gate::new(crate::gate::Settings {
            bounds: Bounds { row_wait: served.gate.bounds.row_wait, ..bounds(settings) },
            hooks: hooks.clone(),
            call_timeout: settings.timeout,
            registry,
            redactor: Arc::new(Redactor::from_environment(secrets)),
            ..served.gate
        });
        gate.watch(&metrics).map_err(fault)?;
        let counters = Arc::new(Counters::default());
        watch_connections(&metrics, &counters).map_err(fault)?;
        let stranger = settings.stranger();
        // What health says of tools: how many a stranger is shown (decision 79).
        let shown = stranger.clone().unwrap_or_else(|| settings.anonymous());
        let tools = registry.entries().filter(|entry| gate.has(entry) && settings.toolsets.offer(entry) && listed(&shown, entry)).count();
        let health = Arc::new(Health::new(served.answers));
        hooks.start();
        let authority = Authority { credentials: served.credentials, stranger };
        Ok(Self {
            gate,
            health,
            metrics,
            counters,
            hooks,
            authority,
            metadata: served.metadata,
            documents: served.documents,
            tools,
            read_only: served.read_only,
            desk: served.desk,
        })
    }

    /// The way of a request, from a connection to the registry.
    fn door(
        &self,
        settings: &Settings,
        own: SocketAddr,
    ) -> impl tower::Service<
        http::Request<hyper::body::Incoming>,
        Response = http::Response<axum::body::Body>,
        Error = std::convert::Infallible,
        Future: Send + 'static,
    >
    + Clone
    + Send
    + Sync
    + 'static
    + use<> {
        let framings: Vec<Framing> = settings.endpoints.iter().map(|path| settings.framing(path)).collect();
        let endpoint = Endpoint::new(
            if settings.public && !settings.tenants { Core::public(self.gate.clone()) } else { Core::new(self.gate.clone()) }
                .offering(settings.toolsets),
            framings.into(),
        );
        let door = Door::new(self.door_settings(settings, own));
        let (places, limiter, tenants) = (door.inflight.places(), door.rate.limiter(), door.tenant_rate.limiter());
        let watched = self
            .metrics
            .watch(&metrics::REQUESTS_IN_FLIGHT, &[], move || places.held() as u64)
            .and_then(|()| self.metrics.watch(&metrics::LIMITER_ENTRIES, &["request_rate"], move || limiter.keys() as u64))
            .and_then(|()| self.metrics.watch(&metrics::LIMITER_ENTRIES, &["tenant_rate"], move || tenants.keys() as u64));
        if let Err(error) = watched {
            tracing::error!(%error, "the door's own numbers are not in the metrics");
        }
        door.before(endpoint)
    }

    fn door_settings(&self, settings: &Settings, own: SocketAddr) -> door::Settings {
        let legacy_streams = |path: &String| settings.framing(path) == Framing::EventStream;
        let http = &settings.http;
        door::Settings {
            bind: Some(own.ip()),
            port: own.port(),
            allowed_hosts: settings.allowed_hosts.clone(),
            allowed_origins: settings.allowed_origins.clone(),
            client: ClientRules::new(
                settings.client_header.as_deref().and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()),
                settings.trusted.clone(),
            ),
            endpoints: settings
                .endpoints
                .iter()
                .map(|path| door::Endpoint { path: path.clone(), legacy_streams: legacy_streams(path) })
                .collect(),
            inflight_max: http.in_flight_max,
            inflight_per_caller: http.per_caller_max,
            slot_wait: Duration::from_secs(http.slot_wait_s),
            call_timeout: settings.timeout,
            requests_per_minute: settings.rates.request,
            limiter_keys_max: http.limiter_keys_max,
            authority: self.authority.clone(),
            documents: self.documents.clone(),
            metadata: self.metadata.clone(),
            placed: settings.tenants,
            tenant_requests_per_minute: if settings.tenants { settings.tenant_rate } else { 0 },
            measure: MeasureLayer::new(self.metrics.clone(), settings.endpoints.clone()),
            body_bytes_max: http.body_bytes_max,
            body_within: Duration::from_secs(http.body_deadline_s),
            probe: self.probe(settings.public),
            tools: settings.tool_api_writes.map(|writes| Arc::new(ToolDesk::new(self.gate.clone(), writes)) as Arc<dyn ToolApi>),
            push: self.desk.as_ref().map(|desk| door::Push { desk: Arc::new(desk.clone()), within: desk.within() }),
            hooks: self.hooks.clone(),
        }
    }

    fn probe(&self, public: bool) -> Probe {
        let known = Said { ok: true, version: env!("CARGO_PKG_VERSION"), tools: self.tools, public, read_only: self.read_only };
        let health = self.health.clone();
        Probe {
            known,
            ready: Arc::new(move || {
                let health = health.clone();
                Box::pin(async move { health.ready().await })
            }),
        }
    }

    /// The private listener, where one is asked for.
    async fn admin(&self, settings: &Settings) -> Result<Option<tokio::task::JoinHandle<()>>, CliError> {
        let Some(listen) = &settings.admin else { return Ok(None) };
        let address = admin::address(listen, settings.admin_remote).map_err(CliError::Usage)?;
        let listener = admin::bind(address, settings.admin_remote).await.map_err(|error| CliError::Usage(error.to_string()))?;
        let admin = Admin {
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            hooks: self.hooks.clone(),
            hosts: settings.allowed_hosts.clone(),
        };
        Ok(Some(tokio::spawn(async move {
            // It says what is going on until the very end of the process.
            if let Err(error) = admin::serve(listener, admin, std::future::pending()).await {
                tracing::error!(%error, "the private listener ended");
            }
        })))
    }
}

fn watch_connections(metrics: &Metrics, counters: &Arc<Counters>) -> Result<(), metrics::Error> {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let watch = |word: &'static str, number: fn(&Counters) -> &AtomicU64| {
        let counters = counters.clone();
        metrics.watch(&metrics::CONNECTIONS, &[word], move || number(&counters).load(Relaxed))
    };
    watch("accepted", |counters| &counters.accepted)?;
    watch("refused_total", |counters| &counters.refused_total)?;
    watch("refused_per_address", |counters| &counters.refused_per_address)?;
    watch("accept_error", |counters| &counters.accept_errors)?;
    watch("idle_closed", |counters| &counters.idle_closed)?;
    watch("late_closed", |counters| &counters.late_closed)?;
    watch("stalled_closed", |counters| &counters.stalled_closed)?;
    watch("resets_closed", |counters| &counters.resets_closed)?;
    watch("broken", |counters| &counters.broken)?;
    watch("cut", |counters| &counters.cut)?;
    let open = counters.clone();
    metrics.watch(&metrics::CONNECTIONS_OPEN, &[], move || open.open.load(Relaxed))
}

fn bounds(settings: &Settings) -> Bounds {
    let http = &settings.http;
    Bounds {
        rate: settings.rates.caller,
        rate_total: settings.rates.total,
        concurrent: settings.concurrent,
        // A share of one is a share all the same.
        concurrent_each: settings.concurrent.div_ceil(2),
        light_per_caller: http.light_per_caller,
        slot_wait: Duration::from_secs(http.slot_wait_s),
        cache_bytes: http.cache_bytes,
        cache_for: Duration::from_secs(http.cache_ttl_s),
        handlers: http.handlers,
        limiter_keys_max: http.limiter_keys_max,
        ..Bounds::default()
    }
}

fn loop_settings(settings: &Settings) -> accept::Settings {
    let http = &settings.http;
    accept::Settings {
        connections_max: http.connections_max,
        connections_per_address_max: http.per_caller_max,
        header_deadline: Duration::from_secs(http.header_deadline_s),
        header_bytes_max: http.header_bytes_max,
        headers_max: http.headers_max,
        idle: Duration::from_secs(http.idle_s),
        // Only proxies that were named: the loopback's own callers are counted like any other.
        trusted: settings.named_proxies.clone(),
        drain: Duration::from_secs(http.drain_s),
        ..accept::Settings::default()
    }
}
