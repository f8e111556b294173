//! What repeated attempts at one case say: flip rate, pass@k, pass^k.
//!
//! Promises: the unbiased estimates from c passes in n attempts, within `[0, 1]`, without factorials; `None` where c, n and k do not
//! fit (`c <= n`, `1 <= k <= n`).
//!
//! Deliberately not here: means over cases (average these over the cases, then [`super::student_t`] or [`super::clustered_mean`]).

/// The chance that two different attempts at the case disagree: 2c(n-c) / (n(n-1)). `None` for fewer than two attempts.
///
/// Source: Gini (1912) / Simpson (1949), Nature 163:688: the unbiased form of 2p(1-p).
#[must_use]
pub fn flip_rate(passed: u64, attempts: u64) -> Option<f64> {
    if attempts < 2 || passed > attempts {
        return None;
    }
    let (c, n) = (passed as f64, attempts as f64);
    Some((2.0 * (c / n) * ((n - c) / (n - 1.0))).min(1.0))
}

/// pass@k: the chance that at least one of k attempts passes, 1 - C(n-c,k) / C(n,k).
///
/// Source: Chen et al. (2021), Evaluating Large Language Models Trained on Code, arXiv:2107.03374, equation 1.
#[must_use]
pub fn pass_at_k(passed: u64, attempts: u64, k: u64) -> Option<f64> {
    let failed = proper(passed, attempts, k)?;
    if failed < k {
        return Some(1.0);
    }
    // The ratio is the same with c and k exchanged: the shorter product. Logarithms keep a chance near 0 accurate.
    let (few, many) = (passed.min(k), passed.max(k));
    let ln_none: f64 = (0..few).map(|i| (-(many as f64) / (attempts - i) as f64).ln_1p()).sum();
    Some((-ln_none.exp_m1()).clamp(0.0, 1.0))
}

/// pass^k: the chance that all of k attempts pass, C(c,k) / C(n,k).
///
/// Source: Yao et al. (2024), tau-bench, arXiv:2406.12045.
#[must_use]
pub fn pass_hat_k(passed: u64, attempts: u64, k: u64) -> Option<f64> {
    let failed = proper(passed, attempts, k)?;
    if passed < k {
        return Some(0.0);
    }
    let (few, many) = (failed.min(k), failed.max(k));
    Some((0..few).map(|i| 1.0 - many as f64 / (attempts - i) as f64).product::<f64>().clamp(0.0, 1.0))
}

/// The failed attempts, if the three numbers fit.
fn proper(passed: u64, attempts: u64, k: u64) -> Option<u64> {
    attempts.checked_sub(passed).filter(|_| (1..=attempts).contains(&k))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, int};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_computed_values() {
        for c in cases("pass_k") {
            let (passed, n, k) = (int(&c, "c"), int(&c, "n"), int(&c, "k"));
            close(pass_at_k(passed, n, k).unwrap(), float(&c, "at"), 1e-11);
            close(pass_hat_k(passed, n, k).unwrap(), float(&c, "hat"), 1e-11);
        }
        for c in cases("flip_rate") {
            close(flip_rate(int(&c, "c"), int(&c, "n")).unwrap(), float(&c, "rate"), 1e-12);
        }
    }

    #[test]
    fn what_does_not_fit_is_none() {
        assert!(flip_rate(0, 1).is_none() && flip_rate(3, 2).is_none() && flip_rate(0, 0).is_none());
        for (c, n, k) in [(1, 2, 0), (1, 2, 3), (3, 2, 1), (0, 0, 0)] {
            assert!(pass_at_k(c, n, k).is_none() && pass_hat_k(c, n, k).is_none());
        }
    }

    proptest! {
        #[test]
        fn chances_mirror_each_other_and_are_monotone((n, c, k) in (2..400_u64).prop_flat_map(|n| (Just(n), 0..=n, 1..n))) {
            let (at, hat) = (pass_at_k(c, n, k).unwrap(), pass_hat_k(c, n, k).unwrap());
            prop_assert!((at - (1.0 - pass_hat_k(n - c, n, k).unwrap())).abs() < 1e-10, "some pass, or all fail");
            prop_assert!(pass_at_k(c, n, k + 1).unwrap() >= at - 1e-12 && pass_hat_k(c, n, k + 1).unwrap() <= hat + 1e-12);
            prop_assert!((pass_at_k(c, n, 1).unwrap() - c as f64 / n as f64).abs() < 1e-12);
            let flip = flip_rate(c, n).unwrap();
            prop_assert!((flip - flip_rate(n - c, n).unwrap()).abs() < 1e-12);
            prop_assert!((flip - (pass_at_k(c, n, 2).unwrap() - pass_hat_k(c, n, 2).unwrap())).abs() < 1e-10, "one of two");
        }
    }
}
