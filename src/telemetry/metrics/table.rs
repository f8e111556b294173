//! The table of metrics: data only.
//!
//! Promises: what is not a row does not exist; the page of metrics in the documents is written from the rows.
//! Does not: count.

/// What kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How many took how long.
    Histogram,
}

impl Kind {
    /// Prometheus' word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, unit last.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// What kind of number.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Whether it is read from the part that counts it, when the page is asked for.
    pub pulled: bool,
}

/// Upper bounds of the latency histograms, in seconds: from a hit of the cache to the longest deadline.
pub const SECONDS: [f64; 14] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 300.0];

macro_rules! table {
    ($($(#[doc = $about:literal])+ $row:ident: $kind:ident $name:literal, $labels:expr, $pulled:literal, $help:literal;)+) => {
        $($(#[doc = $about])+ pub static $row: Row = Row { name: $name, help: $help, kind: Kind::$kind, labels: &$labels, pulled: $pulled };)+

        /// Every metric, in the order of the documents.
        pub static TABLE: &[&Row] = &[$(&$row),+];
    };
}

table! {
    /// Requests.
    REQUESTS: Counter "runlore_http_requests_total", ["route", "outcome"], false,
        "Requests of the public listener; outcome is ok, cancelled where the client left before the answer, or the word of the step that refused";
    /// Their durations.
    REQUEST_SECONDS: Histogram "runlore_http_request_duration_seconds", ["route"], false,
        "From a request's head to its answer's head";
    /// Requests now.
    REQUESTS_IN_FLIGHT: Gauge "runlore_http_requests_in_flight", [], true,
        "Requests that have begun and not ended";
    /// Refusals.
    REFUSALS: Counter "runlore_refusals_total", ["list", "step"], false,
        "Refusals by the step that refused: of the door (requests) or of the call list (tool calls)";
    /// Calls.
    CALLS: Counter "runlore_calls_total", ["tool", "outcome"], false,
        "Tool calls, one each whatever becomes of it; a name that is no tool counts as unknown";
    /// Their durations.
    CALL_SECONDS: Histogram "runlore_call_duration_seconds", ["tool", "from"], false,
        "Tool calls that were run or answered from the cache, waiting included; those refused before are not in it";
    /// Calls now.
    CALLS_IN_FLIGHT: Gauge "runlore_calls_in_flight", [], true,
        "Tool calls that have begun and not ended";
    /// Slots.
    SLOTS_IN_USE: Gauge "runlore_slots_in_use", [], true,
        "Places for heavy calls that are taken";
    /// Hits.
    CACHE_HITS: Counter "runlore_cache_hits_total", [], true,
        "Calls answered from the answer cache";
    /// Misses.
    CACHE_MISSES: Counter "runlore_cache_misses_total", [], true,
        "Cacheable calls that were computed";
    /// Followers.
    CACHE_FOLLOWERS: Counter "runlore_cache_followers_total", [], true,
        "Calls answered with what an identical call computed at the same time";
    /// Bytes.
    CACHE_BYTES: Gauge "runlore_cache_bytes", [], true,
        "What the answer cache holds, overhead included";
    /// Entries.
    CACHE_ENTRIES: Gauge "runlore_cache_entries", [], true,
        "Answers that the answer cache holds";
    /// Limiters.
    LIMITER_ENTRIES: Gauge "runlore_limiter_entries", ["limiter"], true,
        "Callers that a limit remembers";
    /// Connections.
    CONNECTIONS: Counter "runlore_connections_total", ["outcome"], true,
        "Connections of the public listener: accepted, or the word of the cap that refused";
    /// Connections now.
    CONNECTIONS_OPEN: Gauge "runlore_connections_open", [], true,
        "Connections of the public listener that are open";
    /// Lost events.
    HOOK_DROPPED: Counter "runlore_hook_dropped_total", ["hook"], false,
        "Events that did not fit into a slow hook's queue";
    /// Untold events.
    HOOK_FAILED: Counter "runlore_hook_failed_total", ["hook"], false,
        "Events whose server did not answer in time, or answered that it does not take them";
    /// Analytics.
    ANALYTICS: Counter "runlore_analytics_events_total", ["outcome"], false,
        "Analytics events: sent, refused where the server answered something else than 2xx, failed where it did not answer";
    /// Memory.
    RESIDENT: Gauge "runlore_resident_memory_bytes", [], true,
        "Memory of the process that is in RAM; 0 where the system does not say";
    /// Version.
    BUILD: Gauge "runlore_build_info", ["version"], true,
        "Always 1; the version is the label";
    /// Age.
    UPTIME: Gauge "runlore_uptime_seconds", [], true,
        "Since the process began to serve";
}

/// The table as it stands in the documents.
#[must_use]
pub fn markdown() -> String {
    let rows = TABLE.iter().map(|row| {
        let labels = if row.labels.is_empty() { String::new() } else { format!("`{}`", row.labels.join("` `")) };
        format!("| `{}` | {} | {labels} | {} |\n", row.name, row.kind.word(), row.help)
    });
    std::iter::once("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n".to_owned()).chain(rows).collect()
}
