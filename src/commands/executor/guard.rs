//! The small process between a worker and an executor's program: this program under another verb.
//!
//! Promises: the program and all that it started end with the worker, however that ends: this process reads the worker's pipe, whose end is the
//! worker's. What the program leaves behind is killed before its exit code is handed on, also what went into a session of its own (on Linux).
//! Does not: read what the program writes (its output is the worker's pipe), or decide how long it may run.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{SigSet, Signal, kill, killpg},
    unistd::{Pid, getpgrp},
};

/// The verb under which this program is a guard.
pub const VERB: &str = "executor-guard";
/// What cannot be started ends as a shell says it.
const NOT_STARTED: u8 = 127;
/// Digits of the document's length, and their line feed.
const LENGTH_BYTES_MAX: u64 = 20;
/// What was killed is looked for so often, with a pause between: what it started comes to light by its death.
const SWEEPS_MAX: u32 = 200;
const BETWEEN_SWEEPS: Duration = Duration::from_millis(5);

/// What happened.
enum News {
    /// The program ended.
    Ended(io::Result<ExitStatus>),
    /// The worker's pipe did.
    Alone,
}

/// Runs the program with the document that comes first on standard input; its exit code, 128 and the signal's number where one ended it.
#[must_use]
pub fn run(program: &OsString, args: &[OsString], grace: Duration) -> u8 {
    adopt();
    let mut input = io::stdin();
    let Ok(document) = document(&mut input.lock()) else { return NOT_STARTED };
    let started = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(Stdio::inherit()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "the program cannot be started: {error}");
            return NOT_STARTED;
        }
    };
    outlive();
    let (tell, news) = channel();
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read its input may still answer.
        aside(move || drop(pipe.write_all(&document)));
    }
    let alone: Sender<News> = tell.clone();
    aside(move || {
        // Nothing more comes: what is read is only the end.
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = alone.send(News::Alone);
    });
    aside(move || drop(tell.send(News::Ended(child.wait()))));
    let code = ended(&news, grace);
    sweep();
    code
}

/// Signals to the group are for the program. A child would inherit this: so it comes after its start, and before that of our threads.
fn outlive() {
    let mut ours = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|signal| ours.add(signal));
    let _ = ours.thread_block();
}

/// What loses its parent below the program becomes ours.
fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// The document: its length in digits, a line feed, its bytes.
fn document(input: &mut impl io::BufRead) -> io::Result<Vec<u8>> {
    let mut head = String::new();
    input.take(LENGTH_BYTES_MAX).read_line(&mut head)?;
    let length: u64 = head.trim_end().parse().map_err(io::Error::other)?;
    let mut document = Vec::new();
    input.take(length).read_to_end(&mut document)?;
    if document.len() as u64 == length { Ok(document) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Where the system gives no thread, the news of it is that it did not happen.
fn aside(work: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().spawn(work);
}

/// Waits for the program; where the worker is gone first, it is told to end, and then made to.
fn ended(news: &Receiver<News>, grace: Duration) -> u8 {
    match news.recv() {
        Ok(News::Ended(status)) => code(status.ok()),
        Ok(News::Alone) | Err(_) => {
            let _ = killpg(getpgrp(), Signal::SIGTERM);
            match news.recv_timeout(grace) {
                Ok(News::Ended(status)) => code(status.ok()),
                Ok(News::Alone) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => code(None),
            }
        }
    }
}

fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Kills what is left, children of children as they become ours.
fn sweep() {
    for _ in 0..SWEEPS_MAX {
        let left = children();
        if left.is_empty() {
            return;
        }
        for child in left {
            let _ = kill(child, Signal::SIGKILL);
        }
        while nix::sys::wait::waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != nix::sys::wait::WaitStatus::StillAlive)
        {}
        thread::sleep(BETWEEN_SWEEPS);
    }
}

/// The processes whose parent is this one, by the system's list.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent(*pid) == Some(own)).map(Pid::from_raw).collect()
}

/// The second field behind the name, which may hold anything and ends with the last bracket.
fn parent(pid: i32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_as_long_as_it_says() {
        assert_eq!(document(&mut &b"3\nabcdef"[..]).unwrap(), b"abc");
        for text in [&b"4\nabc"[..], b"", b"x\n", b"-1\n", b"99999999999999999999999\n"] {
            assert!(document(&mut &text[..]).is_err());
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(code(Some(ExitStatus::from_raw(3 << 8))), 3);
        assert_eq!((code(Some(ExitStatus::from_raw(9))), code(None)), (137, 255));
    }
}
