//! `runlore mcp` over stdio: both protocol eras, errors, and how it ends.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use super::{
    harness::{Project, command, offered, ticks},
    http::service::wait_for,
};

/// A server, spoken to in raw JSON lines.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    /// Read all along: each call leaves a line there, and a few hundred would fill the pipe and stop the server.
    errors: std::thread::JoinHandle<String>,
    output: BufReader<ChildStdout>,
}

impl Server {
    pub fn start(project: &Project) -> Self {
        Self::start_with(project, &[])
    }

    /// The same with flags.
    pub fn start_with(project: &Project, flags: &[&str]) -> Self {
        let mut child = command()
            .current_dir(project.path())
            .arg("mcp")
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut errors = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut errors, &mut text).unwrap();
            text
        });
        Self { child, input, errors, output }
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.answer()
    }

    pub fn initialize(project: &Project, version: &str) -> (Self, Value) {
        Self::initialize_with(project, version, &[])
    }

    /// The same with flags.
    pub fn initialize_with(project: &Project, version: &str, flags: &[&str]) -> (Self, Value) {
        let mut server = Self::start_with(project, flags);
        let answer = server.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (server, answer)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}))
    }

    /// Closes stdin, or sends a signal; gives the exit code and stderr.
    pub fn end(mut self, signal: Option<nix::sys::signal::Signal>) -> (Option<i32>, String) {
        match signal {
            Some(signal) => nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap(),
            None => drop(self.input.take()),
        }
        let code = self.child.wait().unwrap().code();
        (code, self.errors.join().unwrap())
    }
}

pub fn meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"}})
}

#[test]
fn legacy_clients_initialize_and_get_the_version_they_ask_for() {
    let project = Project::demo();
    for (asked, given) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (server, answer) = Server::initialize(&project, asked);
        assert_eq!(answer["result"]["protocolVersion"], given, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "runlore");
        assert_eq!(answer["result"]["serverInfo"]["title"], "runlore run history");
        assert_eq!(server.end(None).0, Some(0));
    }
}

#[test]
fn modern_clients_discover_and_call_without_a_handshake() {
    let project = Project::demo();
    let mut server = Server::start(&project);
    let discovered = server.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}}));
    let versions: Vec<&str> =
        discovered["result"]["supportedVersions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap()).collect();
    assert_eq!(versions, ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!((&discovered["result"]["ttlMs"], &discovered["result"]["cacheScope"]), (&json!(0), &json!("private")));
    let list = server.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta()}}));
    assert_eq!((&list["result"]["ttlMs"], &list["result"]["cacheScope"]), (&json!(0), &json!("private")));
    let call = server.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "compare", "arguments": {"since": "2026-11-22"}, "_meta": meta()}}));
    assert_eq!(call["result"]["structuredContent"]["rows"][0]["status"], "regressed", "{call}");
    assert_eq!(server.end(None).0, Some(0));
}

#[test]
fn a_modern_client_that_never_discovers_is_answered() {
    let project = Project::demo();
    let mut server = Server::start(&project);
    let call = server.ask(
        &json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "history", "arguments": {}, "_meta": meta()}}),
    );
    assert_eq!((call["id"].as_str(), call["result"]["structuredContent"]["total"].as_u64()), (Some("a"), Some(4)), "{call}");
}

#[test]
fn legacy_lists_carry_no_cache_hints() {
    let project = Project::demo();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    let list = server.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert!(list["result"].get("ttlMs").is_none() && list["result"].get("cacheScope").is_none(), "{list}");
    let names: Vec<&str> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, offered());
    assert!(list["result"].to_string().len() / 4 <= 12_000);
}

#[test]
fn errors_are_results_that_say_what_would_be_right() {
    let project = Project::demo();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    for (tool, arguments, said) in [
        ("history", json!({"limit": 0}), "argument limit: 0 is not a whole number from 1 to 500"),
        ("history", json!({"limt": 3}), "unknown argument `limt`"),
        ("history", json!({"filter": ["a"]}), "argument filter"),
        ("compare", json!({"since": "7d", "base": "latest"}), "instead of head and base"),
        ("show", json!({"run": "nothing"}), "no run matches \"nothing\""),
        ("transcript", json!({}), "missing argument `attempt`"),
        ("transcript", json!({"attempt": "nothing#1"}), "has no attempt \"nothing#1\""),
        ("runs_list", json!({"cursor": "zz"}), "is not a cursor"),
        ("history", json!({"limit": 1e30}), "argument limit"),
    ] {
        let answer = server.call(tool, arguments.clone());
        assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(said), "{tool} {arguments}: {text}");
    }
    let unknown = server.call("nothing", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn aliases_are_answered_and_not_listed() {
    let project = Project::demo();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    for alias in ["runs_list", "runs.list", "runs-list"] {
        assert_eq!(server.call(alias, json!({}))["result"]["structuredContent"]["total"], 6, "{alias}");
    }
}

#[test]
fn the_command_line_and_the_agent_get_the_same_json() {
    let project = Project::demo();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    for (tool, arguments, words) in [
        ("history", json!({"by": "case"}), &["history", "--by", "case"][..]),
        ("failures", json!({"tail": 3}), &["failures", "--tail", "3"]),
        ("show", json!({"run": "latest~1", "attempts": false}), &["show", "latest~1", "--attempts", "false"]),
        ("compare", json!({}), &["compare"]),
        ("runs_list", json!({"limit": 2}), &["runs-list", "--limit", "2"]),
    ] {
        assert_eq!(server.call(tool, arguments)["result"]["structuredContent"], project.json(words), "{tool}");
    }
}

#[test]
fn a_log_written_while_serving_is_in_the_next_answer() {
    let project = Project::demo();
    project.write(".runlore/config.toml", "[index]\nrescan_s = 0\nwait_ms = 60000\n");
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    assert_eq!(server.call("runs_list", json!({}))["result"]["structuredContent"]["total"], 6);
    super::logs::Log::new("fresh", "t", "2026-11-29T09:00:00+00:00").all(1, "C").put(&project);
    let answer = server.call("runs_list", json!({}));
    assert_eq!(answer["result"]["structuredContent"]["runs"][0]["runId"], "fresh");
}

#[test]
fn an_index_that_is_not_whole_is_said_in_the_answer() {
    let project = Project::demo();
    let history = |server: &mut Server| server.call("history", json!({}))["result"]["structuredContent"]["note"].clone();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    assert_eq!(history(&mut server), Value::Null);
    project.write(".runlore/config.toml", "[index]\nrescan_s = 0\nwait_ms = 60000\n");
    project.write("logs/broken.json", "{\"version\": 2, \"status\": \"success\", \"eval\": {\"task\"");
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    let note = history(&mut server);
    assert!(note.as_str().is_some_and(|note| note.contains("broken.json")), "{note}");
    // A second look does not read it again, and still says so.
    assert_eq!(history(&mut server), note);
    std::fs::remove_file(project.logs().join("broken.json")).unwrap();
    assert_eq!(history(&mut server), Value::Null);
    project.write("runlore.toml", "[[evaluation]]\nid = \"a\"\ntreshold = 1\n");
    let note = history(&mut server);
    assert!(note.as_str().is_some_and(|note| note.contains("treshold")), "{note}");
}

#[test]
fn a_call_waits_for_the_index_for_a_bounded_time() {
    let project = Project::demo();
    // Nothing is waited for, so the first answer comes while the logs are read, or after: it says which.
    project.write(".runlore/config.toml", "[index]\nwait_ms = 0\nrescan_s = 0\n");
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    let mut answer = server.call("runs_list", json!({}))["result"]["structuredContent"].clone();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while answer["total"] != 6 && std::time::Instant::now() < deadline {
        assert!(answer["note"].as_str().is_some_and(|note| note.contains("still being indexed")), "{answer}");
        answer = server.call("runs_list", json!({}))["result"]["structuredContent"].clone();
    }
    assert_eq!(answer["total"], 6);
}

#[test]
fn it_ends_with_zero_on_stdin_closed_and_on_signals() {
    use nix::sys::signal::Signal::{SIGINT, SIGTERM};
    let project = Project::demo();
    for signal in [None, Some(SIGINT), Some(SIGTERM)] {
        let (mut server, _) = Server::initialize(&project, "2025-11-25");
        server.call("history", json!({}));
        assert_eq!(server.end(signal).0, Some(0), "{signal:?}");
    }
    let never_spoken_to = Server::start(&project);
    assert_eq!(never_spoken_to.end(None).0, Some(0));
}

#[test]
fn a_client_that_never_reads_stderr_is_served_on() {
    let project = Project::demo();
    let mut command = command();
    // A pipe that nobody reads: it holds 64 KiB, some 400 lines.
    let mut child =
        command.current_dir(project.path()).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}})).unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    for id in 1..=2000 {
        writeln!(
            input,
            "{}",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "history", "arguments": {"limit": 0}}})
        )
        .unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("isError"), "{id}: {line}");
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn each_call_leaves_one_line_without_values() {
    let project = Project::demo();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    server.call("history", json!({"filter": "canary-value"}));
    server.call("history", json!({"limit": 0, "canary-name": 1}));
    let (_, errors) = server.end(None);
    let lines: Vec<Value> = errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<(&str, &str)> = lines.iter().map(|line| (line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap())).collect();
    assert_eq!(said, [("history", "ok"), ("history", "refused")], "{errors}");
    assert_eq!((&lines[0]["args"], &lines[0]["principal"], &lines[0]["event"]), (&json!(["filter"]), &json!("local"), &json!("call")));
    assert!(!errors.contains("canary"), "{errors}");
}

#[test]
fn a_cancelled_call_ends_and_gives_back_what_it_held() {
    let project = Project::demo();
    project.one_reader();
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    server.call("runs_list", json!({}));
    project.never_name_arms();
    let before = ticks(server.child.id());
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "history", "arguments": {}}}));
    wait_for("the call to be at work", || (ticks(server.child.id()) > before + 30).then_some(()));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}));
    // It is answered by the one connection; the cancelled one is not answered at all.
    let answer = server.call("show", json!({"run": "nothing"}));
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)), "{answer}");
    let (code, errors) = server.end(None);
    assert!(code == Some(0) && errors.contains("\"outcome\":\"cancelled\""), "{code:?} {errors}");
}
