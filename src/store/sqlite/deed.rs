//! What somebody does in the workspace: one transaction with its approval, its idempotency key and its row of the trail.
//!
//! Promises: a refused act leaves its row and nothing else, and uses nothing up; a repeat under a key does nothing and is told what the first
//! call did; what has expired is gone before anything is decided.
//! Does not: do the acts themselves (`authored`, `queue`, `traces`, `sources` and `baselines` do).

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::{authored, baselines, forget, names, queue, sources, traces, trail};
use crate::{
    domain::time::Timestamp,
    store::{
        Applied, Error, Result,
        workspace::{Act, ActFault, Acted, Approval, Deed, Outcome, REMEMBERED_MS, Remembered, rules},
    },
};

/// Why an act stopped.
pub(super) enum Stop {
    /// It may not be done: the caller is told.
    Fault(ActFault),
    /// It could not be done.
    Store(Error),
}

impl From<ActFault> for Stop {
    fn from(fault: ActFault) -> Self {
        Self::Fault(fault)
    }
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// What an act did, or why it stopped.
pub(super) type Did = std::result::Result<Acted, Stop>;

/// Does it, or refuses it.
pub(super) fn apply(transaction: &mut Transaction<'_>, deed: &Deed, act: Act) -> Result<Applied> {
    sweep(transaction, deed.at)?;
    let outcome = outcome(transaction, deed, act)?;
    let (word, detail) = match &outcome {
        Outcome { done: Ok(acted), repeated } => (if *repeated { "repeated" } else { "ok" }, acted.to_string()),
        Outcome { done: Err(fault), .. } => ("refused", fault.to_string()),
    };
    trail::put(transaction, deed, word, &detail)?;
    Ok(Applied { changed: word == "ok", outcome: Some(outcome), ..Applied::default() })
}

/// Writes down that somebody was refused before anything could be done.
pub(super) fn refused(connection: &Connection, deed: &Deed, outcome: &str, reason: &str) -> Result<Applied> {
    sweep(connection, deed.at)?;
    // Who said no has not left the handle for a yes.
    if let Some(Approval { handle, expires_at }) = &deed.approval {
        let sql = "INSERT OR IGNORE INTO approvals_m (handle, expires_at) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![handle, expires_at.millis()])?;
    }
    trail::put(connection, deed, outcome, reason)?;
    Ok(Applied::default())
}

fn outcome(transaction: &mut Transaction<'_>, deed: &Deed, act: Act) -> Result<Outcome> {
    if let Some(held) = repeat(transaction, deed)? {
        let done = if held.digest == deed.digest { Ok(held.acted) } else { Err(ActFault::KeyReused) };
        return Ok(Outcome { repeated: done.is_ok(), done });
    }
    let refused = |fault| Ok(Outcome { done: Err(fault), repeated: false });
    if let Some(fault) = unusable(transaction, deed)? {
        return refused(fault);
    }
    transaction.execute_batch("SAVEPOINT deed")?;
    match act_on(transaction, deed, act) {
        Ok(acted) => {
            transaction.execute_batch("RELEASE deed")?;
            use_up(transaction, deed, &acted)?;
            Ok(Outcome { done: Ok(acted), repeated: false })
        }
        Err(Stop::Fault(fault)) => {
            transaction.execute_batch("ROLLBACK TO deed; RELEASE deed")?;
            refused(fault)
        }
        Err(Stop::Store(error)) => Err(error),
    }
}

fn act_on(transaction: &mut Transaction<'_>, deed: &Deed, act: Act) -> Did {
    match act {
        Act::CreateEvaluation(new) => authored::create(transaction, deed, &new),
        Act::AddCase { evaluation, case } => authored::add_case(transaction, deed, &evaluation, &case),
        Act::SetStatus { evaluation, status } => authored::set_status(transaction, deed, &evaluation, status),
        Act::SetLock { evaluation, reason } => authored::set_lock(transaction, deed, &evaluation, reason.as_deref()),
        Act::StartRun(new) => queue::start(transaction, deed, new),
        Act::CancelRun { run_id } => queue::cancel(transaction, deed, &run_id),
        Act::CreateTrace(new) => traces::create(transaction, deed, &new),
        Act::AddLines { trace_id, lines } => traces::add(transaction, &trace_id, &lines),
        Act::CreateConnection { id, kind, name, config } => sources::create(transaction, deed, [&id, &kind, &name], &config),
        Act::UpdateConnection { connection, name, config, enabled } => {
            sources::update(transaction, &connection, name.as_deref(), config.as_ref(), enabled)
        }
        Act::DeleteConnection { connection } => sources::delete(transaction, &connection),
        Act::SyncConnection { connection } => sources::ask(transaction, deed, &connection),
        Act::AcceptBaseline { run_id, evaluation, note } => {
            baselines::accept(transaction, deed, &run_id, evaluation.as_deref(), note.as_deref())
        }
        Act::ForgetRun { run_id } => forget::run(transaction, &run_id),
    }
}

/// Takes out what has expired: nobody may read it any more, or it cannot matter.
pub(super) fn sweep(connection: &Connection, now: Timestamp) -> Result<()> {
    let old = |kept: i64| now.millis().saturating_sub(kept);
    connection.prepare_cached("DELETE FROM approvals_m WHERE expires_at < ?1")?.execute([old(rules::EXPIRED_KEPT_MS)])?;
    connection.prepare_cached("DELETE FROM remembered_m WHERE at < ?1")?.execute([old(REMEMBERED_MS)])?;
    traces::sweep(connection, now)
}

/// What the first call under the deed's key did.
fn repeat(connection: &Connection, deed: &Deed) -> Result<Option<Remembered>> {
    let Some(key) = &deed.idempotency_key else { return Ok(None) };
    remembered(connection, &deed.actor.identity, &deed.tool, key, deed.at.plus_millis(-REMEMBERED_MS))
}

/// What this caller's call of this tool with this key did at `since` or later.
pub(super) fn remembered(connection: &Connection, identity: &str, tool: &str, key: &str, since: Timestamp) -> Result<Option<Remembered>> {
    let sql = "SELECT digest, acted FROM remembered_m WHERE identity = ?1 AND tool = ?2 AND key = ?3 AND at >= ?4";
    let values = params![identity, tool, key, since.millis()];
    let mut statement = connection.prepare_cached(sql)?;
    let held: Option<(String, String)> = statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    held.map(|(digest, acted)| Ok(Remembered { digest, acted: serde_json::from_str(&acted)? })).transpose()
}

/// Why the deed's approval is none.
fn unusable(connection: &Connection, deed: &Deed) -> Result<Option<ActFault>> {
    let Some(Approval { handle, expires_at }) = &deed.approval else { return Ok(None) };
    if connection.prepare_cached("SELECT 1 FROM approvals_m WHERE handle = ?1")?.exists([handle])? {
        return Ok(Some(ActFault::ApprovalUsed));
    }
    Ok((*expires_at <= deed.at).then_some(ActFault::ApprovalExpired))
}

/// Uses the approval up and remembers what was done under the key.
fn use_up(connection: &Connection, deed: &Deed, acted: &Acted) -> Result<()> {
    if let Some(Approval { handle, expires_at }) = &deed.approval {
        let sql = "INSERT INTO approvals_m (handle, expires_at) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![handle, expires_at.millis()])?;
    }
    if let Some(key) = &deed.idempotency_key {
        let sql = "INSERT OR REPLACE INTO remembered_m (identity, tool, key, digest, acted, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let acted = serde_json::to_string(acted)?;
        let values = params![deed.actor.identity, deed.tool, key, deed.digest, acted, deed.at.millis()];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// Free pairs, as they are kept.
pub(super) fn pairs(text: &str) -> Result<serde_json::Map<String, serde_json::Value>> {
    Ok(serde_json::from_str(text)?)
}

/// A time that is there.
pub(super) fn at(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

/// A time that may be there.
pub(super) fn maybe_at(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get(column).map(names::time)
}
