//! How many connections there may be, and that each is given back.

use tokio::net::TcpSocket;

use super::*;

async fn connect_from(server: &Server, address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// A connection that is known to be seated: its request has been answered.
async fn seated(server: &Server, address: &str) -> TcpStream {
    let mut stream = connect_from(server, address).await;
    stream.write_all(get("/visit", "").as_bytes()).await.unwrap();
    read_to(&mut stream, address).await;
    stream
}

#[tokio::test]
async fn an_address_has_its_cap_and_the_service_has_one() {
    let server = Server::start(Settings { connections_max: 3, connections_per_address_max: 2, ..Settings::default() }).await;
    let first = seated(&server, "127.0.0.1").await;
    let _second = seated(&server, "127.0.0.1").await;
    assert!(read_all(connect_from(&server, "127.0.0.1").await).await.starts_with("HTTP/1.1 429"));
    let _third = seated(&server, "127.0.0.2").await;
    assert!(read_all(connect_from(&server, "127.0.0.3").await).await.starts_with("HTTP/1.1 503"));
    assert_eq!((count(&server.counters.refused_per_address), count(&server.counters.refused_total)), (1, 1));
    drop(first);
    until(|| count(&server.counters.open) == 2).await;
    seated(&server, "127.0.0.1").await;
}

#[tokio::test]
async fn a_trusted_proxy_has_the_total_only() {
    let trusted = vec!["127.0.0.9/32".parse().unwrap()];
    let server = Server::start(Settings { connections_max: 3, connections_per_address_max: 1, trusted, ..Settings::default() }).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(seated(&server, "127.0.0.9").await);
    }
    assert!(read_all(connect_from(&server, "127.0.0.9").await).await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn two_hundred_connections_leave_nothing() {
    let server = Server::start(Settings { connections_per_address_max: 64, ..Settings::default() }).await;
    for round in 0..10 {
        let mut open = Vec::new();
        for index in 0..20 {
            open.push(if (round + index) % 2 == 0 { server.connect().await } else { server.send(get("/visit", "")).await });
        }
        drop(open);
        until(|| count(&server.counters.open) == 0 && count(&server.counters.accepted) == (round + 1) * 20).await;
    }
    assert_eq!((count(&server.counters.refused_total), count(&server.counters.refused_per_address)), (0, 0));
}

#[test]
fn a_failed_accept_waits_longer_each_time_but_not_for_a_client_that_left() {
    let emfile = std::io::Error::from_raw_os_error(24);
    let waits: Vec<_> = std::iter::successors(Some(ms(20)), |wait| super::super::backoff(&emfile, *wait)).take(8).collect();
    assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1000, 1000].map(ms));
    assert_eq!(super::super::backoff(&std::io::ErrorKind::ConnectionAborted.into(), ms(20)), None);
}
