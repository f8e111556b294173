//! The indexer over a store that only remembers, and an importer of a toy format.

mod fakes;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use fakes::{Memory, open};

use super::*;
use crate::{domain::declared::Source, local::git::ENVIRONMENT, store};

const LOG: &str = "LOG a R1\npass\nfail\n";

struct Project {
    root: tempfile::TempDir,
    store: Memory,
    limits: Limits,
    redactor: Redactor,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self {
            root: tempfile::tempdir().unwrap(),
            store: Memory::default(),
            limits: Limits::default(),
            redactor: Redactor::new(["hunter22".to_owned()]),
        };
        files.iter().for_each(|(path, text)| project.write(path, text));
        project
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// Moves a file's time by hand, so that no test waits for the clock.
    fn touch(&self, path: &str, seconds: u64) {
        let file = fs::File::options().write(true).open(self.at(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds)).unwrap();
    }

    fn with<T>(&self, act: impl FnOnce(&Indexer<'_>) -> T) -> T {
        let root = self.at("");
        let environment = ENVIRONMENT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect();
        act(&Indexer { open, environment, ..Indexer::new(&root, &self.store, &self.limits, &self.redactor) })
    }

    fn rescan(&self, sources: &[(&str, &str)]) -> Report {
        let source =
            sources.iter().map(|(path, run)| Source { path: (*path).to_owned(), run: RunRule::try_from((*run).to_owned()).unwrap() });
        let declared = Declared { source: source.collect(), ..Declared::default() };
        self.with(|indexer| indexer.rescan(&declared))
    }

    fn import(&self, paths: &[&str], run: Option<&str>) -> Report {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.at(path)).collect();
        self.with(|indexer| indexer.import(&paths, run))
    }

    fn run_keys(&self) -> Vec<String> {
        self.store
            .logs()
            .into_iter()
            .map(|(path, run_key, pinned)| format!("{path} {run_key}{}", if pinned { " pinned" } else { "" }))
            .collect()
    }
}

fn texts(remarks: &super::super::report::Remarks) -> Vec<String> {
    remarks.kept.iter().map(ToString::to_string).collect()
}

#[test]
fn the_first_look_reads_all_and_the_second_nothing() {
    let project = Project::new(&[
        ("logs/b/2.eval", "LOG b R1\nerror_attempt\n"),
        ("logs/1.eval", LOG),
        ("logs/notes.txt", "hello"),
        ("else/3.eval", LOG),
    ]);
    let report = project.rescan(&[]);
    assert_eq!((report.files, report.logs, report.skipped.total, report.attempts, report.complaints.total), (3, 2, 1, 3, 0));
    assert_eq!((report.counts.passed, report.counts.failed, report.counts.infra, report.runs.len(), report.changed), (1, 1, 1, 1, true));
    assert_eq!(project.store.sources(), ["logs/1.eval <- logs", "logs/b/2.eval <- logs", "logs/notes.txt <- logs"]);
    assert_eq!(report.named_skipped.total, 0);
    let applied = project.store.applied();
    let report = project.rescan(&[]);
    assert_eq!((report.unchanged, report.logs, report.changed, report.is_clean()), (3, 0, false, true));
    assert_eq!(project.store.applied(), applied, "the second look writes nothing");
}

#[test]
fn a_touched_file_only_gets_its_stamp() {
    let project = Project::new(&[("logs/1", LOG), ("logs/2", "no log"), ("logs/3", "BROKEN")]);
    assert_eq!(project.rescan(&[]).complaints.total, 1);
    for name in ["1", "2", "3"] {
        project.touch(&format!("logs/{name}"), 7);
    }
    let pulled = project.store.pulled();
    let report = project.rescan(&[]);
    assert_eq!((report.unchanged, report.logs, report.changed, report.complaints.total), (3, 0, false, 0));
    assert_eq!(project.store.pulled(), pulled, "no attempt is read again");
    assert!(project.store.files(None).unwrap().iter().all(|row| row.stamp.mtime_ns == 1_000_000_007_000_000_000));
}

#[test]
fn a_changed_file_replaces_itself_and_a_vanished_one_goes() {
    let project = Project::new(&[("logs/1", LOG), ("logs/2", "LOG b R2\npass\n"), ("by-hand", "LOG c R3\npass\n")]);
    project.rescan(&[]);
    project.import(&["by-hand"], None);
    project.write("logs/1", "LOG a R1\npass\npass\npass\n");
    fs::remove_file(project.at("logs/2")).unwrap();
    fs::remove_file(project.at("by-hand")).unwrap();
    let report = project.rescan(&[]);
    assert_eq!((report.logs, report.attempts, report.vanished, report.changed), (1, 3, 1, true));
    assert_eq!(project.run_keys(), ["by-hand R3", "logs/1 R1"]);
}

#[test]
fn one_broken_file_stops_nothing_and_is_still_said() {
    let project = Project::new(&[
        ("logs/1", "BROKEN"),
        ("logs/2", "LOG b R\npass\nERROR hunter22 is cut\n"),
        ("logs/3", "LOG c R\ncomplain\npass\n"),
    ]);
    let report = project.rescan(&[]);
    assert_eq!(texts(&report.complaints), ["logs/1: the archive is cut short", "logs/2: [REDACTED] is cut", "logs/3: sample 1 has no id"]);
    assert_eq!((report.logs, report.attempts, report.is_clean()), (1, 1, false));
    assert_eq!(project.run_keys(), ["logs/3 R"]);
    // It is not read again, and still said: an import that only repeats what was looked at must not hide it.
    let again = project.rescan(&[]);
    assert_eq!((again.complaints.total, texts(&again.broken).len(), again.is_clean()), (0, 3, false));
    let named = project.import(&["logs/1", "logs"], None);
    assert_eq!(named.complaints.kept[0].text, "the archive is cut short");
}

#[test]
fn complaints_of_one_log_are_bounded() {
    let project = Project::new(&[("logs/1", &format!("LOG a R\n{}", "complain\n".repeat(50)))]);
    let report = project.rescan(&[]);
    assert_eq!((report.complaints.total, report.complaints.kept.last().unwrap().text.as_str()), (21, "and 30 more of the sort"));
}

#[test]
fn what_is_named_by_hand_is_answered_for() {
    let project = Project::new(&[("x/notes.txt", "hello"), ("x/1", LOG)]);
    let report = project.import(&["x/notes.txt", "x", "nowhere"], None);
    assert_eq!(texts(&report.named_skipped), ["x/notes.txt: is no log"]);
    assert!(texts(&report.complaints)[0].ends_with("nowhere: no such file or directory"));
    assert_eq!(project.store.sources(), ["x/1 <- by hand", "x/notes.txt <- by hand"]);
    assert_eq!(project.import(&["x/notes.txt"], None).named_skipped.total, 1, "and again");
    assert_eq!(project.import(&["x/1"], None).unchanged, 1);
}

#[test]
fn by_hand_stays_by_hand_and_a_sources_file_becomes_so() {
    let project = Project::new(&[("logs/1", LOG), ("logs/2", "LOG b R\npass\n")]);
    project.import(&["logs/1"], None);
    assert_eq!(project.rescan(&[]).logs, 1);
    assert_eq!(project.store.sources(), ["logs/1 <- by hand", "logs/2 <- logs"]);
    project.import(&["logs/2"], None);
    project.touch("logs/1", 3);
    project.rescan(&[]);
    assert_eq!(project.store.sources(), ["logs/1 <- by hand", "logs/2 <- by hand"]);
}

#[test]
fn the_rule_of_the_source_makes_the_run() {
    let text = "LOG a R1 round=S meta=job:42\npass\n";
    for (rule, expected) in [
        ("run_id", "x/d/1 R1"),
        ("eval_set", "x/d/1 S pinned"),
        ("directory", "x/d/1 x/d pinned"),
        ("metadata.job", "x/d/1 42 pinned"),
        ("metadata.other", "x/d/1 R1"),
    ] {
        let project = Project::new(&[("x/d/1", text)]);
        let report = project.rescan(&[("x", rule)]);
        assert_eq!(project.run_keys(), [expected]);
        assert_eq!(report.complaints.total, u64::from(rule == "metadata.other"), "{:?}", texts(&report.complaints));
    }
    let project = Project::new(&[("x/d/1", text)]);
    project.rescan(&[("x", "run_id")]);
    let report = project.rescan(&[("x/", "directory")]);
    assert_eq!((report.logs, project.run_keys()), (1, vec!["x/d/1 x/d pinned".to_owned()]), "a changed rule reads anew");
    project.import(&["x"], Some("ci-7"));
    assert_eq!(project.run_keys(), ["x/d/1 ci-7 pinned"]);
}

#[test]
fn a_source_that_cannot_be_read_keeps_what_it_held() {
    let project = Project::new(&[("x/1", LOG), ("logs/a/2", "LOG b R\npass\n"), ("logs/3", "LOG c R\npass\n")]);
    project.rescan(&[("x", "run_id")]);
    fs::rename(project.at("x"), project.at("y")).unwrap();
    let report = project.rescan(&[("x", "run_id")]);
    assert_eq!(
        (texts(&report.complaints), report.vanished),
        (vec!["x: this source of runlore.toml cannot be read: no such file or directory".to_owned()], 0)
    );
    // No longer declared, it is no source, and what it held goes.
    assert_eq!(project.rescan(&[]).vanished, 1);
    fs::remove_dir_all(project.at("logs")).unwrap();
    assert_eq!((project.rescan(&[]).vanished, project.run_keys().len()), (2, 0));
}

#[test]
fn a_directory_without_permission_is_a_complaint_and_keeps_what_it_held() {
    let project = Project::new(&[("logs/a/1", LOG), ("logs/2", "LOG b R\npass\n")]);
    project.rescan(&[]);
    fs::set_permissions(project.at("logs/a"), fs::Permissions::from_mode(0o000)).unwrap();
    let report = project.rescan(&[]);
    let readable = fs::read_dir(project.at("logs/a")).is_ok();
    fs::set_permissions(project.at("logs/a"), fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser reads everything.
    if !readable {
        assert_eq!(texts(&report.complaints), ["logs/a: the directory cannot be read: permission denied"]);
    }
    assert_eq!((report.vanished, project.run_keys().len()), (0, 2));
}

#[test]
fn pipes_and_large_files_are_refused_without_opening_them() {
    let project = Project::new(&[("logs/big", &"x".repeat(100)), ("logs/1", LOG)]);
    for path in ["logs/pipe", "pipe"] {
        assert!(std::process::Command::new("mkfifo").arg(project.at(path)).status().unwrap().success());
    }
    let root = project.at("");
    let indexer = Indexer { open, file_bytes_max: 99, ..Indexer::new(&root, &project.store, &project.limits, &project.redactor) };
    let report = indexer.rescan(&Declared::default());
    assert_eq!(texts(&report.skipped), ["logs/pipe: is no regular file"]);
    assert_eq!(texts(&report.complaints), ["logs/big: has 100 bytes; files of more than 99 are not read (import.file_bytes_max)"]);
    let named = indexer.import(&[project.at("pipe")], None);
    assert_eq!(texts(&named.named_skipped), ["pipe: is no regular file"]);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_again() {
    let project = Project::new(&[("logs/1", "GROW x\nLOG a R\npass\n"), ("logs/2", "GROW BROKEN\n")]);
    let grow = |path: &str| {
        let text = fs::read_to_string(project.at(path)).unwrap();
        project.write(path, &format!("{}\n{text}", project.at(path).display()));
    };
    // The toy importer appends to the file that its first line names, as a writer would meanwhile.
    ["logs/1", "logs/2"].into_iter().for_each(grow);
    let report = project.rescan(&[]);
    assert_eq!(
        texts(&report.notes),
        ["logs/1: changed while it was read; the next look reads it again", "logs/2: is being written; the next look reads it again"]
    );
    assert!(report.is_clean() && project.store.files(None).unwrap().len() == 1);
    assert_eq!(project.rescan(&[]).unchanged, 0);
}

#[test]
fn overlapping_sources_read_a_file_once_and_links_to_files_are_read() {
    let project = Project::new(&[("logs/a/1", LOG), ("elsewhere/2", "LOG b R\npass\n")]);
    std::os::unix::fs::symlink(project.at("elsewhere/2"), project.at("logs/link")).unwrap();
    let report = project.rescan(&[("logs/a", "directory")]);
    assert_eq!((report.files, report.logs), (2, 2));
    assert_eq!(project.store.sources(), ["logs/a/1 <- logs/a (run = \"directory\")", "logs/link <- logs"]);
}

#[test]
fn a_store_that_takes_nothing_ends_the_look_and_says_so() {
    let project = Project::new(&[("logs/1", LOG), ("logs/2", "LOG b R\npass\n")]);
    project.store.refuse(Some(store::Error::Busy));
    let report = project.rescan(&[]);
    assert_eq!((report.logs, report.is_clean()), (0, false));
    assert!(report.note().unwrap().contains("Another process"));
    project.store.refuse(None);
    assert_eq!(project.rescan(&[]).logs, 2);
    project.store.refuse(Some(store::Error::ReadOnly));
    assert!(project.rescan(&[]).is_clean(), "nothing to write is no complaint");
}

#[test]
fn ancestors_come_with_the_log() {
    let project = Project::new(&[("logs/0", "LOG z R sha=abcdef0\npass\n")]);
    let git = |arguments: &[&str]| {
        let command = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(arguments)
            .current_dir(project.at(""))
            .output();
        String::from_utf8(command.unwrap().stdout).unwrap().trim().to_owned()
    };
    assert!(project.rescan(&[]).is_clean(), "no repository is no complaint");
    assert_eq!(project.store.ancestors("any").unwrap(), Vec::<String>::new());
    git(&["init", "-q"]);
    let commit = |message| {
        git(&["commit", "-q", "--allow-empty", "-m", message]);
        git(&["rev-parse", "HEAD"])
    };
    let (first, second) = (commit("1"), commit("2"));
    project.write("logs/1", &format!("LOG a R sha={second}\npass\n"));
    project.rescan(&[]);
    assert_eq!(project.store.ancestors("any").unwrap(), [first]);
}

#[test]
fn run_ids_by_hand_are_checked() {
    for (id, part) in [("", "empty"), ("a\nb", "\\n"), (&"x".repeat(300), "256"), ("latest", "reference"), ("latest~3", "reference")] {
        assert!(run_id_fault(id).unwrap().contains(part));
    }
    assert_eq!(run_id_fault("latest-build"), None);
    assert_eq!(run_id_fault("ci/1234 #5"), None);
}

#[test]
fn places_keep_a_links_name_and_lose_detours() {
    let project = Project::new(&[("d/1", "")]);
    std::os::unix::fs::symlink(project.at("d/1"), project.at("link")).unwrap();
    assert_eq!(place(&project.at("d/../link")).unwrap(), project.at("link"));
    assert_eq!(place(&project.at("d/../d")).unwrap(), project.at("d"));
    assert!(place(Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn real_logs_come_into_a_real_store_and_a_second_look_reads_none() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/demo/logs");
    let project = Project::new(&[]);
    fs::create_dir(project.at("logs")).unwrap();
    for entry in fs::read_dir(demo).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), project.at("logs").join(entry.file_name())).unwrap();
    }
    let root = project.at("");
    super::super::root::create(&root).unwrap();
    let scope = crate::auth::Caller::local().local_scope();
    let store = store::sqlite::Sqlite::open(&root.join(".runlore/history.db"), &scope, &store::sqlite::Options::default()).unwrap();
    let indexer = Indexer::new(&root, &store, &project.limits, &project.redactor);
    let report = indexer.rescan(&Declared::default());
    assert_eq!((report.logs, report.is_clean(), report.skipped.total), (24, true, 0), "{:?}", report.complaints);
    assert_eq!((report.runs.len(), report.counts.total()), (6, u32::try_from(report.attempts).unwrap()));
    let generation = store.generation().unwrap();
    let again = indexer.rescan(&Declared::default());
    assert_eq!((again.unchanged, again.changed, store.generation().unwrap()), (24, false, generation));
    let by_hand = indexer.import(&[project.at("logs")], Some("ci-1"));
    assert_eq!((by_hand.logs, by_hand.runs.len()), (24, 1));
    assert_eq!(indexer.rescan(&Declared::default()).unchanged, 24);
}
