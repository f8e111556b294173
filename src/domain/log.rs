//! What an importer says of one log: the unit of import, of replacement and of one transaction.
//!
//! Promises: the same shape for every format; a log may hold several evaluations and arms.
//! Does not: hold attempts (they stream beside it) or decide which run it belongs to (`grouping` does).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Where a run, or a log of it, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum RunStatus {
    /// Queued.
    Pending,
    /// Under way, or killed before it could say that it ended.
    Running,
    /// Waiting for something outside.
    Waiting,
    /// Ended by itself.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended by a person.
    Cancelled,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 6] =
        [RunStatus::Pending, RunStatus::Running, RunStatus::Waiting, RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];

    /// The status' word, as it stands in SQL and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// The status that `word` names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// Whether nothing more will come.
    #[must_use]
    pub const fn ended(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }
}

/// Whether a run's records are kept on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Imported, or kept under `.history/`.
    #[default]
    Recorded,
    /// Under `.runlore/runs/`, not yet kept.
    Scratch,
}

impl Kind {
    /// The kind's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Recorded => "recorded",
            Kind::Scratch => "scratch",
        }
    }
}

/// The state of the code that was evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Git {
    /// The commit, as the log wrote it (often 7 to 9 hexadecimal digits).
    pub sha: Option<String>,
    /// The branch, where known.
    pub branch: Option<String>,
    /// Whether the work tree had changes; null where unknown.
    pub dirty: Option<bool>,
}

/// Where an evaluation is defined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The file, as the tool wrote it.
    pub file: String,
    /// The name in it that declares the evaluation.
    pub export: String,
}

/// An evaluation as a log describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationInfo {
    /// Its id: the name of what is run.
    pub id: String,
    /// Its version, as text, where the log has one.
    pub version: Option<String>,
    /// Evaluations made from one template share a family.
    pub family: Option<String>,
    /// Where it is defined, where the log says both file and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The threshold that the log itself declares.
    pub threshold: Option<f64>,
    /// The dataset's name.
    pub dataset: Option<String>,
    /// How many cases the dataset has, which can be more than were planned.
    pub dataset_cases: Option<u32>,
    /// A digest of what decides comparability: the dataset.
    pub dataset_digest: Option<String>,
    /// A digest of what decides comparability: the scorers with their options.
    pub scorer_digest: Option<String>,
    /// How it was run, beyond the arm: its solver plan, limits, epochs, version. Name/level pairs, as an arm's factors.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Attempts planned for it in this log; none where only what is recorded is known.
    pub planned: Option<u32>,
    /// The same for each arm, where the log says it so; then `planned` is not looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub planned_by_arm: BTreeMap<String, u32>,
}

/// What is being compared: a model with everything around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmInfo {
    /// The name (decision 94), unique in a project.
    pub name: String,
    /// `control` or `variant`, where the log says so.
    pub role: Option<String>,
    /// Name/level pairs of the stack, versions and packages included.
    pub factors: BTreeMap<String, String>,
}

/// One figure that the tool itself reported, kept so that ours can be held against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedMetric {
    /// The evaluation that it is of; none where the log has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<String>,
    /// The scorer it came from.
    pub scorer: String,
    /// The name of the scored thing (a scorer of several values reports one row a value).
    pub name: String,
    /// How epochs were reduced, where the log says so.
    pub reducer: Option<String>,
    /// The metric (`accuracy`, `mean`, `stderr`, ...).
    pub metric: String,
    /// Its value; none where it was NaN or not a number.
    pub value: Option<f64>,
}

/// Everything about a log but its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The log's own id; two files with one id are copies of one log.
    pub log_id: String,
    /// The format's name: `inspect`, `record`, ...
    pub format: String,
    /// The source's own invocation id: logs that share it make one run (decision 93).
    pub run_key: String,
    /// What a retry shares with the log that it retries.
    pub task_id: Option<String>,
    /// The log's status.
    pub status: RunStatus,
    /// When the log was created.
    pub created_at: Timestamp,
    /// When work began, where known.
    pub started_at: Option<Timestamp>,
    /// When work ended, where known.
    pub completed_at: Option<Timestamp>,
    /// The code's state, where known.
    pub git: Option<Git>,
    /// The group of runs that it belongs to (an eval set, a sweep).
    pub round: Option<String>,
    /// The evaluations in it, by id.
    pub evaluations: Vec<EvaluationInfo>,
    /// The arms in it, by name.
    pub arms: Vec<ArmInfo>,
    /// Whether somebody marked the log as invalid.
    pub invalidated: bool,
    /// Why the whole log failed, where it did.
    pub error: Option<String>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Free name/value pairs, as JSON text values.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the tool itself reported.
    pub metrics: Vec<ReportedMetric>,
    /// Where somebody put a report of it, as he wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_path: Option<String>,
}
