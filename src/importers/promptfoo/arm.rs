//! The arms of a file: a provider with a prompt (decision 94).
//!
//! Promises: an arm is called by its provider's label, else by its id and what its configuration passes; where a file has several prompts,
//! the prompt is part of the name; two arms never share a name; a configuration's secrets and paths are in no name and no factor.
//! Does not: count anything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::{
    paths::bare,
    slots::Slot,
    test::{cut, one_line},
};
use crate::{
    domain::{attempt::shorten, log::ArmInfo},
    importers::{
        inspect::{
            arm::{LEVEL_BYTES_MAX, bounded, level},
            header::{Shown, digest},
        },
        raw::{Fields, fields, list, text},
    },
    telemetry::redaction::plain_escapes,
};

/// A prompt's label is often its whole text: what is longer is cut, and a digest ends it.
const PROMPT_CHARS_MAX: usize = 40;
const DIGEST_CHARS: usize = 8;
/// Factors that every arm has.
const OWN: [&str; 6] = ["model", "harness", "effort", "provider", "prompt", "prompt_id"];
/// Settings of a provider that say how it is reached and change nothing that is measured: factors, and never part of a name.
const KNOBS: [&str; 14] = [
    "apiKey",
    "apiKeyEnvar",
    "apiHost",
    "apiBaseUrl",
    "baseURL",
    "basePath",
    "organization",
    "headers",
    "timeout",
    "timeoutMs",
    "maxRetries",
    "retries",
    "delay",
    "workers",
];

/// The arms of a file.
pub(super) struct Arms {
    /// By name.
    pub(super) infos: Vec<ArmInfo>,
    /// The arm of each column, by number in `names`.
    pub(super) of_slot: Vec<u32>,
    /// The name of each arm.
    pub(super) names: Vec<String>,
}

/// What makes an arm.
struct Key<'a> {
    slot: &'a Slot,
    /// The provider's configuration as it is written.
    config: &'a str,
    /// Its place among the columns that nothing else tells apart.
    column: usize,
}

impl Key<'_> {
    fn is_arm_of(&self, other: &Key<'_>) -> bool {
        self.slot.asks_as(other.slot) && self.config == other.config && self.column == other.column
    }
}

/// A provider as the configuration declares it.
struct Declared<'a> {
    id: String,
    label: String,
    config: Fields<'a>,
    raw: &'a str,
}

/// The arms of the columns `slots`; `header` has the configuration and the version.
pub(super) fn arms(slots: &[Slot], header: &Fields<'_>, shown: &Shown<'_>) -> Arms {
    let slots = named(slots, header);
    let declared = declared(header);
    let prompts: BTreeSet<(&str, &str)> = slots.iter().map(|slot| (slot.prompt.as_str(), slot.prompt_id.as_str())).collect();
    let maker = Maker { shown, several: prompts.len() > 1, version: version(header) };
    let mut keys: Vec<Key<'_>> = Vec::new();
    let mut made: Vec<ArmInfo> = Vec::new();
    let mut of_slot = Vec::with_capacity(slots.len());
    for slot in &slots {
        let rank = slots.iter().filter(|other| other.asks_as(slot) && other.idx < slot.idx).count();
        let config = declaration(slot, rank, &declared);
        // Columns of one provider, prompt and configuration are tries of one arm. Where nothing says how they differ, they are taken to.
        let column = if declared.is_empty() && slot.label.is_empty() { rank } else { 0 };
        let raw = config.map_or("", |declared| declared.raw);
        let key = Key { slot, config: raw, column };
        let place = keys.iter().position(|known| known.is_arm_of(&key)).unwrap_or_else(|| {
            made.push(maker.arm(slot, config.map(|declared| &declared.config), column));
            keys.push(key);
            made.len() - 1
        });
        of_slot.push(u32::try_from(place).unwrap_or(u32::MAX));
    }
    tell_apart(&mut made, &keys, shown);
    let names = made.iter().map(|arm| arm.name.clone()).collect();
    made.sort_by(|a, b| a.name.cmp(&b.name));
    Arms { infos: made, of_slot, names }
}

/// The columns, with what the header says of those that rows leave unsaid.
fn named(slots: &[Slot], header: &Fields<'_>) -> Vec<Slot> {
    let prompts = list(header.get("results.prompts")).0;
    let providers = declared(header);
    let known = |slot: &Slot| slot.idx.and_then(|idx| prompts.get(usize::try_from(idx).ok()?).copied());
    let fill = |slot: &Slot| {
        let mut slot = slot.clone();
        let prompt = fields(known(&slot));
        let or = |own: &mut String, key: &str| {
            if own.is_empty() {
                *own = text(prompt.get(key)).unwrap_or_default().into_owned();
            }
        };
        or(&mut slot.prompt, "label");
        or(&mut slot.prompt_id, "id");
        or(&mut slot.provider, "provider");
        // Rows of the oldest files do not name the one provider.
        if let ([only], true) = (providers.as_slice(), slot.provider.is_empty()) {
            (slot.provider, slot.label) = (only.id.clone(), only.label.clone());
        }
        slot
    };
    slots.iter().map(fill).collect()
}

fn version(header: &Fields<'_>) -> Option<String> {
    text(fields(header.get("metadata")).get("promptfooVersion")).map(std::borrow::Cow::into_owned)
}

/// The providers of the configuration: text, an object with an id, or an object whose one member is named by the id.
fn declared<'a>(header: &Fields<'a>) -> Vec<Declared<'a>> {
    let raw = header.get("config.providers").or_else(|| header.get("config.targets"));
    let all = match raw {
        Some(one) if !one.get().starts_with('[') => vec![one],
        raw => list(raw).0,
    };
    all.into_iter().map(declaration_of).collect()
}

fn declaration_of(raw: &RawValue) -> Declared<'_> {
    if let Some(id) = text(Some(raw)) {
        return Declared { id: id.into_owned(), label: String::new(), config: Fields::default(), raw: "" };
    }
    let provider = fields(Some(raw));
    let (id, options) = match (provider.get("id"), provider.0.as_slice()) {
        (None, [(id, options)]) => (id.clone().into_owned(), fields(Some(*options))),
        (id, _) => (text(id).unwrap_or_default().into_owned(), provider),
    };
    let config = options.get("config");
    let label = text(options.get("label")).unwrap_or_default().into_owned();
    Declared { id, label, config: fields(config), raw: config.map_or("", RawValue::get) }
}

/// What the configuration says of a column. Of several entries for one provider, the columns of a prompt take one each, in order.
fn declaration<'d, 'a>(slot: &Slot, rank: usize, declared: &'d [Declared<'a>]) -> Option<&'d Declared<'a>> {
    let labelled = |entry: &&Declared<'_>| !slot.label.is_empty() && entry.label == slot.label;
    let by_label: Vec<&Declared<'_>> = declared.iter().filter(labelled).collect();
    let matching = if by_label.is_empty() { declared.iter().filter(|entry| entry.id == slot.provider).collect() } else { by_label };
    matching.get(rank).or_else(|| matching.last()).copied()
}

struct Maker<'a> {
    shown: &'a Shown<'a>,
    several: bool,
    version: Option<String>,
}

impl Maker<'_> {
    fn arm(&self, slot: &Slot, config: Option<&Fields<'_>>, column: usize) -> ArmInfo {
        let model = self.word(if slot.provider.is_empty() { "unknown" } else { &slot.provider });
        let (mut name, labelled) = if slot.label.is_empty() { (model.clone(), false) } else { (self.word(&slot.label), true) };
        let mut factors = BTreeMap::new();
        let mut passed = BTreeMap::new();
        for (key, raw) in config.iter().flat_map(|config| &config.0).filter(|(_, raw)| raw.get() != "null") {
            let value = self.level(key, raw);
            let key = self.word(key);
            if !KNOBS.contains(&key.as_str()) && !value.contains(crate::telemetry::redaction::REDACTED) {
                passed.insert(key.clone(), value.clone());
            }
            factors.insert(if OWN.contains(&key.as_str()) { format!("arg.{key}") } else { key }, value);
        }
        let prompt = self.prompt(slot);
        passed.retain(|_, _| !labelled);
        if self.several {
            passed.insert("prompt".to_owned(), prompt.clone());
        }
        if column > 0 {
            passed.insert("column".to_owned(), (column + 1).to_string());
        }
        passed.iter().for_each(|(key, value)| name.push_str(&format!("+{key}={value}")));
        let mut own = |key: &str, value: &str| {
            if !value.is_empty() {
                factors.insert(key.to_owned(), shorten(value, LEVEL_BYTES_MAX));
            }
        };
        own("model", &model);
        own("harness", "promptfoo");
        own("provider", &self.word(&slot.label));
        own("prompt", &prompt);
        own("prompt_id", &self.word(&slot.prompt_id).chars().take(12).collect::<String>());
        own("effort", &config.map_or_else(String::new, |config| self.effort(config)));
        own("package.promptfoo", &self.word(self.version.as_deref().unwrap_or_default()));
        ArmInfo { name: bounded(name), role: None, factors }
    }

    /// A value of a configuration: a word, or a digest of what holds text or structure.
    fn level(&self, key: &str, raw: &RawValue) -> String {
        let level = bare(&one_line(&level(key, raw, self.shown)));
        let structure = raw.get().starts_with(['{', '[']) || level.chars().count() > PROMPT_CHARS_MAX;
        if structure { digest(std::iter::once(level.as_str())).chars().take(DIGEST_CHARS).collect() } else { level }
    }

    fn effort(&self, config: &Fields<'_>) -> String {
        let nested = fields(config.get("reasoning"));
        let effort = config.get("reasoning_effort").or_else(|| nested.get("effort"));
        text(effort).map(|effort| self.word(&effort)).unwrap_or_default()
    }

    fn prompt(&self, slot: &Slot) -> String {
        let spelled = if slot.prompt.is_empty() { &slot.prompt_id } else { &slot.prompt };
        cut(&bare(&one_line(&self.shown.redactor.redact(spelled))), PROMPT_CHARS_MAX)
    }

    fn word(&self, text: &str) -> String {
        shorten(&bare(&one_line(&self.shown.redactor.redact(text))), LEVEL_BYTES_MAX)
    }
}

/// Arms that would have one name get a digest of what makes them differ.
fn tell_apart(arms: &mut [ArmInfo], keys: &[Key<'_>], shown: &Shown<'_>) {
    let mut times = BTreeMap::<String, u32>::new();
    arms.iter().for_each(|arm| *times.entry(arm.name.clone()).or_default() += 1);
    let mut taken: BTreeSet<String> = times.iter().filter(|(_, times)| **times == 1).map(|(name, _)| name.clone()).collect();
    for (arm, Key { slot, config, .. }) in arms.iter_mut().zip(keys) {
        if times.get(&arm.name).is_none_or(|times| *times == 1) {
            continue;
        }
        let config = plain_escapes(config);
        let parts = [&slot.provider, &slot.label, &slot.prompt_id, &slot.prompt, config.as_ref()];
        let safe: Vec<String> = parts.iter().map(|part| bare(&shown.redactor.redact(part))).collect();
        let digest: String = digest(safe.iter().map(String::as_str)).chars().take(DIGEST_CHARS).collect();
        let base = bounded(format!("{}~{digest}", arm.name));
        // Arms that differ in a secret alone are still two.
        let mut name = base.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = bounded(format!("{base}~{number}"));
        }
        arm.name = name;
    }
}
