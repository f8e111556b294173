//! What the paired cases say of a difference: interval, p, what could be detected, what errors could change, non-inferiority.
//!
//! Promises: cases are the unit; a row of many is `confirmed` by its adjusted p; a difference whose sign depends on how errored attempts count
//! is `inconclusive`; what cannot be compared has no figures. Cases that come in groups are no independent ones: the errors are clustered by
//! group, and too few groups are said to be. Each figure names its method.
//! Does not: say which evaluations may be compared (`comparable` does), or what follows (a row's status, a release).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{cell::Cell, comparable, outcome::Counts};
use crate::stats::{self, Interval, Method, PairedCase, PairedResult, Word};

/// Cases that must have changed before a paired test can reach p < 0.05: of k that changed the smallest p is 2^(1-k), and 2^-4 is 0.0625.
///
/// A row with fewer is not in the family that p is adjusted over: it can never be found, whatever the level, so it is no test (Tarone 1990,
/// Biometrics 46:515-522; for the false discovery rate Gilbert 2005, Appl. Statist. 54:143-158). How many changed says nothing of the direction.
pub const CHANGED_MIN: u64 = stats::exact::TURNED_MIN;

/// What the paired cases say of a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Mean over the paired cases, head minus base.
    pub difference: Option<f64>,
    /// The 95% interval of the difference: low and high.
    pub interval: Option<[f64; 2]>,
    /// The interval's method.
    pub interval_method: Option<&'static str>,
    /// The test's method.
    pub method: Option<&'static str>,
    /// Cases counted on both sides.
    pub n: u64,
    /// The groups that these cases come in, where some share one: then test and interval take a group as one observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The two-sided p value.
    pub p: Option<f64>,
    /// p adjusted over the answer's `family`; absent where the row is in none: fewer than six cases (or groups) changed, too few for any p
    /// below 0.05.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjusted_p: Option<f64>,
    /// The smallest difference that so many cases find with 80% power, from the spread that they show; null where not even 1 would be found.
    pub mde: Option<f64>,
    /// Its method.
    pub mde_method: Option<&'static str>,
    /// Where attempts errored: the difference with all of them counted against the head and for the base, and the other way round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Where a margin was given: whether the head is shown to be no worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margin>,
    /// The seed, where the test drew at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What to make of it.
    #[serde(rename = "verdict")]
    pub word: Word,
    /// Why it cannot be compared, or what else speaks against the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What `verify` takes to compute it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Cases whose rates differ; where they come in groups, groups whose changes do not cancel out.
    #[serde(skip)]
    pub changed: u64,
}

/// Whether the head is at most a margin worse than the base.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Margin {
    /// The one-sided 95% bounds of the difference: together its 90% interval.
    pub bounds: [f64; 2],
    /// Their method.
    pub method: &'static str,
    /// What they say.
    pub verdict: MarginWord,
}

/// What the bounds of a difference say against a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarginWord {
    /// Neither worse nor better by the margin (both bounds lie inside it).
    Equivalent,
    /// Not worse by the margin (the lower bound lies above it).
    NonInferior,
    /// Worse by the margin (the upper bound lies below it).
    Inferior,
    /// None of these is shown.
    Inconclusive,
}

impl MarginWord {
    /// The word as text.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::NonInferior => "non_inferior",
            Self::Inferior => "inferior",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What p values were adjusted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Family {
    /// Rows that could be found at all: at least six of their cases (or groups) changed. Those of every page.
    pub size: usize,
    /// All rows that were compared.
    pub compared: usize,
    /// How.
    pub method: &'static str,
}

impl Evidence {
    /// No figures, and why.
    #[must_use]
    pub fn none(n: u64, reason: &str) -> Self {
        Self {
            difference: None,
            interval: None,
            interval_method: None,
            method: None,
            n,
            groups: None,
            p: None,
            adjusted_p: None,
            mde: None,
            mde_method: None,
            bounds: None,
            margin: None,
            seed: None,
            word: Word::NotComparable,
            reason: Some(reason.to_owned()),
            handle: None,
            changed: 0,
        }
    }

    fn new(result: &PairedResult) -> Self {
        Self {
            difference: Some(result.difference),
            interval: result.interval.map(|interval| [interval.low, interval.high]),
            interval_method: result.interval_method.map(Method::as_str),
            method: Some(result.test.as_str()),
            p: Some(result.p),
            mde: result.mde,
            mde_method: result.mde_method.map(Method::as_str),
            seed: result.seed,
            word: result.word(),
            reason: result.groups.filter(|groups| *groups < CHANGED_MIN).map(|groups| few(result.n, groups)),
            groups: result.groups,
            changed: result.turned,
            ..Self::none(result.n, "")
        }
    }

    /// With what errors could change: `bounds` of the difference, over `errored` attempts.
    fn bounded(mut self, [low, high]: [f64; 2], errored: u64) -> Self {
        self.bounds = Some([low, high]);
        if low <= 0.0 && high >= 0.0 {
            self.word = Word::Inconclusive;
            let sign = format!("its sign depends on how {errored} errored attempt{} count", if errored == 1 { "" } else { "s" });
            self.reason = Some(self.reason.map_or_else(|| sign.clone(), |before| format!("{before}; {sign}")));
        }
        self
    }

    /// With what `cases` say against `margin`. Where the errors alone can carry the difference over the margin, nothing is shown.
    fn against(mut self, cases: &[PairedCase], margin: f64) -> Self {
        self.margin = stats::non_inferiority(cases, margin).map(|found| {
            let [worst, best] = self.bounds.unwrap_or([found.lower_bound, found.upper_bound]);
            let (holds, equivalent) = (found.holds && worst > -margin, found.equivalent && worst > -margin && best < margin);
            let verdict = match (equivalent, holds) {
                (true, _) => MarginWord::Equivalent,
                (_, true) => MarginWord::NonInferior,
                _ if found.upper_bound < -margin && best < -margin => MarginWord::Inferior,
                _ => MarginWord::Inconclusive,
            };
            Margin { bounds: [found.lower_bound, found.upper_bound], method: found.method.as_str(), verdict }
        });
        self
    }

    /// Judges anew by the p that was adjusted over the family.
    fn adjusted(&mut self, p: f64, family: usize) {
        self.adjusted_p = Some(p);
        let interval = self.interval.and_then(|[low, high]| Interval::new(low, high));
        if self.word == Word::Confirmed && Word::of(self.difference.unwrap_or_default(), interval, p) != Word::Confirmed {
            self.word = Word::Inconclusive;
            self.reason = Some(format!("not after adjusting p over {family} rows"));
        }
    }

    /// The same with numbers as they are shown: differences to four decimals, p to four digits.
    #[must_use]
    pub fn shown(mut self) -> Self {
        let both = |ends: [f64; 2]| ends.map(round4);
        self.difference = self.difference.map(round4);
        self.interval = self.interval.map(both);
        self.mde = self.mde.map(round4);
        self.bounds = self.bounds.map(both);
        self.margin = self.margin.map(|margin| Margin { bounds: both(margin.bounds), ..margin });
        self.p = self.p.map(four_digits);
        self.adjusted_p = self.adjusted_p.map(four_digits);
        self
    }
}

/// What few groups say. The same six as of cases that must change: with fewer observations nothing can be found.
fn few(cases: u64, groups: u64) -> String {
    format!("its {cases} cases come in {groups} group{}: a difference takes at least {CHANGED_MIN}", if groups == 1 { "" } else { "s" })
}

fn round4(value: f64) -> f64 {
    // Not -0, which reads like a direction.
    (value * 1e4).round() / 1e4 + 0.0
}

fn four_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Adjusts p over all rows of an answer (Benjamini and Hochberg), and says over how many; none where no row could be found at all.
pub fn adjust<'a>(rows: impl Iterator<Item = &'a mut Evidence>) -> Option<Family> {
    let mut compared = 0;
    let mut tested: Vec<(&mut Evidence, f64)> = Vec::new();
    for row in rows {
        compared += 1;
        if let Some(p) = row.p.filter(|_| row.changed >= CHANGED_MIN) {
            tested.push((row, p));
        }
    }
    let size = tested.len();
    let adjusted = stats::benjamini_hochberg(&tested.iter().map(|(_, p)| *p).collect::<Vec<f64>>())?;
    tested.into_iter().zip(adjusted).for_each(|((row, _), p)| row.adjusted(p, size));
    (size > 0).then_some(Family { size, compared, method: Method::BenjaminiHochberg.as_str() })
}

/// The paired evidence of cases on both sides: cells at case grain of one evaluation and arm, or of several evaluations together.
///
/// A case enters where both sides counted an attempt of it; its score is its pass rate there.
#[must_use]
pub fn evidence(head: &[&Cell], base: &[&Cell], margin: Option<f64>) -> Evidence {
    evidence_in_groups(head, base, &|_, _| None, margin)
}

/// The same, where `group` names the group that a case comes in, given its cells of the head and of the base. A group is of one evaluation.
#[must_use]
pub fn evidence_in_groups<'a>(
    head: &[&'a Cell],
    base: &[&'a Cell],
    group: &dyn Fn(&'a Cell, &'a Cell) -> Option<&'a str>,
    margin: Option<f64>,
) -> Evidence {
    let before: BTreeMap<(&str, &str), &Cell> = base.iter().map(|cell| (case_of(cell), *cell)).collect();
    let both: Vec<(&Cell, &Cell)> = head.iter().filter_map(|cell| Some((*cell, *before.get(&case_of(cell))?))).collect();
    let shared: Vec<(Counts, Counts)> = both.iter().map(|(head, base)| (head.counts, base.counts)).collect();
    let mut numbers = BTreeMap::<(&str, &str), u64>::new();
    let mut number = |(head, base): &(&'a Cell, &'a Cell)| {
        let next = numbers.len() as u64;
        Some(*numbers.entry((&head.key.evaluation, group(head, base)?)).or_insert(next))
    };
    let cases: Vec<PairedCase> =
        both.iter().filter_map(|both| Some(PairedCase { group: number(both), ..paired_case(&(both.0.counts, both.1.counts))? })).collect();
    if cases.is_empty() {
        return Evidence::none(0, "no case was counted on both sides");
    }
    let Some(result) = stats::paired(&cases) else { return Evidence::none(0, "the scores are not numbers") };
    let mut found = Evidence::new(&result);
    if let Some((bounds, errored)) = error_bounds(&shared) {
        found = found.bounded(bounds, errored);
    }
    match margin {
        Some(margin) => found.against(&cases, margin),
        None => found,
    }
}

/// How many cases both sides counted, with the reason why they cannot be compared.
#[must_use]
pub fn not_comparable(head: &[&Cell], base: &[&Cell], changed: &[String]) -> Evidence {
    let before: BTreeMap<(&str, &str), Counts> = base.iter().map(|cell| (case_of(cell), cell.counts)).collect();
    let counted = |cell: &&&Cell| before.get(&case_of(cell)).is_some_and(|other| cell.counts.counted() > 0 && other.counted() > 0);
    Evidence::none(head.iter().filter(counted).count() as u64, &comparable::reason(changed))
}

fn case_of<'a>(cell: &&'a Cell) -> (&'a str, &'a str) {
    (&cell.key.evaluation, cell.key.case.as_deref().unwrap_or_default())
}

pub(super) fn paired_case((head, base): &(Counts, Counts)) -> Option<PairedCase> {
    Some(PairedCase {
        head: head.rate()?.value(),
        base: base.rate()?.value(),
        head_attempts: u64::from(head.counted()),
        base_attempts: u64::from(base.counted()),
        group: None,
    })
}

/// The mean difference with every errored attempt counted against the head and for the base, and the other way round, over the cases that both
/// sides counted or broke in; and how many errored. None where nothing did.
///
/// Source: Horowitz and Manski (2000), J. Am. Stat. Assoc. 95:77-84 (worst-case bounds for missing outcomes).
pub(super) fn error_bounds(shared: &[(Counts, Counts)]) -> Option<([f64; 2], u64)> {
    let tried = |counts: &Counts| f64::from(counts.counted()) + f64::from(counts.infra);
    let both: Vec<&(Counts, Counts)> = shared.iter().filter(|(head, base)| tried(head) > 0.0 && tried(base) > 0.0).collect();
    let errored: u64 = both.iter().map(|(head, base)| u64::from(head.infra) + u64::from(base.infra)).sum();
    if errored == 0 {
        return None;
    }
    let worst = |counts: &Counts| f64::from(counts.passed) / tried(counts);
    let best = |counts: &Counts| (f64::from(counts.passed) + f64::from(counts.infra)) / tried(counts);
    let mean = |of: &dyn Fn(&Counts, &Counts) -> f64| both.iter().map(|(head, base)| of(head, base)).sum::<f64>() / both.len() as f64;
    let low = mean(&|head, base| worst(head) - best(base));
    let high = mean(&|head, base| best(head) - worst(base));
    Some(([low, high], errored))
}

#[cfg(test)]
mod tests;
