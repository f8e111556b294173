//! A run id, evaluation id and attempt key from any answer is accepted by every tool that takes one.

use proptest::prelude::*;
use serde_json::Value;

use super::{harness::Project, logs::Log, mcp::Server};

/// Ids as people write them, and as nobody should. None holds NUL: no command line can carry that (see below for MCP).
fn id() -> impl Strategy<Value = String> {
    let plain = "[a-zA-Z0-9_-]{1,12}";
    let hard = prop::collection::vec(
        prop::sample::select(vec![
            "a",
            "/",
            " ",
            "#",
            "@",
            "%",
            "é",
            "路",
            "~",
            "\"",
            "'",
            ".",
            ":",
            "1",
            "%2F",
            "-",
            "\n",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{202e}",
            "latest",
        ]),
        1..8,
    )
    .prop_map(|parts| parts.concat());
    prop_oneof![plain, hard].prop_filter("an id is not blank", |id| !id.trim().is_empty())
}

/// Ids that look like references and are none, or are longer than anything should be. Those that are references (decision 56) cannot be taken back.
fn run_id() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec!["latest~", "latest~-1", "latest~x", "Latest", "latests"]);
    let is_reference = |id: &String| {
        let back = id.strip_prefix("latest~").filter(|back| back.bytes().all(|byte| byte.is_ascii_digit()));
        id == "latest" || back.is_some_and(|back| !back.is_empty())
    };
    let any = prop_oneof![4 => id(), 2 => words.prop_map(str::to_owned), 1 => "[a-f]{600}"];
    any.prop_filter("an id is no reference", move |id| !is_reference(id))
}

fn all_strings(value: &Value, key: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| match inner {
            Value::String(text) if name == key => out.push(text.clone()),
            other => all_strings(other, key, out),
        }),
        Value::Array(items) => items.iter().for_each(|item| all_strings(item, key, out)),
        _ => {}
    }
}

fn found(values: &[&Value], key: &str) -> Vec<String> {
    let mut out = Vec::new();
    values.iter().for_each(|value| all_strings(value, key, &mut out));
    out.sort();
    out.dedup();
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn ids_round_trip(run in run_id(), task in id(), other in id(), case in id(), model in id()) {
        let project = Project::new();
        Log::new(&run, &task, "2026-11-01T09:00:00+00:00").sample(case.clone(), 1, "I").sample(7, 1, "I").sample("7", 1, "I").put(&project);
        Log::new(&run, &other, "2026-11-01T09:00:01+00:00").sample(case, 1, "I").model(&model).put(&project);
        let show = project.json(&["show"]);
        prop_assert_eq!(show["runId"].as_str(), Some(run.as_str()));
        let failures = project.json(&["failures", "--limit", "100"]);
        let history = project.json(&["history"]);
        let list = project.json(&["runs-list"]);
        for run in found(&[&show, &failures, &history, &list], "runId") {
            for verb in ["show", "failures"] {
                let answer = project.json(&[verb, "--", &run]);
                prop_assert_eq!(answer["runId"].as_str(), Some(run.as_str()));
            }
        }
        for attempt in found(&[&show, &failures], "attempt") {
            let page = project.json(&["transcript", "--", &run, &attempt]);
            prop_assert_eq!(page["attempt"].as_str(), Some(attempt.as_str()));
        }
        for evaluation in found(&[&failures], "evaluation") {
            let filtered = project.json(&["history", &format!("--filter={evaluation}")]);
            prop_assert!(found(&[&filtered], "id").contains(&evaluation));
        }
    }
}

#[test]
fn no_id_takes_over_a_reference_and_an_exact_one_wins_over_beginnings() {
    let project = Project::new();
    for (day, run) in ["old", "latest~1", "latest~x", "latest~xy", "new"].into_iter().enumerate() {
        Log::new(run, "t", &format!("2026-11-0{}T09:00:00+00:00", day + 1)).all(1, "C").put(&project);
    }
    for (reference, run) in [
        ("latest", "new"),
        ("latest~0", "new"),
        ("latest~1", "latest~xy"),
        ("latest~4", "old"),
        ("latest~x", "latest~x"),
        ("latest~xy", "latest~xy"),
    ] {
        assert_eq!(project.json(&["show", reference])["runId"], run, "{reference}");
    }
    Log::new("latest", "t", "2026-10-01T09:00:00+00:00").all(1, "C").put(&project);
    for words in [&["show"][..], &["show", "latest"], &["show", "latest~0"]] {
        assert_eq!(project.json(words)["runId"], "new", "{words:?}");
    }
    let refused = project.run(&["import", "--run", "latest", "logs"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("reads as a reference"), "{}", refused.err);
}

#[test]
fn what_no_command_line_can_carry_goes_over_mcp() {
    let project = Project::new();
    let run = "a\u{0}b\u{1b}\u{0}";
    Log::new(run, "t\u{0}", "2026-11-01T09:00:00+00:00").sample("c\u{0}", 1, "I").put(&project);
    let (mut server, _) = Server::initialize(&project, "2025-11-25");
    let mut ask = |tool: &str, arguments: Value| server.call(tool, arguments)["result"]["structuredContent"].clone();
    let list = ask("runs_list", serde_json::json!({}));
    let listed = list["runs"][0]["runId"].as_str().unwrap().to_owned();
    let failures = ask("failures", serde_json::json!({"run": listed}));
    assert_eq!(failures["runId"].as_str(), Some(listed.as_str()), "{list} {failures}");
    let attempt = failures["cells"][0]["attempts"][0]["attempt"].as_str().unwrap().to_owned();
    let page = ask("transcript", serde_json::json!({"run": listed, "attempt": attempt}));
    assert_eq!(page["attempt"].as_str(), Some(attempt.as_str()), "{page}");
}
