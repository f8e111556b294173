//! A real argparse program, scanned, served, and called by the official clients.

use serde_json::{Value, json};

use super::text;
use crate::{
    clients::asked,
    harness::{Project, fixtures},
    http::service::Service,
};

/// The fixture program's declarations, as `commands scan` writes them, in a project that has it.
fn scanned() -> (Project, Vec<String>) {
    let project = Project::demo();
    let program = project.write("catalogue.py", std::fs::read(fixtures().join("commands/catalogue.py")).unwrap());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program, mode).unwrap();
    let ran = project.run(&["commands", "scan", "./catalogue.py"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let published = ran.out.replace("output = \"json\"\n", "output = \"json\"\npublic = true\n");
    project.write(".runlore/config.toml", format!("[index]\nwait_ms = 60000\n[http]\ntoolsets = [\"commands\"]\n{published}"));
    let names = ran
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"catalogue_"))
        .map(|rest| format!("catalogue_{}", rest.trim_end_matches('"')));
    let names = names.collect();
    (project, names)
}

fn calls() -> String {
    json!([
        {"tool": "catalogue_dataset_items", "arguments": {"dataset": "gsm", "limit": 2}},
        {"tool": "catalogue_dataset_items", "arguments": {"dataset": "nothing"}, "expect": "error"},
        {"tool": "catalogue_dataset_items", "arguments": {"dataset": "gsm", "adapter": "x.py"}, "expect": "error"},
        {"tool": "catalogue_dataset_items", "arguments": {"dataset": "gsm", "limit": -1}, "expect": "error"},
        {"tool": "catalogue_goals", "arguments": {"goal": ["faster", "cheaper"], "margin": 0.1, "sort": "state"}},
        {"tool": "catalogue_goals", "arguments": {"goal": ["nothing"]}, "expect": "error"},
        {"tool": "catalogue_goals", "arguments": {"goal": ["--adapter"]}, "expect": "error"},
        {"tool": "catalogue_search", "arguments": {"words": ["a", "b"], "kinds": ["cases", "runs"], "no_case": true}},
        {"tool": "catalogue_inspect", "arguments": {"run": "r1", "attempt": "2", "item": true}},
    ])
    .to_string()
}

#[test]
fn the_scanned_commands_answer_the_official_clients() {
    let (project, names) = scanned();
    assert_eq!(names.len(), 13, "{names:?}");
    let place = project.path().to_str().unwrap().to_owned();
    let service = Service::with(project, "", &[]);
    let url = format!("http://127.0.0.1:{}/mcp", service.port);
    let stdio = ["--", env!("CARGO_BIN_EXE_runlore"), "mcp", "--project", &place];
    for (interpreter, script, mode) in [
        ("RUNLORE_TEST_PYTHON2X", "python_2x.py", "auto"),
        ("RUNLORE_TEST_PYTHON1X", "python_1x.py", "legacy"),
        ("RUNLORE_TEST_NODE", "typescript_v2.mjs", "auto"),
        ("RUNLORE_TEST_NODE", "typescript_v1.mjs", "legacy"),
    ] {
        for server in [&["--url", &url][..], &stdio] {
            let ran = asked(interpreter, script, mode, server, &calls());
            assert_eq!(ran.code, 0, "{script}: {}\n{}", ran.out, ran.err);
            let line: Value = serde_json::from_str(ran.out.trim()).unwrap();
            let listed: Vec<&str> = line["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(
                (listed, &line["errors"], &line["skipped"]),
                (names.iter().map(String::as_str).collect(), &json!([]), &json!([])),
                "{script}"
            );
            let texts = line["called"].as_array().unwrap().iter().filter(|call| call["outcome"] == "text").count();
            // Those that print no JSON: rounds, runs-list, validate.
            assert_eq!(texts, 3, "{script}: {line}");
        }
    }
}

#[test]
fn a_tool_answers_what_its_command_prints() {
    let (project, names) = scanned();
    let service = Service::with(project, "", &[]);
    let printed = |words: &[&str]| {
        let output = std::process::Command::new(service.project.path().join("catalogue.py")).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for name in &names {
        let sub = name.trim_start_matches("catalogue_").replace('_', "-");
        let (arguments, positionals): (Value, &[&str]) = match sub.as_str() {
            "dataset-items" => (json!({"dataset": "mt-bench"}), &["mt-bench"]),
            "search" => (json!({"words": ["x", "y"]}), &["x", "y"]),
            "inspect" => (json!({"run": "r"}), &["r"]),
            _ => (json!({}), &[]),
        };
        let json = !matches!(sub.as_str(), "rounds" | "runs-list" | "validate");
        let words: Vec<&str> =
            std::iter::once(sub.as_str()).chain(json.then_some("--json")).chain(["--"]).chain(positionals.iter().copied()).collect();
        let words = if positionals.is_empty() { &words[..words.len() - 1] } else { &words[..] };
        let result = service.call(name, &arguments);
        assert_eq!((text(&result), &result["isError"]), (printed(words).as_str(), &json!(false)), "{name}");
        let structured = json.then(|| serde_json::from_str::<Value>(text(&result)).unwrap());
        assert_eq!(result.get("structuredContent"), structured.as_ref(), "{name}");
    }
}

#[test]
fn strangers_have_what_was_published_of_it() {
    let (project, names) = scanned();
    let service = Service::with(project, "", &["--public", "--rate", "0"]);
    let health = service.ask(&crate::http::wire::Request::get(service.port, "/mcp/health")).json();
    assert_eq!(health["tools"], names.len() - 3, "{health}");
    let refused = service.call("catalogue_dataset_items", &json!({"dataset": "nothing"}));
    assert_eq!(
        text(&refused),
        "this line is printed before the command line is read\nKeyError: 'no dataset nothing in [path]'\nexit code 1"
    );
}
