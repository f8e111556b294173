//! HTTP/2 by prior knowledge: half of it, silence after it, streams side by side, and floods.

use super::{
    wire::{CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, fields, frame},
    *,
};

#[tokio::test]
async fn half_a_preface_and_silence_after_one_are_closed() {
    let server = Server::start(short()).await;
    for sent in [&PREFACE[..12], &PREFACE[..23], PREFACE, &[PREFACE, &frame(wire::SETTINGS, 0, 0, &[])].concat()] {
        read_bytes(server.send(sent).await).await;
    }
    server.until_closed().await;
    assert_eq!(count(&server.counters.idle_closed), 4);
}

#[tokio::test]
async fn pings_do_not_keep_a_connection_without_requests() {
    let server = Server::start(short()).await;
    let client = Client::connect(&server).await;
    trickle(client.stream, &frame(PING, 0, 0, &[0; 8])).await;
    server.until_closed().await;
    assert_eq!(count(&server.counters.late_closed), 1);
}

#[tokio::test]
async fn streams_are_served_side_by_side() {
    let server = Server::start(short()).await;
    let mut client = Client::connect(&server).await;
    client.request(1, "/held").await;
    client.request(3, "/visit").await;
    client.send(HEADERS, END_HEADERS, 5, &fields("/echo", 0)).await;
    client.send(DATA, END_STREAM, 5, b"hi").await;
    assert_eq!((client.answer(3).await, client.answer(5).await), ("127.0.0.1".to_owned(), "hi".to_owned()));
    server.signals.release.add_permits(1);
    assert_eq!(client.answer(1).await, "held");
    assert_eq!(client.status(1).first(), Some(&0x88));
    while client.next().await.is_some() {}
    server.until_closed().await;
    assert_eq!(count(&server.counters.idle_closed), 1);
}

#[tokio::test]
async fn too_many_headers_are_431_here_too() {
    let server = Server::start(Settings::default()).await;
    let mut client = Client::connect(&server).await;
    for (stream, headers, started) in [(1, 101, 0), (3, 100, 1), (5, 500, 1)] {
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &fields("/", headers)).await;
        client.answer(stream).await;
        let refused = client.status(stream).windows(3).any(|text| text == b"431") || client.status(stream).first() != Some(&0x88);
        assert_eq!((refused, server.signals.started.available_permits()), (headers > 100, started), "{headers}");
    }
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_its_connection() {
    let server = Server::start(short()).await;
    // SETTINGS_INITIAL_WINDOW_SIZE 0: not one byte of a body may be sent.
    let mut client = Client::with_settings(&server, &[0, 4, 0, 0, 0, 0]).await;
    client.request(1, "/big").await;
    while client.next().await.is_some() {}
    server.until_closed().await;
    assert_eq!(count(&server.counters.stalled_closed), 1);
}

#[tokio::test]
async fn rapid_reset_in_one_go_is_ended() {
    let server = Server::start(Settings::default()).await;
    let mut client = Client::connect(&server).await;
    let resets = (0..2000).flat_map(|index| {
        let stream = 2 * index + 1;
        [frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields("/never", 0)), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    });
    let _ = client.stream.write_all(&resets.collect::<Vec<u8>>()).await;
    assert!(client.ends_with_goaway().await);
    server.until_closed().await;
    assert!(server.signals.started.available_permits() < 300, "{}", server.signals.started.available_permits());
    server.serves().await;
}

#[tokio::test]
async fn rapid_reset_in_step_is_ended() {
    let server = Server::start(Settings { h2_cancelled_max: 5, ..Settings::default() }).await;
    let mut client = Client::connect(&server).await;
    let attack = async {
        for stream in (1..).step_by(2) {
            if !client.send(HEADERS, END_HEADERS | END_STREAM, stream, &fields("/never", 0)).await {
                return;
            }
            tokio::select! {
                () = server.started() => {}
                () = until(|| count(&server.counters.resets_closed) == 1) => return,
            }
            client.send(RST_STREAM, 0, stream, &[0, 0, 0, 8]).await;
            until(|| server.signals.inside.load(Ordering::SeqCst) == 0).await;
        }
    };
    tokio::time::timeout(PATIENCE, attack).await.unwrap();
    assert!(client.ends_with_goaway().await);
    server.until_closed().await;
    assert_eq!(count(&server.counters.resets_closed), 1);
    server.serves().await;
}

#[tokio::test]
async fn a_continuation_flood_is_ended() {
    let server = Server::start(Settings::default()).await;
    let mut client = Client::connect(&server).await;
    client.send(HEADERS, END_STREAM, 1, &fields("/", 0)).await;
    let more = frame(CONTINUATION, 0, 1, &fields("/", 900)[9..]);
    let mut sent = 0;
    while sent < 1000 && client.stream.write_all(&more).await.is_ok() {
        sent += 1;
    }
    client.ends_with_goaway().await;
    server.until_closed().await;
    assert_eq!((count(&server.counters.broken), server.signals.started.available_permits()), (1, 0));
}

#[tokio::test]
async fn empty_data_is_ended() {
    let server = Server::start(Settings::default()).await;
    let mut client = Client::connect(&server).await;
    client.send(HEADERS, END_HEADERS, 1, &fields("/never", 0)).await;
    server.started().await;
    let flood = frame(DATA, 0, 1, &[]).repeat(1000);
    for _ in 0..60 {
        let _ = client.stream.write_all(&flood).await;
    }
    assert!(client.ends_with_goaway().await);
    server.until_closed().await;
    server.serves().await;
}

#[tokio::test]
async fn data_in_single_bytes_is_ended() {
    let server = Server::start(Settings::default()).await;
    let mut client = Client::connect(&server).await;
    client.send(HEADERS, END_HEADERS, 1, &fields("/never", 0)).await;
    let flood = frame(DATA, 0, 1, b"x").repeat(1000);
    for _ in 0..60 {
        let _ = client.stream.write_all(&flood).await;
    }
    assert!(client.ends_with_goaway().await);
    server.until_closed().await;
    server.serves().await;
}
