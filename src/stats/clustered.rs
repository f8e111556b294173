//! A mean over cases that come in groups (one passage with several questions, one repository with several tasks).
//!
//! Promises: cases of a group count as dependent, however they are; with one case in each group it is the plain standard error.
//!
//! Deliberately not here: choosing the groups, and weights (each case counts the same).

use super::intervals::{t_quantile, wilson};
use super::{Interval, TWO_SIDED};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A mean with the standard error that its groups leave it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClusteredMean {
    /// The mean over all cases.
    pub mean: f64,
    /// Its clustered standard error.
    pub se: f64,
    /// 95% interval, Student's t with groups - 1 degrees; `None` where the groups show no spread.
    pub interval: Option<Interval>,
    /// Cases.
    pub n: u64,
    /// Groups C; the degrees of freedom are C - 1.
    pub groups: u64,
}

/// The mean of `(group, score)` rows. `None` for fewer than two groups and for scores that are not finite.
///
/// Source: Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 2.2: sqrt(sum over groups of (sum of residuals)^2) / n;
/// times sqrt(C / (C - 1)) and with C - 1 degrees for few groups: Cameron and Miller (2015), J. Human Resources 50:317-372, section VI.
#[must_use]
pub fn clustered_mean<G: Ord>(scores: &[(G, f64)]) -> Option<ClusteredMean> {
    let n = scores.len();
    let mean = scores.iter().map(|s| s.1).sum::<f64>() / n as f64;
    let mut sums: BTreeMap<&G, f64> = BTreeMap::new();
    for (group, score) in scores {
        *sums.entry(group).or_default() += score - mean;
    }
    let groups = sums.len() as f64;
    let squares: f64 = sums.values().map(|s| s * s).sum();
    let se = (squares * groups / (groups - 1.0)).sqrt() / n as f64;
    let half = t_quantile(TWO_SIDED, groups - 1.0)? * se;
    if !mean.is_finite() || !se.is_finite() {
        return None;
    }
    // Residuals of equal scores are rounding; an interval of width 0 would claim a certainty that nobody has.
    let interval = Interval::new(mean - half, mean + half).filter(|_| se > 1e-14 * mean.abs());
    Some(ClusteredMean { mean, se, interval, n: n as u64, groups: sums.len() as u64 })
}

/// 95% interval of the rate of all attempts over cases of `(passed, counted)` attempts each, within `[0, 1]`.
///
/// Cases are the unit: a case's attempts count as dependent, as a group's cases do above (the same formula over attempts, with cases for
/// groups). Where every case was counted once this is one rate, and where there is one case its attempts are all that varies: then Wilson's.
/// Where all attempts of all cases passed, or failed, each case is one observation of Wilson's. `None` where nothing was counted, where a
/// case has more passes than counted attempts, and where cases show no spread at another rate.
///
/// Source: as [`clustered_mean`]; [`wilson`].
#[must_use]
pub fn clustered_rate(cases: &[(u64, u64)]) -> Option<Interval> {
    let sum = |of: fn(&(u64, u64)) -> u64| cases.iter().try_fold(0_u64, |sum, case| sum.checked_add(of(case)));
    let (passed, counted) = (sum(|case| case.0)?, sum(|case| case.1)?);
    let groups = cases.iter().filter(|case| case.1 > 0).count() as u64;
    if cases.iter().any(|case| case.0 > case.1) {
        return None;
    }
    if groups <= 1 || groups == counted {
        return wilson(passed, counted);
    }
    if passed == 0 || passed == counted {
        return wilson(if passed == 0 { 0 } else { groups }, groups);
    }
    let rate = passed as f64 / counted as f64;
    let squares: f64 = cases.iter().map(|case| (case.0 as f64 - rate * case.1 as f64).powi(2)).sum();
    let c = groups as f64;
    let se = (squares * c / (c - 1.0)).sqrt() / counted as f64;
    let half = t_quantile(TWO_SIDED, c - 1.0)? * se;
    Some(Interval::new(rate - half, rate + half).filter(|_| se > 1e-14)?.clamped(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, floats, same_interval};
    use super::*;
    use crate::stats::student_t;

    #[test]
    fn the_computed_values() {
        for c in cases("clustered") {
            let rows: Vec<(u64, f64)> = floats(&c, "groups").into_iter().map(|g| g as u64).zip(floats(&c, "values")).collect();
            let got = clustered_mean(&rows).unwrap();
            close(got.mean, float(&c, "mean"), 1e-12);
            close(got.se, float(&c, "se"), 1e-10);
            same_interval(got.interval.unwrap(), float(&c, "low"), float(&c, "high"));
        }
    }

    #[test]
    fn groups_of_one_are_the_plain_interval_and_copies_add_nothing() {
        let values = [0.1, 0.7, 0.4, 0.9, 0.3];
        let single: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
        let plain = student_t(&values).unwrap();
        same_interval(clustered_mean(&single).unwrap().interval.unwrap(), plain.low, plain.high);
        let copies: Vec<(usize, f64)> = single.iter().flat_map(|s| [*s; 10]).collect();
        same_interval(clustered_mean(&copies).unwrap().interval.unwrap(), plain.low, plain.high);
    }

    #[test]
    fn what_has_no_answer_is_none() {
        assert!(clustered_mean::<u8>(&[]).is_none());
        assert!(clustered_mean(&[("a", 0.1), ("a", 0.4)]).is_none());
        assert!(clustered_mean(&[("a", f64::NAN), ("b", 0.4)]).is_none());
        assert!(clustered_mean(&[("a", 0.4), ("b", 0.4)]).unwrap().interval.is_none());
    }
}
