//! Scores held against a calculation by hand.
//!
//! Promises: every number that is expected here was worked out from the outcomes that stand beside it.
//! Does not: know SQL; the store's contract holds the adapters to the plain model that is used here.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    auth::{Caller, Role},
    clock,
    domain::{
        attempt::Attempt,
        outcome::Outcome::{self, Fail, InfraError, Pass, Unscored},
    },
    store::{
        Change, Kind, Store as _,
        contract::{Log, arm, attempt, evaluation, log},
        model::Model,
        workspace::{Act, Actor, Deed},
    },
    tools::tool_api::find,
};

fn ask(store: &Arc<Model>, tool: &str, arguments: &Value) -> Result<Value, String> {
    let entry = find(tool).unwrap();
    let ctx = Ctx::new(store.clone(), Caller::scoped("k", Role::Viewer, &["eval:read", "traces:read"]), clock::now());
    let canonical = (entry.canonical)(arguments.as_object().cloned().unwrap());
    let answer = canonical.and_then(|arguments| (entry.run)(&ctx, arguments)).map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(answer.json.get()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), json, "the text is the same for people");
    assert!(answer.text.lines().count() > 1 || answer.text == "[]", "{}", answer.text);
    Ok(json)
}

/// `count` attempts of each outcome, at cases of their own.
fn many(outcomes: &[(Outcome, u32)]) -> Vec<Attempt> {
    let all = outcomes.iter().flat_map(|&(outcome, count)| (0..count).map(move |_| outcome));
    all.enumerate().map(|(at, outcome)| attempt(&format!("c{at}"), outcome)).collect()
}

fn at(mut log: Log, environment: &str) -> Log {
    log.header.arms.iter_mut().for_each(|arm| drop(arm.factors.insert("environment".to_owned(), environment.to_owned())));
    log
}

/// One evaluation over the days: 90.0 in production, 95.0, a scratch run of 100, a failed one, 75.0 by two arms, one that counted nothing.
fn history() -> Arc<Model> {
    let store = Arc::new(Model::default());
    let put = |log: Log| log.put(&*store).map(drop).unwrap();
    put(at(log("a", 1).with(many(&[(Pass, 9), (Fail, 1)])), "prod"));
    put(at(log("b", 2).with(many(&[(Pass, 19), (Fail, 1), (InfraError, 5)])), "staging"));
    put(Log { kind: Kind::Scratch, ..at(log("s", 3).with(many(&[(Pass, 4)])), "prod") });
    let mut failed = at(log("f", 4).with(many(&[(Pass, 4)])), "prod");
    failed.header.status = RunStatus::Failed;
    put(failed);
    let mut two = log("c", 5).with(many(&[(Pass, 7), (Fail, 3), (InfraError, 2), (Unscored, 1)]));
    two.header.arms.push(arm("n"));
    let of_n = |mut one: Attempt| {
        one.arm = "n".into();
        one
    };
    put(two.with(many(&[(Pass, 2)]).into_iter().map(of_n)));
    put(log("z", 6).with(many(&[(InfraError, 3)])));
    // Another one, newer, whose id begins like the first's.
    put(log("other", 9).with(many(&[(Pass, 1)])).of(evaluation("e2")));
    store
}

fn number(store: &Arc<Model>, id: &str) -> Value {
    let listed = ask(store, "eval.list", &json!({})).unwrap();
    listed.as_array().unwrap().iter().find(|row| row["key"] == id).unwrap()["id"].clone()
}

fn accept(store: &Arc<Model>, run_id: &str, evaluation: Option<&str>) {
    let actor = Actor { identity: "o".into(), principal: "o".into(), role: Role::Owner, address: None, request_id: "r".into() };
    let (at, tool, digest) = (clock::now(), "baseline accept".to_owned(), "d".to_owned());
    let deed = Deed { actor, tool, digest, at, approval: None, idempotency_key: None };
    let act = Act::AcceptBaseline { run_id: run_id.to_owned(), evaluation: evaluation.map(str::to_owned), note: None };
    let applied = store.apply(Change::Deed(Box::new((deed, act)))).unwrap();
    applied.outcome.unwrap().done.unwrap();
}

#[test]
fn the_newest_counted_run_against_each_baseline() {
    let store = history();
    let id = number(&store, "e");
    let latest = |baseline: &str| ask(&store, "eval.quality.latest", &json!({"evaluationId": id, "baseline": baseline})).unwrap();
    let said = latest("previous");
    // 7 + 2 of 10 + 2 counted: 9 of 12. Two errored and one unscored attempt are in no score.
    assert_eq!(
        (&said["evaluationId"], &said["evaluationRunId"], &said["score"], &said["total"]),
        (&id, &json!("Rc"), &json!(75.0), &json!(12))
    );
    assert_eq!(said["counts"], json!({"passed": 9, "failed": 3, "infra": 2, "unscored": 1, "missing": 0}));
    assert_eq!(said["createdAt"], "1970-01-01T00:00:05Z");
    // 19 of 20.
    assert_eq!((&said["baselineRunId"], &said["baselineScore"]), (&json!("Rb"), &json!(95.0)));
    assert_eq!((&said["regressionDelta"], &said["regressionDetected"], said.get("baselineMissing")), (&json!(-20.0), &json!(true), None));
    // 9 of 10; the newer scratch and failed ones are no runs of production to be held against.
    let said = latest("production");
    assert_eq!((&said["baselineRunId"], &said["baselineScore"], &said["regressionDelta"]), (&json!("Ra"), &json!(90.0), &json!(-15.0)));
    let said = latest("published");
    assert_eq!((&said["baselineMissing"], &said["baselineScore"], &said["regressionDelta"]), (&json!(true), &Value::Null, &Value::Null));
    assert_eq!((&said["regressionDetected"], said.get("baselineRunId"), &said["score"]), (&json!(false), None, &json!(75.0)));
}

#[test]
fn the_published_baseline_is_the_accepted_one_and_the_evaluations_own_comes_first() {
    let store = history();
    let id = number(&store, "e");
    let latest = || ask(&store, "eval.quality.latest", &json!({"evaluationId": id})).unwrap();
    let of = |said: &Value| (said["baseline"].clone(), said["baselineRunId"].clone(), said["baselineScore"].clone());
    // The project's, in which nothing of this evaluation was counted.
    accept(&store, "Rother", None);
    assert_eq!((&latest()["baselineMissing"], &latest()["score"]), (&json!(true), &json!(75.0)));
    accept(&store, "Ra", None);
    assert_eq!(of(&latest()), (json!("published"), json!("Ra"), json!(90.0)));
    accept(&store, "Rb", Some("e"));
    assert_eq!(of(&latest()), (json!("published"), json!("Rb"), json!(95.0)));
    accept(&store, "Rc", Some("e"));
    let said = latest();
    assert_eq!((of(&said).1, &said["regressionDelta"], &said["regressionDetected"]), (json!("Rc"), &json!(0.0), &json!(false)));
}

#[test]
fn without_a_counted_run_there_is_no_score_and_a_reason() {
    let store = Arc::new(Model::default());
    log("a", 1).with(many(&[(InfraError, 2)])).put(&*store).unwrap();
    let id = number(&store, "e");
    let said = ask(&store, "eval.quality.latest", &json!({"evaluationId": id})).unwrap();
    let message = "no completed recorded run has a counted attempt of this evaluation yet";
    assert_eq!(said, json!({"evaluationId": id, "score": null, "message": message}));
    let refused = ask(&store, "eval.quality.latest", &json!({"evaluationId": 99})).unwrap_err();
    assert_eq!(refused, "argument evaluationId: there is no evaluation 99");
    for wrong in [
        json!({}),
        json!({"evaluationId": 0}),
        json!({"evaluationId": "1"}),
        json!({"evaluationId": 1, "baseline": "x"}),
        json!({"evaluationId": 1, "y": 1}),
    ] {
        assert!(ask(&store, "eval.quality.latest", &wrong).is_err(), "{wrong}");
    }
}

#[test]
fn scores_have_one_decimal_and_a_fall_of_five_is_a_regression() {
    let counts = |passed, failed| Counts { passed, failed, infra: 7, unscored: 7, missing: 7 };
    for (passed, failed, shown) in
        [(3, 1, 75.0), (1, 2, 33.3), (2, 1, 66.7), (1, 7, 12.5), (1, 15, 6.3), (0, 4, 0.0), (4, 0, 100.0), (999, 1, 99.9)]
    {
        assert_eq!(Score::of(counts(passed, failed)).map(Score::shown), Some(shown), "{passed} of {}", passed + failed);
    }
    assert_eq!(Score::of(counts(0, 0)), None);
    let scored =
        |passed, failed| Scored { run_id: "r".into(), counts: counts(passed, failed), score: Score::of(counts(passed, failed)).unwrap() };
    let fell = |latest, baseline| {
        let found = against(Baseline::Previous, &latest, Timestamp::from_millis(0), Some(baseline));
        (found.regression_delta.unwrap(), found.regression_detected)
    };
    // 80.0 to 75.0, to 75.3, and up.
    assert_eq!(fell(scored(3, 1), scored(20, 5)), (-5.0, true));
    assert_eq!(fell(scored(301, 99), scored(20, 5)), (-4.7, false));
    assert_eq!(fell(scored(1, 0), scored(20, 5)), (20.0, false));
    // 0.1 + 0.2: tenths are whole numbers here.
    assert_eq!(fell(scored(3, 997), scored(1, 999)), (0.2, false));
}

#[test]
fn one_evaluation_with_its_runs_newest_first() {
    let store = history();
    let id = number(&store, "e");
    let said = ask(&store, "eval.get", &json!({"evaluationId": id})).unwrap();
    assert_eq!(
        (&said["id"], &said["key"], &said["name"], &said["status"], &said["testCases"]),
        (&id, &json!("e"), &json!("e"), &json!("active"), &json!([]))
    );
    let runs: Vec<(&str, &Value)> =
        said["runs"].as_array().unwrap().iter().map(|run| (run["id"].as_str().unwrap(), &run["score"])).collect();
    let null = Value::Null;
    assert_eq!(
        runs,
        [("Rz", &null), ("Rc", &json!(75.0)), ("Rf", &null), ("Rs", &json!(100.0)), ("Rb", &json!(95.0)), ("Ra", &json!(90.0))]
    );
    assert_eq!(
        (&said["runs"][1]["total"], &said["runs"][1]["arms"], &said["runs"][3]["kind"]),
        (&json!(12), &json!(["m", "n"]), &json!("scratch"))
    );
    let listed = ask(&store, "eval.list", &json!({})).unwrap();
    let keys: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["e2", "e"], "newest first");
    assert_eq!(ask(&store, "eval.list", &json!({"limit": 1, "offset": 1})).unwrap()[0]["key"], "e");
    assert_eq!(ask(&store, "eval.list", &json!({"status": "draft"})).unwrap(), json!([]));
    assert!(ask(&store, "eval.list", &json!({"limit": 101})).is_err() && ask(&store, "eval.get", &json!({})).is_err());
}
