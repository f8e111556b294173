//! `runlore push`: its arguments, its runs, its ends.

use serde_json::json;

use super::house::{House, call, push, runs};
use crate::{
    harness::{Project, command, ran},
    logs::Log,
};

#[test]
fn arguments_that_are_wrong_are_said_so() {
    let project = Project::demo();
    let run = |words: &[&str], key: Option<&str>| {
        let mut command = command();
        command.current_dir(project.path()).env_remove("RUNLORE_KEY").arg("push").args(words);
        key.map(|key| command.env("RUNLORE_KEY", key));
        ran(command.output().unwrap())
    };
    for (words, key, said) in [
        (&["http://127.0.0.1:1"][..], None, "RUNLORE_KEY"),
        (&["http://evals.example"], Some("k"), "--insecure-http"),
        (&["evals.example"], Some("k"), "https://"),
        (&["https://a?x=1"], Some("k"), "https://"),
        (&["http://127.0.0.1:1"], Some("two words"), "visible ASCII"),
        (&["http://127.0.0.1:1", "--key-file", "none"], None, "no such file"),
        (&["http://127.0.0.1:1", "logs", "--run", "latest"], Some("k"), "latest"),
        (&["http://127.0.0.1:1", "--run", "x"], Some("k"), "paths"),
    ] {
        let ran = run(words, key);
        assert!(ran.code == 2 && ran.err.to_lowercase().contains(&said.to_lowercase()), "{words:?}: {}{}", ran.code, ran.err);
    }
    let away = run(&["http://127.0.0.1:1", "--retry-for", "0"], Some("k"));
    assert!(away.code == 1 && away.err.contains("cannot be reached"), "{}", away.err);
}

#[test]
fn paths_are_sent_as_one_run_without_a_project() {
    let (house, project) = (House::new(""), Project::new());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    Log::new("r1", "a", "2026-11-15T09:00:00+00:00").all(2, "C").put(&project);
    Log::new("r2", "b", "2026-11-15T10:00:00+00:00").all(2, "I").put(&project);
    project.write("notes/readme.txt", "no log");
    let file = project.write("key", format!("{key}\n"));
    let elsewhere = tempfile::tempdir().unwrap();
    let send = || {
        let mut command = command();
        command.current_dir(elsewhere.path()).env_remove("RUNLORE_KEY").args(["push", &format!("http://127.0.0.1:{}", service.port)]);
        command.arg(project.logs()).args(["--run", "ci-7", "--into", "main", "--key-file"]).arg(&file);
        ran(command.output().unwrap())
    };
    let first = send();
    assert!(first.code == 0 && first.out.contains("ci-7: 2 sent"), "{}{}", first.out, first.err);
    assert_eq!(runs(&service, &reader), ["ci-7"]);
    assert!(!elsewhere.path().join(".runlore").exists(), "it makes no project");
    let second = send();
    assert!(second.code == 0 && second.out.contains("ci-7: 2 there already"), "{}{}", second.out, second.err);
    // The same logs on their own are other runs than the job's.
    let own = push(&project, &service, &key, &["logs"]);
    assert!(own.code == 0 && own.out.contains("2 sent"), "{}{}", own.out, own.err);
    assert_eq!(runs(&service, &reader), ["r2", "r1"]);
    let named = push(&project, &service, &key, &["notes/readme.txt", "nowhere"]);
    assert!(named.code == 1 && named.err.contains("skipped: notes/readme.txt") && named.err.contains("complaint"), "{}", named.err);
}

#[test]
fn a_server_that_takes_nothing_of_a_key_ends_the_push() {
    let (house, project) = (House::new(""), Project::demo());
    let cases = [
        ("rlk_wrong".to_owned(), "main", "401"),
        (house.key("acme", "member", &["eval:read"]), "main", "runs:write"),
        (house.key("acme", "viewer", &["*"]), "main", "needs role member"),
        (house.sender(), "other", "there is no project \"other\""),
        (house.sender(), "zeta/main", "there is no project \"zeta/main\""),
    ];
    let service = house.serve();
    for (key, into, said) in cases {
        let ran = push(&project, &service, &key, &["--into", into]);
        assert!(ran.code == 1 && ran.err.contains(said), "{said}: {}{}", ran.out, ran.err);
        assert!(!ran.err.contains(&key), "the key is shown");
    }
    house.verb(&["project", "create", "acme/other"]);
    drop(service);
    let (key, service) = (house.sender(), house.serve());
    let ran = push(&project, &service, &key, &[]);
    assert!(ran.code == 1 && ran.err.matches("--into PROJECT").count() == 1, "said once, not for each log: {}", ran.err);
}

#[test]
fn commits_before_the_logs_own_go_with_it() {
    let (house, project) = (House::new(""), Project::new());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(project.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(words);
        let out = git.output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    let shas: Vec<String> = (0..3)
        .map(|number| {
            git(&["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
            git(&["rev-parse", "HEAD"])
        })
        .collect();
    let record = json!({"schemaVersion": 1, "runId": "r", "createdAt": "2026-11-20T00:00:00Z", "git": {"sha": shas[2]},
        "evals": [{"id": "e", "attempts": [{"case": "c", "arm": "a", "outcome": "pass"}]}]});
    project.write(".history/r/run.json", record.to_string());
    let ran = push(&project, &service, &key, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(call(&service, &reader, "show", &json!({"run": "r"}))["git"]["sha"], json!(shas[2]));
    let connection = rusqlite::Connection::open(house.database()).unwrap();
    let mut statement = connection.prepare("SELECT shas FROM ancestors_m").unwrap();
    let kept: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(kept[0].contains(&shas[0]) && kept[0].contains(&shas[1]), "{kept:?}");
}
