//! What a file says of the whole: times, the code's state, properties; and the header made of it.
//!
//! Promises: the earliest time is when the run was made; of the code's state the first that is said holds, and another stays visible as
//! metadata; metadata is bounded and says what was left out.
//! Does not: read XML.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    names::NAME_BYTES_MAX,
    properties::{Known, flag},
    text::{capped, millis, time},
};
use crate::{
    domain::{
        attempt::shorten,
        hex::hex_of_first,
        log::{ArmInfo, EvaluationInfo, Git, LogHeader, RunStatus},
        time::Timestamp,
    },
    telemetry::redaction::Redactor,
};

const METADATA_MAX: usize = 100;
/// Of the file's digest: enough that no two files share an id by chance, few enough to read.
const ID_BYTES: usize = 12;

/// How text is kept.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) redactor: &'a Redactor,
    pub(super) bytes_max: usize,
}

impl Shown<'_> {
    /// Without secrets first, then short (a cut could hide half a secret).
    pub(super) fn text(&self, text: &str) -> String {
        shorten(&self.redactor.redact(text), self.bytes_max)
    }

    pub(super) fn name(&self, name: &str, bytes_max: usize) -> String {
        capped(&self.redactor.redact(name), bytes_max)
    }

    /// A value without secrets. Its name may say that it is one, by itself or as an assignment (`OPENAI_API_TOKEN=...`).
    pub(super) fn safe(&self, name: &str, value: &str) -> String {
        let value = self.redactor.redact_value(name, value);
        let spelled = format!("{name}={value}");
        let safe = self.redactor.redact(&spelled);
        safe.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).unwrap_or(&value).to_owned()
    }
}

/// What is known of the whole file.
#[derive(Default)]
pub(super) struct Facts {
    /// The root's name, where the root is a list of suites.
    pub(super) root: Option<String>,
    /// Bytes of output that belongs to no one test.
    pub(super) output_left_out: u64,
    created: Option<Timestamp>,
    ended: Option<Timestamp>,
    git: Git,
    metadata: BTreeMap<String, Value>,
    left_out: u64,
}

impl Facts {
    /// A suite began at `timestamp` and took `seconds`.
    pub(super) fn ran(&mut self, timestamp: &str, seconds: &str) {
        let Some(began) = time(timestamp) else { return };
        self.created = Some(self.created.map_or(began, |held| held.min(began)));
        let took = millis(seconds).and_then(|took| i64::try_from(took).ok());
        if let Some(ended) = took.and_then(|took| began.moved(took)) {
            self.ended = Some(self.ended.map_or(ended, |held| held.max(ended)));
        }
    }

    /// Takes a property for the code's state; false where it is not, or another value stands there.
    pub(super) fn git(&mut self, known: Option<Known>, value: &str, shown: Shown<'_>) -> bool {
        let set = |held: &mut Option<String>, value: String| *held.get_or_insert_with(|| value.clone()) == value;
        match known {
            Some(Known::Sha) => set(&mut self.git.sha, value.to_owned()),
            Some(Known::Branch) => set(&mut self.git.branch, shown.name(value.trim(), NAME_BYTES_MAX)),
            Some(Known::Dirty) => *self.git.dirty.get_or_insert(flag(value).unwrap_or_default()) == flag(value).unwrap_or_default(),
            _ => false,
        }
    }

    /// Keeps a property of a suite.
    pub(super) fn property(&mut self, suite: &str, name: &str, value: &str, shown: Shown<'_>) {
        let kept = Value::String(shorten(&shown.safe(name, value), shown.bytes_max));
        let mut key = shown.name(name, NAME_BYTES_MAX);
        if self.metadata.get(&key).is_some_and(|held| *held != kept) {
            key = format!("{suite}.{key}");
        }
        if self.metadata.len() < METADATA_MAX || self.metadata.contains_key(&key) {
            self.metadata.entry(key).or_insert(kept);
        } else {
            self.left_out += 1;
        }
    }

    /// The header, and a complaint where the file says no time and `modified` is not known either.
    pub(super) fn header(
        self,
        digest: &[u8],
        modified: Option<Timestamp>,
        evaluations: Vec<String>,
        arms: Vec<ArmInfo>,
    ) -> (LogHeader, Option<String>) {
        let created = self.created.or(modified);
        let complaint = created.is_none().then(|| "no suite of the file says a time, so its run stands in 1970".to_owned());
        let id = hex_of_first(ID_BYTES, digest);
        let mut metadata = self.metadata;
        metadata.extend(self.root.map(|root| ("testsuites".to_owned(), Value::String(root))));
        for (key, count) in [("properties_left_out", self.left_out), ("suite_output_bytes_left_out", self.output_left_out)] {
            metadata.extend((count > 0).then(|| (key.to_owned(), count.into())));
        }
        let has_git = self.git.sha.is_some() || self.git.branch.is_some();
        let header = LogHeader {
            report_path: None,
            run_key: id.clone(),
            log_id: id,
            format: "junit".to_owned(),
            task_id: None,
            status: RunStatus::Completed,
            created_at: created.unwrap_or(Timestamp::from_millis(0)),
            started_at: self.created,
            completed_at: self.ended,
            git: has_git.then_some(self.git),
            round: None,
            evaluations: evaluations.into_iter().map(|id| EvaluationInfo { id, ..EvaluationInfo::default() }).collect(),
            arms,
            invalidated: false,
            error: None,
            tags: Vec::new(),
            metadata,
            metrics: Vec::new(),
        };
        (header, complaint)
    }
}
