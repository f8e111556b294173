//! How many cases and attempts a difference takes, from what the history says of an evaluation.
//!
//! Promises: cases are the unit; noise inside a case and changes between runs are told apart; no spread is ever taken to be 0 for want of data.
//! Does not: read the history, or say what it costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{evidence::paired_case, outcome::Counts};
use crate::stats::{self, PairedCase};

/// Attempts a case that are tried in search of a plan.
pub const ATTEMPTS_MAX: u64 = 100;

/// What the history says of how an evaluation's cases vary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The variance of one attempt at a case, over the cases.
    pub within: f64,
    /// Where that is from.
    pub within_from: Source,
    /// The variance over the cases of how they changed from one run to the next, without the noise of their attempts.
    pub between: f64,
    /// Cases times pairs of neighbouring runs that this is from.
    pub pairs: u64,
    /// How many cases count as one, where they come in groups: the mean over pairs of neighbouring runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design_effect: Option<f64>,
}

/// Where the variance inside a case is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Several attempts at a case in one run.
    Attempts,
    /// One attempt in each of several runs: a change between the runs counts as noise.
    Runs,
    /// One attempt at each case, once: the most that the rate allows.
    Rate,
}

/// What is to be shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// That the rates differ, where they differ by so much.
    Difference(f64),
    /// That the rate is at most so much worse, where nothing differs.
    Margin(f64),
}

impl Spread {
    /// The spread that `runs` show: for each run, oldest first, the counts of each case. None where nothing was counted.
    #[must_use]
    pub fn of<C: Ord>(runs: &[BTreeMap<C, Counts>]) -> Option<Self> {
        let (within, within_from) = within(runs)?;
        let (between, pairs) = between(runs, within);
        Some(Self { within, within_from, between, pairs, design_effect: None })
    }

    /// With the groups that its cases come in. Where no two neighbouring runs say how they change, a group counts as one case.
    #[must_use]
    pub fn in_groups<C: Ord>(self, runs: &[BTreeMap<C, Counts>], groups: &BTreeMap<C, String>) -> Self {
        let numbers: BTreeMap<&str, u64> = groups.values().map(String::as_str).zip(0..).collect();
        let pair = |case: &C, was: Counts, is: Counts| {
            let group = groups.get(case).and_then(|name| numbers.get(name.as_str())).copied();
            Some(PairedCase { group, ..paired_case(&(is, was))? })
        };
        let of = |was: &BTreeMap<C, Counts>, is: &BTreeMap<C, Counts>| {
            let pairs: Vec<PairedCase> = was.iter().filter_map(|(case, was)| pair(case, *was, *is.get(case)?)).collect();
            stats::design_effect(&pairs)
        };
        let found = mean(runs.windows(2).filter_map(|two| if let [was, is] = two { of(was, is) } else { None }));
        // One run held against itself: nothing changed.
        Self { design_effect: found.or_else(|| runs.iter().rev().find_map(|run| of(run, run))), ..self }
    }

    /// With numbers as they are shown.
    #[must_use]
    pub fn shown(self) -> Self {
        let short = |value: f64| (value * 1e5).round() / 1e5;
        Self { within: short(self.within), between: short(self.between), design_effect: self.design_effect.map(short), ..self }
    }

    /// The variance of a case's difference between two runs of `attempts` attempts each.
    ///
    /// Source: Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640, section 4: omega^2 + sigma_A^2/K_A + sigma_B^2/K_B. The history
    /// cannot say how the cases would take a change that has not happened, so omega^2 is at least that of the hardest: whole cases that turn,
    /// `d - d^2` for a difference d. Where nothing is to differ, it is at least that of one case more than was seen.
    #[must_use]
    pub fn variance(self, aim: Aim, attempts: u64) -> f64 {
        let least = match aim {
            Aim::Difference(difference) => difference - difference * difference,
            Aim::Margin(_) => 1.0 / (self.pairs as f64 + 2.0),
        };
        self.between.max(least) + 2.0 * self.within / attempts.max(1) as f64
    }

    /// The cases that `aim` takes at so many attempts each.
    #[must_use]
    pub fn cases(self, aim: Aim, power: f64, attempts: u64) -> Option<u64> {
        let cases = self.alone(aim, power, attempts)?;
        Some(self.design_effect.map_or(cases, |effect| (cases as f64 * effect * (1.0 - 1e-12)).ceil() as u64))
    }

    /// The same of cases that come alone.
    fn alone(self, aim: Aim, power: f64, attempts: u64) -> Option<u64> {
        let variance = self.variance(aim, attempts);
        match aim {
            // With few cases the exact test asks for more than the formula knows.
            Aim::Difference(difference) => {
                let least = stats::exact::cases_that_turn(difference, power)?;
                stats::cases_to_detect(difference, variance, power, attempts <= 1).map(|cases| cases.max(least))
            }
            Aim::Margin(margin) => {
                let least = stats::exact::cases_without_change(margin)?;
                stats::cases_for_margin(margin, variance, power).map(|cases| cases.max(least))
            }
        }
    }

    /// The fewest attempts a case for which the `exist`ing cases are enough, with the cases that are needed; where none is, one attempt.
    #[must_use]
    pub fn plan(self, aim: Aim, power: f64, exist: u64) -> (u64, Option<u64>) {
        let fits = |attempts: &u64| self.cases(aim, power, *attempts).is_some_and(|cases| cases <= exist);
        let attempts = (1..=ATTEMPTS_MAX).find(fits).unwrap_or(1);
        (attempts, self.cases(aim, power, attempts))
    }
}

/// The mean over cases of the unbiased variance of one attempt, `c(n-c) / (n(n-1))` of c passes in n attempts.
fn within<C: Ord>(runs: &[BTreeMap<C, Counts>]) -> Option<(f64, Source)> {
    let variance = |counts: Counts| Some(stats::flip_rate(counts.passed.into(), counts.counted().into())? / 2.0);
    if let Some(found) = mean(runs.iter().flat_map(BTreeMap::values).filter_map(|counts| variance(*counts))) {
        return Some((found, Source::Attempts));
    }
    let mut pooled = BTreeMap::<&C, Counts>::new();
    for (case, counts) in runs.iter().flatten() {
        let sum = pooled.entry(case).or_default();
        *sum = sum.plus(*counts);
    }
    if let Some(found) = mean(pooled.values().filter_map(|counts| variance(*counts))) {
        return Some((found, Source::Runs));
    }
    let rate = mean(pooled.values().filter_map(|counts| counts.rate()).map(super::outcome::Rate::value))?;
    // A rate of 0 or 1 over n cases is a case short of saying that nothing varies.
    let rate = rate.clamp(1.0 / (pooled.len() as f64 + 2.0), 1.0 - 1.0 / (pooled.len() as f64 + 2.0));
    Some((rate * (1.0 - rate), Source::Rate))
}

/// The variance over cases of the change between neighbouring runs, less the noise of their attempts; and over how many changes.
fn between<C: Ord>(runs: &[BTreeMap<C, Counts>], within: f64) -> (f64, u64) {
    let (mut squares, mut degrees, mut noise, mut pairs) = (0.0, 0.0, 0.0, 0_u64);
    for two in runs.windows(2) {
        let [was, is] = two else { continue };
        let changes: Vec<(f64, f64)> = was.iter().filter_map(|(case, was)| change(*was, *is.get(case)?, within)).collect();
        let Some(middle) = mean(changes.iter().map(|(change, _)| *change)).filter(|_| changes.len() > 1) else { continue };
        squares += changes.iter().map(|(change, _)| (change - middle).powi(2)).sum::<f64>();
        noise += changes.iter().map(|(_, noise)| noise).sum::<f64>();
        degrees += changes.len() as f64 - 1.0;
        pairs += changes.len() as u64;
    }
    if pairs == 0 { (0.0, 0) } else { ((squares / degrees - noise / pairs as f64).max(0.0), pairs) }
}

/// How a case changed, and the variance that the noise of its attempts gives that.
fn change(was: Counts, is: Counts, within: f64) -> Option<(f64, f64)> {
    let change = is.rate()?.value() - was.rate()?.value();
    Some((change, within / f64::from(was.counted()) + within / f64::from(is.counted())))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run: passed and failed attempts of each case.
    fn run(cases: &[(u32, u32)]) -> BTreeMap<usize, Counts> {
        cases.iter().map(|(passed, failed)| Counts { passed: *passed, failed: *failed, ..Counts::default() }).enumerate().collect()
    }

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-12, "{got} {want}");
    }

    #[test]
    fn attempts_of_a_run_say_what_is_noise() {
        // Of 1 in 2: 1*1/(2*1) = 1/2; of 2 in 2: 0. The mean is 1/4.
        let spread = Spread::of(&[run(&[(1, 1), (2, 0)])]).unwrap();
        near(spread.within, 0.25);
        assert_eq!((spread.within_from, spread.pairs), (Source::Attempts, 0));
        near(spread.between, 0.0);
    }

    #[test]
    fn one_attempt_a_run_is_noise_over_the_runs() {
        // Cases PPF (2/(3*2) = 1/3), PPP (0). Changes: run 1 to 2 none; 2 to 3: -1 and 0, variance 1/2 on one degree. Over two degrees
        // 1/4, less 2 * 1/6.
        let spread = Spread::of(&[run(&[(1, 0), (1, 0)]), run(&[(1, 0), (1, 0)]), run(&[(0, 1), (1, 0)])]).unwrap();
        near(spread.within, 1.0 / 6.0);
        assert_eq!((spread.within_from, spread.pairs), (Source::Runs, 4));
        near(spread.between, 0.0);
    }

    #[test]
    fn what_changes_beyond_the_noise_is_between() {
        // Attempts agree in each run, so there is no noise; half of the cases turn: changes -1, 0, -1, 0 vary by 4 * 1/4 / 3 = 1/3.
        let spread = Spread::of(&[run(&[(2, 0); 4]), run(&[(0, 2), (2, 0), (0, 2), (2, 0)])]).unwrap();
        near(spread.within, 0.0);
        near(spread.between, 1.0 / 3.0);
        near(spread.variance(Aim::Difference(0.1), 5), 1.0 / 3.0);
    }

    #[test]
    fn one_run_of_one_attempt_takes_the_most_that_its_rate_allows() {
        let spread = Spread::of(&[run(&[(1, 0), (1, 0), (0, 1), (0, 1)])]).unwrap();
        near(spread.within, 0.25);
        assert_eq!(spread.within_from, Source::Rate);
        // All passed of four: a rate of 5/6.
        near(Spread::of(&[run(&[(1, 0); 4])]).unwrap().within, 5.0 / 36.0);
        assert!(Spread::of::<usize>(&[]).is_none() && Spread::of(&[run(&[(0, 0)])]).is_none());
    }

    #[test]
    fn a_change_turns_whole_cases() {
        let still = Spread { within: 0.0, within_from: Source::Attempts, between: 0.0, pairs: 98, design_effect: None };
        // Nothing ever varied: a difference of 0.05 is 5% of cases that turn, as McNemar's test with that discordance (fixture: 0.0475 + ...).
        near(still.variance(Aim::Difference(0.05), 1), 0.0475);
        near(still.variance(Aim::Margin(0.05), 1), 0.01);
        let noisy = Spread { within: 0.1, ..still };
        near(noisy.variance(Aim::Difference(0.05), 4), 0.0475 + 0.05);
        // The fixture's 0.0975 at 0.05 and 80%: 312 cases of one attempt where within is 0.025.
        assert_eq!(Spread { within: 0.025, ..still }.cases(Aim::Difference(0.05), 0.8, 1), Some(312));
    }

    #[test]
    fn cases_in_groups_take_more_of_them() {
        let groups: BTreeMap<usize, String> = (0..20).map(|case| (case, format!("g{}", case / 4))).collect();
        let turned = |cases: std::ops::Range<usize>| {
            run(&(0..20).map(|case| if cases.contains(&case) { (0, 1) } else { (1, 0) }).collect::<Vec<_>>())
        };
        let runs = [turned(0..0), turned(0..4)];
        let alone = Spread::of(&runs).unwrap();
        let spread = alone.in_groups(&runs, &groups);
        near(spread.design_effect.unwrap(), 5.0);
        let aim = Aim::Difference(0.2);
        assert_eq!(spread.cases(aim, 0.8, 1), alone.cases(aim, 0.8, 1).map(|cases| 5 * cases));
        // One run says nothing of how groups change: each counts as one case.
        near(alone.in_groups(&runs[..1], &groups).design_effect.unwrap(), 4.0);
        assert_eq!(alone.in_groups(&runs, &BTreeMap::new()), alone);
    }

    #[test]
    fn more_attempts_are_planned_where_cases_are_few() {
        let spread = Spread { within: 0.2, within_from: Source::Attempts, between: 0.0, pairs: 100, design_effect: None };
        let aim = Aim::Difference(0.2);
        let one = spread.cases(aim, 0.8, 1).unwrap();
        assert_eq!(spread.plan(aim, 0.8, one), (1, Some(one)));
        let (attempts, cases) = spread.plan(aim, 0.8, one - 1);
        assert!(attempts > 1 && cases.unwrap() < one && spread.cases(aim, 0.8, attempts - 1).unwrap() >= one);
        // Two cases are never enough, however often they are tried.
        assert_eq!(spread.plan(aim, 0.8, 2), (1, Some(one)));
    }
}
