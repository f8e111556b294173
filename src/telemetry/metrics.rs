//! All numbers that the server tells about itself, as one table, in Prometheus' text format.
//!
//! Promises: a metric is a row; names begin with `runlore_` and end in their unit; labels are words of ours (an invented tool name is
//! `unknown`), so what a caller sends cannot add a series. A call costs two lookups and three atomic additions; what other parts count for
//! themselves is read only when the page is asked for.
//! Does not: listen; `admin` does.

mod table;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

pub use prometheus::Error;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

pub use self::table::*;
use super::hook::{CallEvent, Hook, Outcome};
use crate::clock;

/// The outcome of a request that was answered.
pub const OK: &str = "ok";
/// The outcome of a request whose client left before its answer: nobody refused it, and there is no answer to measure.
pub const CANCELLED: &str = "cancelled";

/// A number that is read when the page is asked for.
type Source = Box<dyn Fn() + Send>;

/// The registry and the handles that are written to.
pub struct Metrics {
    registry: Registry,
    began: Instant,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    refusals: IntCounterVec,
    tools: HashMap<&'static str, Tool>,
    unknown: Tool,
    dropped: IntCounterVec,
    failed: IntCounterVec,
    analytics: IntCounterVec,
    pulled: HashMap<&'static str, Pulled>,
    sources: Mutex<Vec<Source>>,
}

/// One tool's handles, resolved once.
struct Tool {
    outcomes: Vec<IntCounter>,
    ran: Histogram,
    cached: Histogram,
}

/// What is set when the page is asked for.
#[derive(Clone)]
enum Pulled {
    Counter(IntCounterVec),
    Gauge(IntGaugeVec),
}

impl Metrics {
    /// All rows, at 0; `tools` are the names that calls are counted by.
    ///
    /// # Errors
    /// When a row is no good, which a test finds.
    pub fn new(tools: impl IntoIterator<Item = &'static str>) -> Result<Self, Error> {
        let registry = Registry::new();
        let (calls, seconds) = (counter(&registry, &CALLS)?, histogram(&registry, &CALL_SECONDS)?);
        let tool = |name| Tool::new(name, &calls, &seconds);
        let metrics = Self {
            tools: tools.into_iter().map(|name| Ok((name, tool(name)?))).collect::<Result<_, Error>>()?,
            unknown: tool("unknown")?,
            requests: counter(&registry, &REQUESTS)?,
            request_seconds: histogram(&registry, &REQUEST_SECONDS)?,
            refusals: counter(&registry, &REFUSALS)?,
            dropped: counter(&registry, &HOOK_DROPPED)?,
            failed: counter(&registry, &HOOK_FAILED)?,
            analytics: counter(&registry, &ANALYTICS)?,
            pulled: TABLE
                .iter()
                .filter(|row| row.pulled)
                .map(|row| Ok((row.name, pulled(&registry, row)?)))
                .collect::<Result<_, Error>>()?,
            began: clock::monotonic(),
            sources: Mutex::default(),
            registry,
        };
        metrics.own()?;
        Ok(metrics)
    }

    /// What every process can say of itself.
    fn own(&self) -> Result<(), Error> {
        let began = self.began;
        self.watch(&UPTIME, &[], move || began.elapsed().as_secs())?;
        self.watch(&BUILD, &[env!("CARGO_PKG_VERSION")], || 1)?;
        self.watch(&RESIDENT, &[], resident_bytes)
    }

    /// Has `read` asked for the value of `row` at `labels` whenever the page is. A counter's must not fall.
    ///
    /// # Errors
    /// When `row` is not one that is read, or `labels` do not fit it.
    pub fn watch(&self, row: &'static Row, labels: &[&str], read: impl Fn() -> u64 + Send + 'static) -> Result<(), Error> {
        let source: Source = match self.pulled.get(row.name) {
            Some(Pulled::Counter(counters)) => {
                let counter = counters.get_metric_with_label_values(labels)?;
                Box::new(move || counter.inc_by(read().saturating_sub(counter.get())))
            }
            Some(Pulled::Gauge(gauges)) => {
                let gauge = gauges.get_metric_with_label_values(labels)?;
                Box::new(move || gauge.set(i64::try_from(read()).unwrap_or(i64::MAX)))
            }
            None => return Err(Error::Msg(format!("{} is not read when asked for", row.name))),
        };
        self.sources().push(source);
        Ok(())
    }

    /// Counts a request of the public listener: the route's word, and [`OK`], [`CANCELLED`] or the word of the step that refused.
    pub fn door(&self, route: &'static str, outcome: &'static str, took: Duration) {
        self.requests.with_label_values(&[route, outcome]).inc();
        if outcome == CANCELLED {
            return;
        }
        self.request_seconds.with_label_values(&[route]).observe(took.as_secs_f64());
        if outcome != OK {
            self.refusals.with_label_values(&["door", outcome]).inc();
        }
    }

    /// The counter that a [`super::queued::Queued`] hook called `hook` counts in.
    #[must_use]
    pub fn dropped(&self, hook: &'static str) -> IntCounter {
        self.dropped.with_label_values(&[hook])
    }

    /// The counter of what the hook called `hook` could not tell its server.
    #[must_use]
    pub fn failed(&self, hook: &'static str) -> IntCounter {
        self.failed.with_label_values(&[hook])
    }

    /// The counter of analytics events that ended so: `sent`, `refused` or `failed`.
    #[must_use]
    pub fn analytics(&self, outcome: &'static str) -> IntCounter {
        self.analytics.with_label_values(&[outcome])
    }

    /// The page.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn text(&self) -> Result<String, Error> {
        // One page at a time, so that two do not both add what a counter has risen by.
        let sources = self.sources();
        sources.iter().for_each(|read| read());
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    fn sources(&self) -> std::sync::MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook for Metrics {
    fn request(&self, event: &CallEvent) {
        let tool = self.tools.get(event.tool).unwrap_or(&self.unknown);
        if let Some(counter) = tool.outcomes.get(event.outcome as usize) {
            counter.inc();
        }
        match event.outcome {
            Outcome::Cached => tool.cached.observe(event.duration.as_secs_f64()),
            // What was refused unseen would pull the latencies down.
            Outcome::Denied | Outcome::Rate | Outcome::Busy | Outcome::Total => {}
            _ => tool.ran.observe(event.duration.as_secs_f64()),
        }
        if let Some(step) = event.outcome.step() {
            self.refusals.with_label_values(&["call", step]).inc();
        }
    }
}

impl Hook for Arc<Metrics> {
    fn request(&self, event: &CallEvent) {
        Hook::request(&**self, event);
    }
}

impl Tool {
    fn new(name: &str, calls: &IntCounterVec, seconds: &HistogramVec) -> Result<Self, Error> {
        Ok(Self {
            outcomes: Outcome::ALL
                .iter()
                .map(|outcome| calls.get_metric_with_label_values(&[name, outcome.word()]))
                .collect::<Result<_, _>>()?,
            ran: seconds.get_metric_with_label_values(&[name, "run"])?,
            cached: seconds.get_metric_with_label_values(&[name, "cache"])?,
        })
    }
}

fn counter(registry: &Registry, row: &Row) -> Result<IntCounterVec, Error> {
    let made = IntCounterVec::new(Opts::new(row.name, row.help), row.labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}

fn histogram(registry: &Registry, row: &Row) -> Result<HistogramVec, Error> {
    let made = HistogramVec::new(HistogramOpts::new(row.name, row.help).buckets(SECONDS.to_vec()), row.labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(made)
}

fn pulled(registry: &Registry, row: &Row) -> Result<Pulled, Error> {
    if row.kind == Kind::Counter {
        return counter(registry, row).map(Pulled::Counter);
    }
    let made = IntGaugeVec::new(Opts::new(row.name, row.help), row.labels)?;
    registry.register(Box::new(made.clone()))?;
    Ok(Pulled::Gauge(made))
}

/// From `status` rather than `statm`: that counts pages, whose size only unsafe code or another crate could tell. 0 where there is none.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
