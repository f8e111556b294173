//! What a log compares: the arm's name (decision 94) and its factors.
//!
//! Promises: two logs that were started the same way have one name; versions and packages are factors and never part of the name; values
//! are short and redacted.
//! Does not: compare anything.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

use super::{
    header::{Shown, digest},
    lines::compact,
};
use crate::{
    domain::{attempt::shorten, log::ArmInfo},
    importers::raw::{Fields, fields, list, text},
};

const NAME_CHARS_MAX: usize = 80;
/// Of a name that is too long, the rest is a mark and this many digits of a digest.
const DIGEST_CHARS: usize = 8;
/// A factor's level is a word or two; a long one is still told apart by its beginning and length.
pub(in crate::importers) const LEVEL_BYTES_MAX: usize = 160;
/// Settings of `eval.config` that change what is measured, and the factor's name.
const LIMITS: [(&str, &str); 9] = [
    ("message_limit", "message_limit"),
    ("max_messages", "message_limit"),
    ("token_limit", "token_limit"),
    ("turn_limit", "turn_limit"),
    ("time_limit", "time_limit"),
    ("working_limit", "working_limit"),
    ("cost_limit", "cost_limit"),
    ("epochs", "epochs"),
    ("limit", "sample_limit"),
];

/// Settings of generation that change how a run gets on and nothing that it measures: Inspect leaves the same ones out of a task's identity
/// (GENERATE_CONFIG_FIELDS_TO_EXCLUDE in its evalset.py, 0.3.285). Decision 94 has every setting that was passed in the arm's name; to the
/// letter, a run with more connections would be another arm that shares no history. They are settings of the evaluation instead.
const KNOBS: [&str; 9] = [
    "max_retries",
    "timeout",
    "attempt_timeout",
    "stream_idle_timeout",
    "max_connections",
    "adaptive_connections",
    "batch",
    "cache",
    "cache_prompt",
];

/// The arm of the log that `eval` and `plan` describe.
pub(super) fn arm(eval: &Fields<'_>, plan: &Fields<'_>, shown: &Shown<'_>) -> ArmInfo {
    let model = text(eval.get("model")).unwrap_or(Cow::Borrowed("unknown"));
    let passed = passed(eval, plan, shown);
    let mut factors = BTreeMap::new();
    let mut set = |name: &str, level: &str| {
        factors.insert(name.to_owned(), shorten(level, LEVEL_BYTES_MAX));
    };
    for (name, level) in around(eval, plan, shown) {
        set(&name, &level);
    }
    for (name, level) in &passed {
        // What was passed may be called as a factor that every log has.
        let taken = matches!(name.as_str(), "model" | "harness" | "effort");
        set(&if taken { format!("arg.{name}") } else { name.clone() }, level);
    }
    set("model", &shown.text(&model));
    set("harness", "inspect_ai");
    ArmInfo { name: name(&shown.text(&model), &passed), role: None, factors }
}

/// The name of an arm of this model with what was passed, in order.
pub(in crate::importers) fn name(model: &str, passed: &[(String, String)]) -> String {
    let mut whole = model.to_owned();
    for (name, level) in passed {
        whole.push_str(&format!("+{name}={level}"));
    }
    bounded(whole)
}

/// A name of at most 80 characters: a longer one ends in a digest of all of it.
pub(in crate::importers) fn bounded(whole: String) -> String {
    if whole.chars().count() <= NAME_CHARS_MAX {
        return whole;
    }
    let digest: String = digest(std::iter::once(whole.as_str())).chars().take(DIGEST_CHARS).collect();
    let kept: String = whole.chars().take(NAME_CHARS_MAX - 1 - DIGEST_CHARS).collect();
    format!("{kept}~{digest}")
}

/// What somebody passed, by name: task arguments, the solver, settings of generation.
fn passed(eval: &Fields<'_>, plan: &Fields<'_>, shown: &Shown<'_>) -> Vec<(String, String)> {
    let arguments = fields(eval.get("task_args_passed").or_else(|| eval.get("task_args")));
    let generation = generation(eval, plan);
    let given = generation.0.iter().filter(|(name, raw)| raw.get() != "null" && !is_knob(name));
    let mut passed: Vec<(String, String)> =
        arguments.0.iter().chain(given).map(|(name, raw)| (shown.text(name), level(name, raw, shown))).collect();
    passed.extend(eval.get("solver").map(|raw| ("solver".to_owned(), level("solver", raw, shown))));
    passed.sort();
    passed
}

/// Settings that hold text or structure rather than a word: a name or factor tells them apart by a digest, and never says what they say.
const TEXTS: [&str; 6] = ["system_message", "extra_body", "extra_headers", "response_schema", "stop_seqs", "logit_bias"];

/// The settings of generation. Logs of 2024 have them in the plan only.
fn generation<'a>(eval: &Fields<'a>, plan: &Fields<'a>) -> Fields<'a> {
    fields(eval.get("model_generate_config").or_else(|| plan.get("config")))
}

fn is_knob(name: &str) -> bool {
    KNOBS.contains(&name)
}

/// The factors that are not part of the name.
fn around(eval: &Fields<'_>, plan: &Fields<'_>, shown: &Shown<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut all = |prefix: &str, fields: &Fields<'_>| {
        let given = fields.0.iter().filter(|(_, raw)| raw.get() != "null");
        found.extend(given.map(|(name, raw)| (format!("{prefix}{}", shown.text(name)), level(name, raw, shown))));
    };
    all("package.", &fields(eval.get("packages")));
    all("model_arg.", &fields(eval.get("model_args")));
    all("solver_arg.", &fields(eval.get("solver_args_passed").or_else(|| eval.get("solver_args"))));
    for (role, raw) in &fields(eval.get("model_roles")).0 {
        let models = if raw.get().starts_with('[') { list(Some(raw)).0 } else { vec![*raw] };
        let models: Vec<Cow<'_, str>> =
            models.into_iter().filter_map(|one| text(Some(one)).or_else(|| text(fields(Some(one)).get("model")))).collect();
        found.push((format!("role.{}", shown.text(role)), shown.text(&models.join(" "))));
    }
    let effort = generation(eval, plan).get("reasoning_effort");
    found.extend(effort.map(|raw| ("effort".to_owned(), level("effort", raw, shown))));
    found
}

/// How the task was run, beyond the arm: logs of one run and arm differ in these, so they belong to the evaluation.
pub(super) fn settings(eval: &Fields<'_>, plan: &Fields<'_>, shown: &Shown<'_>) -> BTreeMap<String, String> {
    let config = fields(eval.get("config"));
    let mut found: BTreeMap<String, String> =
        LIMITS.iter().filter_map(|(key, name)| Some(((*name).to_owned(), level(key, config.get(key)?, shown)))).collect();
    let generation = generation(eval, plan);
    let knobs = generation.0.iter().filter(|(name, raw)| is_knob(name) && raw.get() != "null");
    found.extend(knobs.map(|(name, raw)| (name.to_string(), level(name, raw, shown))));
    found.extend(solvers(plan, shown).map(|plan| ("plan".to_owned(), plan)));
    found.extend(sandbox(eval.get("sandbox")).map(|kind| ("sandbox".to_owned(), shown.text(&kind))));
    found.into_iter().map(|(name, level)| (name, shorten(&level, LEVEL_BYTES_MAX))).collect()
}

/// The solvers in their order, and a digest of their parameters: a changed system prompt is seen, and not told.
fn solvers(plan: &Fields<'_>, shown: &Shown<'_>) -> Option<String> {
    let steps: Vec<Fields<'_>> = list(plan.get("steps")).0.iter().map(|step| fields(Some(step))).collect();
    let names: Vec<Cow<'_, str>> = steps.iter().filter_map(|step| text(step.get("solver"))).collect();
    let parameters: Vec<&str> = steps.iter().filter_map(|step| step.get("params")).map(RawValue::get).filter(|raw| *raw != "{}").collect();
    if names.is_empty() {
        return None;
    }
    let mark: String = digest(parameters.iter().copied()).chars().take(DIGEST_CHARS).collect();
    let names = shown.text(&names.join(" > "));
    Some(if parameters.is_empty() { names } else { format!("{names} ({mark})") })
}

/// A list of type and settings in old logs, an object since.
fn sandbox(raw: Option<&RawValue>) -> Option<String> {
    let kind = text(raw).or_else(|| text(fields(raw).get("type"))).or_else(|| text(list(raw).0.first().copied()))?;
    Some(kind.into_owned())
}

/// A value as one line of text. Redacted together with its name: `api_key` beside a value says what the value is.
pub(in crate::importers) fn level(name: &str, raw: &RawValue, shown: &Shown<'_>) -> String {
    if TEXTS.contains(&name) {
        return digest(std::iter::once(raw.get())).chars().take(DIGEST_CHARS).collect();
    }
    let plain = text(Some(raw)).unwrap_or_else(|| Cow::Owned(compact(raw.get())));
    spelled(name, &plain, shown)
}

/// The value `plain` of what is called `name`, as it may be kept.
pub(in crate::importers) fn spelled(name: &str, plain: &str, shown: &Shown<'_>) -> String {
    let level = shown.redactor.redact_value(name, plain);
    // In capitals any name with KEY, TOKEN, ... in it is a secret's; the text says it together with its name.
    let spelled = format!("{name}={level}");
    let safe = shown.redactor.redact(&spelled);
    let level = safe.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).unwrap_or(&level);
    shorten(level, shown.bytes_max).replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::redaction::Redactor;

    fn made(eval: &str) -> ArmInfo {
        let redactor = Redactor::patterns_only();
        arm(&serde_json::from_str(eval).unwrap(), &Fields::default(), &Shown { redactor: &redactor, bytes_max: 2048 })
    }

    #[test]
    fn the_name_is_the_model_and_what_was_passed() {
        let found = made(
            r#"{"model":"openai/gpt","task_args":{"x":1,"y":2},"task_args_passed":{"x":1},"solver":"react","packages":{"inspect_ai":"0.3"},
            "model_generate_config":{"temperature":0.5,"top_p":null,"reasoning_effort":"high"},"config":{"message_limit":20,"epochs":3}}"#,
        );
        assert_eq!(found.name, "openai/gpt+reasoning_effort=high+solver=react+temperature=0.5+x=1");
        for (name, level) in [("model", "openai/gpt"), ("effort", "high"), ("package.inspect_ai", "0.3"), ("x", "1")] {
            assert_eq!(found.factors.get(name).map(String::as_str), Some(level), "{name}");
        }
        assert_eq!(made(r#"{"model":"m","task_args":{"x":"a b"}}"#).name, "m+x=a b");
        assert_eq!(made(r#"{"model":"m","task_args":{"x":1},"task_args_passed":{}}"#).name, "m");
    }

    #[test]
    fn what_belongs_to_the_task_is_no_factor_of_the_arm() {
        let redactor = Redactor::patterns_only();
        let shown = Shown { redactor: &redactor, bytes_max: 2048 };
        let eval: Fields<'_> = serde_json::from_str(r#"{"model":"m","config":{"message_limit":20,"epochs":3}}"#).unwrap();
        let plan = |prompt: &str| {
            format!(
                r#"{{"steps":[{{"solver":"system_message","params":{{"template":"{prompt}"}}}},{{"solver":"generate","params":{{}}}}]}}"#
            )
        };
        let (a, b) = (plan("be kind"), plan("be brief"));
        let of = |plan: &str| settings(&eval, &serde_json::from_str(plan).unwrap(), &shown);
        assert_eq!((of(&a).get("message_limit").map(String::as_str), of(&a).get("epochs").map(String::as_str)), (Some("20"), Some("3")));
        assert!(of(&a)["plan"].starts_with("system_message > generate (") && !of(&a)["plan"].contains("kind"));
        assert_ne!(of(&a)["plan"], of(&b)["plan"]);
        assert!(!made(r#"{"model":"m","task_version":2,"config":{"epochs":3}}"#).factors.contains_key("epochs"));
    }

    #[test]
    fn what_changes_nothing_that_is_measured_is_no_part_of_the_name() {
        let redactor = Redactor::patterns_only();
        let shown = Shown { redactor: &redactor, bytes_max: 2048 };
        let knobs = r#"{"temperature":1,"max_connections":20,"adaptive_connections":{"min":1},"max_retries":3,"timeout":9,"attempt_timeout":8,
            "stream_idle_timeout":7,"batch":true,"cache":{"expiry":"1W"},"cache_prompt":"auto"}"#;
        let new = format!(r#"{{"model":"m","model_generate_config":{knobs}}}"#);
        let old = format!(r#"{{"config":{knobs}}}"#);
        let (eval, bare, plan): (Fields<'_>, Fields<'_>, Fields<'_>) =
            (serde_json::from_str(&new).unwrap(), serde_json::from_str(r#"{"model":"m"}"#).unwrap(), serde_json::from_str(&old).unwrap());
        for (eval, plan) in [(&eval, &Fields::default()), (&bare, &plan)] {
            let arm = arm(eval, plan, &shown);
            assert_eq!(arm.name, "m+temperature=1");
            assert!(KNOBS.iter().all(|knob| !arm.factors.contains_key(*knob)), "{:?}", arm.factors);
            let settings = settings(eval, plan, &shown);
            assert!(KNOBS.iter().all(|knob| settings.contains_key(*knob)), "{settings:?}");
            assert_eq!((settings["max_connections"].as_str(), settings["cache"].as_str()), ("20", r#"{"expiry":"1W"}"#));
        }
        // An argument of the task may be called so and is another matter.
        assert_eq!(made(r#"{"model":"m","task_args":{"timeout":5},"model_generate_config":{"timeout":null}}"#).name, "m+timeout=5");
    }

    #[test]
    fn a_prompt_is_told_apart_and_not_told() {
        let named =
            |prompt: &str| made(&format!(r#"{{"model":"m","model_generate_config":{{"system_message":"{prompt}","temperature":0.5}}}}"#));
        let (a, b) = (named("be kind"), named("be brief"));
        assert!(a.name != b.name && !format!("{a:?}").contains("kind"), "{a:?}");
        assert!(a.name.contains("temperature=0.5"));
    }

    #[test]
    fn a_long_name_ends_in_a_digest_of_all_of_it() {
        let long = |end: &str| made(&format!(r#"{{"model":"m","task_args":{{"prompt":"{}{end}"}}}}"#, "é".repeat(100))).name;
        assert_eq!(long("a").chars().count(), 80);
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn an_argument_that_is_called_model_does_not_hide_the_model() {
        let found = made(r#"{"model":"m","task_args_passed":{"model":"grader"}}"#);
        assert_eq!(found.factors.get("model").map(String::as_str), Some("m"));
        assert_eq!(found.factors.get("arg.model").map(String::as_str), Some("grader"));
    }
}
