//! A few worker processes in which questions in SQL run: one that takes too long or too much is killed, and nobody else feels it.
//!
//! Promises: at most so many at once, the others wait for a bounded time; a worker that does not answer by its deadline is killed even inside
//! one opcode; one that failed, or has answered often, is not used again, so memory comes back.
//! Does not: know SQL, or trust what a worker says beyond its form.

use std::{
    io::{Read as _, Write as _},
    os::fd::AsFd as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    clock,
    store::{
        Cancel,
        query::{Isolation, Job, QueryFault, Rows},
    },
};

/// The verb under which this program is a worker.
pub const VERB: &str = "query-worker";
/// Answers after which a worker is replaced: what its heap has gathered goes with it.
const ANSWERS_MAX: u32 = 200;
/// Idle workers that are kept.
const IDLE_MAX: usize = 2;
/// What a worker may take beyond the deadline that it knows, before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of one answer as JSON: what a worker is told to stop at, and room for names.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Between two looks at whether somebody still waits.
const LOOK: Duration = Duration::from_millis(50);
const BLOCK_BYTES: usize = 64 * 1024;

/// The workers.
pub struct Workers {
    program: PathBuf,
    running_max: usize,
    wait: Duration,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Worker>,
    running: usize,
}

struct Worker {
    child: Child,
    answers: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Gone already is as good; waiting reaps it either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place among the running; left when dropped.
struct Seat<'a>(&'a Workers);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).running -= 1;
        self.0.left.notify_one();
    }
}

impl Workers {
    /// Workers of `program` (this program), at most `running_max` at once; a question waits up to `wait` for one.
    #[must_use]
    pub fn new(program: PathBuf, running_max: usize, wait: Duration) -> Self {
        Self { program, running_max: running_max.max(1), wait, state: Mutex::default(), left: Condvar::new() }
    }

    /// A place, and an idle worker if there is one.
    fn seat(&self) -> Result<(Seat<'_>, Option<Worker>), QueryFault> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |state: &mut State| state.running >= self.running_max;
        let (mut state, waited) = self.left.wait_timeout_while(state, self.wait, full).unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && state.running >= self.running_max {
            return Err(QueryFault::Busy);
        }
        state.running += 1;
        let idle = state.idle.pop();
        drop(state);
        Ok((Seat(self), idle))
    }

    fn start(&self) -> Result<Worker, QueryFault> {
        let mut command = Command::new(&self.program);
        command.arg(VERB).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| failed(format!("a query worker cannot be started: {error}")))?;
        Ok(Worker { child, answers: 0 })
    }

    fn keep(&self, worker: Worker) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.answers < ANSWERS_MAX && state.idle.len() < IDLE_MAX {
            state.idle.push(worker);
        }
    }
}

impl Isolation for Workers {
    fn run(&self, job: &Job, cancel: Option<&Cancel>) -> Result<Rows, QueryFault> {
        let (_seat, idle) = self.seat()?;
        let deadline = clock::monotonic() + Duration::from_millis(job.limits.deadline_ms) + GRACE;
        let mut worker = idle.map_or_else(|| self.start(), Ok)?;
        let answer = worker.ask(job, deadline, cancel)?;
        // A worker that hit a limit of memory may be left with little of it.
        if !matches!(answer, Err(QueryFault::Memory(_) | QueryFault::Store(_))) {
            self.keep(worker);
        }
        answer
    }
}

impl Worker {
    /// One question; an outer error means that the worker is not to be used again.
    fn ask(&mut self, job: &Job, deadline: Instant, cancel: Option<&Cancel>) -> Result<Result<Rows, QueryFault>, QueryFault> {
        let mut line = serde_json::to_vec(job).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        let stdin = self.child.stdin.as_mut().ok_or_else(|| failed("a query worker has no input".to_owned()))?;
        stdin
            .write_all(&line)
            .and_then(|()| stdin.flush())
            .map_err(|error| failed(format!("a query worker takes no question: {error}")))?;
        let answer = self.line(job, deadline, cancel)?;
        self.answers += 1;
        serde_json::from_slice(&answer).map_err(|error| failed(format!("a query worker's answer cannot be read: {error}")))
    }

    /// The next line of the worker's output.
    fn line(&mut self, job: &Job, deadline: Instant, cancel: Option<&Cancel>) -> Result<Vec<u8>, QueryFault> {
        let stdout = self.child.stdout.as_mut().ok_or_else(|| failed("a query worker has no output".to_owned()))?;
        let (mut out, mut block) = (Vec::new(), vec![0; BLOCK_BYTES]);
        loop {
            let left = deadline.saturating_duration_since(clock::monotonic());
            let timeout = PollTimeout::try_from(left.min(LOOK)).unwrap_or(PollTimeout::MAX);
            let mut wanted = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, timeout) {
                Ok(0) if left.is_zero() => return Err(QueryFault::Late(job.limits.deadline_ms)),
                Ok(0) if cancel.is_some_and(Cancel::raised) => return Err(QueryFault::Cancelled),
                Ok(0) => continue,
                Ok(_) => {}
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(failed(format!("a query worker cannot be waited for: {error}"))),
            }
            let read = stdout.read(&mut block).map_err(|error| failed(format!("a query worker cannot be read: {error}")))?;
            out.extend_from_slice(block.get(..read).unwrap_or_default());
            if out.last() == Some(&b'\n') {
                return Ok(out);
            }
            if read == 0 {
                // It died: of its memory limit, as a rule.
                return Err(QueryFault::Memory(job.limits.memory_bytes));
            }
            if out.len() > ANSWER_BYTES_MAX {
                return Err(failed("a query worker's answer is too long".to_owned()));
            }
        }
    }
}

fn failed(why: String) -> QueryFault {
    QueryFault::Store(why)
}
