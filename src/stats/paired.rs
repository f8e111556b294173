//! Head against base, paired by case: the evidence of a comparison.
//!
//! Promises: the unit is the case. Ten attempts of one case are one observation, so "10 cases x 10 epochs, one case goes 10/10 to
//! 0/10" is n = 10 and p = 1. One attempt each with plain pass or fail: exact McNemar and Agresti-Min; anything else: sign flips of
//! the case differences and a Student interval. Where cases share groups, a group is what can turn: the signs of whole groups are flipped, and
//! the interval is clustered by group. The interval holds the difference. Swapping the sides turns the signs and changes no p.
//!
//! Deliberately not here: pairing itself, whether the two sides may be compared, and corrections for many rows.

use super::exact;
use super::grouped::{Groups, Spread};
use super::intervals::{Moments, agresti_min_at, pseudo_cases_at, t_quantile};
use super::power::{POWER, mde_discordance, mde_error, mde_second_moment, mde_variance};
use super::sign_flip::{Recall, SignFlip, sign_flip_by};
use super::tango;
use super::{Interval, Method, ONE_SIDED, TWO_SIDED, Word, Z_ONE_SIDED, Z_TWO_SIDED};
use serde::{Deserialize, Serialize};

/// The seed of every Monte Carlo test (the digits of pi): two readers of the same data see the same p.
pub const SEED: u64 = 3_141_592_653_589_793_238;

/// Head and base that differ by less than this share of the larger are equal: means of the same scores added in another order.
const ROUNDING: f64 = 1e-12;

/// Cases that changed from which on their spread is taken at its word.
const SPREAD_MIN: u64 = 10;

/// One case on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedCase {
    /// Mean score at the head; a pass rate in `[0, 1]`, or any finite number.
    pub head: f64,
    /// Mean score at the base.
    pub base: f64,
    /// Counted attempts behind `head`.
    pub head_attempts: u64,
    /// Counted attempts behind `base`.
    pub base_attempts: u64,
    /// The group that it comes in, by a number of the caller's; a case without one stands for itself.
    pub group: Option<u64>,
}

impl PairedCase {
    /// A case with a counted attempt on one side only is no pair; its score there means nothing.
    fn is_pair(&self) -> bool {
        self.head_attempts > 0 && self.base_attempts > 0
    }

    fn difference(&self) -> f64 {
        let d = self.head - self.base;
        let noise = ROUNDING * self.head.abs().max(self.base.abs());
        // An infinite score must stay one: infinity is no rounding error of itself.
        if d.is_finite() && d.abs() <= noise { 0.0 } else { d }
    }

    fn is_bounded(&self) -> bool {
        (0.0..=1.0).contains(&self.head) && (0.0..=1.0).contains(&self.base)
    }

    /// One attempt each, and each passed or failed.
    fn is_plain(&self) -> bool {
        let whole = |score: f64| score == 0.0 || score == 1.0;
        self.head_attempts == 1 && self.base_attempts == 1 && whole(self.head) && whole(self.base)
    }
}

/// The evidence about head - base over paired cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedResult {
    /// Mean over the cases of head - base.
    pub difference: f64,
    /// Its 95% interval; cut to `[-1, 1]` where all scores are in `[0, 1]`. Absent only for other scores without spread (one case, or
    /// all differences the same).
    pub interval: Option<Interval>,
    /// How the interval was computed.
    pub interval_method: Option<Method>,
    /// Two-sided p of "no difference".
    pub p: f64,
    /// How p was computed.
    pub test: Method,
    /// Cases that form a pair.
    pub n: u64,
    /// Cases that scored higher at the head (McNemar's one discordant count).
    pub better: u64,
    /// Cases that scored higher at the base (the other one).
    pub worse: u64,
    /// Groups that the errors were clustered by; `None` where no two cases share one.
    pub groups: Option<u64>,
    /// What could turn and did: cases that changed, or groups whose changes do not cancel out. With k of them no p is below 2 / 2^k.
    pub turned: u64,
    /// The difference that so many cases find with 80% power (see [`super::power`]); `None` where not even the largest possible one.
    pub mde: Option<f64>,
    /// How that was computed.
    pub mde_method: Option<Method>,
    /// Random assignments drawn, where p is by Monte Carlo.
    pub draws: Option<u64>,
    /// Their seed, where p is by Monte Carlo.
    pub seed: Option<u64>,
}

impl PairedResult {
    /// The verdict by [`Word::of`], on the p of this comparison alone.
    #[must_use]
    pub fn word(&self) -> Word {
        Word::of(self.difference, self.interval, self.p)
    }
}

/// The paired evidence over all cases that have a counted attempt on both sides; the others are left out and `n` says so. `None` when
/// no case is a pair and when a score (or a sum of them) is not finite.
///
/// Without spread in scores of `[0, 1]` (one case, or every case changed by the same amount) Student's interval does not exist, and where fewer
/// than ten cases changed and most did not it is too short (89% instead of 95% by a simulation); then Agresti and Min's two pseudo-cases give one,
/// named `pseudo_cases`, which is never of width 0.
#[must_use]
pub fn paired(cases: &[PairedCase]) -> Option<PairedResult> {
    paired_by(cases, &|_, work_out| work_out())
}

/// The same, where `recall` is asked for a p that takes long to work out.
#[must_use]
pub fn paired_by(cases: &[PairedCase], recall: &Recall<'_>) -> Option<PairedResult> {
    let pairs = Pairs::of(cases)?;
    let found = match &pairs.groups {
        Some(groups) => Some(sign_flip_by(&groups.sums(), SEED, recall)?),
        None if pairs.plain => None,
        None => Some(sign_flip_by(&pairs.differences, SEED, recall)?),
    };
    let interval = pairs.interval(Side::Two);
    let mde = pairs.mde();
    let p = found.map_or_else(|| exact_mcnemar(pairs.better, pairs.worse), |f| f.p);
    Some(PairedResult {
        difference: pairs.mean,
        interval: interval.map(|i| i.0),
        interval_method: interval.map(|i| i.1),
        p,
        test: test_name(found, pairs.groups.is_some()),
        n: pairs.n(),
        better: pairs.better,
        worse: pairs.worse,
        groups: pairs.groups.as_ref().map(Groups::count),
        turned: pairs.groups.as_ref().map_or(pairs.better + pairs.worse, Groups::turned),
        mde: mde.map(|m| m.0),
        mde_method: mde.map(|m| m.1),
        draws: found.and_then(|f| f.draws),
        seed: found.and_then(|f| f.seed),
    })
}

/// How many cases that come in groups count as one: the variance of the mean difference over what it were if they came alone, at least 1. Where
/// nothing changed, or there is one group, a group counts as one case. `None` where no two cases share a group.
///
/// Source: Kish (1965), Survey Sampling, section 8.2 (the design effect).
#[must_use]
pub fn design_effect(cases: &[PairedCase]) -> Option<f64> {
    let pairs = Pairs::of(cases)?;
    let groups = pairs.groups.as_ref()?;
    let found = groups.spread().and_then(|spread| pairs.inflation(spread));
    Some(found.unwrap_or_else(|| pairs.n() as f64 / groups.count() as f64))
}

fn test_name(found: Option<SignFlip>, grouped: bool) -> Method {
    match (found.map(|found| found.seed.is_some()), grouped) {
        (None, _) => Method::ExactMcnemar,
        (Some(false), false) => Method::SignFlip,
        (Some(true), false) => Method::SignFlipMonteCarlo,
        (Some(false), true) => Method::GroupSignFlip,
        (Some(true), true) => Method::GroupSignFlipMonteCarlo,
    }
}

/// McNemar's exact two-sided p from the two discordant counts: `min(1, 2 * sum_{k <= min(b,c)} C(b+c,k) / 2^(b+c))`; 1 when both are 0.
/// Relative error below 1e-11 up to b + c = 1e6; the cost grows with the square root of b + c; what is below 1e-300 may become 0.
///
/// Source: McNemar (1947), Psychometrika 12:153-157; the exact conditional test of Fagerland, Lydersen and Laake (2013), BMC Med. Res.
/// Methodol. 13:91.
#[must_use]
pub fn exact_mcnemar(better: u64, worse: u64) -> f64 {
    let total = better.saturating_add(worse);
    let few = better.min(worse);
    let middle = total / 2;
    // Binomial weights relative to the middle one, walked outwards by their ratio: no factorial, no logarithm, nothing cancels.
    let (mut weight, mut half, mut tail) = (1.0_f64, 0.0_f64, 0.0_f64);
    for k in (0..=middle).rev() {
        half += weight;
        if k <= few {
            tail += weight;
        }
        weight *= k as f64 / (total - k + 1) as f64;
        if weight == 0.0 || (k <= few && weight < tail * 1e-18) {
            break;
        }
    }
    // An even total has one middle weight, which both halves would count.
    let all = 2.0 * half - if total.is_multiple_of(2) { 1.0 } else { 0.0 };
    (2.0 * tail / all).min(1.0)
}

/// A two-sided 95% interval, or one whose lower end is the one-sided 95% bound.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Two,
    One,
}

impl Side {
    fn z(self) -> f64 {
        if self == Self::Two { Z_TWO_SIDED } else { Z_ONE_SIDED }
    }

    fn below(self) -> f64 {
        if self == Self::Two { TWO_SIDED } else { ONE_SIDED }
    }
}

/// The pairs among the cases, summed up.
pub(crate) struct Pairs {
    differences: Vec<f64>,
    mean: f64,
    better: u64,
    worse: u64,
    /// All scores in `[0, 1]`.
    bounded: bool,
    /// All pairs are one attempt each, passed or failed.
    plain: bool,
    /// Their groups, where some share one.
    groups: Option<Groups>,
}

impl Pairs {
    /// `None` when there are none or their mean is not finite.
    pub(crate) fn of(cases: &[PairedCase]) -> Option<Self> {
        let pairs: Vec<&PairedCase> = cases.iter().filter(|c| c.is_pair()).collect();
        let differences: Vec<f64> = pairs.iter().map(|c| c.difference()).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let count = |wanted: fn(f64) -> bool| differences.iter().filter(|d| wanted(**d)).count() as u64;
        let (better, worse) = (count(|d| d > 0.0), count(|d| d < 0.0));
        let (bounded, plain) = (pairs.iter().all(|c| c.is_bounded()), pairs.iter().all(|c| c.is_plain()));
        let groups = Groups::of(pairs.iter().map(|case| case.group).zip(differences.iter().copied()));
        mean.is_finite().then_some(Self { differences, mean, better, worse, bounded, plain, groups })
    }

    pub(crate) fn n(&self) -> u64 {
        self.differences.len() as u64
    }

    /// The interval of the mean difference and its method; `None` for unbounded scores without spread, and for one group alone.
    pub(crate) fn interval(&self, side: Side) -> Option<(Interval, Method)> {
        if let Some(groups) = &self.groups {
            return self.clustered(groups, side);
        }
        if self.plain {
            return Some((agresti_min_at(self.better, self.worse, self.n(), side.z())?, Method::AgrestiMin));
        }
        let moments = Moments::of(&self.differences)?;
        let student = moments.student_t_at(side.below());
        match (student, self.bounded) {
            (Some(_), true) if self.few_changed() => Some((self.pseudo_cases(side, moments.sd.is_some())?, Method::PseudoCases)),
            (Some(i), true) => Some((i.clamped(-1.0, 1.0), Method::StudentT)),
            (Some(i), false) => Some((i, Method::StudentT)),
            (None, true) => Some((self.pseudo_cases(side, false)?, Method::PseudoCases)),
            (None, false) => None,
        }
    }

    /// Whether most cases stayed as they were and so few changed that their spread is a guess, which Student's interval takes at its word.
    fn few_changed(&self) -> bool {
        let changed = self.better + self.worse;
        changed < SPREAD_MIN && 2 * changed < self.n()
    }

    /// Agresti and Min's two pseudo-cases, where cases `spread` as large as the largest change that was seen, and with Student's t for z.
    fn pseudo_cases(&self, side: Side, spread: bool) -> Option<Interval> {
        let sum: f64 = self.differences.iter().sum();
        let n = self.n() as f64;
        if !spread {
            return pseudo_cases_at(sum, self.squares(), n, side.z());
        }
        let largest = self.differences.iter().fold(0.0_f64, |largest, d| largest.max(d.abs()));
        let tail = (t_quantile(side.below(), n - 1.0)? / side.z()).powi(2);
        let found = pseudo_cases_at(sum / largest / tail, self.squares() / (largest * largest) / tail, n / tail, side.z())?;
        Interval::new(found.low * largest, found.high * largest)
    }

    /// Agresti and Min's interval over the effective number of cases: it does not get too short where few cases changed, as Student's does.
    fn clustered(&self, groups: &Groups, side: Side) -> Option<(Interval, Method)> {
        let spread = groups.spread()?;
        if !self.bounded {
            let half = t_quantile(side.below(), spread.degrees)? * spread.variance.sqrt();
            let interval = Interval::new(self.mean - half, self.mean + half).filter(|_| half > ROUNDING * self.mean.abs());
            return Some((interval?, Method::ClusteredT));
        }
        let effect = self.design_effect(groups, spread, side)?;
        let sum: f64 = self.differences.iter().sum();
        let interval = pseudo_cases_at(sum / effect, self.squares() / effect, self.n() as f64 / effect, side.z())?;
        Some((interval, Method::ClusteredAgrestiMin))
    }

    /// How many cases count as one: the variance of the mean over what it were without groups, at least 1, and Student's t over z for the few
    /// groups that it is from. Where all cases differ by as much a group counts as one case.
    ///
    /// Source: Korn and Graubard (1998), Survey Methodology 24:193-201.
    fn design_effect(&self, groups: &Groups, spread: Spread, side: Side) -> Option<f64> {
        let Some(effect) = self.inflation(spread) else { return Some(self.n() as f64 / groups.count() as f64) };
        let tail = t_quantile(side.below(), spread.degrees)? / side.z();
        Some(effect * tail * tail)
    }

    /// The variance of the mean over what it were without groups, at least 1. `None` where all cases differ by as much.
    fn inflation(&self, spread: Spread) -> Option<f64> {
        let n = self.n() as f64;
        let apart = self.squares() / n - self.mean * self.mean;
        (apart > ROUNDING).then(|| (spread.variance * n / apart).max(1.0))
    }

    /// The one-sided 95% bounds of the difference, and their method. `None` as [`Self::interval`].
    pub(crate) fn bounds(&self) -> Option<(Interval, Method)> {
        let side = Side::One;
        if !self.bounded {
            return self.interval(side);
        }
        let units = self.groups.as_ref().map_or(self.n(), Groups::count);
        if self.better + self.worse == 0 {
            let most = exact::upper_bound(0, units)?;
            return Some((Interval::new(-most, most)?, Method::ClopperPearson));
        }
        let (effect, method) = match &self.groups {
            Some(groups) => (self.design_effect(groups, groups.spread()?, side)?, Method::ClusteredTangoScore),
            None => (1.0, Method::TangoScore),
        };
        let (sum, squares) = (self.differences.iter().sum::<f64>(), self.squares());
        // Of whole cases that turn these are how many did so in each direction.
        let (better, worse) = ((squares + sum) / 2.0, (squares - sum) / 2.0);
        Some((tango::bounds(better / effect, worse / effect, self.n() as f64 / effect, side.z())?, method))
    }

    fn squares(&self) -> f64 {
        self.differences.iter().map(|d| d * d).sum()
    }

    fn mde(&self) -> Option<(f64, Method)> {
        // The formulas are asymptotic, the test is exact: too few cases cannot reject at all, and a still set says nothing of how it would turn.
        let least = exact::least_detectable(self.n(), POWER)?;
        let (found, method) = match &self.groups {
            Some(groups) => self.clustered_mde(groups)?,
            None => self.formula()?,
        };
        Some((if self.bounded { found.max(least) } else { found }, method)).filter(|(found, _)| !self.bounded || *found <= 1.0)
    }

    fn clustered_mde(&self, groups: &Groups) -> Option<(f64, Method)> {
        exact::least_detectable(groups.count(), POWER)?;
        let spread = groups.spread()?;
        // Without spread a group is a case: what turns, turns whole.
        let still = || mde_second_moment(self.mean * self.mean, groups.count()).filter(|_| self.bounded);
        let found = if spread.variance > ROUNDING * ROUNDING { mde_error(spread.variance.sqrt(), spread.degrees) } else { still() };
        Some((found?, Method::ClusteredTPower))
    }

    fn formula(&self) -> Option<(f64, Method)> {
        let connor = |found: Option<f64>| Some((found?, Method::McnemarPower));
        if self.plain {
            return connor(mde_discordance(self.better, self.worse, self.n()));
        }
        match (Moments::of(&self.differences)?.sd, self.bounded) {
            (Some(sd), bounded) => mde_variance(sd, self.n()).filter(|m| !bounded || *m <= 1.0).map(|found| (found, Method::PairedTPower)),
            (None, true) => connor(mde_second_moment(self.squares() / self.n() as f64, self.n())),
            (None, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cases, close, float, floats, int, same_interval};
    use super::*;
    use proptest::prelude::*;

    fn case(head: f64, base: f64, attempts: u64) -> PairedCase {
        PairedCase { head, base, head_attempts: attempts, base_attempts: attempts, group: None }
    }

    /// `both` passed on both sides, `better` at the head only, `worse` at the base only.
    fn plain(both: usize, better: usize, worse: usize) -> Vec<PairedCase> {
        let of = |head, base, n| std::iter::repeat_n(case(head, base, 1), n);
        of(1.0, 1.0, both).chain(of(1.0, 0.0, better)).chain(of(0.0, 1.0, worse)).collect()
    }

    #[test]
    fn mcnemar_is_what_scipy_says() {
        for c in cases("mcnemar") {
            close(exact_mcnemar(int(&c, "b"), int(&c, "c")), float(&c, "p"), 1e-11);
        }
        assert!((exact_mcnemar(0, 0) - 1.0).abs() < f64::EPSILON);
        assert!((exact_mcnemar(1, 0) - 1.0).abs() < f64::EPSILON);
        assert!(exact_mcnemar(1_000_000, 0) < 1e-300);
    }

    #[test]
    fn mcnemar_is_what_fagerland_published() {
        // Fagerland, Lydersen and Laake (2013), table 1 (airway hyper-responsiveness, 1 and 7 discordant): exact conditional p = 0.070.
        assert!((exact_mcnemar(1, 7) - 0.070).abs() < 5e-4);
    }

    #[test]
    fn ten_attempts_of_a_case_are_one_observation() {
        let mut all = vec![case(1.0, 1.0, 10); 9];
        all.push(case(0.0, 1.0, 10));
        let got = paired(&all).unwrap();
        assert_eq!((got.n, got.better, got.worse, got.test), (10, 0, 1, Method::SignFlip));
        assert!((got.p - 1.0).abs() < f64::EPSILON && (got.difference + 0.1).abs() < 1e-12);
        assert_eq!(got.word(), Word::Inconclusive);
        assert!(got.interval.unwrap().contains(0.0));
    }

    #[test]
    fn every_case_lost_is_confirmed_however_often_it_was_tried() {
        for attempts in [1, 10] {
            let got = paired(&[case(0.0, 1.0, attempts); 8]).unwrap();
            assert!((got.p - 2.0 / 256.0).abs() < 1e-12 && (got.difference + 1.0).abs() < 1e-12);
            let interval = got.interval.unwrap();
            assert!(interval.low <= -1.0 && interval.high > -1.0 && interval.high < 0.0, "not of width 0: {interval:?}");
            assert_eq!(got.word(), Word::Confirmed);
            let method = if attempts == 1 { Method::AgrestiMin } else { Method::PseudoCases };
            assert_eq!(got.interval_method, Some(method));
        }
    }

    #[test]
    fn plain_passes_take_mcnemar_and_agresti_min() {
        let got = paired(&plain(100, 20, 40)).unwrap();
        assert_eq!((got.test, got.interval_method), (Method::ExactMcnemar, Some(Method::AgrestiMin)));
        assert_eq!((got.n, got.better, got.worse, got.seed), (160, 20, 40, None));
        close(got.p, exact_mcnemar(20, 40), 1e-15);
        assert_eq!(got.word(), Word::Confirmed);
        let with_epochs: Vec<PairedCase> = plain(100, 20, 40).iter().map(|c| PairedCase { head_attempts: 3, ..*c }).collect();
        let got = paired(&with_epochs).unwrap();
        assert_eq!((got.test, got.interval_method), (Method::SignFlip, Some(Method::StudentT)));
        close(got.p, exact_mcnemar(20, 40), 1e-11);
    }

    #[test]
    fn graded_scores_take_sign_flips_and_student() {
        for c in cases("paired") {
            let (head, base) = (floats(&c, "head"), floats(&c, "base"));
            let all: Vec<PairedCase> = head.iter().zip(&base).map(|(h, b)| case(*h, *b, 1)).collect();
            let got = paired(&all).unwrap();
            close(got.p, float(&c, "p"), 1e-12);
            close(got.difference, float(&c, "difference"), 1e-9);
            same_interval(got.interval.unwrap(), float(&c, "low"), float(&c, "high"));
            assert_eq!(got.test, Method::SignFlip);
        }
    }

    #[test]
    fn cases_that_turn_together_count_as_one() {
        let grouped = |turned: &[usize]| -> Vec<PairedCase> {
            (0..20)
                .map(|at| PairedCase { group: Some(at as u64 / 4), ..case(if turned.contains(&at) { 0.0 } else { 1.0 }, 1.0, 1) })
                .collect()
        };
        // Of five groups one turned whole: four cases count as one, times 5/4 for the mean that is lost.
        close(design_effect(&grouped(&[0, 1, 2, 3])).unwrap(), 5.0, 1e-9);
        close(design_effect(&grouped(&[0, 4, 8, 12, 16])).unwrap(), 1.0, 1e-12);
        close(design_effect(&grouped(&[])).unwrap(), 4.0, 1e-12);
        assert!(design_effect(&plain(9, 1, 1)).is_none() && design_effect(&[]).is_none());
    }

    #[test]
    fn one_case_says_little() {
        let got = paired(&[case(0.0, 1.0, 10)]).unwrap();
        let interval = got.interval.unwrap();
        assert!(interval.low <= -1.0 && interval.high > 0.0 && got.mde.is_none());
        assert_eq!((got.n, got.word()), (1, Word::Inconclusive));
        assert!(paired(&[case(12.0, 15.0, 1)]).unwrap().interval.is_none(), "no bounds, no spread: no interval");
    }

    #[test]
    fn unpaired_cases_are_left_out_and_nonsense_is_none() {
        let mut all = plain(3, 0, 1);
        all.push(PairedCase { head: f64::NAN, base: 1.0, head_attempts: 0, base_attempts: 1, group: None });
        assert_eq!(paired(&all).unwrap().n, 4);
        assert!(paired(&[]).is_none());
        assert!(paired(&[case(f64::NAN, 1.0, 1)]).is_none());
        assert!(paired(&[case(f64::INFINITY, 1.0, 1), case(0.0, 1.0, 1)]).is_none());
        assert!(paired(&[case(f64::MAX, f64::MIN, 1)]).is_none());
    }

    #[test]
    fn rounding_is_not_a_difference() {
        let got = paired(&[case(0.1 + 0.2, 0.3, 10), case(0.5, 0.5, 10)]).unwrap();
        assert_eq!((got.better, got.worse), (0, 0));
        assert!((got.p - 1.0).abs() < f64::EPSILON);
    }

    fn rates() -> impl Strategy<Value = Vec<PairedCase>> {
        let one = (1..6_u64, 1..6_u64, 0.0..=1.0_f64, 0.0..=1.0_f64).prop_map(|(h, b, x, y)| PairedCase {
            head: (x * h as f64).round() / h as f64,
            base: (y * b as f64).round() / b as f64,
            head_attempts: h,
            base_attempts: b,
            group: None,
        });
        proptest::collection::vec(one, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn evidence_is_sane_and_turns_with_its_sides(all in rates()) {
            let got = paired(&all).unwrap();
            let swapped: Vec<PairedCase> = all.iter().map(|c| PairedCase {
                head: c.base, base: c.head, head_attempts: c.base_attempts, base_attempts: c.head_attempts, group: c.group,
            }).collect();
            let other = paired(&swapped).unwrap();
            let (interval, mirror) = (got.interval.unwrap(), other.interval.unwrap());
            prop_assert!((0.0..=1.0).contains(&got.p) && interval.contains(got.difference));
            prop_assert!(interval.low >= -1.0 && interval.high <= 1.0 && interval.low < interval.high);
            prop_assert!((got.p - other.p).abs() < 1e-12 && (got.difference + other.difference).abs() < 1e-12);
            prop_assert!((interval.low + mirror.high).abs() < 1e-9 && (interval.high + mirror.low).abs() < 1e-9);
            prop_assert_eq!((got.better, got.worse, got.word()), (other.worse, other.better, other.word()));
        }

        #[test]
        fn mcnemar_is_a_symmetric_falling_probability(b in 0..3000_u64, c in 0..3000_u64) {
            let p = exact_mcnemar(b, c);
            prop_assert!((0.0..=1.0).contains(&p) && (p - exact_mcnemar(c, b)).abs() < 1e-15);
            let (few, many) = (b.min(c), b.max(c));
            prop_assert!(exact_mcnemar(few, many + 1) <= p, "one more on the larger side is more evidence");
        }

        #[test]
        fn no_scores_panic(scores in proptest::collection::vec((any::<f64>(), any::<f64>(), 0..3_u64), 0..5)) {
            let all: Vec<PairedCase> = scores.iter().map(|(h, b, n)| case(*h, *b, *n)).collect();
            if let Some(got) = paired(&all) {
                prop_assert!((0.0..=1.0).contains(&got.p) && got.difference.is_finite());
            }
        }
    }
}
