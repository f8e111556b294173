//! `deploy/release`, rehearsed with plain processes for containers: a good release, a broken one, one that hangs, one that answers wrongly,
//! and each with and without a release before it.
//!
//! Promises: the script as it is deployed, with its documented runner for processes; what serves afterwards is asked over its port.
//! Does not: test `deploy/runner.docker`: there is no engine here.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    harness::{Project, Ran, ran},
    http::{
        service::{free_port, wait_for},
        wire::{Connection, Request},
    },
};

/// A machine that releases are put on.
struct Machine {
    project: Project,
    port: u16,
    next: u16,
}

impl Machine {
    fn new() -> Self {
        let project = Project::demo();
        project.json(&["runs-list"]);
        Self { project, port: free_port(), next: free_port() }
    }

    /// A release that is the binary under test, started as `script` says.
    fn release(&self, name: &str, script: &str) -> PathBuf {
        let path = self.project.path().join(name);
        let text = format!("#!/bin/sh\n[ \"$1\" != --version ] || {{ echo 'runlore {}'; exit 0; }}\n{script}\n", env!("CARGO_PKG_VERSION"));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn good(&self, name: &str) -> PathBuf {
        self.release(name, &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_runlore")))
    }

    fn put(&self, release: &Path, words: &[&str], seconds: u32) -> Ran {
        let script = root().join("deploy/release");
        let mut command = Command::new("bash");
        command.arg(script).arg(release).args(words).env("RUNNER", root().join("deploy/runner.process"));
        command.env("RUNLORE_STATE", self.state()).env("RUNLORE_STOP_S", "20");
        command.env("RUNLORE_PORT", self.port.to_string()).env("RUNLORE_NEXT_PORT", self.next.to_string());
        let arguments = format!("mcp --http --public --project {}", self.project.path().display());
        command.env("RUNLORE_ARGUMENTS", arguments).env("RUNLORE_CHECK_S", seconds.to_string());
        command.env_remove("RUNLORE_MCP_TOKEN").env_remove("http_proxy");
        ran(command.output().unwrap())
    }

    fn state(&self) -> PathBuf {
        self.project.path().join("state")
    }

    /// The number of the process that serves, which must answer.
    fn serves(&self) -> String {
        let answer = Connection::open(self.port).ask(&Request::get(self.port, "/mcp/health").and("connection", "close"));
        assert!(answer.status == 200 && answer.text().contains("\"ok\":true"), "{answer:?}");
        std::fs::read_to_string(self.state().join("runlore.pid")).unwrap().trim().to_owned()
    }

    /// Which release is in service by the runner's word.
    fn current(&self) -> String {
        std::fs::read_to_string(self.state().join("runlore.release")).unwrap_or_default().trim().to_owned()
    }

    fn nothing_is_left(&self) {
        for port in [self.port, self.next] {
            assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "{port} is listened on");
        }
        let left: Vec<_> = std::fs::read_dir(self.state()).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| Path::new(name).extension().is_some_and(|end| end == "log")), "{left:?}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for name in ["runlore", "runlore-next"] {
            let mut stop = Command::new("bash");
            stop.arg(root().join("deploy/runner.process")).args(["stop", name]).env("RUNLORE_STATE", self.state());
            let _ = stop.env("RUNLORE_STOP_S", "5").status();
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Answers as a server that was made by somebody else might: with what `body` says, to everything.
fn imposter(body: &str) -> String {
    format!(
        "while [ $# -gt 0 ]; do [ \"$1\" != --port ] || port=$2; shift; done\nexec python3 -c '\nimport sys, http.server\nclass H(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.say(b\"{{\\\"ok\\\":true,\\\"version\\\":\\\"{}\\\",\\\"tools\\\":1}}\")\n    def do_POST(self):\n        self.rfile.read(int(self.headers[\"content-length\"]))\n        self.say({body})\n    def say(self, text):\n        self.send_response(200)\n        self.end_headers()\n        self.wfile.write(text)\n    def log_message(self, *all): pass\nhttp.server.HTTPServer((\"127.0.0.1\", int(sys.argv[1])), H).serve_forever()\n' \"$port\"",
        env!("CARGO_PKG_VERSION")
    )
}

#[test]
fn a_good_release_serves_and_a_better_one_takes_its_place() {
    let machine = Machine::new();
    let first = machine.good("first");
    let ran = machine.put(&first, &[], 60);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("beside nothing") && ran.out.ends_with("serves\n") && ran.err.is_empty(), "{}{}", ran.out, ran.err);
    let (before, second) = (machine.serves(), machine.good("second"));
    let url = format!("http://127.0.0.1:{}", machine.port);
    let ran = machine.put(&second, &["--public-url", &url], 60);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains(&format!("beside {}", first.display())) && ran.out.contains("is well"), "{}", ran.out);
    assert_ne!(machine.serves(), before);
    assert_eq!(machine.current(), second.display().to_string());
    assert!(std::net::TcpStream::connect(("127.0.0.1", machine.next)).is_err(), "the release that was tried is gone");
    wait_for("the first to be gone", || (!Path::new(&format!("/proc/{before}")).exists()).then_some(()));
}

#[test]
fn a_release_that_is_not_good_changes_nothing() {
    let machine = Machine::new();
    let good = machine.good("good");
    assert_eq!(machine.put(&good, &[], 60).code, 0);
    let before = machine.serves();
    let error = r#"b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603}}""#;
    let refused = r#"b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true}}""#;
    let other = machine.release("other", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_runlore")));
    let text = std::fs::read_to_string(&other).unwrap().replace(env!("CARGO_PKG_VERSION"), "99.0.0");
    std::fs::write(&other, text).unwrap();
    for (name, release, seconds, why) in [
        ("broken", machine.release("broken", "exit 3"), 60, "ended before it was well"),
        ("hanging", machine.release("hanging", "exec sleep 1000"), 2, "was not well within 2 s"),
        ("failing", machine.release("failing", &imposter(error)), 60, "was refused"),
        ("refusing", machine.release("refusing", &imposter(refused)), 60, "was refused"),
        ("another", other, 60, "another release than 99.0.0"),
    ] {
        let ran = machine.put(&release, &[], seconds);
        assert_eq!(ran.code, 1, "{name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(why) && ran.err.contains("the previous release serves on"), "{name}: {}", ran.err);
        assert_eq!((machine.serves(), machine.current()), (before.clone(), good.display().to_string()), "{name}");
        assert!(std::net::TcpStream::connect(("127.0.0.1", machine.next)).is_err(), "{name} is gone");
    }
}

#[test]
fn where_there_was_none_nothing_is_left() {
    let machine = Machine::new();
    let broken = machine.release("broken", "exit 3");
    let ran = machine.put(&broken, &[], 60);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("nothing serves: there was no release before"), "{}", ran.err);
    machine.nothing_is_left();
}

#[test]
fn one_that_does_not_serve_where_it_is_to_is_taken_back() {
    let machine = Machine::new();
    let good = machine.good("good");
    assert_eq!(machine.put(&good, &[], 60).code, 0);
    // Good beside the other, broken in its place.
    let script = format!("case \"$*\" in *\"--port {}\"*) exit 3;; esac\nexec {} \"$@\"", machine.port, env!("CARGO_BIN_EXE_runlore"));
    let trap = machine.release("trap", &script);
    let ran = machine.put(&trap, &[], 60);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("the previous release serves again"), "{}", ran.err);
    machine.serves();
    assert_eq!(machine.current(), good.display().to_string());
    assert!(std::net::TcpStream::connect(("127.0.0.1", machine.next)).is_err());
    // The same where there was none before.
    let fresh = Machine::new();
    let script = format!("case \"$*\" in *\"--port {}\"*) exit 3;; esac\nexec {} \"$@\"", fresh.port, env!("CARGO_BIN_EXE_runlore"));
    let trap = fresh.release("trap", &script);
    assert_eq!(fresh.put(&trap, &[], 60).code, 1);
    fresh.nothing_is_left();
}

#[test]
fn a_public_name_that_does_not_answer_is_told_and_changes_nothing() {
    let machine = Machine::new();
    let good = machine.good("good");
    let url = format!("http://127.0.0.1:{}", machine.next);
    let ran = machine.put(&good, &["--public-url", &url], 60);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("the new release serves on"), "{}", ran.err);
    machine.serves();
    for words in [&["--public-url"][..], &["--public-url", "evals.example"], &["--force"], &["second"]] {
        assert_eq!(machine.put(&good, words, 60).code, 2, "{words:?}");
    }
}
