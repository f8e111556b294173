//! The decision contract on the command line: what keeps it, what does not, and its schema.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::harness::{Project, Ran, command, ran};

fn good() -> Value {
    let none = json!({"status": "not_measured", "reason": "nobody measured it"});
    json!({
        "invokeEvalGate": true, "classification": "regression", "releaseDecision": "block", "actions": ["mend"],
        "evidenceSummary": {"quality": {"status": "measured", "summary": "It fell.", "measurements": [{"name": "pass_rate", "delta": -0.2}]},
            "protectedSlices": none, "reliability": none, "latency": none, "cost": none}
    })
}

fn piped(bytes: &[u8]) -> Ran {
    let mut child: Command = command();
    child.args(["decision", "check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    // A file that is too large is not read to its end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    ran(child.wait_with_output().unwrap())
}

#[test]
fn a_file_keeps_the_contract_or_every_fault_is_named() {
    let project = Project::new();
    project.write("good.json", good().to_string());
    let kept = project.run(&["decision", "check", "good.json"]);
    assert_eq!((kept.code, kept.out.as_str(), kept.err.as_str()), (0, "good.json keeps the decision contract\n", ""));
    let mut bad = good();
    bad["releaseDecision"] = json!("promote");
    bad["evidenceSummary"]["cost"] = json!({"status": "not_measured", "reason": ""});
    bad["approved"] = json!(true);
    project.write("bad.json", bad.to_string());
    let refused = project.run(&["decision", "check", "bad.json"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    let lines: Vec<&str> = refused.err.lines().collect();
    assert_eq!(
        lines,
        [
            "bad.json: approved: there is no such field; there are scenarioId, invokeEvalGate, classification, releaseDecision, actions, evidenceSummary",
            "bad.json: releaseDecision: \"promote\" contradicts the classification regression: it is \"block\"",
            "bad.json: evidenceSummary.cost.reason: it is empty; say it in words",
            "bad.json: 3 faults",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_a_sentence() {
    let project = Project::new();
    let said = |name: &str, text: &str| {
        project.write(name, text);
        let ran = project.run(&["decision", "check", name]);
        (ran.code, ran.err)
    };
    assert!(said("no.json", "{").1.contains("no.json is no JSON: EOF"));
    assert!(said("twice.json", r#"{"actions": [], "actions": []}"#).1.contains("a key stands twice"));
    assert!(said("two.json", "{} {}").1.contains("trailing characters"));
    assert_eq!(said("list.json", "[1]"), (1, "list.json: decision: [1] is no object\nlist.json: 1 fault\n".to_owned()));
    let absent = project.run(&["decision", "check", "absent.json"]);
    assert!(absent.code == 1 && absent.err.contains("absent.json cannot be read"), "{}", absent.err);
    assert_eq!(project.run(&["decision"]).code, 2);
}

#[test]
fn it_reads_a_pipe_and_no_more_than_a_decision_can_have() {
    assert_eq!(piped(good().to_string().as_bytes()).code, 0);
    let long = piped(&vec![b' '; 2 * 1024 * 1024]);
    assert!(long.code == 1 && long.err.contains("more than 1048576 bytes"), "{}", long.err);
}

#[test]
fn the_schema_is_printed_and_evidence_of_a_run_is_taken_as_it_is() {
    let project = Project::demo();
    let schema: Value = serde_json::from_str(&project.run(&["decision", "schema"]).out).unwrap();
    assert_eq!(schema["required"].as_array().unwrap().len(), 5);
    for words in [&["compare"][..], &["run-explain"], &["project-inspect"], &["compare", "--since", "3000d"]] {
        let mut decision = good();
        decision["evidenceSummary"] = project.json(words)["evidenceSummary"].clone();
        project.write("own.json", decision.to_string());
        let checked = project.run(&["decision", "check", "own.json"]);
        assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{words:?}: {decision}");
    }
}

#[test]
fn every_read_of_the_workspace_is_a_verb_in_a_local_project() {
    let project = Project::demo();
    for verb in [
        "project-inspect",
        "project-plan",
        "evaluations-list",
        "run-explain",
        "baseline-lineage",
        "connections-list",
        "connections-catalog",
        "connector-health",
    ] {
        let (said, json) = (project.run(&[verb]), project.json(&[verb]));
        assert!(said.code == 0 && !said.out.trim().is_empty(), "{verb}: {}", said.err);
        assert!(json.is_object(), "{verb}");
    }
    let listed = project.json(&["evaluations-list"]);
    assert!(listed["total"].as_u64() > Some(0) && listed["evaluations"][0]["latest"]["run"]["runId"].is_string(), "{listed}");
    let plan = project.json(&["project-plan"]);
    assert!(plan["advisory"] == true && plan["items"].as_array().unwrap().iter().any(|item| item["kind"] == "no_baseline"), "{plan}");
    let found = project.json(&["docs-search", "what regressed since", "--limit", "3"]);
    assert_eq!((&found["returned"], found["documents"][0]["snippet"].is_string()), (&json!(3), true), "{found}");
}
