//! Runs one question of an analyst, bounded.
//!
//! Promises: one SELECT or WITH and nothing else; only the open tables and views are read, by the database's own authorizer, and texts only
//! by who may; functions are those of a list; time, rows, bytes, the length of values and the depth of expressions have limits.
//! Does not: hold memory of the process (a process of its own does), or interrupt one opcode (the limit on a value's length keeps each short).

mod authorizer;
mod explain;
mod reach;
mod values;
mod words;

use std::{path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, ErrorCode, limits::Limit};

use self::authorizer::Denials;
use super::{Options, connect};
use crate::{
    clock,
    store::{
        Error,
        query::{Job, QueryFault, QueryLimits, Rows},
    },
};

/// Steps of the database's machine between two looks at the clock.
const STEPS_PER_LOOK: i32 = 1000;

/// Bounds of the parser and the machine: more is no question that a person or agent writes.
const LIMITS: [(Limit, i32); 9] = [
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 * 1024),
    (Limit::SQLITE_LIMIT_COLUMN, 200),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 64),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 250),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
];

/// Runs `job` in this process. `alone`: the process does nothing else, so that its memory may be limited.
///
/// # Errors
/// [`QueryFault`].
pub fn execute(job: &Job, alone: bool) -> Result<Rows, QueryFault> {
    let deadline = clock::monotonic() + Duration::from_millis(job.limits.deadline_ms);
    let mut connection = open(&job.file, job.read_only).map_err(store)?;
    bound(&connection, &job.limits, alone).map_err(store)?;
    let reach = reach::today().map_err(store)?;
    let defined = words::check(&job.query.sql, reach)?;
    let denials = Arc::new(Denials::new(reach, defined, job.text));
    // A worker whose server is gone works for nobody.
    let parent = nix::unistd::getppid();
    let ends = move || clock::monotonic() >= deadline || (alone && nix::unistd::getppid() != parent);
    connection.progress_handler(STEPS_PER_LOOK, Some(ends)).map_err(store)?;
    let judge = denials.clone();
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| judge.authorize(&context))).map_err(store)?;
    let answer = select(&connection, job);
    answer.map_err(|failed| match failed {
        Failed::Fault(fault) => fault,
        Failed::Sql(error) => fault(&error, job, &denials),
    })
}

/// What the log should keep; the asker learns that the store failed.
fn store(why: impl Into<Error>) -> QueryFault {
    QueryFault::Store(match why.into() {
        Error::Internal(inner) => inner,
        other => other.to_string(),
    })
}

fn open(path: &Path, read_only: bool) -> crate::store::Result<Connection> {
    let options = Options { cache_kib: 4 * 1024, read_only, ..Options::default() };
    if read_only { connect::open(path, &options).map(|opened| opened.connection) } else { connect::read_only(path, "mode=ro", &options) }
}

fn bound(connection: &Connection, limits: &QueryLimits, alone: bool) -> rusqlite::Result<()> {
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(limits.value_bytes).unwrap_or(i32::MAX))?;
    connection.pragma_update(None, "query_only", true)?;
    if alone {
        // This pragma answers with what holds now.
        let bytes = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "hard_heap_limit", bytes, |_| Ok(()))?;
    }
    Ok(())
}

enum Failed {
    Fault(QueryFault),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn select(connection: &Connection, job: &Job) -> Result<Rows, Failed> {
    let mut statement = connection.prepare(&job.query.sql)?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(Failed::Fault(QueryFault::Refused("the query would change something; give one SELECT or WITH".to_owned())));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let values = job.query.values.iter().map(values::bound).collect::<Result<Vec<_>, _>>().map_err(Failed::Fault)?;
    if values.len() != statement.parameter_count() {
        let sentence = format!("the query has {} parameters (?), and {} values were given", statement.parameter_count(), values.len());
        return Err(Failed::Fault(QueryFault::Refused(sentence)));
    }
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let (mut out, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = rows.next()? {
        if out.len() >= job.query.limit {
            return Ok(Rows { columns, rows: out, truncated: true });
        }
        let mut line = Vec::with_capacity(columns.len());
        for column in 0..columns.len() {
            let (value, size) = values::json(row.get_ref(column)?);
            bytes += size;
            line.push(value);
        }
        if bytes > job.limits.result_bytes {
            let sentence =
                format!("the answer passes {} bytes after {} rows; select fewer columns, or set limit", job.limits.result_bytes, out.len());
            return Err(Failed::Fault(QueryFault::Refused(sentence)));
        }
        out.push(line);
    }
    Ok(Rows { columns, rows: out, truncated: false })
}

/// What went wrong, for the asker.
fn fault(error: &rusqlite::Error, job: &Job, denials: &Denials) -> QueryFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => QueryFault::Late(job.limits.deadline_ms),
        Some(ErrorCode::OutOfMemory) => QueryFault::Memory(job.limits.memory_bytes),
        Some(ErrorCode::TooBig) => {
            QueryFault::Refused(format!("a value of the query is longer than {} bytes, the most that one may be", job.limits.value_bytes))
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => QueryFault::Busy,
        Some(ErrorCode::AuthorizationForStatementDenied) => QueryFault::Refused(denials.sentence()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            QueryFault::Store(error.to_string())
        }
        _ => QueryFault::Refused(explain::sentence(error, &job.query.sql, denials)),
    }
}

#[cfg(test)]
mod tests;
