//! What only some histories hold: questions and answers, skills and what was read of them, context use, analyses.
//!
//! Promises: the shape that the run record has in JSON is the shape that stores keep; every field says what it means and in which unit.
//! Does not: join or judge (`query`'s views do).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::time::Timestamp;

/// What a judge or person answered to one question about one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question, or its id.
    pub question: String,
    /// The answer as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Whether the answer is the good one; absent where the question has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Who answered: a model, a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// How often an attempt read a file of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillRead {
    /// The skill's name.
    pub skill: String,
    /// The file's path within the skill.
    pub file: String,
    /// How many times.
    pub reads: u32,
    /// The turn of the first time, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_turn: Option<u32>,
}

/// How much of a model's context window an attempt used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextUse {
    /// The most tokens that stood in the window at once.
    pub tokens_peak: u64,
    /// How many tokens the window takes, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
}

/// A file of a skill, as the run had it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillFile {
    /// The skill's name.
    pub skill: String,
    /// The file's path within the skill.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
}

/// Which of two attempts a judge preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The attempt that the pair calls `a`.
    A,
    /// The attempt that the pair calls `b`.
    B,
    /// Neither.
    Tie,
}

impl Pick {
    /// Every pick.
    pub const ALL: [Pick; 3] = [Pick::A, Pick::B, Pick::Tie];
}

/// One question asked of two attempts side by side, in one order or in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pair {
    /// The evaluation's id.
    pub evaluation: String,
    /// The question, or its id.
    pub question: String,
    /// The attempt shown first: its key in this record.
    pub a: String,
    /// The attempt shown second: its key in this record.
    pub b: String,
    /// What was picked with `a` shown first.
    pub picked: Pick,
    /// What was picked with `b` shown first (`a` is still the same attempt); absent where the other order was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked_swapped: Option<Pick>,
    /// Who picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// Where an analysis document comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnalysisSource {
    /// Kept on purpose.
    Saved,
    /// Left over from a command that made it.
    Cached,
}

impl AnalysisSource {
    /// Every source.
    pub const ALL: [AnalysisSource; 2] = [AnalysisSource::Saved, AnalysisSource::Cached];

    /// The source's word, which is its directory's name too.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            AnalysisSource::Saved => "saved",
            AnalysisSource::Cached => "cached",
        }
    }
}

/// An analysis of a run that somebody wrote.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The bare file name.
    pub file: String,
    /// Where it comes from.
    pub source: AnalysisSource,
    /// When it was written: what the document says, else the file's time.
    pub created_at: Timestamp,
    /// The document: JSON text as it stands.
    pub doc: Box<RawValue>,
}

impl PartialEq for Analysis {
    fn eq(&self, other: &Self) -> bool {
        let parts = |analysis: &Self| (analysis.file.clone(), analysis.source, analysis.created_at);
        parts(self) == parts(other) && self.doc.get() == other.doc.get()
    }
}

/// What a log holds beside its header and attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extras {
    /// Files of the skills that the run had.
    pub skill_files: Vec<SkillFile>,
    /// Questions asked of two attempts; these are named by [`super::attempt::Attempt::label`].
    pub pairs: Vec<Pair>,
    /// Analyses.
    pub analyses: Vec<Analysis>,
    /// Shas of the commits before the run's own, nearest first, where the log itself knows them.
    pub ancestors: Vec<String>,
}
