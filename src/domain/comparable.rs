//! Whether two sides of an evaluation were measured in the same way, and what changed where they were not.
//!
//! Promises: what is unknown on either side is never taken for a change; each reason names the thing, and its levels where they are words.
//! Does not: look at what is being compared: the arm's model, prompt and solver, and limits on its work, may differ, and `changes` lists them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{attempt::shorten, cell::Cell, log::EvaluationInfo};

/// Settings and factors that name who judges. Another judge is another scorer.
pub const JUDGE: &[&str] = &["judge", "judge_model", "grader", "grader_model", "scorer_model", "role.judge", "role.grader", "role.scorer"];

/// Settings of an evaluation that decide what is sampled; lm-eval's stand behind `generation.`. Not among them: `epochs`, `repeats` and their
/// like, since a rate is per attempt, so that more attempts are more of the same; and an arm's own factors, which are what is compared.
pub const SAMPLING: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_gen_toks",
    "max_new_tokens",
    "do_sample",
    "seed",
    "fewshot_seed",
    "num_fewshot",
    "prompt",
    "output_type",
    "filters",
];

/// Bytes of a level in a reason.
const LEVEL: usize = 60;
/// Changes that a reason lists; there are more names than a reader wants.
const LISTED: usize = 4;

/// What one side says of how it was measured.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The evaluation as its run has it.
    pub info: &'a EvaluationInfo,
    /// The factors of its arm.
    pub factors: Option<&'a BTreeMap<String, String>>,
    /// The cell that is compared.
    pub cell: &'a Cell,
}

/// What changed from `base` to `head`; nothing where they can be compared.
#[must_use]
pub fn changed(head: Side<'_>, base: Side<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let digests =
        [("dataset", &base.info.dataset_digest, &head.info.dataset_digest), ("scorer", &base.info.scorer_digest, &head.info.scorer_digest)];
    out.extend(digests.into_iter().filter(|(_, was, is)| was.is_some() && is.is_some() && was != is).map(|(name, ..)| name.to_owned()));
    let declared = |cell: &Cell| cell.threshold.filter(|_| cell.declared);
    let (was, is) = (declared(base.cell), declared(head.cell));
    if was != is {
        let shown = |level: Option<f64>| level.map_or_else(|| "none".to_owned(), |level| level.to_string());
        out.push(format!("threshold {} -> {}", shown(was), shown(is)));
    }
    if base.info.settings != head.info.settings {
        out.extend(settings(&base.info.settings, &head.info.settings));
    }
    let factor = |side: Side<'_>, name: &str| side.factors.and_then(|factors| factors.get(name)).cloned();
    out.extend(JUDGE.iter().filter_map(|name| differs(name, factor(base, name).as_deref(), factor(head, name).as_deref())));
    out
}

/// The settings among [`JUDGE`] and [`SAMPLING`] that differ.
fn settings<'a>(was: &'a BTreeMap<String, String>, is: &'a BTreeMap<String, String>) -> impl Iterator<Item = String> + 'a {
    was.iter().filter_map(|(key, was)| differs(deciding(key)?, Some(was), is.get(key).map(String::as_str)))
}

fn differs(name: &str, was: Option<&str>, is: Option<&str>) -> Option<String> {
    let (was, is) = (was?, is?);
    (was != is).then(|| format!("{name} {} -> {}", shorten(was, LEVEL), shorten(is, LEVEL)))
}

/// How an evaluation was measured in a run, as far as its rates go: what decides whether two runs' attempts may be added up. The declared
/// threshold is not in it: it judges rates and changes none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure(BTreeMap<String, String>);

impl Measure {
    /// That of a run that says `info` and whose arms have these factors. A judge is known where all arms that name one name the same.
    #[must_use]
    pub fn of<'a>(info: &EvaluationInfo, arms: impl Iterator<Item = &'a BTreeMap<String, String>>) -> Self {
        let digests = [("dataset", &info.dataset_digest), ("scorer", &info.scorer_digest)];
        let mut out: BTreeMap<String, String> =
            digests.into_iter().filter_map(|(name, digest)| Some((name.to_owned(), digest.clone()?))).collect();
        out.extend(
            info.settings.iter().filter(|(key, _)| deciding(key).is_some()).map(|(key, level)| (format!("setting {key}"), level.clone())),
        );
        let mut judges = BTreeMap::<&str, Option<&String>>::new();
        for (name, level) in arms.flatten().filter(|(name, _)| JUDGE.contains(&name.as_str())) {
            let held = judges.entry(name).or_insert(Some(level));
            *held = held.filter(|held| *held == level);
        }
        out.extend(judges.into_iter().filter_map(|(name, level)| Some((format!("factor {name}"), level?.clone()))));
        Self(out)
    }

    /// Whether nothing that both know differs.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        self.0.iter().all(|(name, level)| other.0.get(name).is_none_or(|other| other == level))
    }
}

/// The name of a setting, where it decides how an evaluation is measured.
fn deciding(key: &str) -> Option<&str> {
    let name = key.strip_prefix("generation.").unwrap_or(key);
    (JUDGE.contains(&name) || SAMPLING.contains(&name)).then_some(name)
}

/// The changes as a sentence.
#[must_use]
pub fn reason(changed: &[String]) -> String {
    let listed = changed.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = changed.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("changed since the base: {listed}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        cell::{CellKey, Verdict},
        outcome::Counts,
    };

    fn cell(threshold: Option<f64>) -> Cell {
        Cell {
            key: CellKey { evaluation: "e".into(), case: None, arm: "m".into() },
            run_id: "r".into(),
            counts: Counts::default(),
            threshold,
            several_cases: true,
            declared: threshold.is_some(),
            verdict: Verdict::Unscored,
        }
    }

    fn info(digest: Option<&str>, settings: &[(&str, &str)]) -> EvaluationInfo {
        EvaluationInfo {
            dataset_digest: digest.map(Into::into),
            settings: settings.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect(),
            ..EvaluationInfo::default()
        }
    }

    fn told(base: &EvaluationInfo, head: &EvaluationInfo) -> Vec<String> {
        let cell = cell(None);
        changed(Side { info: head, factors: None, cell: &cell }, Side { info: base, factors: None, cell: &cell })
    }

    #[test]
    fn what_is_known_on_both_sides_and_differs_is_a_change() {
        assert_eq!(told(&info(Some("a"), &[]), &info(Some("b"), &[])), ["dataset"]);
        assert!(told(&info(Some("a"), &[]), &info(None, &[])).is_empty() && told(&info(None, &[]), &info(Some("b"), &[])).is_empty());
        let scored = |digest: &str| EvaluationInfo { scorer_digest: Some(digest.into()), ..EvaluationInfo::default() };
        assert_eq!(told(&scored("a"), &scored("b")), ["scorer"]);
        let at = |level: &str| info(None, &[("generation.temperature", level), ("epochs", level), ("plan", level)]);
        assert_eq!(told(&at("0"), &at("0.7")), ["temperature 0 -> 0.7"]);
        assert!(told(&info(None, &[]), &at("0.7")).is_empty());
    }

    /// What may be added up is what may be compared.
    #[test]
    fn measures_agree_where_nothing_changed() {
        let infos: Vec<EvaluationInfo> = ["", "a", "b"]
            .into_iter()
            .flat_map(|digest| ["", "0", "1"].map(|level| (digest, level)))
            .map(|(digest, level)| {
                let settings = [("generation.temperature", level), ("judge", level), ("epochs", digest)];
                let known = settings.into_iter().filter(|(_, level)| !level.is_empty());
                EvaluationInfo {
                    scorer_digest: (level == "1").then(|| digest.to_owned()),
                    ..info(Some(digest).filter(|digest| !digest.is_empty()), &known.collect::<Vec<_>>())
                }
            })
            .collect();
        let factors = |level: &str| BTreeMap::from([("role.grader".to_owned(), level.to_owned()), ("model".to_owned(), level.to_owned())]);
        let (cell, stacks) = (cell(None), [BTreeMap::new(), factors("x"), factors("y")]);
        for (one, of_one) in infos.iter().zip(stacks.iter().cycle()) {
            for (other, of_other) in infos.iter().flat_map(|info| stacks.iter().map(move |stack| (info, stack))) {
                let side = |info, factors| Side { info, factors: Some(factors), cell: &cell };
                let changed = changed(side(one, of_one), side(other, of_other));
                let agrees = Measure::of(one, [of_one].into_iter()).agrees(&Measure::of(other, [of_other].into_iter()));
                assert_eq!(agrees, changed.is_empty(), "{one:?} {of_one:?} {other:?} {of_other:?} {changed:?}");
            }
        }
        // Arms of one run that name several judges name none for it.
        let several = Measure::of(&infos[0], stacks.iter());
        assert_eq!(several, Measure::default());
    }

    #[test]
    fn another_judge_is_seen_wherever_it_is_named() {
        let factors = |model: &str| BTreeMap::from([("role.grader".to_owned(), model.to_owned()), ("model".to_owned(), model.to_owned())]);
        let (info, cell, was, is) = (info(None, &[]), cell(None), factors("a"), factors("b"));
        let side = |factors| Side { info: &info, factors: Some(factors), cell: &cell };
        assert_eq!(changed(side(&is), side(&was)), ["role.grader a -> b"]);
        let named = |model: &str| self::info(None, &[("judge_model", model)]);
        assert_eq!(told(&named("a"), &named("b")), ["judge_model a -> b"]);
    }

    #[test]
    fn another_threshold_is_named_with_both() {
        let (info, was, is, none) = (info(None, &[]), cell(Some(0.8)), cell(Some(0.9)), cell(None));
        let side = |cell| Side { info: &info, factors: None, cell };
        assert_eq!(changed(side(&is), side(&was)), ["threshold 0.8 -> 0.9"]);
        assert_eq!(changed(side(&none), side(&was)), ["threshold 0.8 -> none"]);
        assert_eq!(reason(&changed(side(&is), side(&was))), "changed since the base: threshold 0.8 -> 0.9");
        let many: Vec<String> = (0..6).map(|n| n.to_string()).collect();
        assert_eq!(reason(&many), "changed since the base: 0, 1, 2, 3 and 2 more");
    }
}
