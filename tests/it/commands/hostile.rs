//! Children that do what they can to stay, to flood and to hold: nothing of them is left.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::SIGTERM;
use serde_json::json;

use super::{alive, exit, none_alive, script, service, text};
use crate::{
    harness::Project,
    http::{
        service::{Service, wait_for},
        wire::Request,
    },
    mcp::Server,
};

const OPTIONS: &str = "[[command.option]]\nname = \"limit\"\nflag = \"--limit\"\ntype = \"integer\"\n[[command.option]]\nname = \"filter\"\nflag = \"--filter\"\n";

#[test]
fn floods_are_bounded() {
    let huge =
        "i=0; printf '['; while [ $i -lt 20000 ]; do printf '{\"number\": 123456789012345678901234567890},'; i=$((i+1)); done; echo '0]'";
    let scripts = [
        script("flood", "yes", OPTIONS),
        script("just", "head -c 1048576 /dev/zero | tr '\\0' x", ""),
        script("more", "head -c 1048577 /dev/zero | tr '\\0' x", ""),
        script("complain", "yes 'a complaint' | head -c 12000000 >&2; echo 'the last word' >&2; exit 9", ""),
        script("both", "yes >&2 & yes", OPTIONS),
        script("binary", "head -c 3000 /dev/urandom; printf '\\000\\377\\033[31m'", ""),
        script("huge", huge, "output = \"json\"\noutput_bytes_max = 4000000"),
    ];
    let service = service("", &scripts, &[]);
    let flood = service.call("flood", &json!({}));
    let told = "the answer of flood takes more than 1048576 bytes, the most that is sent. Narrow it with limit, filter";
    assert_eq!((text(&flood), &flood["isError"]), (told, &json!(true)));
    assert_eq!(text(&service.call("just", &json!({}))).len(), 1_048_576);
    assert!(text(&service.call("more", &json!({}))).starts_with("the answer of more takes more than"));
    let complain = service.call("complain", &json!({}));
    assert_eq!(exit(&complain), 9);
    let words = text(&complain);
    assert!(words.ends_with("a complaint\nthe last word\nexit code 9") && words.len() == 65_536 + "exit code 9".len(), "{}", words.len());
    assert!(text(&service.call("both", &json!({}))).contains("takes more than"));
    assert_eq!(service.call("binary", &json!({}))["isError"], false);
    let huge = service.call("huge", &json!({}));
    assert_eq!(huge["structuredContent"]["result"].as_array().map(Vec::len), Some(20_001));
    none_alive(&service.project);
}

#[test]
fn over_stdio_an_answer_stays_on_its_line() {
    let project = super::project("", &[script("lines", "printf '{\\n\"a\": \\n[1,\\n2]}\\n'", "output = \"json\"")]);
    let (mut server, _) = Server::initialize_with(&project, "2025-11-25", &["--toolsets", "commands"]);
    for _ in 0..3 {
        assert_eq!(server.call("lines", json!({}))["result"]["structuredContent"], json!({"a": [1, 2]}));
    }
    assert_eq!(server.end(None).0, Some(0));
}

/// What holds the pipe in a session of its own is not in the group; it holds up nothing.
#[test]
fn who_holds_the_pipe_holds_up_nothing() {
    let scripts = [
        script("holds", "sleep 600 & sleep 600 >&2 & echo done", ""),
        script("escapes", "setsid sleep 600 & echo done", ""),
        script("forks", "for i in 1 2 3 4 5 6 7 8; do (trap '' TERM; sleep 600; sleep 600) & done; echo done", ""),
    ];
    let service = service("", &scripts, &[]);
    for tool in ["holds", "escapes", "forks"] {
        let began = Instant::now();
        assert_eq!(text(&service.call(tool, &json!({}))), "done\n", "{tool}");
        assert!(began.elapsed() < Duration::from_secs(10), "{tool}: {:?}", began.elapsed());
    }
    none_alive(&service.project);
}

/// Descriptors, children and zombies of the server.
fn held(service: &Service) -> (usize, usize) {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", service.id())).unwrap().count();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", service.id())).unwrap().filter_map(Result::ok);
    let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    (descriptors, children.map(|line| line.split_whitespace().count()).sum())
}

#[test]
fn nothing_is_left_after_a_thousand_calls() {
    let scripts = [
        script("works", "echo '{}'", "output = \"json\""),
        script("fails", "echo no >&2; exit 7", ""),
        script("holds", "sleep 600 & echo done", ""),
        script("floods", "head -c 300000 /dev/zero >&2; head -c 1100000 /dev/zero", ""),
        script("ignores", "trap '' TERM; sleep 600 & echo done; exit 0", ""),
        script("dies", "sleep 600 & kill -11 $$", ""),
        script("escapes", "setsid sleep 600 >/dev/null 2>&1 & echo done", ""),
    ];
    let service = service("", &scripts, &[]);
    let tools = ["works", "fails", "holds", "floods", "ignores", "dies", "escapes"];
    let mut connection = service.connect();
    let mut calls = |count: usize| {
        for number in 0..count {
            let answer = connection.ask(&Request::call(service.port, tools[number % tools.len()], &json!({})));
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    };
    // As many as the allocator takes to have its pages: after these, 7,000 more were seen to take no more than it gave back.
    calls(700);
    none_alive(&service.project);
    let (before, memory) = (held(&service), service.resident_kib());
    calls(1000);
    none_alive(&service.project);
    wait_for("descriptors and children as before", || (held(&service) == before).then_some(()));
    let grown = service.resident_kib().saturating_sub(memory);
    // One flood kept of each round would be 140 MiB.
    assert!(grown < 16 * 1024, "{grown} KiB more after a thousand calls");
    assert_eq!(before.1, 0, "it has no children of its own");
}

#[test]
fn the_end_of_the_server_is_theirs() {
    let slow = script("slow", "trap '' TERM; echo begun > begun; sleep 600; sleep 600", "");
    let mut http = service("[http]\ndrain_s = 1", std::slice::from_ref(&slow), &[]);
    let mut call = http.connect();
    call.send(Request::call(http.port, "slow", &json!({})).bytes());
    wait_for("it to begin", || http.project.path().join("begun").exists().then_some(()));
    assert!(!alive(&http.project).is_empty());
    http.signal(SIGTERM);
    assert_eq!(http.ended(), Some(0), "{}", http.log());
    none_alive(&http.project);
    for signal in [None, Some(SIGTERM)] {
        let project: Project = super::project("", std::slice::from_ref(&slow));
        let (mut server, _) = Server::initialize_with(&project, "2025-11-25", &["--toolsets", "commands"]);
        server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {}}}));
        wait_for("it to begin", || project.path().join("begun").exists().then_some(()));
        assert_eq!(server.end(signal).0, Some(0));
        none_alive(&project);
    }
}
