//! What differs between the two sides of a comparison besides the outcomes.
//!
//! Promises: factors of arms that match, and settings, dataset and scorers of evaluations on both sides; a difference that all shared
//! evaluations have stands once.
//! Does not: say which of them caused anything.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::stacks::Stacks;
use crate::{domain::log::EvaluationInfo, store::RunArm};

/// Differences listed at most: more would drown the rows.
const MAX: usize = 100;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Change {
    /// The field; `arm: field` or `evaluation: field` where only that one differs.
    pub field: String,
    /// What it was.
    pub base: Option<String>,
    /// What it is.
    pub head: Option<String>,
}

type Fields = BTreeMap<String, String>;

/// The differences between each (head, base) pair of runs, together.
pub fn between(stacks: &Stacks, runs: &[(String, String)]) -> Vec<Change> {
    let ids: BTreeSet<&String> = runs.iter().flat_map(|(head, base)| [head, base]).collect();
    let mut evaluations = BTreeMap::new();
    for id in ids {
        evaluations.insert(id.as_str(), stacks.evaluations(id).map(described).collect::<BTreeMap<_, _>>());
    }
    let mut changes = BTreeSet::new();
    for (head, base) in runs.iter().filter(|(head, base)| head != base) {
        changes.extend(arms_differ(stacks.arms(head), stacks.arms(base)));
        if let (Some(head), Some(base)) = (evaluations.get(head.as_str()), evaluations.get(base.as_str())) {
            changes.extend(evaluations_differ(head, base));
        }
    }
    changes.into_iter().take(MAX).collect()
}

fn arms_differ(head: &[RunArm], base: &[RunArm]) -> Vec<Change> {
    if let ([head], [base]) = (head, base) {
        return differ("", &head.info.factors, &base.info.factors);
    }
    let named = |arm: &RunArm| {
        let other = base.iter().find(|other| other.info.name == arm.info.name)?;
        Some(differ(&format!("{}: ", arm.info.name), &arm.info.factors, &other.info.factors))
    };
    head.iter().filter_map(named).flatten().collect()
}

/// An evaluation's id, and everything of it that may differ, as name/level pairs.
fn described(info: &EvaluationInfo) -> (String, Fields) {
    let mut fields = info.settings.clone();
    let rest = [
        ("version", &info.version),
        ("dataset", &info.dataset),
        ("dataset_digest", &info.dataset_digest),
        ("scorer_digest", &info.scorer_digest),
    ];
    fields.extend(rest.into_iter().filter_map(|(name, level)| Some((name.to_owned(), level.clone()?))));
    (info.id.clone(), fields)
}

fn evaluations_differ(head: &BTreeMap<String, Fields>, base: &BTreeMap<String, Fields>) -> Vec<Change> {
    let shared: Vec<(&String, &Fields, &Fields)> = head.iter().filter_map(|(id, fields)| Some((id, fields, base.get(id)?))).collect();
    let mut by_change = BTreeMap::<Change, Vec<&String>>::new();
    for (id, now, before) in &shared {
        differ("", now, before).into_iter().for_each(|change| by_change.entry(change).or_default().push(id));
    }
    let named = |(change, ids): (Change, Vec<&String>)| {
        if ids.len() == shared.len() && ids.len() > 1 {
            return vec![change];
        }
        ids.iter().map(|id| Change { field: format!("{id}: {}", change.field), ..change.clone() }).collect()
    };
    by_change.into_iter().flat_map(named).collect()
}

fn differ(prefix: &str, head: &Fields, base: &Fields) -> Vec<Change> {
    let names: BTreeSet<&String> = head.keys().chain(base.keys()).collect();
    let changed = |name: &String| {
        let (now, before) = (head.get(name), base.get(name));
        (now != before).then(|| Change { field: format!("{prefix}{name}"), base: before.cloned(), head: now.cloned() })
    };
    names.into_iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
    }

    #[test]
    fn a_difference_of_all_evaluations_stands_once() {
        let head = BTreeMap::from([
            ("a".to_owned(), fields(&[("epochs", "3"), ("plan", "x")])),
            ("b".to_owned(), fields(&[("epochs", "3"), ("plan", "y")])),
        ]);
        let base = BTreeMap::from([
            ("a".to_owned(), fields(&[("epochs", "1"), ("plan", "x")])),
            ("b".to_owned(), fields(&[("epochs", "1"), ("plan", "x")])),
        ]);
        let shown: Vec<String> = evaluations_differ(&head, &base).into_iter().map(|change| change.field).collect();
        assert_eq!(shown, ["epochs", "b: plan"]);
    }

    #[test]
    fn what_is_on_one_side_only_is_null_on_the_other() {
        let changes = differ("", &fields(&[("new", "1")]), &fields(&[("old", "2")]));
        assert_eq!(changes[0], Change { field: "new".into(), base: None, head: Some("1".into()) });
        assert_eq!(changes[1], Change { field: "old".into(), base: Some("2".into()), head: None });
    }
}
