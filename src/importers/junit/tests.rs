//! What Python's xml.etree says of real and generated files, and what the importer makes of them.

mod crafted;
mod hostile;

use std::{
    collections::BTreeMap,
    io::{self, Cursor},
    path::Path,
};

use serde_json::Value;

use crate::{
    domain::{
        attempt::Attempt,
        log::LogHeader,
        outcome::{Counts, Outcome},
        time::Timestamp,
    },
    importers::{Input, Item, Limits, Refused, beside::Beside, open},
    telemetry::redaction::Redactor,
    transcript::page,
};

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/formats");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/junit");

/// A whole file.
pub(super) struct Whole {
    pub(super) header: LogHeader,
    pub(super) attempts: Vec<Attempt>,
    pub(super) complaints: Vec<String>,
    pub(super) broken: Option<String>,
}

impl Whole {
    pub(super) fn lines(&self, attempt: usize) -> Vec<String> {
        page(&self.attempts[attempt].transcript.chunks, 0, u64::MAX).unwrap()
    }

    pub(super) fn of(&self, case: &str) -> &Attempt {
        self.attempts.iter().find(|attempt| attempt.case == case).unwrap_or_else(|| panic!("no {case}"))
    }

    pub(super) fn counts(&self) -> [u32; 4] {
        let counts = Counts::of(self.attempts.iter().map(|attempt| attempt.outcome));
        [counts.passed, counts.failed, counts.infra, counts.unscored]
    }
}

/// Nothing stands beside the file, which was changed at a known time.
struct Changed(Option<Timestamp>);

impl Beside for Changed {
    fn names(&self) -> &[String] {
        &[]
    }

    fn modified(&self, _: &str) -> Option<Timestamp> {
        None
    }

    fn own_modified(&self) -> Option<Timestamp> {
        self.0
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Input + '_>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn import_all(bytes: Vec<u8>, modified: Option<Timestamp>, limits: &Limits) -> Result<Whole, Refused> {
    let (redactor, beside) = (Redactor::patterns_only(), Changed(modified));
    let opened = open(Box::new(Cursor::new(bytes)), &beside, limits, &redactor)?;
    let mut whole = Whole { header: opened.header, attempts: Vec::new(), complaints: Vec::new(), broken: None };
    for item in opened.items {
        match item {
            Ok(Item::Attempt(attempt)) => whole.attempts.push(*attempt),
            Ok(Item::Complaint(complaint)) => whole.complaints.push(complaint),
            Err(broken) => whole.broken = Some(broken),
        }
    }
    Ok(whole)
}

pub(super) fn import_with(bytes: &[u8], limits: &Limits) -> Result<Whole, Refused> {
    import_all(bytes.to_vec(), Some(Timestamp::from_millis(1)), limits)
}

pub(super) fn import(text: &str) -> Whole {
    import_with(text.as_bytes(), &Limits::default()).unwrap()
}

pub(super) fn fixture(name: &str) -> String {
    std::fs::read_to_string(Path::new(FIXTURES).join(name)).unwrap()
}

/// What EXPECTED.json says of the elements of each test together: pass, fail, error, skip.
fn wanted(truth: &Value) -> [u32; 4] {
    ["pass", "fail", "error", "skip"].map(|word| u32::try_from(truth["worst_per_key"][word].as_u64().unwrap_or(0)).unwrap())
}

fn every_file_of(folder: &str) -> usize {
    let folder = Path::new(FORMATS).join(folder);
    let truths: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(folder.join("EXPECTED.json")).unwrap()).unwrap();
    for (name, truth) in &truths {
        let read = import_with(&std::fs::read(folder.join(name)).unwrap(), &Limits::default());
        if truth["xml_error"].is_string() {
            assert!(matches!(read, Err(Refused::Broken(why)) if why.contains("cut off")), "{name}");
            continue;
        }
        let whole = read.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(whole.counts(), wanted(truth), "{name}");
        assert_eq!(whole.attempts.len() as u64, truth["distinct_class_name"].as_u64().unwrap(), "{name}");
        assert_eq!((&whole.broken, &whole.complaints), (&None, &Vec::new()), "{name}");
        let took: u64 = whole.attempts.iter().filter_map(|attempt| attempt.duration_ms).sum();
        assert!((took as f64 - truth["sum_case_time"].as_f64().unwrap() * 1000.0).abs() < 1.0, "{name}: {took}");
        let known = |evaluation: &String| whole.header.evaluations.iter().any(|info| info.id == *evaluation);
        assert!(whole.attempts.iter().all(|attempt| known(&attempt.evaluation)), "{name}");
    }
    truths.len()
}

#[test]
fn real_files() {
    assert_eq!(every_file_of("real/junit"), 10);
}

#[test]
fn generated_files() {
    assert_eq!(every_file_of("generated/junit"), 6);
}

#[test]
fn a_rerun_is_no_second_test() {
    let whole = import(&fixture("pytest_reruns.xml"));
    // pytest's own end: 2 failed, 6 passed, 1 skipped, 1 xfailed, 1 xpassed, 3 errors, 12 rerun. It counts the tries of test_teardown that
    // passed before their teardown broke (3), test_both as failure and as error, and its two reruns twice. That leaves four that passed.
    assert_eq!(whole.counts(), [4, 1, 3, 2]);
    assert_eq!(whole.attempts.iter().map(|attempt| attempt.retries).sum::<u32>(), 10);
    let both = whole.of("test_it::test_both");
    assert_eq!((both.outcome, both.retries, both.checks.len()), (Outcome::InfraError, 2, 2));
    assert_eq!(whole.of("test_it::test_flaky").outcome, Outcome::Pass);
    assert_eq!(whole.of("test_it::test_flaky").retries, 2);
}

#[test]
fn suites_inside_suites_stay_apart() {
    let whole = import(&fixture("node_nested.xml"));
    let named: Vec<(&str, &str, Outcome)> =
        whole.attempts.iter().map(|attempt| (attempt.evaluation.as_str(), attempt.case.as_str(), attempt.outcome)).collect();
    assert_eq!(
        named,
        [
            ("add/errors", "test::throws", Outcome::Fail),
            ("add/errors", "test::later", Outcome::Unscored),
            ("add/errors", "test::todo", Outcome::Unscored),
            ("sub/errors", "test::throws", Outcome::Pass),
            ("junit", "test::top", Outcome::Pass),
            ("parent", "test::child", Outcome::Pass),
        ]
    );
    let ids: Vec<&str> = whole.header.evaluations.iter().map(|info| info.id.as_str()).collect();
    assert_eq!(ids, ["add/errors", "sub/errors", "junit", "parent"]);
}
