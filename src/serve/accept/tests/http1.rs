//! HTTP/1.1: heads and bodies that are slow, half, too large or doubtful, and responses that nobody reads.

use super::*;

#[tokio::test]
async fn silence_and_half_a_head_are_closed() {
    let server = Server::start(short()).await;
    for sent in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\nX-Half: "] {
        assert_eq!(read_all(server.send(sent).await).await, "", "{sent}");
    }
    server.until_closed().await;
    assert_eq!(count(&server.counters.idle_closed), 3);
}

#[tokio::test]
async fn a_head_in_drips_is_closed_at_its_deadline_and_others_are_served_meanwhile() {
    let server = Server::start(short()).await;
    let slow = tokio::spawn(trickle(server.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").await, b"x"));
    server.serves().await;
    slow.await.unwrap();
    server.until_closed().await;
    assert_eq!((count(&server.counters.late_closed), count(&server.counters.idle_closed)), (1, 0));
}

#[tokio::test]
async fn a_kept_connection_serves_again_and_ends_when_idle() {
    let server = Server::start(short()).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(get("/visit", "").as_bytes()).await.unwrap();
        assert!(read_to(&mut stream, "127.0.0.1").await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(read_all(stream).await, "");
    server.until_closed().await;
    assert_eq!((count(&server.counters.accepted), count(&server.counters.idle_closed)), (1, 1));
}

#[tokio::test]
async fn a_request_in_flight_is_not_idle() {
    let server = Server::start(Settings { idle: ms(200), header_deadline: ms(300), ..short() }).await;
    let mut stream = server.send(get("/held", "")).await;
    server.started().await;
    // Several connections become idle and are closed while this one, older than they, is held.
    for _ in 0..5 {
        assert_eq!(read_all(server.connect().await).await, "");
    }
    server.signals.release.add_permits(1);
    assert!(read_to(&mut stream, "held").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_of_430_kb_and_101_headers_are_431_and_readable() {
    let server = Server::start(Settings::default()).await;
    let lines = |count: usize, size: usize| -> String { (0..count).map(|n| format!("X-{n}: {}\r\n", "v".repeat(size))).collect() };
    for head in [get("/", &lines(50, 8600)), get("/", &lines(100, 1)), get(&format!("/{}", "p".repeat(20_000)), "")] {
        let stream = server.connect().await;
        let (mut read, mut write) = stream.into_split();
        let sending = tokio::spawn(async move { write.write_all(head.as_bytes()).await.map(|()| write) });
        let mut text = String::new();
        let _ = tokio::time::timeout(PATIENCE, read.read_to_string(&mut text)).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 431"), "{text}");
        drop(sending.await);
    }
    let stream = server.send(get("/", &format!("{}Connection: close\r\n", lines(98, 1)))).await;
    assert!(read_all(stream).await.starts_with("HTTP/1.1 200"), "100 headers are allowed");
}

#[tokio::test]
async fn an_answer_before_the_body_was_read_is_readable() {
    let server = Server::start(Settings::default()).await;
    let mut stream = server.send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 700000\r\n\r\n").await;
    stream.write_all(&vec![b'x'; 700_000]).await.unwrap();
    let text = read_to(&mut stream, "too large").await;
    assert!(text.starts_with("HTTP/1.1 413"), "{text}");
}

#[tokio::test]
async fn two_transfer_encodings_are_400_and_a_length_beside_chunks_counts_for_nothing() {
    let server = Server::start(Settings::default()).await;
    let post = |headers: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}");
    let next = get("/visit", "");
    for headers in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
    ] {
        let text = read_all(server.send(post(headers, &format!("0\r\n\r\n{next}"))).await).await;
        assert!(text.starts_with("HTTP/1.1 400") && text.matches("HTTP/1.1").count() == 1, "{headers} {text}");
    }
    let both = "Content-Length: 30\r\nTransfer-Encoding: chunked\r\n";
    let text = read_all(server.send(post(both, &format!("2\r\nhi\r\n0\r\n\r\n{next}"))).await).await;
    assert!(text.ends_with("hi") && text.matches("HTTP/1.1").count() == 1, "the connection is closed after: {text}");
}

#[tokio::test]
async fn a_response_that_nobody_reads_ends_and_one_that_is_read_is_whole() {
    let server = Server::start(short()).await;
    let stalled = server.send(get("/big", "")).await;
    let read = read_bytes(server.send(get("/big", "Connection: close\r\n")).await).await;
    assert!(read.len() > BIG_BYTES && read.ends_with(b"xxxx"));
    until(|| count(&server.counters.stalled_closed) == 1).await;
    assert!(read_bytes(stalled).await.len() < BIG_BYTES);
    server.until_closed().await;
}

#[tokio::test]
async fn pipelined_requests_whose_answers_nobody_reads_end() {
    let server = Server::start(short()).await;
    let (read, mut write) = server.connect().await.into_split();
    let flood = get("/visit", "").repeat(100);
    let sending = async { while write.write_all(flood.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, sending).await.expect("the flood was not ended");
    server.until_closed().await;
    assert_eq!(count(&server.counters.stalled_closed), 1);
    drop(read);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_request() {
    let server = Server::start(Settings::default()).await;
    let stream = server.send(get("/never", "")).await;
    server.started().await;
    drop(stream);
    server.until_closed().await;
}
