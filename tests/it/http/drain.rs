//! How it ends, and clients that leave (decisions 19, 80).

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::{SIGINT, SIGTERM};
use serde_json::json;

use super::{
    held,
    service::{Service, wait_for},
    wire::{Connection, Request},
};

fn ready(service: &Service) -> u16 {
    service.admin("/readyz").status
}

#[test]
fn it_ends_with_zero_on_both_signals() {
    for signal in [SIGTERM, SIGINT] {
        let mut service = Service::start(&[]);
        service.call("history", &json!({}));
        assert_eq!((service.admin("/livez").status, ready(&service)), (200, 200));
        service.signal(signal);
        assert_eq!(service.ended(), Some(0), "{signal:?}: {}", service.log());
    }
}

#[test]
fn a_call_in_flight_is_answered_before_the_end() {
    let (mut service, held) = held::service("idle_s = 60", &[]);
    let mut call = held::in_flight(&service, &held::call(&service));
    let mut idle = service.connect();
    assert_eq!(idle.ask(&Request::legacy(service.port, "ping", &json!({}))).status, 200);
    service.signal(SIGTERM);
    wait_for("readiness to go off", || (ready(&service) == 503).then_some(()));
    assert_eq!(service.admin("/livez").status, 200);
    wait_for("the listener to close", || std::net::TcpStream::connect(("127.0.0.1", service.port)).is_err().then_some(()));
    idle.until_closed(Duration::from_secs(10));
    held.release();
    let answer = call.answer();
    assert_eq!((answer.status, &answer.json()["result"]["structuredContent"]["total"]), (200, &json!(7)), "{answer:?}");
    assert_eq!(service.ended(), Some(0), "{}", service.log());
}

#[test]
fn health_is_off_while_it_drains() {
    let (mut service, held) = held::service("", &[]);
    let mut call = held::in_flight(&service, &held::call(&service));
    service.signal(SIGTERM);
    let began = Instant::now();
    let mut seen = None;
    while began.elapsed() < Duration::from_secs(2) {
        let Ok(stream) = std::net::TcpStream::connect(("127.0.0.1", service.port)) else { break };
        let mut connection = Connection::over(stream);
        if let (true, Ok(answer)) = (connection.try_send(Request::get(service.port, "/mcp/health").bytes()), connection.try_answer())
            && answer.status == 503
        {
            seen = Some(answer.json()["ok"].clone());
            break;
        }
    }
    assert_eq!(seen, Some(json!(false)), "readiness is off for a second before the listener closes");
    held.release();
    assert_eq!(call.answer().status, 200);
    assert_eq!(service.ended(), Some(0));
}

#[test]
fn it_does_not_wait_for_ever() {
    let (mut service, held) = held::service("drain_s = 1", &[]);
    let _call = held::in_flight(&service, &held::call(&service));
    let began = Instant::now();
    service.signal(SIGTERM);
    assert_eq!(service.ended(), Some(0), "{}", service.log());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    drop(held);
}

#[test]
fn a_second_signal_ends_at_once() {
    let (mut service, held) = held::service("", &[]);
    let _call = held::in_flight(&service, &held::call(&service));
    service.signal(SIGTERM);
    wait_for("readiness to go off", || (ready(&service) == 503).then_some(()));
    let began = Instant::now();
    service.signal(SIGTERM);
    assert_eq!(service.ended(), Some(0), "{}", service.log());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    drop(held);
}

#[test]
fn a_client_that_leaves_cancels_its_call() {
    let (service, held) = held::service("", &[]);
    let call = held::in_flight(&service, &held::call(&service));
    drop(call);
    wait_for("the call to be given up", || service.log().contains("\"outcome\":\"cancelled\"").then_some(()));
    wait_for("its place", || (held::in_flight_now(&service) < 1.0).then_some(()));
    service.serves();
    held.release();
}
