//! Goals: what is declared of two arms, tested over the cases that both tried, and how each stands (decision 67).
//!
//! Promises: the unit is the case; a goal is met or missed by its p adjusted over all open goals (Holm: it is a gate), never by a look at the
//! rates; a margin is part of the question, so that a difference just above it is not yet more than it. Where errored attempts could turn the
//! answer it stays open.
//! Does not: find the cases, or change anything where a goal is met: a person takes it out of the file.

use super::{
    evidence::{CHANGED_MIN, error_bounds},
    outcome::Counts,
};
use crate::stats::{self, ALPHA, Interval, PairedCase, Recall, Word};

/// How a goal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The arm is shown to beat the other by more than the margin.
    Met,
    /// It is shown not to: the difference is below the margin, and that is no chance.
    Missed,
    /// Neither is shown.
    Open,
    /// No case was tried by both.
    NoData,
    /// Every evaluation that both tried was measured in two ways.
    NotComparable,
}

impl Standing {
    /// All of them, as they are counted.
    pub const ALL: [Self; 5] = [Self::Met, Self::Missed, Self::Open, Self::NoData, Self::NotComparable];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
            Self::NoData => "no_data",
            Self::NotComparable => "not_comparable",
        }
    }
}

/// What the cases say.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Mean over the cases of the arm's score minus the other's.
    pub difference: f64,
    /// Its 95% interval.
    pub interval: Option<Interval>,
    /// Two-sided p of "the difference is the margin".
    pub p: f64,
    /// How that was worked out.
    pub method: &'static str,
    /// Cases that both tried.
    pub n: u64,
    /// The groups that these come in, where some share one.
    pub groups: Option<u64>,
    /// Cases (or groups) that differ from the margin.
    pub changed: u64,
    /// The difference with every errored attempt against the arm and for the other, and the other way round, and how many errored.
    pub errors: Option<([f64; 2], u64)>,
}

/// Tests a goal over its cases; `shared` are their counts, where the metric is the pass rate. `None` where no case is a pair.
#[must_use]
pub fn test(cases: &[PairedCase], shared: &[(Counts, Counts)], margin: f64, recall: &Recall<'_>) -> Option<Tested> {
    // The other side gets the margin as a start, and both are made smaller, so that scores from 0 to 1 stay so.
    let (room, up, down) = (1.0 + margin.abs(), margin.max(0.0), (-margin).max(0.0));
    let with_start = |case: &PairedCase| PairedCase { head: (case.head + down) / room, base: (case.base + up) / room, ..*case };
    let against: Vec<PairedCase> = cases.iter().map(with_start).collect();
    let found = stats::paired_by(if margin == 0.0 { cases } else { &against }, recall)?;
    let back = |value: f64| value * room + margin;
    let moved = |interval: Interval| Interval::new(back(interval.low), back(interval.high));
    Some(Tested {
        difference: back(found.difference),
        interval: found.interval.and_then(moved),
        p: found.p,
        method: found.test.as_str(),
        n: found.n,
        groups: found.groups,
        changed: found.turned,
        errors: error_bounds(shared),
    })
}

/// How a goal stands, and why not otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// How it stands.
    pub standing: Standing,
    /// p adjusted over all open goals; none where the goal is in no family: too few of its cases changed for any p below 0.05.
    pub adjusted_p: Option<f64>,
    /// What speaks against more.
    pub reason: Option<String>,
}

/// Judges tested goals, each with its margin, by Holm's adjustment over all of them.
#[must_use]
pub fn judge(tests: &[(&Tested, f64)]) -> Vec<Judged> {
    let in_family = |test: &Tested| test.changed >= CHANGED_MIN;
    let ps: Vec<f64> = tests.iter().filter(|(test, _)| in_family(test)).map(|(test, _)| test.p).collect();
    let mut adjusted = stats::holm(&ps).unwrap_or_default().into_iter();
    let size = ps.len();
    let of = |(test, margin): &(&Tested, f64)| {
        if in_family(test) { judged(test, *margin, adjusted.next().unwrap_or(1.0), size) } else { too_few(test) }
    };
    tests.iter().map(of).collect()
}

fn too_few(test: &Tested) -> Judged {
    let what = if test.groups.is_some() { "groups" } else { "cases" };
    let reason = format!("{} {what} differ: it takes {CHANGED_MIN}", test.changed);
    Judged { standing: Standing::Open, adjusted_p: None, reason: Some(reason) }
}

fn judged(test: &Tested, margin: f64, p: f64, family: usize) -> Judged {
    let open = |reason: Option<String>| Judged { standing: Standing::Open, adjusted_p: Some(p), reason };
    let over = test.difference - margin;
    let interval = test.interval.and_then(|interval| Interval::new(interval.low - margin, interval.high - margin));
    if Word::of(over, interval, p) != Word::Confirmed {
        return open((test.p < ALPHA && p >= ALPHA).then(|| format!("not after adjusting p over {family} goals")));
    }
    match test.errors {
        Some(([low, high], errored)) if low <= margin && margin <= high => {
            open(Some(format!("it depends on how {errored} errored attempt{} count", if errored == 1 { "" } else { "s" })))
        }
        _ => Judged { standing: if over > 0.0 { Standing::Met } else { Standing::Missed }, adjusted_p: Some(p), reason: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(heads: &[f64], bases: &[f64]) -> Vec<PairedCase> {
        let case = |(head, base): (&f64, &f64)| PairedCase { head: *head, base: *base, head_attempts: 1, base_attempts: 1, group: None };
        heads.iter().zip(bases).map(case).collect()
    }

    fn plain(heads: &[f64], bases: &[f64], margin: f64) -> Tested {
        test(&cases(heads, bases), &[], margin, &|_, work_out| work_out()).unwrap()
    }

    #[test]
    fn a_goal_is_met_by_its_adjusted_p() {
        let (all, none) = (vec![1.0; 10], vec![0.0; 10]);
        let won = plain(&all, &none, 0.0);
        assert!((won.p - 2.0_f64.powi(-9)).abs() < 1e-15, "{}", won.p);
        assert_eq!((won.method, won.n, won.changed), ("exact_mcnemar", 10, 10));
        let alone = judge(&[(&won, 0.0)]);
        assert_eq!((alone[0].standing, alone[0].adjusted_p), (Standing::Met, Some(won.p)));
        let lost = plain(&none, &all, 0.0);
        assert_eq!(judge(&[(&lost, 0.0)])[0].standing, Standing::Missed);
        let same = plain(&all, &all, 0.0);
        let judged = judge(&[(&same, 0.0)]);
        assert_eq!((judged[0].standing, judged[0].adjusted_p), (Standing::Open, None));
        // Six of six are p = 1/32: alone it is met, beside another goal no more.
        let six = plain(&[1.0; 6], &[0.0; 6], 0.0);
        assert_eq!(judge(&[(&six, 0.0)])[0].standing, Standing::Met);
        let two = judge(&[(&six, 0.0), (&six, 0.0)]);
        assert_eq!(two[0].standing, Standing::Open);
        assert!((two[0].adjusted_p.unwrap() - 0.0625).abs() < 1e-15);
        assert_eq!(two[0].reason.as_deref(), Some("not after adjusting p over 2 goals"));
        // One that cannot be found at all is in no family.
        assert_eq!(judge(&[(&six, 0.0), (&same, 0.0)])[0].adjusted_p, Some(six.p));
    }

    #[test]
    fn a_margin_is_part_of_the_question() {
        let heads: Vec<f64> = (0..40).map(|n| if n % 10 == 0 { 0.5 } else { 0.9 }).collect();
        let bases: Vec<f64> = (0..40).map(|n| if n % 7 == 0 { 0.6 } else { 0.5 }).collect();
        let standing = |margin: f64| judge(&[(&plain(&heads, &bases, margin), margin)])[0].standing;
        assert_eq!(
            (standing(0.0), standing(0.1), standing(0.345), standing(0.6)),
            (Standing::Met, Standing::Met, Standing::Open, Standing::Missed)
        );
        let (without, with) = (plain(&heads, &bases, 0.0), plain(&heads, &bases, 0.1));
        assert!((without.difference - with.difference).abs() < 1e-12);
        assert!(with.interval.unwrap().contains(with.difference));
        // Where every case differs by as much there is an interval too.
        assert_eq!(judge(&[(&plain(&[0.0; 10], &[1.0; 10], 0.1), 0.1)])[0].standing, Standing::Missed);
        assert_eq!(judge(&[(&plain(&[1.0; 10], &[0.0; 10], 0.1), 0.1)])[0].standing, Standing::Met);
    }

    #[test]
    fn what_errors_could_turn_stays_open() {
        let (all, none) = (vec![1.0; 10], vec![0.0; 10]);
        let clean = (Counts { passed: 1, ..Counts::default() }, Counts { failed: 1, ..Counts::default() });
        let errored = (Counts { passed: 1, infra: 9, ..Counts::default() }, Counts { failed: 1, infra: 9, ..Counts::default() });
        let standing = |shared: &[(Counts, Counts)]| {
            let tested = test(&cases(&all, &none), shared, 0.0, &|_, work_out| work_out()).unwrap();
            judge(&[(&tested, 0.0)]).remove(0)
        };
        assert_eq!(standing(&[clean; 10]).standing, Standing::Met);
        let judged = standing(&[errored; 10]);
        assert_eq!((judged.standing, judged.reason.as_deref()), (Standing::Open, Some("it depends on how 180 errored attempts count")));
    }

    #[test]
    fn no_case_on_both_sides_is_no_test() {
        let mut one = cases(&[1.0], &[1.0]);
        one[0].base_attempts = 0;
        assert_eq!(test(&one, &[], 0.0, &|_, work_out| work_out()), None);
    }
}
