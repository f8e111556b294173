//! Completion over a plain store.
//!
//! Promises: every argument of every prompt and template is asked for.
//! Does not: check the order of names: the store's contract does.

use serde_json::json;

use super::*;
use crate::{
    domain::outcome::Outcome,
    mcp::trial::{House, by, plain},
    store::contract::{attempt, evaluation, log},
};

const TRANSCRIPT: &str = uri::TRANSCRIPT_TEMPLATE;

fn filled() -> House {
    let house = plain();
    log("a", 1).run("night/1 é").with([attempt("x", Outcome::Fail), attempt("y@z", Outcome::Pass)]).put(&*house.store).unwrap();
    log("b", 2).run("night-2").with([attempt("q", Outcome::Pass)]).of(evaluation("tool use")).put(&*house.store).unwrap();
    house
}

fn asked(reference: &Value, name: &str, value: &str, known: &Value) -> Value {
    json!({"ref": reference, "argument": {"name": name, "value": value}, "context": {"arguments": known}})
}

async fn values(house: &House, reference: Value, name: &str, value: &str, known: Value) -> Value {
    let result = house.local("completion/complete", asked(&reference, name, value, &known)).await;
    assert_eq!(result["resultType"], "complete");
    assert!(result.get("ttlMs").is_none());
    result["completion"].clone()
}

fn template(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

#[tokio::test]
async fn templates_are_completed() {
    let house = filled();
    let runs = json!({"values": ["night-2", "night/1 é"], "total": 2, "hasMore": false});
    for uri in [uri::RUN_TEMPLATE, TRANSCRIPT, "reeval://runs/{runId}"] {
        assert_eq!(values(&house, template(uri), "runId", "ni", json!({})).await, runs, "{uri}");
    }
    let keys = json!({"values": ["e/x#1", "e/y%40z#1"], "total": 2, "hasMore": false});
    assert_eq!(values(&house, template(TRANSCRIPT), "attempt", "", json!({"runId": "night/1 é"})).await, keys);
    let none = json!({"values": [], "total": 0, "hasMore": false});
    for known in [json!({}), Value::Null, json!({"runId": "nothing"}), json!({"runId": null})] {
        assert_eq!(values(&house, template(TRANSCRIPT), "attempt", "", known).await, none);
    }
}

#[tokio::test]
async fn every_argument_of_every_prompt_is_completed() {
    let house = filled();
    for prompt in &prompts::PROMPTS {
        for argument in prompt.arguments {
            let found = values(&house, json!({"type": "ref/prompt", "name": prompt.name}), argument.name, "", json!({})).await;
            let expected = if argument.kind == Kind::Run { json!(["night-2", "night/1 é"]) } else { json!(["e", "tool use"]) };
            assert_eq!(found["values"], expected, "{} {}", prompt.name, argument.name);
        }
    }
}

#[tokio::test]
async fn no_more_than_a_hundred_and_how_many_there_are() {
    let house = plain();
    let attempts = (0..130).map(|case| attempt(&format!("c{case:03}"), Outcome::Pass));
    log("a", 1).with(attempts).put(&*house.store).unwrap();
    let found = values(&house, template(TRANSCRIPT), "attempt", "c", json!({"runId": "Ra"})).await;
    assert_eq!((found["values"].as_array().map(Vec::len), &found["total"], &found["hasMore"]), (Some(100), &json!(130), &json!(true)));
}

#[tokio::test]
async fn what_is_unknown_is_refused_by_name() {
    let house = filled();
    let local = by(Caller::local());
    for (params, said) in [
        (json!({}), "params.argument must be an object"),
        (json!({"argument": {"name": "run"}}), "params.argument.value must be a text"),
        (json!({"argument": {"name": "run", "value": ""}}), "params.ref must be an object"),
        (asked(&json!({"type": "ref/other"}), "run", "", &Value::Null), "params.ref.type must be ref/prompt or ref/resource"),
        (asked(&template("file://x/{runId}"), "runId", "", &Value::Null), "there is no resource template \"file://x/{runId}\""),
        (asked(&template(uri::RUN_TEMPLATE), "attempt", "", &Value::Null), "has no argument \"attempt\"; it has runId"),
        (
            asked(&json!({"type": "ref/prompt", "name": "triage_failures"}), "head", "", &Value::Null),
            "\"triage_failures\" has no argument \"head\"; it has run, filter",
        ),
        (asked(&template(TRANSCRIPT), "attempt", "", &json!({"runId": 7})), "params.context.arguments.runId must be a text"),
    ] {
        let fault = house.asked(&local, "completion/complete", params.clone()).await.unwrap_err();
        assert_eq!(fault.code, -32602, "{params}");
        assert!(fault.message.contains(said), "{params}: {}", fault.message);
    }
}

#[tokio::test]
async fn a_prompt_that_is_not_there_completes_to_nothing() {
    let house = filled();
    let found = values(&house, json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"}), "arg1", "n", json!({})).await;
    assert_eq!(found, json!({"values": [], "total": 0, "hasMore": false}));
}

#[tokio::test]
async fn a_public_caller_completes_no_attempts() {
    let house = filled();
    let public = by(Caller::public());
    let fault =
        house.asked(&public, "completion/complete", asked(&template(TRANSCRIPT), "attempt", "", &json!({"runId": "night-2"}))).await;
    assert_eq!(fault.unwrap_err().code, -32602);
    assert!(house.asked(&public, "completion/complete", asked(&template(uri::RUN_TEMPLATE), "runId", "", &Value::Null)).await.is_ok());
}
