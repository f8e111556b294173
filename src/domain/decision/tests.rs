//! The check against the schema, over many decisions that differ from good ones in one place.
//!
//! Promises: the small reading of JSON Schema here refuses a keyword that it does not know, so that none is passed over.
//! Does not: implement JSON Schema.

use serde_json::json;

use super::*;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Whether `value` fits `schema`, whose references are of `root`.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let all = |list: &Value| list.as_array().unwrap().iter().filter(|one| fits(root, one, value)).count();
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "description" | "$defs" => true,
        "$ref" => fits(root, root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap(), value),
        "type" => rule.as_array().map_or_else(|| is(rule, value), |kinds| kinds.iter().any(|kind| is(kind, value))),
        "const" => rule == value,
        "enum" => rule.as_array().unwrap().contains(value),
        "oneOf" => all(rule) == 1,
        "anyOf" => all(rule) >= 1,
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
        "uniqueItems" => value.as_array().is_none_or(|list| (1..list.len()).all(|at| !list[..at].contains(&list[at]))),
        "items" => value.as_array().is_none_or(|list| list.iter().all(|one| fits(root, rule, one))),
        "required" => {
            value.as_object().is_none_or(|map| rule.as_array().unwrap().iter().all(|name| map.contains_key(name.as_str().unwrap())))
        }
        "properties" => value.as_object().is_none_or(|map| {
            rule.as_object().unwrap().iter().all(|(name, rule)| map.get(name).is_none_or(|value| fits(root, rule, value)))
        }),
        "additionalProperties" => {
            assert_eq!(rule, &json!(false));
            value.as_object().is_none_or(|map| map.keys().all(|name| schema["properties"].get(name).is_some()))
        }
        other => panic!("the schema uses {other}"),
    })
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the schema has the type {other}"),
    }
}

fn good(mapped: Mapped) -> Value {
    let none = json!({"status": "not_measured", "reason": "no slice is declared"});
    json!({
        "scenarioId": "s1", "invokeEvalGate": mapped.invoke, "classification": mapped.classification, "releaseDecision": mapped.release,
        "actions": ["look", "mend"],
        "evidenceSummary": {
            "quality": {"status": "measured", "summary": "It fell.", "measurements": [
                {"name": "pass_rate", "baseline": 0.8, "candidate": 0.6, "delta": -0.2, "unit": "share", "threshold": 0.7, "passed": false, "source": "paired"},
                {"name": "cases", "value": 40}]},
            "protectedSlices": none, "reliability": {"status": "measured", "summary": "Held.", "measurements": [{"name": "held", "passed": true}]},
            "latency": none, "cost": none
        }
    })
}

/// Every place of `value`, as a pointer.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| places(inner, &format!("{at}/{name}"), out)),
        Value::Array(list) => list.iter().enumerate().for_each(|(number, inner)| places(inner, &format!("{at}/{number}"), out)),
        _ => {}
    }
}

fn without(value: &Value, place: &str) -> Value {
    let mut out = value.clone();
    let (parent, name) = place.rsplit_once('/').unwrap();
    match out.pointer_mut(parent).unwrap() {
        Value::Object(map) => drop(map.remove(name)),
        Value::Array(list) => drop(list.remove(name.parse().unwrap())),
        _ => unreachable!(),
    }
    out
}

/// Decisions that differ from `value` in one place.
fn mutated(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    places(value, "", &mut all);
    let others =
        [json!(null), json!(true), json!(false), json!(0), json!(""), json!("x"), json!([]), json!({}), json!(["x", "x"]), json!([""])];
    let words = MAPPING.iter().flat_map(|mapped| [mapped.classification, mapped.release]).chain(["measured", "not_measured"]);
    let others: Vec<Value> = others.into_iter().chain(words.map(Value::from)).collect();
    let mut out = Vec::new();
    for place in &all {
        for other in &others {
            let mut changed = value.clone();
            *changed.pointer_mut(place).unwrap() = other.clone();
            out.push(changed);
        }
        if !place.is_empty() {
            out.push(without(value, place));
        }
        let mut more = value.clone();
        match more.pointer_mut(place).unwrap() {
            Value::Object(map) => drop(map.insert("more".into(), json!("x"))),
            Value::Array(list) => list.push(json!("mend")),
            _ => continue,
        }
        out.push(more);
    }
    out
}

#[test]
fn the_check_and_the_schema_agree() {
    let schema = schema();
    let (mut kept, mut refused) = (0, 0);
    for value in MAPPING.into_iter().map(good).flat_map(|good| std::iter::once(good.clone()).chain(mutated(&good))) {
        let faults = check(&value);
        assert_eq!(faults.is_empty(), fits(&schema, &schema, &value), "{faults:?} {value}");
        *if faults.is_empty() { &mut kept } else { &mut refused } += 1;
    }
    assert!(kept > 9 && refused > 5000, "{kept} {refused}");
}

#[test]
fn the_schema_has_the_mapping_and_the_dimensions() {
    let schema = schema();
    let word = |one: &Value, name: &str| one["properties"][name]["const"].clone();
    let combinations: Vec<(Value, Value, Value)> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (word(one, "classification"), word(one, "invokeEvalGate"), word(one, "releaseDecision")))
        .collect();
    let own: Vec<(Value, Value, Value)> =
        MAPPING.iter().map(|mapped| (mapped.classification.into(), mapped.invoke.into(), mapped.release.into())).collect();
    assert_eq!(combinations, own);
    assert_eq!(schema["properties"]["evidenceSummary"]["required"], json!(DIMENSIONS));
}

#[test]
fn every_fault_is_named_with_its_place() {
    let mut value = good(MAPPING[5]);
    value["releaseDecision"] = json!("promote");
    value["invokeEvalGate"] = json!(false);
    value["verdict"] = json!(1);
    value["actions"] = json!(["a", "", "a"]);
    value["evidenceSummary"]["cost"] = json!({"status": "not_measured"});
    value["evidenceSummary"]["latency"] = json!({"status": "measured", "summary": "s", "measurements": [
        {"name": "p50", "unit": "ms"}, {"name": "p50", "value": null}]});
    let said: Vec<String> = check(&value).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "verdict: there is no such field; there are scenarioId, invokeEvalGate, classification, releaseDecision, actions, evidenceSummary",
            "invokeEvalGate: false contradicts the classification regression: it is true",
            "releaseDecision: \"promote\" contradicts the classification regression: it is \"block\"",
            "actions[1]: it is empty; say it in words",
            "actions[2]: \"a\" stands twice",
            "evidenceSummary.latency.measurements[0]: it measures nothing; give one of baseline, candidate, delta, value or passed",
            "evidenceSummary.latency.measurements[1].value: null is neither a number nor a text",
            "evidenceSummary.latency.measurements[1].name: another measurement of this dimension has the same name",
            "evidenceSummary.cost.reason: it is missing",
        ]
    );
    assert_eq!(check(&json!([])).first().map(ToString::to_string).as_deref(), Some("decision: [] is no object"));
    let unknown = check(&json!({"classification": "pass"}));
    assert!(unknown.iter().any(|fault| fault.to_string().starts_with("classification: \"pass\" is none; there are not_applicable, ")));
}

#[test]
fn what_is_given_as_evidence_keeps_the_contract() {
    let summary = serde_json::to_value(EvidenceSummary::default()).unwrap();
    assert_eq!(check_evidence(&summary), []);
    assert_eq!(summary["protectedSlices"]["status"], "not_measured");
}
