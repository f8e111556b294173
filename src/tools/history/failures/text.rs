//! The text of `failures`: causes, then cells with their checks and the end of the conversation.
//!
//! Promises: one screen for a common run; JSON lines are shown as speaker and text where they are messages.
//! Does not: show more cells than the answer has.

use comfy_table::Color;

use super::{FailingAttempt, FailingCell, Next, Output, Recurrence};
use crate::{
    domain::{
        attempt::{Check, shorten},
        outcome::Outcome,
    },
    tools::render::{self, Grid, Style, Text},
};

/// Bytes of a conversation line as shown.
const LINE: usize = 300;
/// Lines of a conversation as shown.
const TAIL: usize = 6;

pub(super) fn text(output: &Output, style: &Style) -> String {
    let mut parts = vec![format!("{}: {} failing cells", render::clean(&output.run_id), output.total)];
    if !output.causes.is_empty() {
        parts.push(causes(output, style));
    }
    parts.extend(output.cells.iter().map(|one| cell(one, output.several_arms)));
    if !output.complete {
        parts.push(format!("... and {} more cells; raise limit or narrow with filter", output.total - output.returned));
    }
    parts.extend(output.note.clone());
    parts.extend(output.next.as_ref().map(next));
    parts.join("\n")
}

fn causes(output: &Output, style: &Style) -> String {
    let mut grid = Grid::new(style, &["attempts", "evaluation", "check", "reason"]);
    for cause in &output.causes {
        let check = cause.check.as_deref().unwrap_or(if cause.outcome == Outcome::InfraError { "(error)" } else { "(no failed check)" });
        grid.row([
            cause.attempts.to_string().into(),
            cause.evaluation.clone().into(),
            Text::coloured(check, Color::Red),
            render::one_line(&shorten(&cause.reason, 120)).into(),
        ]);
    }
    grid.text()
}

fn cell(cell: &FailingCell, several_arms: bool) -> String {
    let arm = several_arms.then_some(cell.arm.as_str());
    let name = [Some(cell.evaluation.as_str()), cell.case.as_deref(), arm].into_iter().flatten().collect::<Vec<_>>().join(" / ");
    let since =
        cell.failing_since.as_ref().map(|mark| format!(", failing since {}", render::short_time(mark.created_at))).unwrap_or_default();
    let pass = cell
        .last_pass
        .as_ref()
        .map_or_else(|| ", never passed before".to_owned(), |mark| format!(", last passed {}", render::short_time(mark.created_at)));
    let flake = if cell.within_flake_rate == Some(true) { ", as often as it fails now and then" } else { "" };
    let head = format!(
        "\n{} {} ({}): {}{since}{pass}{flake}",
        cell.verdict.word(),
        render::clean(&name),
        render::counts(cell.counts),
        word(cell.recurrence)
    );
    let attempts: Vec<String> = cell.attempts.iter().map(attempt).collect();
    format!("{head}\n{}", attempts.join("\n"))
}

/// The next call as a command line that can be pasted.
fn next(next: &Next) -> String {
    let quoted = |value: &String| format!("'{}'", render::clean(value).replace('\'', "'\\''"));
    let words: Vec<String> = match next.tool.as_str() {
        "transcript" => ["run", "attempt"].iter().filter_map(|name| next.arguments.get(*name)).map(quoted).collect(),
        _ => next.arguments.iter().map(|(name, value)| format!("--{name} {}", quoted(value))).collect(),
    };
    format!("next: runlore {} {}", next.tool, words.join(" "))
}

const fn word(recurrence: Recurrence) -> &'static str {
    match recurrence {
        Recurrence::First => "never counted before",
        Recurrence::New => "new",
        Recurrence::Returning => "returning",
        Recurrence::Known => "known",
    }
}

fn attempt(attempt: &FailingAttempt) -> String {
    let mut lines = vec![format!("  {} {}", attempt.outcome.word(), render::clean(&attempt.attempt))];
    lines.extend(attempt.error.as_ref().map(|error| format!("    error: {}", render::one_line(&shorten(error, LINE)))));
    lines.extend(attempt.limit.as_ref().map(|limit| format!("    ended by a limit: {}", render::clean(limit))));
    lines.extend(attempt.checks.iter().map(check));
    let tail = attempt.tail.iter().flatten();
    let skipped = attempt.tail.as_ref().map_or(0, Vec::len).saturating_sub(TAIL);
    lines.extend(tail.skip(skipped).map(|line| format!("    | {}", spoken(line))));
    lines.join("\n")
}

fn check(check: &Check) -> String {
    let value = check.label.clone().or_else(|| check.value.map(|value| value.to_string())).unwrap_or_default();
    let reason = check.reason.as_ref().map(|reason| format!(": {}", shorten(reason, LINE))).unwrap_or_default();
    format!("    check {} = {}{}", render::clean(&check.name), render::one_line(&value), render::one_line(&reason))
}

/// A message as `role: text`; anything else as it is.
pub(crate) fn spoken(line: &str) -> String {
    let shown = serde_json::from_str::<serde_json::Value>(line).ok().and_then(|value| {
        let role = value.get("role")?.as_str()?.to_owned();
        let content = value.get("content")?;
        let said = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let calls: Vec<&str> = value
            .get("tool_calls")
            .and_then(|calls| calls.as_array())
            .into_iter()
            .flatten()
            .filter_map(|call| call.get("function")?.as_str())
            .collect();
        Some(if calls.is_empty() { format!("{role}: {said}") } else { format!("{role}: {said} [calls {}]", calls.join(", ")) })
    });
    render::one_line(&shorten(&shown.unwrap_or_else(|| line.to_owned()), LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_as_speech() {
        assert_eq!(spoken(r#"{"role":"tool","content":"3\nlines"}"#), "tool: 3 lines");
        assert_eq!(spoken(r#"{"role":"assistant","content":"","tool_calls":[{"function":"add"}]}"#), "assistant: [calls add]");
        assert_eq!(spoken("no json"), "no json");
    }
}
