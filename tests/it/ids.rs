//! A run id, evaluation id and attempt key from any answer is accepted by every tool that takes one.

use proptest::prelude::*;
use serde_json::Value;

use super::{harness::Project, logs::Log};

/// Ids as people write them, and as nobody should.
fn id() -> impl Strategy<Value = String> {
    let plain = "[a-zA-Z0-9_-]{1,12}";
    let hard = prop::collection::vec(
        prop::sample::select(vec!["a", "/", " ", "#", "@", "%", "é", "路", "~", "\"", "'", ".", ":", "1", "%2F", "-"]),
        1..8,
    )
    .prop_map(|parts| parts.concat());
    prop_oneof![plain, hard].prop_filter("a lone reference word is a reference", |id| {
        !id.starts_with("latest") && !id.trim().is_empty() && !id.starts_with('-')
    })
}

fn all_strings(value: &Value, key: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| match inner {
            Value::String(text) if name == key => out.push(text.clone()),
            other => all_strings(other, key, out),
        }),
        Value::Array(items) => items.iter().for_each(|item| all_strings(item, key, out)),
        _ => {}
    }
}

fn found(values: &[&Value], key: &str) -> Vec<String> {
    let mut out = Vec::new();
    values.iter().for_each(|value| all_strings(value, key, &mut out));
    out.sort();
    out.dedup();
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn ids_round_trip(run in id(), task in id(), other in id(), case in id(), model in id()) {
        let project = Project::new();
        Log::new(&run, &task, "2026-11-01T09:00:00+00:00").sample(case.clone(), 1, "I").sample(7, 1, "I").sample("7", 1, "I").put(&project);
        Log::new(&run, &other, "2026-11-01T09:00:01+00:00").sample(case, 1, "I").model(&model).put(&project);
        let show = project.json(&["show"]);
        let failures = project.json(&["failures", "--limit", "100"]);
        let history = project.json(&["history"]);
        let list = project.json(&["runs-list"]);
        for run in found(&[&show, &failures, &history, &list], "runId") {
            for verb in ["show", "failures"] {
                let answer = project.json(&[verb, &run]);
                prop_assert_eq!(answer["runId"].as_str(), Some(run.as_str()));
            }
        }
        for attempt in found(&[&show, &failures], "attempt") {
            let page = project.json(&["transcript", &run, &attempt]);
            prop_assert_eq!(page["attempt"].as_str(), Some(attempt.as_str()));
        }
        for evaluation in found(&[&failures], "evaluation") {
            let filtered = project.json(&["history", "--filter", &evaluation]);
            prop_assert!(found(&[&filtered], "id").contains(&evaluation));
        }
    }
}
