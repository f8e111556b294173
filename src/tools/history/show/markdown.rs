//! The Markdown of `show`: a run on one page.
//!
//! Promises: every evaluation of the record with its counts; attempts that did not pass are listed with their reason.
//! Does not: list attempts that passed.

use super::{RunRecord, rate};
use crate::{
    domain::{
        attempt::shorten,
        cell::Verdict,
        outcome::Outcome,
        run_record::{AttemptRecord, Eval},
    },
    tools::render::{clean, counts, one_line, short_time},
};

/// Attempts that did not pass, listed per evaluation at most.
const ATTEMPTS: usize = 20;

/// The page; `more` evaluations are not in the record.
pub(super) fn markdown(record: &RunRecord, more: usize) -> String {
    let mut out = format!(
        "# Run {}\n\n{}, {}, created {} UTC",
        clean(&record.run_id),
        record.status.word(),
        record.kind.unwrap_or_default().word(),
        short_time(record.created_at)
    );
    if let Some(sha) = record.git.as_ref().and_then(|git| git.sha.as_ref()) {
        out.push_str(&format!(", code {}", clean(sha)));
    }
    let arms: Vec<String> = record.arms.iter().map(|arm| clean(&arm.name)).collect();
    out.push_str(&format!(
        "\n\nArms: {}. The whole run passed {}.\n\n| evaluation | arm | verdict | passed | rate |\n| --- | --- | --- | --- | --- |\n",
        arms.join(", "),
        counts(record.counts.unwrap_or_default())
    ));
    for eval in &record.evals {
        for cell in &eval.cells {
            out.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                bar(&eval.id),
                bar(&cell.arm),
                cell.verdict.map_or("", Verdict::word),
                counts(cell.counts),
                rate(cell.counts)
            ));
        }
    }
    if more > 0 {
        out.push_str(&format!("\n... and {more} more evaluations\n"));
    }
    record.evals.iter().for_each(|eval| out.push_str(&failed(eval)));
    out
}

/// A `|` would end the table's cell.
fn bar(text: &str) -> String {
    clean(text).replace('|', "\\|")
}

fn failed(eval: &Eval) -> String {
    let wrong: Vec<&AttemptRecord> = eval.attempts.iter().flatten().filter(|attempt| attempt.outcome != Outcome::Pass).collect();
    if wrong.is_empty() {
        return String::new();
    }
    let mut out = format!("\n## {}\n\n", clean(&eval.id));
    for attempt in wrong.iter().take(ATTEMPTS) {
        out.push_str(&format!("- {} `{}`{}\n", attempt.outcome.word(), clean(&attempt.attempt), why(attempt)));
    }
    if wrong.len() > ATTEMPTS {
        out.push_str(&format!("- ... and {} more\n", wrong.len() - ATTEMPTS));
    }
    out
}

fn why(attempt: &AttemptRecord) -> String {
    let check = attempt.checks.iter().find(|check| check.passed == Some(false)).and_then(|check| check.reason.as_ref());
    attempt.error.as_ref().or(check).map(|reason| format!(": {}", one_line(&shorten(reason, 200)))).unwrap_or_default()
}
