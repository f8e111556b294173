//! The list of an evaluation's runs, through its entry: the document's schemas, what is refused, and pages over random histories.
//!
//! Promises: every answer that is looked at is held against the document's output schema.
//! Does not: know SQL; the store's contract holds the adapters to the plain model that is used here.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    auth::Caller,
    clock,
    domain::outcome::Outcome::{Fail, Pass, Unscored},
    store::{
        Change, Store as _,
        contract::{Log, arm, attempt, evaluation, log},
        model::Model,
    },
    tools::find,
};

const NAME: &str = "list_eval_run_projections";

fn ask_as(project: &str, store: &Arc<Model>, arguments: &Value) -> Result<Value, String> {
    let note = Some("Not all is indexed.".to_owned());
    let ctx = Ctx { project: project.into(), note, ..Ctx::new(store.clone(), Caller::local(), clock::now()) };
    let entry = find(NAME).unwrap();
    let canonical = (entry.canonical)(arguments.as_object().cloned().unwrap());
    let answer = canonical.and_then(|arguments| (entry.run)(&ctx, arguments)).map_err(|error| error.to_string())?;
    assert!(answer.text.contains("Not all is indexed."), "the note is in the text, where the result has no place for it");
    let answer: Value = serde_json::from_str(answer.json.get()).unwrap();
    assert_eq!(faults(&Value::Object((entry.output_schema)()), &answer, "$"), Vec::<String>::new(), "{answer:#}");
    Ok(answer)
}

fn ask(store: &Arc<Model>, arguments: &Value) -> Result<Value, String> {
    ask_as("p", store, arguments)
}

/// The two schemas as they stand in the document.
fn documents() -> Vec<Value> {
    let text = include_str!("../../../../tests/fixtures/projections/schemas.md");
    let blocks = text.split("```json").skip(1).map(|block| block.split_once('\n').unwrap().1.split_once("```").unwrap().0);
    blocks.map(|block| serde_json::from_str(block).unwrap()).collect()
}

/// What is wrong with `value` under the words of JSON Schema that the document uses; another word is a fault.
fn faults(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let holds = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        _ => false,
    };
    let of_word = |(word, said): (&String, &Value)| -> Vec<String> {
        let text = value.as_str().map(|text| text.chars().count() as u64);
        let good = match word.as_str() {
            "$schema" | "description" => true,
            "type" => said.as_array().map_or_else(|| holds(said), |kinds| kinds.iter().any(holds)),
            "const" => value == said,
            "enum" => said.as_array().unwrap().contains(value),
            "minLength" => text.is_none_or(|length| length >= said.as_u64().unwrap()),
            "maxLength" => text.is_none_or(|length| length <= said.as_u64().unwrap()),
            "maximum" => value.as_i64().is_none_or(|number| number <= said.as_i64().unwrap()),
            "exclusiveMinimum" => value.as_i64().is_none_or(|number| number > said.as_i64().unwrap()),
            "anyOf" => said.as_array().unwrap().iter().any(|one| faults(one, value, at).is_empty()),
            "required" => said.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "items" => return value.as_array().into_iter().flatten().flat_map(|item| faults(said, item, &format!("{at}[]"))).collect(),
            "properties" => {
                let there = said.as_object().unwrap().iter().filter_map(|(name, one)| Some((name, one, value.get(name)?)));
                return there.flat_map(|(name, one, inner)| faults(one, inner, &format!("{at}.{name}"))).collect();
            }
            "additionalProperties" => {
                let known = |name: &String| schema["properties"].get(name).is_some();
                said.is_object() || value.as_object().is_none_or(|members| members.keys().all(known))
            }
            _ => false,
        };
        if good { Vec::new() } else { vec![format!("{at}: {word}")] }
    };
    schema.as_object().unwrap().iter().flat_map(of_word).collect()
}

#[test]
fn the_schemas_are_the_documents() {
    let entry = find(NAME).unwrap();
    assert_eq!(documents(), [Value::Object((entry.input_schema)()), Value::Object((entry.output_schema)())]);
    // The struct that decodes takes what the schema names, and no more.
    let ours = crate::tools::arguments::input_schema::<Input>();
    let names = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&documents()[0]), names(&Value::Object(ours.clone())));
    assert_eq!(ours["required"], documents()[0]["required"]);
}

#[test]
fn the_schema_and_the_decoder_take_the_same() {
    let (schema, store) = (documents().remove(0), Arc::new(Model::default()));
    log("a", 1).put(&*store).unwrap();
    let long = "x".repeat(129);
    for (arguments, good) in [
        (json!({"eval_id": "e"}), true),
        (json!({"eval_id": "e", "cursor": null, "sort_by": null, "sort_order": null}), true),
        (json!({"eval_id": "e", "limit": 1, "sort_by": "status", "sort_order": "asc", "project_reference": "p"}), true),
        (json!({"eval_id": "e", "limit": 100, "sort_by": "created_at", "sort_order": "desc"}), true),
        (json!({}), false),
        (json!({"eval_id": ""}), false),
        (json!({"eval_id": 7}), false),
        (json!({"eval_id": "e", "limit": 0}), false),
        (json!({"eval_id": "e", "limit": 101}), false),
        (json!({"eval_id": "e", "limit": "1"}), false),
        (json!({"eval_id": "e", "limit": 1.5}), false),
        (json!({"eval_id": "e", "cursor": ""}), false),
        (json!({"eval_id": "e", "cursor": long}), false),
        (json!({"eval_id": "e", "sort_by": "number"}), false),
        (json!({"eval_id": "e", "sort_order": "DESC"}), false),
        (json!({"eval_id": "e", "project_reference": ""}), false),
        (json!({"eval_id": "e", "evalId": "e"}), false),
    ] {
        assert_eq!(faults(&schema, &arguments, "$").is_empty(), good, "{arguments}");
        assert_eq!(ask(&store, &arguments).is_ok(), good, "{arguments}: {:?}", ask(&store, &arguments));
    }
}

fn with_status(id: &str, at: i64, status: RunStatus) -> Log {
    let mut log = log(id, at).with([attempt("1", Pass), attempt("2", Fail)]);
    log.header.status = status;
    log
}

/// Runs of every kind: ended, failed, under way, of several arms, with nothing counted.
fn filled() -> Arc<Model> {
    let store = Arc::new(Model::default());
    with_status("a", 1, RunStatus::Completed).put(&*store).unwrap();
    let mut failed = with_status("b", 2, RunStatus::Failed);
    failed.header.error = Some("the provider is out of money".into());
    failed.header.report_path = Some("reports/b.html".into());
    failed.header.evaluations[0].source = Some(crate::domain::log::Source { file: "evals/e.py".into(), export: "e".into() });
    failed.put(&*store).unwrap();
    let mut begun = with_status("c", 3, RunStatus::Running);
    (begun.header.completed_at, begun.header.metadata) = (None, [("branch".to_owned(), json!({"name": "main"}))].into());
    begun.attempts.clear();
    begun.put(&*store).unwrap();
    let mut several = log("d", 4).with([attempt("1", Pass), attempt("1", Unscored)]);
    let role = |name: &str, role: &str| crate::domain::log::ArmInfo { role: Some(role.into()), ..arm(name) };
    several.header.arms = vec![role("base", "control"), role("z", "variant"), role("y", "variant")];
    for name in ["base", "z", "y"] {
        several.attempts.push(Ok(crate::domain::attempt::Attempt { arm: name.into(), ..attempt("2", Pass) }));
    }
    several.put(&*store).unwrap();
    log("f", 5).with([attempt("1", Unscored)]).put(&*store).unwrap();
    log("other", 6).with([attempt("1", Pass)]).of(evaluation("other")).put(&*store).unwrap();
    store
}

#[test]
fn an_answer_and_the_refusals() {
    let store = filled();
    let mut first = ask(&store, &json!({"eval_id": "e", "limit": 4})).unwrap();
    let next = first["page_info"]["next"].take();
    assert!(next.as_str().is_some_and(|word| word.len() < 64), "{next}");
    let mut last = ask(&store, &json!({"eval_id": "e", "limit": 4, "cursor": next})).unwrap();
    assert_eq!(last["page_info"]["self"].take(), next);
    assert!(last["page_info"]["prev"].take().is_string());
    let refused = |arguments: Value| ask(&store, &arguments).unwrap_err();
    let foreign = ask(&filled(), &json!({"eval_id": "e", "limit": 1})).unwrap()["page_info"]["next"].clone();
    let refusals: Vec<String> = [
        json!({"eval_id": "nothing\u{1b}[31m"}),
        json!({"eval_id": "e", "cursor": "AQ"}),
        json!({"eval_id": "e", "cursor": foreign}),
        json!({"eval_id": "e", "cursor": next, "sort_by": "status"}),
        json!({"eval_id": "e", "cursor": ""}),
        json!({"eval_id": "e", "cursor": "x".repeat(129)}),
        json!({"eval_id": "e", "limit": 101}),
        json!({"eval_id": "e", "sort_by": "name"}),
        json!({"eval_id": "e", "page": 1}),
        json!({"limit": 1}),
    ]
    .into_iter()
    .map(refused)
    .collect();
    let all = [&json!([first, last]), &json!(refusals)].map(|part| serde_json::to_string_pretty(part).unwrap());
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_cursor_is_refused_wherever_it_does_not_belong() {
    let store = filled();
    let own = json!({"eval_id": "e", "limit": 2});
    let word = ask(&store, &own).unwrap()["page_info"]["next"].clone();
    let said = |project: &str, store: &Arc<Model>, more: Value| {
        let mut arguments = own.as_object().cloned().unwrap();
        arguments.insert("cursor".into(), word.clone());
        arguments.extend(more.as_object().cloned().unwrap());
        ask_as(project, store, &arguments.into())
    };
    // The limit and the words of what is so anyway are no part of the list.
    for same in
        [json!({}), json!({"limit": 100}), json!({"sort_by": "created_at", "sort_order": "desc"}), json!({"project_reference": "p"})]
    {
        assert!(said("p", &store, same.clone()).is_ok(), "{same}");
    }
    let refused = [
        said("p", &store, json!({"eval_id": "other"})),
        said("p", &store, json!({"sort_by": "status"})),
        said("p", &store, json!({"sort_order": "asc"})),
        said("q", &store, json!({})),
        said("p", &filled(), json!({})),
        said("p", &store, json!({"cursor": "A".repeat(47)})),
    ];
    for answer in refused {
        assert_eq!(answer.unwrap_err(), invalid().to_string());
    }
}

/// Follows `page_info[word]` from `arguments` with `cursor` to its end: the pages.
fn follow(store: &Arc<Model>, arguments: &Value, mut cursor: Value, word: &str, mut between: impl FnMut(usize)) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let mut own = arguments.as_object().cloned().unwrap();
        own.insert("cursor".into(), cursor.clone());
        let page = ask(store, &own.into()).unwrap();
        assert_eq!((&page["page_info"]["self"], &page["page_info"]["first"]), (&cursor, &Value::Null));
        cursor = page["page_info"][word].clone();
        pages.push(page);
        if cursor.is_null() {
            return pages;
        }
        between(pages.len());
    }
}

fn ids(pages: &[Value]) -> Vec<String> {
    let rows = pages.iter().flat_map(|page| page["data"].as_array().unwrap());
    rows.map(|row| row["run_id"].as_str().unwrap().to_owned()).collect()
}

/// The slow way: every run with the key that it is sorted by.
fn whole(store: &Arc<Model>, by: &str, order: &str) -> Vec<String> {
    let (runs, _) = store.runs(&crate::store::RunQuery { limit: 999, ..Default::default() }).unwrap();
    let holds = |run: &crate::store::Run| store.evaluations(&run.run_id).unwrap().iter().any(|one| one.info.id == "e");
    let key = |run: &crate::store::Run| (if by == "status" { run.status.word() } else { "" }, run.created_at, run.number);
    let mut runs: Vec<_> = runs.into_iter().filter(holds).collect();
    runs.sort_by_key(key);
    if order == "desc" {
        runs.reverse();
    }
    runs.into_iter().map(|run| run.run_id).collect()
}

/// Runs as (second, status, whether it holds the evaluation); few seconds, so that ties are common.
fn history() -> impl Strategy<Value = Vec<(i64, RunStatus, bool)>> {
    let one = (0..4_i64, proptest::sample::select(&RunStatus::ALL[..]), proptest::bool::weighted(0.8));
    proptest::collection::vec(one, 1..14)
}

fn put(store: &Arc<Model>, id: &str, (at, status, holds): (i64, RunStatus, bool)) {
    let log = with_status(id, at, status);
    let log = if holds { log } else { log.of(evaluation("other")) };
    log.put(&**store).unwrap();
}

/// Few by default, since each pages through four lists many times; `PROPTEST_CASES=2000` to look harder.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_the_list_and_hold_while_it_changes(history in history(), more in history(), gone in 0..14_usize, limit in 1..6_u64) {
        for (by, order) in [("created_at", "desc"), ("created_at", "asc"), ("status", "desc"), ("status", "asc")] {
            let store = Arc::new(Model::default());
            put(&store, "seen", (9, RunStatus::Completed, true));
            history.iter().enumerate().for_each(|(at, run)| put(&store, &at.to_string(), *run));
            let arguments = json!({"eval_id": "e", "limit": limit, "sort_by": by, "sort_order": order});
            let all = whole(&store, by, order);
            let pages = follow(&store, &arguments, Value::Null, "next", |_| {});
            prop_assert_eq!(ids(&pages), all.clone());
            prop_assert!(pages.iter().rev().skip(1).all(|page| page["data"].as_array().unwrap().len() as u64 == limit));
            // Back from every page is the page before.
            for pair in pages.windows(2) {
                let back = follow(&store, &arguments, pair[1]["page_info"]["prev"].clone(), "prev", |_| {});
                prop_assert_eq!(&back[0]["data"], &pair[0]["data"]);
                prop_assert_eq!(back.last().unwrap()["page_info"]["prev"].clone(), Value::Null);
                let forth = follow(&store, &arguments, back[0]["page_info"]["next"].clone(), "next", |_| {});
                prop_assert_eq!(&forth[0]["data"], &pair[1]["data"]);
            }
            prop_assert_eq!(&pages[0]["page_info"]["prev"], &Value::Null);
            // Runs come, and one goes, between pages: what was there all along comes once, in its order.
            let mut more = more.iter().enumerate();
            let pages = follow(&store, &arguments, Value::Null, "next", |page| {
                more.by_ref().take(2).for_each(|(at, run)| put(&store, &format!("new {at}"), *run));
                if page == 1 {
                    store.apply(Change::Vanished { paths: vec![format!("{gone}.json")] }).unwrap();
                }
            });
            let stayed = |ids: Vec<String>| ids.into_iter().filter(|id| !id.contains("new") && *id != format!("R{gone}")).collect::<Vec<_>>();
            prop_assert_eq!(stayed(ids(&pages)), stayed(all));
        }
    }
}

#[test]
fn a_page_that_others_emptied_leads_on_both_ways() {
    let store = Arc::new(Model::default());
    (1..=4).for_each(|at| put(&store, &at.to_string(), (at, RunStatus::Completed, true)));
    let own = |cursor: &Value| json!({"eval_id": "e", "limit": 2, "cursor": cursor});
    let first = ask(&store, &own(&Value::Null)).unwrap();
    let second = ask(&store, &own(&first["page_info"]["next"])).unwrap();
    assert_eq!(
        (ids(std::slice::from_ref(&first)), ids(std::slice::from_ref(&second))),
        (vec!["R4".into(), "R3".into()], vec!["R2".into(), "R1".into()])
    );
    store.apply(Change::Vanished { paths: vec!["1.json".into(), "2.json".into()] }).unwrap();
    let empty = ask(&store, &own(&first["page_info"]["next"])).unwrap();
    assert_eq!((ids(std::slice::from_ref(&empty)).len(), &empty["page_info"]["next"]), (0, &Value::Null));
    assert_eq!(ids(&[ask(&store, &own(&empty["page_info"]["prev"])).unwrap()]), ["R4", "R3"]);
    store.apply(Change::Vanished { paths: vec!["3.json".into(), "4.json".into()] }).unwrap();
    put(&store, "0", (0, RunStatus::Completed, true));
    let empty = ask(&store, &own(&second["page_info"]["prev"])).unwrap();
    assert_eq!((ids(std::slice::from_ref(&empty)).len(), &empty["page_info"]["prev"]), (0, &Value::Null));
    assert_eq!(ids(&[ask(&store, &own(&empty["page_info"]["next"])).unwrap()]), ["R0"]);
}

#[test]
fn the_target_is_the_first_variant_or_what_is_no_control() {
    let arm = |(name, role): &(&str, Option<&str>)| ProjectionArm { name: (*name).into(), role: role.map(Into::into) };
    let of = |arms: &[(&str, Option<&str>)]| target(arms.iter().map(arm).collect());
    let pair = |target: &str, others: &[&str]| (target.to_owned(), others.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(of(&[]), pair("", &[]));
    assert_eq!(of(&[("c", Some("control"))]), pair("c", &[]));
    assert_eq!(of(&[("a", None), ("z", Some("variant")), ("y", Some("variant"))]), pair("y", &["a", "z"]));
    assert_eq!(of(&[("a", Some("control")), ("b", None)]), pair("b", &["a"]));
}
