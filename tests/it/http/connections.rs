//! Connections: how many, how long, how large a head (HARDENING "Requests"; the accept loop).

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    metrics,
    service::{Service, wait_for},
    wire::{Connection, Request},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn ping(service: &Service) -> Request {
    Request::legacy(service.port, "ping", &json!({}))
}

#[test]
fn whoever_is_silent_or_slow_is_closed_and_others_are_served_meanwhile() {
    let service = Service::configured("idle_s = 1\nheader_deadline_s = 1\nbody_deadline_s = 1\nper_caller_max = 64", &[]);
    let head = ping(&service).head();
    let beginnings: [(&str, &[u8]); 7] = [
        ("silence", b""),
        ("one byte", b"P"),
        ("half a header", &head[..head.len() / 2]),
        ("half a preface", &PREFACE[..10]),
        ("most of a preface", &PREFACE[..PREFACE.len() - 1]),
        ("a preface and silence", PREFACE),
        ("a preface, settings and silence", &[PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()),
    ];
    let began = Instant::now();
    let mut open: Vec<(&str, Connection)> = beginnings
        .iter()
        .map(|(name, bytes)| {
            let mut connection = service.connect();
            connection.send(bytes);
            (*name, connection)
        })
        .collect();
    let mut kept_alive = service.connect();
    assert_eq!(kept_alive.ask(&ping(&service)).status, 200);
    open.push(("kept alive", kept_alive));
    service.serves();
    for (name, connection) in &mut open {
        let (said, _) = connection.until_closed(Duration::from_secs(8));
        let text = String::from_utf8_lossy(&said);
        assert!(said.is_empty() || text.starts_with("HTTP/1.1 408") || !text.starts_with("HTTP/1.1"), "{name}: {text}");
        service.serves();
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    wait_for("the places to be free", || (service.metric(metrics::CONNECTIONS, &[]) <= 1.0).then_some(()));
}

#[test]
fn a_head_that_drips_is_closed() {
    let service = Service::configured("idle_s = 1\nheader_deadline_s = 1", &[]);
    let mut connection = service.connect();
    let began = Instant::now();
    connection.send("POST /mcp HTTP/1.1\r\n");
    while began.elapsed() < Duration::from_secs(8) && connection.try_send("x: y\r\n") {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    service.serves();
}

#[test]
fn a_head_has_its_bounds() {
    let service = Service::start(&[]);
    let padded = |bytes: usize| ping(&service).with("x-pad", &"x".repeat(bytes));
    assert_eq!(service.ask(&padded(8_000)).status, 200);
    for bytes in [20_000, 430_000] {
        let mut connection = service.connect();
        connection.try_send(padded(bytes).bytes());
        assert_eq!(connection.answer().status, 431, "{bytes}");
    }
    let many = |count: usize| (0..count).fold(ping(&service), |request, n| request.and(&format!("x-{n}"), "1"));
    assert_eq!(service.ask(&many(90)).status, 200);
    assert_eq!(service.ask(&many(101)).status, 431);
    let mut target = service.connect();
    target.try_send(ping(&service).to(&format!("/mcp?{}", "x".repeat(100_000))).bytes());
    assert!(matches!(target.answer().status, 414 | 431));
    service.serves();
}

#[test]
fn what_is_no_http_is_refused() {
    let service = Service::start(&[]);
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"GET\r\n\r\n", b"POST /mcp HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        let mut connection = service.connect();
        connection.send(bytes);
        let (said, _) = connection.until_closed(Duration::from_secs(12));
        let text = String::from_utf8_lossy(&said);
        assert!(said.is_empty() || text.contains(" 400 ") || text.contains(" 505 "), "{bytes:?}: {text}");
    }
    for name in ["x y: 1", "x\u{7f}: 1", ": 1"] {
        let mut connection = service.connect();
        connection.send(format!("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n{name}\r\n\r\n", service.port));
        assert_eq!(connection.answer().status, 400, "{name:?}");
    }
    service.serves();
}

#[test]
fn there_is_a_number_of_connections() {
    let service = Service::configured("idle_s = 60", &["--max-connections", "4"]);
    service.settle();
    let mut open: Vec<Connection> = (0..4).map(|_| service.connect()).collect();
    for connection in &mut open {
        assert_eq!(connection.ask(&ping(&service)).status, 200);
    }
    let mut fifth = service.connect();
    let refused = !fifth.try_send(ping(&service).bytes()) || fifth.try_answer().map_or(true, |answer| answer.status == 503);
    assert!(refused);
    for connection in &mut open {
        assert_eq!(connection.ask(&ping(&service)).status, 200, "those that are in stay in");
    }
    drop(open);
    wait_for("a place", || {
        let mut connection = service.connect();
        let answer = connection.try_send(ping(&service).bytes()).then(|| connection.try_answer().ok()).flatten();
        answer.is_some_and(|answer| answer.status == 200).then_some(())
    });
}

#[test]
fn requests_may_be_sent_one_behind_the_other() {
    let service = Service::start(&[]);
    let mut connection = service.connect();
    connection.send([ping(&service).bytes(), ping(&service).bytes(), ping(&service).bytes()].concat());
    for _ in 0..3 {
        assert_eq!(connection.answer().status, 200);
    }
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let service = Service::configured("idle_s = 60\nbody_deadline_s = 60\nper_caller_max = 64", &[]);
    let call = Request::call(service.port, "history", &json!({"by": "case"}));
    let bytes = call.bytes();
    for cut in [1, 40, call.head().len(), bytes.len() - 1, bytes.len()] {
        for _ in 0..10 {
            let mut connection = service.connect();
            connection.send(&bytes[..cut]);
            drop(connection);
        }
        service.serves();
    }
    wait_for("the places to be free", || (service.metric(metrics::CONNECTIONS, &[]) <= 1.0).then_some(()));
    assert!(service.metric(metrics::CALLS_IN_FLIGHT, &[]) < 1.0);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let service = Service::configured("idle_s = 60", &[]);
    let mut deaf = service.connect();
    deaf.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let call = Request::call(service.port, "history", &json!({"by": "case"})).bytes();
    for _ in 0..3000 {
        if !deaf.try_send(&call) {
            break;
        }
    }
    for _ in 0..20 {
        service.serves();
    }
}
