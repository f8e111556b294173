//! The container, rehearsed without an engine: compose's own words, user, read-only root and data, a small /tmp and the same memory, by bubblewrap.
//!
//! Promises: nothing is in the sandbox but the program, what it is linked with, its configuration and the data: no shell, no writable place but
//! /tmp; the words are those of `deploy/compose.yml`, with the ports of this machine.
//! Does not: build the image.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    deploy::composed,
    harness::{Project, ran},
    http::{
        service::Service,
        wire::{Answer, Request},
    },
};

/// What compose says: 384 MiB.
const MEMORY: u64 = 384 * 1024 * 1024;

/// A project with goals, warmed as the image's last build step does.
fn warmed() -> Project {
    let project = Project::demo();
    project.write(
        "runlore.toml",
        "[[goal]]\nid = \"beats\"\narm = \"mockllm/support-agent-v3\"\nversus = \"mockllm/support-agent-v3\"\nevaluations = [\"refund_*\"]\n",
    );
    std::fs::remove_file(project.path().join(".runlore/config.toml")).unwrap();
    let ran = project.run(&["warm"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    project
}

/// Every file below `root` with its size and time.
fn listed(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for one in std::fs::read_dir(root).unwrap() {
        let one = one.unwrap();
        let about = one.metadata().unwrap();
        if about.is_dir() {
            all.extend(listed(&one.path()));
        } else if !one.path().ends_with("stderr.log") {
            all.push(format!("{} {} {:?}", one.path().display(), about.len(), about.modified().unwrap()));
        }
    }
    all.sort();
    all
}

/// The sandbox over the data at `data`.
fn sandbox(data: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("prlimit");
    command.args([&format!("--data={MEMORY}"), "bwrap"]);
    command.args(["--unshare-all", "--share-net", "--uid", "65534", "--gid", "65534", "--die-with-parent", "--new-session", "--clearenv"]);
    command.args(["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]);
    for directory in ["/lib", "/lib64", "/usr/lib"].into_iter().filter(|path| Path::new(path).exists()) {
        command.args(["--ro-bind", directory, directory]);
    }
    command.args(["--ro-bind", env!("CARGO_BIN_EXE_runlore"), "/usr/local/bin/runlore"]);
    command.arg("--ro-bind").arg(root.join("config/example.container.toml")).arg("/etc/runlore/config.toml");
    command.arg("--ro-bind").arg(data).arg("/data");
    command.args(["--size", "16777216", "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/data", "--", "/usr/local/bin/runlore"]);
    command
}

fn rehearsed() -> Service {
    let all = composed();
    let words: Vec<String> =
        all["services"]["runlore"]["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let project = warmed();
    let data = project.path().to_owned();
    Service::spawned(project, |command, port, admin| {
        *command = sandbox(&data);
        let placed = |word: &String| match word.split_once('=') {
            Some(("--port", _)) => format!("--port={port}"),
            Some(("--admin-listen", _)) => format!("--admin-listen=0.0.0.0:{admin}"),
            _ => word.clone(),
        };
        command.args(words.iter().map(placed));
    })
}

/// The process inside: the sandbox's last child.
fn inside(process: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().next().map_or(process, |child| inside(child.parse().unwrap()))
}

fn status(process: u32, key: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim_start_matches(':').trim().to_owned()
}

#[test]
fn it_serves_from_a_read_only_disk_within_its_limits() {
    let service = rehearsed();
    let before = listed(service.project.path());
    let host = format!("127.0.0.1:{}", service.port);
    let ask = |request: Request| -> Answer { service.ask(&request.with("host", &host)) };
    let health = ask(Request::get(service.port, "/mcp/health")).json();
    assert_eq!((&health["ok"], &health["public"], &health["readOnly"]), (&json!(true), &json!(true), &json!(true)), "{health}");
    let began = std::time::Instant::now();
    let goals = ask(Request::call(service.port, "goals", &json!({}))).json();
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    assert!(goals["result"]["isError"] != true && goals["result"]["structuredContent"].is_object(), "{goals}");
    for (tool, arguments) in [("overview", json!({})), ("history", json!({})), ("query", json!({"sql": "SELECT count(*) FROM attempts"}))] {
        let answer = ask(Request::call(service.port, tool, &arguments)).json();
        assert!(answer["result"]["isError"] != true && answer["result"].is_object(), "{tool}: {answer}");
    }
    let process = inside(service.id());
    let resident: u64 = status(process, "VmRSS").trim_end_matches(" kB").parse().unwrap();
    assert!(resident < 64 * 1024, "{resident} KiB resident");
    assert_eq!((status(process, "NoNewPrivs"), status(process, "CapEff")), ("1".to_owned(), "0000000000000000".to_owned()));
    // It runs as nobody there; the program that checks its health needs nothing else either.
    let mut check = sandbox(service.project.path());
    let checked = ran(check.args(["health", &format!("http://{host}/mcp/health")]).output().unwrap());
    assert!(checked.code == 0 && checked.out.contains("\"readOnly\":true"), "{}{}", checked.out, checked.err);
    let help = ran(sandbox(service.project.path()).args(["mcp", "--help"]).output().unwrap());
    assert!(help.code == 0 && help.out.contains("--public"), "{}", help.err);
    assert!(listed(service.project.path()) == before, "nothing of the data changed");
    let told: Value = serde_json::from_str(service.log().lines().find(|line| line.contains("listening")).unwrap()).unwrap();
    assert_eq!(told["auth"], "public");
}
