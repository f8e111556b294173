//! Executors: the programs that the operator has declared to run evaluations.
//!
//! Promises: a caller names none; the environment is cleared but for PATH HOME LANG LC_ALL TZ TMPDIR and what the declaration names; the cases go
//! in as one JSON document and the results come out as JSON lines; nothing counts but a whole and honest answer of a program that ended with 0;
//! whatever it started is gone when [`Running::wait`] says how it ended, and when the worker ends, however that does.
//! Does not: take runs from the queue (`work` does), or open a store.

mod attend;
pub mod guard;
mod lines;

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, PoisonError,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use serde::Serialize;

use self::attend::{Attendant, Seen};
pub use self::lines::Results;
use self::lines::{Collector, Plan};
use super::program::runs;
use crate::{
    config::keys::{Executor, Worker},
    store::workspace::{AuthoredCase, Claimed},
    telemetry::redaction::Redactor,
};

/// What every child gets of the environment (decision 18).
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// The document's version.
const SCHEMA_VERSION: u32 = 1;
/// What a stopped executor may take beyond its grace to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// The executors of one worker, with their programs found.
#[derive(Debug)]
pub struct Executors {
    all: Vec<Declared>,
    /// This program, which is the guard too.
    own: PathBuf,
    grace: Duration,
    text_bytes_max: usize,
    redactor: Arc<Redactor>,
}

#[derive(Debug)]
struct Declared {
    executor: Executor,
    program: PathBuf,
}

/// The document on an executor's standard input.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: u32,
    run_id: &'a str,
    evaluation: Evaluation<'a>,
    arm: &'a str,
    environment: &'a str,
    max_cost_usd: Option<f64>,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Evaluation<'a> {
    id: &'a str,
    name: Option<&'a str>,
    threshold: Option<f64>,
}

#[derive(Serialize)]
struct Case<'a> {
    id: &'a str,
    input: &'a str,
    expected: Option<&'a str>,
    metadata: &'a serde_json::Map<String, serde_json::Value>,
}

impl<'a> Case<'a> {
    fn of(case: &'a AuthoredCase) -> Self {
        Self { id: &case.id, input: &case.input, expected: case.expected.as_deref(), metadata: &case.metadata }
    }
}

impl Executors {
    /// Those of `worker`; each text of a result is cut at `text_bytes_max`.
    ///
    /// # Errors
    /// A sentence for each program and directory that is not there.
    pub fn new(worker: &Worker, text_bytes_max: usize, redactor: Arc<Redactor>) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut all = Vec::new();
        for (index, executor) in worker.executor.iter().enumerate() {
            let place = format!("worker.executor[{index}]");
            if !executor.directory.is_empty() && !Path::new(&executor.directory).is_dir() {
                faults.push(format!("{place}.directory is \"{}\"; there is no such directory", executor.directory));
            }
            match found(&executor.program) {
                Some(program) => all.push(Declared { executor: executor.clone(), program }),
                None => faults.push(format!("{place}.program is \"{}\"; there is no such program that may be run", executor.program)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("runlore"));
        Ok(Self { all, own, grace: Duration::from_millis(worker.grace_ms), text_bytes_max, redactor })
    }

    /// Starts the first executor that fits the run.
    ///
    /// # Errors
    /// A sentence, where there is none or it cannot be started.
    pub fn start(&self, claimed: &Claimed) -> Result<Running, String> {
        let (evaluation, environment) = (&claimed.evaluation.id, &claimed.run.environment);
        let declared = self.all.iter().find(|declared| declared.executor.fits(evaluation, environment)).ok_or_else(|| {
            format!("no executor of this worker runs this evaluation in {environment}; its operator declares them with worker.executor")
        })?;
        let cannot = |error: &dyn std::fmt::Display| format!("the executor {} cannot be started: {error}", declared.executor.name);
        let document = document(claimed).map_err(|error| cannot(&error))?;
        let lines = Collector::new(self.plan(claimed, &declared.executor), self.redactor.clone());
        let child = self.command(declared).spawn().map_err(|error| cannot(&error))?;
        let seen = Arc::new(Seen::default());
        let (tell, verdict) = sync_channel(1);
        let (grace, redactor, shared) = (self.grace, self.redactor.clone(), seen.clone());
        let attendant = Attendant { child, document, lines, seen: shared, grace, redactor };
        let watching = thread::Builder::new().name("runlore-executor".to_owned()).spawn(move || drop(tell.send(attendant.run())));
        // Where there is no thread the attendant is dropped, its pipe with it: the guard ends by itself.
        watching.map_err(|error| cannot(&error))?;
        let timeout = Duration::from_secs(declared.executor.timeout_s);
        Ok(Running { seen, verdict, timeout, gone_within: grace + GONE_WITHIN })
    }

    fn plan(&self, claimed: &Claimed, executor: &Executor) -> Plan {
        Plan {
            evaluation: claimed.evaluation.id.clone(),
            arm: claimed.run.arm.clone(),
            cases: claimed.cases.iter().map(|case| (case.id.clone(), case.input.clone(), case.expected.clone())).collect(),
            max_cost_usd: claimed.run.max_cost_usd,
            spent_usd: claimed.run.cost_usd,
            line_bytes_max: executor.line_bytes_max,
            output_bytes_max: executor.output_bytes_max,
            results_max: executor.results_max,
            text_bytes_max: self.text_bytes_max,
        }
    }

    fn command(&self, declared: &Declared) -> Command {
        let executor = &declared.executor;
        let mut command = Command::new(&self.own);
        command.arg(guard::VERB).arg("--grace-ms").arg(self.grace.as_millis().to_string()).arg("--").arg(&declared.program);
        command.args(&executor.args).env_clear().process_group(0);
        let names = ENVIRONMENT.into_iter().chain(executor.env.iter().map(String::as_str));
        command.envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
        if !executor.directory.is_empty() {
            command.current_dir(&executor.directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Executor {
    /// Whether it runs this evaluation in this environment.
    #[must_use]
    pub fn fits(&self, evaluation: &str, environment: &str) -> bool {
        self.environments.iter().any(|one| one == environment) && self.evaluations.iter().any(|pattern| matches(pattern, evaluation))
    }
}

/// Whether `text` is what `pattern` says, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The earliest place leaves most for what follows.
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

/// Where the program is: as it is written where that is a path, else the first of PATH that may be run.
fn found(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.is_absolute() {
        return runs(path).then(|| path.to_path_buf());
    }
    let search: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&search).filter(|directory| directory.is_absolute()).map(|directory| directory.join(path)).find(|path| runs(path))
}

/// The document with its length before it, as the guard reads it.
fn document(claimed: &Claimed) -> serde_json::Result<Vec<u8>> {
    let Claimed { run, evaluation, cases } = claimed;
    let json = serde_json::to_vec(&Document {
        schema_version: SCHEMA_VERSION,
        run_id: &run.run_id,
        evaluation: Evaluation { id: &evaluation.id, name: evaluation.name.as_deref(), threshold: evaluation.threshold },
        arm: &run.arm,
        environment: &run.environment,
        max_cost_usd: run.max_cost_usd.map(|max| (max - run.cost_usd.unwrap_or(0.0)).max(0.0)),
        cases: cases.iter().map(Case::of).collect(),
    })?;
    let mut bytes = format!("{}\n", json.len()).into_bytes();
    bytes.extend(json);
    Ok(bytes)
}

/// An executor that runs. Dropped, it is told to end.
#[derive(Debug)]
pub struct Running {
    seen: Arc<Seen>,
    verdict: Receiver<Result<Results, String>>,
    timeout: Duration,
    gone_within: Duration,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seen").finish_non_exhaustive()
    }
}

impl Running {
    /// How it ended, where it does within `wait`: its results, or a sentence that says why there are none.
    pub fn wait(&self, wait: Duration) -> Option<Result<Results, String>> {
        match self.verdict.recv_timeout(wait) {
            Ok(verdict) => Some(verdict),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err("nobody watched the executor to its end".to_owned())),
        }
    }

    /// How long it may run.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Cases that have a result.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.seen.done.load(Relaxed)
    }

    /// What it has cost, as far as it says.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        *self.seen.cost_usd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, and waits until it is gone. Bounded.
    pub fn end(self) {
        self.seen.stop.store(true, Relaxed);
        let _ = self.wait(self.gone_within);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.seen.stop.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in
            [("*", ""), ("*", "a/b"), ("a", "a"), ("a*", "a"), ("*b", "ab"), ("a*c*e", "abcde"), ("a**b", "ab"), ("*a*a", "aa")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("", "a"), ("a*", "b"), ("*b", "ba"), ("a*a", "a"), ("*a*a*", "a"), ("a*b", "aXc")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn an_executor_fits_by_evaluation_and_environment() {
        let executor = Executor { evaluations: vec!["math/*".to_owned()], environments: vec!["dev".to_owned()], ..Executor::default() };
        assert!(executor.fits("math/add", "dev") && !executor.fits("math/add", "prod") && !executor.fits("maths", "dev"));
    }

    #[test]
    fn programs_are_found_when_the_worker_starts() {
        assert_eq!(found("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert!(found("sh").is_some_and(|path| path.is_absolute()));
        assert!(found("/etc/passwd").is_none() && found("no-such-program-7").is_none() && found("/bin").is_none());
        let executor = |program: &str| Executor { program: program.to_owned(), directory: "/no/where".to_owned(), ..Executor::default() };
        let worker = Worker { executor: vec![executor("sh"), executor("no-such-program-7")], ..Worker::default() };
        let faults = Executors::new(&worker, 100, Arc::new(Redactor::off())).unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!(faults[2], "worker.executor[1].program is \"no-such-program-7\"; there is no such program that may be run");
    }
}
