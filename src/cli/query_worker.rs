//! `runlore query-worker`: a process that answers questions in SQL, a JSON line each, for the server that started it.
//!
//! Promises: its memory has a limit that the system holds; it ends when its input does.
//! Does not: serve people; it is in no help.

use std::io::{BufRead as _, Write as _};

use clap::Command;
use nix::sys::resource::{Resource, setrlimit};

use super::CliError;
use crate::{
    commands::queries::VERB,
    store::{
        query::{Job, QueryFault},
        sqlite::query::execute,
    },
};

/// Address space, most of which is the allocator's reserve and never touched: the database's own limit is the one that a query meets, this
/// one is for what that does not count.
const ADDRESS_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of one question as a line.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new(VERB).hide(true).about("Answers questions for the server that started it")
}

/// Answers until the input ends.
///
/// # Errors
/// [`CliError::Refused`] where the limit on memory cannot be set or the pipe breaks.
pub fn run() -> Result<u8, CliError> {
    setrlimit(Resource::RLIMIT_AS, ADDRESS_BYTES_MAX, ADDRESS_BYTES_MAX)
        .map_err(|error| CliError::Refused(format!("the limit on memory cannot be set: {error}")))?;
    // No core file of somebody's data either.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| CliError::Refused(format!("the limit on core files cannot be set: {error}")))?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(broken)? == 0 {
            return Ok(0);
        }
        let answer = match serde_json::from_slice::<Job>(&line) {
            Ok(job) => execute(&job, true),
            Err(error) => Err(QueryFault::Store(error.to_string())),
        };
        let mut answer = serde_json::to_vec(&answer).map_err(|error| CliError::Refused(error.to_string()))?;
        answer.push(b'\n');
        output.write_all(&answer).and_then(|()| output.flush()).map_err(broken)?;
    }
}

fn broken(error: std::io::Error) -> CliError {
    CliError::Refused(format!("the pipe broke: {error}"))
}
