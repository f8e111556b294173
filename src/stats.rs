//! The statistics of runlore: intervals, paired tests, corrections, power. Pure functions.
//!
//! Promises: the unit is the case, never the attempt; every formula names its source and has a test against a published or an
//! independently computed value (`tests/fixtures/stats/`, made by `make.py` with scipy and statsmodels); the same input gives the same
//! output, also where random numbers are drawn (fixed seed, returned); no input panics: what has no answer is `None`.
//!
//! Deliberately not here: IO, clocks, global randomness; which cases are comparable and which p-values form one family (the caller
//! knows); one-attempt-one-observation shortcuts over repeated attempts.

pub mod clustered;
pub mod corrections;
pub mod correlation;
pub mod exact;
pub mod flakes;
mod grouped;
pub mod intervals;
pub mod paired;
pub mod power;
pub mod repeats;
pub mod sign_flip;
#[cfg(test)]
mod simulation;
mod tango;

pub use clustered::{ClusteredMean, clustered_mean, clustered_rate};
pub use corrections::{benjamini_hochberg, holm};
pub use correlation::correlation;
pub use flakes::binomial_tail;
pub use intervals::{agresti_min, newcombe_hybrid_score, student_t, wilson};
pub use paired::{PairedCase, PairedResult, design_effect, exact_mcnemar, paired, paired_by};
pub use power::{NonInferiority, cases_for_margin, cases_to_detect, mde_discordance, mde_variance, non_inferiority};
pub use repeats::{flip_rate, pass_at_k, pass_hat_k};
pub use sign_flip::{Recall, SignFlip, Wanted, sign_flip, sign_flip_by};

use serde::{Deserialize, Serialize};

/// The two-sided level of every test here; intervals are 95% to match it.
pub const ALPHA: f64 = 0.05;

/// The probability below the upper end of a two-sided 95% interval.
pub(crate) const TWO_SIDED: f64 = 0.975;

/// The probability above a one-sided 95% lower bound.
pub(crate) const ONE_SIDED: f64 = 0.95;

/// The 97.5% point of the standard normal (`scipy.stats.norm.ppf(0.975)`).
pub(crate) const Z_TWO_SIDED: f64 = 1.959_963_984_540_054;

/// The 95% point of the standard normal (`scipy.stats.norm.ppf(0.95)`).
pub(crate) const Z_ONE_SIDED: f64 = 1.644_853_626_951_472_2;

/// A closed interval; `low <= high` and both finite, if built with [`Interval::new`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// `None` when an end is not finite or the ends are the wrong way round.
    #[must_use]
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high).then_some(Self { low, high })
    }

    /// Whether `value` lies in it, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Cut to `[low, high]`, for quantities that cannot lie outside (a rate, a difference of rates).
    #[must_use]
    pub(crate) fn clamped(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }
}

/// How a number was computed; the name stands beside it in every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Wilson's score interval of one rate.
    Wilson,
    /// Newcombe's hybrid score interval of two unpaired rates.
    NewcombeHybridScore,
    /// McNemar's exact test (binomial over the discordant pairs).
    ExactMcnemar,
    /// Agresti and Min's interval of a paired difference of rates.
    AgrestiMin,
    /// Agresti and Min's two pseudo-cases, for score differences that show no spread.
    PseudoCases,
    /// Clopper and Pearson's exact bound of a rate, where cases turned in one direction or not at all.
    ClopperPearson,
    /// Sign-flip permutation test, every assignment of signs counted.
    SignFlip,
    /// Sign-flip permutation test over seeded random assignments.
    SignFlipMonteCarlo,
    /// Sign-flip permutation test in which the cases of a group turn as one, every assignment of signs counted.
    GroupSignFlip,
    /// The same over seeded random assignments.
    GroupSignFlipMonteCarlo,
    /// Student's t interval of a mean.
    StudentT,
    /// Student's t with a standard error clustered by group.
    ClusteredT,
    /// Agresti and Min's interval over the number of cases that those in groups are worth.
    ClusteredAgrestiMin,
    /// Bounds by Tango's score test of a paired difference, with a continuity correction.
    TangoScore,
    /// The same over the number of cases that those in groups are worth.
    ClusteredTangoScore,
    /// Holm's adjustment (family-wise error).
    Holm,
    /// Benjamini and Hochberg's adjustment (false discovery rate).
    BenjaminiHochberg,
    /// Connor's power of McNemar's test, from the observed discordance.
    McnemarPower,
    /// The power of the paired t test, from the observed spread.
    PairedTPower,
    /// The same with a standard error clustered by group.
    ClusteredTPower,
}

impl Method {
    /// The name used in JSON and in SQL columns (the same as serde's, by a test).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wilson => "wilson",
            Self::NewcombeHybridScore => "newcombe_hybrid_score",
            Self::ExactMcnemar => "exact_mcnemar",
            Self::AgrestiMin => "agresti_min",
            Self::PseudoCases => "pseudo_cases",
            Self::ClopperPearson => "clopper_pearson",
            Self::SignFlip => "sign_flip",
            Self::SignFlipMonteCarlo => "sign_flip_monte_carlo",
            Self::GroupSignFlip => "group_sign_flip",
            Self::GroupSignFlipMonteCarlo => "group_sign_flip_monte_carlo",
            Self::StudentT => "student_t",
            Self::ClusteredT => "clustered_t",
            Self::ClusteredAgrestiMin => "clustered_agresti_min",
            Self::TangoScore => "tango_score",
            Self::ClusteredTangoScore => "clustered_tango_score",
            Self::Holm => "holm",
            Self::BenjaminiHochberg => "benjamini_hochberg",
            Self::McnemarPower => "mcnemar_power",
            Self::PairedTPower => "paired_t_power",
            Self::ClusteredTPower => "clustered_t_power",
        }
    }
}

/// The verdict on evidence. A statistical word: it decides nothing about a release (decision 27).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, schemars::JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The difference is real at the 5% level.
    Confirmed,
    /// The data do not tell.
    Inconclusive,
    /// Dataset, scorer or threshold changed. Only the caller can know; [`Word::of`] never says it.
    NotComparable,
}

impl Word {
    /// `Confirmed` only when all three hold: p < [`ALPHA`]; there is a 95% interval without 0; it lies on the difference's side of 0.
    /// Test and interval come from different methods, so near the border they can disagree, and then the cautious word is said:
    /// `Inconclusive`. Give the adjusted p where the row is one of many.
    #[must_use]
    pub fn of(difference: f64, interval: Option<Interval>, p: f64) -> Self {
        let same_side = interval.is_some_and(|i| (i.low > 0.0 && difference > 0.0) || (i.high < 0.0 && difference < 0.0));
        if p < ALPHA && same_side { Self::Confirmed } else { Self::Inconclusive }
    }

    /// The name used in JSON and in SQL columns (the same as serde's, by a test).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not_comparable",
        }
    }
}

/// The expected values that scipy and statsmodels computed, for the tests of every file here.
#[cfg(test)]
pub(crate) mod fixture {
    use super::Interval;
    use serde_json::Value;

    /// The list of cases under `key` of `expected.json`.
    pub(crate) fn cases(key: &str) -> Vec<Value> {
        let all: Value = serde_json::from_str(include_str!("../tests/fixtures/stats/expected.json")).unwrap();
        all.get(key).and_then(Value::as_array).unwrap().clone()
    }

    pub(crate) fn int(case: &Value, key: &str) -> u64 {
        case.get(key).and_then(Value::as_u64).unwrap()
    }

    pub(crate) fn float(case: &Value, key: &str) -> f64 {
        case.get(key).and_then(Value::as_f64).unwrap()
    }

    pub(crate) fn floats(case: &Value, key: &str) -> Vec<f64> {
        case.get(key).and_then(Value::as_array).unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    }

    /// Equal within `tolerance`, relative for large values and small ones alike.
    pub(crate) fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1e-300), "got {got:e}, want {want:e}");
    }

    /// Both ends equal within 1e-9.
    pub(crate) fn same_interval(got: Interval, low: f64, high: f64) {
        assert!((got.low - low).abs() < 1e-9 && (got.high - high).abs() < 1e-9, "got {got:?}, want {low} {high}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_serdes_names() {
        use Method as M;
        let methods = [
            M::Wilson,
            M::NewcombeHybridScore,
            M::ExactMcnemar,
            M::AgrestiMin,
            M::PseudoCases,
            M::ClopperPearson,
            M::SignFlip,
            M::SignFlipMonteCarlo,
            M::GroupSignFlip,
            M::GroupSignFlipMonteCarlo,
            M::StudentT,
            M::ClusteredT,
            M::ClusteredAgrestiMin,
            M::TangoScore,
            M::ClusteredTangoScore,
            M::Holm,
            M::BenjaminiHochberg,
            M::McnemarPower,
            M::PairedTPower,
            M::ClusteredTPower,
        ];
        for m in methods {
            assert_eq!(serde_json::to_value(m).unwrap(), m.as_str());
        }
        for w in [Word::Confirmed, Word::Inconclusive, Word::NotComparable] {
            assert_eq!(serde_json::to_value(w).unwrap(), w.as_str());
        }
    }

    #[test]
    fn a_word_needs_test_and_interval_to_agree() {
        let above = Interval::new(0.1, 0.3);
        let across = Interval::new(-0.1, 0.3);
        assert_eq!(Word::of(0.2, above, 0.049), Word::Confirmed);
        assert_eq!(Word::of(-0.2, Interval::new(-0.3, -0.1), 0.01), Word::Confirmed);
        assert_eq!(Word::of(0.2, above, 0.05), Word::Inconclusive);
        assert_eq!(Word::of(0.2, across, 0.01), Word::Inconclusive);
        assert_eq!(Word::of(-0.2, above, 0.01), Word::Inconclusive, "the interval is on the other side");
        assert_eq!(Word::of(0.2, None, 0.01), Word::Inconclusive);
        assert_eq!(Word::of(0.2, above, f64::NAN), Word::Inconclusive);
        assert_eq!(Word::of(f64::NAN, above, 0.01), Word::Inconclusive);
    }

    #[test]
    fn an_interval_is_finite_and_the_right_way_round() {
        assert!(Interval::new(1.0, 0.0).is_none());
        assert!(Interval::new(f64::NAN, 0.0).is_none());
        assert!(Interval::new(0.0, f64::INFINITY).is_none());
        assert!(Interval::new(0.0, 0.0).unwrap().contains(0.0));
    }
}
