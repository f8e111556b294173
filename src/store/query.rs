//! Questions in SQL: what is asked, what comes back, and why not.
//!
//! Promises: plain values that fit through a pipe, so that a query can run in a process of its own.
//! Does not: parse, run or bound anything (`sqlite::query` does), or choose where it runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Cancel;

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// One SELECT or WITH; its parameters are `?1`, `?2`, ...
    pub sql: String,
    /// The parameters' values: null, numbers and texts.
    pub values: Vec<serde_json::Value>,
    /// Rows at most.
    pub limit: usize,
}

/// How much a question may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryLimits {
    /// Wall time.
    pub deadline_ms: u64,
    /// Bytes of the rows as JSON.
    pub result_bytes: usize,
    /// Bytes of one value, and of a row.
    pub value_bytes: u32,
    /// Memory of the process that runs it.
    pub memory_bytes: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { deadline_ms: 5_000, result_bytes: 900 * 1024, value_bytes: 128 * 1024, memory_bytes: 64 * 1024 * 1024 }
    }
}

/// A question with everything that a process of its own must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The project's file.
    pub file: PathBuf,
    /// Whether nothing can write to it.
    pub read_only: bool,
    /// Whether texts of cases and attempts may be read.
    pub text: bool,
    /// The question.
    pub query: Query,
    /// How much it may take.
    pub limits: QueryLimits,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows, each in the order of the columns.
    pub rows: Vec<Vec<serde_json::Value>>,
    /// Whether there are more rows.
    pub truncated: bool,
}

/// Why there is no answer. The text is for the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum QueryFault {
    /// The question is wrong or not allowed.
    #[error("{0}")]
    Refused(String),
    /// It took too long.
    #[error("the query was stopped after {0} ms, the longest that one may run; read fewer rows, or narrow it with WHERE")]
    Late(u64),
    /// It took too much memory.
    #[error("the query was stopped: it needs more than {0} bytes of memory; sort and group fewer rows")]
    Memory(u64),
    /// Nobody waits for the answer any more.
    #[error("the query was stopped: nobody waits for its answer")]
    Cancelled,
    /// Others are asking.
    #[error("too many queries are running; try again in a few seconds")]
    Busy,
    /// The store failed; the text is for the log.
    #[error("the store failed")]
    Store(String),
}

/// An open table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Whether it is one of the views that answer a question by themselves.
    pub view: bool,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A column of an open table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values: `TEXT`, `INTEGER` or `REAL`.
    pub kind: String,
}

/// Runs questions apart from everything else.
pub trait Isolation: Send + Sync {
    /// Runs one, until nobody waits for it any more.
    ///
    /// # Errors
    /// [`QueryFault`].
    fn run(&self, job: &Job, cancel: Option<&Cancel>) -> Result<Rows, QueryFault>;
}
