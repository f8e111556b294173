//! Organizations in a data directory, and servers over it.
//!
//! Promises: `acme` has the projects `main`, `zeta` one of the same name; each key is made by the binary.
//! Does not: share a data directory between tests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    harness::{Project, Ran, command, ran},
    http::{
        service::Service,
        wire::{Answer, Request},
    },
};

/// A data directory.
pub struct House {
    directory: tempfile::TempDir,
    config: String,
}

impl House {
    /// With both organizations; `config` has more tables.
    pub fn new(config: &str) -> Self {
        let house = Self { directory: tempfile::tempdir().unwrap(), config: config.to_owned() };
        for organization in ["acme", "zeta"] {
            house.verb(&["org", "create", organization]);
            house.verb(&["project", "create", &format!("{organization}/main")]);
        }
        house
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// One of the verbs over organizations; what it printed.
    pub fn verb(&self, words: &[&str]) -> String {
        let ran = ran(command().args(words).arg("--data-dir").arg(self.data()).output().unwrap());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran.out.trim().to_owned()
    }

    /// A key of `organization`.
    pub fn key(&self, organization: &str, role: &str, scopes: &[&str]) -> String {
        let scopes = scopes.iter().flat_map(|scope| ["--scope", scope]);
        let words: Vec<&str> = ["key", "create", organization, "--name", "test", "--role", role].into_iter().chain(scopes).collect();
        self.verb(&words)
    }

    /// A key that sends, to acme.
    pub fn sender(&self) -> String {
        self.key("acme", "member", &["runs:write"])
    }

    /// A key that reads all of acme.
    pub fn reader(&self) -> String {
        self.key("acme", "viewer", &["*"])
    }

    /// A server over the directory.
    pub fn serve(&self) -> Service {
        self.serve_by(|command, config| {
            command.args(["serve", "--config"]).arg(config);
        })
    }

    /// The same; `words` gets the configuration's file.
    pub fn serve_by(&self, words: impl Fn(&mut Command, &Path)) -> Service {
        Service::spawned(Project::new(), |command, port, admin| {
            let file = self.directory.path().join(format!("{port}.toml"));
            let own = format!(
                "[http]\nport = {port}\n[tenants]\ndata_dir = \"{}\"\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n",
                self.data().display()
            );
            fs::write(&file, format!("{own}{}", self.config)).unwrap();
            words(command, &file);
        })
    }

    /// The id of acme's project.
    fn id(&self) -> String {
        let rows: Value = serde_json::from_str(&self.verb(&["project", "list", "acme", "--json"])).unwrap();
        rows[0]["id"].as_str().unwrap().to_owned()
    }

    /// The file of acme's first project.
    pub fn database(&self) -> PathBuf {
        self.data().join("projects").join(format!("{}.db", self.id()))
    }

    /// What waits beside it.
    pub fn spool(&self) -> PathBuf {
        self.data().join("projects").join(format!("{}.spool", self.id()))
    }

    /// The names there that begin or end so.
    pub fn spooled(&self, what: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.spool()) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.starts_with(what) || name.ends_with(what)
            })
            .collect()
    }

    /// The number that every change raises.
    pub fn generation(&self) -> i64 {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        connection.query_row("SELECT value FROM meta WHERE name = 'generation'", [], |row| row.get(0)).unwrap()
    }

    /// Holds the project's write lock: what is read into it waits.
    pub fn hold(&self) -> Held {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Held(connection)
    }
}

/// The write lock of a project.
pub struct Held(rusqlite::Connection);

impl Held {
    pub fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// A log in one request.
pub fn post(service: &Service, key: &str, query: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::raw(service.port, body).to(&format!("/v1/runs{query}")).bearer(key).with("content-type", "application/octet-stream")
}

/// A part of a log.
pub fn put(service: &Service, key: &str, digest: &str, offset: usize, body: impl Into<Vec<u8>>) -> Request {
    post(service, key, "", body).by("PUT").to(&format!("/v1/uploads/{digest}?offset={offset}"))
}

/// What is there of a log.
pub fn look(service: &Service, key: &str, digest: &str) -> Value {
    let answer = service.ask(&Request::get(service.port, &format!("/v1/uploads/{digest}")).bearer(key));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The answer to a log that was taken.
pub fn taken(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes.as_ref()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A tool's answer, as whoever has `key` gets it.
pub fn call(service: &Service, key: &str, tool: &str, arguments: &Value) -> Value {
    let answer = service.ask(&Request::call(service.port, tool, arguments).bearer(key));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"]["structuredContent"].clone()
}

/// The ids of the runs, newest first.
pub fn runs(service: &Service, key: &str) -> Vec<String> {
    let answer = call(service, key, "runs_list", &json!({"limit": 100}));
    answer["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

/// `runlore push` in a project.
pub fn push(project: &Project, service: &Service, key: &str, words: &[&str]) -> Ran {
    ran(pushing(project, service, key, words).output().unwrap())
}

/// The same, on its way.
pub fn pushed(project: &Project, service: &Service, key: &str, words: &[&str]) -> Child {
    pushing(project, service, key, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn pushing(project: &Project, service: &Service, key: &str, words: &[&str]) -> Command {
    let mut command = command();
    command.current_dir(project.path()).env("RUNLORE_KEY", key).args(["push", &format!("http://127.0.0.1:{}", service.port)]).args(words);
    command
}

/// How often the server was asked for so much.
pub fn told(service: &Service, what: &str) -> usize {
    service.log().lines().filter(|line| line.contains("\"event\":\"push\"") && line.contains(&format!("\"what\":\"{what}\""))).count()
}
