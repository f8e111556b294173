//! Opening the file: journal mode, migrations, the read-only fallback, and the pools of connections.
//!
//! Promises: several processes may create, migrate and open one file at once; a connection is used by one thread at a time, and comes back soon
//! from a reader for whom nobody waits any more.
//! Does not: know what the tables mean.

use std::{
    ops::Deref,
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use super::Options;
use crate::{
    clock,
    store::{Cancel, Error, Result},
};

/// The steps from an empty file to today's schema, in order. A step that was released is never edited: add one.
const MIGRATIONS: [&str; 10] = [
    include_str!("0001_base.sql"),
    include_str!("0002_open.sql"),
    include_str!("0003_extras.sql"),
    include_str!("0004_views.sql"),
    include_str!("0005_projections.sql"),
    include_str!("0006_groups.sql"),
    include_str!("0007_measures.sql"),
    include_str!("0008_shared.sql"),
    include_str!("0009_workspace.sql"),
    include_str!("0010_search.sql"),
];
/// Written into the file's header ("rlor"), so that another program's database is not taken for ours.
const APPLICATION_ID: i64 = 0x726c_6f72;
/// Prepared statements that a connection keeps: more than there are texts in this adapter.
const STATEMENTS_KEPT: usize = 240;
/// Twice SQLite's own: half as many writes for an import, and a chunk of a short transcript fits beside others. Only a new file takes it.
const PAGE_BYTES: i64 = 8192;
/// What the write-ahead log shrinks to after a checkpoint, so that one large import does not leave a large file behind.
const JOURNAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// Steps of SQLite's machine between two looks at whether anybody waits: some ten microseconds, and nothing that can be measured.
const STEPS_A_LOOK: i32 = 1000;
/// A thread that waits for a connection looks as often whether anybody waits for it.
const WAIT_A_LOOK: Duration = Duration::from_millis(50);

/// The newest schema version that this program knows.
pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// How a file was opened.
pub(super) struct Opened {
    /// The first connection.
    pub connection: Connection,
    /// Whether writes are impossible.
    pub read_only: bool,
}

/// Opens `path` for writing, creating and migrating it; where the place takes no writes and the file exists, for reading only.
pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    if options.read_only {
        return immutable(path, options).map(|connection| Opened { connection, read_only: true });
    }
    match patiently(options, || writable(path, options)) {
        Ok(connection) => Ok(Opened { connection, read_only: false }),
        Err(Error::ReadOnly) if path.exists() => immutable(path, options).map(|connection| Opened { connection, read_only: true }),
        Err(error) => Err(error),
    }
}

/// A further connection of the kind that the first one was.
pub(super) fn reader(path: &Path, read_only: bool, options: &Options) -> Result<Connection> {
    if read_only {
        return immutable(path, options);
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    configure(&connection, options)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn writable(path: &Path, options: &Options) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection, options)?;
    recognise(&connection)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    // A file that SQLite could open for reading only stays in the mode that it had.
    if mode != "wal" || connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(Error::ReadOnly);
    }
    connection.pragma_update(None, "journal_size_limit", JOURNAL_BYTES_KEPT)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Opens for reading only. A write-ahead log that was left behind (a kill, a copied directory) holds changes that `immutable` would not see, so
/// then a plain read is tried first; it works where the index of that log is there or can be made.
fn immutable(path: &Path, options: &Options) -> Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let left_behind = std::fs::metadata(log).is_ok_and(|found| found.len() > 0);
    let plain = if left_behind { read_only(path, "mode=ro", options).ok() } else { None };
    plain.map_or_else(|| read_only(path, "mode=ro&immutable=1", options), Ok)
}

pub(super) fn read_only(path: &Path, mode: &str, options: &Options) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{}?{mode}", uri_path(path)), flags)?;
    configure(&connection, options)?;
    recognise(&connection)?;
    // An older schema cannot be brought up to date here, and reading it would fail statement by statement.
    if version(&connection)? < KNOWN { Err(Error::ReadOnly) } else { Ok(connection) }
}

/// Opens a file that may be of an older version, for reading only.
pub(super) fn plain_reader(path: &Path, options: &Options) -> Result<Connection> {
    let open = |mode: &str| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(format!("file:{}?{mode}", uri_path(path)), flags)?;
        configure(&connection, options)?;
        version(&connection).map(|_| connection)
    };
    // On a disk that takes no writes the index of a write-ahead log cannot be made.
    open("mode=ro").or_else(|_| open("mode=ro&immutable=1"))
}

/// Opens the control file for writing, creating and migrating it.
pub(super) fn control(path: &Path, options: &Options, application: i64, migrations: &[&str]) -> Result<Connection> {
    patiently(options, || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        configure(&connection, options)?;
        recognise_as(&connection, application, migrations.len() as i64)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
        // A key that was given out must not be forgotten by a power cut.
        connection.pragma_update(None, "synchronous", "full")?;
        migrate_by(&mut connection, migrations, application)?;
        Ok(connection)
    })
}

fn configure(connection: &Connection, options: &Options) -> Result<()> {
    connection.busy_timeout(Duration::from_millis(options.busy_timeout_ms))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // Without this SQLite looks at bound values while it plans, and plans anew whenever they change: ten times the cost of a seek.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "synchronous", if options.durable { "full" } else { "normal" })?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -i64::from(options.cache_kib))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

fn version(connection: &Connection) -> Result<i64> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Refuses a newer file and another program's.
pub(super) fn recognise(connection: &Connection) -> Result<()> {
    recognise_as(connection, APPLICATION_ID, KNOWN)
}

pub(super) fn recognise_as(connection: &Connection, own: i64, known: i64) -> Result<()> {
    // One state: between two reads another process could create its tables, and a file of ours would look like another program's.
    let state = connection.unchecked_transaction()?;
    let found = version(&state)?;
    let application: i64 = state.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = state.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    match (application, tables) {
        (application, _) if application == own && found > known => Err(Error::Newer { found, known }),
        (application, tables) if application == own || (application, tables) == (0, 0) => Ok(()),
        _ => Err(Error::Damaged),
    }
}

pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    if version(connection)? >= KNOWN { Ok(()) } else { migrate_to(connection, KNOWN) }
}

fn migrate_to(connection: &mut Connection, to: i64) -> Result<()> {
    migrate_by(connection, MIGRATIONS.get(..usize::try_from(to).unwrap_or(0)).unwrap_or(&MIGRATIONS), APPLICATION_ID)
}

fn migrate_by(connection: &mut Connection, migrations: &[&str], application: i64) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been first while this one waited for the lock.
    let from = version(&transaction)?;
    for (number, step) in (1_i64..).zip(migrations).filter(|(number, _)| *number > from) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.pragma_update(None, "application_id", application)?;
    transaction.commit()?;
    Ok(())
}

/// A file as an older version left it.
#[cfg(test)]
pub(super) fn create_at(path: &Path, version: i64) -> Result<()> {
    migrate_to(&mut Connection::open(path)?, version)
}

/// Repeats `attempt` while the file is busy: the switch to WAL and recovery report "busy" without waiting.
fn patiently<T>(options: &Options, attempt: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = clock::monotonic() + Duration::from_millis(options.busy_timeout_ms);
    loop {
        match attempt() {
            Err(Error::Busy) if clock::monotonic() < deadline => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
}

/// `path` as the path of a `file:` URI.
fn uri_path(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut out = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            out.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Connections that are lent to one thread at a time.
pub(super) struct Pool {
    idle: Mutex<State>,
    returned: Condvar,
    wait: Duration,
}

struct State {
    connections: Vec<Connection>,
    /// How many more may be opened.
    room: usize,
}

/// A lent connection; it goes back when this is dropped.
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Whether what runs on it ends at a flag.
    heeds: bool,
}

impl Pool {
    /// A pool of `first` and up to `more` further ones; a thread waits for one as long as for the database's own lock.
    pub(super) fn new(first: Option<Connection>, more: usize, options: &Options) -> Self {
        let connections = first.into_iter().collect();
        Self {
            idle: Mutex::new(State { connections, room: more }),
            returned: Condvar::new(),
            wait: Duration::from_millis(options.busy_timeout_ms),
        }
    }

    /// Lends a connection, opened by `open` where none is idle and there is room. Once `cancel` is raised the wait and what runs on the
    /// connection end.
    pub(super) fn lend(&self, cancel: Option<&Cancel>, open: impl FnOnce() -> Result<Connection>) -> Result<Lent<'_>> {
        let mut state = self.free(cancel)?;
        // From here on the guard gives back what was taken, whatever fails.
        let mut lent = Lent { pool: self, connection: state.connections.pop(), heeds: false };
        if lent.connection.is_none() {
            state.room -= 1;
            drop(state);
            lent.connection = Some(open()?);
        } else {
            drop(state);
        }
        if let Some(cancel) = cancel {
            lent.heed(cancel.clone())?;
        }
        Ok(lent)
    }

    /// Waits until a connection is idle or may be opened.
    fn free(&self, cancel: Option<&Cancel>) -> Result<MutexGuard<'_, State>> {
        let gone = || cancel.is_some_and(Cancel::raised);
        let mut state = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.wait;
        while !gone() {
            if !state.connections.is_empty() || state.room > 0 {
                return Ok(state);
            }
            if left.is_zero() {
                return Err(Error::Busy);
            }
            let (next, slice) = (clock::monotonic(), if cancel.is_some() { left.min(WAIT_A_LOOK) } else { left });
            state = self.returned.wait_timeout(state, slice).unwrap_or_else(PoisonError::into_inner).0;
            left = left.saturating_sub(next.elapsed());
        }
        Err(Error::Cancelled)
    }
}

impl Lent<'_> {
    /// Has what runs on the connection end once `cancel` is raised. Not SQLite's own interrupt: that is lost between two statements.
    fn heed(&mut self, cancel: Cancel) -> Result<()> {
        self.get()?.progress_handler(STEPS_A_LOOK, Some(move || cancel.raised()))?;
        self.heeds = true;
        Ok(())
    }

    /// The connection; an error where opening it failed, which `lend` has already said.
    pub(super) fn get(&mut self) -> Result<&mut Connection> {
        self.connection.as_mut().ok_or_else(|| Error::Internal("a pooled connection is gone".to_owned()))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut connection = self.connection.take();
        // The next reader must not end at this one's flag; a connection that keeps it is closed, and another may be opened.
        if self.heeds {
            connection = connection.and_then(|mut kept| kept.progress_handler(0, None::<fn() -> bool>).is_ok().then_some(kept));
        }
        let mut state = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match connection {
            Some(connection) => state.connections.push(connection),
            None => state.room += 1,
        }
        self.pool.returned.notify_one();
    }
}

/// A connection of its own for the one read that each call over HTTP begins with. It waits for no lock of the database, and no one reads
/// anything else with it, so that who holds it gives it back at once.
#[derive(Default)]
pub(super) struct Peek(OnceLock<Mutex<Connection>>);

impl Peek {
    /// Opens it where it is not open; it stays shut where that fails, since whoever asks has another way. Nobody waits for the opening.
    pub(super) fn open(&self, open: impl FnOnce() -> Result<Connection>) {
        if self.0.get().is_none()
            && let Ok(connection) = open()
        {
            let _ = self.0.set(Mutex::new(connection));
        }
    }

    /// What `read` says; none where it is not open, or could not say it without waiting. One statement sees one state by itself.
    pub(super) fn look<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Option<T> {
        let connection = self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        read(&connection).ok()
    }
}

/// One state of the file, for as long as this lives. Not rusqlite's transaction: that parses its two statements anew each time.
pub(super) struct Snapshot<'a>(&'a mut Connection);

impl<'a> Snapshot<'a> {
    /// Begins a read: the first statement fixes the state that all see.
    pub(super) fn begin(connection: &'a mut Connection) -> Result<Self> {
        connection.prepare_cached("BEGIN DEFERRED")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Deref for Snapshot<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let ended = self.0.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        // Nothing was written, so it can hardly fail; but a connection that stays in its state would never see another.
        if ended.is_err() && !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}
