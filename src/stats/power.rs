//! What a comparison can show: non-inferiority ("no regression"), the minimum detectable effect at 80% power, and how many cases a
//! difference takes.
//!
//! Promises: "no regression" is said only against a margin that was given beforehand, never from a large p; the detectable effect is
//! never 0, also where no case changed.
//!
//! Deliberately not here: power at the observed effect (it only repeats p: Hoenig and Heisey 2001, Am. Stat. 55:19-24).

use super::intervals::t_quantile;
use super::paired::{PairedCase, Pairs};
use super::{Interval, Method, ONE_SIDED, TWO_SIDED, Z_TWO_SIDED};
use serde::{Deserialize, Serialize};
use statrs::distribution::ContinuousCDF as _;

/// The power that "detectable" means.
pub const POWER: f64 = 0.8;

/// The 80% point of the standard normal (`scipy.stats.norm.ppf(0.8)`).
const Z_POWER: f64 = 0.841_621_233_572_914_3;

/// Whether head is at most `margin` worse than base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NonInferiority {
    /// One-sided 95% lower bound of head - base.
    pub lower_bound: f64,
    /// The margin that was given.
    pub margin: f64,
    /// One-sided 95% upper bound of head - base.
    pub upper_bound: f64,
    /// `lower_bound > -margin`.
    pub holds: bool,
    /// Both bounds inside the margin: two one-sided tests at 5% (Schuirmann 1987, J. Pharmacokin. Biopharm. 15:657-680).
    pub equivalent: bool,
    /// Cases that form a pair.
    pub n: u64,
    /// How the bound was computed.
    pub method: Method,
}

/// Non-inferiority of head over the paired cases, `margin >= 0` in the unit of the scores. Scores in `[0, 1]` take the bounds of a score test
/// ([`super::tango`]), over an effective number of cases where these come in groups; where nothing changed at all, the exact bound of that
/// ([`super::exact::upper_bound`]); other scores the ends of the interval that [`super::paired::paired`] would take, at 90% two-sided. `None`
/// without pairs, without bounds, or for no proper margin.
///
/// Source: ICH E9 (1998), section 3.3.2 (one-sided interval against a prespecified margin).
#[must_use]
pub fn non_inferiority(cases: &[PairedCase], margin: f64) -> Option<NonInferiority> {
    if !margin.is_finite() || margin < 0.0 {
        return None;
    }
    let pairs = Pairs::of(cases)?;
    let (Interval { low, high }, method) = pairs.bounds()?;
    let holds = low > -margin;
    Some(NonInferiority { lower_bound: low, margin, upper_bound: high, holds, equivalent: holds && high < margin, n: pairs.n(), method })
}

/// The smallest difference of paired rates that McNemar's test finds with 80% power (two-sided 5%) in `n` cases, given the observed
/// discordance psi = (better + worse) / n. A difference cannot exceed the discordance, so where psi is too small for any difference
/// to be found (0 in particular), psi is taken to be the difference itself. In `(0, 1]`; `None` where not even 1 would be found, and
/// for impossible counts.
///
/// Source: Connor (1987), Biometrics 43:207-211: n = (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2, solved for d.
#[must_use]
pub fn mde_discordance(better: u64, worse: u64, n: u64) -> Option<f64> {
    let discordant = better.checked_add(worse).filter(|d| *d <= n)?;
    mde_second_moment(discordant as f64 / n as f64, n)
}

/// Connor's formula with the mean square of the case differences for psi: for plain passes it is the discordance.
pub(crate) fn mde_second_moment(psi: f64, n: u64) -> Option<f64> {
    let (n, a2, b2) = (n as f64, Z_TWO_SIDED * Z_TWO_SIDED, Z_POWER * Z_POWER);
    // The quadratic (n + b2) d^2 - 2 a sqrt(n psi) d + (a2 - b2) psi = 0 has the larger root d = scale * sqrt(psi).
    let scale = (Z_TWO_SIDED * n.sqrt() + Z_POWER * (n - a2 + b2).sqrt()) / (n + b2);
    let effect = scale * psi.sqrt().max(scale);
    (effect.is_finite() && effect <= 1.0).then_some(effect)
}

/// The smallest mean difference that a paired t test finds with 80% power (two-sided 5%) in `n` cases whose differences have the
/// standard deviation `sd`; in the unit of the scores. `None` for fewer than two cases and for an `sd` that is not finite and above 0.
///
/// Source: Bloom (1995), Evaluation Review 19:547-556: (t(0.975, n-1) + t(0.8, n-1)) * sd / sqrt(n).
#[must_use]
pub fn mde_variance(sd: f64, n: u64) -> Option<f64> {
    if !(sd.is_finite() && sd > 0.0 && n >= 2) {
        return None;
    }
    mde_error(sd / (n as f64).sqrt(), n as f64 - 1.0)
}

/// As [`mde_variance`], from the mean's standard error and its degrees of freedom.
pub(crate) fn mde_error(se: f64, degrees: f64) -> Option<f64> {
    let multiplier = t_quantile(TWO_SIDED, degrees)? + t_quantile(POWER, degrees)?;
    Some(multiplier * se).filter(|m| m.is_finite())
}

/// More cases than this are no plan.
const CASES_MAX: f64 = 1e12;

/// The fewest cases in which a two-sided paired test at 5% finds a mean `difference` with `power`, where the differences of the cases have
/// this `variance`; at least two. `plain` says that each side has one attempt a case, so that the test is McNemar's. `None` for a difference
/// that is not in `(0, 1]`, a power not in `(0, 1)` and a variance that is negative or not finite.
///
/// Source: plain: Connor (1987), as [`mde_discordance`], with the discordance `variance + difference^2`. Otherwise Bloom (1995), as
/// [`mde_variance`]: the smallest n with n >= (t(0.975, n-1) + t(power, n-1))^2 * variance / difference^2.
#[must_use]
pub fn cases_to_detect(difference: f64, variance: f64, power: f64, plain: bool) -> Option<u64> {
    let proper = difference > 0.0 && difference <= 1.0 && variance.is_finite() && variance >= 0.0 && power > 0.0 && power < 1.0;
    if !proper {
        return None;
    }
    if plain {
        let psi = variance + difference * difference;
        let needed = (Z_TWO_SIDED * psi.sqrt() + normal_quantile(power)? * variance.sqrt()) / difference;
        return whole(needed * needed);
    }
    let ratio = variance / (difference * difference);
    fewest(TWO_SIDED, power, ratio, |_| Some(ratio))
}

/// The fewest cases in which non-inferiority within `margin` is shown with `power`, where nothing differs in truth and the differences of
/// the cases have this `variance`; at least two. `None` as [`cases_to_detect`].
///
/// Source: the same with a one-sided 5% test: n >= (t(0.95, n-1) + t(power, n-1))^2 * variance / (margin - 1/n)^2, where the 1/n is the
/// continuity correction of the test ([`super::tango`]).
#[must_use]
pub fn cases_for_margin(margin: f64, variance: f64, power: f64) -> Option<u64> {
    let proper = margin > 0.0 && margin <= 1.0 && variance.is_finite() && variance >= 0.0 && power > 0.0 && power < 1.0;
    let left = |n: f64| Some(margin - 1.0 / n).filter(|left| *left > 0.0);
    if proper { fewest(ONE_SIDED, power, variance / (margin * margin), |n| left(n).map(|left| variance / (left * left))) } else { None }
}

/// The smallest n >= 2 with n >= (t(below, n-1) + t(power, n-1))^2 * `ratio` of n. The right side falls with n, so from the normal's answer at
/// the `least` ratio, which is too small, few steps lead there.
fn fewest(below: f64, power: f64, least: f64, ratio: impl Fn(f64) -> Option<f64>) -> Option<u64> {
    let normal = normal_quantile(below)? + normal_quantile(power)?;
    let first = whole(normal * normal * least)?;
    // With t's tails two cases ask for far more than the normal says; with a dozen hardly.
    (first..first + 10_000).find_map(|n| {
        let degrees = n as f64 - 1.0;
        let both = t_quantile(below, degrees)? + t_quantile(power, degrees)?;
        ratio(n as f64).is_some_and(|ratio| n as f64 >= both * both * ratio).then_some(n)
    })
}

/// At least two whole cases; none beyond any plan.
fn whole(cases: f64) -> Option<u64> {
    // A hair above a whole number is rounding.
    (cases.is_finite() && cases < CASES_MAX).then(|| ((cases * (1.0 - 1e-12)).ceil() as u64).max(2))
}

fn normal_quantile(below: f64) -> Option<f64> {
    Some(statrs::distribution::Normal::standard().inverse_cdf(below)).filter(|z| z.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, floats, int};
    use super::super::paired::exact_mcnemar;
    use super::*;
    use proptest::prelude::*;

    fn rates(pairs: &[(f64, f64)], attempts: u64) -> Vec<PairedCase> {
        let of = |(head, base): &(f64, f64)| PairedCase {
            head: *head,
            base: *base,
            head_attempts: attempts,
            base_attempts: attempts,
            group: None,
        };
        pairs.iter().map(of).collect()
    }

    #[test]
    fn the_computed_values() {
        for c in cases("mde_discordance") {
            let got = mde_discordance(int(&c, "better"), int(&c, "worse"), int(&c, "n")).unwrap();
            close(got, float(&c, "mde"), 1e-9);
        }
        for c in cases("mde_variance") {
            close(mde_variance(float(&c, "sd"), int(&c, "n")).unwrap(), float(&c, "mde"), 1e-8);
        }
        for c in cases("paired") {
            let pairs: Vec<(f64, f64)> = floats(&c, "head").into_iter().zip(floats(&c, "base")).collect();
            let got = non_inferiority(&rates(&pairs, 3), 0.1).unwrap();
            // Student's bound is close, and knows nothing of what a rate can be: the score's lies below it.
            let student = float(&c, "one_sided_low");
            assert!(got.lower_bound < student && got.lower_bound > student - 0.25, "{c} {got:?}");
            assert_eq!((got.holds, got.method), (got.lower_bound > -0.1, Method::TangoScore));
            // Scores beyond 1 have no such bound.
            let scaled: Vec<(f64, f64)> = pairs.iter().map(|(head, base)| (head * 10.0, base * 10.0)).collect();
            let beyond = non_inferiority(&rates(&scaled, 3), 0.1).unwrap();
            assert!((beyond.lower_bound / 10.0 - student).abs() < 1e-9 && beyond.method == Method::StudentT, "{c} {beyond:?}");
        }
    }

    /// Exact power of exact McNemar at a true difference `d` and discordance `psi`: the formula is asymptotic, the test conservative.
    fn exact_power(n: u64, psi: f64, d: f64) -> f64 {
        let (up, down) = ((psi + d) / 2.0, (psi - d) / 2.0);
        let mut power = 0.0;
        let ln_fact = |k: u64| statrs::function::factorial::ln_factorial(k);
        for b in 0..=n {
            for c in 0..=(n - b) {
                if exact_mcnemar(b, c) < 0.05 {
                    let ways = ln_fact(n) - ln_fact(b) - ln_fact(c) - ln_fact(n - b - c);
                    power += (ways + b as f64 * up.ln() + c as f64 * down.ln() + (n - b - c) as f64 * (1.0 - psi).ln()).exp();
                }
            }
        }
        power
    }

    #[test]
    fn the_detectable_effect_has_about_the_power_it_claims() {
        let d = mde_discordance(15, 15, 100).unwrap();
        let power = exact_power(100, 0.3, d);
        assert!((0.70..0.82).contains(&power), "{d}: {power}");
    }

    #[test]
    fn no_change_seen_is_not_a_detectable_effect_of_zero() {
        let got = mde_discordance(0, 0, 100).unwrap();
        assert!(got > 0.05 && got < 0.1, "{got}");
        assert!(mde_discordance(0, 0, 2).is_none() && mde_discordance(0, 0, 0).is_none() && mde_discordance(3, 3, 5).is_none());
        assert!(mde_variance(0.0, 10).is_none() && mde_variance(f64::NAN, 10).is_none() && mde_variance(0.1, 1).is_none());
    }

    #[test]
    fn no_regression_needs_enough_cases_and_a_margin() {
        let same = |n| rates(&vec![(1.0, 1.0); n], 10);
        assert!(!non_inferiority(&same(2), 0.05).unwrap().holds, "two unchanged cases show nothing");
        assert!(non_inferiority(&same(200), 0.05).unwrap().holds);
        assert!(non_inferiority(&same(200), f64::NAN).is_none() && non_inferiority(&same(200), -0.1).is_none());
        assert!(non_inferiority(&[], 0.1).is_none());
        let plain = non_inferiority(&rates(&[(1.0, 1.0), (0.0, 1.0)], 1), 0.0).unwrap();
        assert_eq!((plain.method, plain.holds), (Method::TangoScore, false));
        let both_ways = non_inferiority(&rates(&[(1.0, 0.0), (0.0, 1.0)], 1), 0.0).unwrap();
        assert_eq!((both_ways.method, both_ways.holds), (Method::TangoScore, false));
        assert!(!non_inferiority(&same(58), 0.05).unwrap().holds && non_inferiority(&same(59), 0.05).unwrap().equivalent, "0.95^58 > 0.05");
    }

    #[test]
    fn the_cases_that_scipy_says() {
        for c in cases("cases_to_detect") {
            let got = cases_to_detect(float(&c, "difference"), float(&c, "variance"), float(&c, "power"), int(&c, "plain") == 1).unwrap();
            assert_eq!(got, int(&c, "cases"), "{c}");
            // statsmodels solves with the noncentral t, which may differ by a case or two where they are few.
            if int(&c, "plain") == 0 && got > 5 {
                assert!((got as f64 - float(&c, "noncentral")).abs() <= 1.5, "{c}");
            }
        }
        for c in cases("cases_for_margin") {
            assert_eq!(cases_for_margin(float(&c, "margin"), float(&c, "variance"), float(&c, "power")), Some(int(&c, "cases")), "{c}");
        }
    }

    #[test]
    fn what_is_planned_is_what_is_detected() {
        let n = cases_to_detect(0.1, 0.24, 0.8, false).unwrap();
        assert!(mde_variance(0.24_f64.sqrt(), n).unwrap() <= 0.1 && mde_variance(0.24_f64.sqrt(), n - 1).unwrap() > 0.1);
        let n = cases_to_detect(0.1, 0.29, 0.8, true).unwrap();
        assert!(mde_second_moment(0.3, n).unwrap() <= 0.1 && mde_second_moment(0.3, n - 1).unwrap() > 0.1);
    }

    #[test]
    fn what_is_no_plan_is_none() {
        for (difference, variance, power) in [
            (0.0, 0.2, 0.8),
            (1.5, 0.2, 0.8),
            (f64::NAN, 0.2, 0.8),
            (0.1, -0.1, 0.8),
            (0.1, f64::INFINITY, 0.8),
            (0.1, 0.2, 1.0),
            (1e-9, 0.2, 0.8),
        ] {
            assert!(
                cases_to_detect(difference, variance, power, true).is_none()
                    && cases_to_detect(difference, variance, power, false).is_none()
            );
            assert!(cases_for_margin(difference, variance, power).is_none());
        }
        assert_eq!((cases_to_detect(0.5, 0.0, 0.8, false), cases_for_margin(0.5, 0.0, 0.8)), (Some(2), Some(3)));
    }

    #[test]
    fn equivalence_needs_both_bounds_inside() {
        let mut cases = rates(&vec![(1.0, 1.0); 200], 1);
        let same = non_inferiority(&cases, 0.05).unwrap();
        assert!(same.holds && same.equivalent && same.lower_bound < 0.0 && same.upper_bound > 0.0);
        cases.iter_mut().take(40).for_each(|case| case.base = 0.0);
        let better = non_inferiority(&cases, 0.05).unwrap();
        assert!(better.holds && !better.equivalent && better.lower_bound > 0.0);
    }

    proptest! {
        #[test]
        fn more_cases_detect_less_and_more_discordance_detects_worse(n in 20..2000_u64, psi in 0.0..=1.0_f64) {
            let got = mde_second_moment(psi, n).unwrap();
            prop_assert!(got > 0.0 && got <= 1.0);
            prop_assert!(mde_second_moment(psi, n + 1).unwrap() < got);
            prop_assert!(mde_second_moment((psi + 0.1).min(1.0), n).unwrap() >= got);
        }
    }
}
