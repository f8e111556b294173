//! The whole of a team's day through real clients (issue "workspace"): create, add cases, start, watch, explain, accept, and the audit of it all.
//!
//! Promises: an agent's calls are the official Python client's, an operator's the command line's, an integration's the tool API's; what is expected
//! was worked out by hand: four cases, of which the second run gets two wrong.
//! Does not: sleep: the executor waits for a file that the test writes.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    harness::{command, ran},
    http::{
        service::wait_for,
        town::Town,
        wire::{Answer, Request},
    },
};

/// What the operator declares: waits until it is let go, answers with the case's own words, and of cases that are named in `wrong` the opposite.
const EXECUTOR: &str = r#"
import json, os, sys, time
home = sys.argv[1]
run = json.load(sys.stdin)
print(json.dumps({"type": "progress", "done": 0}), flush=True)
deadline = time.monotonic() + 30
while not os.path.exists(os.path.join(home, "go")):
    if time.monotonic() > deadline:
        sys.exit("nobody let it go")
    time.sleep(0.01)
wrong = open(os.path.join(home, "wrong")).read().split()
for case in run["cases"]:
    said = "no" if case["id"] in wrong else case["expected"]
    good = said == case["expected"]
    line = {"type": "result", "case": case["id"], "outcome": "pass" if good else "fail", "output": said, "costUsd": 0.01}
    if not good:
        line["reason"] = "said " + said
    print(json.dumps(line), flush=True)
print(json.dumps({"type": "end"}), flush=True)
"#;

/// A server, an operator's home with the executor in it, and a member's key.
struct Team {
    town: Town,
    home: tempfile::TempDir,
    key: String,
    key_id: String,
}

impl Team {
    fn meet() -> Self {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("executor.py");
        std::fs::write(&script, EXECUTOR).unwrap();
        let words = [script.as_path(), home.path()].map(|path| path.to_str().unwrap().to_owned());
        let town = Town::declaring(&format!(
            "[[worker.executor]]\nname = \"answers\"\nevaluations = [\"*\"]\nprogram = \"python3\"\nargs = {words:?}\n"
        ));
        let key = town.key("acme", "member", &["eval:read", "eval:write", "runs:read", "runs:write", "traces:read"]);
        let key_id = town.newest_key();
        Self { town, home, key, key_id }
    }

    /// What the official client is told of a call; its user answers every form with `answer`.
    fn client(&self, tool: &str, arguments: &Value, answer: &str) -> Value {
        let python =
            std::env::var("RUNLORE_TEST_PYTHON2X").expect("RUNLORE_TEST_PYTHON2X is not set: run tests/run, which installs the clients");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python_2x_writes.py");
        let url = format!("http://127.0.0.1:{}/mcp/acme/side", self.town.service.port);
        let words = ["--url", &url, "--token", &self.key, "--tool", tool, "--arguments", &arguments.to_string(), "--answer", answer];
        let ran = ran(Command::new(python).arg(script).args(words).output().unwrap());
        assert_eq!(ran.code, 0, "{tool}: {}", ran.err);
        serde_json::from_str(ran.out.trim()).unwrap()
    }

    /// The result of a read.
    fn read(&self, tool: &str, arguments: Value) -> Value {
        let said = self.client(tool, &arguments, "no");
        assert_eq!((&said["error"], &said["shown"]), (&json!(false), &json!([])), "{tool}: {said}");
        said["structured"].clone()
    }

    /// The result of a write that the client's user approves after reading one form.
    fn write(&self, tool: &str, arguments: Value) -> Value {
        let said = self.client(tool, &arguments, "yes");
        assert_eq!((&said["error"], said["shown"].as_array().map(Vec::len)), (&json!(false), Some(1)), "{tool}: {said}");
        said["structured"]["result"].clone()
    }

    /// Why a write came to nothing.
    fn refused(&self, tool: &str, arguments: Value, answer: &str) -> String {
        let said = self.client(tool, &arguments, answer);
        assert_eq!(said["error"], true, "{tool}: {said}");
        said["text"].as_str().unwrap().to_owned()
    }

    /// An operator's verb on the project.
    fn operator(&self, words: &[&str]) -> String {
        self.town.said(&[words, &["--into", "acme/side"]].concat())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Where a run stands, as runs_list has it.
    fn run(&self, id: &str) -> Value {
        let answer = self.town.ask(&self.key, "/mcp/acme/side", "runs_list", &json!({}));
        let runs = answer.json()["result"]["structuredContent"]["runs"].clone();
        runs.as_array().unwrap().iter().find(|run| run["runId"] == id).unwrap_or_else(|| panic!("{id} is not in {runs}")).clone()
    }

    /// Starts a run, has a worker do it, and watches it; its id.
    fn run_to_the_end(&self, wrong: &str) -> String {
        let _ = std::fs::remove_file(self.file("go"));
        std::fs::write(self.file("wrong"), wrong).unwrap();
        let started = self.write("runs_start", json!({"evaluation": "refunds", "environment": "staging", "max_cost_usd": 1}));
        assert_eq!((&started["status"], &started["gate"]), (&json!("pending"), &json!("not_evaluated")), "{started}");
        let id = started["runId"].as_str().unwrap().to_owned();
        let waiting = self.run(&id);
        assert_eq!((&waiting["status"], &waiting["rate"]), (&json!("pending"), &Value::Null), "{waiting}");
        let worker = self.worker();
        let running = wait_for("the run to be a worker's", || Some(self.run(&id)).filter(|run| run["status"] == "running"));
        assert_eq!((&running["rate"], &running["progress"]["total"]), (&Value::Null, &json!(4)), "a started run is no pass: {running}");
        std::fs::write(self.file("go"), "").unwrap();
        wait_for("the run to end", || Some(self.run(&id)).filter(|run| run["status"] == "completed"));
        let ended = ran(worker.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.err);
        id
    }

    fn worker(&self) -> Child {
        let mut worker = command();
        worker.args(["worker", "--once", "--config"]).arg(self.town.config());
        worker.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What the tool API answers.
    fn integration(&self, tool: &str, mut arguments: Value) -> Value {
        arguments["project"] = "side".into();
        let request = Request::post(self.town.service.port, &json!({"tool": tool, "arguments": arguments})).to("/api/mcp/call");
        let answer: Answer = self.town.service.ask(&request.bearer(&self.key));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["content"][0]["json"].clone()
    }
}

#[test]
fn the_whole_of_a_teams_day() {
    let team = Team::meet();
    author(&team);
    let good = team.run_to_the_end("");
    assert_eq!(team.run(&good)["counts"], json!({"passed": 4, "failed": 0, "infra": 0, "unscored": 0, "missing": 0}));
    team.operator(&["baseline", "accept", &good, "--evaluation", "refunds", "--note", "the first that is right"]);
    let bad = team.run_to_the_end("late opened");
    explained(&team, &good, &bad);
    lineage(&team, &good, &bad);
    audited(&team);
}

/// An evaluation with four cases, active; and what is refused on the way.
fn author(team: &Team) {
    let draft = json!({"id": "refunds", "name": "Refunds", "threshold": 0.9, "cases": [
        {"id": "early", "input": "returned after 3 days, unopened", "expected": "yes"},
        {"id": "late", "input": "returned after 40 days", "expected": "maybe"},
    ]});
    let declined = team.refused("evaluations_create", draft.clone(), "no");
    assert_eq!(declined, "evaluations_create was not approved, so nothing was done");
    let made = team.write("evaluations_create", draft.clone());
    assert_eq!((&made["evaluation"], &made["status"], made["number"].is_i64()), (&json!("refunds"), &json!("draft"), true), "{made}");
    assert!(team.refused("evaluations_create", draft, "yes").contains("refunds"), "there is one of this id");
    for (id, input, expected) in [("opened", "the box was opened", "maybe"), ("gift", "it was a gift", "yes")] {
        let added = team.write("test_cases_add", json!({"evaluation": "refunds", "id": id, "input": input, "expected": expected}));
        assert_eq!(added["case"], id);
    }
    let start = json!({"evaluation": "refunds", "environment": "staging", "max_cost_usd": 1});
    assert!(team.refused("runs_start", start, "yes").contains("draft"), "a draft is not run");
    team.operator(&["evaluation", "activate", "refunds"]);
    let listed = team.read("evaluations_list", json!({}));
    assert!(listed.to_string().contains("\"active\""), "{listed}");
}

/// The second run got two of four wrong.
fn explained(team: &Team, good: &str, bad: &str) {
    assert_eq!(team.run(bad)["counts"], json!({"passed": 2, "failed": 2, "infra": 0, "unscored": 0, "missing": 0}));
    let failures = team.read("failures", json!({"run": bad}));
    let cases: Vec<&str> = failures["cells"].as_array().unwrap().iter().map(|cell| cell["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["late", "opened"], "{failures}");
    assert!(failures["cells"].as_array().unwrap().iter().all(|cell| cell["new"] == true), "{failures}");
    let explained = team.read("run_explain", json!({"run": bad, "base": "baseline"})).to_string();
    assert!(explained.contains(good) && explained.contains("said no") && explained.contains("regressed"), "{explained}");
    let compared = team.read("compare", json!({"head": bad, "base": "baseline"}));
    assert_eq!((&compared["head"]["runId"], &compared["base"]["runId"]), (&json!(bad), &json!(good)), "{compared}");
    assert_eq!((&compared["rows"][0]["id"], &compared["rows"][0]["status"]), (&json!("refunds"), &json!("regressed")), "{compared}");
    // 2 of 4 against 4 of 4, as an integration reads it.
    let number = team.integration("eval.list", json!({}))[0]["id"].clone();
    let quality = team.integration("eval.quality.latest", json!({"evaluationId": number}));
    assert_eq!((&quality["evaluationRunId"], &quality["score"], &quality["total"]), (&json!(bad), &json!(50.0), &json!(4)), "{quality}");
    assert_eq!((&quality["baselineRunId"], &quality["baselineScore"]), (&json!(good), &json!(100.0)), "{quality}");
    assert_eq!((&quality["regressionDelta"], &quality["regressionDetected"]), (&json!(-50.0), &json!(true)), "{quality}");
}

/// The worse run is accepted all the same, by a person, and the lineage says what it took the place of.
fn lineage(team: &Team, good: &str, bad: &str) {
    let refused = team.town.ask(&team.key, "/mcp/acme/side", "baseline_accept", &json!({"run": bad}));
    assert_eq!(refused.code(), -32602, "no tool accepts a baseline: {refused:?}");
    team.operator(&["baseline", "accept", bad, "--evaluation", "refunds"]);
    let lineage = team.read("baseline_lineage", json!({"evaluation": "refunds"})).to_string();
    assert!(lineage.find(bad) < lineage.rfind(good) && lineage.contains("the first that is right"), "newest first: {lineage}");
}

/// Every write and every refused one, with who, by what, of what, with what end, from where.
fn audited(team: &Team) {
    let said: Value = serde_json::from_str(&team.operator(&["audit", "--json"])).unwrap();
    let rows = said["rows"].as_array().unwrap();
    let told: Vec<(&str, &str)> = rows.iter().rev().map(|row| (row["tool"].as_str().unwrap(), row["outcome"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("evaluations_create", "refused"),
            ("evaluations_create", "ok"),
            ("evaluations_create", "refused"),
            ("test_cases_add", "ok"),
            ("test_cases_add", "ok"),
            ("runs_start", "refused"),
            ("evaluation activate", "ok"),
            ("runs_start", "ok"),
            ("baseline accept", "ok"),
            ("runs_start", "ok"),
            ("baseline accept", "ok"),
        ]
    );
    for (place, row) in rows.iter().rev().enumerate() {
        let digest = row["digest"].as_str().unwrap();
        assert_eq!((row["number"].as_u64(), digest.len()), (Some(place as u64 + 1), 64), "{row}");
        assert!(row["requestId"].is_string() && row["detail"].is_string() && row["at"].is_string(), "{row}");
        let by_operator = ["evaluation activate", "baseline accept"].contains(&row["tool"].as_str().unwrap());
        if by_operator {
            assert!(row["actor"].as_str().unwrap().starts_with("local:") && row["address"].is_null(), "{row}");
        } else {
            assert_eq!(
                (&row["actor"], &row["role"], &row["address"]),
                (&json!(team.key_id), &json!("member"), &json!("127.0.0.1")),
                "{row}"
            );
        }
    }
    // One request, made twice: once declined, once approved.
    assert_eq!(rows[rows.len() - 1]["digest"], rows[rows.len() - 2]["digest"]);
}
