//! What the catalog's views read besides: what there is, at a glance, and where a word stands.
//!
//! Promises: plain data, the same from every adapter; what texts are hidden from a handle is neither read nor found through it (decision 35).
//! Does not: count, test or judge (the tools do, by `domain` and `stats`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Error, Result, RunPoint};
use crate::domain::{
    log::{ArmInfo, EvaluationInfo},
    outcome::{Counts, Outcome},
    time::Timestamp,
    words::Question,
};

/// All runs together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Recorded runs.
    pub recorded: u64,
    /// Scratch runs.
    pub scratch: u64,
    /// Over the attempts of all recorded runs.
    pub counts: Counts,
    /// When the oldest run was created.
    pub oldest: Option<Timestamp>,
    /// When the newest run was created.
    pub newest: Option<Timestamp>,
}

/// An evaluation with its dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Its number in the organization.
    pub number: i64,
    /// What the newest run of it says, with what is declared in place.
    pub info: EvaluationInfo,
    /// Runs that hold it.
    pub runs: u64,
    /// Cases that the newest of these tried.
    pub tried: u64,
    /// The newest of these.
    pub newest: RunPoint,
}

/// A case of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub case: String,
    /// The group that it comes in, by the newest log that names one.
    pub group: Option<String>,
    /// Characters of its input as it is kept; none where there is none, or texts are hidden.
    pub input_chars: Option<u64>,
    /// Characters of its target; likewise.
    pub target_chars: Option<u64>,
}

/// The texts of a case, as they are kept (shortened).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemText {
    /// Its input.
    pub input: Option<String>,
    /// Its target.
    pub target: Option<String>,
}

/// An arm over all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmTotal {
    /// What the newest run of it says, with the declared name and role in place.
    pub info: ArmInfo,
    /// Runs that have it.
    pub runs: u64,
    /// Evaluations that it tried in recorded runs.
    pub evaluations: u64,
    /// Over its attempts in recorded runs.
    pub counts: Counts,
    /// The newest run of it.
    pub newest: RunPoint,
}

/// A group of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Its id.
    pub round: String,
    /// Its runs.
    pub runs: u64,
    /// Those of them that have not ended.
    pub unended: u64,
    /// Over the attempts of them all.
    pub counts: Counts,
    /// The oldest of them.
    pub oldest: RunPoint,
    /// The newest of them.
    pub newest: RunPoint,
}

/// What the passed and failed attempts of one case by one arm in one run scored in one check.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The evaluation's id.
    pub evaluation: String,
    /// The case.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The check's name.
    pub check: String,
    /// Its kind.
    pub kind: String,
    /// Attempts with a score: the check's value, else whether it passed as 1 or 0.
    pub n: u64,
    /// The sum of these scores.
    pub sum: f64,
    /// Attempts of which the check says whether they passed.
    pub answered: u64,
    /// Those of them that did.
    pub passed: u64,
}

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum Place {
    /// Evaluations: ids, families, datasets.
    Evaluation,
    /// Runs: ids, rounds, branches, tags, arms.
    Run,
    /// Cases: ids, inputs, targets.
    Case,
    /// What checks, errors and outputs of attempts say.
    Reason,
    /// The messages and events of attempts.
    Transcript,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Evaluation, Self::Run, Self::Case, Self::Reason, Self::Transcript];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Evaluation => "evaluation",
            Self::Run => "run",
            Self::Case => "case",
            Self::Reason => "reason",
            Self::Transcript => "transcript",
        }
    }

    /// Whether it is texts alone.
    #[must_use]
    pub const fn of_texts(self) -> bool {
        matches!(self, Self::Reason | Self::Transcript)
    }
}

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchQuery<'a> {
    /// The words.
    pub question: &'a Question,
    /// Where; all places where none is named.
    pub place: Option<Place>,
    /// Only attempts that ended so. Where this or the next is given, only attempts are searched.
    pub outcome: Option<Outcome>,
    /// Only attempts that cost at least this.
    pub min_cost_usd: Option<f64>,
    /// Only attempts of runs, and runs, created at or after this.
    pub since: Option<Timestamp>,
    /// Only those of runs created at or before this.
    pub until: Option<Timestamp>,
    /// Hits of each place at most.
    pub limit: usize,
}

impl SearchQuery<'_> {
    /// Whether `place` is searched: texts only where they may be read, evaluations and cases only where nothing is asked that they do not have.
    #[must_use]
    pub fn searches(&self, place: Place, text: bool) -> bool {
        let dated = self.since.is_some() || self.until.is_some();
        let of_attempts = self.outcome.is_some() || self.min_cost_usd.is_some();
        let asked = match place {
            Place::Evaluation | Place::Case => !dated && !of_attempts,
            Place::Run => !of_attempts,
            Place::Reason | Place::Transcript => text,
        };
        asked && self.place.is_none_or(|wanted| wanted == place)
    }
}

/// A place where all words stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// What it is.
    pub place: Place,
    /// The run, with when it was created; none for an evaluation or case.
    pub run: Option<RunPoint>,
    /// The attempt's key.
    pub attempt: Option<String>,
    /// The evaluation's id; none for a run.
    pub evaluation: Option<String>,
    /// The case's id.
    pub case: Option<String>,
    /// How the attempt ended.
    pub outcome: Option<Outcome>,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// The transcript's line, from 0.
    pub line: Option<u64>,
    /// What stands around the first word. None where that was not looked for: a transcript is very long.
    pub snippet: Option<String>,
}

/// What was found in one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundIn {
    /// Runs and attempts newest first, the others by id; at most the query's limit.
    pub hits: Vec<Hit>,
    /// Whether there are more, or there may be.
    pub more: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// By place; those that were not searched are not there.
    pub places: BTreeMap<Place, FoundIn>,
    /// Logs that are not in the index yet.
    pub unindexed: u64,
}

fn absent<T>() -> Result<T> {
    Err(Error::Internal("the catalog is not here".to_owned()))
}

/// What the catalog's views read. A store that has none of it says so.
pub trait Catalog {
    /// All runs together.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn totals(&self) -> Result<Totals> {
        absent()
    }

    /// The evaluations that some run holds, by id.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn datasets(&self) -> Result<Vec<Dataset>> {
        absent()
    }

    /// The cases of an evaluation that some run tried, by id.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn items(&self, _evaluation: &str) -> Result<Vec<Item>> {
        absent()
    }

    /// The texts of a case; none where there is no such case, or texts are hidden.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn item_text(&self, _evaluation: &str, _case: &str) -> Result<Option<ItemText>> {
        absent()
    }

    /// The arms that some run has, by name.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn arm_totals(&self) -> Result<Vec<ArmTotal>> {
        absent()
    }

    /// The rounds, newest first by their newest run.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn rounds(&self) -> Result<Vec<Round>> {
        absent()
    }

    /// What the attempts of one run scored, of one evaluation or of all and in one check or in all, by evaluation, case, arm and check.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn scores(&self, _run: &str, _evaluation: Option<&str>, _check: Option<&str>) -> Result<Vec<Score>> {
        absent()
    }

    /// Where words stand. What came since the last search is read first, for a bounded time.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn search(&self, _query: &SearchQuery<'_>) -> Result<Found> {
        absent()
    }

    /// What is wrong with the store itself, in sentences; nothing for a sound one.
    ///
    /// # Errors
    /// As every read: [`Error`].
    fn integrity(&self) -> Result<Vec<String>> {
        absent()
    }

    /// The p that was kept under `key`.
    fn known_p(&self, _key: &str) -> Option<f64> {
        None
    }

    /// Keeps a p, where that can be done.
    fn keep_p(&self, _key: &str, _p: f64) {}
}
