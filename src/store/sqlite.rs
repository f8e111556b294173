//! The SQLite adapter: one file per project.
//!
//! Promises: every write is one transaction; every read sees one state; several processes may use one file; a kill leaves a whole state behind.
//! Does not: decide anything that `domain` decides, or keep anything in memory between calls but connections.

mod append;
mod attempts;
mod authored;
pub mod backup;
mod baselines;
mod bases;
mod catalog;
mod cells;
mod connect;
pub mod control;
mod count;
mod deed;
mod extras;
mod fault;
mod forget;
mod groups;
mod intake;
mod named;
mod names;
pub mod open;
mod projections;
pub mod query;
mod queue;
mod rebuild;
mod record;
mod records;
mod refresh;
mod regroup;
mod runs;
mod search;
mod series;
mod sources;
mod streaks;
mod survey;
mod traces;
mod trail;
mod workspace;
mod write;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rusqlite::Connection;

use super::{
    Applied, AttemptQuery, AttemptRow, Base, BaseQuery, Beginning, Cancel, Cause, CellQuery, Change, Error, FileRow, Groups, Lines, Named,
    Object, Point, PointQuery, ProjectionPage, ProjectionQuery, Query, QueryFault, Result, Rows, Run, RunArm, RunEvaluation, RunExtras,
    RunPoint, RunQuery, Selector, Store, Streak,
};
use super::{
    kept::PValues,
    query::{Isolation, Job, QueryLimits},
};
use crate::{
    auth::Scope,
    domain::{
        cell::{Cell, CellKey, Grain},
        declared::Declared,
        extras::Analysis,
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
    /// Whether a write waits until the disk has it; otherwise a power cut may undo the last ones, whole.
    pub durable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout_ms: 5_000, readers_max: 4, cache_kib: 8 * 1024, read_only: false, durable: false }
    }
}

/// A handle on one project's file. Its clones share the connections.
#[derive(Clone)]
pub struct Sqlite {
    path: Arc<Path>,
    options: Options,
    read_only: bool,
    text: bool,
    /// Where questions run; none for here, which only tests want.
    isolation: Option<Arc<dyn Isolation>>,
    query_limits: QueryLimits,
    writer: Arc<connect::Pool>,
    readers: Arc<connect::Pool>,
    peek: Arc<connect::Peek>,
    cancel: Option<Cancel>,
    /// Where p values are kept; none for nowhere.
    kept: Option<Arc<PValues>>,
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
            path: path.into(),
            options: options.clone(),
            read_only: opened.read_only,
            text: scope.text(),
            isolation: None,
            query_limits: QueryLimits::default(),
            writer: Arc::new(connect::Pool::new(writer, 0, options)),
            readers: Arc::new(connect::Pool::new(reader, more, options)),
            peek: Arc::default(),
            cancel: None,
            kept: None,
        })
    }

    /// The same, with questions run apart and bounded so.
    #[must_use]
    pub fn isolated(mut self, isolation: Arc<dyn Isolation>, limits: QueryLimits) -> Self {
        (self.isolation, self.query_limits) = (Some(isolation), limits);
        self
    }

    /// The same, with p values kept there.
    #[must_use]
    pub fn keeping(mut self, kept: Arc<PValues>) -> Self {
        self.kept = Some(kept);
        self
    }

    /// Whether nothing can be written.
    #[must_use]
    pub const fn read_only(&self) -> bool {
        self.read_only
    }

    fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut lent = self.readers.lend(self.cancel.as_ref(), || connect::reader(&self.path, self.read_only, &self.options))?;
        let snapshot = connect::Snapshot::begin(lent.get()?)?;
        look(&snapshot)
    }
}

impl Sqlite {
    /// Works out what views say of earlier changes; where nothing can be written they say what they said.
    fn fresh(&self) -> Result<()> {
        if self.read_only || !self.read(refresh::is_stale)? {
            return Ok(());
        }
        match self.apply(Change::Refresh) {
            Ok(_) | Err(Error::ReadOnly) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the texts out where the scope does not include them (decision 35).
    fn veil(&self, rows: &mut [AttemptRow]) {
        if self.text {
            return;
        }
        for row in rows {
            row.error = None;
            if let Some(rest) = &mut row.rest {
                rest.hide_text();
            }
            for check in &mut row.checks {
                (check.value, check.label, check.answer, check.reason) = (None, None, None, None);
            }
        }
    }
}

impl super::survey::Survey for Sqlite {
    fn figures(&self, run: &str) -> Result<BTreeMap<String, crate::domain::figures::Figures>> {
        self.read(|connection| survey::figures(connection, run))
    }

    fn ranked(&self, documents: &[super::survey::Document], words: &[String], limit: usize) -> Result<(Vec<super::survey::Hit>, u64)> {
        survey::search(documents, words, limit)
    }
}

impl Store for Sqlite {
    fn heeding(self: Arc<Self>, cancel: &Cancel) -> Arc<dyn Store> {
        Arc::new(Self { cancel: Some(cancel.clone()), ..(*self).clone() })
    }

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
        let mut lent = self.writer.lend(None, || Err(Error::Busy))?;
        write::apply(lent.get()?, change)
    }

    fn files(&self, source: Option<&str>) -> Result<Vec<FileRow>> {
        self.read(|connection| names::files(connection, source))
    }

    fn remarks(&self) -> Result<BTreeMap<String, Vec<String>>> {
        self.read(names::remarks)
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

    fn groups(&self, run: &str) -> Result<Groups> {
        self.read(|connection| groups::of_run(connection, run))
    }

    fn ancestors(&self, run: &str) -> Result<Vec<String>> {
        self.read(|connection| runs::ancestors(connection, run))
    }

    fn cells(&self, query: &CellQuery) -> Result<Vec<Cell>> {
        self.read(|connection| cells::read(connection, query))
    }

    fn keys(&self, query: &CellQuery) -> Result<Vec<CellKey>> {
        self.read(|connection| cells::keys(connection, query))
    }

    fn points(&self, query: &PointQuery<'_>) -> Result<Vec<Point>> {
        self.read(|connection| series::points(connection, query))
    }

    fn projections(&self, query: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>> {
        let page = self.read(|connection| projections::page(connection, query))?;
        Ok(if self.text { page } else { page.map(ProjectionPage::without_text) })
    }

    fn cursor_key(&self) -> Result<[u8; 32]> {
        self.read(projections::cursor_key)
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

    fn names(&self, of: Named<'_>, part: &str, limit: usize) -> Result<(Vec<String>, u64)> {
        self.read(|connection| named::read(connection, of, part, limit))
    }

    fn transcript_text(&self, run: &str, key: &str, bytes_max: usize) -> Result<Option<Beginning>> {
        if !self.text {
            return Ok(None);
        }
        self.read(|connection| attempts::text(connection, run, key, bytes_max))
    }

    fn causes(&self, run: &str, evaluation_contains: Option<&str>) -> Result<Vec<Cause>> {
        let mut causes = self.read(|connection| attempts::causes(connection, run, evaluation_contains))?;
        if !self.text {
            // The signature is a digest of the reason: whoever guesses one could check the guess.
            for (number, cause) in (1..).zip(&mut causes) {
                cause.reason.clear();
                cause.signature = format!("hidden-{number}");
            }
        }
        Ok(causes)
    }

    fn query(&self, query: &Query) -> std::result::Result<Rows, QueryFault> {
        self.fresh().map_err(|error| match error {
            Error::Busy => QueryFault::Busy,
            Error::Cancelled => QueryFault::Cancelled,
            other => QueryFault::Store(other.to_string()),
        })?;
        let job = Job {
            file: self.path.to_path_buf(),
            read_only: self.read_only,
            text: self.text,
            query: query.clone(),
            limits: self.query_limits,
        };
        match &self.isolation {
            Some(isolation) => isolation.run(&job, self.cancel.as_ref()),
            None => query::execute(&job, false),
        }
    }

    fn objects(&self) -> Result<Vec<Object>> {
        let mut objects = open::objects()?;
        for object in objects.iter_mut().filter(|_| !self.text) {
            object.columns.retain(|column| !open::TEXTS.contains(&(object.name.as_str(), column.name.as_str())));
        }
        Ok(objects)
    }

    fn extras(&self, run: &str) -> Result<Option<RunExtras>> {
        let extras = self.read(|connection| extras::of_run(connection, run))?;
        Ok(if self.text { extras } else { extras.map(RunExtras::without_text) })
    }

    fn analyses(&self, run: &str) -> Result<Vec<Analysis>> {
        if !self.text {
            return Ok(Vec::new());
        }
        self.read(|connection| extras::analyses(connection, run))
    }

    fn transcript(&self, run: &str, key: &str, offset: u64, limit: u64) -> Result<Option<Lines>> {
        if !self.text {
            return Ok(None);
        }
        self.read(|connection| attempts::transcript(connection, run, key, offset, limit))
    }
}
