//! Leaving: what is in flight finishes within the bound, what does not is cut, and nothing is left.

use super::{wire::Client, *};

#[tokio::test]
async fn a_request_in_flight_finishes_and_nobody_new_is_taken() {
    let server = Server::start(Settings { drain: PATIENCE, ..Settings::default() }).await;
    let idle = server.connect().await;
    let mut kept = server.send(get("/visit", "")).await;
    read_to(&mut kept, "127.0.0.1").await;
    let mut held = server.send(get("/held", "")).await;
    let mut h2 = Client::connect(&server).await;
    h2.request(1, "/held").await;
    (0..3).for_each(|_| drop(server.signals.started.try_acquire()));
    until(|| server.signals.inside.load(Ordering::SeqCst) == 2).await;
    server.shutdown.cancel();
    assert_eq!((read_all(idle).await, read_all(kept).await), (String::new(), String::new()));
    assert!(TcpStream::connect(server.address).await.is_err());
    server.signals.release.add_permits(2);
    let text = read_to(&mut held, "held").await;
    assert!(text.to_lowercase().contains("connection: close"), "{text}");
    assert_eq!(h2.answer(1).await, "held");
    assert!(h2.ends_with_goaway().await);
    tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap();
    assert_eq!((count(&server.counters.cut), count(&server.counters.open)), (0, 0));
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut() {
    let server = Server::start(short()).await;
    let h1 = server.send(get("/never", "")).await;
    let mut h2 = Client::connect(&server).await;
    h2.request(1, "/never").await;
    server.started().await;
    server.started().await;
    server.shutdown.cancel();
    assert_eq!(read_all(h1).await, "");
    assert!(h2.ends_with_goaway().await);
    tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap();
    assert_eq!((count(&server.counters.cut), count(&server.counters.open)), (2, 0));
    until(|| server.signals.inside.load(Ordering::SeqCst) == 0).await;
}
