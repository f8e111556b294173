//! `failures` over a plain store: how many causes are listed, and the next call.
//!
//! Promises: every call that `next` names is made, and works.
//! Does not: check how causes are told apart (`domain::signature` and the store's contract do).

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    auth::{Caller, Role},
    domain::{attempt::Attempt, time::Timestamp},
    store::{
        contract::{attempt, log},
        model::Model,
    },
    telemetry::redaction::Redactor,
    tools::{Limits, history::transcript::Transcript},
    transcript::Packer,
};

fn ctx(store: &Arc<Model>, caller: Caller) -> Ctx {
    Ctx {
        project: "p".into(),
        store: store.clone(),
        caller,
        now: Timestamp::from_millis(0),
        limits: Limits::default(),
        style: Style::PLAIN,
        note: None,
    }
}

fn called(store: &Arc<Model>, input: Value) -> Output {
    Failures::call(&ctx(store, Caller::local()), serde_json::from_value(input).unwrap()).unwrap()
}

/// An attempt that failed for a reason of its own.
fn of(word: &str) -> Attempt {
    let mut one = attempt("1", Outcome::Fail);
    one.case = word.to_owned();
    one.checks.iter_mut().for_each(|check| check.reason = Some(format!("for {word}")));
    one
}

#[test]
fn every_cause_can_be_reached() {
    let store = Arc::new(Model::default());
    log("b", 1).with(('a'..='y').map(|letter| of(&format!("w{letter}")))).put(&*store).unwrap();
    let shown = |causes: Value| {
        let output = called(&store, json!({"run": "Rb", "causes": causes}));
        (output.causes.len(), output.causes_total, output.note)
    };
    let five = "5 more causes are not listed; raise causes, or narrow with filter.";
    assert_eq!(shown(Value::from(20)), (20, 25, Some(five.to_owned())));
    assert_eq!(shown(Value::from(24)).0, 24);
    assert_eq!(shown(Value::from(25)), (25, 25, None));
    assert_eq!(shown(Value::from(1000)), (25, 25, None));
    assert_eq!(shown(Value::from(0)), (0, 25, None));
    assert_eq!(called(&store, json!({"run": "Rb"})).causes.len(), 20);
    assert!(serde_json::from_value::<Input>(json!({"causes": 1001})).is_err());
    assert!(called(&store, json!({"run": "Rb"})).causes.iter().all(|cause| cause.outcome == Outcome::Fail));
}

#[test]
fn an_error_and_a_failure_without_a_failed_check_read_as_they_are() {
    let store = Arc::new(Model::default());
    let bare = |case, outcome| Attempt { checks: vec![], error: None, limit: Some("time".into()), ..attempt(case, outcome) };
    log("a", 1).with([bare("1", Outcome::Fail), bare("2", Outcome::InfraError)]).put(&*store).unwrap();
    let output = called(&store, json!({}));
    let outcomes: Vec<Outcome> = output.causes.iter().map(|cause| cause.outcome).collect();
    assert!(outcomes.contains(&Outcome::Fail) && outcomes.contains(&Outcome::InfraError) && outcomes.len() == 2);
    let text = Failures::text(&output, &Style::PLAIN);
    assert!(text.contains("(error)") && text.contains("(no failed check)"), "{text}");
}

#[test]
fn the_next_call_is_one_that_works() {
    let store = Arc::new(Model::default());
    let redactor = Redactor::patterns_only();
    let mut packer = Packer::new(&redactor);
    packer.line("{\"role\":\"user\"}");
    let with = Attempt { transcript: packer.finish(), ..attempt("2", Outcome::Fail) };
    log("none", 1).with([attempt("1", Outcome::Fail)]).put(&*store).unwrap();
    log("some", 2).with([attempt("1", Outcome::Fail), with]).put(&*store).unwrap();
    let next = |run: &str, caller| {
        let output = Failures::call(&ctx(&store, caller), serde_json::from_value(json!({"run": run})).unwrap()).unwrap();
        output.next.map(|next| (next.tool, json!(next.arguments))).unwrap()
    };
    assert_eq!(next("Rnone", Caller::local()), ("history".to_owned(), json!({"filter": "e"})));
    let (tool, arguments) = next("Rsome", Caller::local());
    assert_eq!((tool.as_str(), &arguments), ("transcript", &json!({"run": "Rsome", "attempt": "e/2#1"})));
    assert!(Transcript::call(&ctx(&store, Caller::local()), serde_json::from_value(arguments).unwrap()).is_ok());
    assert_eq!(next("Rsome", Caller::scoped("a", Role::Viewer, &["eval:read"])).0, "history");
}
