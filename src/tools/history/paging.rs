//! Every list of the toolset, page by page.
//!
//! Promises: pages together are the whole list in its order, whatever is imported between them; a cursor of other arguments is refused.
//! Does not: judge the rows.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    auth::Caller,
    clock,
    domain::outcome::Outcome::{Fail, Pass},
    store::{
        contract::{Log, attempt, evaluation, log},
        model::Model,
    },
    tools::{Ctx, Limits, ToolError, find, render::Style},
};

/// Three runs of seven evaluations of three cases; in the last one two of three cases fail.
fn filled() -> Arc<Model> {
    let store = Arc::new(Model::default());
    for (id, at, worse) in [("a", 1, false), ("b", 2, false), ("c", 3, true)] {
        nightly(id, at, worse).put(&*store).unwrap();
    }
    store
}

fn nightly(id: &str, at: i64, worse: bool) -> Log {
    let mut log = log(id, at);
    log.header.evaluations = (0..7).map(|number| evaluation(&format!("e{number}"))).collect();
    for number in 0..7 {
        let outcome = |case: usize| if worse && case != number % 3 { Fail } else { Pass };
        let tries = (0..3).map(|case| crate::domain::attempt::Attempt {
            evaluation: format!("e{number}"),
            ..attempt(&format!("c{case}"), outcome(case))
        });
        log = log.with(tries);
    }
    log
}

fn ask(store: &Arc<Model>, rows: usize, tool: &str, arguments: &Value) -> Result<Value, ToolError> {
    let ctx = Ctx {
        project: "p".into(),
        store: store.clone(),
        caller: Caller::local(),
        now: clock::now(),
        limits: Limits { rows, ..Limits::default() },
        style: Style::PLAIN,
        note: None,
    };
    let entry = find(tool).unwrap();
    let answer = (entry.run)(&ctx, (entry.canonical)(arguments.as_object().cloned().unwrap())?)?;
    Ok(serde_json::from_str(answer.json.get()).unwrap())
}

/// What can be paged: the tool, its rows' name, arguments for all rows at once, and what makes a page of four rows of it.
fn lists() -> Vec<(&'static str, &'static str, Value, Option<Value>)> {
    vec![
        ("history", "rows", json!({}), None),
        ("history", "rows", json!({"by": "case", "limit": 2}), None),
        ("compare", "rows", json!({"all": true}), None),
        ("compare", "rows", json!({"by": "case", "base": "Ra"}), None),
        ("compare", "rows", json!({"since": "1970-01-01T00:00:02Z", "by": "case", "all": true}), None),
        ("failures", "cells", json!({"limit": 100}), Some(json!({"limit": 4}))),
        ("show", "evals", json!({}), Some(json!({"limit": 4}))),
        ("show", "evals", json!({"run": "Rb", "attempts": false}), Some(json!({"limit": 4}))),
        ("runs_list", "runs", json!({}), Some(json!({"limit": 2}))),
    ]
}

fn with(arguments: &Value, more: &Value) -> Value {
    let both = [arguments, more].into_iter().flat_map(|map| map.as_object().cloned().unwrap());
    Value::Object(both.collect::<Map<String, Value>>())
}

#[test]
fn pages_are_the_whole_list_whatever_comes_between_them() {
    for (tool, name, arguments, small) in lists() {
        let store = filled();
        let whole = ask(&store, 500, tool, &arguments).unwrap();
        assert_eq!((&whole["complete"], &whole["nextCursor"]), (&json!(true), &Value::Null), "{tool} {arguments}");
        let own = with(&arguments, &small.clone().unwrap_or_else(|| json!({})));
        let limit = if small.is_some() { 500 } else { 4 };
        let (mut rows, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
        loop {
            let page = ask(&store, limit, tool, &with(&own, &json!({"cursor": cursor}))).unwrap();
            let here = page[name].as_array().unwrap().clone();
            assert_eq!((page["returned"].as_u64(), &page["complete"]), (Some(here.len() as u64), &json!(page["nextCursor"].is_null())));
            // The list of runs says how many there are now.
            assert!(page["total"] == whole["total"] || tool == "runs_list", "{tool} {arguments}: {}", page["total"]);
            assert!(pages == 0 || here.len() <= 4, "{tool} {arguments}");
            rows.extend(here);
            (cursor, pages) = (page["nextCursor"].clone(), pages + 1);
            if cursor.is_null() {
                break;
            }
            // What `latest` means is now another run, without a failure.
            nightly(&format!("n{pages}"), 10 + pages, false).put(&*store).unwrap();
        }
        assert!(pages > 1, "{tool} {arguments}");
        // What a row of `history` says of the newest run of all is no part of the shown ones.
        let plain = |row: &Value| if tool == "history" { with(row, &json!({"last": null})) } else { row.clone() };
        let plain = |rows: &[Value]| rows.iter().map(plain).collect::<Vec<_>>();
        assert_eq!(plain(&rows), plain(whole[name].as_array().unwrap()), "{tool} {arguments}");
    }
}

#[test]
fn a_cursor_goes_with_its_own_arguments_only() {
    for (tool, _, arguments, small) in lists() {
        let store = filled();
        let own = with(&arguments, &small.clone().unwrap_or_else(|| json!({})));
        let limit = if small.is_some() { 500 } else { 4 };
        let cursor = ask(&store, limit, tool, &own).unwrap()["nextCursor"].clone();
        let again = with(&own, &json!({"cursor": cursor}));
        assert!(ask(&store, limit, tool, &again).is_ok(), "{tool}");
        let other = if tool == "runs_list" { json!({"evaluation": "e"}) } else { json!({"filter": "e"}) };
        let said = ask(&store, limit, tool, &with(&again, &other)).unwrap_err().to_string();
        assert!(said.contains("argument cursor: it goes on from an answer to other arguments"), "{tool}: {said}");
        for wrong in ["", "zz", "1000.Ra", "AAAAAAAAAAAAAAAAAAAAAAAA"] {
            let said = ask(&store, limit, tool, &with(&own, &json!({"cursor": wrong}))).unwrap_err().to_string();
            assert!(said.contains(&format!("is not a cursor that {tool} gave")), "{tool} {wrong}: {said}");
        }
    }
}

#[test]
fn each_list_says_how_much_of_it_is_here() {
    for (tool, _, arguments, _) in lists() {
        let properties = (find(tool).unwrap().output_schema)()["properties"].as_object().cloned().unwrap();
        // `show` gives Markdown without them too, so they stand beside its record.
        let answer = ask(&filled(), 500, tool, &arguments).unwrap();
        for name in ["returned", "total", "complete", "nextCursor"] {
            assert!(answer.get(name).is_some() && properties.contains_key(name), "{tool}: {name}");
        }
    }
}
