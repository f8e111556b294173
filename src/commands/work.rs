//! One run of the queue: started, kept while it runs, ended.
//!
//! Promises: a run ends as `completed` only with the whole and honest results of its executor, else as `failed` with one sentence or as
//! `cancelled`, and then nothing of it counts; while it runs its lease is kept up; one that is cancelled, or is another's, is stopped within a
//! poll; one whose worker is told to end is given back.
//! Does not: choose which run is next (`cli::worker` does), or know programs (`executor` does).

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::executor::{Executors, Results, Running};
use crate::{
    clock,
    domain::log::RunStatus,
    store::{
        Change, Error, Result, Store,
        workspace::{Claimed, QueueChange, QueueOutcome, RunEnd},
    },
};

/// Between two looks at whether the worker is to end, and two tries to write while another writes.
const LOOK: Duration = Duration::from_millis(50);

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How long a run is a worker's without a word from it.
    pub lease: Duration,
    /// How often it says that it works.
    pub heartbeat: Duration,
    /// How often it looks whether the run is to be cancelled.
    pub poll: Duration,
}

/// What became of a run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// All of it was done.
    Completed,
    /// Why nothing of it counts.
    Failed(String),
    /// Somebody cancelled it.
    Cancelled,
    /// It is another's, or has ended.
    Lost,
    /// It was given back: another worker may take it at once.
    GivenBack,
}

/// One worker's hold on one run.
pub struct Work<'a> {
    /// The store that the run is in.
    pub store: &'a dyn Store,
    /// Who works.
    pub worker: &'a str,
    /// With what.
    pub executors: &'a Executors,
    /// How long things take.
    pub terms: Terms,
    /// Raised when the worker is to end.
    pub stop: &'a AtomicBool,
}

/// Where the run stands.
enum State {
    /// It is ours.
    Ours,
    /// It is ours, and is to end.
    Cancelling,
    /// It is not.
    Lost,
}

impl Work<'_> {
    /// Does the run that was claimed. Blocks until it has ended, or is not ours any more.
    #[must_use]
    pub fn run(&self, claimed: &Claimed) -> Done {
        let run = &claimed.run.run_id;
        if claimed.run.cancelling {
            return self.cancelled(run, None);
        }
        match self.executors.start(claimed) {
            Err(sentence) => self.failed(run, sentence, None),
            Ok(running) => self.keep(run, running),
        }
    }

    /// Keeps the lease up until the executor ends, or has to.
    fn keep(&self, run: &str, running: Running) -> Done {
        let began = clock::monotonic();
        let (mut beat, mut looked) = (began, began);
        loop {
            if let Some(verdict) = running.wait(LOOK.min(self.terms.poll)) {
                return self.conclude(run, &running, verdict);
            }
            let now = clock::monotonic();
            if self.stop.load(Relaxed) {
                let told = (running.done(), running.cost_usd());
                running.end();
                return self.give_back(run, told);
            }
            if now.duration_since(began) >= running.timeout() {
                let (cost, limit) = (running.cost_usd(), running.timeout().as_secs());
                running.end();
                return self.failed(run, format!("the executor had not ended after {limit} seconds (timeout_s) and was killed"), cost);
            }
            let state = if now.duration_since(beat) >= self.terms.heartbeat {
                self.beaten(run, &running, &mut beat, now)
            } else if now.duration_since(looked) >= self.terms.poll {
                looked = now;
                self.look(run)
            } else {
                State::Ours
            };
            match state {
                State::Ours => {}
                State::Cancelling => {
                    let cost = running.cost_usd();
                    running.end();
                    return self.cancelled(run, cost);
                }
                State::Lost => {
                    running.end();
                    return Done::Lost;
                }
            }
        }
    }

    /// Says that we still work. Where that cannot be said for as long as the lease lasts, the run is another's.
    fn beaten(&self, run: &str, running: &Running, beat: &mut Instant, now: Instant) -> State {
        match self.beat(run, self.terms.lease, (running.done(), running.cost_usd())) {
            Ok(outcome) => {
                *beat = now;
                state(&outcome)
            }
            Err(error) => {
                tracing::warn!(%error, run, "a heartbeat could not be written");
                if now.duration_since(*beat) >= self.terms.lease { State::Lost } else { State::Ours }
            }
        }
    }

    fn beat(&self, run: &str, lease: Duration, (done, cost_usd): (u64, Option<f64>)) -> Result<QueueOutcome> {
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        self.change(QueueChange::Beat { run_id: run, worker: self.worker, now: clock::now(), lease_ms, done, cost_usd })
    }

    /// Whether it is to be cancelled, without writing.
    fn look(&self, run: &str) -> State {
        match self.store.queued(&[run.to_owned()]) {
            // Where it cannot be read now, the next heartbeat says it.
            Err(_) => State::Ours,
            Ok(queued) => match queued.get(run) {
                Some(queued) if queued.status.ended() || queued.worker.as_deref() != Some(self.worker) => State::Lost,
                Some(queued) if queued.cancelling => State::Cancelling,
                Some(_) => State::Ours,
                None => State::Lost,
            },
        }
    }

    /// The executor has ended; who cancelled meanwhile is heard.
    fn conclude(&self, run: &str, running: &Running, verdict: std::result::Result<Results, String>) -> Done {
        let cost = running.cost_usd();
        match self.look(run) {
            State::Lost => Done::Lost,
            State::Cancelling => self.cancelled(run, cost),
            State::Ours => match verdict {
                Err(sentence) => self.failed(run, sentence, cost),
                Ok(results) => self.completed(run, &results),
            },
        }
    }

    fn completed(&self, run: &str, results: &Results) -> Done {
        let ended = self.end(run, || (RunStatus::Completed, None, results.cost_usd), &results.attempts);
        match ended {
            Ok(outcome) => said(&outcome, Done::Completed),
            Err(Error::Import(why)) => self.failed(run, format!("the results could not be kept: {why}"), results.cost_usd),
            Err(error) => unwritten(run, &error),
        }
    }

    fn failed(&self, run: &str, sentence: String, cost: Option<f64>) -> Done {
        match self.end(run, || (RunStatus::Failed, Some(sentence.clone()), cost), &[]) {
            Ok(outcome) => said(&outcome, Done::Failed(sentence)),
            Err(error) => unwritten(run, &error),
        }
    }

    fn cancelled(&self, run: &str, cost: Option<f64>) -> Done {
        match self.end(run, || (RunStatus::Cancelled, None, cost), &[]) {
            Ok(outcome) => said(&outcome, Done::Cancelled),
            Err(error) => unwritten(run, &error),
        }
    }

    /// Lets the lease end now. It was a try: a run that is given back for ever is failed by the next claim.
    fn give_back(&self, run: &str, told: (u64, Option<f64>)) -> Done {
        match self.beat(run, Duration::ZERO, told) {
            Ok(QueueOutcome::Lost) => Done::Lost,
            Ok(_) => Done::GivenBack,
            Err(error) => unwritten(run, &error),
        }
    }

    /// Ends the run, within its lease, however long another writes.
    fn end(
        &self,
        run: &str,
        how: impl Fn() -> (RunStatus, Option<String>, Option<f64>),
        attempts: &[crate::domain::attempt::Attempt],
    ) -> Result<QueueOutcome> {
        let until = clock::monotonic() + self.terms.lease;
        loop {
            let (status, error, cost_usd) = how();
            let mut attempts = attempts.iter().cloned().map(Ok);
            let end = RunEnd { status, error, cost_usd, attempts: &mut attempts };
            match self.change(QueueChange::End { run_id: run, worker: self.worker, now: clock::now(), end }) {
                Err(Error::Busy) if clock::monotonic() < until => std::thread::park_timeout(LOOK),
                other => return other,
            }
        }
    }

    fn change(&self, change: QueueChange<'_>) -> Result<QueueOutcome> {
        let applied = self.store.apply(Change::Queue(change))?;
        applied.queue.ok_or_else(|| Error::Internal("a change to the queue came to nothing".to_owned()))
    }
}

const fn state(outcome: &QueueOutcome) -> State {
    match outcome {
        QueueOutcome::Lost | QueueOutcome::Idle => State::Lost,
        QueueOutcome::Cancelling => State::Cancelling,
        QueueOutcome::Ours | QueueOutcome::Claimed(_) => State::Ours,
    }
}

fn said(outcome: &QueueOutcome, done: Done) -> Done {
    if *outcome == QueueOutcome::Lost { Done::Lost } else { done }
}

/// The lease ends by itself, and another worker takes the run.
fn unwritten(run: &str, error: &Error) -> Done {
    tracing::error!(%error, run, "how a run ended could not be written; its lease ends and it is done again");
    Done::Lost
}
