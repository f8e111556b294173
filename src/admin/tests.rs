//! The private listener over real sockets.
//!
//! Promises: each promise of `admin` is broken once.
//! Does not: wait for real time.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
};

use super::*;
use crate::telemetry::hook::Hook;

struct Extra;

impl Hook for Extra {
    fn routes(&self) -> Router {
        Router::new().route("/extra", get(|| async { "extra\n" }))
    }
}

struct Running {
    address: SocketAddr,
    health: Arc<Health>,
    end: oneshot::Sender<()>,
    ended: Arc<AtomicBool>,
}

async fn running() -> Running {
    let listener = bind("127.0.0.1:0".parse().unwrap(), false).await.unwrap();
    let address = listener.local_addr().unwrap();
    let health = Arc::new(Health::new(Arc::new(|| true)));
    let hooks = Hooks::new(vec![Arc::new(Extra)]);
    let admin =
        Admin { health: health.clone(), metrics: Arc::new(Metrics::new(["show"]).unwrap()), hooks, hosts: vec!["metrics.example".into()] };
    let (end, asked) = oneshot::channel();
    let ended = Arc::new(AtomicBool::new(false));
    let done = ended.clone();
    tokio::spawn(async move {
        serve(listener, admin, async { drop(asked.await) }).await.unwrap();
        done.store(true, SeqCst);
    });
    Running { address, health, end, ended }
}

async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn ask(running: &Running, path: &str) -> String {
    raw(running.address, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", running.address)).await
}

#[tokio::test]
async fn live_ready_metrics_and_what_hooks_add() {
    let running = running().await;
    assert!(ask(&running, "/livez").await.starts_with("HTTP/1.1 200"));
    assert!(ask(&running, "/readyz").await.starts_with("HTTP/1.1 200"));
    let page = ask(&running, "/metrics").await;
    assert!(page.contains("text/plain; version=0.0.4") && page.contains("runlore_build_info{"), "{page}");
    assert!(ask(&running, "/extra").await.ends_with("extra\n"));
    assert!(ask(&running, "/").await.starts_with("HTTP/1.1 404"));
    running.health.drain();
    assert!(ask(&running, "/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(ask(&running, "/livez").await.starts_with("HTTP/1.1 200"), "alive until it ends");
}

#[tokio::test]
async fn only_its_own_hosts_are_answered_for() {
    let running = running().await;
    let port = running.address.port();
    for good in [format!("localhost:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}"), "metrics.example:1".to_owned()] {
        let answer = raw(running.address, &format!("GET /livez HTTP/1.1\r\nHost: {good}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{good}: {answer}");
    }
    let bad = [
        "evil.example".to_owned(),
        "localhost".to_owned(),
        "localhost:1".to_owned(),
        format!("localhost.:{port}"),
        format!("a@localhost:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.2:{port}"),
        format!("localhost:{port}\r\nHost: localhost:{port}"),
        String::new(),
    ];
    for host in bad {
        let answer = raw(running.address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 421") || answer.starts_with("HTTP/1.1 400"), "{host}: {answer}");
    }
    let absolute = format!("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    assert!(raw(running.address, &absolute).await.starts_with("HTTP/1.1 421"));
}

#[tokio::test]
async fn a_bind_that_others_can_reach_is_refused_unless_said() {
    for remote in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let refused = bind(remote.parse().unwrap(), false).await.unwrap_err().to_string();
        assert!(refused.contains("admin.allow_remote"), "{refused}");
    }
    assert!(bind("0.0.0.0:0".parse().unwrap(), true).await.is_ok());
}

#[tokio::test]
async fn those_who_say_nothing_do_not_keep_others_out_and_the_end_is_the_end() {
    let running = running().await;
    let mut silent = Vec::new();
    for number in 0..3 * CONNECTIONS_MAX {
        silent.push(TcpStream::connect(running.address).await.unwrap());
        if number % 2 == 0 {
            silent.last_mut().unwrap().write_all(b"GET /livez HT").await.unwrap();
        }
        assert!(ask(&running, "/livez").await.starts_with("HTTP/1.1 200"), "behind {} who are silent", number + 1);
    }
    // The oldest had to leave, long before their deadline.
    assert_eq!(silent[0].read(&mut [0]).await.unwrap_or(0), 0);
    drop(silent);
    running.end.send(()).unwrap();
    while !running.ended.load(SeqCst) {
        tokio::task::yield_now().await;
    }
    assert!(TcpStream::connect(running.address).await.is_err(), "nobody listens any more");
}
