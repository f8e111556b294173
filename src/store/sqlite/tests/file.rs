//! What only a file can do: several processes, other versions, damage, no room, no permission.
//!
//! Promises: each test has a directory of its own.
//! Does not: repeat the contract.

use rusqlite::Connection;

use super::*;
use crate::{
    auth::Caller,
    domain::outcome::Outcome,
    store::contract::{attempt, log, random},
};

fn open(path: &Path) -> Result<Sqlite> {
    open_with(path, &Options::default())
}

fn open_with(path: &Path, options: &Options) -> Result<Sqlite> {
    Sqlite::open(path, &Caller::local().local_scope(), options)
}

fn one(id: &str, at: i64) -> crate::store::contract::Log {
    log(id, at).with([attempt("1", Outcome::Pass), attempt("2", Outcome::Fail)])
}

#[test]
fn threads_create_and_write_one_file_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let path = &path;
            scope.spawn(move || {
                let store = open_with(path, &Options { busy_timeout_ms: 60_000, ..Options::default() }).unwrap();
                for number in 0..5 {
                    one(&format!("{thread}-{number}"), thread * 10 + number).put(&store).unwrap();
                    assert!(store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).unwrap().1 > 0);
                }
            });
        }
    });
    let store = open(&path).unwrap();
    let (runs, total) = store.runs(&RunQuery { limit: 99, ..RunQuery::default() }).unwrap();
    let mut numbers: Vec<i64> = runs.iter().map(|run| run.number).collect();
    numbers.sort_unstable();
    assert_eq!((total, numbers), (30, (1..=30).collect()));
    assert_eq!(store.generation().unwrap(), 30);
}

/// The other process of `processes_share_a_file_and_a_kill_leaves_it_whole`; does nothing by itself.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os("RUNLORE_TEST_CHILD") else { return };
    let store = open_with(Path::new(&path), &Options { busy_timeout_ms: 60_000, ..Options::default() }).unwrap();
    for number in 0.. {
        let attempts = (0..50).map(|case| attempt(&case.to_string(), Outcome::Fail));
        log(&format!("{}-{number}", std::process::id()), number).with(attempts).put(&store).unwrap();
    }
}

#[test]
fn processes_share_a_file_and_a_kill_leaves_it_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let spawn = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::sqlite::tests::file::child_process"])
            .env("RUNLORE_TEST_CHILD", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children = [spawn(), spawn()];
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let runs = |least: u64| {
        loop {
            let store = open_with(&path, &Options { busy_timeout_ms: 60_000, ..Options::default() }).unwrap();
            let (runs, total) = store.runs(&RunQuery { limit: 9999, ..RunQuery::default() }).unwrap();
            if total >= least {
                return runs;
            }
            assert!(std::time::Instant::now() < deadline, "only {total} runs");
            std::thread::yield_now();
        }
    };
    runs(6);
    children.iter_mut().for_each(|child| {
        child.kill().unwrap();
        child.wait().unwrap();
    });
    assert!(runs(6).iter().all(|run| run.counts.failed == 50), "a run is half imported");
    one("after", 1).put(&open(&path).unwrap()).unwrap();
    let sound: String = Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_newer_file_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = open(&path).err().unwrap();
    assert!(matches!(error, Error::Newer { found: 99, known: connect::KNOWN }), "{error:?}");
}

#[test]
fn what_is_no_store_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "no database, but long enough to have a header ".repeat(40)).unwrap();
    assert!(matches!(open(&text), Err(Error::Damaged)));
    let foreign = dir.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert!(matches!(open(&foreign), Err(Error::Damaged)));
    // A page of garbage in the middle of a store.
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    (0..40).for_each(|at| drop(one(&at.to_string(), at).put(&store).unwrap()));
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(4096).for_each(|byte| *byte = 0x5a);
    std::fs::write(&path, bytes).unwrap();
    let error = open(&path).and_then(|store| store.runs(&RunQuery { limit: 9, ..RunQuery::default() })).err().unwrap();
    assert!(matches!(error, Error::Damaged), "{error:?}");
    assert!(!error.to_string().contains("history"));
}

#[test]
fn a_read_only_file_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    // A name that a URI would take apart.
    let path = dir.path().join("a?b #%20ü.db");
    let store = open(&path).unwrap();
    one("a", 1).put(&store).unwrap();
    let before = random::dump(&store, true);
    drop(store);
    let options = Options { read_only: true, readers_max: 1, ..Options::default() };
    let store = open_with(&path, &options).unwrap();
    assert!(store.read_only());
    assert_eq!(random::dump(&store, true), before);
    assert!(matches!(one("b", 2).put(&store), Err(Error::ReadOnly)));
    assert!(open_with(&dir.path().join("none.db"), &options).is_err());
}

#[test]
fn a_write_ahead_log_left_behind_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("history.db")).unwrap();
    one("a", 1).put(&store).unwrap();
    for name in ["history.db", "history.db-wal"] {
        std::fs::copy(dir.path().join(name), dir.path().join(name.replace("history", "copy"))).unwrap();
    }
    let copy = open_with(&dir.path().join("copy.db"), &Options { read_only: true, ..Options::default() }).unwrap();
    assert_eq!((copy.generation().unwrap(), copy.read_only()), (1, true));
}

#[test]
fn a_directory_without_permission_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    one("a", 1).put(&open(&path).unwrap()).unwrap();
    let allow = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    allow(0o555);
    // Root writes everywhere, so there is nothing to see.
    if std::fs::write(dir.path().join("probe"), "").is_err() {
        let store = open(&path).unwrap();
        assert!(store.read_only());
        assert_eq!(store.generation().unwrap(), 1);
        assert!(matches!(open(&dir.path().join("new.db")), Err(Error::ReadOnly)));
    }
    allow(0o755);
}

#[test]
fn a_writer_waits_until_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open_with(&path, &Options { busy_timeout_ms: 100, ..Options::default() }).unwrap();
    one("a", 1).put(&store).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = std::time::Instant::now();
    assert!(matches!(one("b", 2).put(&store), Err(Error::Busy)));
    assert!(begun.elapsed().as_millis() >= 90);
    // Readers are not in the way, and do not wait.
    assert_eq!(store.generation().unwrap(), 1);
    other.execute_batch("COMMIT").unwrap();
    one("b", 2).put(&store).unwrap();
}

#[test]
fn a_read_waits_for_a_connection_until_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { busy_timeout_ms: 50, readers_max: 1, ..Options::default() };
    let store = open_with(&dir.path().join("history.db"), &options).unwrap();
    let inner = store.read(|_| Ok(store.files(None).map_err(|error| error.to_string()))).unwrap();
    assert!(inner.unwrap_err().contains("busy"));
    assert_eq!(store.files(None).unwrap(), []);
}

#[test]
fn the_generation_is_had_at_once_and_is_never_an_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let options = Options { readers_max: 1, ..Options::default() };
    let (store, other) = (open_with(&path, &options).unwrap(), open(&path).unwrap());
    assert_eq!(store.generation_at_once(), None, "nothing is opened for who does not ask");
    assert_eq!(store.generation().unwrap(), 0);
    for (generation, name) in (1..).zip(["a", "b", "c"]) {
        one(name, 1).put(&other).unwrap();
        // Also while the only reader is lent, and sees what was before.
        let seen = store.read(|_| Ok(store.generation_at_once())).unwrap();
        assert_eq!((seen, store.generation().unwrap()), (Some(generation), generation));
    }
}

#[test]
fn a_read_leaves_its_connection_without_a_state_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { readers_max: 1, ..Options::default() };
    let store = open_with(&dir.path().join("history.db"), &options).unwrap();
    for count in 0..3 {
        assert_eq!(store.files(None).unwrap().len(), count);
        assert!(store.read(|_| Err::<(), _>(Error::Damaged)).is_err());
        one(&count.to_string(), 1).put(&store).unwrap();
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    one("a", 1).put(&store).unwrap();
    let mut connection = Connection::open(&path).unwrap();
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    let big = log("b", 2).with((0..3000).map(|case| attempt(&case.to_string(), Outcome::Fail)));
    let mut attempts = big.attempts.iter().cloned();
    let change = crate::store::LogChange {
        file: big.file.clone(),
        kind: big.kind,
        header: big.header.clone(),
        extras: Default::default(),
        pinned: false,
        ancestors: vec![],
        attempts: &mut attempts,
    };
    let error = write::apply(&mut connection, Change::Log(change)).unwrap_err();
    assert!(matches!(error, Error::Full), "{error:?}");
    assert_eq!((store.generation().unwrap(), store.files(None).unwrap().len()), (1, 1));
}

#[test]
fn every_older_version_is_brought_up_to_date() {
    for version in 0..=connect::KNOWN {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        connect::create_at(&path, version).unwrap();
        let store = open(&path).unwrap();
        one("a", 1).put(&store).unwrap();
        let now: i64 = Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(now, connect::KNOWN);
    }
}

#[test]
fn a_file_from_before_projections_has_its_runs_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    let mut failed = one("b", 2);
    failed.header.status = crate::domain::log::RunStatus::Failed;
    [one("a", 1), failed, one("c", 2)].iter().for_each(|log| drop(log.put(&store).unwrap()));
    let (before, key) = (random::dump(&store, true), store.cursor_key().unwrap());
    drop(store);
    // What came after that step goes too; the views that later steps make anew only have to be there.
    let back = "DROP VIEW cases; CREATE VIEW cases AS SELECT 1; DROP VIEW evaluations; CREATE VIEW evaluations AS SELECT 1;
        DROP TABLE search_m; DROP TABLE unsearched_m; DROP TABLE searched_cases_m; DROP TABLE authored_m; DROP TABLE authored_cases_m; DROP TABLE queue_m; DROP TABLE audit_m; DROP TABLE remembered_m;
        DROP TABLE approvals_m; DROP TABLE traces_m; DROP TABLE trace_chunks_m; DROP TABLE connections_m;
        DROP TABLE shared_m; DROP TABLE case_groups_m; DROP TABLE measures_m; DROP INDEX parts_apart; ALTER TABLE parts_m DROP COLUMN measure_no;
        ALTER TABLE parts_m DROP COLUMN apart; ALTER TABLE sums_m DROP COLUMN measure_no;
        DROP INDEX run_evaluations_by_time; DROP INDEX run_evaluations_by_status; DELETE FROM meta WHERE name = 'cursor_key';
        ALTER TABLE run_evaluations_m DROP COLUMN created_at; ALTER TABLE run_evaluations_m DROP COLUMN status;
        ALTER TABLE run_evaluations_m DROP COLUMN number; PRAGMA user_version = 4;";
    Connection::open(&path).unwrap().execute_batch(back).unwrap();
    let store = open(&path).unwrap();
    assert_eq!(random::dump(&store, true), before);
    // Two files have two keys, and a file keeps its own.
    assert!(store.cursor_key().unwrap() != key && store.cursor_key().unwrap() == open(&path).unwrap().cursor_key().unwrap());
}

#[test]
fn the_open_objects_say_what_the_port_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let store = open(&path).unwrap();
    one("a", 1).task("t").put(&store).unwrap();
    one("b", 2).task("t").put(&store).unwrap();
    one("b", 2).file("copy.json", "d").put(&store).unwrap();
    let mut declared = Declared::default();
    declared.goal.push(toml::from_str("id = \"g\"\narm = \"m\"\nversus = \"n\"").unwrap());
    declared.reference.push(toml::from_str("evaluation = \"e\"\nvalue = 0.5").unwrap());
    store.apply(Change::Declared(declared)).unwrap();
    let connection = Connection::open(&path).unwrap();
    let count = |view: &str| connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get::<_, i64>(0)).unwrap();
    let objects = [
        "runs",
        "evaluations",
        "cases",
        "arms",
        "arm_factors",
        "attempts",
        "checks",
        "cells",
        "baselines",
        "rounds",
        "goals",
        "reference_scores",
    ];
    assert_eq!(objects.map(count), [1, 1, 2, 1, 1, 2, 2, 1, 0, 0, 1, 1]);
    let row: String = connection
        .query_row(
            "SELECT a.run_id || ' ' || a.attempt || ' ' || a.outcome || ' ' || r.status || ' ' || r.created_at || ' ' || c.verdict || ' ' || e.number
             FROM attempts a JOIN runs r USING (run_id) JOIN cells c USING (run_id, evaluation, arm) JOIN evaluations e USING (evaluation)
             ORDER BY attempt LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let inputs = || connection.query_row("SELECT group_concat(input) FROM cases", [], |row| row.get::<_, Option<String>>(0)).unwrap();
    assert_eq!(inputs().as_deref(), Some("in,in"));
    assert_eq!(row, "Ra e/1#1 pass completed 1970-01-01T00:00:01Z mixed 1");
    // A better copy takes over with its texts; what is deleted is no longer read.
    one("b", 2).file("better.json", "d7").with([attempt("3", Outcome::Pass)]).put(&store).unwrap();
    assert_eq!(inputs().as_deref(), Some("in,in,in"));
    store.apply(Change::Vanished { paths: vec!["better.json".into()] }).unwrap();
    assert_eq!((inputs(), count("cases")), (None, 2));
}
