//! The words of a command line, built from a tool's arguments: a call is a command line that a person could type.
//!
//! Promises: no word begins with `-` but what the declaration says and the `--` before positionals; an argument that is not declared, is
//! missing, or is of another kind is refused by name before anything runs; the order is the declaration's, so equal calls are equal words.
//! Does not: run anything, or know a default: what is not given is not on the command line.

use serde_json::{Map, Value};

use crate::{
    config::commands::{Command, CommandOption, CommandPositional},
    domain::{attempt::shorten, text::clean},
    tools::ToolError,
};

/// How much may stand on one command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one value (`commands.value_bytes_max`).
    pub value_bytes_max: usize,
    /// Values of one list (`commands.values_max`).
    pub values_max: usize,
}

/// Characters of a wrong value that a sentence repeats.
const SHOWN_CHARS_MAX: usize = 80;
/// Beyond this a number with a fraction is not exact any more.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What an option or positional takes.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// The argument's name.
    pub name: &'a str,
    /// Its type's word.
    pub kind: &'a str,
    /// The values that are taken; all where it is empty.
    pub choices: &'a [String],
    /// What the program does without it; empty where nothing is known.
    pub default: &'a str,
    /// Whether it takes a list.
    pub repeated: bool,
    /// Whether it must be given.
    pub required: bool,
    /// What it is.
    pub help: &'a str,
    /// Whether strangers have it.
    pub public: bool,
}

impl<'a> From<&'a CommandOption> for Taken<'a> {
    fn from(option: &'a CommandOption) -> Self {
        Self {
            name: &option.name,
            kind: &option.r#type,
            choices: &option.choices,
            default: &option.default,
            repeated: option.repeated,
            required: option.required,
            help: &option.help,
            public: option.public,
        }
    }
}

impl<'a> From<&'a CommandPositional> for Taken<'a> {
    fn from(positional: &'a CommandPositional) -> Self {
        Self {
            name: &positional.name,
            kind: &positional.r#type,
            choices: &positional.choices,
            default: &positional.default,
            repeated: positional.repeated,
            required: positional.required,
            help: &positional.help,
            public: positional.public,
        }
    }
}

/// The arguments of `command` that are there for strangers only, where `public`, in their order.
pub fn taken(command: &Command, public: bool) -> impl Iterator<Item = Taken<'_>> {
    let all = command.option.iter().map(Taken::from).chain(command.positional.iter().map(Taken::from));
    all.filter(move |one| one.public || !public)
}

/// The words behind the program for a call with `arguments`; of a stranger where `public`.
///
/// # Errors
/// [`ToolError::Argument`], that names the argument, its value and what is allowed.
pub fn build(command: &Command, bounds: Bounds, arguments: &Map<String, Value>, public: bool) -> Result<Vec<String>, ToolError> {
    if let Some(name) = arguments.keys().find(|name| taken(command, public).all(|one| one.name != name.as_str())) {
        return Err(unknown(command, name, public));
    }
    let mut words = command.args.clone();
    words.extend(Some(command.json_flag.clone()).filter(|flag| !flag.is_empty()));
    for option in command.option.iter().filter(|option| option.public || !public) {
        words.extend(of_option(option, bounds, arguments.get(&option.name))?);
    }
    words.extend(of_positionals(command, bounds, arguments, public)?);
    Ok(words)
}

fn unknown(command: &Command, name: &str, public: bool) -> ToolError {
    let there: Vec<String> = taken(command, public).map(|one| format!("`{}`", one.name)).collect();
    let name = clean(&shorten(name, SHOWN_CHARS_MAX));
    ToolError::Argument(match there.as_slice() {
        [] => format!("unknown argument `{name}`, there are none"),
        all => format!("unknown argument `{name}`, expected one of {}", all.join(", ")),
    })
}

fn of_option(option: &CommandOption, bounds: Bounds, value: Option<&Value>) -> Result<Vec<String>, ToolError> {
    let flag = || option.flag.clone();
    if option.r#type == "boolean" {
        return match value {
            None | Some(Value::Bool(false)) => Ok(Vec::new()),
            Some(Value::Bool(true)) => Ok(vec![flag()]),
            Some(other) => Err(wrong(&option.name, other, "is not true or false")),
        };
    }
    let values = Taken::from(option).values(bounds, value)?;
    if option.one_flag && !values.is_empty() {
        return Ok(std::iter::once(flag()).chain(values).collect());
    }
    Ok(values.into_iter().flat_map(|value| [flag(), value]).collect())
}

fn of_positionals(command: &Command, bounds: Bounds, arguments: &Map<String, Value>, public: bool) -> Result<Vec<String>, ToolError> {
    let mut words = Vec::new();
    let mut left_out: Option<&str> = None;
    for positional in &command.positional {
        let value = arguments.get(&positional.name).filter(|_| positional.public || !public);
        let values = Taken::from(positional).values(bounds, value)?;
        match left_out {
            Some(before) if !values.is_empty() => {
                return Err(ToolError::Argument(format!("argument {}: it needs {before} too, which stands before it", positional.name)));
            }
            None if values.is_empty() => left_out = Some(&positional.name),
            _ => {}
        }
        words.extend(values);
    }
    if !words.is_empty() {
        words.insert(0, "--".to_owned());
    }
    Ok(words)
}

impl Taken<'_> {
    /// The words of its value; none where it is absent or an empty list.
    fn values(&self, bounds: Bounds, value: Option<&Value>) -> Result<Vec<String>, ToolError> {
        let values = match value {
            None => Vec::new(),
            Some(Value::Array(all)) if self.repeated => {
                if all.len() > bounds.values_max {
                    let told = format!("argument {}: {} values; at most {} are taken", self.name, all.len(), bounds.values_max);
                    return Err(ToolError::Argument(told));
                }
                all.iter().map(|one| self.word(bounds, one)).collect::<Result<_, _>>()?
            }
            Some(Value::Array(_)) => return Err(ToolError::Argument(format!("argument {}: it takes one value, not a list", self.name))),
            Some(other) if self.repeated => return Err(wrong(self.name, other, "is no list")),
            Some(one) => vec![self.word(bounds, one)?],
        };
        if self.required && values.is_empty() {
            return Err(ToolError::Argument(format!("missing argument `{}`", self.name)));
        }
        Ok(values)
    }

    /// One value as a word.
    fn word(&self, bounds: Bounds, value: &Value) -> Result<String, ToolError> {
        let word = self.of_kind(value)?;
        let refuse = |why: &str| Err(wrong(self.name, value, why));
        if word.starts_with('-') {
            return refuse("begins with -, which the command would read as an option of its own");
        }
        if word.contains('\0') {
            return refuse("has a NUL, which no command line can have");
        }
        if word.len() > bounds.value_bytes_max {
            return refuse(&format!("has {} bytes; at most {} are taken", word.len(), bounds.value_bytes_max));
        }
        if self.kind == "name" && (word.is_empty() || word.contains(['/', '\\']) || word.contains("..")) {
            return refuse("is no name: a name is not empty and has no /, \\ or ..");
        }
        if !self.choices.is_empty() && !self.choices.contains(&word) {
            return refuse(&format!("is none of {}", self.choices.join(", ")));
        }
        Ok(word)
    }

    fn of_kind(&self, value: &Value) -> Result<String, ToolError> {
        let (word, what) = match (self.kind, value) {
            ("integer", value) => (whole(value), "is not a whole number"),
            ("number", Value::Number(number)) => {
                (number.as_f64().filter(|number| number.is_finite()).map(|_| shortest(number)), "is not a number")
            }
            ("number", _) => (None, "is not a number"),
            (_, Value::String(text)) => (Some(text.clone()), ""),
            _ => (None, "is not a text"),
        };
        word.ok_or_else(|| wrong(self.name, value, what))
    }
}

/// `20` and `20.0` are the same whole number.
fn whole(value: &Value) -> Option<String> {
    let Value::Number(number) = value else { return None };
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX).map(|number| format!("{number:.0}"))
}

/// One way to write each number.
fn shortest(number: &serde_json::Number) -> String {
    whole(&Value::Number(number.clone())).unwrap_or_else(|| number.to_string())
}

fn wrong(name: &str, value: &Value, why: &str) -> ToolError {
    let shown = match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => clean(&shorten(&other.to_string(), SHOWN_CHARS_MAX)),
    };
    ToolError::Argument(format!("argument {name}: {shown} {why}"))
}

#[cfg(test)]
mod tests;
