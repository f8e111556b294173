//! Calls that run in the store when their client leaves or their deadline passes (HARDENING "Requests"; decision 19).
//!
//! Promises: the call never ends by itself: one of its tables is a view over all numbers. The server has one connection to read with, so that
//! whoever is answered afterwards has got it back.
//! Does not: change the program.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    held, metrics,
    service::{Service, wait_for},
    wire::Request,
};
use crate::harness::{Project, ticks};

/// It takes milliseconds; on a machine that is busy elsewhere every step waits its turn.
const SOON: Duration = Duration::from_secs(5);

/// A server of whose tools those that name arms never answer.
fn endless(flags: &[&str]) -> Service {
    let project = Project::demo();
    project.one_reader();
    let service = Service::with(project, "", flags);
    service.settle();
    service.project.never_name_arms();
    service
}

fn history(service: &Service) -> Request {
    Request::call(service.port, "history", &json!({}))
}

/// The one connection is free: a call that needs it and no arms is answered.
fn reads(service: &Service) {
    let result = service.call("show", &json!({"run": "nothing"}));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("nothing"), "{result}");
}

fn outcome(service: &Service, word: &str) -> f64 {
    service.metric("runlore_calls_total", &["tool=\"history\"", &format!("outcome=\"{word}\"")])
}

fn marks(service: &Service) -> f64 {
    service.metric(metrics::LIMITER_ENTRIES, &["running"])
}

#[test]
fn a_client_that_leaves_ends_its_call_in_the_store() {
    let service = endless(&[]);
    let before = ticks(service.id());
    let call = held::in_flight(&service, &history(&service));
    // Nothing else here takes this much: it is at work.
    wait_for("the call to be at work", || (ticks(service.id()) > before + 30).then_some(()));
    assert_eq!(marks(&service), 1.0);
    let left = Instant::now();
    drop(call);
    reads(&service);
    assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
    wait_for("its mark to be gone", || (marks(&service) < 1.0).then_some(()));
    assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
    assert_eq!((outcome(&service, "cancelled"), held::in_flight_now(&service)), (1.0, 0.0));
    assert_eq!(service.metric("runlore_http_requests_total", &["route=\"mcp\"", "outcome=\"cancelled\""]), 1.0, "the request too");
    wait_for("its line", || service.log().contains("\"outcome\":\"cancelled\"").then_some(()));
}

#[test]
fn a_deadline_ends_its_call_in_the_store() {
    let service = endless(&["--timeout", "3"]);
    let answer = service.ask(&history(&service));
    let (answered, result) = (Instant::now(), &answer.json()["result"]);
    assert_eq!((answer.status, &result["isError"]), (200, &Value::Bool(true)), "{answer:?}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("did not answer within 3 s"), "{result}");
    reads(&service);
    wait_for("its mark to be gone", || (marks(&service) < 1.0).then_some(()));
    assert!(answered.elapsed() < SOON, "{:?}", answered.elapsed());
    assert_eq!(outcome(&service, "timeout"), 1.0);
    wait_for("its line", || service.log().contains("\"outcome\":\"timeout\"").then_some(()));
}

#[test]
fn who_comes_and_goes_does_not_use_up_the_server() {
    let service = endless(&[]);
    // More than there are threads to read with, and than one caller may have running.
    for _ in 0..40 {
        drop(held::in_flight(&service, &history(&service)));
        wait_for("the call to be given up", || (held::in_flight_now(&service) < 1.0).then_some(()));
    }
    let left = Instant::now();
    reads(&service);
    wait_for("their marks to be gone", || (marks(&service) < 1.0).then_some(()));
    assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
}
