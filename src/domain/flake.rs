//! Whether a failure is what its cell does now and then anyway (decision 23).
//!
//! Promises: a failure is called usual only where the cell lost and regained its pass before, and so many failures are no surprise at the rate
//! at which it failed then; a lasting failure is not excused by its own length.
//! Does not: choose the runs: the caller gives the earlier recorded ones of the same evaluation, case and arm.

use super::cell::{Cell, Verdict};
use crate::stats;

/// Attempts (of a case) or runs (of several cases) that must have been counted before.
pub const PAST_MIN: u64 = 3;
/// So many failures are usual where their probability is at least this.
const USUAL: f64 = stats::ALPHA;

/// What one run counted of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tries {
    passed: u64,
    failed: u64,
}

impl Tries {
    /// Attempts of a case are tries of it. Several cases are not: there the run is the try, which failed where its verdict says so.
    fn of(cell: &Cell) -> Self {
        if cell.several_cases && cell.key.case.is_none() {
            let failed = u64::from(cell.verdict == Verdict::Fail);
            return Self { passed: 1 - failed, failed };
        }
        Self { passed: u64::from(cell.counts.passed), failed: u64::from(cell.counts.failed) }
    }
}

/// Whether the failure `now` is within the rate at which the same cell failed in `past`, oldest first, which holds counted cells only. None
/// where `now` is no failure, or fewer than three tries were counted before.
///
/// The runs directly before `now` that failed throughout belong to the failure and not to the past: together with `now` they are so many
/// failures, and the runs before them are the rate. Within the rate is a failure where those runs have both, passed and failed in turns (at
/// least two turns, or both in one run), and the exact binomial probability of at least so many failures at their rate is 5% or more.
#[must_use]
pub fn within_rate(past: &[&Cell], now: &Cell) -> Option<bool> {
    let (now, past): (Tries, Vec<Tries>) = (failure(now)?, past.iter().map(|cell| Tries::of(cell)).collect());
    if past.iter().map(|tries| tries.passed + tries.failed).sum::<u64>() < PAST_MIN {
        return None;
    }
    let lasting = past.iter().rev().take_while(|tries| tries.passed == 0).count();
    let (before, lasting) = past.split_at(past.len() - lasting);
    let sum = |of: &[Tries]| of.iter().fold((0, 0), |(passed, failed), tries| (passed + tries.passed, failed + tries.failed));
    let ((passed, failed), (_, lasted)) = (sum(before), sum(lasting));
    let seen = now.failed + lasted;
    let rate = failed as f64 / (passed + failed) as f64;
    let usual = stats::binomial_tail(seen, seen + now.passed, rate).is_some_and(|probability| probability >= USUAL - 1e-9);
    Some(usual && turns(before))
}

fn failure(cell: &Cell) -> Option<Tries> {
    let tries = Tries::of(cell);
    (cell.verdict.counted() && cell.verdict != Verdict::Pass && tries.failed > 0).then_some(tries)
}

/// Whether it lost its pass and had it again: both in one run, or in turns.
fn turns(before: &[Tries]) -> bool {
    let mixed = before.iter().any(|tries| tries.passed > 0 && tries.failed > 0);
    let changes = before.windows(2).filter(|pair| matches!(pair, [a, b] if (a.failed > 0) != (b.failed > 0))).count();
    mixed || changes >= 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{cell::CellKey, outcome::Counts};

    fn cell(passed: u32, failed: u32, several: bool, case: Option<&str>) -> Cell {
        let counts = Counts { passed, failed, ..Counts::default() };
        Cell {
            key: CellKey { evaluation: "e".into(), case: case.map(Into::into), arm: "m".into() },
            run_id: "r".into(),
            counts,
            threshold: None,
            several_cases: several,
            declared: false,
            verdict: Verdict::judge(counts, None),
        }
    }

    /// One attempt a run: `P` or `F`; the last letter is now.
    fn told(story: &str, several: bool) -> Option<bool> {
        let case = if several { None } else { Some("1") };
        let cells: Vec<Cell> =
            story.chars().map(|letter| cell(u32::from(letter == 'P'), u32::from(letter == 'F'), several, case)).collect();
        let (now, past) = cells.split_last().unwrap();
        within_rate(&past.iter().collect::<Vec<_>>(), now)
    }

    #[test]
    fn the_stories() {
        for several in [false, true] {
            // One failure of one at the rate 1/3: 33%.
            assert_eq!(told("PFPF", several), Some(true));
            // Three in a row at 1/3: 3.7%; two in a row: 11%.
            assert_eq!((told("PFPFF", several), told("PFPFFF", several)), (Some(true), Some(false)));
            // Never failed before; broke and stays broken; was mended once, and failed again: no flakes.
            for story in ["PPPF", "PPPFF", "PPPFFFF", "FFFPPPF", "FFFF"] {
                assert_eq!(told(story, several), Some(false), "{story}");
            }
            // One failure of 24 is a rate of 4.2%, one of 20 is 5%.
            assert_eq!(told(&format!("{}FPF", "P".repeat(22)), several), Some(false));
            assert_eq!(told(&format!("{}FPF", "P".repeat(18)), several), Some(true));
            // No failure, or too little known.
            assert_eq!((told("PFPP", several), told("PFF", several), told("F", several)), (None, None, None));
        }
    }

    #[test]
    fn attempts_of_one_case_are_tries() {
        let past = [cell(8, 2, true, Some("1"))];
        let past: Vec<&Cell> = past.iter().collect();
        // At 0.2: one or more of 3 fails with 48.8%, three of three with 0.8%.
        assert_eq!(within_rate(&past, &cell(2, 1, true, Some("1"))), Some(true));
        assert_eq!(within_rate(&past, &cell(0, 3, true, Some("1"))), Some(false));
        assert_eq!(within_rate(&[&cell(1, 1, true, Some("1"))], &cell(0, 1, true, Some("1"))), None, "two tries are too few");
        // An attempt that only errored is no failure.
        assert_eq!(within_rate(&past, &cell(0, 0, true, Some("1"))), None);
    }

    #[test]
    fn cases_of_an_evaluation_are_no_tries() {
        // 100 cases of which some fail each time: without a threshold that is neither pass nor fail, and no failure to excuse.
        let mixed: Vec<Cell> = (0..5).map(|_| cell(90, 10, true, None)).collect();
        let past: Vec<&Cell> = mixed.iter().collect();
        assert_eq!(within_rate(&past, &cell(85, 15, true, None)), None);
        assert_eq!(within_rate(&past, &cell(0, 100, true, None)), Some(false));
    }
}
