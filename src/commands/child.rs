//! One child process, from its start to its last byte.
//!
//! Promises: a process group of its own, a cleared environment, no standard input; killed with its group at its deadline, when it prints more
//! than it may, when nobody holds its future any more, and when the server ends; what it leaves behind in its group is killed with its end,
//! and a pipe that something else holds open is closed soon after. No thread waits for it.
//! Does not: know tools, or what the output means; find what left the group on purpose (`strays` does).

use std::{
    collections::HashSet,
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::{Instant, sleep_until, timeout_at},
};

/// What the exit code says where the deadline ended it, as `timeout` does.
pub const LATE: i32 = 124;
/// Once a child has ended and its group is killed, how long its pipes may take to end: what it wrote itself is in them already, so more than
/// one reading is needed only where something that left the group holds them.
const PIPES_MAX: Duration = Duration::from_millis(500);
/// How long a killed child may take to be gone; only one inside the kernel takes any time.
const KILLED_MAX: Duration = Duration::from_secs(5);
const BLOCK_BYTES: usize = 16 * 1024;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The program's path.
    pub program: PathBuf,
    /// Its words.
    pub args: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may run.
    pub within: Duration,
    /// Bytes that it may print on standard output.
    pub stdout_max: usize,
    /// Bytes of the end of its standard error that are kept.
    pub stderr_max: usize,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; 128 and the signal's number where one killed it; [`LATE`] where its deadline did.
    pub code: i32,
    /// Whether its deadline ended it.
    pub late: bool,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The end of what it complained.
    pub stderr: Vec<u8>,
}

/// Why there is no end to tell of.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    /// It printed more than it may, and was killed.
    #[error("it printed more than it may")]
    TooMuch,
    /// It could not be waited for.
    #[error("it cannot be waited for: {0}")]
    Wait(io::Error),
}

/// The process groups that are running, so that they can be killed together.
#[derive(Debug, Clone, Default)]
pub struct Groups(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    closed: bool,
    groups: HashSet<i32>,
}

impl Groups {
    /// How many are running.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).groups.len()
    }

    /// Kills all, and each that would still be started.
    pub fn close(&self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.closed = true;
        running.groups.iter().copied().for_each(kill);
    }

    fn add(&self, leader: i32) -> Group {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.closed {
            kill(leader);
        }
        running.groups.insert(leader);
        Group { leader, groups: self.clone() }
    }
}

/// A process group that is running; killed when dropped.
struct Group {
    leader: i32,
    groups: Groups,
}

impl Group {
    fn kill(&self) {
        kill(self.leader);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.groups.0.lock().unwrap_or_else(PoisonError::into_inner).groups.remove(&self.leader);
    }
}

/// Gone already is as good.
fn kill(leader: i32) {
    let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
}

/// Runs `job` to its end, as one of `groups`.
///
/// # Errors
/// [`Fault`].
pub async fn run(job: Job, groups: &Groups) -> Result<Ended, Fault> {
    let deadline = Instant::now() + job.within;
    let (stdout_max, stderr_max) = (job.stdout_max, job.stderr_max);
    // Starting may wait for a disk.
    let started = tokio::task::spawn_blocking(move || start(&job)).await;
    let mut child = started.map_err(|error| Fault::Start(io::Error::other(error)))?.map_err(Fault::Start)?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok());
    let group = groups.add(leader.ok_or_else(|| Fault::Start(io::Error::other("it has no id")))?);
    let mut pipes = Pipes {
        stdout: Pipe::new(child.stdout.take(), stdout_max, Keep::Beginning),
        stderr: Pipe::new(child.stderr.take(), stderr_max, Keep::End),
    };
    let status = attend(&mut child, &mut pipes, deadline).await;
    group.kill();
    if !matches!(status, Ok(Some(_))) {
        // Reaped, so that no zombie stays.
        let _ = tokio::time::timeout(KILLED_MAX, child.wait()).await;
    }
    drop(group);
    let status = status?;
    let read = timeout_at(Instant::now() + PIPES_MAX, pipes.read_out()).await;
    // Too much is too much, also where it ended before all of it was read.
    read.unwrap_or(Ok(()))?;
    Ok(Ended { code: status.map_or(LATE, code), late: status.is_none(), stdout: pipes.stdout.kept, stderr: pipes.stderr.kept })
}

fn start(job: &Job) -> io::Result<Child> {
    let mut command = Command::new(&job.program);
    command.args(&job.args).current_dir(&job.directory).env_clear().envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

/// Until the child has ended, or its deadline has passed (then none). Its pipes are read meanwhile: one that is full would stop it.
async fn attend(child: &mut Child, pipes: &mut Pipes, deadline: Instant) -> Result<Option<ExitStatus>, Fault> {
    let late = sleep_until(deadline);
    tokio::pin!(late);
    let Pipes { stdout, stderr } = pipes;
    loop {
        tokio::select! {
            status = child.wait() => return status.map(Some).map_err(Fault::Wait),
            () = &mut late => return Ok(None),
            read = stdout.read(), if stdout.open() => read?,
            read = stderr.read(), if stderr.open() => read?,
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

struct Pipes {
    stdout: Pipe<tokio::process::ChildStdout>,
    stderr: Pipe<tokio::process::ChildStderr>,
}

impl Pipes {
    async fn read_out(&mut self) -> Result<(), Fault> {
        let Self { stdout, stderr } = self;
        while stdout.open() || stderr.open() {
            tokio::select! {
                read = stdout.read(), if stdout.open() => read?,
                read = stderr.read(), if stderr.open() => read?,
            }
        }
        Ok(())
    }
}

/// What is kept of a pipe that gives more than it may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Nothing: it is a fault.
    Beginning,
    /// The last bytes.
    End,
}

struct Pipe<R> {
    pipe: Option<R>,
    kept: Vec<u8>,
    max: usize,
    keep: Keep,
    block: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(pipe: Option<R>, max: usize, keep: Keep) -> Self {
        Self { pipe, kept: Vec::new(), max, keep, block: vec![0; BLOCK_BYTES].into() }
    }

    const fn open(&self) -> bool {
        self.pipe.is_some()
    }

    /// The next bytes, where there are any. Given up in between, nothing is lost.
    async fn read(&mut self) -> Result<(), Fault> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        // A pipe that cannot be read has ended.
        let count = pipe.read(&mut self.block).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        self.kept.extend_from_slice(self.block.get(..count).unwrap_or_default());
        if self.kept.len() > self.max {
            match self.keep {
                Keep::Beginning => return Err(Fault::TooMuch),
                Keep::End => drop(self.kept.drain(..self.kept.len() - self.max)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        Job {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            directory: std::env::temp_dir(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            within: Duration::from_secs(60),
            stdout_max: 1000,
            stderr_max: 10,
        }
    }

    async fn ended(script: &str) -> Ended {
        run(shell(script), &Groups::default()).await.unwrap()
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn what_it_prints_and_how_it_ends_is_told() {
        let done = ended("echo out; echo a long complaint >&2; exit 3").await;
        assert_eq!((done.code, done.late, text(&done.stdout), text(&done.stderr)), (3, false, "out\n", "complaint\n"));
        assert_eq!(ended("kill -9 $$").await.code, 128 + 9);
        assert_eq!(ended("cat; env").await.stdout, b"PATH=/usr/bin:/bin\nPWD=/tmp\n".to_vec().as_slice().to_vec());
    }

    #[tokio::test]
    async fn its_deadline_kills_what_ignores_signals_and_all_its_children() {
        let groups = Groups::default();
        let job = Job { within: Duration::from_millis(300), ..shell("trap '' TERM INT; sleep 600 & echo $$; sleep 600; sleep 600") };
        let done = run(job, &groups).await.unwrap();
        assert_eq!((done.code, done.late, groups.count()), (LATE, true, 0));
        let group = Pid::from_raw(text(&done.stdout).trim().parse().unwrap());
        gone(group).await;
    }

    /// Nothing of the group is left; whoever inherits what was killed takes a moment to reap it.
    async fn gone(group: Pid) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while killpg(group, None).is_ok() {
            assert!(Instant::now() < deadline, "something of {group} is left");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_grandchild_that_holds_the_pipe_holds_up_nothing() {
        let done = ended("sleep 600 & echo $$").await;
        assert_eq!(done.code, 0);
        gone(Pid::from_raw(text(&done.stdout).trim().parse().unwrap())).await;
    }

    #[tokio::test]
    async fn a_flood_on_standard_output_is_a_fault_and_one_on_standard_error_is_not() {
        let groups = Groups::default();
        assert!(matches!(run(shell("yes"), &groups).await, Err(Fault::TooMuch)));
        assert!(matches!(run(shell("head -c 1001 /dev/zero"), &groups).await, Err(Fault::TooMuch)));
        assert_eq!(groups.count(), 0);
        let done = ended("head -c 1000 /dev/zero; yes | head -c 3000000 >&2; echo last >&2").await;
        assert_eq!((done.code, done.stdout.len(), text(&done.stderr)), (0, 1000, "y\ny\ny\nlast\n".get(1..).unwrap()));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_and_what_the_server_leaves_is_killed() {
        let groups = Groups::default();
        let left = tokio::spawn({
            let groups = groups.clone();
            async move { run(shell("sleep 600"), &groups).await }
        });
        while groups.count() == 0 {
            tokio::task::yield_now().await;
        }
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        assert_eq!(groups.count(), 0);
        groups.close();
        let done = run(shell("sleep 600"), &groups).await.unwrap();
        assert_eq!(done.code, 128 + 9, "it is started in vain once the server ends");
    }

    #[tokio::test]
    async fn what_cannot_be_started_is_told() {
        let job = Job { program: "/nowhere/at/all".into(), ..shell("") };
        assert!(matches!(run(job, &Groups::default()).await, Err(Fault::Start(_))));
    }
}
