//! The run record: a run in runlore's own format, as `show` answers it, `export` writes it and the importer reads it.
//!
//! Promises: one shape for all three; its JSON Schema (`config/run-record.schema.json`) is made from these types; unknown fields are refused
//! by name, so that a slip of the pen loses nothing silently; what is worked out from the rest is marked so and not believed on reading.
//! Does not: hold transcripts and analyses (they stand in files beside it).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    attempt::{Check, Usage},
    cell::Verdict,
    extras::{Answer, ContextUse, Pair, SkillFile, SkillRead},
    log::{Git, Kind, ReportedMetric, RunStatus, Source},
    outcome::{Counts, Outcome},
    time::Timestamp,
};

/// The version of this form. A reader takes this one and older ones.
pub const SCHEMA_VERSION: u32 = 1;

/// A run: what was compared, on what, and how each attempt ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRecord {
    /// The version of this form: 1.
    pub schema_version: u32,
    /// The run's id, unique in its project.
    pub run_id: String,
    /// Recorded or scratch. Not read: where the file stands decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Where it stands; completed where it is not said.
    #[serde(default = "completed")]
    pub status: RunStatus,
    /// When it was created, RFC 3339.
    pub created_at: Timestamp,
    /// When work began.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// When work ended.
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
    /// Its code.
    #[serde(default)]
    pub git: Option<Git>,
    /// The group of runs (an eval set, a sweep, an experiment).
    #[serde(default)]
    pub round: Option<String>,
    /// The five counts over all its attempts. Not read: they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Whether somebody marked it as invalid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalidated: bool,
    /// Why it failed as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where a report of it stands. Only told, never opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_path: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Free name/value pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Shas of the commits before its own, nearest first, up to 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
    /// Its arms. One that only attempts name has no factors.
    #[serde(default)]
    pub arms: Vec<ArmRecord>,
    /// What the tool itself reported, to hold ours against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ReportedMetric>,
    /// Files of the skills that its attempts had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skill_files: Vec<SkillFile>,
    /// Questions asked of two attempts side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pair>,
    /// Its evaluations, by id.
    pub evals: Vec<Eval>,
}

const fn completed() -> RunStatus {
    RunStatus::Completed
}

/// What is compared: a model with everything around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmRecord {
    /// The name, unique in a project.
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// `control` or `variant`, where declared.
    #[serde(default, deserialize_with = "role")]
    pub role: Option<String>,
    /// Name/level pairs of the stack (`model`, `harness`, `effort`, ...).
    #[serde(default)]
    pub factors: BTreeMap<String, String>,
}

/// An evaluation of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Eval {
    /// Its id.
    #[serde(deserialize_with = "named")]
    pub id: String,
    /// Its number in the project. Not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Evaluations made from one template share a family.
    #[serde(default)]
    pub family: Option<String>,
    /// Where it is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The rate from which a cell passes, 0 to 1, where declared.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Its dataset.
    #[serde(default)]
    pub dataset: Option<Dataset>,
    /// What tells one state of its scorers from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scorer_digest: Option<String>,
    /// How it was run, beyond the arm: name/level pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// One per arm. Of these only the sum of the counts is read: how many attempts were planned for the arm; what has no record is missing.
    #[serde(default)]
    pub cells: Vec<ArmCell>,
    /// Its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptRecord>>,
}

/// An evaluation's dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Its name.
    #[serde(default)]
    pub id: Option<String>,
    /// What tells one state of it from another.
    #[serde(default)]
    pub digest: Option<String>,
    /// How many cases it has.
    #[serde(default)]
    pub cases: Option<u32>,
}

/// An arm's cell.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmCell {
    /// The arm's name.
    #[serde(deserialize_with = "named")]
    pub arm: String,
    /// The word. Not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Passed over counted; null when nothing was counted. Not read.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The five counts.
    pub counts: Counts,
    /// The threshold that judged it. Not read.
    #[serde(default)]
    pub threshold: Option<f64>,
}

/// An attempt of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptRecord {
    /// Its key, for `transcript`; in a file, what `pairs` call it.
    #[serde(default)]
    pub attempt: String,
    /// The case's id; empty where the evaluation has no dataset.
    #[serde(default)]
    pub case: String,
    /// The group that the case comes in (a passage with several questions, a repository with several tasks): differences are then clustered by
    /// group. The first attempt of a case is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The arm's name.
    #[serde(deserialize_with = "named")]
    pub arm: String,
    /// From 1 in evaluation, case and arm; in a file, the order where it is not said.
    #[serde(default)]
    pub n: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The primary score.
    #[serde(default)]
    pub score: Option<f64>,
    /// Its checks, the deciding one first.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// What it consumed.
    #[serde(default)]
    pub usage: Usage,
    /// Wall time in milliseconds.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// What it cost in US dollars; unknown is not 0.
    #[serde(default, deserialize_with = "cost")]
    pub cost_usd: Option<f64>,
    /// Time without waiting and retries, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_ms: Option<u64>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The source's id of this very try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Why it broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The limit that ended it, which is not an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Failed tries before it inside the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The case's input; the first attempt of a case is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The case's target; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The final output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Questions about it alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// What it read of its skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skill_reads: Vec<SkillRead>,
    /// How much context it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// Its transcript, in a file beside the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptFile>,
}

/// A name that says something.
fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.trim().is_empty() { Err(D::Error::custom("it must not be empty")) } else { Ok(name) }
}

fn role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let role = Option::<String>::deserialize(deserializer)?;
    let known = role.as_deref().is_none_or(|role| matches!(role, "control" | "variant"));
    if known { Ok(role) } else { Err(D::Error::custom("it must be control or variant")) }
}

fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let cost = Option::<f64>::deserialize(deserializer)?;
    if cost.is_some_and(|cost| cost < 0.0) { Err(D::Error::custom("it must not be negative")) } else { Ok(cost) }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Where an attempt's transcript stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscriptFile {
    /// The file, relative to the record's directory: `transcripts/<name>.jsonl`, a JSON object a line.
    pub file: String,
    /// How many of its lines, from the first, are the conversation; all where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The schema that is shipped is that of the types; `UPDATE=1` writes it.
    #[test]
    fn the_schema_is_current() {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_deserialize();
        let mut schema = settings.into_generator().into_root_schema_for::<RunRecord>();
        schema.insert("title".to_owned(), "runlore run record".into());
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/run-record.schema.json");
        if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "config/run-record.schema.json:1: it is stale; run `UPDATE=1 cargo test` and commit what it writes");
    }

    /// What a reader needs is little; what it leaves out has a meaning.
    #[test]
    fn a_record_of_few_fields_is_whole() {
        let text = r#"{"schemaVersion": 1, "runId": "r", "createdAt": "2026-01-02T03:04:05Z", "evals": [{"id": "e"}]}"#;
        let record: RunRecord = serde_json::from_str(text).unwrap();
        assert_eq!((record.status, record.arms.len(), record.evals[0].attempts.is_none()), (RunStatus::Completed, 0, true));
        assert!(serde_json::from_str::<RunRecord>(&text.replace("runId", "run_id")).is_err());
    }
}
