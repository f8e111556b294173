//! Which logs make a run, which file of a copied log counts, and which attempt of a retried task counts (decision 93).
//!
//! Promises: pure functions over headers, so the order of import does not matter; nothing is guessed from times or shas.
//! Does not: read logs or move rows.

use std::collections::{BTreeMap, HashMap};

use super::{
    log::{Kind, RunStatus},
    time::Timestamp,
};

/// The format of run records.
pub const RECORD: &str = "record";

/// What grouping needs to know of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStub {
    /// The log's id.
    pub log_id: String,
    /// The invocation id that the source gave, or the override.
    pub run_key: String,
    /// Whether `run_key` was given by the operator: then a retry does not move to another run.
    pub pinned: bool,
    /// What a retry shares with what it retries.
    pub task_id: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// How it stands.
    pub status: RunStatus,
}

/// The run that each log belongs to, parallel to `logs`.
///
/// A log whose task has an earlier log is its retry and belongs to that log's run.
#[must_use]
pub fn runs(logs: &[LogStub]) -> Vec<&str> {
    let mut first = HashMap::<&str, &LogStub>::new();
    for log in logs.iter().filter(|log| !log.pinned) {
        if let Some(task) = &log.task_id {
            first
                .entry(task)
                .and_modify(|held| {
                    if age(log) < age(held) {
                        *held = log
                    }
                })
                .or_insert(log);
        }
    }
    let earliest = |log: &LogStub| log.task_id.as_deref().and_then(|task| first.get(task).copied());
    logs.iter().map(|log| if log.pinned { log.run_key.as_str() } else { earliest(log).unwrap_or(log).run_key.as_str() }).collect()
}

fn age(log: &LogStub) -> (Timestamp, &str) {
    (log.created_at, &log.log_id)
}

/// The status of a run from the last log of each of its tasks: any running -> running; else any completed -> completed; else failed or cancelled.
#[must_use]
pub fn status(logs: &[LogStub]) -> RunStatus {
    let mut last = BTreeMap::<&str, &LogStub>::new();
    for log in logs {
        let task = log.task_id.as_deref().unwrap_or(&log.log_id);
        last.entry(task)
            .and_modify(|held| {
                if age(log) > age(held) {
                    *held = log
                }
            })
            .or_insert(log);
    }
    last.values().map(|log| log.status).reduce(together).unwrap_or(RunStatus::Cancelled)
}

/// The status of two tasks, or of two sets of tasks, together.
#[must_use]
pub fn together(a: RunStatus, b: RunStatus) -> RunStatus {
    let order = [RunStatus::Running, RunStatus::Waiting, RunStatus::Pending, RunStatus::Completed, RunStatus::Failed];
    order.into_iter().find(|status| a == *status || b == *status).unwrap_or(RunStatus::Cancelled)
}

/// Whether a log is the record of a whole run, which gives way to that run's own logs: both would count the same attempts. One that the
/// operator put into a run by hand is a part of it like any other.
#[must_use]
pub fn is_record(format: &str, pinned: bool) -> bool {
    format == RECORD && !pinned
}

/// The log id of the record of the run `run_id`.
#[must_use]
pub fn record_log_id(run_id: &str) -> String {
    format!("{RECORD} {run_id}")
}

/// What decides between two files that hold one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// Recorded or scratch.
    pub kind: Kind,
    /// How the file's log stands.
    pub status: RunStatus,
    /// Attempts recorded in it.
    pub attempts: u64,
    /// When it says that work ended.
    pub completed_at: Option<Timestamp>,
    /// The file's path.
    pub path: String,
}

/// Whether `a` counts rather than `b`: recorded before scratch, then ended before started, then more attempts, then later completed, then the lesser path.
#[must_use]
pub fn wins(a: &Copy, b: &Copy) -> bool {
    let rank = |copy: &Copy| (copy.kind == Kind::Recorded, copy.status.ended(), copy.attempts, copy.completed_at);
    match rank(a).cmp(&rank(b)) {
        std::cmp::Ordering::Equal => a.path < b.path,
        order => order.is_gt(),
    }
}

/// What decides whether an attempt counts within its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptStub {
    /// The store's own row number.
    pub row: i64,
    /// The task that the attempt's log is of (its log id where it has none).
    pub task: String,
    /// When the attempt's log was created, and the log's id.
    pub log_age: (Timestamp, String),
    /// The source's id of the try.
    pub uuid: Option<String>,
    /// The case.
    pub case: String,
    /// The source's ordinal.
    pub epoch: u32,
}

/// The rows that a newer log of the same task has replaced: of attempts with one uuid, else one case and epoch, the newest log's counts.
#[must_use]
pub fn superseded(attempts: &[AttemptStub]) -> Vec<i64> {
    let by_uuid = losers(attempts, |attempt| attempt.uuid.clone().map(|uuid| (attempt.task.clone(), uuid, 0)));
    let left: Vec<AttemptStub> = attempts.iter().filter(|attempt| !by_uuid.contains(&attempt.row)).cloned().collect();
    let by_case = losers(&left, |attempt| Some((attempt.task.clone(), attempt.case.clone(), attempt.epoch)));
    let mut rows: Vec<i64> = by_uuid.into_iter().chain(by_case).collect();
    rows.sort_unstable();
    rows
}

fn losers(attempts: &[AttemptStub], key: impl Fn(&AttemptStub) -> Option<(String, String, u32)>) -> std::collections::HashSet<i64> {
    let mut newest = HashMap::<(String, String, u32), &(Timestamp, String)>::new();
    for attempt in attempts {
        if let Some(key) = key(attempt) {
            newest.entry(key).and_modify(|held| *held = (*held).max(&attempt.log_age)).or_insert(&attempt.log_age);
        }
    }
    // Within one log both stand (the importer has already dropped its own duplicates), and a newer log replaces both.
    let older = |attempt: &&AttemptStub| key(attempt).and_then(|key| newest.get(&key).copied()).is_some_and(|age| attempt.log_age < *age);
    attempts.iter().filter(older).map(|attempt| attempt.row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(id: &str, run: &str, task: &str, at: i64, status: RunStatus) -> LogStub {
        LogStub {
            log_id: id.into(),
            run_key: run.into(),
            pinned: false,
            task_id: Some(task.into()),
            created_at: Timestamp::from_millis(at),
            status,
        }
    }

    #[test]
    fn a_retry_joins_the_run_of_what_it_retries() {
        let logs = [
            log("b", "R2", "t", 2, RunStatus::Completed),
            log("a", "R1", "t", 1, RunStatus::Failed),
            log("c", "R2", "u", 2, RunStatus::Completed),
        ];
        assert_eq!(runs(&logs), ["R1", "R1", "R2"]);
        let pinned = LogStub { pinned: true, ..log("d", "CI", "t", 3, RunStatus::Completed) };
        assert_eq!(runs(&[pinned]), ["CI"]);
    }

    #[test]
    fn the_last_log_of_each_task_decides_the_status() {
        assert_eq!(status(&[log("a", "R", "t", 1, RunStatus::Failed), log("b", "R", "t", 2, RunStatus::Completed)]), RunStatus::Completed);
        assert_eq!(status(&[log("a", "R", "t", 1, RunStatus::Running), log("b", "R", "t", 2, RunStatus::Completed)]), RunStatus::Completed);
        assert_eq!(status(&[log("a", "R", "t", 1, RunStatus::Failed), log("b", "R", "u", 2, RunStatus::Completed)]), RunStatus::Completed);
        assert_eq!(status(&[log("a", "R", "t", 1, RunStatus::Completed), log("b", "R", "u", 2, RunStatus::Running)]), RunStatus::Running);
        assert_eq!(status(&[log("a", "R", "t", 1, RunStatus::Cancelled)]), RunStatus::Cancelled);
    }

    #[test]
    fn the_better_copy_wins() {
        let copy = |status, attempts, path: &str| Copy { kind: Kind::Recorded, status, attempts, completed_at: None, path: path.into() };
        assert!(wins(&copy(RunStatus::Completed, 1, "b"), &copy(RunStatus::Running, 9, "a")));
        assert!(wins(&copy(RunStatus::Completed, 2, "b"), &copy(RunStatus::Completed, 1, "a")));
        assert!(wins(&copy(RunStatus::Completed, 1, "a"), &copy(RunStatus::Completed, 1, "b")));
    }

    #[test]
    fn the_newest_try_of_a_case_counts() {
        let stub = |row, at, uuid: Option<&str>, case: &str| AttemptStub {
            row,
            task: "t".into(),
            log_age: (Timestamp::from_millis(at), at.to_string()),
            uuid: uuid.map(Into::into),
            case: case.into(),
            epoch: 1,
        };
        // The retry copies x (same uuid) and tries y anew (another uuid, same case).
        let attempts = [stub(1, 1, Some("x"), "1"), stub(2, 1, Some("y1"), "2"), stub(3, 2, Some("x"), "1"), stub(4, 2, Some("y2"), "2")];
        assert_eq!(superseded(&attempts), [1, 2]);
        let mut reversed = attempts.to_vec();
        reversed.reverse();
        assert_eq!(superseded(&reversed), [1, 2]);
        // Twice in the old log, whatever the order.
        let twice = [stub(1, 1, Some("x"), "1"), stub(2, 1, Some("x"), "1"), stub(3, 2, Some("x"), "1")];
        assert_eq!(superseded(&twice), [1, 2]);
    }
}
