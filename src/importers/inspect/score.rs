//! Scores to checks and outcomes, as Inspect's `value_to_float` reads them (FORMATS.md 1.4).
//!
//! Promises: a number, a boolean, a letter or a yes/no is a score; a list, an object or any other text is shown and judges nothing; NaN is
//! no score; one scorer decides a whole log, so a sample that it did not score stays unscored.
//! Does not: know attempts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{
    domain::{attempt::Check, outcome::Outcome},
    importers::raw::{Fields, fields, json, read, text},
};

/// Scorers of a log that are told apart.
const SCORERS_MAX: usize = 1000;
/// Checks of one attempt that are kept: each carries its scorer's reason.
pub(super) const CHECKS_MAX: usize = 1000;

/// A score's value.
enum Graded<'a> {
    /// It counts; the text is there where the log did not write a number.
    Number(f64, Option<String>),
    /// NaN, null.
    Nothing,
    /// It is shown and counts for nothing.
    Shown(String),
    /// One value for each of several things.
    Several(Fields<'a>),
}

fn grade(raw: Option<&RawValue>) -> Graded<'_> {
    let Some(value) = raw else { return Graded::Nothing };
    match value.get().as_bytes().first() {
        Some(b'n') => Graded::Nothing,
        Some(b't') => Graded::Number(1.0, Some("true".to_owned())),
        Some(b'f') => Graded::Number(0.0, Some("false".to_owned())),
        Some(b'{') => Graded::Several(fields(raw)),
        Some(b'[') => Graded::Shown(json(value).into_owned()),
        Some(b'"') => read::<Cow<'_, str>>(raw).map_or(Graded::Nothing, |word| grade_text(&word)),
        // Past a double's range is no number that anything can be done with.
        _ => crate::importers::raw::number(raw).map_or(Graded::Nothing, |number| Graded::Number(number, None)),
    }
}

fn grade_text(word: &str) -> Graded<'static> {
    let number = match word {
        "C" => Some(1.0),
        "P" => Some(0.5),
        "I" | "N" => Some(0.0),
        _ if word.eq_ignore_ascii_case("yes") || word.eq_ignore_ascii_case("true") => Some(1.0),
        _ if word.eq_ignore_ascii_case("no") || word.eq_ignore_ascii_case("false") => Some(0.0),
        _ => word.trim().parse::<f64>().ok().filter(|number| number.is_finite()),
    };
    number.map_or_else(|| Graded::Shown(word.to_owned()), |number| Graded::Number(number, Some(word.to_owned())))
}

/// Which scorers a log's samples have, and whether any of their values counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Kinds(Vec<(String, bool)>);

impl Kinds {
    /// Takes one sample's scores in.
    pub(super) fn see(&mut self, scores: &Fields<'_>) {
        for (name, raw) in &scores.0 {
            let counts = || matches!(grade(Score::of(raw).value), Graded::Number(..));
            let full = self.0.len() >= SCORERS_MAX;
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = *known || counts(),
                None if full => {}
                None => self.0.push((name.clone().into_owned(), counts())),
            }
        }
    }
}

impl Kinds {
    /// Takes in lone scores, whose scorer was not known when they were seen.
    pub(super) fn take_lone(&mut self, lone: &Kinds, scorer: &str) {
        if let Some((_, counts)) = lone.0.first() {
            self.0.push((scorer.to_owned(), *counts));
        }
    }
}

/// What a log's header says of who decides.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Ranking {
    /// A headline that names one value of a scorer of several, which only its author can have done.
    pub(super) declared: Option<(String, String)>,
    /// Scorers by rank: the headline's, those of the results, those of the task.
    pub(super) scorers: Vec<String>,
}

/// Who decides in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decider {
    /// This scorer, or this one value of it.
    Scorer(String, Option<String>),
    /// The first of these that a sample has a number from: nothing said what kinds of values there are.
    FirstOf(Vec<String>),
    /// Nobody: no scorer gives a number.
    Nobody,
}

impl Decider {
    /// The first by rank whose values count in this log.
    pub(super) fn of(ranking: Ranking, kinds: &Kinds) -> Self {
        if let Some((scorer, key)) = ranking.declared {
            return Decider::Scorer(scorer, Some(key));
        }
        if kinds.0.is_empty() {
            return Decider::FirstOf(ranking.scorers);
        }
        let counting = || kinds.0.iter().filter(|(_, counts)| *counts).map(|(name, _)| name);
        // A task spells a package's scorer `package/name`, its samples `name`.
        let spelled = |ranked: &String| counting().find(|name| *name == ranked || ranked.rsplit('/').next() == Some(name.as_str()));
        let first = ranking.scorers.iter().find_map(spelled).or_else(|| counting().next());
        first.map_or(Decider::Nobody, |name| Decider::Scorer(name.clone(), None))
    }

    fn decides(&self, scores: &Fields<'_>) -> Option<(String, Option<String>)> {
        match self {
            Decider::Scorer(scorer, key) => Some((scorer.clone(), key.clone())),
            Decider::FirstOf(names) => {
                let counts = |name: &&str| matches!(scores.get(name).map(|raw| grade(Score::of(raw).value)), Some(Graded::Number(..)));
                let ranked = names.iter().map(String::as_str).find(counts);
                ranked.or_else(|| scores.0.iter().map(|(name, _)| name.as_ref()).find(counts)).map(|name| (name.to_owned(), None))
            }
            Decider::Nobody => None,
        }
    }
}

/// One score as the log has it. Edits need nothing: the value is the newest, `history` has the others.
struct Score<'a> {
    value: Option<&'a RawValue>,
    answer: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
}

impl<'a> Score<'a> {
    fn of(raw: &'a RawValue) -> Self {
        if !raw.get().starts_with('{') {
            return Self { value: Some(raw), answer: None, reason: None };
        }
        let score = fields(Some(raw));
        let reason = text(score.get("explanation")).or_else(|| text(score.get("reason")));
        Self { value: score.get("value"), answer: text(score.get("answer")), reason }
    }
}

/// A sample's checks, the deciding one first, and the score that decides.
pub(super) fn judge(scores: &Fields<'_>, decider: &Decider, shown: &dyn Fn(&str) -> String) -> (Vec<Check>, Option<f64>) {
    let decides = decider.decides(scores);
    let deciding_name = decides.map(|(scorer, key)| key.map_or(scorer.clone(), |key| format!("{scorer}.{key}")));
    let mut checks = Vec::with_capacity(scores.0.len());
    for (name, raw) in &scores.0 {
        let score = Score::of(raw);
        let base = Check {
            kind: "score".to_owned(),
            answer: score.answer.as_deref().map(shown),
            reason: score.reason.as_deref().map(shown),
            ..Check::default()
        };
        add(&mut checks, shown(name), grade(score.value), &base, shown);
    }
    let deciding = deciding_name.and_then(|name| checks.iter().position(|check| check.name == name));
    let score = deciding.and_then(|place| {
        let first = checks.remove(place);
        let value = first.value;
        checks.insert(0, first);
        value
    });
    (checks, score)
}

fn add(checks: &mut Vec<Check>, name: String, graded: Graded<'_>, base: &Check, shown: &dyn Fn(&str) -> String) {
    let (value, label) = match graded {
        Graded::Number(value, label) => (Some(value), label),
        Graded::Nothing => (None, None),
        Graded::Shown(label) => (None, Some(label)),
        Graded::Several(values) => {
            for (key, raw) in &values.0 {
                let inner = match grade(Some(raw)) {
                    Graded::Several(_) => Graded::Shown(json(raw).into_owned()),
                    other => other,
                };
                add(checks, format!("{name}.{}", shown(key)), inner, base, shown);
            }
            return;
        }
    };
    if checks.len() >= CHECKS_MAX {
        return;
    }
    let passed = value.map(|value| value >= 1.0);
    checks.push(Check { name, passed, value, label: label.as_deref().map(shown), ..base.clone() });
}

/// How an attempt ended: an error beats a score, a cancellation is no error, and a limit is neither.
pub(super) fn outcome(error: Option<&str>, score: Option<f64>) -> Outcome {
    match (error, score) {
        (Some(message), _) if message.trim_start().starts_with("CancelledError(") => Outcome::Cancelled,
        (Some(_), _) => Outcome::InfraError,
        (None, None) => Outcome::Unscored,
        (None, Some(score)) if score >= 1.0 => Outcome::Pass,
        (None, Some(_)) => Outcome::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(scores: &str, ranking: &[&str]) -> (Vec<Check>, Option<f64>) {
        let scores: Fields<'_> = serde_json::from_str(scores).unwrap();
        let mut kinds = Kinds::default();
        kinds.see(&scores);
        let ranking = Ranking { declared: None, scorers: ranking.iter().map(|&name| name.to_owned()).collect() };
        judge(&scores, &Decider::of(ranking, &kinds), &str::to_owned)
    }

    #[test]
    fn values_read_as_inspect_reads_them() {
        for (value, expected) in [
            ("\"C\"", Some(1.0)),
            ("\"I\"", Some(0.0)),
            ("\"P\"", Some(0.5)),
            ("\"N\"", Some(0.0)),
            ("\"c\"", None),
            ("true", Some(1.0)),
            ("7.5", Some(7.5)),
            ("\"YES\"", Some(1.0)),
            ("\"False\"", Some(0.0)),
            ("\" 0.25 \"", Some(0.25)),
            ("\"nan\"", None),
            ("\"inf\"", None),
            ("\"fine\"", None),
            ("null", None),
            ("[1,true]", None),
            ("1e999", None),
        ] {
            assert_eq!(judged(&format!("{{\"s\":{{\"value\":{value}}}}}"), &["s"]).1, expected, "{value}");
        }
    }

    #[test]
    fn values_of_several_are_checks_and_decide_nothing() {
        let (checks, score) = judged(r#"{"d":{"value":{"a":1,"b":"C","c":[1]}},"s":{"value":"I"}}"#, &["d", "s"]);
        let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names, ["s", "d.a", "d.b", "d.c"]);
        assert_eq!((score, checks[3].label.as_deref()), (Some(0.0), Some("[1]")));
        assert_eq!(judged(r#"{"d":{"value":{"a":1}}}"#, &["d"]).1, None);
    }

    #[test]
    fn one_scorer_decides_a_log_even_where_it_said_nothing() {
        let mut kinds = Kinds::default();
        kinds.see(&serde_json::from_str(r#"{"first":{"value":1},"second":{"value":1}}"#).unwrap());
        let decider = Decider::of(Ranking { declared: None, scorers: vec!["pkg/first".to_owned()] }, &kinds);
        let silent: Fields<'_> = serde_json::from_str(r#"{"second":{"value":1}}"#).unwrap();
        assert_eq!(judge(&silent, &decider, &str::to_owned).1, None);
    }

    #[test]
    fn a_declared_value_of_several_decides() {
        let scores: Fields<'_> = serde_json::from_str(r#"{"d":{"value":{"a":0,"b":1}}}"#).unwrap();
        let decider = Decider::of(Ranking { declared: Some(("d".to_owned(), "b".to_owned())), scorers: vec![] }, &Kinds::default());
        assert_eq!(judge(&scores, &decider, &str::to_owned).1, Some(1.0));
    }

    #[test]
    fn errors_beat_scores_and_cancellations_are_no_errors() {
        assert_eq!(outcome(Some("RuntimeError('x')"), Some(1.0)), Outcome::InfraError);
        assert_eq!(outcome(Some("CancelledError(\"by scope\")"), None), Outcome::Cancelled);
        assert_eq!(outcome(None, Some(0.99)), Outcome::Fail);
        assert_eq!(outcome(None, None), Outcome::Unscored);
    }
}
