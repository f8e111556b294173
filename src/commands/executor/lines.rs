//! What an executor writes on its standard output: one JSON document a line, into the attempts of a run.
//!
//! Promises: attempts come out only where every line was a document of ours, every case of the run has a result, nothing else has one, the end
//! was said and nothing came after it, and the cost stays within what was allowed: else one sentence and no attempt. Memory is the results and
//! one line. Secrets in texts are replaced, as importers do; names of cases are compared as they are.
//! Does not: read a pipe, or know how the program ended.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    domain::{
        attempt::{Attempt, COST_USD_MAX, Check, Usage, shorten},
        outcome::Outcome,
        text::clean,
    },
    telemetry::redaction::Redactor,
    transcript::{Packed, Packer},
};

/// Checks of one attempt.
const CHECKS_MAX: usize = 1000;
/// Bytes of what an executor wrote that a sentence repeats.
const SHOWN_BYTES: usize = 80;
/// Dollars by which sums of decimal fractions may be off.
const CENT_FRACTION: f64 = 1e-9;
/// What the check is called that is made of a score or a reason where there are no others.
const RESULT: &str = "result";

/// What may come.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The evaluation's id.
    pub evaluation: String,
    /// The arm's name.
    pub arm: String,
    /// The cases: id, input, what is right.
    pub cases: Vec<(String, String, Option<String>)>,
    /// What all of it may cost, earlier tries included.
    pub max_cost_usd: Option<f64>,
    /// What earlier tries cost, as far as is known.
    pub spent_usd: Option<f64>,
    /// Bytes of one line.
    pub line_bytes_max: usize,
    /// Bytes of all of it.
    pub output_bytes_max: usize,
    /// Results of all cases.
    pub results_max: usize,
    /// Bytes of a text in the tables.
    pub text_bytes_max: usize,
}

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The attempts, as they came.
    pub attempts: Vec<Attempt>,
    /// What they cost, where any said so.
    pub cost_usd: Option<f64>,
}

/// The document that a line begins to be read as.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    case: Option<String>,
}

/// A line that only says what it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    #[serde(rename = "type")]
    _kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    #[serde(rename = "type")]
    _kind: String,
    done: u64,
}

/// How an attempt may end: by a result, never by cancelling.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Word {
    Pass,
    Fail,
    InfraError,
    Unscored,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Said {
    #[serde(rename = "type")]
    _kind: String,
    #[serde(rename = "case")]
    _case: String,
    outcome: Word,
    n: Option<u32>,
    score: Option<f64>,
    output: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    checks: Vec<SaidCheck>,
    #[serde(default)]
    usage: Usage,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    #[serde(default)]
    transcript: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidCheck {
    name: String,
    passed: Option<bool>,
    value: Option<f64>,
    label: Option<String>,
    reason: Option<String>,
}

/// Takes what an executor writes, in any pieces.
pub struct Collector {
    plan: Plan,
    redactor: Arc<Redactor>,
    /// Where each case stands in the plan.
    known: HashMap<String, usize>,
    /// The beginning of a line that has not ended.
    open: Vec<u8>,
    bytes: usize,
    lines: u64,
    ended: bool,
    attempts: Vec<Attempt>,
    seen: HashSet<(usize, u32)>,
    cases_done: HashSet<usize>,
    told_done: u64,
    cost_usd: Option<f64>,
}

impl Collector {
    /// Nothing came yet.
    #[must_use]
    pub fn new(plan: Plan, redactor: Arc<Redactor>) -> Self {
        let known = plan.cases.iter().enumerate().map(|(at, (id, ..))| (id.clone(), at)).collect();
        let cost_usd = plan.spent_usd;
        Self {
            plan,
            redactor,
            known,
            open: Vec::new(),
            bytes: 0,
            lines: 0,
            ended: false,
            attempts: Vec::new(),
            seen: HashSet::new(),
            cases_done: HashSet::new(),
            told_done: 0,
            cost_usd,
        }
    }

    /// Cases that have a result, as far as is known.
    #[must_use]
    pub fn done(&self) -> u64 {
        (self.cases_done.len() as u64).max(self.told_done).min(self.plan.cases.len() as u64)
    }

    /// What it has cost so far.
    #[must_use]
    pub const fn cost_usd(&self) -> Option<f64> {
        self.cost_usd
    }

    /// The next bytes.
    ///
    /// # Errors
    /// A sentence; nothing counts then, whatever comes after.
    pub fn take(&mut self, block: &[u8]) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(block.len());
        if self.bytes > self.plan.output_bytes_max {
            return Err(format!("the executor wrote more than {} bytes (output_bytes_max)", self.plan.output_bytes_max));
        }
        let mut rest = block;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            self.grow(line)?;
            let whole = std::mem::take(&mut self.open);
            self.line(&whole)?;
            rest = after.get(1..).unwrap_or_default();
        }
        self.grow(rest)
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), String> {
        if self.open.len().saturating_add(part.len()) > self.plan.line_bytes_max {
            return Err(format!(
                "line {} of the executor has more than {} bytes (line_bytes_max)",
                self.lines + 1,
                self.plan.line_bytes_max
            ));
        }
        self.open.extend_from_slice(part);
        Ok(())
    }

    /// All came.
    ///
    /// # Errors
    /// A sentence, where something lacks.
    pub fn finish(mut self) -> Result<Results, String> {
        let last = std::mem::take(&mut self.open);
        self.line(&last)?;
        if !self.ended {
            let what = if self.attempts.is_empty() { "without a result" } else { "in the middle of its results" };
            return Err(format!("the executor ended {what}: it never wrote {{\"type\":\"end\"}}"));
        }
        let lacks = |at: &usize| !self.cases_done.contains(at);
        let missing = (0..self.plan.cases.len()).filter(lacks).count();
        if let Some((id, ..)) = (0..self.plan.cases.len()).find(lacks).and_then(|at| self.plan.cases.get(at)) {
            let total = self.plan.cases.len();
            return Err(format!("the executor gave no result for {missing} of {total} cases, the first of them {}", shown(id)));
        }
        Ok(Results { attempts: self.attempts, cost_usd: self.cost_usd })
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.lines += 1;
        let number = self.lines;
        let wrong = |why: &str| format!("line {number} of the executor {why}");
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("is no UTF-8"))?.trim();
        if text.is_empty() {
            return Ok(());
        }
        if self.ended {
            return Err(wrong("came after its end"));
        }
        let head: Head = serde_json::from_str(text).map_err(|error| wrong(&format!("is no document of ours: {}", why(&error))))?;
        match head.kind.as_str() {
            "end" => {
                serde_json::from_str::<End>(text).map_err(|error| wrong(&format!("is no end: {}", why(&error))))?;
                self.ended = true;
                Ok(())
            }
            "progress" => {
                let told: Progress = serde_json::from_str(text).map_err(|error| wrong(&format!("is no progress: {}", why(&error))))?;
                self.told_done = self.told_done.max(told.done);
                Ok(())
            }
            "result" => self.result(text, head.case.as_deref()).map_err(|why| wrong(&why)),
            other => Err(wrong(&format!("has the type {}; there are result, progress and end", shown(other)))),
        }
    }

    fn result(&mut self, text: &str, case: Option<&str>) -> Result<(), String> {
        let case = case.ok_or("is a result without a case")?;
        let at = *self.known.get(case).ok_or_else(|| format!("is of the case {}, which is none of this run", shown(case)))?;
        let redacted = self.redactor.redact_json(text);
        let said: Said = serde_json::from_str(&redacted).map_err(|error| format!("is no result: {}", why(&error)))?;
        let n = said.n.unwrap_or(1);
        if n == 0 {
            return Err(format!("is try 0 of the case {}; tries count from 1", shown(case)));
        }
        if !self.seen.insert((at, n)) {
            return Err(format!("is a second result of try {n} of the case {}", shown(case)));
        }
        if self.attempts.len() >= self.plan.results_max {
            return Err(format!("is one result more than {} (results_max)", self.plan.results_max));
        }
        if said.checks.len() > CHECKS_MAX {
            return Err(format!("has more than {CHECKS_MAX} checks"));
        }
        self.pay(said.cost_usd)?;
        self.cases_done.insert(at);
        let attempt = self.attempt(at, n, said);
        self.attempts.push(attempt);
        Ok(())
    }

    fn pay(&mut self, cost_usd: Option<f64>) -> Result<(), String> {
        let Some(cost) = cost_usd else { return Ok(()) };
        if !(0.0..=COST_USD_MAX).contains(&cost) {
            return Err(format!("says that it cost {cost} dollars; from 0 to {COST_USD_MAX} are believed of one attempt"));
        }
        let total = self.cost_usd.unwrap_or(0.0) + cost;
        self.cost_usd = Some(total);
        match self.plan.max_cost_usd {
            Some(max) if total > max + CENT_FRACTION => Err(format!("brings the cost to {total} dollars; the run may cost {max}")),
            _ => Ok(()),
        }
    }

    fn attempt(&self, at: usize, n: u32, said: Said) -> Attempt {
        let max = self.plan.text_bytes_max;
        let short = |text: Option<String>| text.map(|text| shorten(&text, max));
        let (id, input, expected) = self.plan.cases.get(at).cloned().unwrap_or_default();
        let outcome = match said.outcome {
            Word::Pass => Outcome::Pass,
            Word::Fail => Outcome::Fail,
            Word::InfraError => Outcome::InfraError,
            Word::Unscored => Outcome::Unscored,
        };
        let broke = outcome == Outcome::InfraError;
        let reason = short(said.reason);
        let made = said.checks.into_iter().map(|check| Check {
            kind: if check.passed.is_some() { "assertion" } else { "score" }.to_owned(),
            name: shorten(&check.name, max),
            passed: check.passed,
            value: check.value,
            label: short(check.label),
            answer: None,
            reason: short(check.reason),
        });
        let mut checks: Vec<Check> = made.collect();
        if !broke {
            explain(&mut checks, outcome, said.score, reason.clone());
        }
        let mut attempt = Attempt {
            outcome,
            score: said.score,
            checks,
            usage: said.usage,
            cost_usd: said.cost_usd,
            duration_ms: said.duration_ms,
            error: reason.filter(|_| broke),
            input: Some(shorten(&input, max)),
            target: short(expected),
            output: short(said.output),
            transcript: self.packed(&said.transcript),
            ..Attempt::unscored(self.plan.evaluation.clone(), self.plan.arm.clone(), id, n)
        };
        // Tokens and times beyond belief are unknown; the costs were looked at.
        let _ = attempt.forget_absurd();
        attempt
    }

    fn packed(&self, lines: &[Box<RawValue>]) -> Packed {
        let mut packer = Packer::new(&self.redactor);
        lines.iter().for_each(|line| packer.line(line.get()));
        packer.end_of_conversation();
        packer.finish()
    }
}

/// Says why: in the first check that says nothing, or in one of its own.
fn explain(checks: &mut Vec<Check>, outcome: Outcome, score: Option<f64>, reason: Option<String>) {
    if let Some(first) = checks.first_mut() {
        first.reason = first.reason.take().or(reason);
        return;
    }
    if score.is_none() && reason.is_none() {
        return;
    }
    let passed = match outcome {
        Outcome::Pass => Some(true),
        Outcome::Fail => Some(false),
        _ => None,
    };
    checks.push(Check { name: RESULT.to_owned(), kind: "score".to_owned(), passed, value: score, reason, ..Check::default() });
}

fn shown(text: &str) -> String {
    format!("\"{}\"", clean(&shorten(text, SHOWN_BYTES)))
}

/// What is wrong with a document, without the place in its only line.
fn why(error: &serde_json::Error) -> String {
    let text = error.to_string();
    clean(&shorten(text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why), 200))
}

#[cfg(test)]
mod tests;
