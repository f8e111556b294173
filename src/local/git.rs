//! The commits before a log's commit, where its repository is at hand (decision 90).
//!
//! Promises: a child process without a shell, with a cleared environment, no input and a deadline; the sha is hexadecimal before it becomes
//! an argument; each sha is asked for once. Whatever goes wrong, the answer is no ancestors: they make answers better, not possible.
//! Does not: write to the repository, run its hooks, or fetch from the network.

use std::{
    collections::HashMap,
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    rc::Rc,
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// Ancestors kept of one commit.
pub const ANCESTORS_MAX: usize = 500;

/// Git answers in milliseconds; what takes longer waits for a disk or a lock, and the import must go on.
const DEADLINE: Duration = Duration::from_secs(5);

/// A full sha-256 and a line feed: nothing that git prints here is longer.
const LINE_BYTES_MAX: u64 = 65;

/// What of our own environment git needs: where it is, and (HOME) which repositories of other owners it may trust.
pub const ENVIRONMENT: [&str; 2] = ["PATH", "HOME"];

/// The ancestry of commits in one directory, asked once each.
pub struct Ancestry {
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
    program: PathBuf,
    deadline: Duration,
    known: HashMap<String, Rc<Vec<String>>>,
    /// Whether there is no repository, or git is absent or hung: then it is not tried (again) in this run.
    given_up: bool,
}

impl Ancestry {
    /// The ancestry in the repository around `root`; `environment` has the values of [`ENVIRONMENT`].
    #[must_use]
    pub fn new(root: &Path, environment: &[(OsString, OsString)]) -> Self {
        let environment = environment.to_vec();
        // Starting git costs as much as importing a hundred samples, and without a repository it has nothing to say.
        let given_up = !root.ancestors().any(|directory| directory.join(".git").exists());
        Self { root: root.to_path_buf(), environment, program: "git".into(), deadline: DEADLINE, known: HashMap::new(), given_up }
    }

    /// The commits before `sha`, nearest first; none where it is unknown here.
    pub fn before(&mut self, sha: &str) -> Rc<Vec<String>> {
        let sha = sha.to_ascii_lowercase();
        if !is_sha(&sha) {
            return Rc::default();
        }
        if let Some(known) = self.known.get(&sha) {
            return Rc::clone(known);
        }
        let found = Rc::new(if self.given_up { Vec::new() } else { self.ask(&sha) });
        self.known.insert(sha, Rc::clone(&found));
        found
    }

    fn ask(&mut self, sha: &str) -> Vec<String> {
        let Ok(mut child) = self.command(sha).spawn() else {
            self.given_up = true;
            return Vec::new();
        };
        let (sender, receiver) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            // The reader ends with the pipe, at the latest when the group is killed.
            thread::spawn(move || sender.send(read_shas(output)));
        }
        let lines = receiver.recv_timeout(self.deadline);
        end(&mut child);
        self.given_up = lines.is_err();
        // The first line is the commit itself.
        lines.unwrap_or_default().into_iter().skip(1).collect()
    }

    fn command(&self, sha: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--no-pager", "-c", "core.fsmonitor=false", "rev-list"])
            .arg(format!("--max-count={}", ANCESTORS_MAX + 1))
            .args([sha, "--"]);
        command.current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        // LAZY_FETCH: a partial clone must not go to the network.
        command.env("LC_ALL", "C").env("GIT_NO_LAZY_FETCH", "1").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
        command.process_group(0);
        command
    }
}

/// Kills what is left of the child's group and takes its status, so that nothing stays behind.
fn end(child: &mut Child) {
    // A group id is the child's own id, which cannot be given to another process before `wait`.
    if let Ok(id) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
    }
    let _ = child.wait();
}

fn read_shas(output: ChildStdout) -> Vec<String> {
    let bounded = BufReader::new(output.take(LINE_BYTES_MAX * (ANCESTORS_MAX as u64 + 1)));
    bounded.lines().map_while(Result::ok).take_while(|line| is_sha(line)).collect()
}

/// Hexadecimal, of a length that names a commit: so it can be no option, no range and no revision expression.
fn is_sha(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Vec<(OsString, OsString)> {
        ENVIRONMENT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
    }

    fn git(root: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(root)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn ancestors_nearest_first() {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "-q"]);
        let shas: Vec<String> = (0..3)
            .map(|number| {
                git(root.path(), &["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
                git(root.path(), &["rev-parse", "HEAD"])
            })
            .collect();
        let mut ancestry = Ancestry::new(root.path(), &environment());
        let short: String = shas[2].chars().take(9).collect();
        assert_eq!(*ancestry.before(&short.to_uppercase()), [shas[1].clone(), shas[0].clone()]);
        assert!(ancestry.before(&shas[0]).is_empty());
        assert!(ancestry.before("0123456789abcdef").is_empty());
        assert!(!ancestry.given_up);
        // Asked once: the answer outlives the repository.
        root.close().unwrap();
        assert_eq!(ancestry.before(&short).len(), 2);
    }

    #[test]
    fn no_sha_no_repository_no_git_no_answer() {
        let root = tempfile::tempdir().unwrap();
        let without = Ancestry { program: "/nowhere/git".into(), ..Ancestry::new(root.path(), &environment()) };
        assert!(without.given_up && without.known.is_empty());
        std::fs::create_dir(root.path().join(".git")).unwrap();
        let mut ancestry = Ancestry { program: "/nowhere/git".into(), ..Ancestry::new(root.path(), &environment()) };
        for wrong in ["--all", "HEAD", "abc", "", "abcd..ef01", &"a".repeat(65)] {
            assert!(ancestry.before(wrong).is_empty());
        }
        assert!(!ancestry.given_up && ancestry.known.is_empty());
        assert!(ancestry.before("abcdef").is_empty() && ancestry.given_up);
        assert!(Ancestry::new(root.path(), &environment()).before("abcdef").is_empty());
    }

    #[test]
    fn a_git_that_hangs_is_killed_and_not_tried_again() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        let program = root.path().join("git");
        std::fs::write(&program, "#!/bin/sh\necho x >> tried\nsleep 600 & sleep 600\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut ancestry = Ancestry { program, deadline: Duration::from_millis(300), ..Ancestry::new(root.path(), &environment()) };
        let begun = std::time::Instant::now();
        assert!(ancestry.before("abcdef").is_empty() && ancestry.before("abcde0").is_empty());
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(std::fs::read_to_string(root.path().join("tried")).unwrap_or_default().len() <= 2);
    }
}
