//! What an answer says where there is nothing to show: about what was asked for, and nothing else.

use serde_json::Value;

use super::{harness::Project, logs::Log};

/// Run r1: 6 of 8 over A (2 of 4) and B (4 of 4), and seven evaluations more.
fn project() -> Project {
    let project = Project::new();
    let start = "2026-11-01T09:00:00+00:00";
    Log::new("r1", "A", start).sample(1, 1, "C").sample(2, 1, "C").sample(3, 1, "I").sample(4, 1, "I").put(&project);
    Log::new("r1", "B", start).all(4, "C").put(&project);
    project
}

fn note(project: &Project, words: &[&str]) -> String {
    let answer = project.json(words);
    let text = project.run(words).out;
    let note = answer["note"].as_str().unwrap_or_else(|| panic!("{words:?}: {answer}")).to_owned();
    assert!(text.contains(&note), "{words:?}: the text says it too: {text}");
    note
}

#[test]
fn nothing_failed_is_about_what_the_filter_kept() {
    let project = project();
    assert_eq!(note(&project, &["failures", "--filter", "b"]), "Nothing failed in evaluations whose id contains \"b\": 4/4.");
    assert_eq!(project.json(&["failures", "--filter", "a"])["note"], Value::Null);
}

#[test]
fn a_filter_that_matches_nothing_is_told() {
    let project = project();
    let none = "Run r1 holds no evaluation whose id contains \"zzz\"; it holds A, B.";
    assert_eq!(note(&project, &["failures", "--filter", "zzz"]), none);
    assert_eq!(note(&project, &["show", "--filter", "zzz"]), none);
    assert!(note(&project, &["compare", "--filter", "zzz"]).contains(none));
    let anywhere = "No recorded run holds an evaluation whose id contains \"zzz\"; the newest, r1, holds A, B.";
    assert_eq!(note(&project, &["history", "--filter", "zzz"]), anywhere);
    assert_eq!(note(&project, &["compare", "--since", "2026-10-01", "--filter", "zzz"]), anywhere);
    Log::new("r2", "A", "2026-11-02T09:00:00+00:00").all(4, "C").put(&project);
    assert_eq!(note(&project, &["compare", "--filter", "zzz"]), "Run r2 holds no evaluation whose id contains \"zzz\"; it holds A.");
    assert_eq!(note(&project, &["compare", "--filter", "B"]), "Run r2 holds no evaluation whose id contains \"B\"; it holds A.");
    assert_eq!(project.json(&["compare", "--filter", "A"])["note"], Value::Null);
}

#[test]
fn names_are_five_at_most() {
    let project = Project::new();
    for task in 1..=7 {
        Log::new("r1", &format!("t{task}"), "2026-11-01T09:00:00+00:00").all(1, "C").put(&project);
    }
    assert!(note(&project, &["failures", "--filter", "zzz"]).ends_with("it holds t1, t2, t3, t4, t5 and 2 more."));
}

#[test]
fn a_run_that_counted_nothing_did_not_pass() {
    let project = Project::new();
    let mut log = Log::new("r1", "A", "2026-11-01T09:00:00+00:00").all(5, "C").status("cancelled");
    log.samples.truncate(1);
    log.samples[0]["scores"] = serde_json::json!({});
    let text = log.text().replace("\"total_samples\":1", "\"total_samples\":5");
    project.write("logs/a.json", text);
    assert_eq!(note(&project, &["failures"]), "Nothing was counted: +1 unscored +4 missing. The run is cancelled.");
    let filtered = note(&project, &["failures", "--filter", "a"]);
    assert_eq!(filtered, "Nothing was counted in evaluations whose id contains \"a\": +1 unscored +4 missing. The run is cancelled.");
}
