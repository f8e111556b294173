//! The private listener (decision 87): `/livez`, `/readyz`, `/metrics`, and what hooks add.
//!
//! Promises: binds to loopback unless the operator says otherwise; answers only for its own names, so that a web page cannot read it through a
//! visitor's browser; a client that says nothing, or takes its time, is cut off, and at once where others want its place; at most
//! [`CONNECTIONS_MAX`] at once.
//! Does not: ask for a token, or run tools.

mod places;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header, uri::Authority},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::ServiceExt as _;

use self::places::{Place, Places};
use crate::{
    health::Health,
    telemetry::{hook::Hooks, metrics::Metrics},
};

/// A scraper, a prober and a person with a browser each hold one or two.
const CONNECTIONS_MAX: usize = 16;
/// From the connection to its first request's head.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// One connection is one request: its whole life.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(30);
/// After a failed accept (no file descriptors left): the next would fail too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the listener answers from.
#[derive(Clone)]
pub struct Admin {
    /// For `/readyz`.
    pub health: Arc<Health>,
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// For what they add.
    pub hooks: Hooks,
    /// Names beside the loopback ones that it answers for, with any port (where it is bound to more than loopback).
    pub hosts: Vec<String>,
}

/// Why the listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Not loopback.
    #[error("admin.listen is {0}, which others can reach; it asks for no token. Give a loopback address, or set admin.allow_remote = true")]
    Remote(SocketAddr),
    /// The system says no.
    #[error("{0} cannot be listened on: {1}")]
    Io(SocketAddr, std::io::Error),
}

/// The address that `listen` (`admin.listen`) names.
///
/// # Errors
/// A sentence, where it is none, or others can reach it and `allow_remote` is not set.
pub fn address(listen: &str, allow_remote: bool) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        listen.parse().map_err(|_| format!("admin.listen is {listen}; give an address and a port such as 127.0.0.1:4987"))?;
    let own = allow_remote || address.ip().to_canonical().is_loopback();
    if own { Ok(address) } else { Err(BindError::Remote(address).to_string()) }
}

/// Listens on `address`.
///
/// # Errors
/// [`BindError`], where `address` is not a loopback one and `allow_remote` is not set, or it is taken.
pub async fn bind(address: SocketAddr, allow_remote: bool) -> Result<TcpListener, BindError> {
    if !allow_remote && !address.ip().to_canonical().is_loopback() {
        return Err(BindError::Remote(address));
    }
    TcpListener::bind(address).await.map_err(|error| BindError::Io(address, error))
}

/// Serves until `shutdown` ends; what is being answered then is answered.
///
/// # Errors
/// When the listener does not know its own address.
pub async fn serve(listener: TcpListener, admin: Admin, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
    let router = router(admin, listener.local_addr()?);
    let mut places = Places::new(CONNECTIONS_MAX);
    let mut open = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => if let Some(place) = places.take() {
                    open.spawn(connection(stream, router.clone(), place));
                },
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// axum's own server has no deadlines. One request each: there is nobody for whom a new connection is too much.
async fn connection(stream: TcpStream, router: Router, place: Place) {
    let asking = place.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        asking.ask();
        router.clone().oneshot(request)
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whichever way it ends, the client has got what it will get.
    tokio::select! {
        _ = tokio::time::timeout(CONNECTION_DEADLINE, serving) => {}
        () = place.left() => {}
    }
}

fn router(admin: Admin, own: SocketAddr) -> Router {
    let names = Names { own, more: admin.hosts.clone() };
    let hooks = admin.hooks.routes();
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(admin)
        .merge(hooks)
        // Over the fallback too: what is not there is nobody else's business either.
        .layer(middleware::from_fn_with_state(Arc::new(names), host))
}

async fn readyz(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.health.ready().await { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n") }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    // Reading them takes locks and a file: not on the async threads.
    match tokio::task::spawn_blocking(move || admin.metrics.text()).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, prometheus_type())], text).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

const fn prometheus_type() -> &'static str {
    "text/plain; version=0.0.4; charset=utf-8"
}

/// Which hosts are answered for.
struct Names {
    own: SocketAddr,
    more: Vec<String>,
}

impl Names {
    fn answer_for(&self, authority: &Authority) -> bool {
        // "user@localhost" and "localhost:" parse as authorities, and are no host that anyone of good will sends.
        let (host, text) = (authority.host(), authority.as_str());
        let whole = authority.port().map_or_else(|| host.len(), |port| host.len() + 1 + port.as_str().len()) == text.len();
        let own_port = authority.port_u16().unwrap_or(80) == self.own.port();
        let loopback = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| name.eq_ignore_ascii_case(host));
        let literal = !self.own.ip().is_unspecified() && SocketAddr::new(self.own.ip(), 0).to_string() == format!("{host}:0");
        whole && ((loopback || literal) && own_port || self.more.iter().any(|name| name.eq_ignore_ascii_case(host)))
    }
}

async fn host(State(names): State<Arc<Names>>, request: Request, next: Next) -> Result<Response, Infallible> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    // An absolute-form target names a host too; nobody here is a proxy.
    let one = hosts.next().is_none() && request.uri().authority().is_none();
    if !one || !host.is_some_and(|host| names.answer_for(&host)) {
        return Ok((StatusCode::MISDIRECTED_REQUEST, "this listener does not answer for that host\n").into_response());
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests;
