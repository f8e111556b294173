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

#[test]
fn complaints_hold_nothing_that_steers_a_terminal() {
    let project = Project::new();
    Log::new("r1", "t", "2026-11-01T09:00:00+00:00").all(1, "C").put(&project);
    let hostile = "x\u{1b}[2J\n\u{202e}\u{9b}\u{7f}y";
    for words in [
        &["show", hostile][..],
        &["failures", hostile],
        &["transcript", "r1", hostile],
        &["compare", "--since", hostile],
        &["compare", "--base", hostile],
        &["runs-list", "--cursor", hostile],
        &["history", "--cursor", hostile],
        &["compare", "--cursor", hostile],
        &["failures", "--cursor", hostile],
        &["show", "--cursor", hostile],
        &["history", "--by", hostile],
        &["history", "--limit", hostile],
        &["runs-list", "--status", hostile],
        &["--project", hostile, "history"],
        &["--config", hostile, "history"],
        &[hostile],
        &["history", "--filter", hostile],
        &["show", "--filter", hostile],
        &["failures", "--filter", hostile],
        &["compare", "--filter", hostile],
    ] {
        let ran = project.run(words);
        let said = format!("{}{}", ran.out, ran.err);
        let steers = |character: &char| *character != '\n' && (character.is_control() || *character == '\u{202e}');
        assert!(!said.chars().any(|character| steers(&character)), "{words:?}: {said:?}");
        assert!(said.contains("\\u{1b}") || said.contains("\\u{202e}"), "{words:?}: {said:?}");
    }
    let one_line = project.run(&["show", hostile]).err;
    assert_eq!(one_line.lines().count(), 1, "{one_line}");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_complaint() {
    let project = Project::demo();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [&["history"][..], &["show", "--json"], &["import"], &["demo"], &["--help"], &["compare", "--exit-code"]] {
        let ran = ran(command().current_dir(project.path()).args(words).stdout(full()).output().unwrap());
        assert_eq!(ran.code, 1, "{words:?}: {}", ran.err);
        assert!(ran.err.contains("cannot be written"), "{words:?}: {}", ran.err);
    }
}

#[test]
fn whoever_closes_the_pipe_has_read_enough() {
    let project = Project::demo();
    let mut child = command()
        .current_dir(project.path())
        .arg("history")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// What `words` print on a terminal of so many columns.
fn on_terminal(project: &Project, columns: u16, words: &str) -> String {
    // Without the progress bar, which draws on standard error.
    let line = format!("stty cols {columns}; {} {words} 2> /dev/null", env!("CARGO_BIN_EXE_runlore"));
    let output =
        std::process::Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(project.path()).env_remove("NO_COLOR").output();
    String::from_utf8(output.unwrap().stdout).unwrap().replace('\r', "")
}

/// `text` without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
}

#[test]
fn the_grid_is_coloured_by_outcome_and_fits_the_terminal() {
    let project = Project::new();
    for day in 1..=8 {
        let letter = if day < 8 { "C" } else { "I" };
        Log::new(&format!("r{day}"), "an_evaluation", &format!("2026-11-0{day}T09:00:00+00:00")).all(4, letter).put(&project);
    }
    for columns in [60, 80, 200] {
        let shown = on_terminal(&project, columns, "history");
        assert!(shown.contains("\u{1b}[38;5;10mPPPPPPP\u{1b}[38;5;9mF\u{1b}[39m"), "{columns}: {shown:?}");
        let table: Vec<String> = plain(&shown).lines().skip(1).map(str::to_owned).collect();
        assert!(table.iter().all(|line| line.chars().count() <= usize::from(columns)), "{columns}: {table:?}");
    }
    let piped = project.run(&["history"]).out;
    for columns in [0, 1, 10, 200] {
        let shown = plain(&on_terminal(&project, columns, "history"));
        let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed(&shown), trimmed(&piped), "{columns}");
    }
}

#[test]
fn the_readme_declares_what_is_understood() {
    let project = Project::demo();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let example = blocks.into_iter().find(|block| block.contains("[[source]]")).unwrap();
    project.write("runlore.toml", example);
    std::fs::create_dir_all(project.path().join("ci/logs")).unwrap();
    let ran = project.run(&["import"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let record = project.json(&["show", "--attempts", "false", "--filter", "refund"]);
    assert_eq!((&record["evals"][0]["threshold"], &record["evals"][0]["family"]), (&0.9.into(), &"refunds".into()), "{record}");
}

#[test]
fn one_word_is_the_attempt_and_two_are_run_and_attempt() {
    let project = Project::new();
    for (day, run) in [(1, "-old"), (2, "--json")] {
        Log::new(run, "-t", &format!("2026-11-0{day}T09:00:00+00:00")).all(1, "C").put(&project);
    }
    for (words, run) in [
        (&["transcript", "--", "-t/1#1"][..], "--json"),
        (&["transcript", "--", "-old", "-t/1#1"], "-old"),
        (&["transcript", "--", "--json", "-t/1#1"], "--json"),
        (&["transcript", "latest~1", "--", "-t/1#1"], "-old"),
    ] {
        let page = project.json(words);
        assert_eq!((page["runId"].as_str(), page["attempt"].as_str()), (Some(run), Some("-t/1#1")), "{words:?}");
    }
}
