//! THE WAY OF A REQUEST.
//!
//! Two lists, each step a line with its reason, in the order that a request meets them: the door (over every HTTP request; it comes with the
//! HTTP service) and the call (over every tool call, whatever brought it). Each step is one file under `gate/`.
//!
//! Promises: HTTP, stdio and the command line share the call list, so they cannot disagree.
//! Does not: know SQL, rmcp or a tool's arguments.

pub mod arguments;
pub mod audit;
pub mod authenticate;
pub mod authorize;
pub mod body;
pub mod cache;
pub mod call;
pub mod client;
pub mod consent;
pub mod deadline;
pub mod deadline_http;
pub mod decode;
pub mod dialect;
pub mod documents;
pub mod door;
pub mod framing;
pub mod fresh;
pub mod headers;
pub mod health;
pub mod host;
pub mod inflight;
pub mod ingest;
pub mod lacks;
mod lasting;
pub mod limiter;
pub mod measure;
pub mod message;
pub mod next;
pub mod origin;
pub mod panics;
#[cfg(test)]
pub(crate) mod probe;
pub mod project;
pub mod rate;
pub mod redact;
pub mod refusal;
pub mod request_id;
pub mod route;
pub mod run;
pub mod shared;
pub mod slots;
pub mod step;
pub mod tenant_rate;
#[cfg(test)]
mod tests;
pub mod tool_api;
pub mod tool_rate;
pub mod total;
pub mod trail;
#[cfg(test)]
mod trial;
pub mod visit;

use std::{sync::Arc, time::Duration};

use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

pub use self::{
    call::{Call, CallerKey, Refusal},
    lacks::Lacks,
};
use self::{
    limiter::Limiter,
    next::{around, shared},
    project::{Place, Projects},
};
use crate::{
    auth::{Caller, Role},
    telemetry::{
        hook::Hooks,
        metrics::{self, Metrics},
        redaction::Redactor,
    },
    tools::{Answer, Entry, Limits, declared::Registry, render::Style, write::Rules},
};

/// What a step's future is.
pub(crate) type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// Looks at the files, without holding a thread while it waits; what an answer should say of the index.
pub type Refresh = Arc<dyn Fn() -> BoxFuture<Option<String>> + Send + Sync>;

/// What comes back up the list.
pub type Reply = Result<Served, Refusal>;

/// An answer, and how it was come by.
#[derive(Debug, Clone)]
pub struct Served {
    /// The answer.
    pub answer: Arc<Answer>,
    /// Whether another call had computed it.
    pub cached: bool,
}

/// How much of what, of calls that are counted. The defaults are a loopback server's (decision 32).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Calls a minute of one caller (`--rate`); 0 is off.
    pub rate: u32,
    /// Calls a minute that run, of all callers (`--rate-total`); 0 is off.
    pub rate_total: u32,
    /// Heavy calls at once, of all callers (`--concurrent`).
    pub concurrent: usize,
    /// Heavy calls at once of all callers of one organization, so that the others find a place.
    pub concurrent_each: usize,
    /// Light calls at once of one caller.
    pub light_per_caller: usize,
    /// How long a heavy call waits for its place.
    pub slot_wait: Duration,
    /// Bytes of answers that are kept, of uncounted calls too; 0 is none.
    pub cache_bytes: u64,
    /// How long an answer is kept.
    pub cache_for: Duration,
    /// Tools that are on the blocking pool at once, of uncounted calls too (`mcp.handlers`).
    pub handlers: usize,
    /// Callers that the tool rate remembers at most.
    pub limiter_keys_max: usize,
    /// How long the row of a refused write may take (`approval.row_wait_ms`).
    pub row_wait: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            rate: 0,
            rate_total: 0,
            concurrent: 4,
            concurrent_each: 2,
            light_per_caller: 8,
            slot_wait: Duration::from_secs(30),
            cache_bytes: 16 * 1024 * 1024,
            cache_for: Duration::from_secs(3600),
            handlers: 256,
            limiter_keys_max: 100_000,
            row_wait: Duration::from_secs(5),
        }
    }
}

/// What the gate needs to know.
#[derive(Clone)]
pub struct Settings {
    /// The projects that calls are about.
    pub projects: Arc<dyn Projects>,
    /// What replaces secrets on the way out.
    pub redactor: Arc<Redactor>,
    /// Bounds on answers.
    pub limits: Limits,
    /// How text is to look.
    pub style: Style,
    /// How long one call may run.
    pub call_timeout: Duration,
    /// Bounds on calls.
    pub bounds: Bounds,
    /// Whether a line per call is logged.
    pub audit: bool,
    /// Who else is told of calls and faults.
    pub hooks: Hooks,
    /// What holds for tools that write; none where there are none (decision 48).
    pub writes: Option<Rules>,
    /// The tools.
    pub registry: Registry,
}

/// The call list, ready to serve.
#[derive(Clone)]
pub struct Gate {
    call: BoxCloneSyncService<Call, Served, Refusal>,
    projects: Arc<dyn Projects>,
    writes: bool,
    registry: Registry,
    watched: Watched,
}

/// The parts of the list whose state is worth a number.
#[derive(Clone)]
struct Watched {
    audit: Arc<audit::Audit>,
    rate: Arc<Limiter<CallerKey>>,
    cache: Arc<cache::Cache>,
    slots: Arc<slots::Slots>,
}

impl Gate {
    /// Puts the steps in their order (decision 1).
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let bounds = settings.bounds.clone();
        let watched = Watched {
            audit: Arc::new(audit::Audit::new(&settings)),
            rate: Arc::new(Limiter::bounded(bounds.rate, bounds.limiter_keys_max)),
            cache: Arc::new(cache::Cache::new(&bounds)),
            slots: Arc::new(slots::Slots::new(&bounds)),
        };
        let (projects, writes, registry) = (settings.projects.clone(), settings.writes.is_some(), settings.registry);
        let call = ServiceBuilder::new()
            // Around all that follows, so that a refused or cached call leaves its line too.
            .layer(shared(watched.audit.clone()))
            // Every call is one of its caller's, whatever becomes of it: guessing names or arguments is not free.
            .layer(around(tool_rate::ToolRate::new(watched.rate.clone(), bounds.rate)))
            // Around whatever may refuse a write, so that every refused one has its row; after the rate, so that a flood has none.
            .layer(around(trail::Trail::new(&settings)))
            // Before anything is spent on a caller who may not, and before the cache, which must not answer one.
            .layer(around(authorize::Authorize))
            // Before the arguments, of which it takes its own, and after all that is not about a project.
            .layer(around(project::ProjectStep::new(projects.clone())))
            // Before the arguments, which would refuse as unknown what leave is given by; after the project, whose argument is as little the tool's.
            .layer(around(consent::ConsentStep))
            // Before anything is waited for: a wrong argument needs no file, no slot and no share of the total.
            .layer(around(arguments::Arguments::new(settings.redactor.clone())))
            // Before the cache and the places, which what was started keeps when its client leaves.
            .layer(around(lasting::Lasting))
            // Before the cache, whose key is the generation after this look at the files.
            .layer(around(fresh::Fresh::new(&settings)))
            // Before what limits running: a repeated question costs nothing but its caller's own rate.
            .layer(shared(watched.cache.clone()))
            // Only what really runs waits for a place.
            .layer(shared(watched.slots.clone()))
            // After the wait, so that one who gave up waiting has taken nothing from the others.
            .layer(around(total::Total::new(Limiter::new(bounds.rate_total), bounds.rate_total)))
            // Around what runs, not what waits.
            .layer(around(deadline::Deadline::new(settings.call_timeout)))
            // Around the answer and the refusal: whatever the store holds, no secret leaves, nor enters the cache.
            .layer(around(redact::Redact::new(settings.redactor.clone())))
            // On the blocking pool: the answer, its text.
            .service(run::Run::new(settings));
        Self { call: BoxCloneSyncService::new(call), projects, writes, registry, watched }
    }

    /// Sends one call down the list. One that names no tool goes down too, with [`crate::tools::UNKNOWN`], and is refused with
    /// [`Refusal::Unknown`] unless its rate refuses it before: it counts like any other.
    ///
    /// # Errors
    /// [`Refusal`], whose text is for the caller.
    pub async fn call(&self, call: Call) -> Result<Arc<Answer>, Refusal> {
        self.call.clone().oneshot(call).await.map(|served| served.answer)
    }

    /// Whether tools write here.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.writes
    }

    /// Whether there is such a tool here: one that writes only where writes are taken.
    #[must_use]
    pub const fn has(&self, entry: &Entry) -> bool {
        self.writes || !entry.effect.writes()
    }

    /// The tools.
    #[must_use]
    pub const fn registry(&self) -> Registry {
        self.registry
    }

    /// Whether `entry` takes the argument `project` from `caller`, who came to `place`.
    #[must_use]
    pub fn asks_project(&self, entry: &Entry, caller: &Caller, place: Option<&Place>) -> bool {
        project::asked_of(&*self.projects, entry, caller, place)
    }

    /// Has `metrics` read the list's own numbers when it is asked for them.
    ///
    /// # Errors
    /// When they are watched already.
    pub fn watch(&self, metrics: &Metrics) -> Result<(), metrics::Error> {
        let Watched { audit, rate, cache, slots } = self.watched.clone();
        metrics.watch(&metrics::CALLS_IN_FLIGHT, &[], move || audit.in_flight())?;
        metrics.watch(&metrics::LIMITER_ENTRIES, &["tool_rate"], move || rate.keys() as u64)?;
        let callers = slots.clone();
        metrics.watch(&metrics::LIMITER_ENTRIES, &["running"], move || callers.callers() as u64)?;
        metrics.watch(&metrics::SLOTS_IN_USE, &[], move || slots.in_use() as u64)?;
        let of_cache = |row, number: fn(&cache::Cache) -> u64| {
            let cache = cache.clone();
            metrics.watch(row, &[], move || number(&cache))
        };
        of_cache(&metrics::CACHE_HITS, cache::Cache::hits)?;
        of_cache(&metrics::CACHE_MISSES, cache::Cache::misses)?;
        of_cache(&metrics::CACHE_FOLLOWERS, cache::Cache::followers)?;
        of_cache(&metrics::CACHE_BYTES, cache::Cache::bytes)?;
        of_cache(&metrics::CACHE_ENTRIES, cache::Cache::entries)
    }
}

/// Whether `entry` stands in the list that `caller` gets: what it may call, and for nobody what there is to read once somebody has called
/// (decision 46): what is released and reads. One that writes is in nobody's list, and neither is one that runs what an operator declared.
#[must_use]
pub fn listed(caller: &Caller, entry: &Entry) -> bool {
    if hidden(caller, entry) {
        return false;
    }
    if caller.is_nobody() {
        entry.released && entry.role == Role::Viewer && !entry.effect.writes()
    } else {
        Lacks::of(caller, entry).is_none()
    }
}

/// Whether `entry` is not there for `caller`: what is not published, on a public server (decision 35). It is then no tool at all, in lists and
/// in calls.
#[must_use]
pub fn hidden(caller: &Caller, entry: &Entry) -> bool {
    caller.is_public() && entry.declared.is_some_and(|declared| !declared.is_public())
}
