//! A row's gradings as checks, and how the row ended.
//!
//! Promises: each assertion is a check, named by its metric, else its type; a set of assertions is one more, and its own are not counted
//! twice; an error of the provider is no failure, and a failure that has an error's text is one.
//! Does not: judge (promptfoo did).

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use serde_json::value::RawValue;

use crate::{
    domain::{attempt::Check, outcome::Outcome},
    importers::{
        inspect::lines::compact,
        raw::{Fields, count, fields, list, number, read, text},
    },
};

/// Checks of one attempt that are kept: each carries a reason.
pub(super) const CHECKS_MAX: usize = 1000;
/// How deep sets of assertions may stand in each other.
const LEVELS_MAX: u8 = 4;
const ASSERTED: u64 = 1;
const BROKE: u64 = 2;

/// How a row ended. `graded` says that the file has gradings at all: one from before them tells what broke by the missing output.
pub(super) fn outcome(row: &Fields<'_>, graded: bool) -> Outcome {
    let grading = fields(row.get("gradingResult"));
    let passed = read::<bool>(row.get("success")).or_else(|| read(grading.get("pass")));
    let has_error = row.get("error").is_some_and(|raw| raw.get() != "\"\"");
    match (passed, count(row.get("failureReason"))) {
        (Some(true), _) => Outcome::Pass,
        (_, Some(BROKE)) => Outcome::InfraError,
        (Some(false), Some(ASSERTED)) => Outcome::Fail,
        (None, _) if !has_error => Outcome::Unscored,
        (passed, _) => {
            let ungraded = row.get("gradingResult").is_none();
            let silent = fields(row.get("response")).get("output").is_none();
            let broke = has_error && ungraded && (graded || silent);
            if broke || passed.is_none() { Outcome::InfraError } else { Outcome::Fail }
        }
    }
}

/// The checks of a row that ended with `outcome`.
pub(super) fn checks(row: &Fields<'_>, outcome: Outcome, shown: &dyn Fn(&str) -> String) -> Vec<Check> {
    let grading = fields(row.get("gradingResult"));
    let mut found = Found { checks: Vec::new(), times: BTreeMap::new(), shown };
    let components = list(grading.get("componentResults")).0;
    // A set inside is indented otherwise than beside. Most rows have no set, and are not looked through.
    let sets = components.iter().any(|raw| raw.get().contains("\"componentResults\""));
    let flat: HashSet<String> = components.iter().filter(|_| sets).map(|raw| compact(raw.get())).collect();
    components.iter().for_each(|raw| found.component(&fields(Some(raw)), &flat, 0));
    if components.is_empty() && grading.get("assertion").is_some() {
        found.component(&grading, &flat, LEVELS_MAX);
    }
    let named = fields(row.get("namedScores").or_else(|| grading.get("namedScores")));
    named.0.iter().for_each(|(name, raw)| found.score(name, raw));
    // A threshold can fail what no assertion did; then the whole says why.
    if outcome == Outcome::Fail && found.checks.iter().all(|check| check.passed != Some(false)) {
        found.whole(row, &grading);
    }
    found.checks
}

struct Found<'s> {
    checks: Vec<Check>,
    /// How often each name was given.
    times: BTreeMap<String, u32>,
    shown: &'s dyn Fn(&str) -> String,
}

impl Found<'_> {
    /// Takes in a component. What a set holds stands beside it as well since 2025: only what does not is taken from inside it.
    fn component(&mut self, component: &Fields<'_>, flat: &HashSet<String>, level: u8) {
        let assertion = fields(component.get("assertion"));
        let set = fields(fields(component.get("metadata")).get("assertionSet"));
        let name = [assertion.get("metric"), assertion.get("type"), set.get("metric"), set.get("type")].into_iter().find_map(text);
        self.push(&name.unwrap_or(Cow::Borrowed("assertion")), "assertion", component);
        if level < LEVELS_MAX {
            let inside = list(component.get("componentResults")).0;
            for raw in inside.iter().filter(|raw| !flat.contains(&compact(raw.get()))) {
                self.component(&fields(Some(raw)), flat, level + 1);
            }
        }
    }

    fn push(&mut self, name: &str, kind: &str, component: &Fields<'_>) {
        if self.checks.len() >= CHECKS_MAX {
            return;
        }
        let name = (self.shown)(name);
        let times = self.times.entry(name.clone()).or_default();
        *times += 1;
        let name = if *times > 1 { format!("{name} {times}") } else { name };
        self.checks.push(Check {
            name,
            kind: kind.to_owned(),
            passed: read(component.get("pass")),
            value: number(component.get("score")),
            label: None,
            answer: None,
            reason: text(component.get("reason")).map(|reason| (self.shown)(&without_stack(&reason))),
        });
    }

    /// A named score that no assertion has as its metric.
    fn score(&mut self, name: &str, raw: &RawValue) {
        let name = (self.shown)(name);
        if self.checks.len() < CHECKS_MAX && !self.times.contains_key(&name) {
            self.times.insert(name.clone(), 1);
            self.checks.push(Check { name, kind: "score".to_owned(), value: number(Some(raw)), ..Check::default() });
        }
    }

    fn whole(&mut self, row: &Fields<'_>, grading: &Fields<'_>) {
        let reason = text(grading.get("reason")).or_else(|| text(row.get("error")));
        let value = number(grading.get("score").or_else(|| row.get("score")));
        let reason = reason.map(|reason| (self.shown)(&without_stack(&reason)));
        let check = Check { name: "all".to_owned(), kind: "assertion".to_owned(), passed: Some(false), value, reason, ..Check::default() };
        self.checks.insert(0, check);
    }
}

/// `text` without the lines of a JavaScript stack: they name the machine's directories and say nothing of the failure.
pub(super) fn without_stack(text: &str) -> String {
    let frame = |line: &str| line.starts_with([' ', '\t']) && line.trim_start().starts_with("at ");
    text.lines().filter(|line| !frame(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(row: &str, graded: bool) -> Outcome {
        outcome(&serde_json::from_str(row).unwrap(), graded)
    }

    fn checked(row: &str) -> Vec<Check> {
        let row = serde_json::from_str(row).unwrap();
        checks(&row, outcome(&row, true), &str::to_owned)
    }

    #[test]
    fn a_row_ends_as_promptfoo_says() {
        for (row, expected) in [
            (r#"{"success":true,"failureReason":0}"#, Outcome::Pass),
            (r#"{"success":false,"failureReason":1,"error":"Expected"}"#, Outcome::Fail),
            (r#"{"success":false,"failureReason":2,"error":"API error"}"#, Outcome::InfraError),
            (r#"{"success":false,"failureReason":0,"error":"API error","gradingResult":null}"#, Outcome::InfraError),
            (r#"{"success":false,"error":"API error","response":{"error":"API error"}}"#, Outcome::InfraError),
            (r#"{"success":false,"error":"Expected","gradingResult":{"pass":false}}"#, Outcome::Fail),
            (r#"{"success":false,"error":null}"#, Outcome::Fail),
            (r#"{"gradingResult":{"pass":true}}"#, Outcome::Pass),
            (r#"{"error":"x"}"#, Outcome::InfraError),
            (r#"{"score":1}"#, Outcome::Unscored),
        ] {
            assert_eq!(ended(row, true), expected, "{row}");
        }
        // Before gradings a failed assertion has the output beside its error, and what broke has none.
        assert_eq!(ended(r#"{"success":false,"error":"Expected","response":{"output":"x"}}"#, false), Outcome::Fail);
        assert_eq!(ended(r#"{"success":false,"error":"API error","response":{}}"#, false), Outcome::InfraError);
    }

    #[test]
    fn assertions_are_checks_by_metric_or_type() {
        let found = checked(
            r#"{"success":false,"failureReason":1,"namedScores":{"m":1,"derived":0.5},"gradingResult":{"componentResults":[
            {"pass":true,"score":7.5,"assertion":{"type":"contains","metric":"m"}},{"pass":false,"score":0,"assertion":{"type":"equals"},
            "reason":"Error: no\n    at f (file:///srv/x.js:1:2)\nend"},{"pass":true,"score":1,"assertion":{"type":"equals"}},
            {"pass":null,"score":null,"assertion":null}]}}"#,
        );
        let seen: Vec<_> = found.iter().map(|check| (check.name.as_str(), check.passed, check.value)).collect();
        let expected = [
            ("m", Some(true), Some(7.5)),
            ("equals", Some(false), Some(0.0)),
            ("equals 2", Some(true), Some(1.0)),
            ("assertion", None, None),
            ("derived", None, Some(0.5)),
        ];
        assert_eq!(seen, expected);
        assert_eq!(found[1].reason.as_deref(), Some("Error: no\nend"));
    }

    #[test]
    fn what_a_set_holds_is_counted_once() {
        let inside = r#"{"pass":true,"score":1,"assertion":{"type":"contains"}},{"pass":false,"score":0,"assertion":{"type":"contains"}}"#;
        let set = |beside: &str| {
            format!(
                r#"{{"success":true,"gradingResult":{{"componentResults":[{{"pass":true,"score":0.5,"componentResults":[ {inside} ],
                "metadata":{{"assertionSet":{{"type":"assert-set","metric":"either"}}}}}}{beside}]}}}}"#
            )
        };
        let names = |row: &str| checked(row).into_iter().map(|check| check.name).collect::<Vec<_>>();
        assert_eq!(names(&set(&format!(",{}", inside.replace(':', ": ")))), ["either", "contains", "contains 2"]);
        assert_eq!(names(&set("")), ["either", "contains", "contains 2"]);
    }

    #[test]
    fn a_threshold_that_fails_says_so() {
        let found = checked(
            r#"{"success":false,"failureReason":1,"gradingResult":{"pass":false,"score":0.6,"reason":"Aggregate score 0.60 < 0.8",
            "componentResults":[{"pass":true,"score":0.6,"assertion":{"type":"similar"}}]}}"#,
        );
        assert_eq!((found[0].name.as_str(), found[0].reason.as_deref()), ("all", Some("Aggregate score 0.60 < 0.8")));
        assert_eq!(found.len(), 2);
        assert!(checked(r#"{"success":true,"gradingResult":{"pass":true,"score":1,"reason":"No assertions"}}"#).is_empty());
    }
}
