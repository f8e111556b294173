//! A mean over cases that come in groups (one passage with several questions, one repository with several tasks).
//!
//! Promises: cases of a group count as dependent, however they are; with one case in each group it is the plain standard error.
//!
//! Deliberately not here: choosing the groups, and weights (each case counts the same).

use super::intervals::{t_quantile, wilson, wilson_at};
use super::{Interval, TWO_SIDED, Z_TWO_SIDED};
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

/// Cases with a pass, and cases with a failure, from which on the spread between cases is taken at its word.
const SPREAD_MIN: usize = 10;

/// 95% interval of the rate of all attempts over cases of `(passed, counted)` attempts each, within `[0, 1]`.
///
/// Cases are the unit: Wilson's interval over an effective number of attempts, `rate (1 - rate)` over the variance that the rate has with cases
/// for groups (as [`clustered_mean`]), never more than were counted, with Student's t for z where that variance decides. Where fewer than ten cases have a pass, or a
/// failure, the spread between them is a guess of few, and no more attempts count than there are cases. Where every case was counted once this
/// is Wilson's own interval, and where there is one case its attempts are all that varies: then Wilson's too. `None` where nothing was
/// counted, and where a case has more passes than counted attempts.
///
/// Source: the effective sample size of Korn and Graubard (1998), Survey Methodology 24:193-201, in Wilson's interval as by Dean and Pagano
/// (2015), J. Surv. Stat. Methodol. 3:484-503 (who cap it at the sample size); the rule of ten is ours, from a simulation (a test below).
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
    let (n, c, rate) = (counted as f64, groups as f64, passed as f64 / counted as f64);
    let squares: f64 = cases.iter().map(|case| (case.0 as f64 - rate * case.1 as f64).powi(2)).sum();
    let effective = rate * (1.0 - rate) * n * n * (c - 1.0) / (squares * c);
    let few = |seen: fn(&&(u64, u64)) -> bool| cases.iter().filter(seen).count() < SPREAD_MIN;
    let most = if few(|case| case.0 > 0) || few(|case| case.0 < case.1) { c } else { n };
    if effective >= most {
        // Nothing was estimated from the few cases, so that their number is no doubt to be added.
        return wilson_at(rate, most, Z_TWO_SIDED);
    }
    // One observation at least: all of a few cases' attempts may hang together, and a case is never less than one.
    wilson_at(rate, effective.max(1.0), t_quantile(TWO_SIDED, c - 1.0)?)
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
    fn rates_of_tries_are_the_computed_ones() {
        for c in cases("clustered_rate") {
            let tries: Vec<(u64, u64)> = floats(&c, "passed")
                .into_iter()
                .zip(floats(&c, "counted"))
                .map(|(passed, counted)| (passed as u64, counted as u64))
                .collect();
            same_interval(clustered_rate(&tries).unwrap(), float(&c, "low"), float(&c, "high"));
        }
        assert!(clustered_rate(&[]).is_none() && clustered_rate(&[(0, 0)]).is_none() && clustered_rate(&[(2, 1), (1, 1)]).is_none());
        // One attempt each, and one case alone, are Wilson's own.
        assert_eq!(clustered_rate(&[(1, 1), (0, 1), (1, 1)]), wilson(2, 3));
        assert_eq!(clustered_rate(&[(2, 9), (0, 0)]), wilson(2, 9));
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
