//! Public mode, attacked: a word stands in every text of a project, and a stranger asks everything there is to ask, after a member has filled
//! the cache (decision 35; the promise "public mode" of DECISIONS.md).
//!
//! Promises: the script is told from the registry, so a new tool is in it; the same script without public finds the word, so that it can fail.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    service::{Service, wait_for},
    town::Town,
    wire::Request,
};
use crate::harness::{Project, fixtures, registry};

/// Stands in every text, and in nothing else. Of letters that no base64 or id happens to hold.
const WORD: &str = "kanarienvogel";
/// In hexadecimal, as `hex()` would have it.
const HEX: &str = "6B616E617269656E766F67656C";
const RUN: &str = "plain-run";
const ATTEMPT: &str = "sum/1@base#1";

/// A run with the word in every text that a record has.
fn project() -> Project {
    let text = std::fs::read_to_string(fixtures().join("record/run.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let said = |what: &str| json!(format!("{what} {WORD}"));
    record["runId"] = RUN.into();
    record["reportPath"] = said("report");
    record["metadata"] = json!({"job": said("job")});
    for attempt in record["evals"][0]["attempts"].as_array_mut().unwrap() {
        for field in ["input", "target", "output"] {
            attempt[field] = said(field);
        }
        attempt["checks"] = json!([{"name": "exact", "kind": "score", "passed": false, "value": 0.0, "label": said("l"), "answer": said("a"), "reason": said("r")}]);
        attempt["answers"] = json!([{"question": "polite?", "answer": said("no"), "passed": false, "judge": "j"}]);
        if attempt["outcome"] == "infra_error" {
            attempt["error"] = said("error");
        }
    }
    let project = Project::new();
    let directory = ".history/a";
    project.write(&format!("{directory}/run.json"), record.to_string());
    let lines: String = (0..3).map(|n| format!("{{\"role\":\"user\",\"content\":\"{WORD} {n}\"}}\n")).collect();
    project.write(&format!("{directory}/transcripts/base.jsonl"), lines);
    project.write(&format!("{directory}/analysis/saved/why.json"), json!({"cause": WORD}).to_string());
    project.write(&format!("{directory}/analysis/cached/notes.md"), format!("# {WORD}\n"));
    project.write(
        "runlore.toml",
        "[[goal]]\nid = \"g\"\narm = \"skilled\"\nversus = \"base\"\n[[reference]]\nevaluation = \"sum\"\nvalue = 0.5\n",
    );
    project
}

/// A member without `public`, and what is asked.
type Asks = Vec<(String, Value)>;

fn call(name: &str, arguments: Value) -> (String, Value) {
    ("tools/call".to_owned(), json!({"name": name, "arguments": arguments}))
}

/// Every tool by its name and by its aliases, with arguments that make it say the most.
fn tools() -> Asks {
    let mut more: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    more.insert("failures", vec![json!({"tail": 50}), json!({"run": RUN})]);
    more.insert("show", vec![json!({"run": RUN}), json!({"format": "md"}), json!({"attempts": true})]);
    more.insert("transcript", vec![json!({"attempt": ATTEMPT}), json!({"run": RUN, "attempt": ATTEMPT, "limit": 1000})]);
    more.insert("analysis", vec![json!({}), json!({"file": "why.json"}), json!({"file": "notes.md"})]);
    let inspect = |item: Value| json!({"run": RUN, "attempt": ATTEMPT, "item": item});
    more.insert(
        "inspect",
        vec![json!({"attempt": ATTEMPT}), inspect(json!(true)), inspect(json!(null)), json!({"attempt": "sum/2@skilled#1"})],
    );
    more.insert("dataset_items", vec![json!({"dataset": "sum"}), json!({"dataset": "sums", "item": "1"}), json!({"dataset": "nothing"})]);
    let search = |kind: &str| json!({"query": WORD, "kind": kind});
    let mut searches: Vec<Value> = ["evaluation", "run", "case", "reason", "transcript"].map(search).to_vec();
    searches.extend([json!({"query": WORD}), json!({"query": "kanari*"}), json!({"query": "sum"}), json!({"query": "input"})]);
    more.insert("search", searches);
    more.insert("history", vec![json!({"by": "case"}), json!({"filter": "none"})]);
    more.insert("list_eval_run_projections", vec![json!({"eval_id": "sum"})]);
    let mut out = Asks::new();
    for name in registry() {
        for arguments in [json!({})].into_iter().chain(more.remove(name.as_str()).unwrap_or_default()) {
            out.extend([name.clone(), name.replace('_', "."), name.replace('_', "-")].map(|name| call(&name, arguments.clone())));
        }
    }
    assert!(more.is_empty(), "no tool is called {:?}", more.keys());
    out.push(call("veryfront__list_eval_run_projections", json!({"eval_id": "sum"})));
    out
}

/// Questions in SQL: every open object whole, and ways around what is hidden.
fn queries() -> Asks {
    let objects = "arm_factors arms attempts baselines cases cells checks evaluations goals reference_scores rounds runs lift family_lift effort contrasts
        question_pairs attempt_answers factor_effects skill_reads context_use skill_files flaky_cells drift failing_attempts eval_trend
        verdict_flips check_discrimination check_rates check_streaks";
    let whole = objects.split_whitespace().map(|name| format!("SELECT * FROM {name}"));
    let around = [
        "SELECT hex(input), quote(target) FROM cases",
        "SELECT upper(output), substr(error, 1) FROM attempts",
        "SELECT group_concat(reason) FROM checks",
        "SELECT json_group_array(answer) FROM attempt_answers",
        "SELECT c.input || '' FROM cases c ORDER BY c.input",
        "WITH x AS (SELECT input AS i FROM cases) SELECT max(i) FROM x",
        "SELECT input FROM cases_m",
        "SELECT * FROM search_m",
        "SELECT rowid FROM search_m WHERE search_m MATCH 'kanarienvogel'",
        "SELECT * FROM search_m_data",
        "SELECT * FROM sqlite_master",
        "SELECT header FROM logs_m",
    ]
    .map(str::to_owned);
    whole.chain(around).map(|sql| call("query", json!({"sql": sql, "limit": 1000}))).collect()
}

fn others() -> Asks {
    let attempt = ATTEMPT.replace('/', "%2F").replace('@', "%40").replace('#', "%23");
    let mut out: Asks =
        ["tools/list", "resources/list", "resources/templates/list", "prompts/list"].map(|method| (method.to_owned(), json!({}))).to_vec();
    for uri in
        ["runs/plain-run".to_owned(), format!("runs/plain-run/transcripts/{attempt}"), format!("runs/plain-run/transcripts/{ATTEMPT}")]
    {
        out.extend(["runlore", "reeval"].map(|scheme| ("resources/read".to_owned(), json!({"uri": format!("{scheme}://{uri}")}))));
    }
    for name in ["triage_failures", "explain_regression", "write_run_summary"] {
        out.push(("prompts/get".to_owned(), json!({"name": name, "arguments": {}})));
        for value in ["", "kanarien"] {
            let reference = json!({"type": "ref/prompt", "name": name});
            out.push(("completion/complete".to_owned(), json!({"ref": reference, "argument": {"name": "run", "value": value}})));
        }
    }
    for (uri, name) in [("runlore://runs/{runId}", "runId"), ("runlore://runs/{runId}/transcripts/{attempt}", "attempt")] {
        let reference = json!({"type": "ref/resource", "uri": uri});
        let context = json!({"arguments": {"runId": RUN}});
        out.push((
            "completion/complete".to_owned(),
            json!({"ref": reference, "argument": {"name": name, "value": ""}, "context": context}),
        ));
    }
    out
}

fn everything() -> Asks {
    [tools(), queries(), others()].concat()
}

/// The answers that hold the word, in any letters or as digits.
fn telling(answer: impl Fn(&str, &Value) -> String) -> Vec<String> {
    let tells = |text: &str| text.to_lowercase().contains(WORD) || text.to_uppercase().contains(HEX);
    let found = everything().into_iter().filter(|(method, params)| tells(&answer(method, params)));
    found.map(|(method, params)| format!("{method} {params}")).collect()
}

fn over(service: &Service, key: Option<&str>, path: &str) -> impl Fn(&str, &Value) -> String {
    move |method, params| {
        let request = Request::legacy(service.port, method, params).to(path);
        let request = key.into_iter().fold(request, |request, key| request.bearer(key));
        service.ask(&request).text()
    }
}

#[test]
fn a_public_copy_tells_no_text() {
    let open = Service::with(project(), "", &["--rate", "0"]);
    let told = telling(over(&open, None, "/mcp"));
    for wanted in
        ["\"failures\"", "\"transcript\"", "\"analysis\"", "\"inspect\"", "\"dataset_items\"", "\"search\"", "\"query\"", "resources/read"]
    {
        assert!(told.iter().any(|asked| asked.contains(wanted)), "the script asks nothing of {wanted}: {told:?}");
    }
    let public = Service::with(project(), "", &["--public", "--rate", "0", "--rate-total", "0", "--request-rate", "0"]);
    assert_eq!(telling(over(&public, None, "/mcp")), Vec::<String>::new());
    let listed = public.ask(&Request::legacy(public.port, "tools/list", &json!({}))).json();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let arguments = tool["inputSchema"]["properties"].as_object();
        let hidden = |name: &String| ["tail", "item"].contains(&name.as_str());
        assert!(!arguments.is_some_and(|all| all.keys().any(hidden)), "{tool}");
        assert!(!["validate", "transcript", "analysis"].contains(&tool["name"].as_str().unwrap()), "{tool}");
    }
    // What a stranger may ask is answered.
    let said = |tool: &str, arguments: Value| public.call(tool, &arguments);
    let found = said("search", json!({"query": "sum"}));
    assert_eq!(found["structuredContent"]["result"]["blocks"][1]["rows"][0]["evaluation"], "sum", "{found}");
    assert!(found.to_string().contains("Only names are searched"), "{found}");
    let counted = said("query", json!({"sql": format!("SELECT count(*) FROM cases WHERE input LIKE '%{}%'", "narien")}));
    assert_eq!(counted["structuredContent"]["rows"], json!([[0]]));
    for (tool, arguments) in [
        ("validate", json!({})),
        ("dataset_items", json!({"dataset": "sum", "item": "1"})),
        ("inspect", json!({"attempt": ATTEMPT, "item": true})),
    ] {
        assert_eq!(said(tool, arguments)["isError"], true, "{tool}");
    }
    assert_eq!(said("goals", json!({}))["isError"], false);
}

#[test]
fn what_is_published_with_its_texts_tells_them() {
    let flags = ["--public", "--rate", "0", "--rate-total", "0", "--request-rate", "0"];
    let published = Service::with(project(), "publish_text = true", &flags);
    let told = telling(over(&published, None, "/mcp"));
    assert!(told.iter().any(|asked| asked.contains("\"transcript\"")) && told.iter().any(|asked| asked.contains("\"search\"")), "{told:?}");
}

#[test]
fn a_member_who_filled_the_cache_tells_a_stranger_nothing() {
    let more = "public = true\nrate_per_min = 0\nrate_total_per_min = 0\nrequest_rate_per_min = 0";
    let town = Town::holding("rate_per_min = 0", more, &project());
    town.said(&["project", "visibility", "zeta/main", "public"]);
    let path = "/mcp/zeta/main";
    let stranger = over(&town.service, None, path);
    wait_for("it to be public", || stranger("tools/call", &call("runs_list", json!({})).1).contains(RUN).then_some(()));
    let member = town.key("zeta", "member", &["eval:read", "traces:read", "runs:read", "resources:read", "project.evals.read"]);
    let told = telling(over(&town.service, Some(&member), path));
    assert!(told.len() > 20, "{told:?}");
    assert_eq!(telling(&stranger), Vec::<String>::new());
    // The other way round: what the stranger was told is not what the member gets.
    assert_eq!(telling(over(&town.service, Some(&member), path)), told);
    assert_eq!(telling(&stranger), Vec::<String>::new());
    let blind = town.key("zeta", "member", &["eval:read"]);
    assert_eq!(telling(over(&town.service, Some(&blind), path)), Vec::<String>::new(), "a member without traces:read");
}
