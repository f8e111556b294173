//! `runlore worker`: takes queued runs, and has the operator's declared executors do them.
//!
//! Promises: at most `worker.concurrent` runs at once; a run is done by one worker at a time; told to end, it stops what runs, gives it back and
//! ends with 0 within the programs' grace and a few seconds; killed, its runs are another worker's once their lease is over, and nothing that
//! it started goes on.
//! Does not: choose a program (the configuration does), or judge a result.

mod projects;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use clap::{Args, Command};
use tokio::sync::oneshot;

use self::projects::{Found, Source};
use super::{
    CliError,
    output::Output,
    session::{self, Place},
};
use crate::{
    clock,
    commands::{
        executor::Executors,
        work::{Done, Terms, Work},
    },
    config::Config,
    domain::hex::hex,
    serve::Signals,
    telemetry::redaction::Redactor,
    tools::render::clean,
};

/// The arguments of `runlore worker`.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkerArgs {
    /// The directory of the organizations; without it, tenants.data_dir of the configuration, else the local project.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Do what waits now, and end.
    #[arg(long)]
    pub once: bool,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    WorkerArgs::augment_args(Command::new("worker"))
        .about("Does the runs that were queued, with the executors that the configuration declares")
}

/// Works until a signal comes, or until nothing waits.
///
/// # Errors
/// [`CliError`] where no executor can be run, or there is nothing to watch.
pub fn run(args: &WorkerArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let config = configured(args, place)?;
    let redactor = Redactor::at_import(config.redaction.at_import);
    if config.worker.executor.is_empty() {
        return Err(CliError::Usage("no executor is declared: the configuration needs a table [[worker.executor]]".to_owned()));
    }
    let executors = Executors::new(&config.worker, config.import.text_bytes_max, Arc::new(redactor));
    let executors = executors.map_err(|faults| CliError::Usage(faults.join("\n")))?;
    let source = Source::open(&config, place)?;
    let (wake, woken) = channel();
    let shift = Shift::new(&config, executors, args.once, wake.clone())?;
    let stop = shift.stop.clone();
    let (end, ended) = oneshot::channel();
    let working = std::thread::Builder::new().name("runlore-worker".to_owned()).spawn(move || drop(end.send(shift.work(source, &woken))));
    working.map_err(|error| CliError::Refused(format!("the worker cannot start: {error}")))?;
    let tally = session::block_on(until_ended(ended, &stop, &wake))??;
    if args.once {
        tally.iter().for_each(|line| output.say(line));
        output.say(&format!("{} run{} done.", tally.len(), if tally.len() == 1 { "" } else { "s" }));
    }
    Ok(0)
}

fn configured(args: &WorkerArgs, place: &Place) -> Result<Config, CliError> {
    let Some(data) = &args.data_dir else { return session::config(place) };
    let mut config = Config::load(place.config.as_deref(), None).map_err(|error| CliError::Usage(error.to_string()))?;
    config.tenants.data_dir = data.to_str().ok_or_else(|| CliError::Usage("--data-dir: the path is not UTF-8".to_owned()))?.to_owned();
    Ok(config)
}

/// Waits for the end of the shift; a signal asks for it, and a second one does not wait: what runs ends with this process.
async fn until_ended(mut ended: oneshot::Receiver<Vec<String>>, stop: &AtomicBool, wake: &Sender<()>) -> Result<Vec<String>, CliError> {
    let broke = |_| CliError::Refused("the worker ended without a word".to_owned());
    let mut signals = Signals::new()?;
    tokio::select! {
        tally = &mut ended => return tally.map_err(broke),
        () = signals.next() => {}
    }
    stop.store(true, Relaxed);
    let _ = wake.send(());
    tokio::select! {
        tally = &mut ended => tally.map_err(broke),
        () = signals.next() => Ok(Vec::new()),
    }
}

/// All that a worker does from its start to its end.
struct Shift {
    name: Arc<str>,
    executors: Arc<Executors>,
    terms: Terms,
    tries_max: u32,
    concurrent: usize,
    once: bool,
    stop: Arc<AtomicBool>,
    wake: Sender<()>,
}

/// A run that is being done.
struct Job {
    run: String,
    thread: JoinHandle<Done>,
}

impl Shift {
    fn new(config: &Config, executors: Executors, once: bool, wake: Sender<()>) -> Result<Self, CliError> {
        let set = &config.worker;
        // Nobody else's, also on another machine: the process' number alone comes again.
        let name = format!("worker-{}-{}", std::process::id(), hex(&clock::random::<4>().map_err(CliError::Refused)?));
        let lease = Duration::from_secs(set.lease_s);
        let terms =
            Terms { lease, heartbeat: Duration::from_secs(set.heartbeat_s).min(lease / 3), poll: Duration::from_millis(set.poll_ms) };
        Ok(Self {
            name: name.into(),
            executors: Arc::new(executors),
            terms,
            tries_max: set.tries_max,
            concurrent: set.concurrent,
            once,
            stop: Arc::default(),
            wake,
        })
    }

    /// A line for each run that was done here.
    fn work(self, mut source: Source, woken: &Receiver<()>) -> Vec<String> {
        crate::telemetry::line(&serde_json::json!({"event": "working", "worker": &*self.name, "concurrent": self.concurrent}));
        let (mut jobs, mut tally): (Vec<Job>, Vec<String>) = (Vec::new(), Vec::new());
        while !self.stop.load(Relaxed) {
            jobs = self.settle(jobs, &mut tally, |job| job.thread.is_finished());
            let took = self.fill(&mut source, &mut jobs);
            if self.once && !took && jobs.is_empty() {
                break;
            }
            if !took {
                let _ = woken.recv_timeout(self.terms.poll);
            }
        }
        self.settle(jobs, &mut tally, |_| true);
        crate::telemetry::line(&serde_json::json!({"event": "stopped", "worker": &*self.name}));
        tally
    }

    /// Begins runs as long as there is room and something waits; whether it began any.
    fn fill(&self, source: &mut Source, jobs: &mut Vec<Job>) -> bool {
        let mut took = false;
        while jobs.len() < self.concurrent && !self.stop.load(Relaxed) {
            let Some(found) = source.claim(&self.name, self.terms.lease, self.tries_max) else { break };
            took = true;
            jobs.extend(self.begin(found));
        }
        took
    }

    fn begin(&self, Found { project, store, claimed }: Found) -> Option<Job> {
        let run = claimed.run.run_id.clone();
        let evaluation = &claimed.evaluation.id;
        crate::telemetry::line(&serde_json::json!({
            "event": "run_taken", "worker": &*self.name, "project": project, "run": run, "evaluation": evaluation, "try": claimed.run.tries
        }));
        let (name, executors, terms) = (self.name.clone(), self.executors.clone(), self.terms);
        let (stop, wake) = (self.stop.clone(), self.wake.clone());
        let work = move || {
            let done = Work { store: &*store, worker: &name, executors: &executors, terms, stop: &stop }.run(&claimed);
            let _ = wake.send(());
            done
        };
        // Where the system gives no thread the run's lease ends, and it is taken again.
        let thread = std::thread::Builder::new().name("runlore-run".to_owned()).spawn(work);
        thread.inspect_err(|error| tracing::error!(%error, run, "a run cannot be begun")).ok().map(|thread| Job { run, thread })
    }

    /// Takes the jobs of `which` to their ends; the others.
    fn settle(&self, jobs: Vec<Job>, tally: &mut Vec<String>, which: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (over, open): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(which);
        for Job { run, thread } in over {
            let done = thread.join().unwrap_or_else(|_| Done::Failed("the worker broke at it".to_owned()));
            let (word, why) = words(&done);
            crate::telemetry::line(&serde_json::json!({"event": "run_left", "worker": &*self.name, "run": run, "how": word, "why": why}));
            // Only who was asked to end by itself says it; for ever the list would grow.
            if self.once {
                tally.push(format!("{} {word}{}", clean(&run), why.map(|why| format!(": {}", clean(why))).unwrap_or_default()));
            }
        }
        open
    }
}

fn words(done: &Done) -> (&'static str, Option<&str>) {
    match done {
        Done::Completed => ("completed", None),
        Done::Failed(why) => ("failed", Some(why)),
        Done::Cancelled => ("cancelled", None),
        Done::Lost => ("lost to another worker", None),
        Done::GivenBack => ("given back", None),
    }
}
