//! Attends one running executor: feeds it, reads it, ends it.
//!
//! Promises: nothing waits for a program that does not read, write or end: each wait is short, and once it is to end it is gone within the grace
//! and a second; its pipes are read to what is in them when it has ended, whoever still holds them; the last of what it said on standard error is
//! kept, and no more.
//! Does not: understand a line (`lines` does), or decide when it is to end.

use std::{
    io::{Read as _, Write as _},
    os::{fd::AsFd as _, unix::process::ExitStatusExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use super::lines::{Collector, Results};
use crate::{
    clock,
    domain::{attempt::shorten, text::clean},
    telemetry::redaction::Redactor,
};

/// Between two looks at whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// What the guard may take beyond the grace before it is killed with its group.
const MARGIN: Duration = Duration::from_secs(1);
const BLOCK_BYTES: usize = 64 * 1024;
/// What a pipe that says it can be written to takes without waiting.
const PIPE_BYTES: usize = nix::libc::PIPE_BUF;
/// Of standard error as much is kept.
const TAIL_BYTES: usize = 64 * 1024;
/// Of its last line as much is told.
const TOLD_BYTES: usize = 300;

/// What others see of it, and the one thing that they say to it.
#[derive(Default)]
pub(super) struct Seen {
    /// It is to end.
    pub(super) stop: AtomicBool,
    /// Cases that have a result.
    pub(super) done: AtomicU64,
    /// What it has cost.
    pub(super) cost_usd: Mutex<Option<f64>>,
}

/// One executor.
pub(super) struct Attendant {
    pub(super) child: Child,
    pub(super) document: Vec<u8>,
    pub(super) lines: Collector,
    pub(super) seen: Arc<Seen>,
    pub(super) grace: Duration,
    pub(super) redactor: Arc<Redactor>,
}

struct Pipes {
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
    /// Bytes of the document that went.
    fed: usize,
    tail: Vec<u8>,
}

impl Attendant {
    /// To the end; its results, or why they do not count.
    pub(super) fn run(mut self) -> Result<Results, String> {
        let mut pipes = Pipes {
            input: self.child.stdin.take(),
            output: self.child.stdout.take(),
            error: self.child.stderr.take(),
            fed: 0,
            tail: Vec::new(),
        };
        let (mut fault, mut kill_at) = (None, None);
        let status = loop {
            if kill_at.is_none() && (fault.is_some() || self.seen.stop.load(Relaxed)) {
                // Its end of the pipe is what the guard lives by.
                pipes.input = None;
                kill_at = Some(clock::monotonic() + self.grace + MARGIN);
            }
            self.kill_when_due(kill_at);
            let quiet = match self.look(&mut pipes) {
                Ok(quiet) => quiet,
                Err(sentence) => {
                    fault.get_or_insert(sentence);
                    false
                }
            };
            if quiet && let Some(status) = self.ended() {
                break status;
            }
        };
        self.verdict(fault, status, &pipes.tail)
    }

    fn kill_when_due(&self, kill_at: Option<Instant>) {
        if kill_at.is_some_and(|at| clock::monotonic() >= at) {
            self.kill_group();
        }
    }

    /// The guard leads the group.
    fn kill_group(&self) {
        if let Ok(leader) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        // A guard that was killed could not tidy up.
        self.kill_group();
        Some(status)
    }

    /// Waits shortly for something to read or write, and does it; whether there was nothing. An error is a lie in the output.
    fn look(&mut self, pipes: &mut Pipes) -> Result<bool, String> {
        let fed = pipes.fed >= self.document.len();
        let ready = pipes.ready(!fed);
        if ready.input {
            pipes.feed(&self.document);
        }
        if ready.error {
            pipes.complain();
        }
        if ready.output
            && let Some(block) = pipes.read()
            && !self.seen.stop.load(Relaxed)
        {
            let taken = self.lines.take(&block);
            self.seen.done.store(self.lines.done(), Relaxed);
            *self.seen.cost_usd.lock().unwrap_or_else(PoisonError::into_inner) = self.lines.cost_usd();
            if taken.is_err() {
                // Nothing of it counts any more: what still comes is read away.
                self.seen.stop.store(true, Relaxed);
            }
            taken?;
        }
        Ok(!ready.output && !ready.error && !ready.input)
    }

    fn verdict(self, fault: Option<String>, status: ExitStatus, tail: &[u8]) -> Result<Results, String> {
        let said = last_line(tail, &self.redactor);
        let with = |sentence: String| match &said {
            Some(said) => format!("{}; its last words: {said}", self.redactor.redact(&sentence)),
            None => self.redactor.redact(&sentence).into_owned(),
        };
        if let Some(sentence) = fault {
            return Err(with(sentence));
        }
        if let Some(sentence) = ill(status) {
            return Err(with(sentence));
        }
        self.lines.finish().map_err(with)
    }
}

/// What is wrong with how it ended.
fn ill(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code @ 129..=192), _) => Some(format!("the executor was killed by {}", signal(code - 128))),
        (Some(code), _) => Some(format!("the executor ended with exit code {code}")),
        (None, number) => Some(format!("the executor was killed by {}", signal(number.unwrap_or_default()))),
    }
}

fn signal(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

/// The last line of what it said on standard error that holds anything.
fn last_line(tail: &[u8], redactor: &Redactor) -> Option<String> {
    let text = String::from_utf8_lossy(tail);
    // As a whole: a secret can stand over several lines.
    let text = redactor.redact(&text);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(clean(&shorten(line, TOLD_BYTES)))
}

/// What can be done without waiting.
#[derive(Default)]
struct Ready {
    input: bool,
    output: bool,
    error: bool,
}

impl Pipes {
    fn ready(&self, hungry: bool) -> Ready {
        let mut wanted = Vec::with_capacity(3);
        let input = self.input.as_ref().filter(|_| hungry);
        wanted.extend(self.output.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        wanted.extend(self.error.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        wanted.extend(input.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)));
        if poll(&mut wanted, PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO)).is_err() {
            return Ready::default();
        }
        let mut any = wanted.iter().map(|one| one.any().unwrap_or(false));
        let mut next = |there: bool| there && any.next().unwrap_or(false);
        Ready { output: next(self.output.is_some()), error: next(self.error.is_some()), input: next(input.is_some()) }
    }

    /// The next bytes; none at the end.
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut block = vec![0; BLOCK_BYTES];
        match self.output.as_mut()?.read(&mut block) {
            Ok(0) => self.output = None,
            Ok(read) => {
                block.truncate(read);
                return Some(block);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.output = None,
        }
        None
    }

    fn complain(&mut self) {
        let mut block = vec![0; BLOCK_BYTES];
        match self.error.as_mut().map(|pipe| pipe.read(&mut block)) {
            Some(Ok(read @ 1..)) => {
                self.tail.extend_from_slice(block.get(..read).unwrap_or_default());
                let over = self.tail.len().saturating_sub(TAIL_BYTES);
                self.tail.drain(..over);
            }
            Some(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => self.error = None,
        }
    }

    fn feed(&mut self, document: &[u8]) {
        let rest = document.get(self.fed..).unwrap_or_default();
        let piece = rest.get(..PIPE_BYTES.min(rest.len())).unwrap_or_default();
        // The pipe stays open behind the document: its end says that the worker is gone. Who does not read it has ended.
        self.fed = match self.input.as_mut().map(|pipe| pipe.write(piece)) {
            Some(Ok(written)) => self.fed + written,
            Some(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => self.fed,
            _ => document.len(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_is_one_sentence() {
        let told = |raw: i32| ill(ExitStatus::from_raw(raw)).unwrap_or_default();
        assert_eq!([told(0), told(3 << 8)], [String::new(), "the executor ended with exit code 3".to_owned()]);
        assert_eq!(
            [told(137 << 8), told(9)],
            ["the executor was killed by SIGKILL".to_owned(), "the executor was killed by SIGKILL".to_owned()]
        );
    }

    #[test]
    fn the_last_words_hold_no_secret_and_steer_no_terminal() {
        let redactor = Redactor::patterns_only();
        assert_eq!(last_line(b"a\nb \x1b[2J\n\n \n", &redactor).as_deref(), Some("b \\u{1b}[2J"));
        let told = last_line(b"api_key = sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", &redactor).unwrap();
        assert!(told.contains("[REDACTED]") && !told.contains("abcdefghijk"), "{told}");
        assert_eq!((last_line(b"", &redactor), last_line(b"\xff", &redactor).as_deref()), (None, Some("\u{fffd}")));
    }
}
