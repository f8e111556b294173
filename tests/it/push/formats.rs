//! Every format, pushed and read back by somebody else.

use serde_json::{Value, json};

use super::house::{House, call, push, runs, told};
use crate::{
    harness::{Project, fixtures},
    logs::Log,
};

/// A project that has a run of each format.
pub fn every_format() -> Project {
    let project = Project::new();
    let demo = fixtures().join("demo/logs/2026-11-14T09-02-11-00-00_tool-use_VpUpVvyrAarYM24ajjS2JA.eval");
    std::fs::copy(demo, project.logs().join("tool-use.eval")).unwrap();
    Log::new("inspect-json", "t", "2026-11-15T09:00:00+00:00").all(3, "C").put(&project);
    std::fs::copy(fixtures().join("junit/pytest_reruns.xml"), project.logs().join("pytest.xml")).unwrap();
    let row = |test: u32, pass: bool| {
        json!({"promptIdx": 0, "testIdx": test, "success": pass, "score": u32::from(pass), "provider": {"id": "echo"},
            "prompt": {"raw": "hi", "label": "hi"}, "vars": {"q": test}, "testCase": {"vars": {"q": test}}, "response": {"output": "x"},
            "gradingResult": {"pass": pass, "score": u32::from(pass), "reason": "so", "componentResults": []}})
    };
    let promptfoo = json!({"evalId": "eval-a1b-2026-11-16T00:00:00", "config": {}, "results": {"version": 3, "timestamp": "2026-11-16T00:00:00.000Z",
        "prompts": [{"raw": "hi", "label": "hi", "provider": "echo"}], "results": [row(0, true), row(1, false)], "stats": {"successes": 1, "failures": 1}}});
    project.write("logs/results.json", promptfoo.to_string());
    let results = json!({"results": {"arc": {"alias": "arc", "acc,none": 0.5}}, "configs": {"arc": {"task": "arc"}}, "versions": {"arc": 1},
        "n-shot": {"arc": 0}, "config": {"model": "hf"}, "date": 1_795_000_000.5, "model_name": "m"});
    project.write("logs/m/results_2026-11-17T03-44-18.json", results.to_string());
    let sample = |id: u32, acc: f64| {
        json!({"doc_id": id, "doc": {"q": id}, "target": "x", "arguments": [["a", "b"]], "resps": [["x"]], "filtered_resps": ["x"], "acc": acc,
            "metrics": ["acc"], "filter": "none"})
        .to_string()
    };
    project.write("logs/m/samples_arc_2026-11-17T03-44-18.jsonl", format!("{}\n{}\n", sample(0, 1.0), sample(1, 0.0)));
    let record: Value = serde_json::from_str(&std::fs::read_to_string(fixtures().join("record/run.json")).unwrap()).unwrap();
    project.write(".history/r/run.json", record.to_string());
    project.write(
        ".history/r/transcripts/base.jsonl",
        "{\"role\":\"user\",\"content\":\"1+1\"}\n{\"role\":\"assistant\"}\n{\"event\":\"end\"}\n",
    );
    project.write(".history/r/analysis/saved/why.json", "{\"createdAt\":\"2026-03-02T00:00:00Z\",\"cause\":\"carry\"}");
    let scratch = json!({"schemaVersion": 1, "runId": "try-1", "createdAt": "2026-11-20T00:00:00Z",
        "evals": [{"id": "e", "attempts": [{"case": "c", "arm": "a", "outcome": "pass"}]}]});
    project.write(".runlore/runs/try/run.json", scratch.to_string());
    project
}

/// What is said of every run, without what only this store knows.
fn shown(runs: &Value) -> Vec<Value> {
    let mut runs = runs["runs"].as_array().unwrap().clone();
    for run in &mut runs {
        run.as_object_mut().unwrap().remove("number");
    }
    runs
}

#[test]
fn every_format_is_read_by_another_as_it_was_here() {
    let (house, project) = (House::new(""), every_format());
    let (key, reader, service) = (house.sender(), house.reader(), house.serve());
    let first = push(&project, &service, &key, &[]);
    assert_eq!(first.code, 0, "{}{}", first.out, first.err);
    assert!(first.out.contains("try-1: 1 sent") && first.out.contains("7 logs in 7 runs: 7 sent, 0 there already"), "{}", first.out);
    let (local, there) = (project.json(&["runs-list", "--limit", "100"]), call(&service, &reader, "runs_list", &json!({"limit": 100})));
    assert_eq!(shown(&there), shown(&local));
    assert_eq!(shown(&there).len(), 7);
    let record = shown(&local).iter().find(|run| run["runId"] != "try-1" && run["createdAt"].as_str().unwrap() < "2026-11").cloned();
    for run in runs(&service, &reader)
        .iter()
        .chain(record.iter().filter_map(|run| run["runId"].as_str()).map(str::to_owned).collect::<Vec<_>>().iter())
    {
        let (mut ours, mut theirs) =
            (project.json(&["show", run, "--limit", "1000"]), call(&service, &reader, "show", &json!({"run": run, "limit": 1000})));
        for side in [&mut ours, &mut theirs] {
            side.as_object_mut().unwrap().remove("number");
        }
        assert_eq!(theirs["evals"], ours["evals"], "{run}");
        assert_eq!(call(&service, &reader, "analysis", &json!({"run": run})), project.json(&["analysis", run]), "{run}");
    }
    let (generation, before) = (house.generation(), (told(&service, "part"), told(&service, "import")));
    let second = push(&project, &service, &key, &[]);
    assert_eq!(second.code, 0, "{}", second.err);
    assert!(second.out.contains("7 logs in 7 runs: 0 sent, 7 there already"), "{}", second.out);
    assert_eq!((told(&service, "part"), told(&service, "import")), before, "nothing was sent");
    assert_eq!(house.generation(), generation, "nothing changed");
    assert!(house.spooled("in-").is_empty() && house.spooled(".part").is_empty(), "nothing is left");
}
