//! The SQLite adapter: one file per project.
//!
//! Promises: every write is one transaction; every read sees one state; several processes may use one file; a kill leaves a whole state behind.
//! Does not: decide anything that `domain` decides, or keep anything in memory between calls but connections.

mod append;
mod attempts;
mod bases;
mod cells;
mod connect;
mod count;
mod fault;
mod names;
pub mod open;
mod rebuild;
mod record;
mod regroup;
mod runs;
mod series;
mod streaks;
mod write;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    Applied, AttemptQuery, AttemptRow, Base, BaseQuery, Cause, CellQuery, Change, Error, FileRow, Lines, Point, PointQuery, Result, Run,
    RunArm, RunEvaluation, RunPoint, RunQuery, Selector, Store, Streak,
};
use crate::{
    auth::Scope,
    domain::{
        cell::{Cell, CellKey, Grain},
        declared::Declared,
    },
};

/// How a file is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long a call waits for another's write, or for a free connection, before it is refused as busy.
    pub busy_timeout_ms: u64,
    /// Reads at once; more wait.
    pub readers_max: usize,
    /// Memory for pages, per connection.
    pub cache_kib: u32,
    /// Never write, even where it is possible. The file must exist.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout_ms: 5_000, readers_max: 4, cache_kib: 8 * 1024, read_only: false }
    }
}

/// A handle on one project's file.
pub struct Sqlite {
    path: PathBuf,
    options: Options,
    read_only: bool,
    text: bool,
    writer: connect::Pool,
    readers: connect::Pool,
    peek: connect::Peek,
}

impl Sqlite {
    /// Opens the file, creating and migrating it where needed. Where the disk, directory or file takes no writes and the file exists, it is
    /// opened for reading only (decision 41).
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Damaged`], [`Error::Busy`], [`Error::ReadOnly`] where there is no file and none can be made.
    pub fn open(path: &Path, scope: &Scope, options: &Options) -> Result<Self> {
        let opened = connect::open(path, options)?;
        // Read-only connections are all alike, so the first serves as a reader; a writer is never lent for a read.
        let (writer, reader) = if opened.read_only { (None, Some(opened.connection)) } else { (Some(opened.connection), None) };
        let more = options.readers_max.max(1) - usize::from(reader.is_some());
        Ok(Self {
            path: path.to_owned(),
            options: options.clone(),
            read_only: opened.read_only,
            text: scope.text(),
            writer: connect::Pool::new(writer, 0, options),
            readers: connect::Pool::new(reader, more, options),
            peek: connect::Peek::default(),
        })
    }

    /// Whether nothing can be written.
    #[must_use]
    pub const fn read_only(&self) -> bool {
        self.read_only
    }

    fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut lent = self.readers.lend(|| connect::reader(&self.path, self.read_only, &self.options))?;
        let snapshot = connect::Snapshot::begin(lent.get()?)?;
        look(&snapshot)
    }
}

impl Sqlite {
    /// Takes the texts out where the scope does not include them (decision 35).
    fn veil(&self, rows: &mut [AttemptRow]) {
        if self.text {
            return;
        }
        for row in rows {
            row.error = None;
            for check in &mut row.checks {
                (check.value, check.label, check.answer, check.reason) = (None, None, None, None);
            }
        }
    }
}

impl Store for Sqlite {
    fn generation(&self) -> Result<u64> {
        // Here there is time to open what the calls after this one look with.
        let open = || connect::reader(&self.path, self.read_only, &Options { busy_timeout_ms: 0, ..self.options.clone() });
        self.peek.open(open);
        self.generation_at_once().map_or_else(|| self.read(names::generation), Ok)
    }

    fn generation_at_once(&self) -> Option<u64> {
        self.peek.look(names::generation)
    }

    fn apply(&self, change: Change<'_>) -> Result<Applied> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        let mut lent = self.writer.lend(|| Err(Error::Busy))?;
        write::apply(lent.get()?, change)
    }

    fn files(&self, source: Option<&str>) -> Result<Vec<FileRow>> {
        self.read(|connection| names::files(connection, source))
    }

    fn declared(&self) -> Result<Declared> {
        self.read(names::declared)
    }

    fn runs(&self, query: &RunQuery) -> Result<(Vec<Run>, u64)> {
        self.read(|connection| runs::list(connection, query))
    }

    fn select(&self, selector: &Selector<'_>, limit: usize) -> Result<Vec<Run>> {
        self.read(|connection| runs::select(connection, selector, limit))
    }

    fn arms(&self, runs: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>> {
        self.read(|connection| runs::arms(connection, runs))
    }

    fn evaluations(&self, run: &str) -> Result<Vec<RunEvaluation>> {
        self.read(|connection| runs::evaluations(connection, run))
    }

    fn ancestors(&self, run: &str) -> Result<Vec<String>> {
        self.read(|connection| runs::ancestors(connection, run))
    }

    fn cells(&self, query: &CellQuery) -> Result<Vec<Cell>> {
        self.read(|connection| cells::read(connection, query))
    }

    fn points(&self, query: &PointQuery<'_>) -> Result<Vec<Point>> {
        self.read(|connection| series::points(connection, query))
    }

    fn bases(&self, query: &BaseQuery<'_>) -> Result<Vec<Base>> {
        self.read(|connection| bases::read(connection, query))
    }

    fn streaks(&self, run: &RunPoint, grain: Grain, keys: &[CellKey]) -> Result<Vec<Streak>> {
        self.read(|connection| streaks::read(connection, run, grain, keys))
    }

    fn attempts(&self, run: &str, query: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>> {
        let mut rows = self.read(|connection| attempts::read(connection, run, query))?;
        self.veil(&mut rows);
        Ok(rows)
    }

    fn find_attempts(&self, run: &str, name: &str) -> Result<Vec<AttemptRow>> {
        let mut rows = self.read(|connection| attempts::find(connection, run, name))?;
        self.veil(&mut rows);
        Ok(rows)
    }

    fn causes(&self, run: &str, evaluation_contains: Option<&str>) -> Result<Vec<Cause>> {
        let mut causes = self.read(|connection| attempts::causes(connection, run, evaluation_contains))?;
        if !self.text {
            causes.iter_mut().for_each(|cause| cause.reason.clear());
        }
        Ok(causes)
    }

    fn transcript(&self, run: &str, key: &str, offset: u64, limit: u64) -> Result<Option<Lines>> {
        if !self.text {
            return Ok(None);
        }
        self.read(|connection| attempts::transcript(connection, run, key, offset, limit))
    }
}
