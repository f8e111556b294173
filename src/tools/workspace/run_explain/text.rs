//! The text of `run_explain`: a few lines that a person reads from top to bottom.
//!
//! Promises: the status stands first, and a rate only behind a run that has ended.
//! Does not: show what `compare` and `failures` show in full.

use super::Output;
use crate::{
    domain::{
        decision::{Dimension, EvidenceSummary, Measurement},
        figures::Figures,
    },
    tools::render::{self, Grid, Style},
};

/// Causes that are shown.
const CAUSES: usize = 10;

pub(super) fn text(output: &Output, style: &Style) -> String {
    let mut parts = vec![head(output)];
    parts.extend(output.error.as_ref().map(|error| format!("error: {}", render::one_line(error))));
    parts.extend(output.queue.as_ref().map(|queue| {
        let worker = queue.worker.as_ref().map(|worker| format!(", worker {}", render::clean(worker))).unwrap_or_default();
        let who = render::clean(&queue.created_by);
        format!("queued by {who} for {}: {} of {} cases, {} tries{worker}", queue.environment, queue.done, queue.total, queue.tries)
    }));
    parts.push(took(&output.figures));
    parts.extend(causes(output, style));
    parts.extend(against(output, style));
    parts.push(evidence(&output.evidence_summary));
    parts.extend(output.note.clone());
    parts.join("\n")
}

fn head(output: &Output) -> String {
    let counts = if output.ended { format!(": {}", render::counts(output.counts)) } else { String::new() };
    let at = render::short_time(output.created_at);
    format!("{} ({}, {at} UTC) is {}{counts}", render::clean(&output.run_id), output.kind.word(), output.status.word())
}

fn took(figures: &Figures) -> String {
    let unknown = || "unknown".to_owned();
    let partly = |known: u64| if known < figures.attempts { format!(" (of {known})") } else { String::new() };
    let cost = figures.cost_usd.map_or_else(unknown, |cost| format!("${cost:.4}{}", partly(figures.costed)));
    let tokens = figures.total_tokens.map_or_else(unknown, |tokens| format!("{tokens}{}", partly(figures.tokened)));
    format!("{} attempts: cost {cost}, tokens {tokens}", figures.attempts)
}

fn causes(output: &Output, style: &Style) -> Option<String> {
    if output.causes.is_empty() {
        return None;
    }
    let mut grid = Grid::new(style, &["attempts", "evaluation", "check", "why"]);
    for cause in output.causes.iter().take(CAUSES) {
        grid.row([
            cause.attempts.to_string().into(),
            cause.evaluation.clone().into(),
            cause.check.clone().unwrap_or_else(|| cause.outcome.word().to_owned()).into(),
            render::one_line(&cause.reason).into(),
        ]);
    }
    let left = output.causes_total.saturating_sub(output.causes.len().min(CAUSES));
    let more = if left > 0 { format!("\n... and {left} more causes; failures has them") } else { String::new() };
    Some(grid.text() + &more)
}

fn against(output: &Output, style: &Style) -> Option<String> {
    let base = output.base.as_ref()?;
    let counts = output.statuses.unwrap_or_default();
    let mut out = format!(
        "against {}: {} regressed, {} infra, {} drift, {} fixed, {} added, {} removed, {} same",
        render::clean(&base.run_id),
        counts.regressed,
        counts.infra,
        counts.drift,
        counts.fixed,
        counts.added,
        counts.removed,
        counts.same
    );
    if !output.changed.is_empty() {
        let mut grid = Grid::new(style, &["status", "evaluation", "then", "now", "evidence"]);
        for row in &output.changed {
            let side = |side: Option<&crate::tools::history::record::CellSide>| {
                side.map_or_else(|| "-".to_owned(), |side| format!("{} {}", side.verdict.word(), render::counts(side.counts)))
            };
            let evidence = row.evidence.as_ref().map_or("-", |evidence| evidence.word.as_str());
            grid.row([
                row.status.word().into(),
                render::named(&row.id, row.case.as_deref(), row.arm.as_deref()).into(),
                side(row.base.as_ref()).into(),
                side(row.head.as_ref()).into(),
                evidence.into(),
            ]);
        }
        out = format!("{out}\n{}", grid.text());
    }
    Some(out)
}

/// A figure with its change behind it.
fn figure(one: &Measurement) -> String {
    let unit = one.unit.filter(|unit| *unit != "share").map(|unit| format!(" {unit}")).unwrap_or_default();
    let change = |delta: f64| if delta > 0.0 { format!("+{delta}") } else { delta.to_string() };
    match (one.candidate.or(one.value), one.delta) {
        (Some(now), Some(delta)) => format!("{} {now}{unit} ({})", one.name, change(delta)),
        (Some(now), None) => format!("{} {now}{unit}", one.name),
        (None, Some(delta)) => format!("{} {}{unit}", one.name, change(delta)),
        (None, None) => one.name.to_owned(),
    }
}

/// A line for each dimension.
pub fn evidence(summary: &EvidenceSummary) -> String {
    let dimensions = [
        ("quality", &summary.quality),
        ("protected slices", &summary.protected_slices),
        ("reliability", &summary.reliability),
        ("latency", &summary.latency),
        ("cost", &summary.cost),
    ];
    let line = |(name, dimension): (&str, &Dimension)| match dimension {
        Dimension::NotMeasured { reason } => format!("{name}: not measured, {}", render::clean(reason)),
        Dimension::Measured { summary, measurements } => {
            let figures: Vec<String> = measurements.iter().map(figure).collect();
            format!("{name}: {} [{}]", render::clean(summary), figures.join(", "))
        }
    };
    dimensions.map(line).join("\n")
}
