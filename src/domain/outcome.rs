//! Outcomes, the five counts, and the rate that cannot be had without them.
//!
//! Promises: an errored, unscored or missing attempt never enters a rate; a [`Rate`] only comes from [`Counts`].
//! Does not: know where attempts come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Scored, and good enough.
    Pass,
    /// Scored, and not good enough; a limit that was hit and scored counts here.
    Fail,
    /// The attempt broke before it could be judged: it says nothing about the model.
    InfraError,
    /// It ended without an answer from its scorer (none, NaN, or a value that is neither pass nor fail).
    Unscored,
    /// It was stopped by a person or a sibling's failure: counted as missing.
    Cancelled,
}

impl Outcome {
    /// Every outcome, in the order of the counts.
    pub const ALL: [Outcome; 5] = [Outcome::Pass, Outcome::Fail, Outcome::InfraError, Outcome::Unscored, Outcome::Cancelled];

    /// The outcome's word, as it stands in SQL and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::InfraError => "infra_error",
            Outcome::Unscored => "unscored",
            Outcome::Cancelled => "cancelled",
        }
    }

    /// The outcome that `word` names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }
}

/// The five counts that stand beside every rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Counts {
    /// Attempts that passed.
    pub passed: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// Attempts that broke before they could be judged.
    pub infra: u32,
    /// Attempts that ended without a score.
    pub unscored: u32,
    /// Cancelled attempts, and planned ones without a record.
    pub missing: u32,
}

impl Counts {
    /// Counts one attempt.
    pub fn add(&mut self, outcome: Outcome) {
        let slot = match outcome {
            Outcome::Pass => &mut self.passed,
            Outcome::Fail => &mut self.failed,
            Outcome::InfraError => &mut self.infra,
            Outcome::Unscored => &mut self.unscored,
            Outcome::Cancelled => &mut self.missing,
        };
        *slot = slot.saturating_add(1);
    }

    /// The counts of `outcomes`.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut counts = Self::default();
        outcomes.into_iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// These counts and `other`'s together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            infra: self.infra.saturating_add(other.infra),
            unscored: self.unscored.saturating_add(other.unscored),
            missing: self.missing.saturating_add(other.missing),
        }
    }

    /// Attempts that a rate is over: passed and failed.
    #[must_use]
    pub const fn counted(self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// All attempts, the missing ones included.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.counted().saturating_add(self.infra).saturating_add(self.unscored).saturating_add(self.missing)
    }

    /// `passed / counted`; none when nothing was counted.
    #[must_use]
    pub fn rate(self) -> Option<Rate> {
        (self.counted() > 0).then(|| Rate(f64::from(self.passed) / f64::from(self.counted())))
    }
}

/// A pass rate, 0 to 1. Only [`Counts::rate`] makes one, so that the counts are at hand wherever a rate is shown.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// The exact value, for statistics.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// The value as shown: three decimals.
    #[must_use]
    pub fn shown(self) -> f64 {
        round3(self.0)
    }
}

/// `value` with three decimals, as rates and differences are shown (decision 15).
#[must_use]
pub fn round3(value: f64) -> f64 {
    let rounded = (value * 1000.0).round() / 1000.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errored_attempt_never_enters_the_rate() {
        // FORMATS.md 1.5: 8 attempts, 2 errors, the others right.
        let counts = Counts::of([Outcome::Pass; 6].into_iter().chain([Outcome::InfraError; 2]));
        assert_eq!((counts.counted(), counts.total(), counts.rate().map(Rate::value)), (6, 8, Some(1.0)));
    }

    #[test]
    fn nothing_counted_has_no_rate() {
        assert_eq!(Counts::of([Outcome::Unscored, Outcome::Cancelled, Outcome::InfraError]).rate(), None);
    }

    #[test]
    fn every_outcome_has_a_word_that_names_it() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_word(outcome.word()), Some(outcome));
            assert_eq!(serde_json::to_value(outcome).ok(), Some(outcome.word().into()));
        }
    }

    #[test]
    fn shown_numbers_have_three_decimals_and_no_negative_zero() {
        assert!((round3(2.0 / 3.0) - 0.667).abs() < 1e-12);
        assert!(round3(-0.0001).is_sign_positive());
    }
}
