//! What a paired permutation test cannot do with few cases, exactly: the limits under which an asymptotic formula promises too much.
//!
//! Promises: whole cases that turn in one direction, the plainest change there is, are reckoned with binomial probabilities; nothing here is
//! an approximation.
//! Deliberately not here: changes in both directions, which only the asymptotic formulas of `power` take into account.

use statrs::distribution::{Beta, ContinuousCDF as _};

use super::binomial_tail;

/// Cases that must change before a two-sided sign-flip or exact McNemar test can give p < 0.05: with k of them the least p is 2 / 2^k.
pub const TURNED_MIN: u64 = 6;

/// Halvings that find a root between 0 and 1 to the last digits of a double.
const HALVINGS: usize = 60;

/// The probability that at least [`TURNED_MIN`] of `n` cases turn, each with probability `difference`.
fn found(n: u64, difference: f64) -> Option<f64> {
    binomial_tail(TURNED_MIN, n, difference)
}

/// The smallest difference at which enough of `n` cases turn with this `power`; `None` where there are fewer than [`TURNED_MIN`] cases.
#[must_use]
pub fn least_detectable(n: u64, power: f64) -> Option<f64> {
    if n < TURNED_MIN || !(power > 0.0 && power < 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if found(n, middle)? >= power { high = middle } else { low = middle }
    }
    Some(high)
}

/// The fewest cases of which enough turn with this `power` at a true `difference`; `None` for a difference or power out of range.
#[must_use]
pub fn cases_that_turn(difference: f64, power: f64) -> Option<u64> {
    if !(difference > 0.0 && difference <= 1.0 && power > 0.0 && power < 1.0) {
        return None;
    }
    // Doubled until enough, then halved: the probability rises with the number of cases.
    let mut high = TURNED_MIN;
    while found(high, difference)? < power {
        high = high.checked_mul(2).filter(|n| *n < 1 << 40)?;
    }
    let mut low = (high / 2).max(TURNED_MIN - 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if found(middle, difference)? >= power { high = middle } else { low = middle }
    }
    Some(high)
}

/// The one-sided 95% upper bound of a rate of which `k` of `n` were seen.
///
/// Source: Clopper and Pearson (1934), Biometrika 26:404-413.
#[must_use]
pub fn upper_bound(k: u64, n: u64) -> Option<f64> {
    if k >= n {
        return (n > 0).then_some(1.0);
    }
    Some(Beta::new(k as f64 + 1.0, (n - k) as f64).ok()?.inverse_cdf(super::ONE_SIDED))
}

/// The fewest cases of which none changes before a change of more than `margin` is ruled out at 95%: 0.05^(1/n) >= 1 - margin.
#[must_use]
pub fn cases_without_change(margin: f64) -> Option<u64> {
    (margin > 0.0 && margin < 1.0).then(|| ((1.0 - super::ONE_SIDED).ln() / (1.0 - margin).ln()).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binom.sf(5, n, d)` around 0.8, `scipy.stats.beta.ppf(0.95, k + 1, n - k)`, and the rule of three.
    #[test]
    fn the_computed_values() {
        assert_eq!((cases_that_turn(1.0, 0.8), cases_that_turn(0.5, 0.8), cases_that_turn(0.9, 0.8)), (Some(6), Some(15), Some(7)));
        assert!((least_detectable(6, 0.8).unwrap() - 0.8_f64.powf(1.0 / 6.0)).abs() < 1e-9);
        assert_eq!((least_detectable(5, 0.8), cases_that_turn(0.0, 0.8), cases_that_turn(0.5, 1.0)), (None, None, None));
        assert!((upper_bound(0, 59).unwrap() - (1.0 - 0.05_f64.powf(1.0 / 59.0))).abs() < 1e-9);
        assert!((upper_bound(1, 10).unwrap() - 0.394_163).abs() < 1e-5);
        assert_eq!((upper_bound(3, 3), upper_bound(0, 0)), (Some(1.0), None));
        assert_eq!((cases_without_change(0.05), cases_without_change(0.02), cases_without_change(0.1)), (Some(59), Some(149), Some(29)));
    }

    #[test]
    fn what_is_planned_is_what_is_detected() {
        for difference in [0.05, 0.2, 0.7] {
            let n = cases_that_turn(difference, 0.8).unwrap();
            assert!(least_detectable(n, 0.8).unwrap() <= difference && least_detectable(n - 1, 0.8).is_none_or(|least| least > difference));
        }
    }
}
