//! The expected values of the statistics, computed again by scipy and statsmodels.
//!
//! Promises: what the tests of src/stats compare with is what those packages say, and not what somebody once typed.
//! Does not: compute anything in Rust.

use std::{path::Path, process::Command};

#[test]
fn the_expected_values_are_those_of_scipy_and_statsmodels() {
    let python = std::env::var("RUNLORE_TEST_STATS").expect("RUNLORE_TEST_STATS is not set: run tests/run, which installs scipy");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stats/make.py");
    let out = Command::new(python).arg(script).arg("--check").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
