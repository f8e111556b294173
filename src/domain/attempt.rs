//! One try at one case by one arm, as an importer yields it.
//!
//! Promises: every format fits; text is bounded by the importer; the transcript is already packed.
//! Does not: have a key or a run yet (the store gives them, since they depend on its siblings).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    extras::{Answer, ContextUse, SkillRead},
    outcome::Outcome,
    time::Timestamp,
};
use crate::transcript::Packed;

/// One assertion or score inside an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name: the scorer, the assertion; `scorer.key` for one value of a scorer of several.
    pub name: String,
    /// What made it: `score`, `assertion`, `skipped`, ...
    #[serde(default)]
    pub kind: String,
    /// Whether it passed; null where it could not answer.
    #[serde(default)]
    pub passed: Option<bool>,
    /// Its value as a number; null where there is none, NaN included.
    #[serde(default)]
    pub value: Option<f64>,
    /// Its value as the tool wrote it, where that is not a number (`C`, `yes`, a JSON text).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What was judged: the answer taken from the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an attempt consumed; null where unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Usage {
    /// Input tokens, cache reads and writes excluded.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// All tokens, graders' included.
    pub total_tokens: Option<u64>,
    /// Input tokens read from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Reasoning tokens (part of the output).
    pub reasoning_tokens: Option<u64>,
}

/// Tokens, or milliseconds, of one attempt that are believed: a million million, 31 years. What claims more is taken as unknown, so that sums over
/// nine million attempts fit the 63 bits that SQL adds in, and no slip of a tool's pen hides all other figures.
pub const FIGURE_MAX: u64 = 1_000_000_000_000;

/// Dollars of one attempt that are believed; in billionths, which costs are added up in, 900,000 of them fit 63 bits.
pub const COST_USD_MAX: f64 = 10_000.0;

/// One try at one case by one arm in one log.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The id of the evaluation, one of the header's.
    pub evaluation: String,
    /// The arm's name, one of the header's.
    pub arm: String,
    /// The case's id (`key::case_id`); empty where the evaluation has no dataset.
    pub case: String,
    /// The group that the case comes in (`key::group_id`: a passage with several questions, a repository with several tasks), where the source
    /// says that its cases do: those of one group are not independent of each other.
    pub group: Option<String>,
    /// The source's own ordinal of this try (epoch, trial, repeat), from 1.
    pub epoch: u32,
    /// The source's id for this very try, kept by copies in retries.
    pub uuid: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The primary score, where it is a number.
    pub score: Option<f64>,
    /// All assertions and scores, the deciding one first.
    pub checks: Vec<Check>,
    /// What it consumed.
    pub usage: Usage,
    /// What it cost in US dollars, where known (unknown is not 0).
    pub cost_usd: Option<f64>,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// Time without waiting and retries.
    pub working_ms: Option<u64>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Why it broke, where it did.
    pub error: Option<String>,
    /// The limit that ended it (`message`, `token`, `time`, ...), which is not an error.
    pub limit: Option<String>,
    /// Failed tries before this one inside the log.
    pub retries: u32,
    /// The case's input, shortened.
    pub input: Option<String>,
    /// The case's target, shortened.
    pub target: Option<String>,
    /// The final output, shortened.
    pub output: Option<String>,
    /// Its messages and events.
    pub transcript: Packed,
    /// What the rest of its log calls it, where something there refers to it. Not kept.
    pub label: Option<String>,
    /// Questions about it alone.
    pub answers: Vec<Answer>,
    /// What it read of its skills.
    pub skill_reads: Vec<SkillRead>,
    /// How much context it used.
    pub context: Option<ContextUse>,
}

impl Attempt {
    /// Forgets figures that nobody believes ([`FIGURE_MAX`], [`COST_USD_MAX`], and costs below 0), and says which.
    pub fn forget_absurd(&mut self) -> Option<String> {
        let usage = &mut self.usage;
        let counts = [
            ("input tokens", &mut usage.input_tokens),
            ("output tokens", &mut usage.output_tokens),
            ("total tokens", &mut usage.total_tokens),
            ("cache read tokens", &mut usage.cache_read_tokens),
            ("cache write tokens", &mut usage.cache_write_tokens),
            ("reasoning tokens", &mut usage.reasoning_tokens),
            ("duration", &mut self.duration_ms),
            ("working time", &mut self.working_ms),
        ];
        let mut absurd: Vec<&str> =
            counts.into_iter().filter_map(|(name, figure)| figure.take_if(|figure| *figure > FIGURE_MAX).map(|_| name)).collect();
        absurd.extend(self.cost_usd.take_if(|cost| !(0.0..=COST_USD_MAX).contains(cost)).map(|_| "cost"));
        if absurd.is_empty() {
            return None;
        }
        let (what, case) = (absurd.join(", "), shorten(&self.case, 80));
        Some(format!(
            "{} case {} (epoch {}): more than can be believed of one attempt is taken as unknown: {what}",
            shorten(&self.evaluation, 80).escape_debug(),
            case.escape_debug(),
            self.epoch
        ))
    }

    /// A try of which only its place is known.
    #[must_use]
    pub fn unscored(evaluation: String, arm: String, case: String, epoch: u32) -> Self {
        Self {
            evaluation,
            arm,
            case,
            group: None,
            epoch,
            uuid: None,
            outcome: Outcome::Unscored,
            score: None,
            checks: Vec::new(),
            usage: Usage::default(),
            cost_usd: None,
            duration_ms: None,
            working_ms: None,
            started_at: None,
            error: None,
            limit: None,
            retries: 0,
            input: None,
            target: None,
            output: None,
            transcript: Packed::default(),
            label: None,
            answers: Vec::new(),
            skill_reads: Vec::new(),
            context: None,
        }
    }
}

/// `text` cut to `max` bytes at a character, saying how much was cut. What was cut so before stays: a second pass changes nothing.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max || is_shortened(text, max) {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max);
    let (kept, cut) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{kept}...[{} bytes cut]", cut.len())
}

/// Whether `text` is what [`shorten`] made of a longer one.
fn is_shortened(text: &str, max: usize) -> bool {
    let Some(head) = text.strip_suffix(" bytes cut]") else { return false };
    let digits = head.trim_end_matches(|character: char| character.is_ascii_digit());
    digits.len() < head.len() && digits.strip_suffix("...[").is_some_and(|kept| kept.len() <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_believes_is_unknown() {
        let mut attempt = Attempt {
            usage: Usage { input_tokens: Some(FIGURE_MAX), output_tokens: Some(u64::MAX), ..Usage::default() },
            cost_usd: Some(1e300),
            duration_ms: Some(FIGURE_MAX + 1),
            ..Attempt::unscored("e".into(), "m".into(), "1".into(), 2)
        };
        let said = attempt.forget_absurd();
        let wanted = "e case 1 (epoch 2): more than can be believed of one attempt is taken as unknown: output tokens, duration, cost";
        assert_eq!(said.as_deref(), Some(wanted));
        assert_eq!((attempt.usage.input_tokens, attempt.usage.output_tokens), (Some(FIGURE_MAX), None));
        assert_eq!((attempt.duration_ms, attempt.cost_usd, attempt.forget_absurd()), (None, None, None));
        for (cost, kept) in [(0.0, true), (COST_USD_MAX, true), (-0.5, false), (f64::NAN, false)] {
            attempt.cost_usd = Some(cost);
            attempt.forget_absurd();
            assert_eq!(attempt.cost_usd.is_some(), kept, "{cost}");
        }
    }

    #[test]
    fn text_is_cut_at_a_character_and_says_so() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("日本語", 4), "日...[6 bytes cut]");
        assert_eq!(shorten("日...[6 bytes cut]", 4), "日...[6 bytes cut]");
        assert_eq!(shorten("日本...[6 bytes cut]", 4), "日...[19 bytes cut]");
    }
}
