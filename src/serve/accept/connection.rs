//! One connection from its first byte to its last.
//!
//! Promises: HTTP/1.1, or HTTP/2 by prior knowledge, with hyper's limits set from [`Settings`]; ended by the client, by the protocol, by the
//! watchdog or by the drain, whichever is first; after a refusal that leaves bytes unread, the client gets time to read it.
//! Does not: start work that outlives the connection: what hyper spawned for HTTP/2 ends when its connection is dropped.

use std::{convert::Infallible, io, net::SocketAddr, pin::Pin, pin::pin, sync::Arc, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{
    Counters, Open, Settings,
    answer::Counter,
    counters::bump,
    ledger::{Ledger, Outlook, Why},
    socket::Socket,
};

/// Hyper panics below it.
const BUFFER_BYTES_MIN: usize = 8192;
/// Hyper's own bound on headers; asked for, it takes a slower way.
const HYPER_HEADERS_MAX: usize = 100;
/// What a client may send ahead on HTTP/2: a request body of the usual size per stream, a few of them per connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// What h2 holds of a response: a few pieces.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// A kernel that closes with bytes unread resets the connection, and the client loses the answer (431, 413): so what it still sends is
/// read and thrown away, for so long and so much.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// What all connections share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    /// Finish and go.
    pub(super) shutdown: CancellationToken,
    /// Go.
    pub(super) cut: CancellationToken,
    http: auto::Builder<TokioExecutor>,
}

impl Shared {
    pub(super) fn new(settings: Settings, counters: Arc<Counters>, shutdown: CancellationToken) -> Self {
        Self { http: http(&settings), settings, counters, shutdown, cut: CancellationToken::new() }
    }
}

fn http(settings: &Settings) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // No half-close: a client that closes its side has left, and its call is cancelled.
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_deadline)
        .max_buf_size(settings.header_bytes_max.max(BUFFER_BYTES_MIN))
        .half_close(false);
    if settings.headers_max != HYPER_HEADERS_MAX {
        http.http1().max_headers(settings.headers_max);
    }
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.h2_streams_max)
        .max_header_list_size(u32::try_from(settings.header_bytes_max).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(settings.h2_pending_resets_max)
        .max_local_error_reset_streams(settings.h2_error_resets_max)
        .keep_alive_interval(settings.h2_ping_interval)
        .keep_alive_timeout(settings.h2_ping_timeout)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX);
    http
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// As the protocol ends.
    Done,
    /// By a fault of the protocol, or because the client left midway.
    Broken,
    /// By the watchdog.
    Closed(Why),
    /// By the end of the drain.
    Cut,
}

impl Ending {
    fn of(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let Err(error) = result else { return Self::Done };
        // A graceful shutdown before the protocol was known: hyper-util's word for it.
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            return Self::Done;
        }
        let late = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout);
        tracing::debug!(%error, "a connection broke");
        if late { Self::Closed(Why::Late) } else { Self::Broken }
    }
}

/// Serves one connection to its end.
pub(super) async fn run<S>(stream: TcpStream, peer: SocketAddr, service: S, shared: Arc<Shared>, open: Open)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let ledger = Ledger::new(&shared.settings);
    let (socket, mut back) = Socket::lend(stream, ledger.clone());
    let service = Counter { service, peer, headers_max: shared.settings.headers_max, ledger: ledger.clone() };
    let ending = drive(pin!(shared.http.serve_connection(TokioIo::new(socket), service)), &ledger, &shared).await;
    if let Some(counter) = shared.counters.ended(ending) {
        bump(counter);
    }
    if let (Ending::Done | Ending::Broken, Ok(stream)) = (ending, back.try_recv()) {
        let _ = shared.cut.run_until_cancelled(tokio::time::timeout(LINGER, linger(stream))).await;
    }
    drop(open);
}

/// Hyper's connection with our service.
type Connection<'a, S> = auto::Connection<'a, TokioIo<Socket>, Counter<S>, TokioExecutor>;

async fn drive<S>(mut connection: Pin<&mut Connection<'_, S>>, ledger: &Ledger, shared: &Shared) -> Ending
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let mut leaving = false;
    loop {
        let look = match ledger.outlook() {
            Outlook::Look(at) => at,
            Outlook::Close(why) => return Ending::Closed(why),
        };
        tokio::select! {
            biased;
            result = connection.as_mut() => return Ending::of(result),
            () = shared.cut.cancelled() => return Ending::Cut,
            () = shared.shutdown.cancelled(), if !leaving => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            () = ledger.resets() => {
                if ledger.floods() {
                    return Ending::Closed(Why::Resets);
                }
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(look.into()) => {}
        }
    }
}

/// Says that we are done, and reads on for a while.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let (mut buffer, mut left) = (vec![0; BUFFER_BYTES_MIN], LINGER_BYTES_MAX);
    while left > 0 {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => left = left.saturating_sub(read),
        }
    }
}
