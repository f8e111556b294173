//! The workspace: what people and agents make in a project (evaluations, cases, runs to be done, traces, connections, baselines), and the trail
//! of who did it.
//!
//! Promises: every act is one [`Deed`] with one [`Act`], applied in one transaction that also uses up the approval, remembers the answer under
//! its idempotency key and writes the audit row; a refused one leaves its row and nothing else. The trail is only added to.
//! Does not: decide who may (the gate does), or run anything (the worker does).

mod deed;
mod queue;
mod rows;
pub(crate) mod rules;

use std::collections::BTreeMap;

pub use self::{
    deed::{Act, ActFault, Acted, Actor, Approval, Budget, Deed, NewCase, NewEvaluation, NewRun, NewTrace, Outcome},
    queue::{Claimed, QueueChange, QueueOutcome, Queued, RunEnd},
    rows::{
        AuditQuery, AuditRow, Authored, AuthoredCase, AuthoredQuery, BaselineRow, Connection, EvaluationStatus, Health, Lock, Remembered,
        Trace,
    },
};
use super::Result;
use crate::domain::time::Timestamp;

/// Idempotency keys are kept so long (decision 31).
pub const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

/// The reads of the workspace: a part of the port, apart so that each list stays short.
pub trait Workspace {
    /// Evaluations, and how many there are without offset and limit.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn authored(&self, query: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)>;

    /// Cases that were made here of one evaluation, and how many there are.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn authored_cases(&self, evaluation: &str, offset: u64, limit: usize) -> Result<(Vec<AuthoredCase>, u64)>;

    /// Runs of the queue, by id: of these ids those that came by the queue; with none given, all that have not ended.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn queued(&self, run_ids: &[String]) -> Result<BTreeMap<String, Queued>>;

    /// Rows of the trail, and how many there are without cursor and limit.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn audit(&self, query: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)>;

    /// Acceptances, the newest first: of one evaluation and of the project; with none given, all.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn baselines(&self, evaluation: Option<&str>) -> Result<Vec<BaselineRow>>;

    /// Connections, by name.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn connections(&self) -> Result<Vec<Connection>>;

    /// A trace whose day has not come by `now`.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn trace(&self, trace_id: &str, now: Timestamp) -> Result<Option<Trace>>;

    /// What this caller's call of this tool with this key did at `since` or later.
    ///
    /// # Errors
    /// As every read: [`super::Error`].
    fn remembered(&self, identity: &str, tool: &str, key: &str, since: Timestamp) -> Result<Option<Remembered>>;
}
