//! A running server: its port, its log, its metrics, its end.
//!
//! Promises: ready when `start` returns; killed when dropped; what it wrote on stderr can be read at any time.
//! Does not: share a server between tests.

use std::{
    collections::BTreeMap,
    fs::File,
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use super::wire::{Answer, Connection, PATIENCE, Request};
use crate::harness::{Project, command};

/// A server and the project that it serves.
pub struct Service {
    pub port: u16,
    pub admin: u16,
    pub project: Project,
    child: Child,
    log: PathBuf,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Polls `condition` until it gives something; a panic after the deadline.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl Service {
    /// `runlore mcp --http` over the demo's logs, with `flags`.
    pub fn start(flags: &[&str]) -> Self {
        Self::with(Project::demo(), "", flags)
    }

    /// The same with keys of the `[http]` table.
    pub fn configured(http: &str, flags: &[&str]) -> Self {
        Self::with(Project::demo(), http, flags)
    }

    /// The same in a project of the test's own.
    pub fn with(project: Project, http: &str, flags: &[&str]) -> Self {
        if !http.is_empty() {
            project.write(".runlore/config.toml", format!("[index]\nrescan_s = 0\nwait_ms = 60000\n[http]\n{http}\n"));
        }
        Self::spawned(project, |command, port, admin| {
            command.args(["mcp", "--http", "--port", &port.to_string(), "--admin-listen", &format!("127.0.0.1:{admin}")]).args(flags);
        })
    }

    /// `runlore serve --config FILE` over the demo's logs; `config` gets the ports put before it.
    pub fn serve(config: &str) -> Self {
        Self::serve_as(config, |_| {})
    }

    /// The same, with more said of the command.
    pub fn serve_as(config: &str, more: impl Fn(&mut Command)) -> Self {
        Self::spawned(Project::demo(), |command, port, admin| {
            more(command);
            let file = std::env::temp_dir().join(format!("runlore-serve-{port}.toml"));
            std::fs::write(&file, format!("[http]\nport = {port}\n{config}\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n")).unwrap();
            command.args(["serve", "--config"]).arg(&file);
        })
    }

    /// With words of the test's own; reached over the loopback.
    pub fn spawned(project: Project, words: impl Fn(&mut Command, u16, u16)) -> Self {
        Self::reached_at(Ipv4Addr::LOCALHOST.into(), project, words)
    }

    /// Another process may take a port between looking and binding: then another port is tried.
    pub fn reached_at(ip: IpAddr, project: Project, words: impl Fn(&mut Command, u16, u16)) -> Self {
        let log = project.path().join("stderr.log");
        for _ in 0..5 {
            let (port, admin) = (free_port(), free_port());
            let mut command = command();
            command.env_remove("RUNLORE_MCP_TOKEN").env_remove("RUNLORE_MCP_TOKEN_FILE");
            command.current_dir(project.path()).stdin(Stdio::null()).stdout(Stdio::null());
            words(&mut command, port, admin);
            let mut child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
            let ready = wait_for("the server", || match child.try_wait().unwrap() {
                Some(status) => Some(Err(status)),
                None => TcpStream::connect((ip, port)).and_then(|_| TcpStream::connect(("127.0.0.1", admin))).ok().map(Ok),
            });
            match ready {
                Ok(_) => return Self { port, admin, project, child, log },
                Err(status) => assert!(said_in_use(&log), "{status}: {}", std::fs::read_to_string(&log).unwrap()),
            }
        }
        panic!("no free port was found five times")
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.port)
    }

    /// One request over a connection of its own.
    pub fn ask(&self, request: &Request) -> Answer {
        self.connect().ask(&request.clone().and("connection", "close"))
    }

    /// A tool call of the older era; its result.
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(&Request::call(self.port, tool, arguments));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"].clone()
    }

    /// Waits until no connection but the test's own to the private listener is open, and the logs are read.
    pub fn settle(&self) {
        self.call("runs_list", &serde_json::json!({"limit": 1}));
        wait_for("the places to be free", || (self.metric(super::metrics::CONNECTIONS, &[]) < 1.0).then_some(()));
    }

    /// The server still answers an ordinary client.
    pub fn serves(&self) {
        let answer = self.ask(&Request::legacy(self.port, "ping", &serde_json::json!({})));
        assert_eq!((answer.status, answer.json()["result"].to_string()), (200, "{}".to_owned()), "{answer:?}");
    }

    /// What it wrote on stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The private listener's answer.
    pub fn admin(&self, target: &str) -> Answer {
        Connection::open(self.admin).ask(&Request::get(self.admin, target).and("connection", "close"))
    }

    /// Every sample of `/metrics`, by its name and labels as written.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let text = self.admin("/metrics").text();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| line.rsplit_once(' ').unwrap()).map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// The sum of the samples of `name` whose labels contain all of `labels`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let all = self.metrics();
        let is = |key: &str| key.split('{').next() == Some(name) && labels.iter().all(|label| key.contains(label));
        all.iter().filter(|(key, _)| is(key)).map(|(_, value)| value).sum()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for the end; the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        wait_for("the end", || self.child.try_wait().unwrap()).code()
    }
}

fn said_in_use(log: &std::path::Path) -> bool {
    std::fs::read_to_string(log).unwrap().to_lowercase().contains("in use")
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
