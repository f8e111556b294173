//! Comparing two states of the same evaluations: which rows there are, and their status.
//!
//! Promises: the status rules of DESIGN.md section 5 and decision 59 stand here and nowhere else.
//! Does not: choose which runs are compared, or read them; weigh the evidence (`evidence` does).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    cell::{Cell, CellKey, Verdict},
    evidence::Evidence,
};
use crate::stats::Word;

/// How a row stands between base and head. The order is the order of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It passed and now fails, or the evidence confirms that it got worse.
    Regressed,
    /// One side has no counted attempt.
    Infra,
    /// Another rate, without a changed verdict or without confirmation.
    Drift,
    /// It failed and now passes, or the evidence confirms that it got better.
    Fixed,
    /// Only the head has it.
    Added,
    /// Only the base has it.
    Removed,
    /// The same verdict and rate.
    Same,
}

impl Status {
    /// The status' word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Status::Regressed => "regressed",
            Status::Infra => "infra",
            Status::Drift => "drift",
            Status::Fixed => "fixed",
            Status::Added => "added",
            Status::Removed => "removed",
            Status::Same => "same",
        }
    }
}

/// The same evaluation (and arm, and case) on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The evaluation's id.
    pub evaluation: String,
    /// The case's id, at case grain.
    pub case: Option<String>,
    /// The arm, where either side has several.
    pub arm: Option<String>,
    /// The head's cell.
    pub head: Option<Cell>,
    /// The base's cell.
    pub base: Option<Cell>,
}

/// Pairs cells by evaluation, case and arm. Where both sides have a single arm of an evaluation, those two match whatever their names.
#[must_use]
pub fn pairs(head: Vec<Cell>, base: Vec<Cell>) -> Vec<Pair> {
    let several = several_arms(&head).union(&several_arms(&base)).cloned().collect::<BTreeSet<String>>();
    let key = |cell: &Cell| {
        let arm = several.contains(&cell.key.evaluation).then(|| cell.key.arm.clone());
        (cell.key.evaluation.clone(), cell.key.case.clone(), arm)
    };
    let mut out = BTreeMap::<(String, Option<String>, Option<String>), (Option<Cell>, Option<Cell>)>::new();
    for cell in head {
        let place = key(&cell);
        out.entry(place).or_default().0 = Some(cell);
    }
    for cell in base {
        let place = key(&cell);
        out.entry(place).or_default().1 = Some(cell);
    }
    out.into_iter().map(|((evaluation, case, arm), (head, base))| Pair { evaluation, case, arm, head, base }).collect()
}

/// How many of `head`'s evaluations and arms are among `base`'s, as [`pairs`] would pair them; both at evaluation grain.
#[must_use]
pub fn shared(head: &[CellKey], base: &[CellKey]) -> usize {
    let (head, base) = (arms(head), arms(base));
    let shared = |(evaluation, mine): (&&str, &BTreeSet<&str>)| match base.get(*evaluation) {
        Some(other) if mine.len() == 1 && other.len() == 1 => 1,
        Some(other) => mine.intersection(other).count(),
        None => 0,
    };
    head.iter().map(shared).sum()
}

fn arms(keys: &[CellKey]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut arms = BTreeMap::<&str, BTreeSet<&str>>::new();
    for key in keys {
        arms.entry(&key.evaluation).or_default().insert(&key.arm);
    }
    arms
}

fn several_arms(cells: &[Cell]) -> BTreeSet<String> {
    let mut first = BTreeMap::<&str, &str>::new();
    let mut several = BTreeSet::new();
    for cell in cells {
        let held = first.entry(&cell.key.evaluation).or_insert(&cell.key.arm);
        if *held != cell.key.arm {
            several.insert(cell.key.evaluation.clone());
        }
    }
    several
}

impl Pair {
    /// The difference of the rates, head minus base, where both have one.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.head.as_ref()?.counts.rate()?.value() - self.base.as_ref()?.counts.rate()?.value())
    }

    /// The status, given what the evidence says of the same pair.
    #[must_use]
    pub fn status(&self, evidence: Option<&Evidence>) -> Status {
        let (head, base) = match (&self.head, &self.base) {
            (Some(head), Some(base)) => (head, base),
            (Some(_), None) => return Status::Added,
            (None, _) => return Status::Removed,
        };
        if !head.verdict.counted() || !base.verdict.counted() {
            return Status::Infra;
        }
        // Exact: the same fraction, whatever the counts.
        let same = u64::from(head.counts.passed) * u64::from(base.counts.counted())
            == u64::from(base.counts.passed) * u64::from(head.counts.counted());
        match (base.verdict, head.verdict) {
            _ if self.needs_evidence() => by_evidence(same, evidence),
            (Verdict::Pass, Verdict::Fail) => Status::Regressed,
            (Verdict::Fail, Verdict::Pass) => Status::Fixed,
            _ if same => Status::Same,
            _ => Status::Drift,
        }
    }

    /// Whether the verdicts alone cannot say `regressed`: several cases and no declared threshold (decision 59). A single case can.
    #[must_use]
    pub fn needs_evidence(&self) -> bool {
        self.case.is_none() && [&self.head, &self.base].into_iter().flatten().any(|cell| cell.several_cases && !cell.declared)
    }
}

fn by_evidence(same: bool, evidence: Option<&Evidence>) -> Status {
    match evidence {
        Some(Evidence { word: Word::Confirmed, difference: Some(difference), .. }) if *difference < 0.0 => Status::Regressed,
        Some(Evidence { word: Word::Confirmed, difference: Some(difference), .. }) if *difference > 0.0 => Status::Fixed,
        _ if same => Status::Same,
        _ => Status::Drift,
    }
}

/// The sort key of a row: status, then (for drift) the worst first, then the name.
#[must_use]
pub fn order(status: Status, difference: Option<f64>) -> (Status, i64) {
    let by_difference = if status == Status::Drift { difference.map_or(0, |difference| (difference * 1e9) as i64) } else { 0 };
    (status, by_difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{evidence::evidence, outcome::Counts};

    fn cell(evaluation: &str, case: Option<&str>, arm: &str, passed: u32, failed: u32, several: bool, declared: Option<f64>) -> Cell {
        let counts = Counts { passed, failed, ..Counts::default() };
        let threshold = declared.or((!several).then_some(1.0));
        let key = CellKey { evaluation: evaluation.into(), case: case.map(Into::into), arm: arm.into() };
        Cell {
            key,
            run_id: "r".into(),
            counts,
            threshold,
            several_cases: several,
            declared: declared.is_some(),
            verdict: Verdict::judge(counts, threshold),
        }
    }

    fn pair(head: Cell, base: Cell) -> Pair {
        pairs(vec![head], vec![base]).remove(0)
    }

    #[test]
    fn single_arms_match_whatever_their_names() {
        let pairs = pairs(vec![cell("a", None, "new", 1, 0, false, None)], vec![cell("a", None, "old", 1, 0, false, None)]);
        assert_eq!((pairs.len(), pairs[0].arm.clone()), (1, None));
    }

    #[test]
    fn several_arms_match_by_name() {
        let head = vec![cell("a", None, "x", 1, 0, false, None), cell("a", None, "y", 1, 0, false, None)];
        let pairs = pairs(head, vec![cell("a", None, "x", 1, 0, false, None)]);
        let shown: Vec<_> = pairs.iter().map(|pair| (pair.arm.as_deref(), pair.status(None))).collect();
        assert_eq!(shown, [(Some("x"), Status::Same), (Some("y"), Status::Added)]);
    }

    #[test]
    fn a_declared_threshold_decides_by_the_verdict() {
        let row = pair(cell("a", None, "m", 7, 3, true, Some(0.8)), cell("a", None, "m", 9, 1, true, Some(0.8)));
        assert_eq!(row.status(None), Status::Regressed);
        let row = pair(cell("a", None, "m", 9, 1, true, Some(0.8)), cell("a", None, "m", 10, 0, true, Some(0.8)));
        assert_eq!(row.status(None), Status::Drift);
    }

    #[test]
    fn without_a_threshold_several_cases_need_evidence() {
        let row = pair(cell("a", None, "m", 0, 8, true, None), cell("a", None, "m", 8, 0, true, None));
        let (head, base): (Vec<Cell>, Vec<Cell>) = (0..8)
            .map(|n| (cell("a", Some(&n.to_string()), "m", 0, 1, true, None), cell("a", Some(&n.to_string()), "m", 1, 0, true, None)))
            .unzip();
        let evidence = evidence(&head.iter().collect::<Vec<_>>(), &base.iter().collect::<Vec<_>>(), None);
        assert_eq!((evidence.n, evidence.word), (8, Word::Confirmed));
        assert!(evidence.p.is_some_and(|p| (p - 2.0 / 256.0).abs() < 1e-12));
        assert_eq!(row.status(Some(&evidence)), Status::Regressed);
        assert_eq!(row.status(None), Status::Drift);
    }

    #[test]
    fn cases_are_the_unit() {
        // 10 cases x 10 epochs, one case goes 10/10 to 0/10: attempts taken as independent would give p = 0.002.
        let case = |n: u32, passed, failed| cell("a", Some(&n.to_string()), "m", passed, failed, true, None);
        let head: Vec<Cell> = (0..10).map(|n| if n == 0 { case(n, 0, 10) } else { case(n, 10, 0) }).collect();
        let base: Vec<Cell> = (0..10).map(|n| case(n, 10, 0)).collect();
        let evidence = evidence(&head.iter().collect::<Vec<_>>(), &base.iter().collect::<Vec<_>>(), None);
        assert_eq!((evidence.n, evidence.p, evidence.word), (10, Some(1.0), Word::Inconclusive));
    }

    #[test]
    fn an_uncounted_side_is_infra_and_no_shared_case_is_not_comparable() {
        let row = pair(cell("a", None, "m", 0, 0, true, None), cell("a", None, "m", 8, 0, true, None));
        assert_eq!(row.status(None), Status::Infra);
        let (head, base) = (cell("a", Some("1"), "m", 1, 0, true, None), cell("a", Some("2"), "m", 1, 0, true, None));
        assert_eq!(evidence(&[&head], &[&base], None).word, Word::NotComparable);
    }

    #[test]
    fn what_is_shared_is_what_is_paired() {
        let cells = |spelled: &str| -> Vec<Cell> {
            spelled
                .split_whitespace()
                .map(|one| one.split_once('@').unwrap())
                .map(|(id, arm)| cell(id, None, arm, 1, 0, true, None))
                .collect()
        };
        for (head, base, expected) in [
            ("a@m b@m", "a@n c@m", 1),
            ("a@m a@n", "a@m", 1),
            ("a@m", "a@n a@o", 0),
            ("a@m a@n b@m", "a@n a@m b@x", 3),
            ("", "a@m", 0),
            ("a@m", "", 0),
        ] {
            let keys = |cells: Vec<Cell>| cells.into_iter().map(|cell| cell.key).collect::<Vec<CellKey>>();
            assert_eq!(shared(&keys(cells(head)), &keys(cells(base))), expected, "{head} {base}");
            let paired = pairs(cells(head), cells(base)).iter().filter(|pair| pair.head.is_some() && pair.base.is_some()).count();
            assert_eq!(paired, expected, "{head} {base}");
        }
    }

    #[test]
    fn rows_come_worst_first() {
        assert!(order(Status::Regressed, None) < order(Status::Infra, None));
        assert!(order(Status::Drift, Some(-0.5)) < order(Status::Drift, Some(0.1)));
    }
}
