//! How usual so many failures are for something that fails now and then.
//!
//! Promises: the exact binomial tail, relative error below 1e-9; `None` where the numbers do not fit.
//!
//! Deliberately not here: which earlier attempts make up the rate, and what follows from the answer (`domain::flake` decides).

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// The chance of at least `least` failures in `attempts` independent attempts that each fail with probability `rate`. `None` for a rate
/// outside `[0, 1]` and for `least > attempts`.
///
/// Source: Clopper and Pearson (1934), Biometrika 26:404-413 (the exact tail of the binomial distribution).
#[must_use]
pub fn binomial_tail(least: u64, attempts: u64, rate: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&rate) || least > attempts {
        return None;
    }
    let Some(below) = least.checked_sub(1) else { return Some(1.0) };
    Some(Binomial::new(rate, attempts).ok()?.sf(below).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, int};
    use super::*;

    #[test]
    fn the_computed_values() {
        for c in cases("binomial_tail") {
            close(binomial_tail(int(&c, "least"), int(&c, "attempts"), float(&c, "rate")).unwrap(), float(&c, "p"), 1e-9);
        }
    }

    #[test]
    fn the_ends() {
        for (least, attempts, rate, p) in [(0, 3, 0.0, 1.0), (1, 3, 0.0, 0.0), (3, 3, 1.0, 1.0), (1, 1, 0.25, 0.25), (0, 0, 0.5, 1.0)] {
            assert!((binomial_tail(least, attempts, rate).unwrap() - p).abs() < 1e-12, "{least} {attempts} {rate}");
        }
        assert!(binomial_tail(2, 1, 0.5).is_none() && binomial_tail(1, 2, 1.5).is_none() && binomial_tail(1, 2, f64::NAN).is_none());
    }
}
