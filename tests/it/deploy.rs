//! The files of `deploy/` and the Dockerfile, as far as a machine without a container engine can hold them to their word.
//!
//! Promises: the tools that will read them read them here: docker-compose, Caddy, systemd-analyze, shellcheck, bash. One that is missing is a
//! failure, not a pass: tests/run installs them.
//! Does not: build an image. How the container runs is rehearsed in `container`, what Caddy does in `caddy`.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::examples::file;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn said(program: &str, words: &[&str], environment: &[(&str, &str)]) -> Output {
    let run = Command::new(program).args(words).envs(environment.iter().copied()).current_dir(root()).output();
    run.unwrap_or_else(|error| panic!("{program} cannot be run ({error}); tests/run installs it"))
}

fn good(program: &str, words: &[&str], environment: &[(&str, &str)]) -> String {
    let out = said(program, words, environment);
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{program} {words:?}: {text}");
    String::from_utf8(out.stdout).unwrap()
}

/// `deploy/compose.yml` as compose understands it.
pub fn composed() -> Value {
    let environment = [("RUNLORE_HOST", "evals.example"), ("RUNLORE_DATA", "/srv/evals")];
    let yaml = good("docker-compose", &["-f", "deploy/compose.yml", "config"], &environment);
    let read = "import sys, yaml, json; print(json.dumps(yaml.safe_load(sys.argv[1])))";
    serde_json::from_str(&good("/usr/bin/python3", &["-c", read, &yaml], &[])).unwrap()
}

#[test]
fn compose_says_what_was_decided() {
    let all = composed();
    let service = &all["services"]["runlore"];
    let said: Vec<&str> = service["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    for word in [
        "mcp",
        "--http",
        "--public",
        "--allowed-host=evals.example",
        "--client-header=X-Real-IP",
        "--trusted-proxy=172.30.98.0/24",
        "--rate=30",
        "--rate-total=120",
        "--request-rate=300",
        "--max-body=65536",
        "--max-connections=64",
        "--concurrent=2",
        "--timeout=60",
    ] {
        assert!(said.contains(&word), "{word} in {said:?}");
    }
    assert_eq!(service["mem_limit"], "384m");
    assert_eq!(service["memswap_limit"], service["mem_limit"], "no swap");
    assert_eq!((&service["user"], &service["read_only"], &service["cap_drop"]), (&json!("65534:65534"), &json!(true), &json!(["ALL"])));
    assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]));
    assert_eq!(service["volumes"].as_array().unwrap().len(), 1);
    let mount = service["volumes"][0].to_string();
    assert!(
        mount.contains("/srv/evals") && mount.contains("/data") && (mount.contains(":ro") || mount.contains("\"read_only\":true")),
        "{mount}"
    );
    let tmp = service["tmpfs"].to_string();
    assert!(tmp.contains("size=16m") && tmp.contains("nr_inodes=4096"), "{tmp}");
    let ports = service["ports"].to_string();
    assert!(
        ports.contains("127.0.0.1:8098:8098") && ports.matches("127.0.0.1:").count() == service["ports"].as_array().unwrap().len(),
        "{ports}"
    );
    assert!(said.iter().all(|word| !word.contains("token")) && !all.to_string().contains("privileged\":true"));
    assert_eq!(all["services"]["collector"]["profiles"], json!(["otlp"]));
    for (name, one) in all["services"].as_object().unwrap() {
        assert_eq!((&one["cap_drop"], &one["read_only"]), (&json!(["ALL"]), &json!(true)), "{name}");
    }
    let missing = said_without();
    assert!(missing.contains("RUNLORE_HOST") || missing.contains("the name that callers use"), "{missing}");
}

/// What compose says where nobody said the host.
fn said_without() -> String {
    let out = said("docker-compose", &["-f", "deploy/compose.yml", "config"], &[("RUNLORE_DATA", "/srv")]);
    assert!(!out.status.success(), "a host must be said");
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn the_words_of_compose_are_words_of_the_binary() {
    let all = composed();
    let words: Vec<&str> = all["services"]["runlore"]["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let out = Command::new(env!("CARGO_BIN_EXE_runlore")).args(&words).arg("--help").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let health: Vec<&str> =
        all["services"]["runlore"]["healthcheck"]["test"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(health, ["CMD", "/usr/local/bin/runlore", "health", "http://127.0.0.1:8098/mcp/health"], "no shell");
}

/// The instructions of the Dockerfile, lines that go on put together.
fn instructions() -> Vec<(String, String)> {
    let text = file("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

#[test]
fn the_image_needs_no_shell_and_is_nobodys() {
    let all = instructions();
    let stages: Vec<usize> = (0..all.len()).filter(|at| all[*at].0 == "FROM").collect();
    assert!(all[stages[0]].1.ends_with(" AS build") && stages.len() == 3, "{all:?}");
    let last = &all[stages[1]..];
    assert!(last[0].1.contains("distroless"), "{last:?}");
    assert!(last.iter().any(|(word, rest)| word == "USER" && rest == "65534:65534"));
    for (word, rest) in last.iter().filter(|(word, _)| matches!(word.as_str(), "RUN" | "CMD" | "ENTRYPOINT")) {
        assert!(rest.starts_with('['), "{word} {rest} would need a shell");
    }
    let health = last.iter().find(|(word, _)| word == "HEALTHCHECK").unwrap();
    assert!(health.1.contains("CMD [\"/usr/local/bin/runlore\", \"health\""), "{health:?}");
    assert_eq!(all.last().unwrap(), &("RUN".to_owned(), r#"["/usr/local/bin/runlore", "warm", "--project", "/data"]"#.to_owned()));
    // What is copied is there, and what the build needs is not left out of its context.
    let ignored = file(".dockerignore");
    for (_, rest) in all.iter().filter(|(word, rest)| word == "COPY" && !rest.contains("--from") && !rest.contains('$')) {
        let words: Vec<&str> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
        for from in &words[..words.len() - 1] {
            assert!(root().join(from).exists(), "{from}");
            let top = from.split('/').next().unwrap();
            assert!(ignored.lines().any(|line| line == format!("!{top}")), "{from} is not in the context");
        }
    }
    assert!(ignored.lines().any(|line| line == "*"));
}

#[test]
fn caddy_takes_both_files() {
    for name in ["deploy/Caddyfile.public", "deploy/Caddyfile.team"] {
        good("caddy", &["validate", "--adapter", "caddyfile", "--config", name], &[("RUNLORE_HOST", "evals.example"), ("HOME", "/tmp")]);
    }
}

#[test]
fn the_unit_is_hardened() {
    let text = good("systemd-analyze", &["security", "--offline=true", "--no-pager", "deploy/runlore.service"], &[("SYSTEMD_COLORS", "0")]);
    let level = text.split("Overall exposure level for runlore.service:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let level: f64 = level.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(level <= 2.0, "{level}: {text}");
}

#[test]
fn the_scripts_are_clean() {
    let scripts = ["deploy/release", "deploy/runner.process", "deploy/runner.docker"];
    for script in scripts {
        good("bash", &["-n", script], &[]);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(root().join(script)).unwrap().permissions().mode() & 0o111, 0o111, "{script} can be run");
    }
    good("shellcheck", &scripts, &[]);
}

#[test]
fn nothing_secret_stands_in_what_is_deployed() {
    for name in [
        "Dockerfile",
        "deploy/compose.yml",
        "deploy/release",
        "deploy/runner.docker",
        "deploy/Caddyfile.public",
        "deploy/Caddyfile.team",
        "deploy/runlore.service",
    ] {
        let text = file(name).to_lowercase();
        for word in ["begin private key", "password=", "secret_key", "bearer ", "rlk_"] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}
