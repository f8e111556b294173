//! The one function that writes: a change, in one transaction.
//!
//! Promises: all or nothing; the generation rises when anything but file stamps changed; what is left does not depend on the order of changes.
//! Does not: work out runs, keys or cells (`regroup` and `rebuild` do).

use rusqlite::{Connection, Savepoint, Transaction, TransactionBehavior, params};

use super::{
    append, baselines, deed, extras,
    names::{self, BROKEN, COPY, LOG, SKIPPED, Word as _},
    queue, record, records, refresh,
    regroup::{self, Touched},
    search, sources,
};
use crate::{
    domain::{declared::Declared, grouping, log::RunStatus},
    store::{Applied, Change, Error, FileRow, FileStamp, FileState, Kind, LogChange, Result, workspace::rules},
};

pub(super) fn apply(connection: &mut Connection, change: Change<'_>) -> Result<Applied> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let applied = match change {
        Change::Log(change) => imported(&mut transaction, change)?,
        Change::Skipped { file, .. } if file.path.starts_with(rules::QUEUE) => Applied::default(),
        Change::Skipped { file, broken, reason } => skipped(&transaction, &file, if broken { BROKEN } else { SKIPPED }, &reason)?,
        Change::Vanished { paths } => vanished(&transaction, &paths)?,
        Change::Declared(declared) => declare(&transaction, &declared)?,
        Change::Remarks { path, remarks } => remark(&transaction, &path, &remarks)?,
        Change::Deed(both) => deed::apply(&mut transaction, &both.0, both.1)?,
        Change::Refused { deed, outcome, reason } => deed::refused(&transaction, &deed, outcome, &reason)?,
        Change::Queue(change) => queue::apply(&mut transaction, change)?,
        Change::Synced { connection, health } => sources::synced(&transaction, &connection, &health)?,
        Change::SearchIndex => {
            search::index::step(&transaction)?;
            Applied { left: search::index::is_behind(&transaction)?, ..Applied::default() }
        }
        Change::Refresh => Applied { changed: refresh::apply(&transaction)?, ..Applied::default() },
    };
    if applied.changed {
        transaction.prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'generation'")?.execute([])?;
    }
    transaction.commit()?;
    Ok(applied)
}

/// A log that comes from outside. What a run of the queue came to, only its worker says.
fn imported(transaction: &mut Transaction<'_>, change: LogChange<'_>) -> Result<Applied> {
    if change.file.path.starts_with(rules::QUEUE) {
        return Err(Error::Import(rules::kept_for_queue()));
    }
    for name in [&change.header.run_key, &change.header.log_id] {
        if queue::has(transaction, name)? {
            return Err(Error::Import(rules::kept_for_worker(name)));
        }
    }
    let accepted = baselines::near(transaction, &change)?;
    let applied = log(transaction, change)?;
    for (run_id, before) in accepted {
        // What is refused here is undone with the transaction.
        if baselines::tally(transaction, &run_id)? != before {
            return Err(Error::Import(rules::kept_as_accepted(&run_id)));
        }
    }
    Ok(applied)
}

/// Writes a log in the place of what its file or its id held.
pub(super) fn log(transaction: &mut Transaction<'_>, change: LogChange<'_>) -> Result<Applied> {
    let held = names::file(transaction, &change.file.path)?;
    if let Some(applied) = unchanged(transaction, held.as_ref(), &change)? {
        return Ok(applied);
    }
    let declared = names::declared(transaction)?;
    let mut touched = Touched::default();
    let file = change.file.clone();
    let log_id = change.header.log_id.clone();
    let dropped = extras::drop_analyses(transaction, &file.path)?;
    release(transaction, held.as_ref(), Some(&log_id), &mut touched)?;
    let replaced = !touched.is_empty();
    let released = touched.clone();
    let rival = rival(transaction, &log_id, &file.path)?;
    let mut savepoint = transaction.savepoint()?;
    let kept = record::log(&savepoint, &declared, change, rival.is_none().then_some(&mut touched))?;
    let copy = grouping::Copy { path: file.path.clone(), ..kept.copy };
    let mut applied = Applied { changed: true, attempts: copy.attempts, counts: kept.counts, ..Applied::default() };
    let winner = match rival.as_ref() {
        Some(rival) if !grouping::wins(&copy, rival) => Some(rival.path.clone()),
        Some(_) => None,
        None => records::own_log(&savepoint, kept.log_no)?,
    };
    if let Some(path) = winner {
        savepoint.rollback()?;
        savepoint.commit()?;
        touched = released;
        let state = FileState::CopyOf(path.clone());
        let same = held.is_some_and(|held| held.state == state);
        stamp(transaction, &file, COPY, &path, Some((&log_id, &copy)))?;
        let kept = records::keep_analyses(transaction, &path, &file.path, &kept.extras.analyses)?;
        applied = Applied { changed: !same || !touched.is_empty() || dropped || kept, ..Applied::default() };
        regroup::settle(transaction, &declared, touched)?;
        applied.run_id = run_of_file(transaction, &path)?;
        applied.copy_of = Some(path);
        return Ok(applied);
    }
    beat(&savepoint, rival.as_ref(), &log_id, &copy, kept.log_no, &mut touched)?;
    records::give_way(&savepoint, kept.log_no, &mut touched)?;
    savepoint.commit()?;
    stamp(transaction, &file, LOG, &log_id, Some((&log_id, &copy)))?;
    let mut own = Touched::default();
    own.log(transaction, kept.log_no)?;
    let alone = rival.is_none() && !replaced && touched == own;
    if !(alone && append::log(transaction, &declared, kept.log_no)?) {
        touched.log(transaction, kept.log_no)?;
        regroup::settle(transaction, &declared, touched)?;
    }
    applied.run_id = regroup::run_of(transaction, kept.log_no)?;
    Ok(applied)
}

/// The run of the log that the file at `path` holds.
fn run_of_file(transaction: &Transaction<'_>, path: &str) -> Result<Option<String>> {
    let Some(FileRow { state: FileState::Log(log_id), .. }) = names::file(transaction, path)? else { return Ok(None) };
    let log_no = record::log_no(transaction, &log_id)?;
    Ok(log_no.map(|log_no| regroup::run_of(transaction, log_no)).transpose()?.flatten())
}

/// The answer where the file holds what is already there; only its stamp is brought up to date.
fn unchanged(transaction: &Transaction<'_>, held: Option<&FileRow>, change: &LogChange<'_>) -> Result<Option<Applied>> {
    let Some(held) = held.filter(|held| held.stamp.digest == change.file.digest) else { return Ok(None) };
    let (run_id, copy_of) = match &held.state {
        FileState::Log(log_id) => {
            // The same bytes under another kind or run key (`--run`) are another log to the run that they make.
            let Some(log_no) = record::same(transaction, log_id, change)? else { return Ok(None) };
            (regroup::run_of(transaction, log_no)?, None)
        }
        FileState::CopyOf(path) => (run_of_file(transaction, path)?, Some(path.clone())),
        FileState::Skipped(_) | FileState::Broken(_) => return Ok(None),
    };
    restamp(transaction, &change.file)?;
    Ok(Some(Applied { run_id, copy_of, ..Applied::default() }))
}

/// Removes what a file held, since it goes or holds something else now (`log_id`).
fn release(transaction: &Transaction<'_>, held: Option<&FileRow>, log_id: Option<&str>, touched: &mut Touched) -> Result<()> {
    let Some(held) = held else { return Ok(()) };
    let FileState::Log(old) = &held.state else { return Ok(()) };
    let log_no = record::log_no(transaction, old)?;
    let run = log_no.map(|log_no| regroup::run_of(transaction, log_no)).transpose()?.flatten();
    if let Some(log_no) = log_no {
        regroup::remove(transaction, log_no, touched)?;
    }
    if log_id != Some(old.as_str()) {
        // A record that gave way to this log among others may hold what they lack now: it is looked at again.
        let record = run.as_deref().map(grouping::record_log_id);
        transaction.prepare_cached("DELETE FROM files WHERE log_id = ?1 AND state = ?2")?.execute(params![record, COPY])?;
        // Nobody has read the copies whole: forgotten, they are read at the next look, and one of them counts.
        let sql = "DELETE FROM files WHERE (log_id = ?1 OR detail = ?3) AND state = ?2";
        transaction.prepare_cached(sql)?.execute(params![old, COPY, held.stamp.path])?;
    }
    Ok(())
}

/// The other file that holds this log and counts.
fn rival(transaction: &Transaction<'_>, log_id: &str, path: &str) -> Result<Option<grouping::Copy>> {
    let sql = "SELECT path, status, attempts, completed_at, kind FROM files WHERE log_id = ?1 AND state = ?2 AND path <> ?3";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query_and_then(params![log_id, LOG, path], copy_row)?;
    rows.next().transpose()
}

fn copy_row(row: &rusqlite::Row<'_>) -> Result<grouping::Copy> {
    Ok(grouping::Copy {
        path: row.get(0)?,
        kind: Kind::from_code(row.get(4)?)?,
        status: RunStatus::from_code(row.get(1)?)?,
        attempts: names::natural(row.get(2)?),
        completed_at: names::time(row.get(3)?),
    })
}

/// Makes the other files of a log copies of the one that now counts; those that would count rather than it are to be read again.
fn beat(
    savepoint: &Savepoint<'_>,
    rival: Option<&grouping::Copy>,
    log_id: &str,
    copy: &grouping::Copy,
    log_no: i64,
    touched: &mut Touched,
) -> Result<()> {
    if rival.is_some() {
        if let Some(old) = record::other_log_no(savepoint, log_id, log_no)? {
            regroup::remove(savepoint, old, touched)?;
        }
        regroup::place(savepoint, log_no, touched)?;
    }
    let others: Vec<grouping::Copy> = {
        let sql = "SELECT path, status, attempts, completed_at, kind FROM files WHERE log_id = ?1 AND path <> ?2";
        let mut statement = savepoint.prepare_cached(sql)?;
        let rows = statement.query_and_then(params![log_id, copy.path], copy_row)?;
        rows.collect::<Result<_>>()?
    };
    for other in others {
        if grouping::wins(copy, &other) {
            let sql = "UPDATE files SET state = ?2, detail = ?3 WHERE path = ?1";
            savepoint.prepare_cached(sql)?.execute(params![other.path, COPY, copy.path])?;
        } else {
            savepoint.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([other.path])?;
        }
    }
    Ok(())
}

fn skipped(transaction: &Transaction<'_>, file: &FileStamp, code: i64, reason: &str) -> Result<Applied> {
    let held = names::file(transaction, &file.path)?;
    let state = if code == BROKEN { FileState::Broken(reason.to_owned()) } else { FileState::Skipped(reason.to_owned()) };
    let changed = held.as_ref().is_none_or(|held| held.state != state);
    let mut touched = Touched::default();
    release(transaction, held.as_ref(), None, &mut touched)?;
    let dropped = extras::drop_analyses(transaction, &file.path)?;
    stamp(transaction, file, code, reason, None)?;
    regroup::settle(transaction, &names::declared(transaction)?, touched)?;
    Ok(Applied { changed: changed || dropped, ..Applied::default() })
}

pub(super) fn vanished(transaction: &Transaction<'_>, paths: &[String]) -> Result<Applied> {
    let mut touched = Touched::default();
    let mut changed = false;
    for path in paths.iter().filter(|path| !path.starts_with(rules::QUEUE)) {
        let Some(held) = names::file(transaction, path)? else { continue };
        changed = true;
        release(transaction, Some(&held), None, &mut touched)?;
        extras::drop_analyses(transaction, path)?;
        transaction.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
    }
    regroup::settle(transaction, &names::declared(transaction)?, touched)?;
    Ok(Applied { changed, ..Applied::default() })
}

/// What could not be read of a file. No answer of the store depends on it.
fn remark(transaction: &Transaction<'_>, path: &str, remarks: &[String]) -> Result<Applied> {
    let text = if remarks.is_empty() { None } else { Some(serde_json::to_string(remarks)?) };
    transaction.prepare_cached("UPDATE files SET remarks = ?2 WHERE path = ?1")?.execute(params![path, text])?;
    Ok(Applied::default())
}

fn declare(transaction: &Transaction<'_>, new: &Declared) -> Result<Applied> {
    let old = names::declared(transaction)?;
    if old == *new {
        return Ok(Applied::default());
    }
    let text = serde_json::to_string(new)?;
    transaction.prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'declared'")?.execute([text])?;
    let mut touched = Touched::default();
    regroup::evaluations_declared(transaction, &old, new)?;
    regroup::arms_declared(transaction, &old, new, &mut touched)?;
    regroup::settle(transaction, new, touched)?;
    Ok(Applied { changed: true, ..Applied::default() })
}

fn stamp(transaction: &Transaction<'_>, file: &FileStamp, state: i64, detail: &str, copy: Option<(&str, &grouping::Copy)>) -> Result<()> {
    let sql =
        "INSERT OR REPLACE INTO files (path, size, mtime_ns, digest, source, state, detail, log_id, status, attempts, completed_at, kind)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    transaction.prepare_cached(sql)?.execute(params![
        file.path,
        names::int(file.size),
        file.mtime_ns,
        file.digest,
        file.source,
        state,
        detail,
        copy.map(|(log_id, _)| log_id),
        copy.map(|(_, copy)| copy.status.code()),
        copy.map(|(_, copy)| names::int(copy.attempts)),
        copy.and_then(|(_, copy)| names::millis(copy.completed_at)),
        copy.map_or(0, |(_, copy)| copy.kind.code()),
    ])?;
    Ok(())
}

fn restamp(transaction: &Transaction<'_>, file: &FileStamp) -> Result<()> {
    let sql = "UPDATE files SET size = ?2, mtime_ns = ?3, source = ?4 WHERE path = ?1";
    transaction.prepare_cached(sql)?.execute(params![file.path, names::int(file.size), file.mtime_ns, file.source])?;
    Ok(())
}
