//! The text of `compare`: who is held against whom, the rows with their evidence, what changed.
//!
//! Promises: the verdict on the evidence stands beside each difference.
//! Does not: leave numbers without their counts.

use comfy_table::Color;

use super::{Output, Row};
use crate::{
    domain::{compare::Status, evidence::Evidence, time::Timestamp},
    stats::Word,
    tools::{
        history::record::{CellSide, RunSide},
        render::{self, Grid, Style, Text},
    },
};

pub(super) fn text(output: &Output, style: &Style) -> String {
    let mut parts = vec![title(output)];
    if !output.rows.is_empty() {
        parts.push(table(output, style));
    }
    parts.push(summary(output));
    let suite = |suite: &Evidence| {
        let difference = suite.difference.map(|difference| format!("{}, ", render::signed(difference))).unwrap_or_default();
        format!("all shared cases: {difference}{}", evidence(suite))
    };
    parts.extend(output.suite.as_ref().map(suite));
    parts.extend(output.suite_reason.as_ref().map(|why| format!("all shared cases: no result, {why}")));
    let changes: Vec<String> = output
        .changes
        .iter()
        .take(10)
        .map(|change| format!("  {}: {} -> {}", change.field, or_none(&change.base), or_none(&change.head)))
        .collect();
    if !changes.is_empty() {
        parts.push(format!("changed in the stack:\n{}", render_lines(&changes)));
    }
    if !output.not_run.is_empty() {
        parts.push(format!("not run since: {}", render::clean(&output.not_run.join(", "))));
    }
    parts.extend(output.note.clone());
    parts.join("\n")
}

fn render_lines(lines: &[String]) -> String {
    lines.iter().map(|line| render::clean(line)).collect::<Vec<_>>().join("\n")
}

fn or_none(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("(none)")
}

fn title(output: &Output) -> String {
    let side = |side: &RunSide| {
        let at = side.created_at.map(|at| format!(" ({} UTC)", render::short_time(at))).unwrap_or_default();
        format!("{}{at}", render::clean(&side.run_id))
    };
    match (&output.since, &output.head, &output.base) {
        (Some(since), ..) => format!("each evaluation now, against what it was at {} UTC", render::short_time(*since)),
        (None, Some(head), Some(base)) => format!("{} against {}", side(head), side(base)),
        (None, Some(head), None) => format!("{}, without a baseline", side(head)),
        (None, None, _) => String::new(),
    }
}

fn table(output: &Output, style: &Style) -> String {
    let mut grid = Grid::new(style, &["status", "evaluation", "then", "now", "difference", "evidence"]);
    for row in output.rows.iter().take(render::ROWS_SHOWN) {
        let name = render::named(&row.id, row.case.as_deref(), row.arm.as_deref());
        let difference = row.evidence.as_ref().and_then(|evidence| evidence.difference).map_or_else(|| "-".to_owned(), render::signed);
        grid.row([
            Text::coloured(row.status.word(), colour(row.status)),
            name.into(),
            (side(row.base.as_ref()) + &later(row.base.as_ref(), output.since)).into(),
            side(row.head.as_ref()).into(),
            difference.into(),
            said(row).into(),
        ]);
    }
    grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64)
}

const fn colour(status: Status) -> Color {
    match status {
        Status::Regressed => Color::Red,
        Status::Infra => Color::Magenta,
        Status::Drift => Color::Yellow,
        Status::Fixed => Color::Green,
        Status::Added | Status::Removed | Status::Same => Color::Grey,
    }
}

fn side(side: Option<&CellSide>) -> String {
    side.map_or_else(|| "-".to_owned(), |side| format!("{} {}", side.verdict.word(), render::counts(side.counts)))
}

/// Where nothing was counted up to the instant, `then` is the first run after it, which is named so that nobody takes it for the earlier state.
fn later(side: Option<&CellSide>, since: Option<Timestamp>) -> String {
    let run = side.and_then(|side| side.run.as_ref()).filter(|run| since.is_some_and(|since| run.created_at > since));
    run.map(|run| format!(" (first counted {}, {})", render::short_time(run.created_at), render::short_id(&run.run_id))).unwrap_or_default()
}

fn said(row: &Row) -> String {
    let since = row.changed_at.as_ref().map(|mark| format!("; since {}", render::short_time(mark.created_at))).unwrap_or_default();
    row.evidence.as_ref().map_or_else(|| "-".to_owned(), |row| evidence(row) + &since)
}

fn evidence(evidence: &Evidence) -> String {
    let word = match evidence.word {
        Word::Confirmed => "confirmed",
        Word::Inconclusive => "inconclusive",
        Word::NotComparable => "not comparable",
    };
    let reason = evidence.reason.as_ref().map(|reason| format!(": {}", render::clean(reason))).unwrap_or_default();
    if evidence.p.is_none() {
        return format!("{word}{reason}");
    }
    let p = evidence.p.map(|p| format!(", {}", render::p_value(p))).unwrap_or_default();
    let adjusted = evidence.adjusted_p.filter(|adjusted| Some(*adjusted) != evidence.p);
    let adjusted = adjusted.map(|p| format!(", adjusted {}", render::p_value(p))).unwrap_or_default();
    let ends = |name: &str, ends: Option<[f64; 2]>| {
        ends.map(|[low, high]| format!(", {name} [{}, {}]", render::signed(low), render::signed(high))).unwrap_or_default()
    };
    let (interval, errors) = (ends("95%", evidence.interval), ends("errors", evidence.bounds));
    let margin = evidence
        .margin
        .as_ref()
        .map(|margin| format!(", {}{}", margin.verdict.word().replace('_', "-"), ends("90%", Some(margin.bounds)).trim_start_matches(',')));
    let detects = evidence.mde.filter(|_| evidence.word == Word::Inconclusive).map(|mde| format!(", detects {mde:.2}")).unwrap_or_default();
    let groups = evidence.groups.map(|groups| format!(" in {groups} groups")).unwrap_or_default();
    format!("{word}{reason} (n={}{groups}{p}{adjusted}{interval}{errors}{detects}{})", evidence.n, margin.unwrap_or_default())
}

/// Over all rows: those beyond the limit count too.
fn summary(output: &Output) -> String {
    let counts = &output.statuses;
    let words = [
        (Status::Regressed, counts.regressed),
        (Status::Infra, counts.infra),
        (Status::Drift, counts.drift),
        (Status::Fixed, counts.fixed),
        (Status::Added, counts.added),
        (Status::Removed, counts.removed.saturating_sub(output.removed)),
    ];
    let mut parts: Vec<String> =
        words.into_iter().filter(|(_, count)| *count > 0).map(|(status, count)| format!("{count} {}", status.word())).collect();
    parts.push(format!("{} same", output.same));
    if output.removed > 0 {
        parts.push(format!("{} removed, not listed", output.removed));
    }
    parts.join(", ")
}
