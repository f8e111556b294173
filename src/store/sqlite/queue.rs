//! The queue: runs that somebody asked for, until a worker has done them.
//!
//! Promises: each state of a run is also a log, written in the same transaction, so that every list shows the run as it stands; until it has
//! completed all of its cases are missing from the counts. A run is changed only by who holds its lease, or once that has ended.
//! Does not: run anything, or look at a clock.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction, params};

use super::{
    authored,
    deed::{self, Did},
    names::{self, Word as _},
    write,
};
use crate::{
    domain::{extras::Extras, log::RunStatus, time::Timestamp},
    store::{
        Applied, Error, Kind, LogChange, Result,
        workspace::{Acted, Claimed, Deed, NewRun, QueueChange, QueueOutcome, Queued, RunEnd, rules},
    },
};

/// A run, with what the store keeps of it besides.
struct Held {
    run: Queued,
    queue_no: i64,
    eval_no: i64,
    /// The last case that its evaluation had when it was queued.
    last_case_no: i64,
    threshold: Option<f64>,
    family: Option<String>,
}

const HELD: &str = "SELECT q.run_id, e.id, q.arm, q.environment, q.max_cost_usd, q.cost_usd, q.status, q.created_by, q.created_at, q.started_at,
    q.ended_at, q.worker, q.lease_until, q.tries, q.cancelling, q.done, q.total, q.error, q.queue_no, q.eval_no, q.last_case_no, q.threshold,
    q.family FROM queue_m q JOIN evaluations_m e ON e.eval_no = q.eval_no";

fn held(row: &Row<'_>) -> Result<Held> {
    let run = Queued {
        run_id: row.get(0)?,
        evaluation: row.get(1)?,
        arm: row.get(2)?,
        environment: row.get(3)?,
        max_cost_usd: row.get(4)?,
        cost_usd: row.get(5)?,
        status: RunStatus::from_code(row.get(6)?)?,
        created_by: row.get(7)?,
        created_at: deed::at(row, 8)?,
        started_at: deed::maybe_at(row, 9)?,
        ended_at: deed::maybe_at(row, 10)?,
        worker: row.get(11)?,
        lease_until: deed::maybe_at(row, 12)?,
        tries: row.get(13)?,
        cancelling: row.get(14)?,
        done: row.get(15).map(names::natural)?,
        total: row.get(16).map(names::natural)?,
        error: row.get(17)?,
    };
    Ok(Held {
        run,
        queue_no: row.get(18)?,
        eval_no: row.get(19)?,
        last_case_no: row.get(20)?,
        threshold: row.get(21)?,
        family: row.get(22)?,
    })
}

fn find(connection: &Connection, run_id: &str) -> Result<Option<Held>> {
    let mut statement = connection.prepare_cached(&format!("{HELD} WHERE q.run_id = ?1"))?;
    statement.query_and_then([run_id], held)?.next().transpose()
}

/// Whether the run came by the queue.
pub(super) fn has(connection: &Connection, run_id: &str) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM queue_m WHERE run_id = ?1")?.exists([run_id])?)
}

/// Queues a run.
pub(super) fn start(transaction: &mut Transaction<'_>, deed: &Deed, new: NewRun) -> Did {
    if is_known(transaction, &new.run_id)? {
        return Err(rules::run_exists(&new.run_id).into());
    }
    let evaluation = authored::here(transaction, &new.evaluation)?;
    rules::may_start(&evaluation.id, evaluation.status, evaluation.lock.as_ref(), evaluation.cases)?;
    let spent = spent(transaction, new.budget.since)?;
    rules::fits(&new.budget, open_runs(transaction)?, spent, new.max_cost_usd)?;
    let sql =
        "INSERT INTO queue_m (run_id, eval_no, arm, environment, max_cost_usd, status, created_by, created_at, tries, cancelling, done,
        total, threshold, family, last_case_no) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, ?9, ?10, ?11, ?12)";
    transaction.prepare_cached(sql)?.execute(params![
        new.run_id,
        evaluation.number,
        new.arm.as_deref().unwrap_or(rules::DEFAULT_ARM),
        new.environment,
        new.max_cost_usd,
        RunStatus::Pending.code(),
        deed.actor.principal,
        deed.at.millis(),
        names::int(evaluation.cases),
        evaluation.threshold,
        evaluation.family,
        authored::last_case(transaction, evaluation.number)?,
    ])?;
    let held = find(transaction, &new.run_id)?.ok_or(Error::Damaged)?;
    show(transaction, &held, &mut std::iter::empty())?;
    Ok(Acted::Run { run_id: new.run_id, status: RunStatus::Pending })
}

/// Whether any log or run has the id, or would have it once another log is gone.
fn is_known(connection: &Connection, run_id: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM runs_m WHERE run_id = ?1 UNION ALL SELECT 1 FROM logs_m WHERE log_id = ?1 OR run_key = ?1
               UNION ALL SELECT 1 FROM queue_m WHERE run_id = ?1";
    Ok(connection.prepare_cached(sql)?.exists([run_id])?)
}

fn open_runs(connection: &Connection) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM queue_m WHERE status <= 1")?;
    Ok(statement.query_row([], |row| row.get(0).map(names::natural))?)
}

/// What the runs queued since then may cost. Added up in their order, so that the sum is the same wherever it is made.
fn spent(connection: &Connection, since: Timestamp) -> Result<f64> {
    let sql =
        "SELECT max_cost_usd, tries, status, cost_usd FROM queue_m WHERE max_cost_usd IS NOT NULL AND created_at >= ?1 ORDER BY queue_no";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([since.millis()])?;
    let mut sum = 0.0;
    while let Some(row) = rows.next()? {
        sum += rules::reserved(row.get(0)?, row.get(1)?, RunStatus::from_code(row.get(2)?)?, row.get(3)?);
    }
    Ok(sum)
}

/// Takes a run back, or tells its worker to end.
pub(super) fn cancel(transaction: &mut Transaction<'_>, deed: &Deed, run_id: &str) -> Did {
    let mut held = find(transaction, run_id)?.ok_or_else(|| rules::not_queued(run_id))?;
    match held.run.status {
        RunStatus::Pending => finish(transaction, &mut held, RunStatus::Cancelled, deed.at, None)?,
        status if status.ended() => return Err(rules::has_ended(&held.run).into()),
        _ => {
            held.run.cancelling = true;
            keep(transaction, &held)?;
        }
    }
    Ok(Acted::Run { run_id: held.run.run_id, status: held.run.status })
}

/// A change by a worker.
pub(super) fn apply(transaction: &mut Transaction<'_>, change: QueueChange<'_>) -> Result<Applied> {
    match change {
        QueueChange::Claim { worker, now, lease_ms, tries_max } => claim(transaction, worker, now, lease_ms, tries_max),
        QueueChange::Beat { run_id, worker, now, lease_ms, done, cost_usd } => {
            let Some(mut held) = ours(transaction, run_id, worker)? else { return Ok(outcome(QueueOutcome::Lost, false)) };
            held.run.lease_until = Some(now.plus_millis(lease_ms));
            held.run.done = done.min(held.run.total);
            held.run.cost_usd = cost_usd.or(held.run.cost_usd);
            keep(transaction, &held)?;
            Ok(outcome(if held.run.cancelling { QueueOutcome::Cancelling } else { QueueOutcome::Ours }, false))
        }
        QueueChange::End { run_id, worker, now, end } => {
            let Some(held) = ours(transaction, run_id, worker)? else { return Ok(outcome(QueueOutcome::Lost, false)) };
            ended(transaction, held, now, end)
        }
    }
}

fn outcome(queue: QueueOutcome, changed: bool) -> Applied {
    Applied { changed, queue: Some(queue), ..Applied::default() }
}

/// The run, where it runs and the worker was the last to take it.
fn ours(connection: &Connection, run_id: &str, worker: &str) -> Result<Option<Held>> {
    let held = find(connection, run_id)?;
    Ok(held.filter(|held| held.run.status == RunStatus::Running && held.run.worker.as_deref() == Some(worker)))
}

fn claim(transaction: &mut Transaction<'_>, worker: &str, now: Timestamp, lease_ms: i64, tries_max: u32) -> Result<Applied> {
    deed::sweep(transaction, now)?;
    let free: Vec<Held> = {
        let sql = format!("{HELD} WHERE q.status <= 1 AND (q.status = 0 OR q.lease_until <= ?1 OR q.lease_until > ?2) ORDER BY q.queue_no");
        let mut statement = transaction.prepare_cached(&sql)?;
        // One that ends later than any lease may was made before the clock was put back: nobody would see its end.
        let impossible = now.plus_millis(rules::LEASE_MS_MAX).millis();
        let rows = statement.query_and_then([now.millis(), impossible], held)?;
        rows.collect::<Result<_>>()?
    };
    let mut changed = false;
    for mut held in free {
        changed = true;
        if held.run.cancelling {
            finish(transaction, &mut held, RunStatus::Cancelled, now, None)?;
        } else if held.run.status == RunStatus::Running && held.run.tries >= tries_max {
            let why = rules::lost(held.run.tries);
            finish(transaction, &mut held, RunStatus::Failed, now, Some(why))?;
        } else {
            take(&mut held.run, worker, now, lease_ms);
            keep(transaction, &held)?;
            show(transaction, &held, &mut std::iter::empty())?;
            let evaluation = authored::one(transaction, held.eval_no)?.ok_or(Error::Damaged)?;
            let cases = authored::cases_up_to(transaction, held.eval_no, held.last_case_no)?;
            return Ok(outcome(QueueOutcome::Claimed(Box::new(Claimed { run: held.run, evaluation, cases })), true));
        }
    }
    Ok(outcome(QueueOutcome::Idle, changed))
}

fn take(run: &mut Queued, worker: &str, now: Timestamp, lease_ms: i64) {
    run.status = RunStatus::Running;
    run.started_at = Some(now);
    run.worker = Some(worker.to_owned());
    run.lease_until = Some(now.plus_millis(lease_ms));
    run.tries += 1;
    // What earlier tries cost stays: the bound is the run's.
    run.done = 0;
}

/// Ends a run by its worker's word.
fn ended(transaction: &mut Transaction<'_>, mut held: Held, now: Timestamp, end: RunEnd<'_>) -> Result<Applied> {
    held.run.cost_usd = end.cost_usd.or(held.run.cost_usd);
    match end.status {
        RunStatus::Completed => {
            close(&mut held.run, RunStatus::Completed, now, None);
            let cases = authored::cases_up_to(transaction, held.eval_no, held.last_case_no)?;
            let mut results = rules::Results::new(&held.run, &cases, end.attempts);
            let applied = show(transaction, &held, &mut results)?;
            held.run.done = results.done();
            keep(transaction, &held)?;
            Ok(Applied { changed: true, queue: Some(QueueOutcome::Ours), ..applied })
        }
        RunStatus::Failed => {
            finish(transaction, &mut held, RunStatus::Failed, now, Some(end.error.unwrap_or_else(rules::unsaid)))?;
            Ok(outcome(QueueOutcome::Ours, true))
        }
        RunStatus::Cancelled => {
            finish(transaction, &mut held, RunStatus::Cancelled, now, end.error)?;
            Ok(outcome(QueueOutcome::Ours, true))
        }
        other => Err(Error::Internal(format!("a run cannot end as {}", other.word()))),
    }
}

/// Ends a run without results.
fn finish(transaction: &mut Transaction<'_>, held: &mut Held, status: RunStatus, now: Timestamp, error: Option<String>) -> Result<()> {
    close(&mut held.run, status, now, error);
    keep(transaction, held)?;
    show(transaction, held, &mut std::iter::empty())?;
    Ok(())
}

fn close(run: &mut Queued, status: RunStatus, now: Timestamp, error: Option<String>) {
    (run.status, run.ended_at, run.error) = (status, Some(now), error);
    (run.lease_until, run.cancelling) = (None, false);
}

/// Keeps what of a run can change.
fn keep(connection: &Connection, held: &Held) -> Result<()> {
    let sql = "UPDATE queue_m SET cost_usd = ?2, status = ?3, started_at = ?4, ended_at = ?5, worker = ?6, lease_until = ?7, tries = ?8,
        cancelling = ?9, done = ?10, error = ?11 WHERE queue_no = ?1";
    let run = &held.run;
    connection.prepare_cached(sql)?.execute(params![
        held.queue_no,
        run.cost_usd,
        run.status.code(),
        names::millis(run.started_at),
        names::millis(run.ended_at),
        run.worker,
        names::millis(run.lease_until),
        run.tries,
        run.cancelling,
        names::int(run.done),
        run.error,
    ])?;
    Ok(())
}

/// Writes the log that the run is as it now stands, in the place of the one that it was.
fn show(
    transaction: &mut Transaction<'_>,
    held: &Held,
    attempts: &mut dyn Iterator<Item = std::result::Result<crate::domain::attempt::Attempt, String>>,
) -> Result<Applied> {
    let (file, header) = rules::log_of(&held.run, held.threshold, held.family.as_deref());
    let extras = Extras::default();
    write::log(transaction, LogChange { file, kind: Kind::Recorded, header, extras, pinned: true, ancestors: Vec::new(), attempts })
}

/// Of these runs those that came by the queue; with none given, all that have not ended.
pub(super) fn read(connection: &Connection, run_ids: &[String]) -> Result<BTreeMap<String, Queued>> {
    if run_ids.is_empty() {
        let mut statement = connection.prepare_cached(&format!("{HELD} WHERE q.status <= 1"))?;
        let rows = statement.query_and_then([], held)?;
        return rows.map(|held| held.map(|held| (held.run.run_id.clone(), held.run))).collect();
    }
    let mut out = BTreeMap::new();
    for run_id in run_ids {
        if let Some(held) = find(connection, run_id)? {
            out.insert(run_id.clone(), held.run);
        }
    }
    Ok(out)
}
