//! Adjusted p-values for many rows: Holm where a gate acts on any of them, Benjamini-Hochberg where a reader explores.
//!
//! Promises: the answer stands in the order of the question; an adjusted p is never below its p nor above 1, and order is kept.
//!
//! Deliberately not here: what belongs to one family. The caller decides and shows its size (the length of the list).

/// Holm's adjusted p-values (family-wise error, any dependence). `None` when a p is not in `[0, 1]`.
///
/// Source: Holm (1979), Scand. J. Stat. 6:65-70.
#[must_use]
pub fn holm(ps: &[f64]) -> Option<Vec<f64>> {
    let m = ps.len();
    let rising = ascending(ps)?;
    let mut least = 0.0_f64;
    let adjusted = rising.into_iter().enumerate().map(|(rank, (place, p))| {
        least = least.max(((m - rank) as f64 * p).min(1.0));
        (place, least)
    });
    Some(in_place(adjusted.collect()))
}

/// Benjamini and Hochberg's adjusted p-values (false discovery rate, independent or positively dependent). `None` when a p is not in
/// `[0, 1]`.
///
/// Source: Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57:289-300.
#[must_use]
pub fn benjamini_hochberg(ps: &[f64]) -> Option<Vec<f64>> {
    let m = ps.len() as f64;
    let rising = ascending(ps)?;
    let mut most = 1.0_f64;
    let adjusted = rising.into_iter().enumerate().rev().map(|(rank, (place, p))| {
        // The last rank divides m by m: min with p itself would be p, so rounding must not lift it below.
        most = most.min((p * m / (rank as f64 + 1.0)).max(p));
        (place, most)
    });
    Some(in_place(adjusted.collect()))
}

/// Each p with its place, smallest first.
fn ascending(ps: &[f64]) -> Option<Vec<(usize, f64)>> {
    if !ps.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<(usize, f64)> = ps.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    Some(order)
}

/// The values back in the order of their places.
fn in_place(mut values: Vec<(usize, f64)>) -> Vec<f64> {
    values.sort_by_key(|v| v.0);
    values.into_iter().map(|v| v.1).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, floats};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_computed_values() {
        for c in cases("corrections") {
            let ps = floats(&c, "p");
            holm(&ps).unwrap().iter().zip(floats(&c, "holm")).for_each(|(got, want)| close(*got, want, 1e-12));
            benjamini_hochberg(&ps).unwrap().iter().zip(floats(&c, "bh")).for_each(|(got, want)| close(*got, want, 1e-12));
        }
    }

    #[test]
    fn benjamini_and_hochbergs_own_example() {
        // Their thrombolysis example: fifteen p-values, of which the method at q = 0.05 rejects the four smallest, Bonferroni's three.
        let ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0];
        let rejected = |adjusted: Option<Vec<f64>>| adjusted.unwrap().iter().filter(|p| **p <= 0.05).count();
        assert_eq!((rejected(benjamini_hochberg(&ps)), rejected(holm(&ps))), (4, 3));
    }

    #[test]
    fn nonsense_is_none_and_nothing_is_nothing() {
        for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert!(holm(&[0.5, bad]).is_none() && benjamini_hochberg(&[0.5, bad]).is_none());
        }
        assert_eq!((holm(&[]), benjamini_hochberg(&[])), (Some(vec![]), Some(vec![])));
    }

    proptest! {
        #[test]
        fn adjusted_is_no_smaller_in_order_and_holm_is_stricter(ps in proptest::collection::vec(0.0..=1.0_f64, 1..30)) {
            let (h, b) = (holm(&ps).unwrap(), benjamini_hochberg(&ps).unwrap());
            for i in 0..ps.len() {
                prop_assert!(ps[i] <= b[i] && b[i] <= h[i] + 1e-15 && h[i] <= 1.0);
                for j in 0..ps.len() {
                    prop_assert!(ps[i] > ps[j] || (h[i] <= h[j] && b[i] <= b[j]));
                }
            }
        }
    }
}
