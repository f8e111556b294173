//! What Python's xml.etree says of real and generated files, and what the importer makes of them.

mod crafted;
mod hostile;

use std::{collections::BTreeMap, io::Cursor, path::Path};

use serde_json::Value;

use crate::{
    domain::{outcome::Outcome, time::Timestamp},
    importers::{
        Limits, Refused, open,
        trial::{Whole, Written},
    },
    telemetry::redaction::Redactor,
};

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/formats");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/junit");

impl Whole {
    pub(super) fn four(&self) -> [u32; 4] {
        let counts = self.counts();
        [counts.passed, counts.failed, counts.infra, counts.unscored]
    }
}

fn import_all(bytes: Vec<u8>, modified: Option<Timestamp>, limits: &Limits) -> Result<Whole, Refused> {
    let (redactor, beside) = (Redactor::patterns_only(), Written(modified));
    let opened = open(Box::new(Cursor::new(bytes)), &beside, limits, &redactor)?;
    Ok(Whole::read(opened))
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
        assert_eq!(whole.four(), wanted(truth), "{name}");
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
    assert_eq!(whole.four(), [4, 1, 3, 2]);
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
