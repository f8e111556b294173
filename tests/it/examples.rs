//! The example configurations: each is without fault, and a server starts with it and does what its first lines say.
//!
//! Promises: the files as they stand; only ports and directories of this machine are put in their place.
//! Does not: test what a key does; that has tests of its own.

use std::path::Path;

use serde_json::json;

use crate::{
    harness::{Project, command, ran},
    http::{
        service::Service,
        town::said,
        wire::{Connection, Request},
    },
};

/// A file of the repository.
pub fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The example with the ports of a test.
fn placed(text: &str, port: u16, admin: u16) -> String {
    let port_of = |line: &str| line.split_once('=').filter(|(key, _)| key.trim() == "port").map(|_| format!("port = {port}"));
    let listen =
        |line: &str| line.split_once('=').filter(|(key, _)| key.trim() == "listen").map(|_| format!("listen = \"127.0.0.1:{admin}\""));
    text.lines().map(|line| port_of(line).or_else(|| listen(line)).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn checked(path: &Path) {
    let ran = ran(command().arg("check-config").arg(path).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn public_serves_anybody_who_calls_it_by_its_name() {
    let text = file("config/example.public.toml");
    let service = Service::spawned(Project::demo(), |command, port, admin| {
        let file = std::env::temp_dir().join(format!("runlore-public-{port}.toml"));
        std::fs::write(&file, placed(&text, port, admin)).unwrap();
        checked(&file);
        command.args(["mcp", "--http", "--config"]).arg(&file).args(["--admin-listen", &format!("127.0.0.1:{admin}")]);
    });
    let health = service.ask(&Request::get(service.port, "/mcp/health").with("host", "evals.example")).json();
    assert_eq!((&health["ok"], &health["public"]), (&json!(true), &json!(true)));
    assert_eq!(service.ask(&Request::get(service.port, "/mcp/health").with("host", "other.example")).status, 421);
    let call = |caller: &str| service.ask(&Request::call(service.port, "history", &json!({})).with("x-real-ip", caller)).json();
    let rate =
        |caller: &str| call(caller)["result"]["content"][0]["text"].as_str().unwrap().contains("at most 30 a minute from one caller");
    assert!((0..30).all(|_| !rate("192.0.2.1")) && rate("192.0.2.1"), "the 31st of one caller within a minute");
    assert!(!rate("192.0.2.2"), "another caller has a rate of its own");
    let ended = service.ask(&Request::call(service.port, "transcript", &json!({"run": "latest"})).with("x-real-ip", "192.0.2.2"));
    assert!(ended.text().contains("traces:read"), "texts are hidden: {ended:?}");
}

#[test]
fn local_serves_this_machine_without_rates() {
    let text = file("config/example.local.toml");
    let project = Project::demo();
    project.write(".runlore/config.toml", &text);
    checked(&project.path().join(".runlore/config.toml"));
    assert_eq!(project.json(&["runs-list"])["total"], 6);
    let service = Service::spawned(project, |command, port, admin| {
        command.args(["mcp", "--http", "--port", &port.to_string(), "--admin-listen", &format!("127.0.0.1:{admin}")]);
    });
    let mut connection = service.connect();
    for _ in 0..200 {
        let answer = connection.ask(&Request::call(service.port, "runs_list", &json!({})));
        assert_eq!(answer.json()["result"]["structuredContent"]["total"], 6, "{answer:?}");
    }
}

#[test]
fn a_team_serves_its_keys() {
    let text = file("config/example.team.toml");
    let home = Project::new();
    let (data, key) = (home.path().join("data"), home.path().join("key.pem"));
    let (data, key) = (data.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned());
    said(&["org", "create", "acme", "--data-dir", &data]);
    said(&["project", "create", "acme/main", "--data-dir", &data]);
    said(&["token", "keygen", "--out", &key]);
    let secret = said(&["key", "create", "acme", "--name", "agents", "--scope", "eval:read", "--data-dir", &data]);
    let service = Service::spawned(home, |command, port, admin| {
        let file = std::env::temp_dir().join(format!("runlore-team-{port}.toml"));
        let text = text.replace("/var/lib/runlore", &data).replace("/etc/runlore/key.pem", &key);
        let text = text.replace("[http]\n", &format!("[http]\nport = {port}\n")) + &format!("\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n");
        std::fs::write(&file, text).unwrap();
        checked(&file);
        command.args(["serve", "--config"]).arg(&file);
    });
    let call = |key: &str| {
        Connection::open(service.port).ask(&Request::call(service.port, "runs_list", &json!({})).bearer(key).with("host", "runs.example"))
    };
    assert_eq!(call(&secret).json()["result"]["structuredContent"]["total"], 0);
    let stranger = call("rlk_nobody");
    assert_eq!(stranger.status, 401);
    assert!(
        stranger.header("www-authenticate").unwrap().contains("https://runs.example/.well-known/oauth-protected-resource"),
        "{stranger:?}"
    );
}

#[test]
fn what_is_wrong_is_told_at_once_with_its_lines() {
    let project = Project::new();
    let path = project.write("bad.toml", "[http]\nhost = \"0.0.0.0\"\nport = 70000\n[limits]\nrows = 1\n");
    let ran = project.run(&["check-config", path.to_str().unwrap()]);
    let shown = path.display();
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with(&format!("{shown}:2: http.host 0.0.0.0 answers on every address")), "{}", ran.out);
    assert!(lines[1].starts_with(&format!("{shown}:3: http.port is 70000; it must be from 1 to 65535")), "{}", ran.out);
    assert!(lines[2].starts_with(&format!("{shown}:5: limits.rows is no key")), "{}", ran.out);
    assert_eq!((lines.len(), project.run(&["check-config", "no-such-file"]).code), (3, 2));
}
