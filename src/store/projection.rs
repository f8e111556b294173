//! The runs of one evaluation, page by page and by either of two orders.
//!
//! Promises: a page begins at a place in the order, not at a count of rows, so that pages neither repeat nor skip what was there while runs
//! come and go; what the logs of a run say of it as a whole is put together by one pure rule.
//! Does not: know cursors (the tool makes them), or read anything.

use std::collections::BTreeMap;

use super::Run;
use crate::domain::{
    log::{LogHeader, RunStatus, Source},
    outcome::Counts,
    time::Timestamp,
};

/// What the runs are sorted by. Ties of either go by time, then by number, in the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionSort {
    /// When they were created.
    CreatedAt,
    /// The word of their status, as text.
    Status,
}

/// A place in the order: that of a run, or beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionPlace {
    /// The run's status.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its number in the project.
    pub number: i64,
}

impl ProjectionPlace {
    /// Where `run` stands.
    #[must_use]
    pub const fn of(run: &Run) -> Self {
        Self { status: run.status, created_at: run.created_at, number: run.number }
    }

    /// The place right after this one in a falling (`descending`) or rising order; no run stands between.
    #[must_use]
    pub const fn after(self, descending: bool) -> Self {
        let number = if descending { self.number.saturating_sub(1) } else { self.number.saturating_add(1) };
        Self { number, ..self }
    }
}

/// Which page.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionQuery<'a> {
    /// The evaluation's id.
    pub evaluation: &'a str,
    /// By what.
    pub sort: ProjectionSort,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Only runs beyond this place, which is not among them; none for the beginning of the list.
    pub from: Option<ProjectionPlace>,
    /// Whether the runs just before the place are asked for, instead of those just after it.
    pub back: bool,
    /// At most this many, at least 1.
    pub limit: usize,
}

/// A page, in the order of the query whichever way it was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectionPage {
    /// The runs.
    pub rows: Vec<Projection>,
    /// Whether runs stand before the first one (or, on an empty page, at or before the place).
    pub before: bool,
    /// Whether runs stand after the last one (or, on an empty page, at or after the place).
    pub after: bool,
}

impl ProjectionPage {
    /// The same for whom texts are hidden from (decision 35): why a run failed, its report and its free pairs, as everywhere.
    #[must_use]
    pub fn without_text(mut self) -> Self {
        self.rows.iter_mut().for_each(|row| row.said = Said::default());
        self
    }
}

/// A run, seen from one of its evaluations.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// The run.
    pub run: Run,
    /// The arms that tried the evaluation, by name; all of the run's where none has.
    pub arms: Vec<ProjectionArm>,
    /// Where the evaluation is defined, as the run's newest log has it.
    pub source: Option<Source>,
    /// Over the attempts of the evaluation, by every arm.
    pub counts: Counts,
    /// The checks of those attempts, by name; empty while the run has not ended.
    pub checks: Vec<CheckMean>,
    /// What its logs say of it as a whole.
    pub said: Said,
}

/// An arm of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectionArm {
    /// Its name.
    pub name: String,
    /// `control` or `variant`, where somebody says so.
    pub role: Option<String>,
}

/// A check's mean over the attempts that were judged or measured (an attempt that broke says nothing): its value, or 1 and 0 for passed and not.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckMean {
    /// The check's name.
    pub name: String,
    /// The mean over cases of each case's own mean (decision 67).
    pub mean: f64,
    /// Over how many cases.
    pub cases: u64,
    /// Over how many answers of them.
    pub answers: u64,
}

/// What the logs of a run say of it as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// Why it failed: that of its newest log that failed whole.
    pub error: Option<String>,
    /// Where a report of it stands: the newest log's word.
    pub report_path: Option<String>,
    /// Name/value pairs; of two logs the newer one's value stands.
    pub metadata: BTreeMap<String, serde_json::Value>,
}

/// What of a log's header [`Said`] needs.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
pub struct SaidByLog {
    error: Option<String>,
    report_path: Option<String>,
    metadata: BTreeMap<String, serde_json::Value>,
}

impl From<LogHeader> for SaidByLog {
    fn from(header: LogHeader) -> Self {
        Self { error: header.error, report_path: header.report_path, metadata: header.metadata }
    }
}

impl Said {
    /// What `logs` (oldest first) say together.
    #[must_use]
    pub fn together(logs: impl IntoIterator<Item = SaidByLog>) -> Self {
        logs.into_iter().fold(Self::default(), |mut said, log| {
            said.error = log.error.or(said.error);
            said.report_path = log.report_path.or(said.report_path);
            said.metadata.extend(log.metadata);
            said
        })
    }
}
