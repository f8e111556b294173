//! Answers that are kept (decisions 1, 82; the scenario "the cache is true and real").

use std::time::Duration;

use serde_json::json;

use super::{
    held, metrics,
    service::{Service, wait_for},
};
use crate::{harness::Project, logs::Log};

/// Hits and misses.
fn counted(service: &Service) -> (f64, f64) {
    (service.metric(metrics::CACHE_HITS, &[]), service.metric(metrics::CACHE_MISSES, &[]))
}

/// A server that has read its logs, and has said so in one answer that is no part of the test.
fn warm(project: Project, http: &str) -> (Service, (f64, f64)) {
    let service = Service::with(project, http, &[]);
    service.settle();
    let before = counted(&service);
    (service, before)
}

#[test]
fn the_cache_is_true_and_real() {
    let project = Project::demo();
    let elsewhere = tempfile::tempdir().unwrap();
    let (service, (hits, misses)) = warm(project, "");
    let first = service.call("history", &json!({}));
    let second = service.call("history", &json!({}));
    assert_eq!(first, second);
    let log = elsewhere.path().join("2026-11-29T09-00-00_refund_policy_fresh.json");
    std::fs::write(&log, Log::new("fresh-run", "refund_policy", "2026-11-29T09:00:00+00:00").all(2, "C").text()).unwrap();
    let imported = service.project.run(&["import", log.to_str().unwrap()]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let third = service.call("history", &json!({}));
    assert!(third["structuredContent"]["runs"].to_string().contains("fresh-run"), "{third}");
    assert!(!second.to_string().contains("fresh-run"));
    assert_eq!(counted(&service), (hits + 1.0, misses + 2.0), "{:?}", service.metrics());
    let outcomes = || {
        let log = service.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let calls = lines.filter(|line| line["event"] == "call" && line["tool"] == "history");
        calls.map(|line| line["outcome"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    // A thread of its own writes the log.
    let outcomes = wait_for("three lines", || Some(outcomes()).filter(|outcomes| outcomes.len() >= 3));
    assert_eq!(outcomes, ["ok", "cached", "ok"]);
}

#[test]
fn what_means_the_same_is_one_answer_and_what_does_not_is_not() {
    let (service, (hits, misses)) = warm(Project::demo(), "");
    for arguments in [json!({}), json!({"limit": 20}), json!({"limit": 20, "kind": "all"}), json!({"kind": "all", "limit": 20})] {
        service.call("runs_list", &arguments);
        service.call("runs-list", &arguments);
    }
    assert_eq!(counted(&service), (hits + 7.0, misses + 1.0));
    service.call("runs_list", &json!({"limit": 21}));
    service.call("history", &json!({"limit": 20}));
    assert_eq!(counted(&service), (hits + 7.0, misses + 3.0));
}

#[test]
fn errors_are_not_kept() {
    let service = Service::start(&[]);
    for _ in 0..3 {
        assert_eq!(service.call("show", &json!({"run": "nothing"}))["isError"], true);
    }
    assert_eq!(service.metric(metrics::CACHE_HITS, &[]), 0.0);
}

#[test]
fn what_is_asked_at_once_is_computed_once() {
    let (service, held) = held::service("per_caller_max = 32", &[]);
    let before = service.metric(metrics::CACHE_MISSES, &[]);
    let mut waiting: Vec<_> = (0..6).map(|_| held::in_flight(&service, &held::call(&service))).collect();
    held.release();
    let bodies: Vec<String> = waiting.iter_mut().map(|connection| connection.answer().text()).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]) && bodies[0].contains("\"total\":7"), "{bodies:?}");
    // A second generation may lie between two of them: the log itself, and the look's end.
    assert!(service.metric(metrics::CACHE_MISSES, &[]) - before <= 2.0, "{:?}", service.metrics());
}

#[test]
fn a_run_that_is_active_is_looked_at_again() {
    let project = Project::new();
    Log::new("going", "t", "2026-11-29T09:00:00+00:00").all(1, "C").status("started").put(&project);
    let (service, _) = warm(project, "");
    for _ in 0..2 {
        assert_eq!(service.call("runs_list", &json!({}))["structuredContent"]["runs"][0]["status"], "running");
    }
    assert_eq!(service.metric(metrics::CACHE_HITS, &[]), 0.0);
}

#[test]
fn nothing_is_kept_where_there_is_no_room() {
    let service = Service::configured("cache_bytes = 0", &[]);
    service.call("history", &json!({}));
    service.call("history", &json!({}));
    assert_eq!(service.metric(metrics::CACHE_HITS, &[]), 0.0);
}

#[test]
fn a_kept_answer_is_forgotten_in_time() {
    let (service, (_, misses)) = warm(Project::demo(), "cache_ttl_s = 1");
    let began = std::time::Instant::now();
    service.call("history", &json!({}));
    wait_for("the answer to be computed again", || {
        std::thread::park_timeout(Duration::from_millis(300));
        service.call("history", &json!({}));
        (service.metric(metrics::CACHE_MISSES, &[]) >= misses + 2.0).then_some(())
    });
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
}
