//! The reads of the workspace over a real store: a project that is empty, one where something of everything was done, and what is not shown.
//!
//! Promises: what is shown as text is a snapshot that a person can read; each fact of a plan is made here first.
//! Does not: test the gate (`tests/it` does).

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    auth::{Caller, Role},
    domain::{
        attempt::Attempt,
        decision,
        extras::{Analysis, AnalysisSource},
        log::{Git, RunStatus},
        outcome::Outcome::{self, Fail, InfraError, Pass},
        time::Timestamp,
    },
    store::{
        Change, Store,
        contract::{Log, attempt, evaluation, log},
        sqlite::{Options, Sqlite},
        workspace::{Act, Actor, Budget, Deed, EvaluationStatus, Health, NewCase, NewEvaluation, NewRun, QueueChange},
    },
    tools::{Ctx, ToolError, find},
};

/// The reads, with the arguments that each needs.
const READS: [(&str, &str); 9] = [
    ("project_inspect", "{}"),
    ("project_plan", "{}"),
    ("evaluations_list", "{}"),
    ("baseline_lineage", "{}"),
    ("docs_search", r#"{"query": "zebra"}"#),
    ("connections_list", "{}"),
    ("connections_catalog", "{}"),
    ("connector_health", "{}"),
    ("runs_list", "{}"),
];

/// A project of its own.
struct House {
    store: Arc<Sqlite>,
    dir: TempDir,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&dir.path().join("history.db"), &Caller::local().local_scope(), &Options::default()).unwrap();
        Self { store: Arc::new(store), dir }
    }

    /// The same file, as `caller` may see it.
    fn ctx(&self, caller: Caller) -> Ctx {
        let store = Sqlite::open(&self.dir.path().join("history.db"), &caller.local_scope(), &Options::default()).unwrap();
        Ctx::new(Arc::new(store), caller, at(100_000))
    }

    fn asked_by(&self, caller: Caller, tool: &str, arguments: &Value) -> Result<(Value, String, bool), ToolError> {
        let entry = find(tool).unwrap();
        let arguments = (entry.canonical)(arguments.as_object().cloned().unwrap())?;
        let answer = (entry.run)(&self.ctx(caller), arguments)?;
        Ok((serde_json::from_str(answer.json.get()).unwrap(), answer.text, answer.lasting))
    }

    fn ask(&self, tool: &str, arguments: Value) -> Value {
        self.asked_by(Caller::terminal(), tool, &arguments).unwrap().0
    }

    fn said(&self, tool: &str, arguments: Value) -> String {
        self.asked_by(Caller::terminal(), tool, &arguments).unwrap_err().to_string()
    }

    fn act(&self, second: i64, act: Act) {
        let actor =
            Actor { identity: "k1".into(), principal: "k1".into(), role: Role::Admin, address: None, request_id: format!("r{second}") };
        let deed = Deed { actor, tool: "test".into(), digest: "d".into(), at: at(second), approval: None, idempotency_key: None };
        let outcome = self.store.apply(Change::Deed(Box::new((deed, act)))).unwrap().outcome.unwrap();
        outcome.done.unwrap();
    }

    fn make(&self, second: i64, id: &str, cases: usize, active: bool) {
        let cases =
            (0..cases).map(|number| NewCase { id: Some(format!("c{number}")), input: "ask".into(), ..NewCase::default() }).collect();
        let description = Some(format!("Whether {id} are given back"));
        self.act(second, Act::CreateEvaluation(NewEvaluation { id: id.into(), description, cases, ..NewEvaluation::default() }));
        if active {
            self.act(second, Act::SetStatus { evaluation: id.into(), status: EvaluationStatus::Active });
        }
    }

    fn start(&self, second: i64, run_id: &str, evaluation: &str) {
        let budget = Budget { queued_max: 9, cost_usd_max: None, since: at(0) };
        let environment = "dev".into();
        self.act(
            second,
            Act::StartRun(NewRun {
                run_id: run_id.into(),
                evaluation: evaluation.into(),
                arm: None,
                environment,
                max_cost_usd: None,
                budget,
            }),
        );
    }

    fn accept(&self, second: i64, run_id: &str, evaluation: Option<&str>) {
        let evaluation = evaluation.map(str::to_owned);
        self.act(second, Act::AcceptBaseline { run_id: run_id.into(), evaluation, note: Some("as agreed".into()) });
    }
}

/// A log of one evaluation, of which the first `failing` of twelve cases fail.
fn twelve(id: &str, second: i64, of: &str, failing: usize) -> Log {
    let mut log = log(id, second);
    log.header.evaluations = vec![evaluation(of)];
    log.with(
        (0..12).map(|case| Attempt { evaluation: of.into(), ..attempt(&format!("c{case:02}"), if case < failing { Fail } else { Pass }) }),
    )
}

/// A project where something of everything was done.
fn lived_in() -> House {
    let house = House::new();
    twelve("base", 10, "refunds", 1).put(&*house.store).unwrap();
    house.accept(11, "Rbase", None);
    let mut head = twelve("head", 20, "refunds", 11);
    head.extras.analyses = vec![Analysis {
        file: "why.json".into(),
        source: AnalysisSource::Saved,
        created_at: at(21),
        doc: serde_json::value::to_raw_value(&json!({"finding": "the zebra rule lost its exception"})).unwrap(),
    }];
    head.put(&*house.store).unwrap();
    house.make(30, "returns", 2, true);
    house.make(31, "empty", 0, false);
    house.make(32, "drafted", 1, false);
    house.start(40, "Q1", "returns");
    let (name, config) = ("nightly".to_owned(), json!({"path": "logs"}));
    house.act(50, Act::CreateConnection { id: "k-1".into(), kind: "directory".into(), name, config });
    let health = Health {
        at: at(60),
        good_at: Some(at(60)),
        duration_ms: 7,
        logs: 3,
        complaints: vec!["a.json: no log".into()],
        complaints_total: 1,
        ..Health::default()
    };
    house.store.apply(Change::Synced { connection: "k-1".into(), health }).unwrap();
    house
}

#[test]
fn an_empty_project_answers_everything() {
    let house = House::new();
    let mut all = String::new();
    for (tool, arguments) in READS {
        let (json, text, _) = house.asked_by(Caller::terminal(), tool, &serde_json::from_str(arguments).unwrap()).unwrap();
        if let Some(summary) = json.get("evidenceSummary") {
            assert_eq!(decision::check_evidence(summary), []);
        }
        all += &format!("## {tool} {arguments}\n{text}\n\n");
    }
    assert!(house.said("run_explain", json!({})).contains("no run"));
    insta::assert_snapshot!(all);
}

#[test]
fn a_project_that_is_lived_in() {
    let house = lived_in();
    let mut all = String::new();
    for (tool, arguments) in READS.into_iter().chain([("run_explain", r#"{"run": "Rhead"}"#), ("run_explain", r#"{"run": "Q1"}"#)]) {
        let (json, text, _) = house.asked_by(Caller::terminal(), tool, &serde_json::from_str(arguments).unwrap()).unwrap();
        if let Some(summary) = json.get("evidenceSummary") {
            assert_eq!(decision::check_evidence(summary), [], "{tool}");
        }
        all += &format!("## {tool} {arguments}\n{text}\n\n");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_item_of_a_plan_names_a_tool_and_arguments_that_it_takes() {
    let house = lived_in();
    let plan = house.ask("project_plan", json!({}));
    assert_eq!(plan["advisory"], true);
    let items = plan["items"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["regressed", "without_cases", "never_run", "too_few"], "{plan}");
    for (item, place) in items.iter().zip(1..) {
        assert_eq!(item["priority"], place);
        let entry = find(item["next"]["tool"].as_str().unwrap()).unwrap();
        if !entry.effect.writes() {
            house.ask(entry.name, item["next"]["arguments"].clone());
        }
    }
    let regressed = &items[0]["evidence"];
    assert_eq!(
        (&regressed["runId"], &regressed["baseRunId"], &regressed["verdict"]),
        (&json!("Rhead"), &json!("Rbase"), &json!("confirmed"))
    );
    // Of the whole plan the first.
    let short = house.ask("project_plan", json!({"limit": 1}));
    assert_eq!((&short["returned"], &short["total"], &short["complete"]), (&json!(1), &json!(4), &json!(false)));
}

#[test]
fn what_is_old_or_flaky_or_gone_is_planned() {
    let house = House::new();
    let mut flaky = log("00", 1);
    flaky.header.evaluations = vec![evaluation("left")];
    flaky.header.git = Some(Git { sha: Some("aaaa111".into()), ..Git::default() });
    let tries = [(1, Pass), (2, Fail)].map(|(epoch, outcome)| Attempt { evaluation: "left".into(), epoch, ..attempt("1", outcome) });
    flaky.with(tries).put(&*house.store).unwrap();
    let kinds = |house: &House| -> Vec<(String, String)> {
        let plan = house.ask("project_plan", json!({"difference": 1.0}));
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        plan["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (text(&item["kind"]), text(&item["evaluation"])))
            .filter(|(kind, _)| kind != "too_few")
            .collect()
    };
    let pair = |kind: &str, of: &str| (kind.to_owned(), of.to_owned());
    assert_eq!(kinds(&house), [pair("flaky", "left"), pair("no_baseline", "-")]);
    house.accept(2, "R00", Some("left"));
    house.accept(3, "R00", None);
    for number in 1..=10 {
        let mut one = twelve(&format!("{number:02}"), number * 10, "daily", 0);
        one.header.git = Some(Git { sha: Some(format!("bbbb{number:03}")), ..Git::default() });
        one.ancestors = vec!["cccc111".into()];
        one.put(&*house.store).unwrap();
    }
    let all = kinds(&house);
    assert!(all.contains(&pair("not_run_lately", "left")) && all.contains(&pair("baseline_stale", "-")), "{all:?}");
    assert!(!all.contains(&pair("baseline_stale", "left")), "no run of it is newer: {all:?}");
    let stale = house.ask("project_inspect", json!({}))["stale"].clone();
    assert!(stale.to_string().contains("is not among those before bbbb010"), "{stale}");
    house.store.apply(Change::Vanished { paths: vec!["00.json".into()] }).unwrap();
    assert!(kinds(&house).contains(&pair("baseline_gone", "-")));
    assert!(house.said("compare", json!({"base": "baseline"})).contains("the accepted baseline R00 is no longer in the project"));
}

#[test]
fn a_baseline_is_a_base() {
    let house = House::new();
    for (id, second, of) in [("a", 1, "one"), ("b", 2, "two")] {
        twelve(id, second, of, 0).put(&*house.store).unwrap();
    }
    let mut both = log("c", 3);
    both.header.evaluations = vec![evaluation("one"), evaluation("two")];
    let of = |of: &str, outcome: Outcome| -> Vec<Attempt> {
        (0..12).map(|case| Attempt { evaluation: of.to_owned(), ..attempt(&format!("c{case:02}"), outcome) }).collect()
    };
    both.with(of("one", Fail)).with(of("two", InfraError)).put(&*house.store).unwrap();
    let base = |arguments: Value| house.ask("compare", arguments)["base"]["runId"].clone();
    assert!(house.said("compare", json!({"base": "baseline"})).contains("no run was accepted as the baseline"));
    house.accept(4, "Ra", Some("one"));
    assert_eq!(base(json!({"base": "baseline"})), "Ra");
    house.accept(5, "Rb", Some("two"));
    let said = house.said("compare", json!({"base": "baseline"}));
    assert!(said.contains("several baselines: one has Ra, two has Rb; name a run"), "{said}");
    assert_eq!(base(json!({"base": "baseline", "filter": "two"})), "Rb");
    house.accept(6, "Rb", None);
    assert_eq!(base(json!({"base": "baseline"})), "Rb");
    let explained = house.ask("run_explain", json!({"run": "Rc", "base": "baseline"}));
    assert_eq!(explained["base"]["runId"], "Rb");
    assert_eq!(house.ask("run_explain", json!({"run": "Rc", "base": "Ra"}))["statuses"]["regressed"], 1);
    let lineage = house.ask("baseline_lineage", json!({}));
    let holding: Vec<&Value> = lineage["baselines"].as_array().unwrap().iter().map(|one| &one["runId"]).collect();
    assert_eq!(holding, ["Rb", "Rb", "Ra"]);
    house.accept(7, "Rc", None);
    let lineage = house.ask("baseline_lineage", json!({"evaluation": "one", "limit": 1}));
    let newest = &lineage["baselines"][0];
    assert_eq!(
        (&newest["runId"], &newest["replaces"], &newest["acceptedBy"], &newest["note"]),
        (&json!("Rc"), &json!("Rb"), &json!("k1"), &json!("as agreed"))
    );
    let next = house.ask("baseline_lineage", json!({"evaluation": "one", "limit": 1, "cursor": lineage["nextCursor"]}));
    assert_eq!((&next["baselines"][0]["runId"], next["baselines"][0]["supersededAt"].is_string()), (&json!("Rb"), true));
}

#[test]
fn a_run_that_has_not_ended_is_no_pass() {
    let house = lived_in();
    let explained = house.ask("run_explain", json!({"run": "Q1", "base": "Rbase"}));
    assert_eq!((&explained["status"], &explained["rate"], &explained["verdicts"]), (&json!("pending"), &Value::Null, &Value::Null));
    assert_eq!((&explained["base"], &explained["evidenceSummary"]["quality"]["status"]), (&Value::Null, &json!("not_measured")));
    let claim = QueueChange::Claim { worker: "w1", now: at(70), lease_ms: 60_000, tries_max: 2 };
    house.store.apply(Change::Queue(claim)).unwrap();
    let beat = QueueChange::Beat { run_id: "Q1", worker: "w1", now: at(71), lease_ms: 60_000, done: 1, cost_usd: None };
    house.store.apply(Change::Queue(beat)).unwrap();
    let (listed, text, lasting) = house.asked_by(Caller::terminal(), "runs_list", &json!({})).unwrap();
    let row = &listed["runs"][0];
    assert_eq!(
        (&row["runId"], &row["status"], &row["progress"]),
        (&json!("Q1"), &json!("running"), &json!({"done": 1, "total": 2, "worker": "w1"}))
    );
    assert!(text.contains("running 1/2") && !lasting, "{text}");
    assert!(listed["runs"][1].get("progress").is_none());
    let (_, text, lasting) = house.asked_by(Caller::terminal(), "run_explain", &json!({"run": "Q1"})).unwrap();
    assert!(text.contains("is running") && text.contains("nothing is said of its result") && !text.contains("pass") && !lasting, "{text}");
    // The newest run is under way: the project at a glance is not kept either.
    assert!(!house.asked_by(Caller::terminal(), "project_inspect", &json!({})).unwrap().2);
    let failed = crate::store::workspace::RunEnd {
        status: RunStatus::Failed,
        error: Some("the executor ended with 3".into()),
        cost_usd: Some(0.5),
        attempts: &mut std::iter::empty(),
    };
    house.store.apply(Change::Queue(QueueChange::End { run_id: "Q1", worker: "w1", now: at(80), end: failed })).unwrap();
    let explained = house.ask("run_explain", json!({"run": "Q1"}));
    assert_eq!((&explained["status"], &explained["error"]), (&json!("failed"), &json!("the executor ended with 3")));
    assert_eq!((&explained["queue"]["tries"], &explained["evidenceSummary"]["quality"]["status"]), (&json!(1), &json!("not_measured")));
    assert!(explained["note"].as_str().unwrap().starts_with("The run failed"), "{explained}");
}

#[test]
fn pages_of_evaluations_hold_while_some_are_made() {
    let house = House::new();
    for number in 0..7 {
        house.make(number, &format!("e{number}"), 0, false);
    }
    let first = house.ask("evaluations_list", json!({"limit": 3}));
    house.make(50, "newer", 0, false);
    let second = house.ask("evaluations_list", json!({"limit": 3, "cursor": first["nextCursor"]}));
    let third = house.ask("evaluations_list", json!({"limit": 3, "cursor": second["nextCursor"]}));
    let ids = |page: &Value| {
        page["evaluations"].as_array().unwrap().iter().map(|one| one["evaluation"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([ids(&first), ids(&second), ids(&third)].concat(), ["e6", "e5", "e4", "e3", "e2", "e1", "e0"]);
    assert_eq!((&third["complete"], &third["total"], &third["nextCursor"]), (&json!(true), &json!(8), &Value::Null));
    let active = house.ask("evaluations_list", json!({"status": "active"}));
    assert_eq!((&active["total"], &active["note"]), (&json!(0), &json!("No evaluation matches.")));
}

#[test]
fn documents_are_found_and_hidden_ones_are_not() {
    let house = lived_in();
    let found = |caller: Caller, query: &str| {
        let answer = house.asked_by(caller, "docs_search", &json!({"query": query, "limit": 50})).unwrap().0;
        let one = |one: &Value| (one["source"].as_str().unwrap().to_owned(), one["title"].as_str().unwrap().to_owned());
        let documents: Vec<(String, String)> = answer["documents"].as_array().unwrap().iter().map(one).collect();
        (documents, answer["total"].as_u64().unwrap())
    };
    let pair = |source: &str, title: &str| (source.to_owned(), title.to_owned());
    assert_eq!(found(Caller::terminal(), "zebra"), (vec![pair("analysis", "Rhead: why.json")], 1));
    let viewer = Caller::scoped("v", Role::Viewer, &["eval:read"]);
    for hidden in [viewer, Caller::public()] {
        assert_eq!(found(hidden.clone(), "zebra"), (vec![], 0));
        // The words of a description are texts too, and the store does not give them.
        assert!(found(hidden.clone(), "given back").0.iter().all(|(source, _)| source != "evaluation"));
        assert!(found(hidden.clone(), "returns").0.contains(&pair("evaluation", "returns")), "its id is none");
        assert_eq!(found(hidden, "block_until_covered").0[0].0, "contract");
    }
    assert!(found(Caller::terminal(), "given back").0.contains(&pair("evaluation", "returns")));
    let (tools, total) = found(Caller::terminal(), "baseline");
    assert!(tools.contains(&pair("tool", "baseline_lineage (Baselines and their lineage)")) && total > 2, "{tools:?}");
    assert!(found(Caller::terminal(), "rescan_s").0.contains(&pair("reference", "Reference: Config: [index]")));
    let scores = house.ask("docs_search", json!({"query": "what regressed since last week", "limit": 5}));
    let scores: Vec<f64> = scores["documents"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|two| two[0] >= two[1]) && scores[0] > 0.0, "{scores:?}");
    assert!(house.said("docs_search", json!({"query": "?!"})).contains("holds no word"));
    assert!(house.said("docs_search", json!({"query": "x".repeat(201)})).contains("at most 200"));
    assert_eq!(house.ask("analysis", json!({"run": "Rhead", "file": "why.json"}))["total"], 1);
}

#[test]
fn sources_are_shown_as_they_are_kept() {
    let house = lived_in();
    let listed = house.ask("connections_list", json!({}));
    let one = &listed["connections"][0];
    assert_eq!((&one["connection"], &one["config"], &one["standing"]), (&json!("k-1"), &json!({"path": "logs"}), &json!("complaints")));
    let health = house.ask("connector_health", json!({"connection": "nightly"}));
    let one = &health["connections"][0];
    assert_eq!((&one["lagMs"], &one["complaints"], &one["complaintsTotal"]), (&json!(99_940_000), &json!(["a.json: no log"]), &json!(1)));
    assert!(house.said("connector_health", json!({"connection": "none"})).contains("there is no connection \"none\""));
    let kinds = house.ask("connections_catalog", json!({}))["kinds"].clone();
    assert_eq!((&kinds[0]["kind"], &kinds[0]["configSchema"]["required"]), (&json!("directory"), &json!(["path"])));
    // At a glance they are there for those who may list them.
    let glance = |scopes: &[&str]| house.asked_by(Caller::scoped("v", Role::Viewer, scopes), "project_inspect", &json!({})).unwrap().0;
    assert!(glance(&["eval:read"]).get("connections").is_none());
    assert_eq!(glance(&["eval:read", "resources:read"])["connections"][0]["name"], "nightly");
}
