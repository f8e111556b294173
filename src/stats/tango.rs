//! One-sided bounds of a paired difference of rates by the score test, for margins.
//!
//! Promises: over 6 to 100 cases and every margin from 0.02 to 0.5 a test by these bounds is wrong at most 5.5% of the time, whatever the rate of
//! cases that change in truth (a test enumerates all tables); with many cases it is wrong 5% of the time.
//!
//! Deliberately not here: which pairs, and the case that nothing changed at all (`exact` knows that bound).

use super::Interval;

/// What is taken off the difference of the counts before it is held against a margin: with so many cases that changed it moves in steps of two.
///
/// Source: Edwards (1948), Psychometrika 13:185-187, for McNemar's test. Without it Tango's test is wrong up to 8.6% of the time at 10 cases.
const CONTINUITY: f64 = 1.0;

/// Halvings that find a root between -1 and 1 to the last digits of a double.
const HALVINGS: usize = 60;

/// The lower and the upper bound of the difference, each one-sided at the normal quantile `z`, from `better` cases that only the head passed and
/// `worse` that only the base did of `n`. None of the three need be a whole number: sums over graded differences and effective numbers of
/// cases stand in for counts. `None` where nothing is counted.
///
/// Source: Tango (1998), Stat. Med. 17:891-908: the difference d for which (better - worse - n d) / sqrt(n (2 q + d (1 - d))) is z, q being the
/// probability of the second kind of change that is likeliest at that d.
pub(crate) fn bounds(better: f64, worse: f64, n: f64, z: f64) -> Option<Interval> {
    if n <= 0.0 {
        return None;
    }
    Interval::new(low(better, worse, n, z), -low(worse, better, n, z))
}

fn low(better: f64, worse: f64, n: f64, z: f64) -> f64 {
    let (mut low, mut high) = (-1.0_f64, 1.0_f64);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if score(better, worse, n, middle) >= z { low = middle } else { high = middle }
    }
    low
}

/// How far the difference lies above `at`, in standard errors there.
fn score(better: f64, worse: f64, n: f64, at: f64) -> f64 {
    let (a, b, c) = (2.0 * n, (2.0 * n - better + worse) * at - better - worse, -worse * at * (1.0 - at));
    let rate = ((b * b - 4.0 * a * c).max(0.0).sqrt() - b) / (2.0 * a);
    let variance = n * (2.0 * rate + at * (1.0 - at));
    (better - worse - n * at - CONTINUITY) / variance.max(f64::MIN_POSITIVE).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::Z_ONE_SIDED;
    use super::super::exact::upper_bound;
    use super::super::fixture::{cases, float};
    use super::*;

    #[test]
    fn the_computed_values() {
        for c in cases("tango") {
            let found = bounds(float(&c, "better"), float(&c, "worse"), float(&c, "n"), Z_ONE_SIDED).unwrap();
            // A search over a likelihood, which is flat at its top, finds no more digits.
            assert!((found.low - float(&c, "low")).abs() < 1e-7 && (found.high - float(&c, "high")).abs() < 1e-7, "{c} {found:?}");
        }
        assert!(bounds(0.0, 0.0, 0.0, Z_ONE_SIDED).is_none());
    }

    /// The greatest probability, over the rates at which cases change, that a head worse by exactly `margin` is found to be less so: the sum
    /// over all tables for which it would be.
    fn size(n: u64, margin: f64) -> f64 {
        let ln_fact = |k: u64| statrs::function::factorial::ln_factorial(k);
        let mut found = Vec::new();
        for better in 0..=n {
            for worse in 0..=(n - better) {
                let (b, c) = (better as f64, worse as f64);
                let shown =
                    if better + worse == 0 { upper_bound(0, n).unwrap() < margin } else { score(b, c, n as f64, -margin) > Z_ONE_SIDED };
                if shown {
                    found.push((b, c, ln_fact(n) - ln_fact(better) - ln_fact(worse) - ln_fact(n - better - worse)));
                }
            }
        }
        let steps = 25;
        let rate = |step: i32| margin + (f64::midpoint(1.0, margin) - margin) * (f64::from(step) / f64::from(steps)).powi(2);
        let wrong = |step: i32| -> f64 {
            let worse = rate(step).clamp(margin + 1e-4, f64::midpoint(1.0, margin) - 1e-4);
            let (better, none) = (worse - margin, 1.0 - 2.0 * worse + margin);
            found.iter().map(|(b, c, ways)| (ways + b * better.ln() + c * worse.ln() + (n as f64 - b - c) * none.ln()).exp()).sum()
        };
        (0..=steps).map(wrong).fold(0.0, f64::max)
    }

    #[test]
    fn a_margin_is_rarely_claimed_wrongly() {
        let mut most: f64 = 0.0;
        for n in [6, 7, 8, 10, 13, 15, 20, 28, 40, 59, 75, 100] {
            for margin in [0.02, 0.05, 0.1, 0.15, 0.25, 0.4] {
                let size = size(n, margin);
                assert!(size <= 0.055, "{n} cases, margin {margin}: {size}");
                most = most.max(size);
            }
        }
        assert!(most > 0.04, "bounds that never show anything would pass too: {most}");
    }

    #[test]
    fn bounds_turn_with_their_sides_and_hold_the_difference() {
        for (better, worse, n) in [(3.0, 5.0, 40.0), (0.0, 4.0, 10.0), (0.0, 10.0, 10.0), (2.5, 0.75, 12.3)] {
            let (found, turned) = (bounds(better, worse, n, Z_ONE_SIDED).unwrap(), bounds(worse, better, n, Z_ONE_SIDED).unwrap());
            assert!((found.low + turned.high).abs() < 1e-12 && (found.high + turned.low).abs() < 1e-12);
            assert!(found.contains((better - worse) / n) && found.low >= -1.0 && found.high <= 1.0, "{found:?}");
        }
    }
}
