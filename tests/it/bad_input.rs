//! Bad files and bad moments: each a sentence that says which file and why, nothing half-imported, no panic.

use std::{io::Write as _, os::unix::fs::PermissionsExt as _, process::Stdio};

use super::{
    harness::{Project, Ran, command, ran, shared},
    logs::Log,
};

fn good() -> Log {
    Log::new("good", "t", "2026-11-01T09:00:00+00:00").all(3, "C")
}

/// Imports a folder with one good log and `name` with `content`: the good one must be there, the bad one complained about or skipped.
fn beside_a_good_one(name: &str, content: &[u8]) -> Ran {
    let project = Project::new();
    project.write("in/good.json", good().text());
    project.write(&format!("in/{name}"), content);
    let ran = project.run(&["import", "in"]);
    assert_eq!(project.json(&["runs-list"])["total"], 1, "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    assert!(!ran.err.contains(project.path().to_str().unwrap()), "a machine path in: {}", ran.err);
    ran
}

#[test]
fn broken_logs_are_complaints_and_the_rest_is_imported() {
    let eval = std::fs::read(shared().join("formats/generated/inspect/basic_epochs.eval")).unwrap();
    let deep = format!(
        "{{\"version\":2,\"status\":\"success\",\"eval\":{{\"task\":\"t\",\"run_id\":\"r\",\"metadata\":{}{}}}}}",
        "[".repeat(130),
        "]".repeat(130)
    );
    let truncated = good().text();
    for (name, content) in [
        ("truncated.eval", &eval[..eval.len() / 2]),
        ("empty.eval", b""),
        ("deep.json", deep.as_bytes()),
        ("cut.json", &truncated.as_bytes()[..truncated.len() - 40]),
        ("binary.eval", b"\x00\xff\xfe not a zip"),
        ("latin1.json", b"{\"version\":2,\"status\":\"success\",\"eval\":{\"task\":\"na\xefve\"}}"),
    ] {
        let ran = beside_a_good_one(name, content);
        assert_eq!(ran.code, 1, "{name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(name), "{name}: {}", ran.err);
    }
}

#[test]
fn what_is_no_log_is_skipped_with_its_reason() {
    for (name, content) in
        [("notes.txt", &b"hello"[..]), ("logs.json", b"{\"a.eval\": {}}"), ("eval-set.json", b"{\"eval_set_id\": \"x\", \"tasks\": []}")]
    {
        let ran = beside_a_good_one(name, content);
        assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_zip_bomb_is_refused_by_counted_bytes() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut zip = zip::ZipWriter::new(&mut bytes);
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    zip.start_file("header.json", options).unwrap();
    let zeros = vec![b' '; 1 << 20];
    for _ in 0..800 {
        zip.write_all(&zeros).unwrap();
    }
    zip.finish().unwrap();
    let ran = beside_a_good_one("bomb.eval", bytes.get_ref());
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
}

#[test]
fn sixty_five_thousand_entries_are_refused() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut zip = zip::ZipWriter::new(&mut bytes);
    for n in 0..65_000 {
        zip.start_file(
            format!("samples/{n}_epoch_1.json"),
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored),
        )
        .unwrap();
    }
    zip.finish().unwrap();
    let ran = beside_a_good_one("many.eval", bytes.get_ref());
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("entries"), "{}", ran.err);
}

#[test]
fn what_was_broken_before_is_still_a_complaint() {
    let project = Project::new();
    project.write("logs/good.json", good().text());
    project.write("logs/cut.json", &good().text().replace("good", "other").as_bytes()[..200]);
    assert_eq!(project.json(&["runs-list"])["total"], 1);
    let again = project.run(&["import"]);
    assert_eq!(again.code, 1, "{}{}", again.out, again.err);
    assert!(again.err.contains("cut.json"), "{}", again.err);
}

#[test]
fn a_typo_in_the_declarations_is_never_silent() {
    let project = Project::demo();
    project.write("runlore.toml", "[[evaluation]]\nid = \"a\"\ntreshold = 1\n");
    let ran = project.run(&["history"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(ran.err.contains("treshold"), "{}", ran.err);
}

#[test]
fn the_same_file_twice_changes_nothing() {
    let project = Project::new();
    let path = project.write("in/good.json", good().text());
    let first = project.run(&["import", path.to_str().unwrap()]);
    let before = project.json(&["show"]).to_string();
    let second = project.run(&["import", path.to_str().unwrap()]);
    assert_eq!((first.code, second.code), (0, 0));
    assert_eq!(project.json(&["show"]).to_string(), before);
    assert!(first.out.contains("3 attempts") || first.out.contains("3 passed"), "{}", first.out);
}

#[test]
fn a_store_from_a_newer_version_is_refused_in_words() {
    let project = Project::demo();
    project.json(&["runs-list"]);
    let store = rusqlite::Connection::open(project.path().join(".runlore/history.db")).unwrap();
    store.pragma_update(None, "user_version", 9999).unwrap();
    drop(store);
    let ran = project.run(&["runs-list"]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("newer runlore"), "{}", ran.err);
}

#[test]
fn a_damaged_store_is_refused_in_words() {
    let project = Project::demo();
    project.write(".runlore/history.db", "this is no database, and long enough to have a header of its own ".repeat(40));
    let ran = project.run(&["runs-list"]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("damaged or no runlore store"), "{}", ran.err);
}

#[test]
fn a_read_only_project_still_answers() {
    let project = Project::demo();
    let before = project.json(&["runs-list"])["total"].clone();
    // Root ignores permission bits; the immutable store is then simply writable, and the answer is the same.
    for name in [".runlore/history.db", ".runlore"] {
        let path = project.path().join(name);
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(project.json(&["runs-list"])["total"], before);
    std::fs::set_permissions(project.path().join(".runlore"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_store_locked_by_another_process_still_answers() {
    let project = Project::demo();
    let before = project.json(&["runs-list"])["total"].clone();
    let other = rusqlite::Connection::open(project.path().join(".runlore/history.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    good().put(&project);
    project.write(".runlore/config.toml", "[store]\nbusy_timeout_ms = 50\n[index]\nwait_ms = 50\n");
    assert_eq!(project.json(&["runs-list"])["total"], before);
    let import = project.run(&["import", "logs"]);
    assert_eq!(import.code, 1);
    assert!(import.err.contains("busy"), "{}", import.err);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(project.json(&["runs-list"])["total"], before.as_u64().unwrap() + 1);
}

#[test]
fn killed_at_any_point_nothing_is_half_imported() {
    let project = Project::new();
    let big = shared().join("formats/generated/inspect/big.eval");
    let whole = {
        let other = Project::new();
        std::fs::copy(&big, other.logs().join("big.eval")).unwrap();
        other.json(&["runs-list"])["runs"][0]["counts"].clone()
    };
    std::fs::copy(&big, project.logs().join("big.eval")).unwrap();
    for microseconds in (0..40).map(|step| step * 5_000) {
        let mut child =
            command().current_dir(project.path()).args(["import", "logs"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_micros(microseconds);
        while std::time::Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let store = project.path().join(".runlore/history.db");
        if let Ok(store) = rusqlite::Connection::open_with_flags(&store, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY) {
            let counts: Result<(i64, i64), _> =
                store.query_row("SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM runs)", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                });
            assert!(matches!(counts, Err(_) | Ok((0, 0) | (100, 1))), "{counts:?}");
        }
    }
    assert_eq!(project.json(&["runs-list"])["runs"][0]["counts"], whole);
}

#[test]
fn two_at_once_both_work() {
    let project = Project::demo();
    let start = || {
        command().current_dir(project.path()).args(["runs-list", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    for child in children {
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()["total"], 6);
    }
}

#[test]
fn secrets_in_a_log_are_not_kept() {
    let project = Project::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let text = good().text().replace("answer C", &format!("use {secret} now"));
    project.write("logs/leak.json", text);
    for words in [&["show"][..], &["failures"], &["transcript", "latest", "t/1#1"]] {
        assert!(!project.json(words).to_string().contains(&secret), "{words:?}");
    }
    assert!(project.json(&["transcript", "latest", "t/1#1"]).to_string().contains("[REDACTED]"));
    for file in ["history.db", "history.db-wal"] {
        let bytes = std::fs::read(project.path().join(".runlore").join(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
}
