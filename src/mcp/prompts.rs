//! Prompts: what a person picks so that an agent goes through the tools in few calls, and judges what they say as it is meant.
//!
//! Promises: a prompt is one row; each call that it names is one that its tool takes, written out as JSON; what the client gave stands in it as
//! JSON, and never as words of ours. A caller without the scope for transcripts is not sent to them. An unknown or wrong argument is refused by name.
//! Does not: embed what the store holds, or call a tool.

mod text;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    completion::Kind,
    core::{Asker, Core, one_page, text_of},
    faults::Fault,
    resources,
    results::{self, Hints, quoted},
};
use crate::{domain::attempt::shorten, gate::Lacks};

/// Bytes of an argument: ids are some hundred at most.
const VALUE_BYTES_MAX: usize = 1024;

/// A prompt.
pub struct Prompt {
    /// Its name.
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    /// Its arguments; none is required.
    pub arguments: &'static [Argument],
    render: fn(&Given<'_>) -> String,
}

/// An argument of a prompt.
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    about: &'static str,
    /// What it is a name of.
    pub kind: Kind,
}

const RUN: Argument =
    Argument { name: "run", about: "The run: latest (the default), latest~N, an id, the beginning of one, or a Git sha.", kind: Kind::Run };

/// All prompts, in the order that `prompts/list` has them.
pub static PROMPTS: [Prompt; 3] = [
    Prompt {
        name: "triage_failures",
        title: "Triage failures",
        about: "Finds why a run's evaluations failed: causes with counts, what is new, what to do first.",
        arguments: &[
            RUN,
            Argument { name: "filter", about: "Only evaluations whose id contains this, ignoring case.", kind: Kind::Evaluation },
        ],
        render: text::triage,
    },
    Prompt {
        name: "explain_regression",
        title: "Explain a regression",
        about: "Says what got worse between two runs, whether it is real, and which change fits.",
        arguments: &[
            Argument { name: "head", about: "The newer run; latest by default.", kind: Kind::Run },
            Argument { name: "base", about: "The older run; the nearest earlier comparable one by default.", kind: Kind::Run },
            Argument { name: "evaluation", about: "Only evaluations whose id contains this, ignoring case.", kind: Kind::Evaluation },
        ],
        render: text::explain,
    },
    Prompt {
        name: "write_run_summary",
        title: "Write a run summary",
        about: "Writes a short report of one run for people: results, changes, failures.",
        arguments: &[RUN],
        render: text::summary,
    },
];

/// What a prompt is rendered from.
pub struct Given<'a> {
    values: BTreeMap<&'static str, &'a str>,
    /// Whether the caller may read transcripts.
    transcripts: bool,
}

impl Given<'_> {
    /// The argument `name`, where it was given.
    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).copied()
    }
}

/// The prompt called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Prompt> {
    PROMPTS.iter().find(|prompt| prompt.name == name)
}

/// The result of `prompts/list`.
///
/// # Errors
/// [`Fault`] for a cursor.
pub fn list(core: &Core, params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    one_page(params)?;
    let argument = |one: &Argument| json!({"name": one.name, "description": one.about, "required": false});
    let described = |prompt: &Prompt| {
        let arguments: Vec<Value> = prompt.arguments.iter().map(argument).collect();
        json!({"name": prompt.name, "title": prompt.title, "description": prompt.about, "arguments": arguments})
    };
    let all: Vec<Value> = PROMPTS.iter().map(described).collect();
    Ok(results::complete(&json!({"prompts": all}), asker.era, core.hints()))
}

/// The result of `prompts/get`.
///
/// # Errors
/// [`Fault`]: an unknown prompt or argument, or a value that is none.
pub fn get(params: &Map<String, Value>, asker: &Asker) -> Result<Arc<str>, Fault> {
    let name = text_of(params, "name")?;
    let prompt = find(name).ok_or_else(|| {
        let name = quoted(&shorten(name, 80));
        Fault::parameters(format!("there is no prompt {name}; prompts/list names those there are"))
    })?;
    let transcripts = Lacks::of(&asker.caller, &resources::calls::TRANSCRIPT).is_none();
    let message = (prompt.render)(&Given { values: values(prompt, params)?, transcripts });
    let message = json!({"role": "user", "content": {"type": "text", "text": message}});
    Ok(results::complete(&json!({"description": prompt.about, "messages": [message]}), asker.era, Hints::None))
}

fn values<'a>(prompt: &Prompt, params: &'a Map<String, Value>) -> Result<BTreeMap<&'static str, &'a str>, Fault> {
    let given = match params.get("arguments") {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err(Fault::parameters("params.arguments must be an object")),
    };
    let mut out = BTreeMap::new();
    for (name, value) in given {
        let Some(known) = prompt.arguments.iter().find(|known| known.name == name) else { return Err(unknown(prompt, name)) };
        match value {
            Value::String(text) if text.len() > VALUE_BYTES_MAX => {
                return Err(Fault::parameters(format!("argument {}: it has more than {VALUE_BYTES_MAX} bytes", known.name)));
            }
            // A form that a person leaves empty sends the empty text.
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => drop(out.insert(known.name, text.as_str())),
            Value::Null => {}
            _ => return Err(Fault::parameters(format!("argument {}: it must be a text", known.name))),
        }
    }
    Ok(out)
}

fn unknown(prompt: &Prompt, name: &str) -> Fault {
    let names: Vec<&str> = prompt.arguments.iter().map(|known| known.name).collect();
    Fault::parameters(format!("unknown argument {}; {} takes {}", quoted(&shorten(name, 80)), prompt.name, names.join(", ")))
}

#[cfg(test)]
mod tests;
