//! What every adapter says and counts alike: sentences of refusals and of the trail, bounds, and the log that a run of the queue is.
//!
//! Promises: pure; a sentence is in one place, so that two adapters cannot say two things.
//! Does not: read or keep anything.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use sha2::{Digest as _, Sha256};

use super::{ActFault, Acted, AuthoredCase, Budget, EvaluationStatus, Lock, Queued};
use crate::{
    domain::{
        attempt::{Attempt, shorten},
        declared::{SENT, SENT_SCRATCH, is_of_path},
        hex::hex,
        log::{ArmInfo, EvaluationInfo, LogHeader, RunStatus},
        outcome::Outcome,
    },
    store::FileStamp,
};

/// Cases of one evaluation: all of them are handed to a worker at once.
pub const CASES_MAX: u64 = 10_000;
/// Lines of one trace: all of them are read at once.
pub const TRACE_LINES_MAX: u64 = 10_000;
/// Bytes of one trace's lines, for the same reason.
pub const TRACE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A used approval is remembered for this long after it has expired, so that a clock that is set back does not make it good again.
pub const EXPIRED_KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// How the path begins that stands for a run of the queue. No file may be called so.
pub const QUEUE: &str = "queue:";
/// The arm of a run that names none.
pub const DEFAULT_ARM: &str = "default";
/// The format of the log that a run of the queue is.
const FORMAT: &str = "runlore";
/// Bytes of a name in a sentence.
const SHOWN: usize = 200;

/// A thing by its name, for a sentence.
fn named(what: &str, name: &str) -> String {
    format!("{what} {:?}", shorten(name, SHOWN))
}

pub fn no_evaluation(id: &str) -> ActFault {
    ActFault::NotFound(named("evaluation", id))
}

pub fn evaluation_exists(id: &str) -> ActFault {
    ActFault::Exists(named("evaluation", id))
}

pub fn case_exists(evaluation: &str, id: &str) -> ActFault {
    ActFault::Exists(format!("{} of {}", named("case", id), named("evaluation", evaluation)))
}

pub fn too_many_cases(evaluation: &str) -> ActFault {
    ActFault::Guard(format!(
        "{} has {CASES_MAX} cases, which is the most; make another evaluation for more",
        named("evaluation", evaluation)
    ))
}

/// Whether cases may be added to an evaluation.
pub fn may_grow(id: &str, status: EvaluationStatus, lock: Option<&Lock>) -> Result<(), ActFault> {
    unlocked(id, lock)?;
    if status == EvaluationStatus::Archived {
        return Err(ActFault::Guard(format!("{} is archived; nothing is added to it", named("evaluation", id))));
    }
    Ok(())
}

pub fn unlocked(id: &str, lock: Option<&Lock>) -> Result<(), ActFault> {
    match lock {
        Some(Lock { by, reason, .. }) => {
            let reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
            Err(ActFault::Locked { evaluation: id.to_owned(), by: by.clone(), reason })
        }
        None => Ok(()),
    }
}

pub fn not_locked(id: &str) -> ActFault {
    ActFault::Guard(format!("{} is not locked", named("evaluation", id)))
}

/// Whether an evaluation can be started, in the order of what is looked at first.
pub fn may_start(id: &str, status: EvaluationStatus, lock: Option<&Lock>, cases: u64) -> Result<(), ActFault> {
    if status != EvaluationStatus::Active {
        let status = status.word();
        return Err(ActFault::Guard(format!("{} is {status}; only an active evaluation can be started", named("evaluation", id))));
    }
    unlocked(id, lock)?;
    if cases == 0 {
        return Err(ActFault::Guard(format!("{} has no cases that were made here; add one first", named("evaluation", id))));
    }
    Ok(())
}

/// What of the day's dollars a run takes: what it may cost while it can; then what it has cost.
#[must_use]
pub fn reserved(max_cost_usd: f64, tries: u32, status: RunStatus, cost_usd: Option<f64>) -> f64 {
    match (status.ended(), tries) {
        // No worker took it: it has cost nothing.
        (true, 0) => 0.0,
        // An executor that says nothing of its cost may have spent what it was given.
        (true, _) => cost_usd.unwrap_or(max_cost_usd),
        (false, _) => max_cost_usd,
    }
}

/// Whether one more run fits, where `open` are queued or running and those since the budget's beginning may cost `spent`.
pub fn fits(budget: &Budget, open: u64, spent: f64, max_cost_usd: Option<f64>) -> Result<(), ActFault> {
    let guard = |text: String| Err(ActFault::Guard(text));
    if open >= budget.queued_max {
        let most = budget.queued_max;
        return guard(format!("{open} runs are queued or running, and {most} is the most; wait until one has ended, or cancel one"));
    }
    if let Some(cost) = max_cost_usd.filter(|cost| !(cost.is_finite() && *cost >= 0.0)) {
        return guard(format!("argument max_cost_usd: {cost} is no amount of dollars; give 0 or more"));
    }
    let Some(most) = budget.cost_usd_max else { return Ok(()) };
    let Some(cost) = max_cost_usd else {
        return guard(format!(
            "argument max_cost_usd: the runs of a day may cost {most} dollars here, so each says what it may cost; give it"
        ));
    };
    // Said so that what is no number does not pass.
    if spent + cost <= most {
        return Ok(());
    }
    let since = budget.since.rfc3339();
    guard(format!("argument max_cost_usd: {cost} and the {spent} dollars of the runs since {since} are more than the {most} of a day"))
}

/// The longest lease that the configuration takes (`worker.lease_s`).
pub const LEASE_MS_MAX: i64 = 3_600_000;

pub fn no_run(id: &str) -> ActFault {
    ActFault::NotFound(named("run", id))
}

pub fn not_ended(id: &str, status: &str) -> ActFault {
    ActFault::Guard(format!("{} is {status}; only one that has ended can go", named("run", id)))
}

pub fn holds_as_baseline(id: &str) -> ActFault {
    ActFault::Guard(format!("{} is a baseline; accept another first", named("run", id)))
}

pub fn came_by_queue(id: &str) -> ActFault {
    ActFault::Guard(format!("{} came by the queue, whose runs stay", named("run", id)))
}

/// Whether what is forgotten of a source would come back at the next look: what was sent or imported by hand does not.
pub fn is_looked_at(source: Option<&str>) -> bool {
    source.is_some_and(|source| ![SENT, SENT_SCRATCH].into_iter().any(|sent| is_of_path(source, sent)))
}

pub fn stands_in_file(id: &str, path: &str) -> ActFault {
    ActFault::Guard(format!(
        "{} is of {}, which is looked at: delete the file, and the run goes with it",
        named("run", id),
        named("file", path)
    ))
}

pub fn run_exists(id: &str) -> ActFault {
    ActFault::Exists(named("run", id))
}

pub fn not_queued(id: &str) -> ActFault {
    ActFault::NotFound(format!("{} in the queue", named("run", id)))
}

pub fn has_ended(run: &Queued) -> ActFault {
    ActFault::Guard(format!("{} has ended: it is {}", named("run", &run.run_id), run.status.word()))
}

pub fn not_recorded(id: &str) -> ActFault {
    ActFault::Guard(format!("{} is scratch; record it first", named("run", id)))
}

pub fn not_completed(id: &str, status: &str) -> ActFault {
    ActFault::Guard(format!("{} is {status}; only a completed run can be a baseline", named("run", id)))
}

pub fn nothing_counted(id: &str, evaluation: Option<&str>) -> ActFault {
    let of = evaluation.map(|evaluation| format!(" of {}", named("evaluation", evaluation))).unwrap_or_default();
    ActFault::Guard(format!("{} has no attempt{of} that passed or failed, so there is nothing to hold others against", named("run", id)))
}

pub fn is_baseline(id: &str) -> ActFault {
    ActFault::Guard(format!("{} is the baseline already", named("run", id)))
}

pub fn no_trace(id: &str) -> ActFault {
    ActFault::NotFound(named("trace", id))
}

pub fn trace_exists(id: &str) -> ActFault {
    ActFault::Exists(named("trace", id))
}

/// Whether a trace may have this many lines and bytes.
pub fn trace_fits(id: &str, lines: u64, bytes: u64) -> Result<(), ActFault> {
    if lines <= TRACE_LINES_MAX && bytes <= TRACE_BYTES_MAX {
        return Ok(());
    }
    let trace = named("trace", id);
    Err(ActFault::Guard(format!(
        "{trace} would have {lines} lines of {bytes} bytes; the most are {TRACE_LINES_MAX} lines and {TRACE_BYTES_MAX} bytes"
    )))
}

/// A trace's line as it is kept: on one line.
pub fn one_line(line: &str) -> Cow<'_, str> {
    if line.contains(['\n', '\r']) { Cow::Owned(line.replace(['\n', '\r'], " ")) } else { Cow::Borrowed(line) }
}

/// The bytes that lines take, line feeds included.
pub fn bytes_of(lines: &[String]) -> u64 {
    lines.iter().map(|line| line.len() as u64 + 1).sum()
}

pub fn no_connection(id: &str) -> ActFault {
    ActFault::NotFound(named("connection", id))
}

pub fn connection_exists(id: &str) -> ActFault {
    ActFault::Exists(named("connection", id))
}

pub fn connection_named(name: &str) -> ActFault {
    ActFault::Exists(named("a connection named", name))
}

pub fn connection_off(id: &str) -> ActFault {
    ActFault::Guard(format!("{} is disabled; enable it first", named("connection", id)))
}

/// Why a run failed that was taken `tries` times and never ended.
pub fn lost(tries: u32) -> String {
    format!("its worker was lost {tries} times")
}

/// Why a run failed whose worker did not say.
pub fn unsaid() -> String {
    "its worker gave no reason".to_owned()
}

/// Why a log is not taken that would add to a run of the queue.
pub fn kept_for_worker(run_id: &str) -> String {
    format!("{} is one of the queue, and only its worker says what came of it; import the log as another run", named("run", run_id))
}

/// Why a log is not taken that would change what was accepted.
pub fn kept_as_accepted(run_id: &str) -> String {
    format!("{} is an accepted baseline, which stays as it was accepted; import the log as another run", named("run", run_id))
}

/// Why a file is not taken that is called as runs of the queue are.
pub fn kept_for_queue() -> String {
    format!("its path begins with {QUEUE:?}, which stands for runs of the queue; give it another name")
}

/// The log that a run of the queue is, as it stands; `threshold` and `family` are its evaluation's.
pub fn log_of(run: &Queued, threshold: Option<f64>, family: Option<&str>) -> (FileStamp, LogHeader) {
    let cases = u32::try_from(run.total).unwrap_or(u32::MAX);
    let header = LogHeader {
        log_id: run.run_id.clone(),
        format: FORMAT.to_owned(),
        run_key: run.run_id.clone(),
        task_id: None,
        status: run.status,
        created_at: run.created_at,
        started_at: run.started_at,
        completed_at: run.ended_at,
        git: None,
        round: None,
        evaluations: vec![EvaluationInfo {
            id: run.evaluation.clone(),
            family: family.map(str::to_owned),
            threshold,
            dataset_cases: Some(cases),
            planned: Some(cases),
            ..EvaluationInfo::default()
        }],
        arms: vec![ArmInfo {
            name: run.arm.clone(),
            role: None,
            factors: BTreeMap::from([("environment".to_owned(), run.environment.clone())]),
        }],
        invalidated: false,
        error: run.error.clone(),
        tags: Vec::new(),
        metadata: BTreeMap::from([("startedBy".to_owned(), run.created_by.clone().into())]),
        metrics: Vec::new(),
        report_path: None,
    };
    // A header is plain data, which serializes; were it not so, no state could be told from another.
    let text = serde_json::to_string(&header).unwrap_or_default();
    let digest = hex(&Sha256::digest(format!("{} {text}", run.tries)));
    (FileStamp { path: format!("{QUEUE}{}", run.run_id), size: 0, mtime_ns: 0, digest, source: None }, header)
}

/// The results of a run, as its worker gives them: each of the run's evaluation, arm and cases, else an error. After them a case without a
/// result is cancelled, so that it is missing from the counts whatever else was tried twice.
pub struct Results<'a> {
    run: &'a Queued,
    results: &'a mut dyn Iterator<Item = Result<Attempt, String>>,
    cases: BTreeSet<String>,
    /// Cases without a result.
    left: BTreeSet<String>,
    /// Cases with one, once all have come.
    done: Option<u64>,
}

impl<'a> Results<'a> {
    /// The results of `run`, which has these cases.
    pub fn new(run: &'a Queued, cases: &[AuthoredCase], results: &'a mut dyn Iterator<Item = Result<Attempt, String>>) -> Self {
        let cases: BTreeSet<String> = cases.iter().map(|case| case.id.clone()).collect();
        Self { run, results, left: cases.clone(), cases, done: None }
    }

    /// Cases that have a result; 0 before all were pulled.
    pub fn done(&self) -> u64 {
        self.done.unwrap_or(0)
    }

    fn fitting(&mut self, attempt: Attempt) -> Result<Attempt, String> {
        let Queued { evaluation, arm, .. } = self.run;
        if attempt.evaluation != *evaluation || attempt.arm != *arm {
            let (of, by) = (named("evaluation", &attempt.evaluation), named("arm", &attempt.arm));
            return Err(format!(
                "a result is of {of} and {by}; the run is of {} and {}",
                named("evaluation", evaluation),
                named("arm", arm)
            ));
        }
        if !self.cases.contains(&attempt.case) {
            return Err(format!("a result is of {}, which the run does not have", named("case", &attempt.case)));
        }
        self.left.remove(&attempt.case);
        Ok(attempt)
    }
}

impl Iterator for Results<'_> {
    type Item = Result<Attempt, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done.is_none() {
            if let Some(result) = self.results.next() {
                return Some(result.and_then(|attempt| self.fitting(attempt)));
            }
            self.done = Some((self.cases.len() - self.left.len()) as u64);
        }
        let case = self.left.pop_first()?;
        let Queued { evaluation, arm, .. } = self.run;
        Some(Ok(Attempt { outcome: Outcome::Cancelled, ..Attempt::unscored(evaluation.clone(), arm.clone(), case, 1) }))
    }
}

impl fmt::Display for Acted {
    /// What was done, in a few words, as the trail keeps it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluation { evaluation, status, .. } => write!(f, "{} is {}", named("evaluation", evaluation), status.word()),
            Self::Case { evaluation, case } => write!(f, "{} of {}", named("case", case), named("evaluation", evaluation)),
            Self::Run { run_id, status } => write!(f, "{} is {}", named("run", run_id), status.word()),
            Self::Trace { trace_id, expires_at } => write!(f, "{} until {}", named("trace", trace_id), expires_at.rfc3339()),
            Self::Connection { connection } => f.write_str(&named("connection", connection)),
            Self::Baseline { run_id, evaluation, replaces } => {
                let of = evaluation.as_ref().map_or_else(|| "the project".to_owned(), |id| named("evaluation", id));
                write!(f, "{} is the baseline of {of}", named("run", run_id))?;
                replaces.iter().try_for_each(|old| write!(f, ", in the place of {}", named("run", old)))
            }
            Self::Forgotten { run_id } => write!(f, "{} is gone", named("run", run_id)),
        }
    }
}
