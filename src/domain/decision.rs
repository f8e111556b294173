//! The decision contract (decision 27): what an agent hands over when it has evaluated a change, and the evidence in it.
//!
//! runlore takes no decision: it serves the contract's schema, gives evidence in its form, and checks what somebody else has written.
//!
//! Promises: a classification has one `invokeEvalGate` and one `releaseDecision`; a check names every fault with its place, and says what would be
//! right; what the schema takes is what the check takes, but for the names of measurements, which a schema cannot hold against each other.
//! Does not: classify anything, or read a file.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{attempt::shorten, text::clean};

/// The JSON Schema, as it is served.
pub const SCHEMA: &str = include_str!("../../config/decision-contract.schema.json");

/// Where it is served to anybody.
pub const PATH: &str = "/.well-known/agent-skills/evaluate-ai-change/assets/decision-contract.schema.json";

/// What a classification selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// The classification.
    pub classification: &'static str,
    /// Whether the change has to be evaluated.
    pub invoke: bool,
    /// The release decision.
    pub release: &'static str,
}

const fn mapped(classification: &'static str, invoke: bool, release: &'static str) -> Mapped {
    Mapped { classification, invoke, release }
}

/// The only combinations there are.
pub const MAPPING: [Mapped; 9] = [
    mapped("not_applicable", false, "ordinary_tests"),
    mapped("behavioral_change", true, "evaluate"),
    mapped("experiment", true, "compare"),
    mapped("coverage_gap", true, "block_until_covered"),
    mapped("infrastructure_failure", true, "inconclusive"),
    mapped("regression", true, "block"),
    mapped("improvement", true, "promote"),
    mapped("tradeoff", true, "policy_review"),
    mapped("inconclusive", true, "inconclusive"),
];

/// The dimensions of the evidence, all of which are asked for.
pub const DIMENSIONS: [&str; 5] = ["quality", "protectedSlices", "reliability", "latency", "cost"];

/// Fields of a measurement that hold what was measured: one of them is there.
const FIGURES: [&str; 4] = ["baseline", "candidate", "delta", "value"];

/// The evidence, in the contract's form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceSummary {
    /// How good the answers are.
    pub quality: Dimension,
    /// The slices that must not get worse.
    pub protected_slices: Dimension,
    /// How often it breaks.
    pub reliability: Dimension,
    /// How long it takes.
    pub latency: Dimension,
    /// What it costs.
    pub cost: Dimension,
}

/// Short: it stands in the list of tools, which every agent pays for. [`SCHEMA`] says all of it.
impl JsonSchema for EvidenceSummary {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EvidenceSummary".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": DIMENSIONS,
            "additionalProperties": {"type": "object", "required": ["status"]}
        })
    }
}

/// One dimension: measured, or why it was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Dimension {
    /// There is valid evidence.
    Measured {
        /// In plain words.
        summary: String,
        /// The figures; at least one, with different names.
        measurements: Vec<Measurement>,
    },
    /// There is none.
    NotMeasured {
        /// Why.
        reason: String,
    },
}

impl Dimension {
    /// Without valid evidence.
    pub fn none(reason: impl Into<String>) -> Self {
        Self::NotMeasured { reason: reason.into() }
    }
}

impl Default for EvidenceSummary {
    fn default() -> Self {
        let none = || Dimension::none("nothing was compared");
        Self { quality: none(), protected_slices: none(), reliability: none(), latency: none(), cost: none() }
    }
}

/// One figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Measurement {
    /// What it is called.
    pub name: &'static str,
    /// Before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// Now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<f64>,
    /// Now minus before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Where nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// What it was held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Whether it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// How it was come by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
}

/// What is wrong with a decision, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {said}")]
pub struct Fault {
    /// The field, such as `evidenceSummary.cost.reason`; `decision` for the whole.
    pub place: String,
    /// What is wrong, and what would be right.
    pub said: String,
}

/// Every fault of `decision`; none where it keeps the contract.
#[must_use]
pub fn check(decision: &Value) -> Vec<Fault> {
    let mut checker = Checker::default();
    if let Some(fields) = checker.object("decision", Some(decision)) {
        checker.decision(fields);
    }
    checker.0
}

/// Every fault of an `evidenceSummary` alone.
#[must_use]
pub fn check_evidence(summary: &Value) -> Vec<Fault> {
    let mut checker = Checker::default();
    checker.evidence(Some(summary));
    checker.0
}

#[derive(Default)]
struct Checker(Vec<Fault>);

impl Checker {
    fn fault(&mut self, place: &str, said: impl Into<String>) {
        self.0.push(Fault { place: place.to_owned(), said: said.into() });
    }

    fn object<'a>(&mut self, place: &str, value: Option<&'a Value>) -> Option<&'a Map<String, Value>> {
        match value {
            Some(Value::Object(map)) => return Some(map),
            Some(other) => self.fault(place, format!("{} is no object", shown(other))),
            None => self.fault(place, "it is missing"),
        }
        None
    }

    /// A text of one character or more.
    fn text(&mut self, place: &str, value: Option<&Value>) {
        match value {
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(Value::String(_)) => self.fault(place, "it is empty; say it in words"),
            Some(other) => self.fault(place, format!("{} is no text", shown(other))),
            None => self.fault(place, "it is missing"),
        }
    }

    fn no_others(&mut self, place: &str, fields: &Map<String, Value>, known: &[&str]) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            self.fault(&inside(place, &named(name)), format!("there is no such field; there are {}", known.join(", ")));
        }
    }

    fn decision(&mut self, fields: &Map<String, Value>) {
        let known = ["scenarioId", "invokeEvalGate", "classification", "releaseDecision", "actions", "evidenceSummary"];
        self.no_others("", fields, &known);
        if let Some(scenario) = fields.get("scenarioId") {
            self.text("scenarioId", Some(scenario));
        }
        self.mapping(fields);
        self.actions(fields.get("actions"));
        self.evidence(fields.get("evidenceSummary"));
    }

    /// The classification selects the other two.
    fn mapping(&mut self, fields: &Map<String, Value>) {
        let words: Vec<&str> = MAPPING.iter().map(|mapped| mapped.classification).collect();
        let found = self.word("classification", fields.get("classification"), &words);
        let mapped = found.and_then(|word| MAPPING.iter().find(|mapped| mapped.classification == word));
        match (fields.get("invokeEvalGate"), mapped) {
            (Some(Value::Bool(given)), Some(mapped)) if *given != mapped.invoke => {
                self.fault(
                    "invokeEvalGate",
                    format!("{given} contradicts the classification {}: it is {}", mapped.classification, mapped.invoke),
                );
            }
            (Some(Value::Bool(_)), _) => {}
            (Some(other), _) => self.fault("invokeEvalGate", format!("{} is neither true nor false", shown(other))),
            (None, _) => self.fault("invokeEvalGate", "it is missing"),
        }
        let releases: BTreeSet<&str> = MAPPING.iter().map(|mapped| mapped.release).collect();
        let releases: Vec<&str> = releases.into_iter().collect();
        if let (Some(given), Some(mapped)) = (self.word("releaseDecision", fields.get("releaseDecision"), &releases), mapped)
            && given != mapped.release
        {
            let said = format!("\"{given}\" contradicts the classification {}: it is \"{}\"", mapped.classification, mapped.release);
            self.fault("releaseDecision", said);
        }
    }

    fn word<'a>(&mut self, place: &str, value: Option<&'a Value>, words: &[&str]) -> Option<&'a str> {
        match value {
            Some(Value::String(word)) if words.contains(&word.as_str()) => return Some(word),
            Some(other) => self.fault(place, format!("{} is none; there are {}", shown(other), words.join(", "))),
            None => self.fault(place, "it is missing"),
        }
        None
    }

    fn actions(&mut self, value: Option<&Value>) {
        let Some(Value::Array(actions)) = value else {
            let said = value.map_or_else(|| "it is missing".to_owned(), |other| format!("{} is no list", shown(other)));
            return self.fault("actions", said);
        };
        let mut seen = BTreeSet::new();
        for (index, action) in actions.iter().enumerate() {
            let place = format!("actions[{index}]");
            self.text(&place, Some(action));
            if action.as_str().is_some_and(|text| !seen.insert(text)) {
                self.fault(&place, format!("{} stands twice", shown(action)));
            }
        }
    }

    fn evidence(&mut self, value: Option<&Value>) {
        const PLACE: &str = "evidenceSummary";
        let Some(fields) = self.object(PLACE, value) else { return };
        self.no_others(PLACE, fields, &DIMENSIONS);
        for name in DIMENSIONS {
            let place = inside(PLACE, name);
            if let Some(dimension) = self.object(&place, fields.get(name)) {
                self.dimension(&place, dimension);
            }
        }
    }

    fn dimension(&mut self, place: &str, fields: &Map<String, Value>) {
        match self.word(&inside(place, "status"), fields.get("status"), &["measured", "not_measured"]) {
            Some("measured") => {
                self.no_others(place, fields, &["status", "summary", "measurements"]);
                self.text(&inside(place, "summary"), fields.get("summary"));
                self.measurements(&inside(place, "measurements"), fields.get("measurements"));
            }
            Some(_) => {
                self.no_others(place, fields, &["status", "reason"]);
                self.text(&inside(place, "reason"), fields.get("reason"));
            }
            None => {}
        }
    }

    fn measurements(&mut self, place: &str, value: Option<&Value>) {
        let Some(Value::Array(all)) = value else {
            let said = value.map_or_else(|| "it is missing".to_owned(), |other| format!("{} is no list", shown(other)));
            return self.fault(place, said);
        };
        if all.is_empty() {
            self.fault(place, "it is empty; give a measurement, or say not_measured with a reason");
        }
        let mut names = BTreeSet::new();
        for (index, one) in all.iter().enumerate() {
            let place = format!("{place}[{index}]");
            let Some(fields) = self.object(&place, Some(one)) else { continue };
            self.measurement(&place, fields);
            if fields.get("name").and_then(Value::as_str).is_some_and(|name| !names.insert(name)) {
                self.fault(&inside(&place, "name"), "another measurement of this dimension has the same name");
            }
        }
    }

    fn measurement(&mut self, place: &str, fields: &Map<String, Value>) {
        self.no_others(place, fields, &["name", "baseline", "candidate", "delta", "value", "unit", "threshold", "passed", "source"]);
        self.text(&inside(place, "name"), fields.get("name"));
        for name in FIGURES.iter().chain(&["threshold"]) {
            if let Some(other) = fields.get(*name).filter(|figure| !figure.is_number() && !figure.is_string()) {
                self.fault(&inside(place, name), format!("{} is neither a number nor a text", shown(other)));
            }
        }
        for name in ["unit", "source"] {
            if let Some(text) = fields.get(name) {
                self.text(&inside(place, name), Some(text));
            }
        }
        if let Some(other) = fields.get("passed").filter(|passed| !passed.is_boolean()) {
            self.fault(&inside(place, "passed"), format!("{} is neither true nor false", shown(other)));
        }
        if !FIGURES.iter().chain(&["passed"]).any(|name| fields.contains_key(*name)) {
            self.fault(place, format!("it measures nothing; give one of {} or passed", FIGURES.join(", ")));
        }
    }
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn named(name: &str) -> String {
    clean(&shorten(name, 80))
}

fn shown(value: &Value) -> String {
    clean(&shorten(&value.to_string(), 80))
}

#[cfg(test)]
mod tests;
