//! Bodies: media type, size, framing, time (HARDENING "Requests"; the body step of the door).

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    service::Service,
    wire::{Answer, Request},
};

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

fn said(answer: &Answer, status: u16, reason: &str) {
    assert_eq!((answer.status, answer.code(), answer.reason()), (status, -32000, reason.to_owned()), "{answer:?}");
    assert_eq!(answer.json()["id"], Value::Null);
}

/// A ping of exactly `bytes` bytes.
fn ping_of(bytes: usize) -> String {
    let empty = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"pad": ""}}).to_string();
    empty.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(bytes - empty.len())))
}

fn chunked(body: &str) -> Vec<u8> {
    let pieces = body.as_bytes().chunks(10_000).map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    pieces.chain([b"0\r\n\r\n".to_vec()]).collect::<Vec<_>>().concat()
}

#[test]
fn only_json_in_utf8_is_taken() {
    let service = Service::start(&[]);
    for kind in
        ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "application/json; charset=\"utf-8\""]
    {
        assert_eq!(service.ask(&ping(&service).with("content-type", kind)).status, 200, "{kind}");
    }
    for kind in [
        "text/plain",
        "application/json; charset=utf-16",
        "application/jsonp",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        said(&service.ask(&ping(&service).with("content-type", kind)), 415, "media_type");
    }
    said(&service.ask(&ping(&service).without("content-type")), 415, "media_type");
    said(&service.ask(&ping(&service).and("content-type", "text/plain")), 415, "media_type");
    for coding in ["gzip", "br", "identity, gzip"] {
        said(&service.ask(&ping(&service).with("content-encoding", coding)), 415, "media_type");
    }
}

#[test]
fn one_byte_past_the_cap_is_too_much_however_it_is_framed() {
    let service = Service::start(&[]);
    let of = |bytes: usize| Request::raw(service.port, ping_of(bytes));
    assert_eq!(service.ask(&of(65_536)).status, 200);
    said(&service.ask(&of(65_537)), 413, "too_large");
    let mut connection = service.connect();
    connection.send(of(0x1_0000).with("transfer-encoding", "chunked").head());
    connection.send(chunked(&ping_of(65_536)));
    assert_eq!(connection.answer().status, 200);
    let mut connection = service.connect();
    connection.send(of(0x1_0001).with("transfer-encoding", "chunked").head());
    connection.send(chunked(&ping_of(65_537)));
    said(&connection.answer(), 413, "too_large");
    service.serves();
}

#[test]
fn a_client_that_writes_on_can_read_that_it_was_too_much() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    connection.send(Request::raw(service.port, ping_of(300_000)).bytes());
    said(&connection.answer(), 413, "too_large");
    let mut connection = service.connect();
    connection.send(ping(&service).with("content-length", "1000000000").head());
    said(&connection.answer(), 413, "too_large");
}

#[test]
fn the_cap_is_the_operators() {
    let service = Service::start(&["--max-body", "2048"]);
    assert_eq!(service.ask(&Request::raw(service.port, ping_of(2048))).status, 200);
    said(&service.ask(&Request::raw(service.port, ping_of(2049))), 413, "too_large");
}

#[test]
fn a_length_that_is_too_small_cuts_the_message() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    connection.send(ping(&service).with("content-length", "10").bytes());
    let answer = connection.answer();
    assert_eq!((answer.status, answer.code()), (400, -32700), "{answer:?}");
    service.serves();
}

#[test]
fn two_framings_are_one_or_none() {
    let service = Service::start(&[]);
    let body = ping(&service).body.unwrap();
    let framed = chunked(std::str::from_utf8(&body).unwrap());
    let smuggled = Request::get(service.port, "/mcp/health").bytes();
    let mut connection = service.connect();
    let both = Request { body: None, ..ping(&service) }.with("content-length", "4").and("transfer-encoding", "chunked");
    connection.send([both.head(), framed.clone(), smuggled].concat());
    let answer = connection.answer();
    match answer.status {
        400 => {}
        200 => {
            let (rest, _) = connection.until_closed(Duration::from_secs(3));
            assert!(rest.is_empty(), "the connection was used again: {}", String::from_utf8_lossy(&rest));
        }
        _ => panic!("{answer:?}"),
    }
    for second in ["chunked", "identity", "gzip"] {
        let mut connection = service.connect();
        let two = Request { body: None, ..ping(&service) }.with("transfer-encoding", "chunked").and("transfer-encoding", second);
        connection.send([two.head(), framed.clone()].concat());
        assert_eq!(connection.answer().status, 400, "{second}");
    }
    let mut connection = service.connect();
    connection.send(ping(&service).with("content-length", "5").and("content-length", "6").bytes());
    assert_eq!(connection.answer().status, 400);
    service.serves();
}

#[test]
fn a_body_is_due_by_its_deadline_however_it_drips() {
    let service = Service::configured("body_deadline_s = 1\nidle_s = 30", &[]);
    let mut slow = service.connect();
    slow.send(ping(&service).with("content-length", "60").head());
    slow.send("{");
    let mut chunks = service.connect();
    chunks.send(ping(&service).with("transfer-encoding", "chunked").head());
    chunks.send("1\r\n{\r\n");
    let mut dripping = service.connect();
    dripping.send(ping(&service).with("content-length", "60").head());
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(1500) && dripping.try_send("{") {
        service.serves();
        std::thread::park_timeout(Duration::from_millis(200));
    }
    for connection in [&mut slow, &mut chunks, &mut dripping] {
        said(&connection.answer(), 408, "timeout");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    service.serves();
}
