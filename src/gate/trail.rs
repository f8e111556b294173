//! A write that was refused leaves its row in the project's trail, wherever it was refused (decision 2; issue "workspace").
//!
//! Promises: one row for each: what the store has refused itself it has recorded itself, in the transaction that refused it. The row is written
//! before the caller reads the refusal, within a bounded time, and goes on when the caller has left. Where the server takes no writes there is
//! no such tool.
//! Does not: leave a row where the caller may see no project, or is known by nothing: strangers fill nobody's trail. A rate that refuses stands
//! before this, so that a flood leaves none either.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::{
    Call, Refusal, Reply, Settings,
    consent::actor,
    next::{Next, Step},
    project::{ARGUMENT, Found, Lost, Place, Projects},
};
use crate::{
    auth::Caller,
    clock,
    store::{self, Change, workspace::Deed},
    telemetry::{hook::Outcome, redaction::Redactor},
    tools::{
        Entry, canonical,
        write::{APPROVAL, Handed, IDEMPOTENCY_KEY},
    },
};

/// The step.
pub struct Trail {
    parts: Arc<Parts>,
    writes: bool,
}

struct Parts {
    projects: Arc<dyn Projects>,
    redactor: Arc<Redactor>,
    within: Duration,
    /// Rows that are being written; more wait.
    places: Semaphore,
}

/// What of a call its row says.
struct Witness {
    entry: &'static Entry,
    arguments: Map<String, Value>,
    caller: Caller,
    place: Option<Arc<Place>>,
    deed: Deed,
}

impl Trail {
    /// The step.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let (projects, redactor) = (settings.projects.clone(), settings.redactor.clone());
        let places = Semaphore::new(settings.bounds.handlers);
        Self { parts: Arc::new(Parts { projects, redactor, within: settings.bounds.row_wait, places }), writes: settings.writes.is_some() }
    }
}

impl Witness {
    fn of(call: &Call) -> Self {
        let deed = Deed {
            actor: actor(call),
            tool: call.entry.name.to_owned(),
            digest: String::new(),
            at: clock::now(),
            approval: None,
            idempotency_key: None,
        };
        let (arguments, caller, place) = (call.arguments.clone(), call.caller.clone(), call.place.clone());
        Self { entry: call.entry, arguments, caller, place, deed }
    }

    /// Of the arguments as the tool has them; where it cannot decode them, as they came.
    fn digest(&self) -> String {
        let mut own = self.arguments.clone();
        for name in [ARGUMENT, APPROVAL, IDEMPOTENCY_KEY] {
            own.remove(name);
        }
        (self.entry.canonical)(own.clone()).map_or_else(|_| canonical::digest(&own), |decoded| canonical::digest(&decoded))
    }
}

impl Parts {
    /// Writes the row; whoever waits for it waits no longer than it may take.
    async fn record(self: Arc<Self>, witness: Witness, refusal: &Refusal) {
        let outcome = if refusal.outcome() == Outcome::Denied { "denied" } else { "refused" };
        let reason = self.redactor.redact(&refusal.to_string()).into_owned();
        let (request_id, tool, within) = (witness.deed.actor.request_id.clone(), witness.entry.name, self.within);
        // A task of its own: it goes on when the caller leaves.
        let writing = tokio::spawn(async move { tokio::time::timeout(within, self.write(witness, outcome, reason)).await });
        let fault = match writing.await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => format!("it took longer than {} ms", within.as_millis()),
            Err(error) => error.to_string(),
        };
        tracing::error!(requestId = request_id, tool, error = fault, "a refused write left no row in the trail");
    }

    async fn write(&self, witness: Witness, outcome: &'static str, reason: String) -> store::Result<()> {
        let _place = self.places.acquire().await;
        let named = witness.arguments.get(ARGUMENT).and_then(Value::as_str);
        let found = match self.projects.find(&witness.caller, witness.place.as_deref(), named) {
            Found::Here(project) => Ok(project),
            Found::Opening(opening) => opening.await,
            Found::Lost(lost) => Err(lost),
        };
        let project = match found {
            Ok(project) => project,
            Err(Lost::Store(error)) => return Err(error),
            Err(Lost::NotFound | Lost::Which) => return Ok(()),
        };
        let writing = tokio::task::spawn_blocking(move || {
            let deed = Box::new(Deed { digest: witness.digest(), ..witness.deed });
            project.store.apply(Change::Refused { deed, outcome, reason }).map(drop)
        });
        writing.await.unwrap_or_else(|error| Err(store::Error::Internal(error.to_string())))
    }
}

impl Step for Trail {
    fn passes(&self, call: &Call) -> bool {
        !call.entry.effect.writes()
    }

    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        if !self.writes {
            return Err(if call.closed { Refusal::Closed { tool: call.entry.name } } else { Refusal::Unknown });
        }
        let handed = Handed::default();
        call.handed = Some(handed.clone());
        let witness = call.caller.identified().is_some().then(|| Witness::of(&call));
        let reply = next.call(call).await;
        match (reply, witness) {
            (Err(Refusal::Timeout { tool, seconds }), _) if handed.is_the_stores() => Err(Refusal::Undecided { tool, seconds }),
            (Err(refusal), Some(witness)) if !handed.is_the_stores() => {
                self.parts.clone().record(witness, &refusal).await;
                Err(refusal)
            }
            (reply, _) => reply,
        }
    }
}
