//! Logs to import in tests, built in one line.
//!
//! Promises: what a test does not mention is the same in every log.
//! Does not: read files.

use std::collections::BTreeMap;

use Outcome::{Fail, InfraError, Pass};

use crate::domain::{attempt::Attempt, extras::Extras, log::LogHeader};
use crate::{domain::log::ReportedMetric, store::*};

/// A log to be imported, as often as needed.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// The file.
    pub file: FileStamp,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Everything but the attempts.
    pub header: LogHeader,
    /// Whether its run key is the operator's.
    pub pinned: bool,
    /// Commits before its own.
    pub ancestors: Vec<String>,
    /// What few formats hold.
    pub extras: Extras,
    /// Its attempts, and the error that ends them.
    pub attempts: Vec<std::result::Result<Attempt, String>>,
}

/// A completed log `id` of the run `R<id>` in the file `<id>.json`, created at the second `at`, with one evaluation `e` and one arm `m`.
pub(crate) fn log(id: &str, at: i64) -> Log {
    let header = LogHeader {
        report_path: None,
        log_id: id.into(),
        format: "test".into(),
        run_key: format!("R{id}"),
        task_id: None,
        status: RunStatus::Completed,
        created_at: Timestamp::from_millis(at * 1000),
        started_at: Some(Timestamp::from_millis(at * 1000 + 1)),
        completed_at: Some(Timestamp::from_millis(at * 1000 + 500)),
        git: None,
        round: None,
        evaluations: vec![evaluation("e")],
        arms: vec![arm("m")],
        invalidated: false,
        error: None,
        tags: vec![],
        metadata: BTreeMap::new(),
        metrics: vec![ReportedMetric {
            evaluation: None,
            scorer: "s".into(),
            name: "s".into(),
            reducer: None,
            metric: "mean".into(),
            value: Some(0.5),
        }],
    };
    let file = FileStamp { path: format!("{id}.json"), size: 10, mtime_ns: at, digest: format!("d-{id}"), source: Some("logs".into()) };
    Log { file, kind: Kind::Recorded, header, pinned: false, ancestors: vec![], extras: Extras::default(), attempts: vec![] }
}

/// An evaluation of which nothing but the id is known.
pub(crate) fn evaluation(id: &str) -> EvaluationInfo {
    EvaluationInfo { id: id.into(), ..EvaluationInfo::default() }
}

/// An arm with one factor.
pub(crate) fn arm(name: &str) -> ArmInfo {
    ArmInfo { name: name.into(), role: None, factors: BTreeMap::from([("model".to_owned(), name.to_owned())]) }
}

/// An attempt at `case` of `e` by `m`.
pub(crate) fn attempt(case: &str, outcome: Outcome) -> Attempt {
    Attempt {
        outcome,
        score: (outcome == Pass).then_some(1.0),
        checks: vec![Check {
            name: "match".into(),
            kind: "score".into(),
            passed: match outcome {
                Pass => Some(true),
                Fail => Some(false),
                _ => None,
            },
            value: Some(0.25),
            label: Some("C".into()),
            answer: None,
            reason: (outcome == Fail).then(|| format!("expected 4 got {case}")),
        }],
        usage: Usage { input_tokens: Some(3), total_tokens: Some(u64::from(u32::MAX) * 2), ..Usage::default() },
        cost_usd: Some(0.125),
        duration_ms: Some(1500),
        working_ms: Some(1000),
        started_at: Some(Timestamp::from_millis(77)),
        error: (outcome == InfraError).then(|| "connection 17 reset".to_owned()),
        retries: 1,
        input: Some("in".into()),
        target: Some("out".into()),
        output: Some("said".into()),
        ..Attempt::unscored("e".into(), "m".into(), case.into(), 1)
    }
}

impl Log {
    /// With these attempts.
    #[must_use]
    pub(crate) fn with(mut self, attempts: impl IntoIterator<Item = Attempt>) -> Self {
        self.attempts.extend(attempts.into_iter().map(Ok));
        self
    }

    /// Of this run.
    #[must_use]
    pub(crate) fn run(mut self, key: &str) -> Self {
        self.header.run_key = key.into();
        self
    }

    /// Of this task.
    #[must_use]
    pub(crate) fn task(mut self, task: &str) -> Self {
        self.header.task_id = Some(task.into());
        self
    }

    /// With one evaluation and all attempts of it.
    #[must_use]
    pub(crate) fn of(mut self, info: EvaluationInfo) -> Self {
        for attempt in self.attempts.iter_mut().flatten() {
            attempt.evaluation.clone_from(&info.id);
        }
        self.header.evaluations = vec![info];
        self
    }

    /// By one arm.
    #[must_use]
    pub(crate) fn by(mut self, name: &str) -> Self {
        for attempt in self.attempts.iter_mut().flatten() {
            attempt.arm = name.into();
        }
        self.header.arms = vec![arm(name)];
        self
    }

    /// In the file `path` with the content `digest`.
    #[must_use]
    pub(crate) fn file(mut self, path: &str, digest: &str) -> Self {
        self.file.path = path.into();
        self.file.digest = digest.into();
        self
    }

    /// The record of the whole run `id`.
    #[must_use]
    pub(crate) fn record_of(mut self, id: &str) -> Self {
        self.header.format = crate::domain::grouping::RECORD.into();
        self.header.log_id = format!("record {id}");
        self.run(id)
    }

    /// As a change.
    pub(crate) fn put(&self, store: &dyn Store) -> Result<Applied> {
        let mut attempts = self.attempts.iter().cloned();
        store.apply(Change::Log(LogChange {
            file: self.file.clone(),
            kind: self.kind,
            header: self.header.clone(),
            extras: self.extras.clone(),
            pinned: self.pinned,
            ancestors: self.ancestors.clone(),
            attempts: &mut attempts,
        }))
    }
}
