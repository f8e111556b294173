//! `compare` over random histories against a slow plain computation, and what several arms, pages and margins do to it.
//!
//! Promises: the plain computation shares nothing with the tool but the store.
//! Does not: test the formulas (`stats` and `domain::evidence` do).

use std::{collections::BTreeMap, sync::Arc};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    auth::Caller,
    domain::{attempt::Attempt, outcome::Outcome, time::Timestamp},
    store::{
        contract::{evaluation, log},
        model::Model,
    },
    tools::{Ctx, Limits, find},
};

/// Of each evaluation, how each case's attempts ended.
type Side = Vec<Vec<Vec<Outcome>>>;

fn put(store: &Model, id: &str, at: i64, side: &Side) {
    let mut log = log(id, at);
    log.header.evaluations = (0..side.len()).map(|number| evaluation(&format!("e{number}"))).collect();
    for (number, cases) in side.iter().enumerate() {
        for (case, outcomes) in cases.iter().enumerate() {
            let tries = outcomes.iter().zip(1..).map(|(outcome, epoch)| Attempt {
                evaluation: format!("e{number}"),
                epoch,
                ..crate::store::contract::attempt(&format!("c{case}"), *outcome)
            });
            log = log.with(tries);
        }
    }
    log.put(store).unwrap();
}

fn ask(store: &Arc<Model>, rows: usize, tool: &str, arguments: &Value) -> Value {
    let (caller, now) = (Caller::local(), Timestamp::from_millis(0));
    let ctx = Ctx { limits: Limits { rows, ..Limits::default() }, ..Ctx::new(store.clone(), caller, now) };
    let entry = find(tool).unwrap();
    let answer = (entry.run)(&ctx, (entry.canonical)(arguments.as_object().cloned().unwrap()).unwrap()).unwrap();
    serde_json::from_str(answer.json.get()).unwrap()
}

/// A case's rate; none where nothing was counted.
fn rate(outcomes: &[Outcome]) -> Option<f64> {
    let of = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count() as f64;
    let counted = of(Outcome::Pass) + of(Outcome::Fail);
    (counted > 0.0).then(|| of(Outcome::Pass) / counted)
}

/// What a row should say: the difference, p, and how many cases changed.
fn plainly(head: &[Vec<Outcome>], base: &[Vec<Outcome>]) -> Option<(f64, f64, usize)> {
    let differences: Vec<f64> = head.iter().zip(base).filter_map(|(head, base)| Some(rate(head)? - rate(base)?)).collect();
    if differences.is_empty() {
        return None;
    }
    let sum: f64 = differences.iter().sum();
    let signed = |way: u32| differences.iter().enumerate().map(|(at, d)| if way >> at & 1 == 1 { *d } else { -d }).sum::<f64>().abs();
    let ways = 1_u32 << differences.len();
    let extreme = (0..ways).filter(|way| signed(*way) >= sum.abs() - 1e-9).count();
    let changed = differences.iter().filter(|d| d.abs() > 1e-9).count();
    Some((sum / differences.len() as f64, extreme as f64 / f64::from(ways), changed))
}

/// Benjamini and Hochberg to the letter: the least over all p at least as large of p times their number over its rank.
fn adjusted(p: f64, all: &[f64]) -> f64 {
    let rank = |of: f64| all.iter().filter(|other| **other <= of).count() as f64;
    all.iter().filter(|other| **other >= p).map(|other| other * all.len() as f64 / rank(*other)).fold(1.0, f64::min)
}

fn close(got: &Value, want: f64) -> bool {
    // Shown to four decimals or digits.
    got.as_f64().is_some_and(|got| (got - want).abs() <= 6e-5 + want.abs() * 6e-4)
}

fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    let one = prop_oneof![5 => Just(Outcome::Pass), 5 => Just(Outcome::Fail), 1 => Just(Outcome::InfraError)];
    proptest::collection::vec(one, 1..3)
}

fn side(evaluations: usize, cases: usize) -> impl Strategy<Value = Side> {
    proptest::collection::vec(proptest::collection::vec(outcomes(), cases), evaluations)
}

/// Two sides of the same evaluations and cases. One of them may have lost everything, so that something is found now and then.
fn both() -> impl Strategy<Value = (Side, Side)> {
    (2..5_usize, 7..10_usize).prop_flat_map(|(evaluations, cases)| {
        (side(evaluations, cases), side(evaluations, cases), any::<bool>()).prop_map(|(mut head, mut base, lost)| {
            if lost {
                head[0].iter_mut().for_each(|outcomes| *outcomes = vec![Outcome::Fail]);
                base[0].iter_mut().for_each(|outcomes| *outcomes = vec![Outcome::Pass]);
            }
            (head, base)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn rows_are_what_a_slow_plain_computation_says((head, base) in both()) {
        let store = Arc::new(Model::default());
        put(&store, "a", 1, &base);
        put(&store, "b", 2, &head);
        let answer = ask(&store, 500, "compare", &json!({"all": true, "margin": 0.1, "base": "Ra"}));
        let wanted: BTreeMap<String, Option<(f64, f64, usize)>> =
            head.iter().zip(&base).enumerate().map(|(number, (head, base))| (format!("e{number}"), plainly(head, base))).collect();
        let family: Vec<f64> = wanted.values().flatten().filter(|(.., changed)| *changed >= 6).map(|(_, p, _)| *p).collect();
        prop_assert_eq!(answer["family"]["size"].as_u64().unwrap_or(0), family.len() as u64);
        for row in answer["rows"].as_array().unwrap() {
            let (found, status) = (&row["evidence"], row["status"].as_str().unwrap());
            let Some((difference, p, changed)) = wanted[row["id"].as_str().unwrap()] else {
                prop_assert_eq!(&found["p"], &Value::Null);
                continue;
            };
            prop_assert!(close(&found["difference"], difference) && close(&found["p"], p), "{} {} {}", found, difference, p);
            prop_assert_eq!(found["adjustedP"].is_f64(), changed >= 6);
            let sure = changed >= 6 && adjusted(p, &family) < 0.05;
            if changed >= 6 {
                prop_assert!(close(&found["adjustedP"], adjusted(p, &family)), "{} {}", found, adjusted(p, &family));
            }
            prop_assert!(sure || !matches!(status, "regressed" | "fixed"), "{}", row);
            prop_assert_eq!(found["verdict"] == "confirmed", matches!(status, "regressed" | "fixed"));
        }
        // The suite is the mean over all cases, every evaluation together.
        let all: Vec<f64> = head.concat().iter().zip(&base.concat()).filter_map(|(head, base)| Some(rate(head)? - rate(base)?)).collect();
        prop_assert_eq!(answer["suite"]["n"].as_u64(), Some(all.len() as u64));
        prop_assert!(close(&answer["suite"]["difference"], all.iter().sum::<f64>() / all.len() as f64));
    }

    #[test]
    fn every_number_of_every_page_is_verified((head, base) in both()) {
        let store = Arc::new(Model::default());
        put(&store, "a", 1, &base);
        put(&store, "b", 2, &head);
        for arguments in [json!({"base": "Ra", "by": "case"}), json!({"since": "1970-01-01T00:00:01Z", "margin": 0.05}), json!({"filter": "e1"})] {
            let (mut cursor, mut seen) = (Value::Null, 0);
            loop {
                let mut asked = arguments.clone();
                asked["cursor"] = cursor;
                let page = ask(&store, 3, "compare", &asked);
                let rows = page["rows"].as_array().unwrap().iter().map(|row| &row["evidence"]);
                for found in rows.chain([&page["suite"]]).filter(|found| found.is_object()) {
                    let again = ask(&store, 3, "verify", &json!({"handle": found["handle"]}));
                    prop_assert_eq!(&again["equal"], &json!(true), "{}", again);
                    prop_assert_eq!(&again["then"]["p"], &found["p"]);
                    seen += 1;
                }
                cursor = page["nextCursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            prop_assert!(seen > 0);
        }
    }
}

/// Twelve cases of which the first eight are lost, in groups of `size`.
fn grouped(size: usize) -> (Arc<Model>, Value) {
    let store = Arc::new(Model::default());
    for (id, at, outcome) in [("a", 1, Outcome::Pass), ("b", 2, Outcome::Fail)] {
        let tries = (0..12).map(|case| Attempt {
            group: (id == "a").then(|| format!("g{}", case / size)),
            ..crate::store::contract::attempt(&format!("{case:02}"), if case < 8 { outcome } else { Outcome::Pass })
        });
        log(id, at).with(tries).put(&*store).unwrap();
    }
    let answer = ask(&store, 500, "compare", &json!({}));
    (store, answer)
}

#[test]
fn cases_in_groups_are_weighed_by_group_and_verified_so() {
    // Without groups eight of twelve lost are p = 2/256; in three groups of four they are two observations.
    let (store, answer) = grouped(4);
    let found = &answer["rows"][0]["evidence"];
    assert_eq!(
        (&found["n"], &found["groups"], &found["p"], &found["verdict"]),
        (&json!(12), &json!(3), &json!(0.5), &json!("inconclusive"))
    );
    assert_eq!((&found["method"], &answer["rows"][0]["status"]), (&json!("group_sign_flip"), &json!("drift")));
    assert_eq!((&answer["suite"]["groups"], &answer["suite"]["p"], &answer["family"]), (&json!(3), &json!(0.5), &Value::Null));
    for found in [found, &answer["suite"]] {
        assert_eq!(ask(&store, 3, "verify", &json!({"handle": found["handle"]}))["equal"], json!(true));
    }
    // Another import that knows no groups gives another number, and verify says so.
    let bare = (0..12).map(|case| crate::store::contract::attempt(&format!("{case:02}"), Outcome::Pass));
    log("a", 1).with(bare).file("a.json", "again").put(&*store).unwrap();
    let again = ask(&store, 3, "verify", &json!({"handle": found["handle"]}));
    assert_eq!((&again["equal"], &again["now"]["p"]), (&json!(false), &json!(0.007_812)));
    let (_, answer) = grouped(1);
    assert_eq!((&answer["rows"][0]["evidence"]["groups"], &answer["rows"][0]["status"]), (&Value::Null, &json!("regressed")));
}

#[test]
fn a_suite_that_is_not_there_says_why() {
    let store = Arc::new(Model::default());
    for (id, at) in [("a", 1), ("b", 2)] {
        let of = |arm: &str| Attempt { arm: arm.into(), ..crate::store::contract::attempt("1", Outcome::Pass) };
        log(id, at).with([of("m"), of("n")]).put(&*store).unwrap();
    }
    let why = |answer: &Value| answer["suiteReason"].as_str().map(|why| why.split(':').next().unwrap().to_owned());
    let answer = ask(&store, 500, "compare", &json!({}));
    assert_eq!((&answer["suite"], why(&answer).as_deref()), (&Value::Null, Some("several arms are compared, which share their cases")));
    log("c", 3).with([crate::store::contract::attempt("1", Outcome::InfraError)]).put(&*store).unwrap();
    let answer = ask(&store, 500, "compare", &json!({"base": "Ra", "filter": "e", "head": "Rc"}));
    assert!(answer["suite"].is_null() && why(&answer).is_some(), "{answer}");
    let (_, whole) = grouped(1);
    assert!(whole["suiteReason"].is_null() && whole["suite"].is_object());
}

#[test]
fn a_suite_leaves_out_what_may_not_be_compared() {
    let store = Arc::new(Model::default());
    let passed: Side = vec![vec![vec![Outcome::Pass]; 8]; 2];
    put(&store, "a", 1, &passed);
    let mut head = log("b", 2);
    head.header.evaluations = ["e0", "e1"].map(evaluation).into();
    let judged = |judge: &str| BTreeMap::from([("judge_model".to_owned(), judge.to_owned())]);
    head.header.evaluations[0].settings = judged("new");
    for number in 0..2 {
        let tries = (0..8).map(|case| Attempt {
            evaluation: format!("e{number}"),
            ..crate::store::contract::attempt(&format!("c{case}"), Outcome::Fail)
        });
        head = head.with(tries);
    }
    head.put(&*store).unwrap();
    // The base does not say who judged, so nothing is known to have changed.
    let answer = ask(&store, 500, "compare", &json!({}));
    assert_eq!((&answer["suite"]["n"], &answer["statuses"]["regressed"]), (&json!(16), &json!(2)));
    let mut base = log("c", 3);
    base.header.evaluations = head.header.evaluations.clone();
    base.header.evaluations[0].settings = judged("old");
    for number in 0..2 {
        let tries = (0..8).map(|case| Attempt {
            evaluation: format!("e{number}"),
            ..crate::store::contract::attempt(&format!("c{case}"), Outcome::Pass)
        });
        base = base.with(tries);
    }
    base.put(&*store).unwrap();
    let answer = ask(&store, 500, "compare", &json!({"head": "Rc", "base": "Rb"}));
    let reason = "1 of 2 evaluations left out: not comparable";
    assert_eq!(
        (&answer["suite"]["n"], &answer["suite"]["verdict"], &answer["suite"]["reason"]),
        (&json!(8), &json!("confirmed"), &json!(reason))
    );
    let words: Vec<(&Value, &Value)> = answer["rows"].as_array().unwrap().iter().map(|row| (&row["id"], &row["status"])).collect();
    assert_eq!(words, [(&json!("e0"), &json!("drift")), (&json!("e1"), &json!("fixed"))]);
    assert_eq!(answer["rows"][0]["evidence"]["reason"], "changed since the base: judge_model new -> old");
    // By case too, where a verdict alone says what turned.
    let answer = ask(&store, 500, "compare", &json!({"head": "Rc", "base": "Rb", "by": "case", "filter": "e0"}));
    assert_eq!((&answer["statuses"]["fixed"], &answer["rows"][0]["evidence"]["verdict"]), (&json!(8), &json!("not_comparable")));
}
