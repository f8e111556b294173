//! What attempts took, added up: tokens, dollars, time; each with how many of them say so.
//!
//! Promises: what is not recorded is not 0: every sum stands beside the number of attempts that it is over.
//! Does not: read attempts (the store adds them up).

use schemars::JsonSchema;
use serde::Serialize;

/// The sums over the attempts of an evaluation in a run, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Attempts that are recorded, however they ended.
    pub attempts: u64,
    /// What they cost, over those that say so; null where none does.
    pub cost_usd: Option<f64>,
    /// How many say so.
    pub costed: u64,
    /// Wall time of those that came to an end (passed, failed or unscored), one after another; null where none says so.
    pub duration_ms: Option<u64>,
    /// How many say so.
    pub timed: u64,
    /// Input tokens; null where none says so.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// All tokens, graders' included.
    pub total_tokens: Option<u64>,
    /// How many say how many tokens in all.
    pub tokened: u64,
}

impl Figures {
    /// These and `other`'s together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            attempts: self.attempts + other.attempts,
            cost_usd: either(self.cost_usd, other.cost_usd, |a, b| a + b),
            costed: self.costed + other.costed,
            duration_ms: either(self.duration_ms, other.duration_ms, u64::saturating_add),
            timed: self.timed + other.timed,
            input_tokens: either(self.input_tokens, other.input_tokens, u64::saturating_add),
            output_tokens: either(self.output_tokens, other.output_tokens, u64::saturating_add),
            total_tokens: either(self.total_tokens, other.total_tokens, u64::saturating_add),
            tokened: self.tokened + other.tokened,
        }
    }

    /// What an attempt cost at the mean of those that say so.
    #[must_use]
    pub fn mean_cost(&self) -> Option<f64> {
        self.cost_usd.filter(|_| self.costed > 0).map(|cost| cost / self.costed as f64)
    }

    /// How long an attempt took at the mean of those that say so, in milliseconds.
    #[must_use]
    pub fn mean_duration(&self) -> Option<f64> {
        self.duration_ms.filter(|_| self.timed > 0).map(|millis| millis as f64 / self.timed as f64)
    }
}

fn either<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_stays_unknown() {
        let known = Figures { attempts: 2, cost_usd: Some(0.5), costed: 1, ..Figures::default() };
        let both = known.plus(Figures { attempts: 1, ..Figures::default() });
        assert_eq!((both.attempts, both.mean_cost(), both.mean_duration()), (3, Some(0.5), None));
        let timed = Figures { attempts: 2, duration_ms: Some(3000), timed: 2, ..Figures::default() };
        assert_eq!(timed.plus(timed).mean_duration(), Some(1500.0));
    }
}
