//! A project in a temporary folder and the binary in it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// A project with `logs/`, gone when dropped.
pub struct Project {
    dir: tempfile::TempDir,
}

/// What one run of the binary gave.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Project {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("logs")).unwrap();
        std::fs::create_dir_all(dir.path().join(".runlore")).unwrap();
        // A busy machine reads even small logs slowly; what happens when a call does not wait has a test of its own.
        std::fs::write(dir.path().join(".runlore/config.toml"), "[index]\nwait_ms = 60000\n").unwrap();
        Self { dir }
    }

    /// With the demo's logs.
    pub fn demo() -> Self {
        let project = Self::new();
        for file in std::fs::read_dir(fixtures().join("demo/logs")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), project.logs().join(file.file_name())).unwrap();
        }
        project
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn logs(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    /// Makes a view over all numbers of the table of arms: a call that names them never ends by itself.
    pub fn never_name_arms(&self) {
        let view = "ALTER TABLE run_arms_m RENAME TO run_arms_kept;
            CREATE VIEW run_arms_m AS SELECT * FROM run_arms_kept
            WHERE (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n) > 0";
        rusqlite::Connection::open(self.dir.path().join(".runlore/history.db")).unwrap().execute_batch(view).unwrap();
    }

    /// With one connection to read with, for which a call waits for a minute, and files that are looked at once.
    pub fn one_reader(&self) {
        let config = "[index]\nrescan_s = 86400\nwait_ms = 60000\n[store]\nreaders_max = 1\nbusy_timeout_ms = 60000\n";
        self.write(".runlore/config.toml", config);
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs the binary in the project.
    pub fn run(&self, words: &[&str]) -> Ran {
        ran(command().current_dir(self.path()).args(words).output().unwrap())
    }

    /// Runs a verb with `--json`, which must end with 0.
    pub fn json(&self, words: &[&str]) -> Value {
        // After the verb: behind `--` it would be a value.
        let words: Vec<&str> = words.iter().take(1).copied().chain(["--json"]).chain(words.iter().skip(1).copied()).collect();
        let ran = self.run(&words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{words:?}: {error}: {}", ran.out))
    }
}

/// CPU time that a process has used, in ticks of 10 ms: how a test sees from outside that it is at work.
pub fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// The binary under test, without the environment's own settings.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runlore"));
    command.env_remove("RUNLORE_LOG").env_remove("NO_COLOR");
    command
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared")
}

/// The rows of an answer as (id, status).
pub fn statuses(answer: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    answer["rows"].as_array().unwrap().iter().map(|row| (text(row, "id"), text(row, "status"))).collect()
}

/// What `runlore mcp` offers where nobody says otherwise.
pub fn offered() -> Vec<String> {
    registry().into_iter().filter(|name| name != "list_eval_run_projections" && !WORKSPACE.contains(&name.as_str())).collect()
}

/// Tools of the workspace that read; `runs_list` is one of the history too.
const WORKSPACE: [&str; 10] = [
    "project_inspect",
    "project_plan",
    "evaluations_list",
    "run_explain",
    "baseline_lineage",
    "docs_search",
    "connections_list",
    "connections_catalog",
    "connector_health",
    "whoami",
];

/// The tools that read and that a caller with every read scope may call: what manages the workspace asks for more.
pub fn readable() -> Vec<String> {
    registry().into_iter().filter(|name| name != "connector_health").collect()
}

/// The tools that read: what `runlore serve` offers of one project.
pub fn registry() -> Vec<String> {
    named().into_iter().filter(|(_, writes)| !writes).map(|(name, _)| name).collect()
}

/// The tools that write: only a server of many organizations has them.
pub fn writers() -> Vec<String> {
    named().into_iter().filter(|(_, writes)| *writes).map(|(name, _)| name).collect()
}

/// The tools that the README names, which are those of the registry (a test of its own holds that), and whether they write.
fn named() -> Vec<(String, bool)> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, table) = readme.split_once("<!-- tools:begin -->").unwrap();
    let (table, _) = table.split_once("<!-- tools:end -->").unwrap();
    let row = |line: &str| Some((line.strip_prefix("| `")?.split_once('`')?.0.to_owned(), line.contains("| **Writes.** ")));
    table.lines().filter_map(row).collect()
}
