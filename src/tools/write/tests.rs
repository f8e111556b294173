//! The way from a call to a deed, over a real store.
//!
//! Promises: no clock but the call's own; no sockets (`tests/it/http/approval.rs` has them).

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    auth::Caller,
    domain::time::Timestamp,
    store::{
        Store,
        sqlite::{Options, Sqlite},
        workspace::{Actor, AuditQuery, AuditRow, AuthoredQuery, EvaluationStatus},
    },
    telemetry::redaction::Redactor,
    tools::{ENTRIES, find, tool_api},
};

struct House {
    store: Arc<dyn Store>,
    _directory: tempfile::TempDir,
}

fn house() -> House {
    let directory = tempfile::tempdir().unwrap();
    let scope = Caller::local().local_scope();
    let store = Arc::new(Sqlite::open(&directory.path().join("p.db"), &scope, &Options::default()).unwrap());
    House { store, _directory: directory }
}

/// Who calls, when and how.
#[derive(Clone)]
struct By {
    project: &'static str,
    identity: &'static str,
    at: i64,
    leave: Leave,
    given: Given,
    key: Option<&'static str>,
}

fn by(identity: &'static str) -> By {
    By { project: "p", identity, at: 0, leave: Leave::Ask, given: Given::Nothing, key: None }
}

fn with(handle: &str) -> Given {
    Given::Handle(handle.to_owned())
}

impl House {
    fn call(&self, tool: &str, arguments: &Value, by: &By) -> Result<Value, String> {
        let actor = Actor {
            identity: by.identity.to_owned(),
            principal: by.identity.to_owned(),
            role: Role::Admin,
            address: None,
            request_id: "r".to_owned(),
        };
        let consent = Consent {
            leave: by.leave,
            given: by.given.clone(),
            idempotency_key: by.key.map(str::to_owned),
            actor,
            handed: Handed::default(),
        };
        let now = Timestamp::parse("2026-05-01T12:00:00Z").unwrap().plus_millis(by.at);
        let ctx = Ctx {
            project: by.project.into(),
            consent: Some(consent),
            rules: Rules { connections_on: true, ..Rules::default() },
            ..Ctx::new(self.store.clone(), Caller::scoped(by.identity, Role::Admin, &["*"]), now)
        };
        let entry = find(tool).unwrap();
        // As the gate does.
        let arguments = (entry.canonical)(arguments.as_object().cloned().unwrap()).map_err(|error| error.to_string())?;
        let answer = (entry.run)(&ctx, arguments).map_err(|error| error.to_string())?;
        assert!(!answer.lasting, "an answer to a write is nobody else's");
        Ok(serde_json::from_str(answer.json.get()).unwrap())
    }

    /// The handle that a first call is given.
    fn asked(&self, tool: &str, arguments: &Value, by: &By) -> String {
        let said = self.call(tool, arguments, by).unwrap();
        assert_eq!((&said["approvalRequired"], said.get("result")), (&json!(true), None), "{said}");
        said["approval"]["handle"].as_str().unwrap().to_owned()
    }

    /// Asks and acts.
    fn done(&self, tool: &str, arguments: &Value) -> Value {
        let handle = self.asked(tool, arguments, &by("k"));
        let said = self.call(tool, arguments, &By { given: with(&handle), ..by("k") }).unwrap();
        assert_eq!((&said["approvalRequired"], said.get("approval")), (&json!(false), None), "{said}");
        said["result"].clone()
    }

    fn audit(&self) -> Vec<AuditRow> {
        self.store.audit(&AuditQuery { limit: 1000, ..AuditQuery::default() }).unwrap().0
    }

    fn evaluations(&self) -> u64 {
        self.store.authored(&AuthoredQuery { limit: 1000, ..AuthoredQuery::default() }).unwrap().1
    }

    /// As a person does on the command line.
    fn person(&self, act: Act) {
        let actor = Actor { identity: "p".into(), principal: "p".into(), role: Role::Owner, address: None, request_id: "r".into() };
        let deed =
            Deed { actor, tool: "t".into(), digest: "d".into(), at: Timestamp::from_millis(0), approval: None, idempotency_key: None };
        self.store.apply(Change::Deed(Box::new((deed, act)))).unwrap().outcome.unwrap().done.unwrap();
    }
}

fn draft(id: &str) -> Value {
    json!({"id": id, "cases": [{"id": "a", "input": "1 + 1"}]})
}

#[test]
fn the_first_call_says_what_would_be_done_and_the_second_does_it_once() {
    let house = house();
    let said = house.call("evaluations_create", &draft("e"), &by("k")).unwrap();
    let approval = &said["approval"];
    assert_eq!(approval["expiresAt"], "2026-05-01T12:05:00Z");
    assert!(approval["summary"].as_str().unwrap().contains("\"e\"") && approval["effects"].as_array().unwrap().len() == 2, "{said}");
    assert_eq!((house.evaluations(), house.audit().len()), (0, 0), "nothing is written, no row either");
    let handle = approval["handle"].as_str().unwrap();
    let second = By { given: with(handle), ..by("k") };
    let said = house.call("evaluations_create", &draft("e"), &second).unwrap();
    assert_eq!(said, json!({"approvalRequired": false, "repeated": false, "result": {"evaluation": "e", "number": 1, "status": "draft"}}));
    let said = house.call("evaluations_create", &draft("e"), &second).unwrap_err();
    assert_eq!(said, "this approval was used already; call without approval to ask for another");
    let rows: Vec<_> = house.audit().into_iter().rev().map(|row| (row.actor, row.tool, row.outcome)).collect();
    let row = |outcome: &str| ("k".to_owned(), "evaluations_create".to_owned(), outcome.to_owned());
    assert_eq!(rows, [row("ok"), row("refused")]);
}

#[test]
fn a_handle_holds_for_its_own_project_caller_tool_arguments_and_way() {
    let house = house();
    let handle = house.asked("evaluations_create", &draft("e"), &by("k"));
    assert!(handle.len() == handle::CHARS && Redactor::patterns_only().redact(&handle) == handle);
    let given = By { given: with(&handle), ..by("k") };
    let refused = |tool: &str, arguments: &Value, by: &By| {
        house.call(tool, arguments, by).unwrap_err().starts_with("argument approval: this handle is not for this call")
    };
    assert!(refused("evaluations_create", &draft("f"), &given), "one letter of the arguments");
    assert!(refused("evaluations_create", &json!({"id": "e"}), &given));
    assert!(refused("evaluations_create", &draft("e"), &By { identity: "l", ..given.clone() }), "another caller");
    assert!(refused("evaluations_create", &draft("e"), &By { project: "q", ..given.clone() }), "another project");
    assert!(refused("test_cases_add", &json!({"evaluation": "e", "input": "x"}), &given), "another tool");
    let form = |approved| By { given: Given::Form { handle: handle.clone(), approved }, leave: Leave::AskByForm, ..by("k") };
    assert!(refused("evaluations_create", &draft("e"), &form(true)), "it was not given with a form");
    for (place, _) in handle.char_indices() {
        let altered: String =
            handle.chars().enumerate().map(|(at, own)| if at == place { if own == '0' { '1' } else { '0' } } else { own }).collect();
        assert!(refused("evaluations_create", &draft("e"), &By { given: with(&altered), ..by("k") }), "{altered}");
    }
    for none in [String::new(), handle.to_uppercase(), format!("{handle}00"), handle.chars().skip(2).collect(), "é".repeat(20)] {
        assert!(refused("evaluations_create", &draft("e"), &By { given: with(&none), ..by("k") }), "{none}");
    }
    assert_eq!((house.evaluations(), house.audit().len()), (0, 0));
    // The same arguments in another order, and `null` for what is absent, are the same.
    let same = json!({"cases": [{"input": "1 + 1", "expected": null, "id": "a"}], "name": null, "id": "e"});
    assert!(house.call("evaluations_create", &same, &given).is_ok());
}

#[test]
fn a_handle_ends_and_a_used_one_stays_used() {
    let house = house();
    let handle = house.asked("evaluations_create", &draft("e"), &by("k"));
    let late = By { given: with(&handle), at: 300_000, ..by("k") };
    let said = house.call("evaluations_create", &draft("e"), &late).unwrap_err();
    assert_eq!(said, "this approval has expired; call without approval to ask for another");
    assert!(house.call("evaluations_create", &draft("e"), &By { at: 299_999, ..late }).is_ok());
}

#[test]
fn a_form_is_answered_with_yes_or_nothing_is_done() {
    let house = house();
    let asks = By { leave: Leave::AskByForm, ..by("k") };
    let handle = house.asked("evaluations_create", &draft("e"), &asks);
    let form = |approved| By { given: Given::Form { handle: handle.clone(), approved }, ..asks.clone() };
    let said = house.call("evaluations_create", &draft("e"), &form(false)).unwrap_err();
    assert_eq!(said, "evaluations_create was not approved, so nothing was done");
    let said = house.call("evaluations_create", &draft("e"), &By { given: with(&handle), ..by("k") }).unwrap_err();
    assert!(said.starts_with("argument approval"), "who declined has not given leave: {said}");
    assert_eq!(house.evaluations(), 0);
    let said = house.call("evaluations_create", &draft("e"), &form(true)).unwrap_err();
    assert!(said.starts_with("this approval was used already"), "a no is final: {said}");
    let handle = house.asked("evaluations_create", &draft("e"), &asks);
    let yes = By { given: Given::Form { handle, approved: true }, ..asks.clone() };
    assert_eq!(house.call("evaluations_create", &draft("e"), &yes).unwrap()["result"]["number"], 1);
}

#[test]
fn a_repeat_under_a_key_is_told_what_the_first_did() {
    let house = house();
    let keyed = By { key: Some("once"), ..by("k") };
    let handle = house.asked("evaluations_create", &draft("e"), &keyed);
    let acts = By { given: with(&handle), ..keyed.clone() };
    let first = house.call("evaluations_create", &draft("e"), &acts).unwrap();
    // Whether its client lost the answer to the second call, or begins anew.
    for repeat in [&acts, &keyed] {
        let again = house.call("evaluations_create", &draft("e"), repeat).unwrap();
        assert_eq!((&again["result"], &again["repeated"]), (&first["result"], &json!(true)));
    }
    for other in [keyed.clone(), By { leave: Leave::Direct, ..keyed.clone() }] {
        let said = house.call("evaluations_create", &draft("f"), &other).unwrap_err();
        assert!(said.contains("this key was used for other arguments"), "{said}");
        assert_eq!(Redactor::patterns_only().redact(&said), said, "the sentence leaves whole");
    }
    assert!(house.call("evaluations_create", &draft("f"), &By { identity: "l", ..keyed.clone() }).is_ok(), "a key is its caller's own");
    assert!(house.call("evaluations_create", &draft("f"), &By { at: 2 * REMEMBERED_MS, ..keyed }).is_ok(), "for a day");
    assert_eq!(house.evaluations(), 1);
}

#[test]
fn where_no_leave_is_asked_for_a_write_is_in_the_trail_all_the_same() {
    let house = house();
    let direct = By { leave: Leave::Direct, ..by("k") };
    assert_eq!(house.call("evaluations_create", &draft("e"), &direct).unwrap()["evaluation"], "e", "what was done, bare");
    assert_eq!(house.call("evaluations_create", &draft("e"), &direct).unwrap_err(), "there is evaluation \"e\" already");
    assert_eq!(house.audit().len(), 2);
}

#[test]
fn evaluations_cases_and_runs() {
    let house = house();
    house.done("evaluations_create", &draft("e"));
    assert_eq!(house.done("test_cases_add", &json!({"evaluation": "e", "input": "2 + 2", "expected": "4"}))["case"], "case-2");
    let start = json!({"evaluation": "e", "environment": "dev", "max_cost_usd": 1.5});
    let refused = |tool: &str, arguments: &Value| house.call(tool, arguments, &by("k")).unwrap_err();
    assert_eq!(refused("runs_start", &start), "evaluation \"e\" is draft; only an active evaluation can be started");
    house.person(Act::SetStatus { evaluation: "e".into(), status: EvaluationStatus::Active });
    let run = house.done("runs_start", &start);
    assert_eq!((&run["status"], &run["gate"]), (&json!("pending"), &json!("not_evaluated")));
    assert!(run["runId"].as_str().unwrap().starts_with("run-"));
    // Between the question and the answer it is locked.
    let handle = house.asked("runs_start", &start, &by("k"));
    house.person(Act::SetLock { evaluation: "e".into(), reason: Some("release".into()) });
    let said = house.call("runs_start", &start, &By { given: with(&handle), ..by("k") }).unwrap_err();
    assert_eq!(said, "evaluation e is locked by p: release");
    assert_eq!(refused("test_cases_add", &json!({"evaluation": "e", "input": "x"})), said);
    assert_eq!(refused("runs_start", &json!({"evaluation": "x", "environment": "dev"})), "there is no evaluation \"x\"");
    assert!(refused("runs_start", &json!({"evaluation": "e", "environment": "live"})).starts_with("argument environment: unknown variant"));
}

#[test]
fn traces_and_connections() {
    let house = house();
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let trace = json!({"name": "n", "trace_id": "t 1", "lines": [format!("{{\"a\":\"{secret}\"}}")], "metadata": {"token": secret}, "pii_reviewed": true, "retention_days": 1});
    let made = house.done("traces_create", &trace);
    assert_eq!(made, json!({"traceId": "t 1", "uri": "runlore://traces/t%201", "expiresAt": "2026-05-02T12:00:00Z"}));
    let kept = house.store.trace("t 1", Timestamp::parse("2026-05-02T11:59:59Z").unwrap()).unwrap().unwrap();
    assert!(!format!("{kept:?}").contains(secret), "{kept:?}");
    let refused = |tool: &str, arguments: Value| house.call(tool, &arguments, &by("k")).unwrap_err();
    let without = |name: &str| trace.as_object().unwrap().clone().into_iter().filter(|(other, _)| other != name).collect::<Map<_, _>>();
    assert_eq!(refused("traces_create", Value::Object(without("pii_reviewed"))), "missing argument `pii_reviewed`");
    assert_eq!(refused("traces_create", Value::Object(without("retention_days"))), "missing argument `retention_days`");
    assert_eq!(refused("traces_create", trace), "there is trace \"t 1\" already");

    let made = house.done("connections_create", &json!({"kind": "directory", "name": "nightly", "config": {"path": "team/logs"}}));
    let id = made["connection"].as_str().unwrap();
    assert!(
        refused("connections_create", json!({"kind": "directory", "name": "nightly", "config": {"path": "x"}}))
            .starts_with("argument name")
    );
    assert_eq!(house.done("connections_sync", &json!({"connection": "nightly"}))["connection"], id);
    assert_eq!(house.done("connections_update", &json!({"connection": id, "name": "weekly", "enabled": false}))["connection"], id);
    assert_eq!(refused("connections_sync", json!({"connection": id})), "connection \"weekly\" is disabled; enable it first");
    assert!(refused("connections_update", json!({"connection": id})).starts_with("nothing is to be other"));
    assert!(refused("connections_update", json!({"connection": id, "config": {"path": "../x"}})).contains("does not only go down"));
    assert_eq!(house.done("connections_delete", &json!({"connection": "weekly"}))["connection"], id);
    assert!(refused("connections_delete", json!({"connection": "weekly"})).starts_with("argument connection: there is no connection"));
    assert!(house.store.connections().unwrap().is_empty());
}

#[test]
fn no_tool_takes_a_decision_of_a_release() {
    for entry in ENTRIES.iter().filter(|entry| entry.effect.writes()) {
        for decision in ["classification", "invokeEvalGate", "releaseDecision"] {
            let said = (entry.canonical)(Map::from_iter([(decision.to_owned(), json!("promote"))])).unwrap_err().to_string();
            assert!(said.starts_with(&format!("unknown argument `{decision}`")), "{}: {said}", entry.name);
        }
    }
}

/// Decision 28: what tools may do is this list, and what decides a release cannot be in it.
#[test]
fn no_release_writes() {
    let does =
        |entry: &Entry| if let Effect::Write { does, destructive } = entry.effect { Some((entry.name, does, destructive)) } else { None };
    let writes: Vec<_> = ENTRIES.iter().filter_map(does).collect();
    assert_eq!(
        writes,
        [
            ("evaluations_create", Does::CreateEvaluation, false),
            ("test_cases_add", Does::AddCase, false),
            ("runs_start", Does::StartRun, false),
            ("traces_create", Does::CreateTrace, false),
            ("connections_create", Does::CreateConnection, false),
            ("connections_update", Does::UpdateConnection, false),
            ("connections_delete", Does::DeleteConnection, true),
            ("connections_sync", Does::SyncConnection, false),
        ]
    );
    let of_the_api: Vec<_> = tool_api::ENTRIES.iter().filter_map(does).collect();
    assert_eq!(
        of_the_api,
        [
            ("eval.run", Does::StartRun, false),
            ("eval.testcase.add", Does::AddCase, false),
            ("trace.create", Does::CreateTrace, false),
            ("trace.span.create", Does::AddLines, false),
        ]
    );
    let baseline = Act::AcceptBaseline { run_id: String::new(), evaluation: None, note: None };
    let status = Act::SetStatus { evaluation: String::new(), status: EvaluationStatus::Active };
    assert!([baseline, status].iter().all(|act| Does::of(act).is_none()), "a tool that came up with one would fail");
    let all = ENTRIES.iter().chain(tool_api::ENTRIES);
    let words: BTreeSet<&str> = all.flat_map(|entry| entry.name.split(['_', '.'])).collect();
    for word in ["accept", "approve", "promote", "release", "merge", "upload", "push", "import"] {
        assert!(!words.contains(word), "a tool is called {word}");
    }
}

/// A tool that comes up with an act that is not its own.
struct Sly;

impl Write for Sly {
    const NAME: &'static str = "sly";
    const TITLE: &'static str = "";
    const DOC: &'static str = "";
    const SCOPES: &'static [&'static [&'static str]] = &[];
    const DOES: Does = Does::StartRun;

    type Input = Map<String, Value>;
    type Done = bool;

    fn intent(_: &Ctx, _: &Self::Input) -> Result<Intent, ToolError> {
        Ok(Intent { summary: String::new(), effects: Vec::new() })
    }

    fn act(_: &Ctx, _: Self::Input) -> Result<Act, ToolError> {
        Ok(Act::AcceptBaseline { run_id: "r".into(), evaluation: None, note: None })
    }

    fn done(_: Acted) -> Option<bool> {
        Some(true)
    }

    fn text(_: &bool) -> String {
        String::new()
    }
}

#[test]
fn an_act_that_is_not_the_tools_own_is_not_applied() {
    let house = house();
    let actor = Actor { identity: "k".into(), principal: "k".into(), role: Role::Owner, address: None, request_id: "r".into() };
    let consent = Consent { leave: Leave::Direct, given: Given::Nothing, idempotency_key: None, actor, handed: Handed::default() };
    let handed = consent.handed.clone();
    let ctx = Ctx { consent: Some(consent), ..Ctx::new(house.store.clone(), Caller::local(), Timestamp::from_millis(0)) };
    assert!(matches!(run::<Sly>(&ctx, Map::new()), Err(ToolError::Internal(_))));
    assert!(house.audit().is_empty() && !handed.is_the_stores());
    let ctx = Ctx { consent: None, ..ctx };
    assert!(matches!(run::<Sly>(&ctx, Map::new()), Err(ToolError::Internal(_))), "without consent nothing is even asked");
}

#[test]
fn a_writes_schema_fits_both_of_its_answers() {
    for entry in ENTRIES.iter().filter(|entry| entry.effect.writes()) {
        let schema = (entry.output_schema)();
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["approvalRequired"])), "{}", entry.name);
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["approval", "approvalRequired", "repeated", "result"], "{}", entry.name);
    }
}
