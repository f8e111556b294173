//! The correlation of two figures.
//!
//! Promises: within `[-1, 1]`; `None` where one of the figures does not vary, which no correlation describes.
//!
//! Deliberately not here: a test of it: observations may depend on each other, and then p would be too small.

/// Spread below this share of the sum of squares is rounding, not variation.
const ROUNDING: f64 = 1e-12;

/// Pearson's product-moment correlation of `(x, y, how often)` rows. `None` for values or sums that are not finite, too.
///
/// Source: Pearson (1895), Proc. R. Soc. Lond. 58:240-242.
#[must_use]
pub fn correlation(rows: &[(f64, f64, u64)]) -> Option<f64> {
    let sum = |of: &dyn Fn(f64, f64) -> f64| rows.iter().map(|(x, y, n)| of(*x, *y) * *n as f64).sum::<f64>();
    let n = sum(&|_, _| 1.0);
    let (mean_x, mean_y) = (sum(&|x, _| x) / n, sum(&|_, y| y) / n);
    let (xx, yy) = (sum(&|x, _| (x - mean_x).powi(2)), sum(&|_, y| (y - mean_y).powi(2)));
    let varies = xx > ROUNDING * sum(&|x, _| x * x) && yy > ROUNDING * sum(&|_, y| y * y);
    let found = sum(&|x, y| (x - mean_x) * (y - mean_y)) / (xx.sqrt() * yy.sqrt());
    (varies && found.is_finite()).then(|| found.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::correlation;
    use proptest::prelude::*;

    #[test]
    fn anscombes_quartet() {
        // Anscombe (1973), Am. Stat. 27:17-21: the first of the four data sets, correlation 0.81642.
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let rows: Vec<_> = x.into_iter().zip(y).map(|(x, y)| (x, y, 1)).collect();
        assert!((correlation(&rows).unwrap() - 0.816_42).abs() < 5e-6);
    }

    #[test]
    fn what_does_not_vary_has_none() {
        assert_eq!(correlation(&[]), None);
        assert_eq!(correlation(&[(1.0, 0.1, 3), (1.0, 0.7, 2)]), None);
        assert_eq!(correlation(&[(0.0, 0.1, 3), (1.0, 0.1, 2)]), None);
        assert_eq!(correlation(&[(0.0, f64::INFINITY, 3), (1.0, 0.1, 2)]), None);
        assert_eq!(correlation(&[(0.0, 0.0, 0), (1.0, 1.0, 0)]), None);
    }

    proptest! {
        #[test]
        fn a_row_that_counts_twice_is_two_rows(rows in prop::collection::vec((-1.0..1.0_f64, -1.0..1.0_f64, 0..4_u64), 0..9)) {
            let apart: Vec<_> = rows.iter().flat_map(|(x, y, n)| std::iter::repeat_n((*x, *y, 1), *n as usize)).collect();
            match (correlation(&rows), correlation(&apart)) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() < 1e-9 && a.abs() <= 1.0),
                (a, b) => prop_assert_eq!(a.is_some(), b.is_some()),
            }
        }
    }
}
