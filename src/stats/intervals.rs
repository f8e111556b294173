//! Confidence intervals: one rate, two unpaired rates, a paired difference of rates, a mean.
//!
//! Promises: an interval contains its point estimate and lies within what the quantity can be (`[0, 1]`, `[-1, 1]`); counts that
//! contradict each other (more passes than counted, more discordant pairs than pairs) and values that are not finite give `None`.
//!
//! Deliberately not here: Wald intervals (too short at rates near 0 and 1, where evaluations live) and the bootstrap (it needs random
//! numbers and is no better than t at the sizes seen here).

use super::{Interval, TWO_SIDED, Z_TWO_SIDED};
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Spread below this share of the largest value is rounding, not variation.
const ROUNDING: f64 = 1e-12;

/// 95% interval of one rate, within `[0, 1]`. `None` when nothing was counted.
///
/// Source: Wilson (1927), J. Am. Stat. Assoc. 22:209-212; method 3 of Newcombe (1998), Stat. Med. 17:857-872.
#[must_use]
pub fn wilson(passed: u64, counted: u64) -> Option<Interval> {
    wilson_at(rate(passed, counted)?, counted as f64, Z_TWO_SIDED)
}

/// As [`wilson`], of a `rate` over `n` observations, which need be no whole number, with another quantile `z`.
pub(crate) fn wilson_at(rate: f64, n: f64, z: f64) -> Option<Interval> {
    let z2 = z * z;
    let centre = rate + z2 / (2.0 * n);
    let half = z * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At the ends the formula gives exactly 0 and 1; rounding must not say 1e-18.
    let low = if rate <= 0.0 { 0.0 } else { (centre - half) / scale };
    let high = if rate >= 1.0 { 1.0 } else { (centre + half) / scale };
    Interval::new(low, high)
}

/// 95% interval of the difference head - base of two unpaired rates, within `[-1, 1]`. `None` when a side has nothing counted.
///
/// Source: method 10 (hybrid score, from two Wilson intervals) of Newcombe (1998), Stat. Med. 17:873-890.
#[must_use]
pub fn newcombe_hybrid_score(head_passed: u64, head_counted: u64, base_passed: u64, base_counted: u64) -> Option<Interval> {
    let (head, base) = (rate(head_passed, head_counted)?, rate(base_passed, base_counted)?);
    let (of_head, of_base) = (wilson(head_passed, head_counted)?, wilson(base_passed, base_counted)?);
    let difference = head - base;
    let down = (head - of_head.low).hypot(of_base.high - base);
    let up = (of_head.high - head).hypot(base - of_base.low);
    Some(Interval::new(difference - down, difference + up)?.clamped(-1.0, 1.0))
}

/// 95% interval of the difference head - base of paired rates over `n` cases, of which `better` passed only at the head and `worse`
/// only at the base; within `[-1, 1]`. `None` when `n` is 0 or less than `better + worse`.
///
/// Source: "Wald+2" of Agresti and Min (2005), Stat. Med. 24:729-740: 0.5 is added to each of the four cells, then Wald's interval is
/// taken and cut at -1 and 1. Chosen before Tango's (1998) score interval because it is closed form (nothing that can fail to
/// converge, readable in one line), errs on the wide side at small n, and never contradicts the exact test by containing 0 where that
/// says p < 0.05 (a test below counts through all tables up to 100 discordant pairs).
#[must_use]
pub fn agresti_min(better: u64, worse: u64, n: u64) -> Option<Interval> {
    agresti_min_at(better, worse, n, Z_TWO_SIDED)
}

/// As [`agresti_min`] with another normal quantile `z`.
pub(crate) fn agresti_min_at(better: u64, worse: u64, n: u64, z: f64) -> Option<Interval> {
    let discordant = better.checked_add(worse).filter(|d| *d <= n)?;
    pseudo_cases_at(better as f64 - worse as f64, discordant as f64, n as f64, z)
}

/// Agresti and Min's interval written over case differences in `[-1, 1]`: `sum` of them and of their `squares` over `n` cases.
///
/// Half a case in each cell is two pseudo-cases: one unchanged, half a one better, half a one worse. So it carries over to graded
/// differences, for which it is ours, not published: it is used where they show no spread and Student's interval is undefined, and over an
/// effective number of cases, which need be no whole one, where cases come in groups.
pub(crate) fn pseudo_cases_at(sum: f64, squares: f64, n: f64, z: f64) -> Option<Interval> {
    if n <= 0.0 {
        return None;
    }
    let total = n + 2.0;
    let mean = sum / total;
    let half = z * (((squares + 1.0) / total - mean * mean) / total).sqrt();
    Some(Interval::new(mean - half, mean + half)?.clamped(-1.0, 1.0))
}

/// 95% Student t interval of the mean. `None` for fewer than two values, for values that are not finite, and for values that are all
/// the same: without spread t would claim a certainty of width 0.
///
/// Source: Student (1908), Biometrika 6:1-25; mean +- t(0.975, n-1) * s / sqrt(n).
#[must_use]
pub fn student_t(values: &[f64]) -> Option<Interval> {
    Moments::of(values)?.student_t_at(TWO_SIDED)
}

/// Count, mean and standard deviation (n - 1 in the denominator) of some finite values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// How many values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; `None` where it is undefined (one value) or 0 up to rounding.
    pub sd: Option<f64>,
}

impl Moments {
    /// `None` for no values, and when a value or a sum is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        // Two passes: the textbook difference of sums of squares cancels to nonsense where the spread is small.
        let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        if !mean.is_finite() || !squares.is_finite() {
            return None;
        }
        let largest = values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let sd = if n < 2 { 0.0 } else { (squares / (n as f64 - 1.0)).sqrt() };
        Some(Self { n, mean, sd: (sd > ROUNDING * largest).then_some(sd) })
    }

    /// The t interval whose upper end has `below` of the distribution under it; `None` without spread.
    pub(crate) fn student_t_at(&self, below: f64) -> Option<Interval> {
        let n = self.n as f64;
        let half = t_quantile(below, n - 1.0)? * self.sd? / n.sqrt();
        Interval::new(self.mean - half, self.mean + half)
    }
}

/// The point of Student's t with `degrees` of freedom that has `below` of the distribution under it.
pub(crate) fn t_quantile(below: f64, degrees: f64) -> Option<f64> {
    if !(below > 0.0 && below < 1.0) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let rough = t.inverse_cdf(below);
    // statrs 0.19 inverts to six digits only at many degrees (seen: 1.644866 for 1.644869); two of Newton's steps mend that.
    let better = |q: f64| q - (t.cdf(q) - below) / t.pdf(q);
    Some(better(better(rough))).filter(|q| q.is_finite())
}

/// `passed / counted`, if that is a rate.
fn rate(passed: u64, counted: u64) -> Option<f64> {
    (counted > 0 && passed <= counted).then(|| passed as f64 / counted as f64)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, floats, int, same_interval};
    use super::super::paired::exact_mcnemar;
    use super::*;
    use proptest::prelude::*;

    /// Published to four decimals.
    fn published(got: Option<Interval>, low: f64, high: f64) {
        let got = got.unwrap();
        assert!((got.low - low).abs() < 6e-5 && (got.high - high).abs() < 6e-5, "got {got:?}, published {low} {high}");
    }

    #[test]
    fn wilson_is_newcombes_table() {
        // Newcombe (1998), Stat. Med. 17:857-872, table I, method 3.
        published(wilson(81, 263), 0.2553, 0.3662);
        published(wilson(15, 148), 0.0624, 0.1605);
        published(wilson(0, 20), 0.0, 0.1611);
        published(wilson(1, 29), 0.0061, 0.1718);
    }

    #[test]
    fn newcombe_is_newcombes_table() {
        // Newcombe (1998), Stat. Med. 17:873-890, table II, method 10, contrasts (a), (d), (g).
        published(newcombe_hybrid_score(56, 70, 48, 80), 0.0524, 0.3339);
        published(newcombe_hybrid_score(5, 56, 0, 29), -0.0381, 0.1926);
        published(newcombe_hybrid_score(10, 10, 0, 20), 0.6791, 1.0);
    }

    #[test]
    fn agresti_min_is_r_propcis() {
        // R package PropCIs (by Scherer, after Agresti's own code): diffpropci.mp(b = 40, c = 20, n = 160, conf.level = 0.95).
        let got = agresti_min(20, 40, 160).unwrap();
        assert!((got.low + 0.216_017_26).abs() < 5e-9 && (got.high + 0.030_896_32).abs() < 5e-9, "{got:?}");
    }

    #[test]
    fn the_computed_values() {
        for c in cases("wilson") {
            same_interval(wilson(int(&c, "passed"), int(&c, "counted")).unwrap(), float(&c, "low"), float(&c, "high"));
        }
        for c in cases("newcombe") {
            let got = newcombe_hybrid_score(int(&c, "x1"), int(&c, "n1"), int(&c, "x2"), int(&c, "n2"));
            same_interval(got.unwrap(), float(&c, "low"), float(&c, "high"));
        }
        for c in cases("agresti_min") {
            let got = agresti_min(int(&c, "better"), int(&c, "worse"), int(&c, "n")).unwrap();
            same_interval(got, float(&c, "low"), float(&c, "high"));
        }
        for c in cases("student_t") {
            same_interval(student_t(&floats(&c, "values")).unwrap(), float(&c, "low"), float(&c, "high"));
        }
        for c in cases("t_quantile") {
            close(t_quantile(float(&c, "below"), float(&c, "degrees")).unwrap(), float(&c, "value"), 1e-8);
        }
    }

    #[test]
    fn what_has_no_answer_is_none() {
        assert!(wilson(0, 0).is_none() && wilson(2, 1).is_none());
        assert!(newcombe_hybrid_score(1, 2, 0, 0).is_none());
        assert!(agresti_min(0, 0, 0).is_none() && agresti_min(2, 2, 3).is_none() && agresti_min(u64::MAX, 1, u64::MAX).is_none());
        for bad in [vec![], vec![0.5], vec![0.5, 0.5], vec![0.1, f64::NAN], vec![0.1, f64::INFINITY], vec![1e300, -1e300]] {
            assert!(student_t(&bad).is_none(), "{bad:?}");
        }
        assert!(student_t(&[0.3 - 0.2, 0.1, 0.4 - 0.3]).is_none(), "rounding is no spread");
    }

    #[test]
    fn agresti_min_excludes_zero_wherever_the_exact_test_does() {
        for discordant in 1..=100_u64 {
            for worse in (0..=discordant / 2).filter(|w| exact_mcnemar(discordant - w, *w) < 0.05) {
                for n in [discordant, discordant + 1, 2 * discordant, 10_000] {
                    let got = agresti_min(discordant - worse, worse, n).unwrap();
                    assert!(got.low > 0.0, "{worse} of {discordant}, n {n}: {got:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn rates_stay_inside_and_hold_their_estimate((n, x) in (1..5000_u64).prop_flat_map(|n| (Just(n), 0..=n))) {
            let got = wilson(x, n).unwrap();
            prop_assert!(got.low >= 0.0 && got.high <= 1.0 && got.contains(x as f64 / n as f64));
            let mirror = wilson(n - x, n).unwrap();
            prop_assert!((got.low - (1.0 - mirror.high)).abs() < 1e-12);
            if x < n {
                let next = wilson(x + 1, n).unwrap();
                prop_assert!(next.low >= got.low && next.high >= got.high, "monotone in passes");
            }
        }

        #[test]
        fn differences_stay_inside_and_turn_with_their_sides(
            (n, b, c) in (1..500_u64).prop_flat_map(|n| (Just(n), 0..=n)).prop_flat_map(|(n, b)| (Just(n), Just(b), 0..=(n - b)))
        ) {
            let difference = (b as f64 - c as f64) / n as f64;
            let (got, swapped) = (agresti_min(b, c, n).unwrap(), agresti_min(c, b, n).unwrap());
            prop_assert!(got.contains(difference) && got.low >= -1.0 && got.high <= 1.0);
            prop_assert!((got.low + swapped.high).abs() < 1e-12 && (got.high + swapped.low).abs() < 1e-12);
            let (got, swapped) = (newcombe_hybrid_score(b, n, c, n).unwrap(), newcombe_hybrid_score(c, n, b, n).unwrap());
            prop_assert!(got.contains(b as f64 / n as f64 - c as f64 / n as f64));
            prop_assert!((got.low + swapped.high).abs() < 1e-12 && (got.high + swapped.low).abs() < 1e-12);
        }

        #[test]
        fn no_values_panic(values in proptest::collection::vec(any::<f64>(), 0..6)) {
            let _ = student_t(&values);
        }
    }
}
