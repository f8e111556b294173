//! What leaves its command's process group on purpose: a session of its own, a parent that ended.
//!
//! This process takes such orphans over from its commands (`PR_SET_CHILD_SUBREAPER`), so that they can be found and ended with the call that
//! they came from, which each carries the number of in `RUNLORE_CALL`.
//!
//! Promises: after a call nothing of it runs on, and no zombie stays; another call's are left alone, and so is every child that this program
//! started for itself. Where the system has no `/proc` nothing is found.
//! Does not: wait on a thread of the runtime.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::{Pid, getpgrp, getsid},
};

/// The variable by which a call's processes are known.
pub const VARIABLE: &str = "RUNLORE_CALL";
/// Looks after one call: each ends a generation of those that are left, and what is killed takes a moment.
const LOOKS_MAX: usize = 250;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of a process' environment that are read.
const ENVIRONMENT_BYTES_MAX: u64 = 1024 * 1024;

/// The calls that run.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: HashSet<u64>,
}

/// A call that runs, until it is dropped.
#[derive(Debug)]
pub struct Running {
    number: u64,
    calls: Calls,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.lock().running.remove(&self.number);
    }
}

impl Running {
    /// What its processes carry in [`VARIABLE`].
    #[must_use]
    pub fn mark(&self) -> String {
        format!("{}.{}", std::process::id(), self.number)
    }

    /// Ends what is left of it, now that its own process has ended.
    pub async fn end(self) {
        let calls = self.calls.clone();
        drop(self);
        for _ in 0..LOOKS_MAX {
            if calls.sweep() == 0 {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        tracing::warn!("something of a command does not end, though it was killed");
    }
}

/// A child of this process that it did not start for itself.
struct Stray {
    id: Pid,
    zombie: bool,
}

impl Calls {
    /// Takes over what commands leave; once, before the first runs.
    pub fn adopt() {
        #[cfg(target_os = "linux")]
        if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
            tracing::warn!(%error, "what leaves its command's process group will not be found");
        }
    }

    /// A call begins.
    #[must_use]
    pub fn begin(&self) -> Running {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        state.running.insert(number);
        Running { number, calls: self.clone() }
    }

    /// Ends what is left of every call: the server ends.
    pub fn end_all(&self) {
        self.lock().running.clear();
        for _ in 0..LOOKS_MAX {
            if self.sweep() == 0 {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills what is left of calls that have ended; how many of those there were.
    fn sweep(&self) -> usize {
        let strays = strays();
        strays.iter().filter(|stray| !self.keeps(stray)).map(end).count()
    }

    /// Whether it may be of a call that runs: one that carries no number may be of any.
    fn keeps(&self, stray: &Stray) -> bool {
        if stray.zombie {
            return false;
        }
        let mark = mark_of(stray.id);
        let state = self.lock();
        match mark {
            Some(number) => state.running.contains(&number),
            None => !state.running.is_empty(),
        }
    }
}

fn end(stray: &Stray) {
    // Gone already is as good; a zombie is only reaped.
    if !stray.zombie {
        let _ = kill(stray.id, Signal::SIGKILL);
    }
    let _ = waitpid(stray.id, Some(WaitPidFlag::WNOHANG));
}

/// Children of this process in another session, or of its own session in another group that they do not lead: those that lead one are
/// commands, whose ends are waited for elsewhere.
fn strays() -> Vec<Stray> {
    let (Ok(session), group) = (getsid(None), getpgrp()) else { return Vec::new() };
    let of = |id: Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in brackets and may hold any.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i32>().ok()).map(Pid::from_raw);
        let (its_group, its_session) = (number(2)?, number(3)?);
        let own = its_session == session && (its_group == group || its_group == id);
        (!own).then(|| Stray { id, zombie: fields.first() == Some(&"Z") })
    };
    children().into_iter().filter_map(of).collect()
}

fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect::<Vec<_>>()).collect()
}

/// The number of its call, where it carries one of this process'.
fn mark_of(id: Pid) -> Option<u64> {
    use std::io::Read as _;
    let mut environment = Vec::new();
    std::fs::File::open(format!("/proc/{id}/environ")).ok()?.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).ok()?;
    let begins = format!("{VARIABLE}={}.", std::process::id());
    let found = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(begins.as_bytes()))?;
    std::str::from_utf8(found).ok()?.parse().ok()
}
