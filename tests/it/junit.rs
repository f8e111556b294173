//! JUnit files of ../shared/formats and of a pytest that is run here, imported by the binary and read back through the tools.

use std::{collections::BTreeMap, process::Command};

use serde_json::{Map, Value, json};

use super::harness::{Project, shared};

/// The five counts of the only run, and its whole record.
fn import(project: &Project, path: &str) -> (Value, Value) {
    let ran = project.run(&["import", path]);
    // A file that says no time is complained of where its own is not known.
    assert!(ran.code == 0 || [&ran.out, &ran.err].iter().any(|text| text.contains("says a time")), "{path}: {}{}", ran.out, ran.err);
    let list = project.json(&["runs-list"]);
    assert_eq!(list["total"], 1, "{path}");
    (list["runs"][0]["counts"].clone(), project.json(&["show", "--limit", "1000"]))
}

fn counts(passed: &Value, failed: &Value, infra: &Value, unscored: &Value) -> Value {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    json!({"passed": number(passed), "failed": number(failed), "infra": number(infra), "unscored": number(unscored), "missing": 0})
}

fn attempts(show: &Value) -> Vec<&Value> {
    show["evals"].as_array().unwrap().iter().flat_map(|eval| eval["attempts"].as_array().unwrap()).collect()
}

fn every_file_of(folder: &str) -> usize {
    let folder = shared().join(folder);
    let text = std::fs::read_to_string(folder.join("EXPECTED.json")).unwrap();
    let truths: Map<String, Value> = serde_json::from_str(&text).unwrap();
    for (name, truth) in &truths {
        let (project, path) = (Project::new(), folder.join(name));
        let path = path.to_str().unwrap();
        if truth["xml_error"].is_string() {
            let ran = project.run(&["import", path]);
            assert!(ran.err.contains("cut off"), "{name}: {}", ran.err);
            assert_eq!(project.json(&["runs-list"])["total"], 0, "{name}");
            continue;
        }
        let (found, show) = import(&project, path);
        let worst = &truth["worst_per_key"];
        assert_eq!(found, counts(&worst["pass"], &worst["fail"], &worst["error"], &worst["skip"]), "{name}");
        assert_eq!(json!(attempts(&show).len()), truth["distinct_class_name"], "{name}");
    }
    truths.len()
}

#[test]
fn real_files() {
    assert_eq!(every_file_of("formats/real/junit"), 10);
}

#[test]
fn generated_files() {
    assert_eq!(every_file_of("formats/generated/junit"), 6);
}

#[test]
fn one_flipped_result_moves_one_count() {
    let text = std::fs::read_to_string(shared().join("formats/generated/junit/pytest_xunit2.xml")).unwrap();
    let passed = r#"<testcase classname="test_sample" name="test_pass" time="0.001" />"#;
    let failed = r#"<testcase classname="test_sample" name="test_pass" time="0.001"><failure message="m">t</failure></testcase>"#;
    assert_eq!(text.matches(passed).count(), 1);
    let (project, other) = (Project::new(), Project::new());
    let path = other.write("copy.xml", text.replace(passed, failed));
    let (before, _) = import(&project, shared().join("formats/generated/junit/pytest_xunit2.xml").to_str().unwrap());
    let (after, show) = import(&other, path.to_str().unwrap());
    assert_eq!(before, json!({"passed": 11, "failed": 8, "infra": 3, "unscored": 2, "missing": 0}));
    assert_eq!(after, json!({"passed": 10, "failed": 9, "infra": 3, "unscored": 2, "missing": 0}));
    let attempt = "pytest/test_sample::test_pass@default#1";
    let row = attempts(&show).into_iter().find(|row| row["attempt"] == attempt).unwrap();
    assert_eq!(
        (&row["outcome"], &row["checks"][0]["name"], &row["checks"][0]["reason"]),
        (&json!("fail"), &json!("failure"), &json!("m\nt"))
    );
    let page = other.json(&["transcript", "latest", attempt]);
    assert_eq!(page["lines"], json!([r#"{"stream":"failure","message":"m","text":"t"}"#]));
}

const TESTS: &str = r#"
import pytest

tries = {"flaky": 0}

def test_passes():
    print("said on the way")

def test_fails():
    assert {"a": [1, 2]} == {"a": [1, 3]}, "日本 <tag> & ]]> \x00\x1b[31m"

def test_flaky():
    tries["flaky"] += 1
    assert tries["flaky"] >= 3

@pytest.mark.parametrize("name", ["plain", "a::b", "x/y#1@z%", "", "two\nlines", "日本", "a" * 3000])
def test_names(name):
    assert name

@pytest.fixture
def broken():
    raise RuntimeError("setup exploded")

def test_breaks(broken):
    pass

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

@pytest.mark.xfail
def test_fails_as_expected():
    assert False

@pytest.mark.xfail
def test_passes_unexpectedly():
    pass

class TestClass:
    def test_passes(self, record_property):
        record_property("cost", "0.25")
"#;

const DOUBLE: &str = "
import pytest

@pytest.fixture
def explodes():
    yield
    raise RuntimeError('teardown exploded')

def test_both(explodes):
    assert False
";

/// Runs pytest over `tests` and gives its own summary as counts by word, and where the file is.
fn pytest(project: &Project, tests: &str, more: &[&str]) -> (BTreeMap<String, u64>, String) {
    project.write("test_it.py", tests);
    let file = project.path().join("junit.xml");
    let python = std::env::var("RUNLORE_TEST_PYTEST").expect("RUNLORE_TEST_PYTEST is not set: run tests/run, which installs pytest");
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-o", "junit_logging=all", "--junitxml"]).arg(&file).args(more);
    let out = command.current_dir(project.path()).env_remove("PYTEST_ADDOPTS").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let last = text.lines().last().unwrap_or_else(|| panic!("pytest said nothing: {}", String::from_utf8_lossy(&out.stderr)));
    let words = last.trim_matches(['=', ' ']).split(" in ").next().unwrap();
    let said = words.split(", ").filter_map(|part| part.split_once(' ')).map(|(count, word)| {
        let count = count.parse().unwrap_or_else(|_| panic!("no summary of pytest: {text}"));
        (word.trim_end_matches('s').to_owned(), count)
    });
    (said.collect(), file.to_str().unwrap().to_owned())
}

/// What pytest's words come to. A test whose teardown breaks after it was counted would stand in two of them.
fn agreed(said: &BTreeMap<String, u64>) -> Value {
    let of = |words: [&str; 2]| json!(words.iter().filter_map(|word| said.get(*word)).sum::<u64>());
    counts(&of(["passed", "xpassed"]), &of(["failed", ""]), &of(["error", ""]), &of(["skipped", "xfailed"]))
}

#[test]
fn a_run_of_pytest_counts_as_pytest_says() {
    for reruns in [&[][..], &["--reruns", "2"]] {
        for family in ["xunit1", "xunit2"] {
            let project = Project::new();
            let family = format!("junit_family={family}");
            let (said, file) = pytest(&project, TESTS, &[reruns, &["-o", &family]].concat());
            let (found, show) = import(&project, &file);
            assert_eq!(found, agreed(&said), "{family} {reruns:?}: {said:?}");
            assert_eq!(attempts(&show).len(), 15, "{family} {reruns:?}");
            assert_eq!(said.contains_key("rerun"), !reruns.is_empty(), "{said:?}");
            let flaky = attempts(&show).into_iter().find(|row| row["case"] == "test_it::test_flaky").unwrap();
            assert_eq!(flaky["outcome"], if reruns.is_empty() { "fail" } else { "pass" });
        }
    }
}

#[test]
fn a_test_that_fails_and_whose_teardown_breaks_is_one_attempt() {
    let project = Project::new();
    let (said, file) = pytest(&project, DOUBLE, &[]);
    assert_eq!(said, BTreeMap::from([("failed".to_owned(), 1), ("error".to_owned(), 1)]));
    assert_eq!(import(&project, &file).0, json!({"passed": 0, "failed": 0, "infra": 1, "unscored": 0, "missing": 0}));
}
