//! The tests of a file, each once, and their case ids.
//!
//! Promises: an id is what its author calls the test, else its variables; two different tests never share one; ids depend on the tests of
//! the file and not on the order of its rows.
//! Does not: keep test cases (their digests, names and short variables only).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::test::{Mark, Test, mark};
use crate::{domain::key::case_id, telemetry::redaction::Redactor};

/// Of a digest that ends an id.
const DIGEST_CHARS: usize = 8;
/// How far an id can be told more exactly.
const EXACT: u8 = 3;
/// Ids that are still shared after so many rounds are numbered.
const ROUNDS_MAX: usize = 16;

/// The tests seen so far.
#[derive(Default)]
pub(super) struct Cases {
    /// By the bytes as they stand: most rows repeat the test of another, and are not looked into.
    by_bytes: HashMap<Mark, u32>,
    by_identity: HashMap<String, u32>,
    tests: Vec<Test>,
}

impl Cases {
    /// The number of a row's test. `salt` tells apart what was not copied whole.
    pub(super) fn see(&mut self, case: &[u8], vars: &[u8], salt: Option<u64>, redactor: &Redactor) -> u32 {
        let salt = salt.map(u64::to_le_bytes);
        let key = mark([case, vars, salt.as_ref().map_or(&[], <[u8; 8]>::as_slice)]);
        if let Some(known) = self.by_bytes.get(&key) {
            return *known;
        }
        let mut test = Test::read(case, vars, redactor);
        if let Some(salt) = salt {
            test.identity = format!("{}{:x}", test.identity, u64::from_le_bytes(salt));
        }
        let number = self.number(test);
        self.by_bytes.insert(key, number);
        number
    }

    fn number(&mut self, test: Test) -> u32 {
        let next = u32::try_from(self.tests.len()).unwrap_or(u32::MAX);
        *self.by_identity.entry(test.identity.clone()).or_insert_with(|| {
            self.tests.push(test);
            next
        })
    }

    /// The tests, in the order in which they were seen.
    pub(super) fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// The same, to be told more of.
    pub(super) fn tests_mut(&mut self) -> &mut [Test] {
        &mut self.tests
    }

    /// The case id of each test.
    pub(super) fn ids(&self) -> Vec<String> {
        ids(&self.tests)
    }
}

fn ids(tests: &[Test]) -> Vec<String> {
    let mut exact = vec![0_u8; tests.len()];
    // An id that is made more exact can be what another test is called, so this goes on for a while.
    for _ in 0..ROUNDS_MAX {
        let spelled = spell(tests, &exact);
        let mut times = HashMap::<&str, u32>::new();
        spelled.iter().for_each(|id| *times.entry(id).or_default() += 1);
        let mut raised = false;
        for (id, exact) in spelled.iter().zip(&mut exact) {
            if *exact < EXACT && times.get(id.as_str()).is_some_and(|times| *times > 1) {
                *exact += 1;
                raised = true;
            }
        }
        if !raised {
            break;
        }
    }
    numbered(tests, spell(tests, &exact)).into_iter().map(|id| case_id(&Value::String(id))).collect()
}

fn spell(tests: &[Test], exact: &[u8]) -> Vec<String> {
    tests.iter().zip(exact).map(|(test, exact)| id(test, *exact)).collect()
}

fn id(test: &Test, exact: u8) -> String {
    let named = !test.description.is_empty();
    let base = match (named, exact) {
        (true, 0) => return test.description.clone(),
        (true, _) if !test.vars.is_empty() => format!("{} ({})", test.description, test.vars),
        (true, _) => test.description.clone(),
        (false, _) => test.vars.clone(),
    };
    match exact {
        0 | 1 => base,
        2 => format!("{base}~{}", test.identity.chars().take(DIGEST_CHARS).collect::<String>()),
        _ => format!("{base}~{}", test.identity),
    }
}

/// Ids that are still the same, which takes an author who writes another test's digest into a description.
fn numbered(tests: &[Test], ids: Vec<String>) -> Vec<String> {
    let mut taken = BTreeMap::<String, u32>::new();
    let mut order: Vec<(usize, &Test)> = tests.iter().enumerate().collect();
    order.sort_by(|a, b| a.1.identity.cmp(&b.1.identity));
    let mut out = ids;
    for (place, _) in order {
        let Some(id) = out.get_mut(place) else { continue };
        let mut free = id.clone();
        while taken.contains_key(&free) {
            let times = taken.entry(id.clone()).or_insert(1);
            *times += 1;
            free = format!("{id}~{times}");
        }
        taken.insert(free.clone(), 1);
        *id = free;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn named(tests: &[(&str, &str)]) -> Vec<String> {
        let (redactor, mut cases) = (Redactor::patterns_only(), Cases::default());
        tests.iter().for_each(|(case, vars)| {
            cases.see(case.as_bytes(), vars.as_bytes(), None, &redactor);
        });
        cases.ids()
    }

    #[test]
    fn an_id_is_the_description_else_the_variables() {
        let ids = named(&[
            (r#"{"description":"pass case","vars":{"q":"x"}}"#, ""),
            (r#"{"vars":{"q":"capital?","mode":"flaky"}}"#, ""),
            (r#"{"description":"7"}"#, ""),
            (r#"{"description":"many","vars":{"q":"one"}}"#, ""),
            (r#"{"description":"many","vars":{"q":"two"}}"#, ""),
        ]);
        assert_eq!(ids, ["pass case", "mode=flaky, q=capital?", "\"7\"", "many (q=one)", "many (q=two)"]);
    }

    #[test]
    fn tests_that_differ_in_assertions_alone_have_two_ids() {
        let ids = named(&[(r#"{"vars":{"q":"x"},"assert":[1]}"#, ""), (r#"{"vars":{"q":"x"},"assert":[2]}"#, "")]);
        assert!(ids[0] != ids[1] && ids.iter().all(|id| id.starts_with("q=x~") && id.len() == 12), "{ids:?}");
    }

    #[test]
    fn a_test_seen_again_is_the_same() {
        let (redactor, mut cases) = (Redactor::patterns_only(), Cases::default());
        let mut see = |case: &str, salt| cases.see(case.as_bytes(), b"", salt, &redactor);
        assert_eq!((see(r#"{"a":1,"b":2}"#, None), see(r#"{"b":2, "a":1}"#, None), see(r#"{"a":1,"b":2}"#, Some(9))), (0, 0, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn different_tests_never_share_an_id(rows in prop::collection::vec(("(a|a \\(q=1\\)|q=1|q=1~2||\"7\")", "[012]", "[01]"), 1..12)) {
            let (redactor, mut cases) = (Redactor::patterns_only(), Cases::default());
            for (description, var, assert) in &rows {
                let case = serde_json::json!({"description": description, "vars": {"q": var.parse::<u8>().unwrap()}, "assert": [assert]});
                cases.see(case.to_string().as_bytes(), b"", None, &redactor);
            }
            let ids = cases.ids();
            prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), cases.tests().len());
            // The order of the rows does not count.
            let mut reversed = Cases::default();
            for (description, var, assert) in rows.iter().rev() {
                let case = serde_json::json!({"description": description, "vars": {"q": var.parse::<u8>().unwrap()}, "assert": [assert]});
                reversed.see(case.to_string().as_bytes(), b"", None, &redactor);
            }
            let by_identity = |cases: &Cases| -> BTreeMap<String, String> {
                cases.tests().iter().map(|test| test.identity.clone()).zip(cases.ids()).collect()
            };
            prop_assert_eq!(by_identity(&cases), by_identity(&reversed));
        }
    }
}
