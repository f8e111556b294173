//! One row as an attempt.
//!
//! Promises: what a row does not say is none, never zero: a price of 0 is unknown, and so is a time of 0; the row's `error` is an error only
//! where it broke.
//! Does not: find its case and arm (the first pass did).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    check::{CHECKS_MAX, checks, outcome, without_stack},
    lines::transcript,
};
use crate::{
    domain::{
        attempt::{Attempt, Usage, shorten},
        outcome::Outcome,
    },
    importers::{
        Item, Limits,
        inspect::lines::compact,
        left_out,
        raw::{Fields, count, fields, list, number, text},
    },
    telemetry::redaction::Redactor,
};

/// What every row of a file shares.
pub(super) struct Context<'a> {
    pub(super) limits: &'a Limits,
    pub(super) redactor: &'a Redactor,
    pub(super) evaluation: String,
    /// Whether any row of the file was graded.
    pub(super) graded: bool,
}

impl Context<'_> {
    /// `text` as it may be kept: without secrets first, then short (a cut could hide half a secret).
    fn shown(&self, text: &str) -> String {
        shorten(&self.redactor.redact(text), self.limits.text_bytes_max)
    }
}

/// What the first pass knows of a row.
pub(super) struct Spot<'a> {
    pub(super) case: &'a str,
    pub(super) arm: &'a str,
    pub(super) epoch: u32,
    pub(super) retries: u32,
}

/// The row in `json` as an attempt, and complaints about it.
pub(super) fn items(json: &str, spot: &Spot<'_>, context: &Context<'_>) -> Result<Vec<Item>, String> {
    let row: Fields<'_> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut attempt = attempt(&row, spot, context);
    let (packed, too_deep) = transcript(&row, context.redactor);
    attempt.transcript = packed;
    let who = who(&attempt);
    let full = attempt.checks.len() >= CHECKS_MAX;
    let mut items = vec![Item::Attempt(Box::new(attempt))];
    items.extend(left_out(&who, too_deep, full.then_some(("assertions", CHECKS_MAX))).map(Item::Complaint));
    Ok(items)
}

/// A row, in a sentence.
pub(super) fn who(attempt: &Attempt) -> String {
    format!("test {} of {} (try {})", attempt.case.escape_debug(), attempt.arm.escape_debug(), attempt.epoch)
}

fn attempt(row: &Fields<'_>, spot: &Spot<'_>, context: &Context<'_>) -> Attempt {
    let shown = |text: &str| context.shown(text);
    let response = fields(row.get("response"));
    let outcome = outcome(row, context.graded);
    let broke = outcome == Outcome::InfraError;
    let error = || text(row.get("error")).or_else(|| text(response.get("error")));
    Attempt {
        uuid: text(row.get("id")).map(|id| context.redactor.redact(&id).into_owned()),
        outcome,
        // What broke before it was graded has 0 and means nothing by it.
        score: number(row.get("score")).filter(|_| !broke || row.get("gradingResult").is_some()),
        checks: checks(row, outcome, &shown),
        usage: usage(row, &response),
        cost_usd: number(row.get("cost")).or_else(|| number(response.get("cost"))).filter(|cost| *cost > 0.0),
        duration_ms: count(row.get("latencyMs")).filter(|millis| *millis > 0),
        error: broke.then(|| shown(&without_stack(&error().unwrap_or(Cow::Borrowed("an error without a message"))))),
        retries: spot.retries,
        input: input(row, context),
        target: target(row).map(|target| shown(&target)),
        output: response.get("output").and_then(said).map(|output| shown(&output)),
        ..Attempt::unscored(context.evaluation.clone(), spot.arm.to_owned(), spot.case.to_owned(), spot.epoch)
    }
}

/// A value as a person reads it: text as it is, anything else as JSON.
fn said(raw: &RawValue) -> Option<Cow<'_, str>> {
    if raw.get().starts_with('"') { text(Some(raw)) } else { Some(Cow::Owned(compact(raw.get()))) }
}

/// The variables; where there are none, the prompt.
fn input(row: &Fields<'_>, context: &Context<'_>) -> Option<String> {
    let vars = fields(row.get("vars").or_else(|| fields(row.get("testCase")).get("vars")));
    let of_test: Vec<(&str, Cow<'_, str>)> =
        vars.0.iter().filter(|(name, _)| !name.starts_with('_')).filter_map(|(name, raw)| Some((name.as_ref(), said(raw)?))).collect();
    let spelled = match of_test.as_slice() {
        [] => text(fields(row.get("prompt")).get("raw"))?.into_owned(),
        [(name, value)] => context.redactor.redact_value(name, value).into_owned(),
        several => several
            .iter()
            .map(|(name, value)| format!("{name}: {}", context.redactor.redact_value(name, value)))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    Some(context.shown(&spelled))
}

/// What the assertions look for, one a line.
fn target(row: &Fields<'_>) -> Option<String> {
    let one = |raw: &&RawValue| {
        let assertion = fields(Some(raw));
        let kind = text(assertion.get("type"))?;
        let value = assertion.get("value").and_then(said);
        Some(value.map_or_else(|| kind.to_string(), |value| format!("{kind}: {value}")))
    };
    let all: Vec<String> = list(fields(row.get("testCase")).get("assert")).0.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The response's tokens. `cached` ones came from promptfoo's own cache: they are in the total and in nothing else. Graders' are in the
/// total alone.
fn usage(row: &Fields<'_>, response: &Fields<'_>) -> Usage {
    let own = response.get("tokenUsage");
    let used = fields(own.or_else(|| row.get("tokenUsage")));
    let of = |key: &str| count(used.get(key));
    // A row's own sums are 0 where nothing is known; a response says what it says.
    if own.is_none() && of("total").unwrap_or(0) == 0 {
        return Usage::default();
    }
    let details = fields(used.get("completionDetails"));
    let sum = ["prompt", "completion", "cached"].into_iter().filter_map(of).reduce(u64::saturating_add);
    let graders = count(fields(fields(row.get("gradingResult")).get("tokensUsed")).get("total")).unwrap_or(0);
    Usage {
        input_tokens: of("prompt"),
        output_tokens: of("completion"),
        total_tokens: of("total").or(sum).map(|total| total.saturating_add(graders)),
        cache_read_tokens: count(details.get("cacheReadInputTokens")),
        cache_write_tokens: count(details.get("cacheCreationInputTokens")),
        reasoning_tokens: count(details.get("reasoning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(json: &str) -> Attempt {
        let (limits, redactor) = (Limits::default(), Redactor::patterns_only());
        let context = Context { limits: &limits, redactor: &redactor, evaluation: "e".to_owned(), graded: true };
        let spot = Spot { case: "c", arm: "a", epoch: 2, retries: 0 };
        match items(json, &spot, &context).unwrap().remove(0) {
            Item::Attempt(attempt) => *attempt,
            Item::Complaint(why) => panic!("{why}"),
        }
    }

    #[test]
    fn tokens_of_promptfoos_own_cache_are_in_the_total() {
        // FORMATS.md 2: 110 total = 110 cached.
        let found = made(r#"{"success":true,"response":{"cached":true,"tokenUsage":{"total":110,"cached":110}}}"#).usage;
        assert_eq!((found.total_tokens, found.input_tokens, found.output_tokens, found.cache_read_tokens), (Some(110), None, None, None));
        let found = made(
            r#"{"success":true,"response":{"tokenUsage":{"total":15,"prompt":10,"completion":5,"completionDetails":{"reasoning":2}}},
            "gradingResult":{"pass":true,"tokensUsed":{"total":40}},"tokenUsage":{"total":15}}"#,
        );
        assert_eq!((found.usage.total_tokens, found.usage.input_tokens, found.usage.reasoning_tokens), (Some(55), Some(10), Some(2)));
        assert_eq!(made(r#"{"success":false,"failureReason":2,"tokenUsage":{"total":0,"prompt":0}}"#).usage, Usage::default());
    }

    #[test]
    fn nought_is_unknown() {
        let found =
            made(r#"{"success":false,"failureReason":2,"error":"Error: x\n    at f (/srv/a.js:1)","cost":0,"latencyMs":0,"score":0}"#);
        assert_eq!((found.cost_usd, found.duration_ms, found.score), (None, None, None));
        assert_eq!((found.error.as_deref(), found.epoch), (Some("Error: x"), 2));
        let found = made(r#"{"success":false,"failureReason":1,"error":"Expected","cost":0.5,"latencyMs":9,"score":0,"gradingResult":{}}"#);
        assert_eq!((found.cost_usd, found.duration_ms, found.score, found.error), (Some(0.5), Some(9), Some(0.0), None));
    }

    #[test]
    fn input_target_and_output_are_what_a_person_reads() {
        let found = made(
            r#"{"success":true,"vars":{"q":"x","n":[1, 2],"_conversation":[]},"response":{"output":{"a": 1}},
            "testCase":{"assert":[{"type":"equals","value":"y"},{"type":"is-json"}]}}"#,
        );
        assert_eq!(found.input.as_deref(), Some("q: x\nn: [1,2]"));
        assert_eq!(found.target.as_deref(), Some("equals: y\nis-json"));
        assert_eq!(found.output.as_deref(), Some(r#"{"a":1}"#));
        let found = made(r#"{"success":true,"vars":{},"prompt":{"raw":"say hi"},"response":{"output":""}}"#);
        assert_eq!((found.input.as_deref(), found.output), (Some("say hi"), None));
        let secret = made(r#"{"success":true,"vars":{"apiKey":"abcdef123456","q":"x"}}"#);
        assert!(!secret.input.unwrap().contains("abcdef"));
        let escaped = made(
            r#"{"success":true,"vars":{"q":["postgres:\/\/bob:hunter22x@db"]},"response":{"output":{"a":"password\u003dhunter22x"}}}"#,
        );
        assert_eq!(escaped.input.as_deref(), Some(r#"["postgres://bob:[REDACTED]@db"]"#));
        assert_eq!(escaped.output.as_deref(), Some(r#"{"a":"password=[REDACTED]"}"#));
    }
}
