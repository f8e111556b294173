//! The accept loop: from a listening socket to requests in the gate's hands.
//!
//! Promises: no connection costs more than its limits ([`Settings`], each with its reason), whatever the other end does or leaves undone;
//! accepting never waits for a client; every request carries a [`crate::gate::visit::Visit`] with its peer; after `shutdown` no new
//! connection is taken, what is in flight is finished within the drain bound, and then nothing of it is left running.
//! Does not: look into requests, beyond how many headers they have; know who asks; speak TLS.

mod answer;
mod connection;
mod counters;
mod ledger;
mod seats;
mod settings;
mod socket;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

pub use counters::Counters;
pub use settings::Settings;

use connection::Shared;
use counters::bump;
use seats::{Seat, Seats};

/// The first wait after an accept that failed for want of something (file descriptors, memory); it doubles up to the last.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
const BACKOFF_LAST: Duration = Duration::from_secs(1);

/// Serves `listener` with `service` until `shutdown`, then drains; returns when no connection is left.
pub async fn serve<S>(listener: TcpListener, service: S, settings: Settings, counters: Arc<Counters>, shutdown: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let seats = Seats::new(&settings);
    let drain = settings.drain;
    let shared = Arc::new(Shared::new(settings, counters, shutdown));
    let tasks = TaskTracker::new();
    while let Some((stream, peer)) = next(&listener, &shared).await {
        match seats.take(peer.ip()) {
            Ok(seat) => {
                let seat = Open::new(seat, shared.counters.clone());
                tasks.spawn(connection::run(stream, peer, service.clone(), shared.clone(), seat));
            }
            Err(full) => {
                bump(shared.counters.refused(full));
                seats::turn_away(stream, full);
            }
        }
    }
    drop(listener);
    finish(&tasks, &shared, drain).await;
}

/// Lets what is in flight finish within `drain`, then drops it.
async fn finish(tasks: &TaskTracker, shared: &Shared, drain: Duration) {
    tasks.close();
    if tokio::time::timeout(drain, tasks.wait()).await.is_err() {
        shared.cut.cancel();
        tasks.wait().await;
    }
}

/// The next connection; none once the service shuts down.
async fn next(listener: &TcpListener, shared: &Shared) -> Option<(TcpStream, SocketAddr)> {
    let mut wait = BACKOFF_FIRST;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                bump(&shared.counters.accepted);
                // Answers are written whole: waiting to fill a packet would only delay them. Failing costs speed, not truth.
                let _ = stream.set_nodelay(true);
                return Some((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())));
            }
            Err(error) => wait = after_failure(&error, wait, shared).await,
        }
    }
}

/// Waits as a failed accept asks for; gives the next wait.
async fn after_failure(error: &io::Error, wait: Duration, shared: &Shared) -> Duration {
    bump(&shared.counters.accept_errors);
    let Some(next) = backoff(error, wait) else { return wait };
    tracing::warn!(%error, "a connection could not be accepted");
    // Without this, EMFILE would be reported again at once, for ever: the connection stays in the queue.
    let _ = tokio::time::timeout(wait, shared.shutdown.cancelled()).await;
    next
}

/// The wait after this one; none where the error is that one client's, who left before it was accepted.
fn backoff(error: &io::Error, wait: Duration) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    let clients = matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset);
    (!clients).then(|| BACKOFF_LAST.min(wait * 2))
}

/// An open connection: its seat, and its part of the count.
struct Open {
    counters: Arc<Counters>,
    _seat: Seat,
}

impl Open {
    fn new(seat: Seat, counters: Arc<Counters>) -> Self {
        bump(&counters.open);
        Self { counters, _seat: seat }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}
