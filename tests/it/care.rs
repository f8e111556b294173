//! What an operator does over the years: backup and restore while it serves, retention, upgrades; and what happens to a disk and a clock.
//!
//! Promises: old stores are files that older programs wrote (`tests/fixtures/stores`); a full disk is a real one, of two megabytes.
//! Does not: look into a store but for one thing: that a backup is one state.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use serde_json::{Value, json};

use crate::{
    harness::{Project, command, fixtures, ran},
    http::{
        service::{Service, wait_for},
        town::{Town, said},
        wire::Request,
    },
    logs::Log,
};

fn words(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What a person is shown of a project, from everywhere in it.
fn shown(project: &Project) -> Vec<Value> {
    let asked: [&[&str]; 7] = [
        &["runs-list"],
        &["history", "--by", "case"],
        &["failures"],
        &["compare", "--all"],
        &["query", "SELECT run_id, evaluation, arm, attempt, outcome FROM attempts ORDER BY 1, 2, 3, 4"],
        &["query", "SELECT run_id, evaluation, arm, passed, failed, rate FROM cells ORDER BY 1, 2, 3"],
        &["search", "refund"],
    ];
    let answer = |words: &&[&str]| {
        let mut answer = project.json(words);
        if let Some(answer) = answer.as_object_mut() {
            // How causes are told apart is worked out when a log is read.
            answer.remove("causes");
        }
        // Of what a search finds its numbers: equals come in the order in which they were kept.
        if answer["result"].is_object() { answer["result"]["blocks"][0].take() } else { answer }
    };
    asked.iter().map(answer).collect()
}

#[test]
fn a_store_of_an_older_program_is_brought_up_to_date_and_says_the_same() {
    let fresh = Project::demo();
    let now = shown(&fresh);
    // Written in November 2026 by a program that knew two of the steps that there are now.
    let packed = std::fs::read(fixtures().join("stores/level-02.db.zst")).unwrap();
    let old = Project::demo();
    old.write(".runlore/history.db", zstd::decode_all(packed.as_slice()).unwrap());
    for (number, (then, now)) in shown(&old).iter().zip(&now).enumerate() {
        assert!(then == now, "answer {number} is another");
    }
    // And once more, as it is from now on.
    assert_eq!(old.json(&["runs-list"])["total"], 6);
}

#[test]
fn a_backup_is_one_state_while_others_write_and_is_restored_whole() {
    let service = Service::with(Project::demo(), "idle_s = 5", &[]);
    let project = &service.project;
    assert_eq!(service.call("runs_list", &json!({}))["structuredContent"]["total"], 6);
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let home = tempfile::tempdir().unwrap();
    let backups: Vec<PathBuf> = (0..4).map(|number| home.path().join(format!("backup-{number}.db"))).collect();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Relaxed) && written.load(Relaxed) < 60 {
                let number = written.load(Relaxed);
                Log::new(&format!("n{number}"), "t", "2026-11-29T09:00:00+00:00").all(3, "C").put(project);
                service.call("runs_list", &json!({"limit": 1}));
                written.fetch_add(1, Relaxed);
            }
        });
        for path in &backups {
            let before = written.load(Relaxed);
            wait_for("more runs", || (written.load(Relaxed) > before || written.load(Relaxed) >= 60).then_some(()));
            let ran = project.run(&["backup", words(path)]);
            assert!(ran.code == 0 && ran.out.contains(" bytes"), "{}{}", ran.out, ran.err);
        }
        stop.store(true, Relaxed);
    });
    let mut last = 0;
    for path in &backups {
        let store = rusqlite::Connection::open(path).unwrap();
        let (logs, attempts, told): (i64, i64, i64) = store
            .query_row(
                "SELECT (SELECT count(*) FROM logs_m), (SELECT count(*) FROM attempts_m), (SELECT sum(passed + failed + infra + unscored + missing) FROM cells_m)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .unwrap();
        assert!(logs >= last && attempts == 168 + 3 * (logs - 24) && told == attempts, "{logs} {attempts} {told}");
        last = logs;
    }
    // Brought back beside the same logs, it says what the server says.
    let copy = Project::new();
    for file in std::fs::read_dir(project.logs()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.logs().join(file.file_name())).unwrap();
    }
    let ran = copy.run(&["restore", words(&backups[3])]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (here, there) = (copy.json(&["history", "--limit", "50"]), service.call("history", &json!({"limit": 50})));
    assert!(here == there["structuredContent"], "what came back says something else");
    let again = project.run(&["backup", words(&backups[0])]);
    assert!(again.code == 1 && again.err.contains("there already"), "{}", again.err);
    let over = project.run(&["restore", words(&backups[0])]);
    assert!(over.code == 1 && over.err.contains("there already"), "{}", over.err);
    service.serves();
}

#[test]
fn a_server_of_organizations_is_backed_up_and_comes_back_with_its_keys() {
    let town = Town::start("");
    let key = town.key("acme", "viewer", &["eval:read"]);
    let before = town.ask(&key, "/mcp/acme/main", "runs_list", &json!({})).json()["result"]["structuredContent"].clone();
    let home = tempfile::tempdir().unwrap();
    let (backup, data) = (home.path().join("backup"), home.path().join("data"));
    let told = town.said(&["backup", words(&backup)]);
    assert!(told.contains("2 of 4 projects"), "{told}");
    let refused = ran(command().args(["backup", words(&backup), "--data-dir", words(town.control().parent().unwrap())]).output().unwrap());
    assert!(refused.code == 1 && refused.err.contains("must be empty"), "{}", refused.err);
    assert!(said(&["restore", words(&backup), "--data-dir", words(&data)]).contains("2 of 4 projects are restored"));
    let service = Service::spawned(Project::new(), |command, port, admin| {
        let file = std::env::temp_dir().join(format!("runlore-restored-{port}.toml"));
        let text = format!("[tenants]\ndata_dir = {data:?}\n[http]\nport = {port}\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n");
        std::fs::write(&file, text).unwrap();
        command.args(["serve", "--config"]).arg(&file);
    });
    let after = service.ask(&Request::call(service.port, "runs_list", &json!({})).bearer(&key).to("/mcp/acme/main"));
    assert_eq!(after.json()["result"]["structuredContent"], before);
    let over = ran(command().args(["restore", words(&backup), "--data-dir", words(&data)]).output().unwrap());
    assert!(over.code == 1 && over.err.contains("must be empty"), "{}", over.err);
}

#[test]
fn old_runs_go_and_baselines_stay() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    let demo = Project::demo();
    for file in std::fs::read_dir(demo.logs()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), outside.path().join(file.file_name())).unwrap();
    }
    assert_eq!(project.run(&["import", words(outside.path())]).code, 0);
    let ids = || -> Vec<String> {
        let listed = project.json(&["runs-list"]);
        listed["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids();
    assert_eq!(all.len(), 6);
    let oldest = all[5].clone();
    assert_eq!(project.run(&["baseline", "accept", &oldest]).code, 0);
    let dry = project.run(&["prune", "--keep", "2", "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("4 runs would go") && ids() == all, "{}{}", dry.out, dry.err);
    let young = project.run(&["prune", "--keep", "2", "--older-than", "2026-11-01"]);
    assert!(young.out.contains("0 runs went") && ids() == all, "{}", young.out);
    let pruned = project.run(&["prune", "--keep", "2"]);
    assert_eq!(pruned.code, 0, "{}", pruned.err);
    assert!(pruned.out.contains("3 runs went") && pruned.out.contains("is a baseline"), "{}", pruned.out);
    assert_eq!(ids(), [all[0].clone(), all[1].clone(), oldest]);
    assert!(project.run(&["audit"]).out.contains("prune"), "{}", project.run(&["audit"]).out);
    // What stands in the project's own logs/ would be back at the next look.
    let own = demo.run(&["prune", "--keep", "1"]);
    assert!(own.code == 0 && own.out.contains("0 runs went") && own.out.contains("delete the file"), "{}{}", own.out, own.err);
    assert_eq!(demo.json(&["runs-list"])["total"], 6);
}

/// A server whose project lies on a disk of its own, of so many bytes; and the project as this test can reach it.
fn on_a_small_disk(bytes: u64) -> (Service, PathBuf) {
    let mut place = PathBuf::new();
    let service = Service::spawned(Project::new(), |command, port, admin| {
        let disk = std::env::temp_dir().join(format!("runlore-disk-{port}"));
        std::fs::create_dir_all(&disk).unwrap();
        let binary = env!("CARGO_BIN_EXE_runlore");
        let logs = Project::demo();
        let script = format!(
            "mount -t tmpfs -o size={bytes} tmpfs {disk} && mkdir {disk}/.runlore {disk}/logs && cp {logs}/*refund* {disk}/logs && printf '[index]\\nrescan_s = 0\\nwait_ms = 60000\\n' > {disk}/.runlore/config.toml && exec {binary} mcp --http --project {disk} --port {port} --admin-listen 127.0.0.1:{admin}",
            disk = disk.display(),
            logs = logs.logs().display(),
        );
        *command = std::process::Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", &script]);
        // Read before the command ends its setup.
        std::mem::forget(logs);
    });
    place.push(format!("/proc/{}/root{}/runlore-disk-{}", service.id(), std::env::temp_dir().display(), service.port));
    (service, place)
}

#[test]
fn a_full_disk_stops_writing_and_nothing_else() {
    let (service, disk) = on_a_small_disk(8 * 1024 * 1024);
    let total = || service.call("runs_list", &json!({}))["structuredContent"]["total"].clone();
    assert_eq!(total(), 6);
    let filling = disk.join("filling");
    let full = std::fs::write(&filling, vec![0; 16 * 1024 * 1024]);
    assert!(full.is_err(), "the disk is full now");
    // A log comes by a link: its bytes are elsewhere, but there is no room for what is kept of it.
    let elsewhere = Project::demo();
    let log =
        std::fs::read_dir(elsewhere.logs()).unwrap().map(|one| one.unwrap().path()).find(|path| words(path).contains("tool-use")).unwrap();
    std::os::unix::fs::symlink(&log, disk.join("logs/new.eval")).ok();
    for _ in 0..3 {
        assert_eq!(total(), 6, "what was known is answered");
        assert_ne!(service.call("history", &json!({}))["isError"], true);
    }
    assert_eq!(service.admin("/readyz").status, 200);
    service.serves();
    std::fs::remove_file(&filling).unwrap();
    std::fs::remove_file(disk.join("logs/new.eval")).ok();
    std::fs::copy(&log, disk.join("logs/again.eval")).unwrap();
    wait_for("the new log", || service.call("history", &json!({})).to_string().contains("tool_use").then_some(()));
}

#[test]
fn a_clock_that_jumps_changes_no_rate_and_no_answer() {
    let project = Project::demo();
    let clock = project.write("clock", "+0");
    let service = Service::spawned(project, |command, port, admin| {
        command.args(["mcp", "--http", "--rate", "4", "--port", &port.to_string(), "--admin-listen", &format!("127.0.0.1:{admin}")]);
        command
            .env("LD_PRELOAD", faketime())
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    });
    let call = || service.call("runs_list", &json!({}));
    let first = call();
    let began = |service: &Service| service.log().lines().rev().find(|line| line.contains("\"event\":\"call\"")).map(str::to_owned);
    wait_for("its line", || began(&service));
    for jump in ["-2d", "+400d"] {
        std::fs::write(&clock, jump).unwrap();
        assert_eq!(call(), first, "{jump}");
    }
    let year = |line: &str| serde_json::from_str::<Value>(line).unwrap()["ts"].as_str().unwrap()[..4].to_owned();
    wait_for("a line of another year", || began(&service).filter(|line| year(line) != "2026"));
    call();
    let refused = call();
    assert!(
        refused["content"][0]["text"].as_str().unwrap().contains("at most 4 a minute"),
        "a year on the wall is no minute here: {refused}"
    );
    assert_eq!(service.admin("/readyz").status, 200);
}

fn faketime() -> String {
    let found = ["x86_64", "aarch64"].map(|machine| format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"));
    found.into_iter().find(|path| Path::new(path).exists()).expect("libfaketime; tests/run installs it")
}
