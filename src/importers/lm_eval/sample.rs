//! The lines of one doc, as an attempt: the conversation from the first, the checks from all.
//!
//! Promises: one line at a time; a transcript's line is strict JSON on one line; the deciding check stands first, and a doc that lacks it is
//! unscored whatever the others say.
//! Does not: know where lines stand.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    judge::Judge,
    row::{METRICS_MAX, Request, Row},
};
use crate::{
    domain::{
        attempt::{Attempt, shorten},
        key::case_id,
        outcome::Outcome,
    },
    importers::{
        Limits,
        inspect::lines::{LEVELS_MAX, too_deep},
        left_out,
        raw::{Fields, json, list, text},
    },
    telemetry::redaction::Redactor,
    transcript::Packer,
};

/// What every doc of a log shares.
pub(super) struct Context<'a> {
    pub(super) limits: &'a Limits,
    pub(super) redactor: &'a Redactor,
    pub(super) arm: String,
}

impl Context<'_> {
    /// `text` as it may be kept: without secrets first, then short (a cut could hide half a secret).
    fn shown(&self, text: &str) -> String {
        shorten(&self.redactor.redact(text), self.limits.text_bytes_max)
    }
}

/// How a task is read: its evaluation's id, how it is judged and by what.
pub(super) struct Rules {
    pub(super) evaluation: String,
    pub(super) judge: Judge,
    pub(super) decider: Option<(String, String)>,
}

/// An attempt being put together.
pub(super) struct Doc<'a> {
    attempt: Attempt,
    lines: Packer<'a>,
    too_deep: u32,
    decides: Option<usize>,
    full: bool,
}

impl<'a> Doc<'a> {
    /// Begins with the first line of a doc in its `turn`.
    pub(super) fn begin(row: &Row<'_>, turn: u32, rules: &Rules, context: &Context<'a>) -> Self {
        let requests = row.requests();
        let input = requests.first().and_then(|request| request.context).map(plain);
        let case = context.redactor.redact(&case_id(&row.id())).into_owned();
        let attempt = Attempt {
            input: input.map(|text| context.shown(&text)),
            target: row.get("target").map(|raw| context.shown(&plain(raw))),
            output: output(row, &requests).map(|text| context.shown(&text)),
            ..Attempt::unscored(rules.evaluation.clone(), context.arm.clone(), case, turn.saturating_add(1))
        };
        let mut doc = Self { attempt, lines: Packer::new(context.redactor), too_deep: 0, decides: None, full: false };
        doc.converse(&requests);
        doc.describe(row, &requests);
        doc
    }

    /// Adds the checks of one line, which is of `filter`.
    pub(super) fn judge(&mut self, row: &Row<'_>, filter: &str, rules: &Rules, context: &Context<'_>) {
        let metrics = row.metrics(&|name| rules.judge.knows(name));
        let answer = row.answer().map(|raw| context.shown(&plain(raw)));
        let mut spelled = String::new();
        for metric in &metrics {
            let raw = row.get(metric);
            let decides = rules.decider.as_ref().is_some_and(|(name, of)| name == metric && of == filter);
            push_member(&mut spelled, metric, raw.map_or("null", RawValue::get));
            if self.attempt.checks.len() >= METRICS_MAX {
                self.full = true;
                continue;
            }
            let mut check = rules.judge.check(metric, raw);
            check.name = context.shown(&format!("{metric},{filter}"));
            check.label = check.label.map(|label| context.shown(&label));
            check.answer.clone_from(&answer);
            if decides {
                self.decides = Some(self.attempt.checks.len());
            }
            self.attempt.checks.push(check);
        }
        let mut line = String::from("{\"event\":\"filter\"");
        push_member(&mut line, "filter", &quoted(filter));
        line.extend(row.filtered().map(|raw| format!(",\"filtered_resps\":{}", raw.get())));
        push_member(&mut line, "metrics", &if spelled.is_empty() { "{}".to_owned() } else { format!("{spelled}}}") });
        line.push('}');
        self.put(&line);
    }

    /// The attempt, and what could not be kept of it.
    pub(super) fn finish(self) -> (Attempt, Vec<String>) {
        let Self { mut attempt, lines, too_deep: deep, decides, full } = self;
        if let Some(place) = decides {
            let first = attempt.checks.remove(place);
            attempt.score = first.value;
            attempt.outcome = first.passed.map_or(Outcome::Unscored, |passed| if passed { Outcome::Pass } else { Outcome::Fail });
            attempt.checks.insert(0, first);
        }
        attempt.transcript = lines.finish();
        let who = format!("doc {} of {}", attempt.case.escape_debug(), attempt.evaluation.escape_debug());
        let complaints = left_out(&who, deep, full.then_some(("scores", METRICS_MAX))).collect();
        (attempt, complaints)
    }

    /// The prompts and what came back. A context that several requests share stands once.
    fn converse(&mut self, requests: &[Request<'_>]) {
        let mut before = None;
        for request in requests {
            let context = request.context.map(RawValue::get);
            if context != before {
                self.context(request);
                before = context;
            }
            for response in &request.responses {
                let line = match (request.continuation, request.generation) {
                    (Some(continuation), _) => {
                        format!("{{\"role\":\"continuation\",\"content\":{},\"response\":{}}}", continuation.get(), response.get())
                    }
                    (None, Some(_)) => format!("{{\"role\":\"assistant\",\"content\":{}}}", response.get()),
                    (None, None) => format!("{{\"role\":\"likelihood\",\"response\":{}}}", response.get()),
                };
                self.put(&line);
            }
        }
        self.lines.end_of_conversation();
    }

    fn context(&mut self, request: &Request<'_>) {
        let chat = request.chat();
        let messages = chat.as_deref().and_then(|chat| serde_json::from_str::<Vec<&RawValue>>(chat).ok()).unwrap_or_default();
        let roles = |raw: &&RawValue| serde_json::from_str::<Fields<'_>>(raw.get()).is_ok_and(|message| message.get("role").is_some());
        if !messages.is_empty() && messages.iter().all(roles) {
            messages.iter().for_each(|raw| self.put(raw.get()));
        } else if let Some(context) = request.context {
            self.put(&format!("{{\"role\":\"user\",\"content\":{}}}", context.get()));
        }
    }

    /// What the doc is, and how texts were generated.
    fn describe(&mut self, row: &Row<'_>, requests: &[Request<'_>]) {
        let mut line = String::from("{\"event\":\"doc\"");
        for key in ["doc", "target", "doc_hash", "prompt_hash", "target_hash"] {
            row.get(key).into_iter().for_each(|raw| push_member(&mut line, key, raw.get()));
        }
        line.push('}');
        self.put(&line);
        let mut before = None;
        for generation in requests.iter().filter_map(|request| request.generation) {
            if before != Some(generation.get()) {
                self.put(&format!("{{\"event\":\"generation\",\"arguments\":{}}}", generation.get()));
                before = Some(generation.get());
            }
        }
    }

    fn put(&mut self, line: &str) {
        if too_deep(line) {
            self.too_deep += 1;
            let bytes = line.len();
            return self.lines.line(&format!("{{\"left_out\":\"nested deeper than {LEVELS_MAX} levels\",\"bytes\":{bytes}}}"));
        }
        self.lines.line(line);
    }
}

/// Adds a member to an object that is being written.
fn push_member(out: &mut String, key: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    out.push_str(&quoted(key));
    out.push(':');
    out.push_str(value);
}

fn quoted(text: &str) -> String {
    // A string always serialises.
    serde_json::to_string(text).unwrap_or_default()
}

/// A value as text: a string's, else its JSON.
fn plain(raw: &RawValue) -> Cow<'_, str> {
    text(Some(raw)).unwrap_or_else(|| if raw.get() == "\"\"" { Cow::Borrowed("") } else { json(raw) })
}

/// What the model said first; of likelihoods, each continuation with its own.
fn output<'r>(row: &Row<'r>, requests: &[Request<'r>]) -> Option<Cow<'r, str>> {
    let continued: Vec<String> = requests
        .iter()
        .filter_map(|request| Some(format!("{}: {}", plain(request.continuation?), likelihood(request.responses.first()?))))
        .collect();
    if !continued.is_empty() {
        return Some(Cow::Owned(continued.join("\n")));
    }
    let said = requests.first().and_then(|request| request.responses.first().copied());
    said.or_else(|| row.filtered()).map(plain)
}

/// `["-0.39", "False"]`: the logarithm of the likelihood, and whether it was the likeliest.
fn likelihood(raw: &RawValue) -> Cow<'_, str> {
    list(Some(raw)).0.first().map_or_else(|| plain(raw), |first| plain(first))
}
