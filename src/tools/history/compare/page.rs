//! Where one page of a comparison ends and the next begins.
//!
//! Promises: a cursor pins what `latest` and `7d` meant, so that all pages are of one comparison; a page begins after a row and not at a number,
//! so that what was imported since does not shift it.
//! Does not: read runs.

use serde::{Deserialize, Serialize};

use super::{Output, Row, RunSide};
use crate::{
    domain::{compare::Pair, time::Timestamp},
    tools::ToolError,
};

/// A row's evaluation, case and arm: no two rows have the same.
pub type RowKey = (String, Option<String>, Option<String>);

/// The end of a page: what it compared, and its last row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct End {
    /// The newer run; none with `since`.
    pub head: Option<String>,
    /// The older run.
    pub base: Option<String>,
    /// The instant that `since` meant, in milliseconds.
    pub since: Option<i64>,
    /// With `since`: the newest run that was *now*, in milliseconds.
    pub until: Option<i64>,
    /// The last row.
    pub row: RowKey,
}

impl End {
    /// The end of `output`, whose last row is `last`.
    pub fn of(output: &Output, last: &Row) -> Self {
        let run = |side: &Option<RunSide>| side.as_ref().map(|side| side.run_id.clone());
        let (since, until) = (output.since.map(Timestamp::millis), output.until.map(Timestamp::millis));
        Self { head: run(&output.head), base: run(&output.base), since, until, row: key(last) }
    }
}

fn key(row: &Row) -> RowKey {
    (row.id.clone(), row.case.clone(), row.arm.clone())
}

/// The number of the first row after the row `after`.
pub fn start(rows: &[(Row, Pair)], after: Option<&RowKey>) -> Result<usize, ToolError> {
    let Some(after) = after else { return Ok(0) };
    let place = rows.iter().position(|(row, _)| key(row) == *after).map(|place| place + 1);
    let gone = "argument cursor: the row that it goes on from is no longer in the answer; begin again without it";
    place.ok_or_else(|| ToolError::Argument(gone.to_owned()))
}
