//! The store's port: a handle on one project, opened with a [`Scope`](crate::auth::Scope) that only a Caller can give.
//!
//! Promises: every write is one [`Change`], applied in one transaction that bumps the generation; reads see whole changes only; a handle
//! sees one project and no other. Both adapters pass the one suite in `contract`.
//! Does not: know SQL, paths of other projects, or MCP. Calls block: run them on the blocking pool.

mod absent;
mod cancel;
mod catalog;
mod change;
#[cfg(test)]
pub(crate) mod contract;
pub mod control;
mod error;
mod extras;
pub mod kept;
#[cfg(test)]
pub(crate) mod model;
mod projection;
pub mod query;
mod rows;
pub mod sqlite;
pub mod survey;
pub mod workspace;

use std::{collections::BTreeMap, sync::Arc};

pub use self::{
    absent::Absent,
    cancel::Cancel,
    catalog::{ArmTotal, Catalog, Dataset, Found, FoundIn, Hit, Item, ItemText, Place, Round, Score, SearchQuery, Totals},
    change::{Applied, Change, FileRow, FileStamp, FileState, LogChange},
    error::Error,
    extras::{AttemptRest, RunExtras},
    projection::{CheckMean, Projection, ProjectionArm, ProjectionPage, ProjectionPlace, ProjectionQuery, ProjectionSort, Said, SaidByLog},
    query::{Object, Query, QueryFault, Rows},
    rows::{AttemptQuery, AttemptRow, Beginning, Cause, Groups, Lines, Named, RunArm, RunEvaluation},
};
pub use crate::domain::log::Kind;
use crate::domain::{
    cell::{Cell, CellKey, Grain, Verdict},
    declared::Declared,
    extras::Analysis,
    log::{Git, RunStatus},
    outcome::Counts,
    time::Timestamp,
};

// What the suite and the plain model speak of besides.
#[cfg(test)]
use crate::domain::{
    attempt::{Check, Usage},
    log::{ArmInfo, EvaluationInfo},
    outcome::Outcome,
};

/// A store's answer.
pub type Result<T> = std::result::Result<T, Error>;

/// A run, without what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The id.
    pub run_id: String,
    /// Its number in the project, from 1, never reused.
    pub number: i64,
    /// Recorded where any of its logs is, else scratch.
    pub kind: Kind,
    /// From the last log of each of its tasks.
    pub status: RunStatus,
    /// Its earliest log's.
    pub created_at: Timestamp,
    /// The earliest start.
    pub started_at: Option<Timestamp>,
    /// The latest end, where every log has one.
    pub completed_at: Option<Timestamp>,
    /// Of its first log.
    pub git: Option<Git>,
    /// The group of runs: that of its first log that has one.
    pub round: Option<String>,
    /// Over all its attempts that count.
    pub counts: Counts,
}

/// A run's place in time, which every answer that names a run carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPoint {
    /// The run's id.
    pub run_id: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Which runs to list. The order is always newest first, tie by id descending.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// Only runs that hold a cell of an evaluation whose id contains this, ignoring case.
    pub evaluation_contains: Option<String>,
    /// Only this kind; none for all.
    pub kind: Option<Kind>,
    /// Only this status.
    pub status: Option<RunStatus>,
    /// Only this round.
    pub round: Option<String>,
    /// Only runs created at or after this.
    pub since: Option<Timestamp>,
    /// Only runs that come before this one (created at, id): the cursor, or the head of a comparison.
    pub before: Option<RunPoint>,
    /// Only runs whose sha and one of these name one commit.
    pub shas: Option<Vec<String>>,
    /// At most this many.
    pub limit: usize,
}

/// How a reference selects runs.
#[derive(Debug, Clone)]
pub enum Selector<'a> {
    /// The run `n` before the newest of all, scratch included: one or none.
    Latest(u32),
    /// This id, exactly.
    Id(&'a str),
    /// Ids that begin so; newest first.
    IdPrefix(&'a str),
    /// Shas that begin so, in lower case; newest first.
    ShaPrefix(&'a str),
}

/// Which cells to read.
#[derive(Debug, Clone, Default)]
pub struct CellQuery {
    /// Of these runs, by id.
    pub runs: Vec<String>,
    /// Of evaluations whose id contains this, ignoring case.
    pub evaluation_contains: Option<String>,
    /// Of this evaluation, exactly.
    pub evaluation: Option<String>,
    /// Only cells with these keys; none for all.
    pub keys: Option<Vec<CellKey>>,
    /// Of evaluations or of cases.
    pub grain: Grain,
    /// Only cells with a failed or errored attempt.
    pub failing: bool,
}

/// Which point of each series to find. A series is one evaluation by one arm (at case grain: one case of it), over recorded runs.
#[derive(Debug, Clone)]
pub struct PointQuery<'a> {
    /// Of evaluations whose id contains this, ignoring case.
    pub evaluation_contains: Option<&'a str>,
    /// Only these series; none for all at evaluation grain that the filter leaves.
    pub keys: Option<&'a [CellKey]>,
    /// Of evaluations or of cases. Without `keys`, only evaluations.
    pub grain: Grain,
    /// Only cells with a counted attempt.
    pub counted: bool,
    /// Only cells of runs with one of these statuses; empty for any.
    pub statuses: &'a [RunStatus],
    /// Which one.
    pub pick: Pick,
}

/// Which cell of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The newest.
    Newest,
    /// The newest of a run created at or before this.
    NewestUpTo(Timestamp),
    /// The oldest of a run created after this.
    OldestAfter(Timestamp),
}

/// A cell with its run's place in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The cell.
    pub cell: Cell,
    /// Its run.
    pub run: RunPoint,
}

/// Which runs can be the base of another (decision 10).
#[derive(Debug, Clone)]
pub struct BaseQuery<'a> {
    /// The head's evaluations and arms: keys at evaluation grain.
    pub keys: &'a [CellKey],
    /// Only runs that come before this one: the head, or the last run of the page before.
    pub before: RunPoint,
    /// Only runs whose sha and one of these name one commit; none for all.
    pub shas: Option<&'a [String]>,
    /// At most this many.
    pub limit: usize,
}

/// A run that can be a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Base {
    /// The run.
    pub run: Run,
    /// Of how many of the head's evaluations and arms it holds a counted cell (`domain::compare::shared`); at least one.
    pub shared: usize,
}

/// What the recorded runs before a given one say of one series. Only counted cells are looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Streak {
    /// The previous counted cell's verdict and run.
    pub previous: Option<(Verdict, RunPoint)>,
    /// The last run before that passed.
    pub last_pass: Option<RunPoint>,
    /// The first run after `last_pass` (or of all) that did not pass, before the given one.
    pub failing_since: Option<RunPoint>,
    /// Whether any earlier counted cell did not pass.
    pub failed_before: bool,
    /// The first run of the unbroken row of cells with the given run's own verdict, which can be the given run (and is, where that is not
    /// counted); none where the given run has no such cell.
    pub verdict_since: Option<RunPoint>,
}

/// A handle on one project. Methods block for as long as the disk takes; each sees one state.
pub trait Store: workspace::Workspace + survey::Survey + Catalog + Send + Sync {
    /// A handle on the same project whose reads end with [`Error::Cancelled`] soon after `cancel` is raised, and give back what they hold. Writes
    /// go on: they are whole or not there. A store whose reads take microseconds need not look.
    fn heeding(self: Arc<Self>, cancel: &Cancel) -> Arc<dyn Store>;

    /// A number that every change raises: what is cached under an older one is stale.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn generation(&self) -> Result<u64>;

    /// The same where it can be had without waiting for anybody, in microseconds: the one call that need not go to the blocking pool. None
    /// where it cannot; then [`Store::generation`] says it, and why not.
    fn generation_at_once(&self) -> Option<u64> {
        None
    }

    /// Applies one change in one transaction.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed then.
    fn apply(&self, change: Change<'_>) -> Result<Applied>;

    /// The files that were looked at, by path: those of one source, or all.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn files(&self, source: Option<&str>) -> Result<Vec<FileRow>>;

    /// What could not be read of files whose rest stands, by path.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn remarks(&self) -> Result<BTreeMap<String, Vec<String>>>;

    /// What the project declares.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn declared(&self) -> Result<Declared>;

    /// Runs, newest first, and how many there are without the limit and the cursor.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn runs(&self, query: &RunQuery) -> Result<(Vec<Run>, u64)>;

    /// Runs that a reference selects: newest first, at most `limit`.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn select(&self, selector: &Selector<'_>, limit: usize) -> Result<Vec<Run>>;

    /// The arms of each run, by run id; the order is by name.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn arms(&self, runs: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>>;

    /// The evaluations of one run, by id.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn evaluations(&self, run: &str) -> Result<Vec<RunEvaluation>>;

    /// The groups that the cases of one run come in, where its logs say so; the newest log's word on a case stands.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn groups(&self, run: &str) -> Result<Groups>;

    /// Shas of the commits before a run's, nearest first; empty where unknown.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn ancestors(&self, run: &str) -> Result<Vec<String>>;

    /// Cells, by evaluation, case, arm, then in the order of the query's runs.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn cells(&self, query: &CellQuery) -> Result<Vec<Cell>>;

    /// The keys of the cells that the query finds, each once, by evaluation, case, arm: what can be asked before all cells of many runs are read.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn keys(&self, query: &CellQuery) -> Result<Vec<CellKey>>;

    /// At most one point of each series, by evaluation, case, arm.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn points(&self, query: &PointQuery<'_>) -> Result<Vec<Point>>;

    /// A page of the runs that hold an evaluation, all of one state; none where the project has never seen the evaluation.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn projections(&self, query: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>>;

    /// A key that only this project has, made with it and the same for ever: what is given out and must come back unchanged is bound with it.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn cursor_key(&self) -> Result<[u8; 32]>;

    /// Recorded, completed runs that hold a counted cell of one of the query's keys, newest first.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn bases(&self, query: &BaseQuery<'_>) -> Result<Vec<Base>>;

    /// What the recorded runs before `run` say of each of `keys`, parallel to them.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn streaks(&self, run: &RunPoint, grain: Grain, keys: &[CellKey]) -> Result<Vec<Streak>>;

    /// Attempts of one run.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn attempts(&self, run: &str, query: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>>;

    /// The attempts that `name` may mean in one run, with their checks: that key; else, for `<evaluation>#<n>` (the id plain, or escaped as in
    /// keys), that try of each case and arm. At most six.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn find_attempts(&self, run: &str, name: &str) -> Result<Vec<AttemptRow>>;

    /// Names that hold `part`, ignoring case: those that begin with it first, at most `limit`; and how many there are.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn names(&self, of: Named<'_>, part: &str, limit: usize) -> Result<(Vec<String>, u64)>;

    /// As many whole lines, from the first, of the transcript of the attempt with `key` as take at most `bytes_max` bytes; none where there is
    /// no such attempt. Takes no more memory than that and one chunk.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn transcript_text(&self, run: &str, key: &str, bytes_max: usize) -> Result<Option<Beginning>>;

    /// Why attempts of one run failed or errored, the commonest first, tie by signature.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn causes(&self, run: &str, evaluation_contains: Option<&str>) -> Result<Vec<Cause>>;

    /// Answers a question in SQL (SQLite's, for ever) over the open tables and views.
    ///
    /// # Errors
    /// [`QueryFault`], whose text is for the asker.
    fn query(&self, query: &Query) -> std::result::Result<Rows, QueryFault>;

    /// The open tables and views, by name, with the columns that this handle may read.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn objects(&self) -> Result<Vec<Object>>;

    /// What a run's logs say besides; none where there is no such run.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn extras(&self, run: &str) -> Result<Option<RunExtras>>;

    /// Analyses of a run, newest first; saved ones before cached ones of the same time.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn analyses(&self, run: &str) -> Result<Vec<Analysis>>;

    /// A page of the transcript of the attempt with `key`; none where there is no such attempt. Past the end the page is empty.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn transcript(&self, run: &str, key: &str, offset: u64, limit: u64) -> Result<Option<Lines>>;
}
