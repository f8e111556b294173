//! The README's steps, run as they stand there: the three ways to run it.
//!
//! Promises: a block behind `<!-- try: NAME -->` is given to a shell word by word; only ports are put in place, so that tests can run side by side.
//! Does not: try what needs Docker or a name on the internet; `deploy`, `container` and `caddy` do what can be done of that.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    examples::file,
    harness::{Project, Ran, ran},
    http::{
        service::free_port,
        wire::{Connection, Request},
    },
};

/// The block behind the mark.
fn block(name: &str) -> String {
    let text = file("README.md");
    let (_, rest) =
        text.split_once(&format!("<!-- try: {name} -->\n```sh\n")).unwrap_or_else(|| panic!("README has no steps called {name}"));
    rest.split_once("\n```").unwrap().0.to_owned()
}

/// Runs the steps in `home`, then `after`; what is still running ends with the shell.
fn tried(home: &Path, steps: &str, after: &str) -> Ran {
    let binary = Path::new(env!("CARGO_BIN_EXE_runlore")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    // Each step must succeed; the server that a step leaves running is ended like any other.
    let script = format!("set -eu\ntrap 'running=$(jobs -p); [ -z \"$running\" ] || kill $running; wait' EXIT\n{steps}\n{after}\n");
    let mut command = Command::new("timeout");
    command.args(["120", "bash", "-c", &script]).current_dir(home).env("PATH", path).env("HOME", home).stdin(Stdio::null());
    ran(command.env_remove("RUNLORE_MCP_TOKEN").env_remove("RUNLORE_LOG").output().unwrap())
}

fn good(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
}

/// The steps with other ports.
fn placed(steps: &str, ports: &[(u16, u16)]) -> String {
    ports.iter().fold(steps.to_owned(), |text, (from, to)| text.replace(&from.to_string(), &to.to_string()))
}

#[test]
fn one_developer() {
    let project = Project::demo();
    std::fs::remove_dir_all(project.path().join(".runlore")).unwrap();
    let ran = tried(project.path(), &block("local"), "");
    good(&ran);
    assert!(ran.out.contains("refund_policy") && ran.out.contains("--http"), "{}", ran.out);
}

#[test]
fn a_public_endpoint() {
    let home = tempfile::tempdir().unwrap();
    let project = Project::demo();
    std::os::unix::fs::symlink(project.path(), home.path().join("evals")).unwrap();
    let (port, admin) = (free_port(), free_port());
    std::fs::create_dir(home.path().join("config")).unwrap();
    let example = placed(&file("config/example.public.toml"), &[(8098, port), (4987, admin)]);
    std::fs::write(home.path().join("config/example.public.toml"), example).unwrap();
    let ran = tried(
        home.path(),
        &placed(&block("public"), &[(8098, port), (4987, admin)]),
        &format!("runlore health http://127.0.0.1:{admin}/readyz"),
    );
    good(&ran);
    assert!(ran.out.contains("nothing is wrong") && ran.out.contains("\"public\":true"), "{}", ran.out);
}

#[test]
fn a_team() {
    let home = tempfile::tempdir().unwrap();
    let project = Project::demo();
    std::os::unix::fs::symlink(project.path(), home.path().join("evals")).unwrap();
    let (port, admin) = (free_port(), free_port());
    let steps = placed(&block("team"), &[(4986, port), (4987, admin)]);
    let ports = format!("[http]\\nport = {port}\\n[admin]\\nlisten = \"127.0.0.1:{admin}\"\\n");
    let steps = steps.replace("data_dir = \"data\"\\n", &format!("data_dir = \"data\"\\n{ports}"));
    let waits = "touch ready; while [ ! -e asked ]; do sleep 0.1; done";
    let place = home.path().to_owned();
    let asking = std::thread::spawn(move || {
        crate::http::service::wait_for("the steps", || place.join("ready").exists().then_some(()));
        let key = std::fs::read_to_string(place.join("agents.key")).unwrap();
        let answer = Connection::open(port).ask(&Request::call(port, "runs_list", &json!({})).bearer(key.trim()).to("/mcp/acme/main"));
        std::fs::write(place.join("asked"), "").unwrap();
        answer.json()["result"]["structuredContent"]["total"].clone()
    });
    good(&tried(home.path(), &steps, waits));
    assert_eq!(asking.join().unwrap(), 6);
}

#[test]
fn every_file_that_is_named_is_there() {
    for name in ["README.md", "docs/operations.md", "docs/security.md", "docs/architecture.md"] {
        let text = file(name);
        let links = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split_once(')')).map(|(link, _)| link);
        for link in links.filter(|link| !link.starts_with("http") && !link.starts_with('#')) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name).parent().unwrap().join(link.split('#').next().unwrap());
            assert!(path.exists(), "{name} names {link}");
        }
        for path in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| ["deploy/", "infra/", "config/", "src/", "tests/"].iter().any(|top| word.starts_with(top)))
        {
            let path = path.split_whitespace().next().unwrap().trim_end_matches(['.', ',']);
            let whole = !path.contains(['<', '*', '$', '=']);
            assert!(!whole || Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(), "{name} names {path}");
        }
    }
}
