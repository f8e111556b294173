//! The metrics: every row is on the page, names have units, what callers send adds no series.
//!
//! Promises: the page is held against the table.
//! Does not: parse Prometheus' format beyond its first words.

use super::*;

fn metrics() -> Metrics {
    Metrics::new(["show", "history"]).unwrap()
}

fn event(tool: &'static str, outcome: Outcome) -> CallEvent {
    CallEvent { outcome, duration: Duration::from_millis(3), ..crate::telemetry::hook::trial::event(tool) }
}

fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn every_row_can_be_on_the_page_and_nothing_else_is() {
    let metrics = metrics();
    metrics.door("mcp", "host", Duration::from_millis(1));
    metrics.dropped("sentry").inc();
    metrics.failed("sentry").inc();
    metrics.analytics("sent").inc();
    Hook::request(&metrics, &event("show", Outcome::Rate));
    for row in TABLE.iter().filter(|row| row.pulled) {
        metrics.watch(row, &vec!["x"; row.labels.len()], || 7).unwrap();
    }
    let page = metrics.text().unwrap();
    let typed: Vec<(&str, &str)> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut wanted: Vec<(&str, &str)> = TABLE.iter().map(|row| (row.name, row.kind.word())).collect();
    wanted.sort_unstable();
    assert_eq!(typed, wanted);
}

#[test]
fn names_say_whose_they_are_and_in_what_unit() {
    for row in TABLE {
        assert!(row.name.starts_with("runlore_") && !row.help.is_empty(), "{}", row.name);
        assert_eq!(row.kind == Kind::Counter, row.name.ends_with("_total"), "{}", row.name);
        let units = ["_total", "_seconds", "_bytes", "_entries", "_in_flight", "_in_use", "_open", "_info"];
        assert!(units.iter().any(|unit| row.name.ends_with(unit)), "{}", row.name);
        assert!(markdown().contains(row.name));
    }
}

#[test]
fn calls_are_counted_by_tool_and_outcome_and_invented_names_are_one_series() {
    let metrics = metrics();
    let lines = |metrics: &Metrics| metrics.text().unwrap().lines().count();
    let before = lines(&metrics);
    Hook::request(&metrics, &event("show", Outcome::Ok));
    Hook::request(&metrics, &event("show", Outcome::Cached));
    (0..1000).for_each(|index| Hook::request(&metrics, &event(Box::leak(format!("invented{index}").into_boxed_str()), Outcome::Refused)));
    let page = metrics.text().unwrap();
    assert_eq!(value(&page, "runlore_calls_total{outcome=\"ok\",tool=\"show\"}"), Some(1.0));
    assert_eq!(value(&page, "runlore_calls_total{outcome=\"cached\",tool=\"show\"}"), Some(1.0));
    assert_eq!(value(&page, "runlore_calls_total{outcome=\"refused\",tool=\"unknown\"}"), Some(1000.0));
    assert_eq!(value(&page, "runlore_call_duration_seconds_count{from=\"cache\",tool=\"show\"}"), Some(1.0));
    assert_eq!(lines(&metrics), before, "no series came with the calls");
}

#[test]
fn a_refused_call_counts_at_its_step_and_not_in_the_latencies() {
    let metrics = metrics();
    for outcome in Outcome::ALL {
        Hook::request(&metrics, &event("show", outcome));
    }
    metrics.door("mcp", "rate", Duration::ZERO);
    let page = metrics.text().unwrap();
    for step in ["authorize", "tool_rate", "slots", "total", "deadline"] {
        assert_eq!(value(&page, &format!("runlore_refusals_total{{list=\"call\",step=\"{step}\"}}")), Some(1.0), "{step}");
    }
    assert_eq!(value(&page, "runlore_refusals_total{list=\"door\",step=\"rate\"}"), Some(1.0));
    assert_eq!(value(&page, "runlore_call_duration_seconds_count{from=\"run\",tool=\"show\"}"), Some(5.0));
}

#[test]
fn a_pulled_counter_is_what_its_source_says_however_often_the_page_is_asked_for() {
    let metrics = metrics();
    let hits = Arc::new(std::sync::atomic::AtomicU64::new(5));
    let source = hits.clone();
    metrics.watch(&CACHE_HITS, &[], move || source.load(std::sync::atomic::Ordering::Relaxed)).unwrap();
    let page = || value(&metrics.text().unwrap(), "runlore_cache_hits_total");
    assert_eq!((page(), page()), (Some(5.0), Some(5.0)));
    hits.store(9, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(page(), Some(9.0));
    assert!(metrics.watch(&CALLS, &["show", "ok"], || 1).is_err(), "what is pushed is not read");
    assert!(metrics.watch(&LIMITER_ENTRIES, &[], || 1).is_err(), "labels must fit");
}

#[test]
fn the_process_tells_of_itself() {
    let page = metrics().text().unwrap();
    assert!(value(&page, "runlore_resident_memory_bytes").unwrap() > 1e6);
    assert_eq!(value(&page, &format!("runlore_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), Some(1.0));
}
