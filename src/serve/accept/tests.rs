//! The accept loop over real sockets, with short limits and a service that does as its path says.
//!
//! Promises: no test waits for a time: each waits for a read to end or a count to be reached, within one generous deadline.
//! Does not: know the gate's steps but for the framing.

mod caps;
mod drain;
mod http1;
mod http2;
mod wire;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tower::{Layer, service_fn};

use super::{Counters, Settings, serve};
use crate::gate::{framing::FramingLayer, visit::Visit};

/// Long enough for a slow machine; met only by what is broken.
const PATIENCE: Duration = Duration::from_secs(20);
const BIG_BYTES: usize = 32 * 1024 * 1024;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Limits that are met within a test.
fn short() -> Settings {
    Settings { idle: ms(800), header_deadline: ms(2000), stall: ms(1500), drain: ms(1000), ..Settings::default() }
}

/// What the service tells the tests.
#[derive(Clone)]
struct Signals {
    /// One permit per request that has reached the service.
    started: Arc<Semaphore>,
    /// One permit lets one `/held` request finish.
    release: Arc<Semaphore>,
    /// Requests that are inside the service.
    inside: Arc<AtomicU64>,
}

struct Inside(Arc<AtomicU64>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Server {
    address: SocketAddr,
    counters: Arc<Counters>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    signals: Signals,
}

impl Server {
    async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, counters, shutdown) = (listener.local_addr().unwrap(), Arc::new(Counters::default()), CancellationToken::new());
        let signals =
            Signals { started: Arc::new(Semaphore::new(0)), release: Arc::new(Semaphore::new(0)), inside: Arc::new(AtomicU64::new(0)) };
        let its = signals.clone();
        let service = FramingLayer.layer(service_fn(move |request| answer(request, its.clone())));
        let task = tokio::spawn(serve(listener, service, settings, counters.clone(), shutdown.clone()));
        Self { address, counters, shutdown, task, signals }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects and sends.
    async fn send(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    async fn started(&self) {
        tokio::time::timeout(PATIENCE, self.signals.started.acquire()).await.unwrap().unwrap().forget();
    }

    async fn until_closed(&self) {
        until(|| count(&self.counters.open) == 0 && self.signals.inside.load(Ordering::SeqCst) == 0).await;
    }

    /// An ordinary client is served meanwhile.
    async fn serves(&self) {
        let stream = self.send(get("/", "Connection: close\r\n")).await;
        let text = read_all(stream).await;
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("ok"), "{text}");
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::SeqCst)
}

async fn until(reached: impl Fn() -> bool) {
    let wait = async {
        let mut look = tokio::time::interval(ms(2));
        while !reached() {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the count was not reached");
}

async fn answer(request: Request<Incoming>, signals: Signals) -> Result<Response<Body>, Infallible> {
    signals.inside.fetch_add(1, Ordering::SeqCst);
    let _inside = Inside(signals.inside.clone());
    signals.started.add_permits(1);
    let peer = request.extensions().get::<Visit>().map(|visit| visit.peer.ip().to_string()).unwrap_or_default();
    let (parts, body) = request.into_parts();
    let body = match parts.uri.path() {
        "/visit" => Body::from(peer),
        "/big" => Body::from(vec![b'x'; BIG_BYTES]),
        "/never" => std::future::pending().await,
        "/early" => {
            let mut response = Response::new(Body::from("too large"));
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            return Ok(response);
        }
        "/held" => {
            signals.release.acquire().await.unwrap().forget();
            Body::from("held")
        }
        "/echo" => body.collect().await.map_or_else(|_| Body::from("broken"), |body| Body::from(body.to_bytes())),
        _ => Body::from("ok"),
    };
    Ok(Response::new(body))
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n")
}

/// All that comes until the connection ends, however it ends.
async fn read_bytes(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection was not closed");
    bytes
}

async fn read_all(stream: TcpStream) -> String {
    String::from_utf8_lossy(&read_bytes(stream).await).into_owned()
}

/// Reads until `end` has come.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).ends_with(end) {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("nothing came");
        bytes.push(byte.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&bytes))));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a byte again and again until the other end has closed.
async fn trickle(mut stream: TcpStream, bytes: &[u8]) {
    let mut beat = tokio::time::interval(ms(20));
    let drip = async {
        loop {
            beat.tick().await;
            if stream.write_all(bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.expect("the connection was not closed");
}
