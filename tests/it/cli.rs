//! The command line: exit codes, complaints, and the same JSON as over MCP.

use super::{
    harness::{Project, command, ran},
    logs::Log,
};

#[test]
fn without_a_project_it_says_how_to_name_one() {
    let empty = tempfile::tempdir().unwrap();
    for verb in ["history", "failures", "mcp", "runs-list"] {
        let ran = ran(command().current_dir(empty.path()).arg(verb).output().unwrap());
        assert_eq!(ran.code, 2, "{verb}: {}", ran.err);
        assert!(ran.err.contains("--project"), "{verb}: {}", ran.err);
    }
}

#[test]
fn the_project_is_found_upward_and_by_name() {
    let project = Project::demo();
    let deep = project.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    assert_eq!(ran(command().current_dir(&deep).arg("runs-list").output().unwrap()).code, 0);
    let elsewhere = tempfile::tempdir().unwrap();
    let named =
        ran(command().current_dir(elsewhere.path()).args(["--project", project.path().to_str().unwrap(), "runs-list"]).output().unwrap());
    assert_eq!(named.code, 0, "{}", named.err);
}

#[test]
fn references_have_clear_errors() {
    let project = Project::new();
    for run in ["abc1", "abc2"] {
        Log::new(run, "t", "2026-11-01T09:00:00+00:00").all(1, "C").put(&project);
    }
    let complaint = |reference: &str| {
        let ran = project.run(&["show", reference]);
        assert_eq!(ran.code, 1, "{reference}");
        ran.err
    };
    assert!(complaint("abc").contains("abc2, abc1") || complaint("abc").contains("abc1, abc2"), "{}", complaint("abc"));
    assert!(complaint("nothing").contains("no run matches \"nothing\""));
    assert!(complaint("latest~2").contains("no run matches \"latest~2\""));
    assert!(complaint("latest~x").contains("is no run reference"));
    assert_eq!(project.json(&["show", "latest~1"])["runId"], "abc1");
    assert_eq!(project.json(&["show", "abc1"])["runId"], "abc1");
}

#[test]
fn an_empty_project_answers_in_words() {
    let project = Project::new();
    assert!(project.json(&["history"])["note"].as_str().unwrap().contains("runlore import"));
    assert_eq!(project.json(&["runs-list"])["total"], 0);
    assert!(project.run(&["show"]).err.contains("there are no runs yet"));
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let project = Project::demo();
    for words in [
        &["history", "--limit", "0"][..],
        &["history", "--by", "run"],
        &["compare", "--since", "7d", "--head", "latest"],
        &["nothing"],
        &["transcript"],
    ] {
        assert_eq!(project.run(words).code, 2, "{words:?}");
    }
    let ran = project.run(&["compare", "--since", "yesterday"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("7d"), "{}", ran.err);
}

#[test]
fn a_gate_in_ci_exits_with_three() {
    let project = Project::demo();
    assert_eq!(project.run(&["compare", "--exit-code"]).code, 3);
    assert_eq!(project.run(&["compare"]).code, 0);
    assert_eq!(project.run(&["compare", "--head", "latest~1", "--exit-code"]).code, 0);
}

#[test]
fn pages_of_runs_neither_repeat_nor_skip() {
    let project = Project::new();
    for n in 0..7 {
        Log::new(&format!("r{n}"), "t", &format!("2026-11-01T09:00:0{}+00:00", n / 2)).all(1, "C").put(&project);
    }
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut words = vec!["runs-list", "--limit", "3"];
        if let Some(cursor) = &cursor {
            words.extend(["--cursor", cursor]);
        }
        let page = project.json(&words);
        assert_eq!(page["total"], 7);
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        assert_eq!(page["complete"].as_bool(), Some(cursor.is_none()));
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
}

#[test]
fn text_is_plain_in_a_pipe() {
    let project = Project::demo();
    for words in [&["history"][..], &["compare"], &["failures"], &["show"], &["runs-list"]] {
        let ran = project.run(words);
        assert!(!ran.out.contains('\u{1b}') && !ran.out.trim().is_empty(), "{words:?}: {}", ran.out);
    }
}
