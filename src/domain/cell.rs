//! A cell: the counts over the attempts of run x evaluation x arm, or of one case of it, and its verdict.
//!
//! Promises: the verdict's rule stands here and nowhere else; a cell carries the threshold that judged it.
//! Does not: read attempts; the store adds them up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Counts;

/// A cell's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rate reached the threshold, or every counted attempt passed.
    Pass,
    /// The rate missed the threshold, or every counted attempt failed.
    Fail,
    /// Neither all passed nor all failed, and no threshold to judge by: several cases without a declared one, or a single case of an evaluation.
    Mixed,
    /// Nothing was counted, and at least one attempt errored.
    InfraError,
    /// Nothing was counted, and nothing errored.
    Unscored,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Verdict; 5] = [Verdict::Pass, Verdict::Fail, Verdict::Mixed, Verdict::InfraError, Verdict::Unscored];

    /// The verdict's word, as it stands in SQL and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Mixed => "mixed",
            Verdict::InfraError => "infra_error",
            Verdict::Unscored => "unscored",
        }
    }

    /// The verdict that `word` names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    /// Whether at least one attempt was counted.
    #[must_use]
    pub const fn counted(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Fail | Verdict::Mixed)
    }

    /// The verdict of `counts` under `threshold` (DESIGN.md section 1).
    #[must_use]
    pub fn judge(counts: Counts, threshold: Option<f64>) -> Self {
        match (counts.rate(), threshold) {
            (None, _) if counts.infra > 0 => Verdict::InfraError,
            (None, _) => Verdict::Unscored,
            // A threshold of 0.9 is met by 9 of 10 whatever the last bit of the division says.
            (Some(rate), Some(threshold)) if rate.value() >= threshold - 1e-9 => Verdict::Pass,
            (Some(_), Some(_)) => Verdict::Fail,
            (Some(_), None) if counts.failed == 0 => Verdict::Pass,
            (Some(_), None) if counts.passed == 0 => Verdict::Fail,
            (Some(_), None) => Verdict::Mixed,
        }
    }
}

/// The threshold that judges an evaluation's cell: the declared one, or 1.0 where it has a single case, or none. A case's cell has none: its
/// word is about its attempts alone, all, none or some of them (decision 57), whatever share of the evaluation is asked for.
#[must_use]
pub fn threshold(declared: Option<f64>, cases: u32) -> Option<f64> {
    declared.or((cases <= 1).then_some(1.0))
}

/// What a cell is counted over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum Grain {
    /// One cell per evaluation (and arm).
    #[default]
    Evaluation,
    /// One cell per case of an evaluation (and arm).
    Case,
}

/// What a cell is about, within one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellKey {
    /// The evaluation's id.
    pub evaluation: String,
    /// The case's id at case grain; none at evaluation grain. An evaluation without a dataset has the case `""`.
    pub case: Option<String>,
    /// The arm's name.
    pub arm: String,
}

/// The counts over one key's attempts in one run, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What was counted.
    pub key: CellKey,
    /// The run's id.
    pub run_id: String,
    /// The five counts.
    pub counts: Counts,
    /// The threshold that judged it, if any; never at case grain.
    pub threshold: Option<f64>,
    /// Whether the evaluation has several cases, which decides what `regressed` needs (decision 59).
    pub several_cases: bool,
    /// Whether the threshold was declared, rather than the 1.0 of a single case; never at case grain.
    pub declared: bool,
    /// The word.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u32, failed: u32, infra: u32, unscored: u32) -> Counts {
        Counts { passed, failed, infra, unscored, missing: 0 }
    }

    #[test]
    fn the_verdict_table_of_the_design() {
        let rows = [
            (counts(0, 0, 1, 1), None, Verdict::InfraError),
            (counts(0, 0, 0, 2), None, Verdict::Unscored),
            (counts(0, 0, 0, 0), Some(0.5), Verdict::Unscored),
            (counts(9, 1, 0, 0), Some(0.9), Verdict::Pass),
            (counts(8, 2, 0, 0), Some(0.9), Verdict::Fail),
            (counts(3, 0, 5, 0), None, Verdict::Pass),
            (counts(0, 3, 0, 0), None, Verdict::Fail),
            (counts(1, 2, 0, 0), None, Verdict::Mixed),
            (counts(1, 2, 0, 0), Some(1.0), Verdict::Fail),
        ];
        for (counts, threshold, verdict) in rows {
            assert_eq!(Verdict::judge(counts, threshold), verdict, "{counts:?} {threshold:?}");
        }
    }

    #[test]
    fn a_single_case_is_judged_at_one() {
        assert_eq!(threshold(None, 1), Some(1.0));
        assert_eq!(threshold(None, 2), None);
        assert_eq!(threshold(Some(0.8), 1), Some(0.8));
    }
}
