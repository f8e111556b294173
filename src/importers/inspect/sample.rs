//! One sample, or its line in the summaries, as an attempt without its transcript.
//!
//! Promises: fields of every age are read; what a log does not say is none, never zero.
//! Does not: pack transcripts (`lines` does).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    attachments::Attachments,
    pool::Pool,
    score::{Decider, judge, outcome},
};
use crate::{
    domain::{
        attempt::{Attempt, Usage, shorten},
        key::{case_id, group_id},
        outcome::Outcome,
        time::Timestamp,
    },
    importers::{
        Limits,
        raw::{Fields, List, count, fields, list, number, read, text},
    },
    telemetry::redaction::Redactor,
};

/// What every sample of a log shares.
pub(super) struct Context<'a> {
    pub(super) limits: &'a Limits,
    pub(super) redactor: &'a Redactor,
    pub(super) evaluation: String,
    pub(super) arm: String,
    pub(super) decider: Decider,
    /// The key of the metadata that names a case's group.
    pub(super) cluster: Option<String>,
}

impl Context<'_> {
    /// `text` as it may be kept: without secrets first, then short (a cut could hide half a secret).
    pub(super) fn shown(&self, text: &str) -> String {
        shorten(&self.redactor.redact(text), self.limits.text_bytes_max)
    }
}

/// A sample as it stands in a log. `_journal` summaries have the same fields, fewer of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sample<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    epoch: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    target: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    pub(super) messages: List<'a>,
    pub(super) scores: Fields<'a>,
    /// Logs before several scorers.
    score: Option<&'a RawValue>,
    pub(super) events: List<'a>,
    /// Logs before `events` and `attachments`.
    transcript: Option<&'a RawValue>,
    pub(super) attachments: Fields<'a>,
    events_data: Option<&'a RawValue>,
    /// The pools as the development version with format 3 spelled them.
    message_pool: List<'a>,
    call_pool: List<'a>,
    model_usage: Fields<'a>,
    total_time: Option<&'a RawValue>,
    working_time: Option<&'a RawValue>,
    started_at: Option<&'a RawValue>,
    uuid: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    error_retries: List<'a>,
    retries: Option<&'a RawValue>,
    limit: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    /// Who marked it as invalid, when and why.
    invalidation: Option<&'a RawValue>,
    /// Chunked samples: the final conversation as ranges of the pool.
    pub(super) message_refs: List<'a>,
}

impl<'a> Sample<'a> {
    /// Reads a sample and brings old spellings to today's. `old_scorer` is who a lone `score` came from.
    pub(super) fn read(json: &'a str, old_scorer: Option<&'a str>) -> Result<Self, String> {
        // A struct can be read from a list as well.
        if !json.trim_ascii_start().starts_with('{') {
            return Err("it is no object".to_owned());
        }
        let mut sample: Sample<'a> = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if sample.id.is_none() {
            return Err("it has no \"id\"".to_owned());
        }
        if let Some(score) = sample.score.take()
            && sample.scores.0.is_empty()
        {
            sample.scores.0.push((Cow::Borrowed(old_scorer.unwrap_or("score")), score));
        }
        if let Some(transcript) = sample.transcript.take() {
            let old = fields(Some(transcript));
            sample.events = list(old.get("events"));
            sample.attachments = fields(old.get("content"));
        }
        Ok(sample)
    }

    /// The messages and the calls that model events name by number.
    pub(super) fn pools(&self) -> (Pool<'a>, Pool<'a>) {
        let pools = fields(self.events_data);
        let pool = |key, older: &List<'a>| Pool::new(pools.get(key).map_or_else(|| older.0.clone(), |raw| list(Some(raw)).0));
        (pool("messages", &self.message_pool), pool("calls", &self.call_pool))
    }

    /// The case and the epoch: what a row of a log is known by, before secrets are taken out.
    pub(super) fn row(&self) -> (String, u32) {
        let id = read::<Value>(self.id).unwrap_or(Value::Null);
        let epoch = count(self.epoch).and_then(|epoch| u32::try_from(epoch).ok());
        (case_id(&id), epoch.unwrap_or(1))
    }

    /// The name that Inspect gives this sample's entry of an archive, without its end.
    pub(super) fn entry_stem(&self) -> String {
        let id = text(self.id).unwrap_or_else(|| self.id.map(RawValue::get).unwrap_or_default().into());
        format!("samples/{id}_epoch_{}", self.row().1)
    }

    /// The attempt, its transcript apart.
    pub(super) fn attempt(&self, context: &Context<'_>, attachments: &Attachments<'_>) -> Attempt {
        let shown = |text: &str| context.shown(text);
        let whole = |text: Cow<'_, str>| shown(&attachments.in_text(text));
        let error = self.error_message();
        let (checks, score) = judge(&self.scores, &context.decider, &shown);
        let (case, epoch) = self.row();
        let case = context.redactor.redact(&case).into_owned();
        let attempt = Attempt {
            uuid: text(self.uuid).map(|uuid| context.redactor.redact(&uuid).into_owned()),
            group: self.group(context),
            outcome: outcome(error.as_deref(), score),
            score,
            checks,
            usage: self.usage(),
            cost_usd: self.cost(),
            duration_ms: millis(self.total_time),
            working_ms: millis(self.working_time),
            started_at: text(self.started_at).and_then(|time| Timestamp::parse(&time)),
            error: error.map(whole),
            limit: self.limit_kind().map(Cow::into_owned),
            retries: self.retry_count(),
            input: spoken(self.input).map(whole),
            target: target(self.target).map(whole),
            output: self.said().map(whole),
            ..Attempt::unscored(context.evaluation.clone(), context.arm.clone(), case, epoch)
        };
        match self.invalidated() {
            Some(why) => without_judgement(attempt, shown(&why)),
            None => attempt,
        }
    }

    /// The group of its case: the value of the key that a clustered metric names.
    fn group(&self, context: &Context<'_>) -> Option<String> {
        let key = context.cluster.as_deref()?;
        let id = group_id(&read::<Value>(fields(self.metadata).get(key))?)?;
        Some(context.redactor.redact_value(key, &id).into_owned())
    }

    /// In a sentence, who said that it does not count, and why; none where nobody did.
    fn invalidated(&self) -> Option<String> {
        let raw = self.invalidation.filter(|raw| raw.get() != "null")?;
        let given = fields(Some(raw));
        let said = |key| text(given.get(key)).filter(|text| !text.trim().is_empty());
        let by = said("author").map(|author| format!(" by {author}")).unwrap_or_default();
        let why = said("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
        Some(format!("invalidated{by}{why}"))
    }

    /// An object with a message, or in summaries the message itself.
    fn error_message(&self) -> Option<Cow<'a, str>> {
        let raw = self.error?;
        Some(text(Some(raw)).or_else(|| text(fields(Some(raw)).get("message"))).unwrap_or(Cow::Borrowed("an error without a message")))
    }

    fn limit_kind(&self) -> Option<Cow<'a, str>> {
        text(self.limit).or_else(|| text(fields(self.limit).get("type")))
    }

    fn retry_count(&self) -> u32 {
        let counted = count(self.retries).unwrap_or(self.error_retries.0.len() as u64);
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    fn said(&self) -> Option<Cow<'a, str>> {
        let output = fields(self.output);
        text(output.get("completion")).or_else(|| {
            let choices = list(output.get("choices"));
            content(fields(fields(choices.0.first().copied()).get("message")).get("content"))
        })
    }

    fn usage(&self) -> Usage {
        let sum =
            |key: &str| self.model_usage.0.iter().filter_map(|(_, raw)| count(fields(Some(raw)).get(key))).reduce(u64::saturating_add);
        Usage {
            input_tokens: sum("input_tokens"),
            output_tokens: sum("output_tokens"),
            total_tokens: sum("total_tokens"),
            cache_read_tokens: sum("input_tokens_cache_read"),
            cache_write_tokens: sum("input_tokens_cache_write"),
            reasoning_tokens: sum("reasoning_tokens"),
        }
    }

    /// Unknown as soon as one model that did something has no price: half a cost would pass for the whole.
    fn cost(&self) -> Option<f64> {
        let mut sum = None;
        for (_, raw) in &self.model_usage.0 {
            let usage = fields(Some(raw));
            match number(usage.get("total_cost")) {
                Some(cost) => sum = Some(sum.unwrap_or(0.0) + cost),
                None if count(usage.get("total_tokens")).unwrap_or(0) > 0 => return None,
                None => {}
            }
        }
        sum
    }
}

/// What somebody marked as invalid has no outcome: neither passed nor failed, and its checks say what they saw and judge nothing. What broke or
/// was cancelled stays so: it has none anyway.
fn without_judgement(mut attempt: Attempt, why: String) -> Attempt {
    if matches!(attempt.outcome, Outcome::InfraError | Outcome::Cancelled) {
        return attempt;
    }
    attempt.checks.iter_mut().for_each(|check| check.passed = None);
    Attempt { outcome: Outcome::Unscored, score: None, error: Some(why), ..attempt }
}

fn millis(seconds: Option<&RawValue>) -> Option<u64> {
    // Casting a float saturates, and negative ones are turned away before.
    number(seconds).filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1000.0).round() as u64)
}

/// An input: a string, or messages.
fn spoken(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(raw).or_else(|| {
        let said = |message: &&RawValue| {
            let message = fields(Some(message));
            let content = content(message.get("content"))?;
            Some(format!("{}: {content}", text(message.get("role")).unwrap_or_default()))
        };
        let messages: Vec<String> = list(raw).0.iter().filter_map(said).collect();
        (!messages.is_empty()).then(|| Cow::Owned(messages.join("\n")))
    })
}

/// A message's content: a string, or parts of which the text is taken and the rest named.
fn content(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(raw).or_else(|| {
        let parts: Vec<Cow<'_, str>> = list(raw).0.into_iter().filter_map(part).collect();
        (!parts.is_empty()).then(|| Cow::Owned(parts.join("\n")))
    })
}

fn part(raw: &RawValue) -> Option<Cow<'_, str>> {
    let part = fields(Some(raw));
    text(part.get("text")).or_else(|| text(part.get("reasoning"))).or_else(|| {
        let kind = text(part.get("type"))?;
        Some(Cow::Owned(format!("[{kind}]")))
    })
}

/// A target: a string, or several that all count.
fn target(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(raw).or_else(|| {
        let several: Vec<Cow<'_, str>> = list(raw).0.iter().filter_map(|one| text(Some(one))).collect();
        (!several.is_empty()).then(|| Cow::Owned(several.join(", ")))
    })
}
