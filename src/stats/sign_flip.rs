//! The sign-flip permutation test of paired differences: would a mean this far from 0 be unusual if each case had been as likely to
//! change the other way?
//!
//! Promises: exact wherever that is cheap (differences on a common grid, as pass rates are; or at most [`ENUMERATED_MAX`] that are not
//! 0), otherwise Monte Carlo from a given seed with a p that is never 0; the order of the cases and the swap of the sides do not
//! change p.
//!
//! Deliberately not here: which numbers are paired, and intervals. Not a test of attempts: give it one difference per case.

use serde::{Deserialize, Serialize};

/// Up to this many differences that are not 0 are enumerated: 2 halves of 2^15 sums, a few milliseconds.
pub const ENUMERATED_MAX: usize = 30;

/// Monte Carlo draws B for up to 20,000 cases; beyond that fewer, see [`DRAWS_MIN`]. 1 + B is round, so p is a short decimal; at
/// p = 0.05 its standard error is 0.002.
pub const DRAWS_MAX: u64 = 9_999;

/// The fewest draws, however many cases: p is then known to 0.007 at p = 0.05.
pub const DRAWS_MIN: u64 = 999;

/// Signs drawn in one test at most (unless [`DRAWS_MIN`] asks for more): about 0.2 s.
const SIGNS_MAX: u64 = 200_000_000;

/// Additions that the exact count over a grid may cost: some 10 ms.
const GRID_STEPS_MAX: u64 = 8_000_000;

/// The finest grid that is looked for: differences of rates over up to 1,000 attempts, and mixtures up to this denominator.
const GRID_MAX: f64 = 100_000.0;

/// Sums that differ by less than this share of the largest possible sum are ties: the same sum added in another order.
const TIE: f64 = 1e-10;

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignFlip {
    /// Two-sided p; exact, or `(1 + at least as extreme) / (1 + draws)`.
    pub p: f64,
    /// The number of random assignments, where p is not exact.
    pub draws: Option<u64>,
    /// The seed that they came from, where p is not exact.
    pub seed: Option<u64>,
}

impl SignFlip {
    fn exact(p: f64) -> Self {
        Self { p: p.clamp(0.0, 1.0), draws: None, seed: None }
    }
}

/// A p that takes long to work out, as whoever keeps such values is asked for it: all that it depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    /// How it is worked out.
    pub way: &'static str,
    /// From which differences, in their order.
    pub differences: &'a [f64],
    /// From which seed.
    pub seed: u64,
}

/// Raised whenever [`sign_flip`] may give another p for the same question: what was kept of an older one is none of this one (a test holds it
/// against values).
pub const ENGINE: u32 = 1;

/// Whoever may know a p already, and works it out where it does not.
pub type Recall<'a> = dyn Fn(Wanted<'_>, &dyn Fn() -> f64) -> f64 + 'a;

/// Two-sided sign-flip test of "the differences are symmetric about 0", statistic |mean|; `seed` is used only for Monte Carlo. All
/// differences 0, or none at all: p = 1. `None` when a difference or their sum is not finite.
///
/// Source: Fisher (1935), The Design of Experiments, section 21; Good (2005), Permutation, Parametric and Bootstrap Tests. Monte Carlo p: Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9:39.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<SignFlip> {
    sign_flip_by(differences, seed, &|_, work_out| work_out())
}

/// The same, where `recall` is asked for every p that takes more than a look.
#[must_use]
pub fn sign_flip_by(differences: &[f64], seed: u64, recall: &Recall<'_>) -> Option<SignFlip> {
    let total: f64 = differences.iter().map(|d| d.abs()).sum();
    let observed = differences.iter().sum::<f64>().abs();
    if !total.is_finite() {
        return None;
    }
    let least = observed - TIE * total;
    if least <= 0.0 {
        return Some(SignFlip::exact(1.0));
    }
    let wanted = |way| Wanted { way, differences, seed };
    if let Some((steps, tail)) = on_grid(differences) {
        return Some(SignFlip::exact(recall(wanted("sign_flip grid"), &|| grid_tail(&steps, tail))));
    }
    // Sizes in order of size: the draws depend on neither the order of the cases nor on which side is called head.
    let mut sizes: Vec<f64> = differences.iter().map(|d| d.abs()).filter(|d| *d > 0.0).collect();
    sizes.sort_by(f64::total_cmp);
    if sizes.len() <= ENUMERATED_MAX {
        return Some(SignFlip::exact(recall(wanted("sign_flip enumerated"), &|| enumerated(&sizes, least))));
    }
    let draws = draws(sizes.len());
    let p = recall(wanted("sign_flip drawn"), &|| monte_carlo(&sizes, total, least, seed, draws));
    Some(SignFlip { p, draws: Some(draws), seed: Some(seed) })
}

/// The steps of the differences where all are whole multiples of a common one and the exact p is affordable, and how many sums are its tail.
fn on_grid(differences: &[f64]) -> Option<(Vec<i64>, u64)> {
    let changes: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let grid = grid(&changes)?;
    let steps: Vec<i64> = changes.iter().map(|d| (d * grid).round() as i64).collect();
    let width: u64 = steps.iter().map(|s| s.unsigned_abs()).sum();
    if width.checked_mul(steps.len() as u64)? > GRID_STEPS_MAX {
        return None;
    }
    let seen = steps.iter().sum::<i64>().unsigned_abs();
    let tail = width.checked_sub(seen)? / 2 + 1;
    Some((steps, tail))
}

/// Exact p over a grid: the distribution of the sum by adding one case at a time.
fn grid_tail(steps: &[i64], tail: u64) -> f64 {
    // ways[x]: the probability that the cases drawn with a plus have sizes that sum to x; the signed sum is then 2x - width.
    let mut ways = vec![1.0_f64];
    for step in steps {
        ways = add_case(&ways, step.unsigned_abs() as usize);
    }
    // From the outside in, so that small probabilities are not lost beside large ones; the other tail is the same by symmetry.
    2.0 * ways.iter().take(tail as usize).sum::<f64>()
}

/// The distribution after one more case of size `step` that counts or does not, each with probability a half.
fn add_case(ways: &[f64], step: usize) -> Vec<f64> {
    let mut next: Vec<f64> = ways.iter().map(|w| 0.5 * w).collect();
    next.resize(ways.len() + step, 0.0);
    for (to, from) in next.iter_mut().skip(step).zip(ways) {
        *to += 0.5 * from;
    }
    next
}

/// The number of steps in 1 for which every change is a whole number of steps, if there is one up to [`GRID_MAX`].
fn grid(changes: &[f64]) -> Option<f64> {
    let mut grid = 1.0_f64;
    for change in changes {
        let finer = (1..=1000_u32).map(f64::from).find(|k| is_whole(change * grid * k))?;
        grid *= finer;
        if grid > GRID_MAX {
            return None;
        }
    }
    // The early ones once more: what was whole on the coarse grid within rounding must be so on the fine one.
    changes.iter().all(|c| is_whole(c * grid)).then_some(grid)
}

/// Whether this is a whole number other than 0, up to the rounding of a few operations. Above a million no grid is affordable.
fn is_whole(x: f64) -> bool {
    (0.5..1e6).contains(&x.abs()) && (x - x.round()).abs() < 1e-9 * x.abs().max(1.0)
}

/// Exact p by counting the sums of all assignments of signs that reach `least`: all sums of each half (Horowitz and Sahni 1974), then
/// for each of one half those of the other that are large enough.
fn enumerated(sizes: &[f64], least: f64) -> f64 {
    let (one, other) = sizes.split_at(sizes.len() / 2);
    let mut other = signed_sums(other);
    other.sort_by(f64::total_cmp);
    let reach = |a: &f64| (other.len() - other.partition_point(|b| a + b < least)) as u64;
    let reaching: u64 = signed_sums(one).iter().map(reach).sum();
    2.0 * reaching as f64 / 2.0_f64.powi(sizes.len() as i32)
}

/// The sum under every assignment of signs.
fn signed_sums(sizes: &[f64]) -> Vec<f64> {
    sizes.iter().fold(vec![0.0], |sums, d| sums.iter().flat_map(|s| [s + d, s - d]).collect())
}

/// How many random assignments are drawn over `cases` that changed.
fn draws(cases: usize) -> u64 {
    (SIGNS_MAX / cases.max(1) as u64).clamp(DRAWS_MIN, DRAWS_MAX)
}

/// p over random assignments of signs; the observed one counts as one of them.
fn monte_carlo(sizes: &[f64], total: f64, least: f64, seed: u64, draws: u64) -> f64 {
    let mut random = SplitMix64(seed);
    let extreme = (0..draws).filter(|_| (2.0 * random.subset_sum(sizes) - total).abs() >= least).count();
    (1.0 + extreme as f64) / (1.0 + draws as f64)
}

/// SplitMix64: Steele, Lea and Flood (2014), OOPSLA, doi 10.1145/2660193.2660195, in the form of Vigna's public-domain splitmix64.c.
/// Written here because ten lines fix the numbers for ever; a crate's next version might draw others for the same seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The sum of a random subset: one bit for each size.
    fn subset_sum(&mut self, sizes: &[f64]) -> f64 {
        let mut sum = 0.0;
        for some in sizes.chunks(64) {
            let bits = self.next();
            for (at, size) in some.iter().enumerate() {
                sum += size * ((bits >> at) & 1) as f64;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, floats};
    use super::super::paired::exact_mcnemar;
    use super::*;
    use proptest::prelude::*;

    fn p(differences: &[f64]) -> f64 {
        sign_flip(differences, 1).unwrap().p
    }

    /// Every assignment, one after the other.
    fn brute_force(differences: &[f64]) -> f64 {
        let signed = |mask: u32| differences.iter().enumerate().map(|(i, d)| if mask >> i & 1 == 1 { *d } else { -d }).sum::<f64>();
        let observed = differences.iter().sum::<f64>().abs() - 1e-9;
        let extreme = (0..1_u32 << differences.len()).filter(|m| signed(*m).abs() >= observed).count();
        extreme as f64 / f64::from(1_u32 << differences.len())
    }

    /// Whatever changes one of these must raise [`ENGINE`].
    #[test]
    fn the_engine_is_the_one_that_kept_values_are_of() {
        let odd: Vec<f64> = (1..=40_u32).map(|n| f64::from(n).sqrt() - if n % 3 == 0 { 9.0 } else { 1.0 }).collect();
        let few: Vec<f64> = odd.iter().take(12).copied().collect();
        let drawn = sign_flip(&odd, super::super::paired::SEED).unwrap();
        assert_eq!((ENGINE, drawn.draws, drawn.p), (1, Some(9_999), 0.2871));
        assert_eq!((p(&few), p(&[1.0, 1.0, -0.5, 0.25, 1.0, 1.0])), (0.292_968_75, 0.093_75));
    }

    #[test]
    fn a_p_that_is_known_is_not_worked_out() {
        let asked = std::cell::RefCell::new(Vec::new());
        let recall = |wanted: Wanted<'_>, _: &dyn Fn() -> f64| {
            asked.borrow_mut().push((wanted.way, wanted.differences.len(), wanted.seed));
            0.25
        };
        let of = |differences: &[f64]| sign_flip_by(differences, 7, &recall).unwrap();
        let odd: Vec<f64> = (1..=40_u32).map(|n| f64::from(n).sqrt()).collect();
        assert_eq!((of(&odd).p, of(&odd).draws, of(&[1.0, 1.0]).p, of(&odd[1..9]).p), (0.25, Some(9_999), 0.25, 0.25));
        assert_eq!(of(&[1.0, -1.0]).p, 1.0);
        let ways = ["sign_flip drawn", "sign_flip drawn", "sign_flip grid", "sign_flip enumerated"];
        assert_eq!(asked.borrow().iter().map(|(way, ..)| *way).collect::<Vec<_>>(), ways);
    }

    #[test]
    fn the_computed_values() {
        for c in cases("sign_flip") {
            let got = sign_flip(&floats(&c, "differences"), 1).unwrap();
            assert_eq!(got.seed, None);
            close(got.p, float(&c, "p"), 1e-12);
        }
    }

    #[test]
    fn darwins_maize() {
        // Fisher (1935), section 21: of 32,768 assignments 835 sum to more than 314 and 28 to 314; two-sided 1,726 reach it.
        let maize = [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        close(p(&maize), 1726.0 / 32768.0, 1e-12);
    }

    #[test]
    fn nothing_changed_and_nothing_to_flip() {
        assert!((p(&[]) - 1.0).abs() < f64::EPSILON);
        assert!((p(&[0.0; 7]) - 1.0).abs() < f64::EPSILON);
        assert!((p(&[-1.0, 0.0, 0.0]) - 1.0).abs() < f64::EPSILON);
        assert!(sign_flip(&[f64::NAN], 1).is_none() && sign_flip(&[f64::INFINITY, 1.0], 1).is_none());
        assert!(sign_flip(&[f64::MAX, f64::MAX], 1).is_none());
    }

    #[test]
    fn hundreds_of_pass_rates_are_exact_and_the_rest_is_seeded() {
        let rates: Vec<f64> = (0..400).map(|i| f64::from(i % 7 - 3) / 10.0 + f64::from(i % 3) / 30.0).collect();
        assert_eq!(sign_flip(&rates, 1).unwrap().seed, None);
        let odd: Vec<f64> = (1..=40).map(|i| f64::from(i).sqrt() * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let got = sign_flip(&odd, 7).unwrap();
        assert_eq!((got.seed, got.draws), (Some(7), Some(DRAWS_MAX)));
        assert_eq!(sign_flip(&odd, 7), Some(got));
        let all_up: Vec<f64> = odd.iter().map(|d| d.abs()).collect();
        assert!((p(&all_up) - 1e-4).abs() < 1e-12, "drawn p is never 0: what was seen counts as one draw");
        let normal = 2.0
            * (1.0
                - statrs::distribution::ContinuousCDF::cdf(
                    &statrs::distribution::Normal::standard(),
                    odd.iter().sum::<f64>() / odd.iter().map(|d| d * d).sum::<f64>().sqrt(),
                ));
        assert!((got.p - normal).abs() < 0.015, "{} beside the normal limit {normal}", got.p);
    }

    #[test]
    fn random_numbers_are_the_reference_ones() {
        // The first outputs of splitmix64.c for the seed 1234567, as listed at rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64.
        let mut random = SplitMix64(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn monte_carlo_finds_what_the_grid_counts() {
        let changes: Vec<f64> = (0..60).map(|i| f64::from(i % 5 + 1) / if i % 3 == 0 { -5.0 } else { 5.0 }).collect();
        let sizes: Vec<f64> = changes.iter().map(|c| c.abs()).collect();
        let (total, observed) = (sizes.iter().sum::<f64>(), changes.iter().sum::<f64>());
        let (steps, tail) = on_grid(&changes).unwrap();
        let exact = grid_tail(&steps, tail);
        let drawn = monte_carlo(&sizes, total, observed - TIE * total, 3, draws(sizes.len()));
        assert!(exact < 0.05 && (exact - drawn).abs() < 0.008, "{exact} {drawn}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn exact_is_brute_force_on_the_grid_and_off_it(tenths in proptest::collection::vec(-10..=10_i32, 0..11), off in 0.0..1.0_f64) {
            let on: Vec<f64> = tenths.iter().map(|t| f64::from(*t) / 10.0).collect();
            prop_assert!((p(&on) - brute_force(&on)).abs() < 1e-12);
            let off: Vec<f64> = on.iter().enumerate().map(|(i, d)| d + off * (i as f64 + 0.1).sqrt()).collect();
            prop_assert!((p(&off) - brute_force(&off)).abs() < 1e-12);
            let sizes: Vec<f64> = on.iter().map(|d| d.abs()).filter(|d| *d > 0.0).collect();
            let observed = on.iter().sum::<f64>().abs() - 1e-9;
            if observed > 0.0 {
                prop_assert!((enumerated(&sizes, observed) - p(&on)).abs() < 1e-12, "both exact ways agree");
            }
        }

        #[test]
        fn it_is_a_probability_and_does_not_see_order_or_sides(mut d in proptest::collection::vec(-1.0..1.0_f64, 0..40)) {
            let got = p(&d);
            prop_assert!((0.0..=1.0).contains(&got));
            d.reverse();
            prop_assert!((p(&d) - got).abs() < 1e-3);
            d.iter_mut().for_each(|x| *x = -*x);
            prop_assert!((p(&d) - got).abs() < 1e-3);
        }

        #[test]
        fn with_whole_cases_it_is_the_exact_mcnemar_test(better in 0..60_usize, worse in 0..60_usize) {
            let d: Vec<f64> = std::iter::repeat_n(1.0, better).chain(std::iter::repeat_n(-1.0, worse)).collect();
            prop_assert!((p(&d) - exact_mcnemar(better as u64, worse as u64)).abs() < 1e-12);
        }

        #[test]
        fn no_values_panic(values in proptest::collection::vec(any::<f64>(), 0..6)) {
            let _ = sign_flip(&values, 0);
        }
    }
}
