//! What a results file compares: the model with the arguments that were passed (decision 94), and the stack around it as factors.
//!
//! Promises: two runs that were started the same way have one name, on any machine and with any version of the harness: directories are
//! dropped, `True` and `true` are one level; versions are factors and never part of the name.
//! Does not: know tasks.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

use super::results::Members;
use crate::{
    domain::{attempt::shorten, log::ArmInfo},
    importers::{
        inspect::{
            arm::{LEVEL_BYTES_MAX, name, spelled},
            header::Shown,
            lines::compact,
        },
        raw::{fields, read, text},
    },
};

/// Arguments that name the model, in the harness' own order: an adapter stands beside the model that it adapts.
const NAMING: [&str; 6] = ["peft", "delta", "pretrained", "model", "path", "engine"];
/// Arguments that change how a run gets on and nothing that it measures: they are factors, and no part of the name.
const KNOBS: [&str; 35] = [
    "api_key",
    "base_url",
    "batch_size",
    "cache_dir",
    "data_parallel_size",
    "device",
    "device_map",
    "device_map_option",
    "disable_log_stats",
    "distributed_backend",
    "download_dir",
    "enforce_eager",
    "eval_results_prefix",
    "global_num_gpus",
    "gpu_memory_utilization",
    "gpus",
    "local_rank",
    "log_dir",
    "logits_cache",
    "max_batch_size",
    "max_cpu_memory",
    "max_memory_per_gpu",
    "max_retries",
    "num_concurrent",
    "offload_folder",
    "parallelize",
    "pipeline_parallel_size",
    "rank",
    "swap_space",
    "tensor_parallel_size",
    "timeout",
    "token",
    "trust_remote_code",
    "user_script",
    "verify_certificate",
];
/// Ends of paths that tell nothing without what stands before.
const GENERIC: [&str; 8] = ["checkpoint", "step", "global_step", "epoch", "final", "merged", "hf", "model"];
/// What the harness makes up where no argument names the model: so many letters and digits.
const MADE_UP_CHARS: usize = 8;
/// Arguments that are kept.
const ARGUMENTS_MAX: usize = 1000;
/// Of a digest, what a name shows.
const DIGEST_CHARS: usize = 8;

type Level = (String, String);

/// The arm of a results file.
pub(super) fn arm(members: &Members<'_>, shown: &Shown<'_>) -> ArmInfo {
    let arguments = levels(members.config.get("model_args"));
    let named = NAMING.iter().find_map(|key| arguments.iter().find(|(name, _)| name == key)).map(|(_, level)| level.clone());
    let kind = text(members.config.get("model")).or_else(|| text(members.top.get("model_source")));
    let own = text(members.top.get("model_name")).map(Cow::into_owned).filter(|own| named.is_some() || !made_up(own));
    let whole = own.or(named).or_else(|| kind.as_deref().map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned());
    let model = shown.text(&portable(&whole));
    let mut passed: Vec<Level> = arguments.iter().filter(|(name, level)| *level != whole && !is_knob(name)).cloned().collect();
    passed.extend(levels(members.config.get("gen_kwargs")));
    passed.extend(prompting(members));
    let mut passed: Vec<Level> = passed.iter().map(|(name, level)| (shown.text(name), kept(name, level, shown))).collect();
    passed.sort();
    let mut factors = around(members, &arguments, shown);
    // What was passed may be called as a factor that every log has.
    let taken = |name: &str| matches!(name, "model" | "harness" | "model_type");
    factors.extend(passed.iter().map(|(name, level)| (if taken(name) { format!("arg.{name}") } else { name.clone() }, level.clone())));
    factors.insert("model".to_owned(), model.clone());
    factors.insert("harness".to_owned(), "lm_eval".to_owned());
    factors.extend(kind.map(|kind| ("model_type".to_owned(), shown.text(&kind))));
    let factors = factors.into_iter().map(|(name, level)| (name, shorten(&level, LEVEL_BYTES_MAX))).collect();
    ArmInfo { name: name(&model, &passed), role: None, factors }
}

/// A level as it may be kept. Loaders of models call the key to a hub just `token`.
fn kept(name: &str, level: &str, shown: &Shown<'_>) -> String {
    let said = if matches!(name, "token" | "hf_token") { "auth_token" } else { name };
    spelled(said, &portable(level), shown)
}

/// Arguments as an object or as `a=1,b=2`. Nulls were not passed.
fn levels(raw: Option<&RawValue>) -> Vec<Level> {
    let mut found: Vec<Level> = Vec::new();
    if let Some(text) = text(raw) {
        for part in text.split(',') {
            match part.split_once('=') {
                Some((name, level)) => found.push((name.trim().to_owned(), level.trim().to_owned())),
                // A comma inside a value.
                None => found.iter_mut().next_back().into_iter().for_each(|(_, level)| level.extend([",", part])),
            }
        }
    } else {
        let plain = |raw: &RawValue| text_or_raw(raw);
        found.extend(fields(raw).0.iter().map(|(name, raw)| (name.clone().into_owned(), plain(raw))));
    }
    let python = |level: String| match level.as_str() {
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        _ => level,
    };
    let given = found.into_iter().filter(|(name, level)| !name.is_empty() && !matches!(level.as_str(), "" | "null" | "None"));
    given.take(ARGUMENTS_MAX).map(|(name, level)| (name, python(level))).collect()
}

fn text_or_raw(raw: &RawValue) -> String {
    text(Some(raw)).map_or_else(|| compact(raw.get()), Cow::into_owned)
}

fn made_up(name: &str) -> bool {
    name.len() == MADE_UP_CHARS && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_knob(name: &str) -> bool {
    KNOBS.contains(&name) || name.starts_with("wandb")
}

/// A path without the directories of one machine; anything else as it is. A hub's name has one slash at most.
fn portable(level: &str) -> String {
    let path = level.starts_with(['/', '~', '.']) || level.contains('\\') || level.matches('/').count() > 1;
    if !path || level.contains("://") || level.contains([' ', '{', '[']) {
        return level.to_owned();
    }
    let parts: Vec<&str> = level.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [.., before, last] if GENERIC.iter().any(|word| last.to_ascii_lowercase().starts_with(word)) => format!("{before}/{last}"),
        [.., last] => (*last).to_owned(),
        [] => level.to_owned(),
    }
}

/// How prompts are wrapped, which a person asks for on the command line.
fn prompting(members: &Members<'_>) -> Vec<Level> {
    let digest = |key| text(members.top.get(key)).map(|sha| sha.chars().take(DIGEST_CHARS).collect::<String>());
    let mut found = Vec::new();
    found.extend(digest("chat_template_sha").map(|_| ("apply_chat_template".to_owned(), "true".to_owned())));
    found.extend(digest("system_instruction_sha").map(|sha| ("system_instruction".to_owned(), sha)));
    let turns = read::<bool>(members.top.get("fewshot_as_multiturn")) == Some(true);
    found.extend(turns.then(|| ("fewshot_as_multiturn".to_owned(), "true".to_owned())));
    found
}

/// The factors that are no part of the name.
fn around(members: &Members<'_>, arguments: &[Level], shown: &Shown<'_>) -> BTreeMap<String, String> {
    let knobs = arguments.iter().filter(|(name, _)| is_knob(name));
    let mut found: BTreeMap<String, String> =
        knobs.map(|(name, level)| (format!("model_arg.{}", shown.text(name)), kept(name, level, shown))).collect();
    let mut add = |name: &str, raw: Option<&RawValue>| {
        let level = raw.map(text_or_raw).filter(|level| !level.is_empty() && level != "N/A" && level != "null");
        found.extend(level.map(|level| (name.to_owned(), spelled(name, &level, shown))));
    };
    for key in ["model_num_parameters", "model_dtype", "model_revision", "model_sha"] {
        add(key, members.config.get(key));
    }
    for key in ["chat_template_sha", "max_length"] {
        add(key, members.top.get(key));
    }
    add("package.lm_eval", members.top.get("lm_eval_version"));
    add("package.transformers", members.top.get("transformers_version"));
    let environment = text(members.top.get("pretty_env_info")).unwrap_or_default();
    for (name, begins) in [
        ("package.torch", "PyTorch version: "),
        ("package.python", "Python version: "),
        ("cuda", "CUDA runtime version: "),
        ("gpu", "GPU 0: "),
    ] {
        let level = environment.lines().find_map(|line| line.strip_prefix(begins));
        found.extend(level.map(|level| (name.to_owned(), shown.text(level.split(" | ").next().unwrap_or(level)))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::redaction::Redactor;

    fn made(results: &str) -> ArmInfo {
        let redactor = Redactor::patterns_only();
        arm(&Members::read(results).unwrap(), &Shown { redactor: &redactor, bytes_max: 2048 })
    }

    #[test]
    fn arguments_as_text_and_as_an_object_make_one_name() {
        for arguments in [
            r#""pretrained=org/m,dtype=float16,peft_x=True,trust_remote_code=True""#,
            r#"{"pretrained":"org/m","dtype":"float16","peft_x":true,"trust_remote_code":true,"a":null}"#,
        ] {
            let found = made(&format!(r#"{{"model_name":"org/m","config":{{"model":"hf","model_args":{arguments}}}}}"#));
            assert_eq!(found.name, "org/m+dtype=float16+peft_x=true");
            assert_eq!(found.factors["model_arg.trust_remote_code"], "true");
            assert_eq!((found.factors["model"].as_str(), found.factors["model_type"].as_str()), ("org/m", "hf"));
        }
    }

    #[test]
    fn a_made_up_name_is_no_model() {
        assert_eq!(made(r#"{"model_name":"6jf4z2qc","config":{"model":"dummy","model_args":{}}}"#).name, "dummy");
        assert_eq!(made(r#"{"model_name":"abcd1234","config":{"model":"hf","model_args":"pretrained=abcd1234"}}"#).name, "abcd1234");
        assert_eq!(made(r#"{"config":{"model":"gpt2","model_args":"limit=1,2"}}"#).name, "gpt2+limit=1,2");
        assert_eq!(made("{}").name, "unknown");
    }

    #[test]
    fn names_hold_no_directories_and_no_secrets() {
        for (path, level) in [
            ("/data/me/llama-7b", "llama-7b"),
            ("./out/run1/checkpoint-200/", "run1/checkpoint-200"),
            (r"C:\\models\\m", "m"),
            ("org/m", "org/m"),
            ("https://a.b/c/d", "https://a.b/c/d"),
        ] {
            let found = made(&format!(r#"{{"config":{{"model_args":{{"pretrained":"{path}"}}}}}}"#));
            assert_eq!(found.name, level);
        }
        let found = made(r#"{"config":{"model":"m","model_args":"api_key=abcdefgh12345678,token=abcdefgh12345678"}}"#);
        assert!(!format!("{found:?}").contains("abcdefgh12345678"), "{found:?}");
    }

    #[test]
    fn what_was_asked_for_on_the_command_line_is_part_of_the_name() {
        let found = made(
            r#"{"model_name":"org/m","chat_template_sha":"aaaabbbbcccc","system_instruction_sha":"ddddeeeeffff","fewshot_as_multiturn":false,
            "lm_eval_version":"0.4.9","transformers_version":"N/A","pretty_env_info":"PyTorch version: 2.9.0\nPython version: 3.11.13 | x\nGPU 0: A100",
            "config":{"model":"hf","model_args":"pretrained=org/m","gen_kwargs":"temperature=0.5"}}"#,
        );
        assert_eq!(found.name, "org/m+apply_chat_template=true+system_instruction=ddddeeee+temperature=0.5");
        for (name, level) in [
            ("package.lm_eval", "0.4.9"),
            ("package.torch", "2.9.0"),
            ("package.python", "3.11.13"),
            ("gpu", "A100"),
            ("chat_template_sha", "aaaabbbbcccc"),
        ] {
            assert_eq!(found.factors.get(name).map(String::as_str), Some(level), "{name}");
        }
        assert!(!found.factors.contains_key("package.transformers"));
    }
}
