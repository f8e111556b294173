//! Whose write it is and by which leave, beside the arguments.
//!
//! Promises: what has been handed to the store is known to whoever writes the trail, so that no refused write has two rows or none.
//! Does not: judge a handle (`handle` does), or say who may (the gate does).

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::SeqCst},
};

use crate::store::workspace::Actor;

/// How leave for a write is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leave {
    /// The first call is answered with a handle; a second one with it acts.
    #[default]
    Ask,
    /// The same, where the client shows a form to a person: its handle is good for the form's answer only.
    AskByForm,
    /// None is asked for: whoever calls so has it by contract (the HTTP tool API).
    Direct,
}

/// What came with a call of the leave it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Given {
    /// Nothing: it asks.
    #[default]
    Nothing,
    /// The argument `approval`.
    Handle(String),
    /// The answer to a form.
    Form {
        /// The handle that the form came with.
        handle: String,
        /// Whether whoever read it said yes.
        approved: bool,
    },
}

/// What a write is told beside its arguments.
#[derive(Debug, Clone)]
pub struct Consent {
    /// How leave is given.
    pub leave: Leave,
    /// What came of it.
    pub given: Given,
    /// The key under which a repeat gets the first answer: 1 to 128 characters.
    pub idempotency_key: Option<String>,
    /// Who acts.
    pub actor: Actor,
    /// Whether the store has it.
    pub handed: Handed,
}

/// What holds for writes on this server; each is a config key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// How long an approval holds, in milliseconds (`approval.ttl_s`).
    pub approval_ms: i64,
    /// Runs of one project that wait or run (`org.max_queued_runs`).
    pub queued_max: u64,
    /// Dollars that the runs started in one day (UTC) may cost; none for no bound (`org.max_cost_usd_per_day`).
    pub cost_usd_max: Option<f64>,
    /// Whether anything is synced (`connections.root` names a directory).
    pub connections_on: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { approval_ms: 300_000, queued_max: 20, cost_usd_max: None, connections_on: false }
    }
}

/// How far a deed has come, shared by who applies it and who writes the trail.
#[derive(Debug, Clone, Default)]
pub struct Handed(Arc<AtomicU8>);

/// The store has it, and has not said what it came to.
const OVER: u8 = 1;
/// The store has written its row.
const RECORDED: u8 = 2;

impl Handed {
    /// The store gets it now.
    pub fn over(&self) {
        self.0.store(OVER, SeqCst);
    }

    /// The store could not write it, and no row.
    pub fn back(&self) {
        self.0.store(0, SeqCst);
    }

    /// The store has written its row.
    pub fn recorded(&self) {
        self.0.store(RECORDED, SeqCst);
    }

    /// Whether the row is the store's: written, or about to be.
    #[must_use]
    pub fn is_the_stores(&self) -> bool {
        self.0.load(SeqCst) != 0
    }
}
