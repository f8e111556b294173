//! Programs of the operator's that are tools: the keys of `[[command]]`, held against what a command line can be.
//!
//! Promises: every fault of every declaration is told at once, with its key and what would be right; what passes can be run, but for programs
//! and directories that are not there.
//! Does not: look for a program, or build a command line (`commands` does).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;
use toml::Value;

use super::shape::{Row, Shape};
use crate::auth::KNOWN_SCOPES;

/// Kinds of values that an option or positional takes.
pub const KINDS: [&str; 6] = ["string", "integer", "number", "boolean", "name", "choice"];
/// Characters of a tool's name: with the client's own prefix it must fit what models take.
const NAME_CHARS_MAX: usize = 48;
/// Characters of a wrong value that a sentence repeats.
const SHOWN_CHARS_MAX: usize = 80;
/// Variables that hold secrets of the server's own.
const OWN_VARIABLES: &str = "RUNLORE_";

tables! {
    /// An option of a command: `--flag` with or without a value.
    "command.option", OPTION: CommandOption {
        /// The argument's name, such as goal.
        name: String = (text ""),
            "the property that an agent sends";
        /// What stands on the command line, such as --goal.
        flag: String = (text ""),
            "programs spell their options as they like";
        /// string, integer, number, boolean, name (no / or \, no ..) or choice.
        r#type: String = (text "string"),
            "boolean is a flag without a value; name is for what the program makes a path of";
        /// The values that are taken; needed with type choice.
        choices: Vec<String> = (texts [], 256),
            "an agent sees them in the schema";
        /// What the program does without it; told to agents, never put on the command line.
        default: String = (text ""),
            "the program knows its own default best";
        /// Whether it takes a list.
        repeated: bool = (false),
            "most take one value";
        /// Whether a list stands behind one flag (argparse's nargs) instead of a flag before each value.
        one_flag: bool = (false),
            "most programs take the flag again";
        /// Whether it must be given.
        required: bool = (false),
            "most need not";
        /// What it does, for agents.
        help: String = (text ""),
            "an agent knows no more of it than this";
        /// Whether strangers have it on a public server.
        public: bool = (true),
            "false for what answers with texts that are not to be published";
    }
}

tables! {
    /// What stands on the command line without a flag, in this order, behind `--`.
    "command.positional", POSITIONAL: CommandPositional {
        /// The argument's name.
        name: String = (text ""),
            "the property that an agent sends";
        /// string, integer, number, name or choice.
        r#type: String = (text "string"),
            "name is for what the program makes a path of";
        /// The values that are taken; needed with type choice.
        choices: Vec<String> = (texts [], 256),
            "an agent sees them in the schema";
        /// What the program does without it; told to agents only.
        default: String = (text ""),
            "the program knows its own default best";
        /// Whether it takes a list; only the last may.
        repeated: bool = (false),
            "most take one value";
        /// Whether it must be given; none may that stands behind one that need not.
        required: bool = (true),
            "most must";
        /// What it is, for agents.
        help: String = (text ""),
            "an agent knows no more of it than this";
        /// Whether strangers have it on a public server.
        public: bool = (true),
            "false for what answers with texts that are not to be published";
    }
}

tables! {
    /// A program of your own whose answers are a tool.
    "command", COMMAND: Command {
        /// The tool's name, in snake_case.
        name: String = (text ""),
            "another name than every other tool's";
        /// The title that people see; empty: the name.
        title: String = (text ""),
            "clients show it in lists";
        /// What it answers, for agents.
        description: String = (text ""),
            "an agent chooses by it";
        /// The program: a name on the PATH, or a path, which may begin at the project's root.
        program: String = (text ""),
            "a caller never names one";
        /// What always stands first on its command line.
        args: Vec<String> = (texts [], 64),
            "a subcommand, or the server's own choice of an option";
        /// The option that makes it print JSON; empty where there is none or it always does.
        json_flag: String = (text ""),
            "the server sets it, so agents need not know it";
        /// What it prints: text, or json.
        output: String = (text "text"),
            "JSON is handed on as such, besides its text";
        /// The scope that callers need.
        scope: String = (text "eval:read"),
            "what every reader has";
        /// Whether it is offered to strangers on a public server.
        public: bool = (false),
            "what is published is the operator's decision";
        /// How long it may run; over HTTP never longer than `http.timeout_s`.
        timeout_s: u64 = (300, 1, 3600, "seconds"),
            "long enough for a heavy question, short enough to free what hangs";
        /// Bytes that it may print; more is an error that names its options.
        output_bytes_max: usize = (1_048_576, 1024, 67_108_864, "bytes"),
            "more than any model's context takes";
        /// Where it runs; empty: the project's root. A server of many organizations has none, and needs this.
        directory: String = (text ""),
            "programs look around themselves";
        /// Variables of the server's environment that it gets besides PATH, HOME, LANG, LC_ALL, TZ and TMPDIR.
        env: Vec<String> = (texts [], 64),
            "what is secret to the server is none of a program's business";
        /// Variables that are set for it.
        set_env: BTreeMap<String, String> = (pairs 64),
            "a cache's place, a number of threads";
        /// Its options.
        option: Vec<CommandOption> = (tables OPTION, 64),
            "more than a person remembers";
        /// Its positionals.
        positional: Vec<CommandPositional> = (tables POSITIONAL, 16),
            "most have none or one";
    }
}

/// What is wrong with the tables `[[command]]` beyond the kinds of their values, which others tell.
pub fn complaints(commands: &Value) -> Vec<String> {
    let all = commands.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut told = Vec::new();
    for (index, value) in all.iter().enumerate() {
        let Ok(command) = value.clone().try_into::<Command>() else { continue };
        let place = format!("command[{index}]");
        if !command.name.is_empty() && !seen.insert(command.name.clone()) {
            told.push(format!("{place}.name is \"{}\", as another's; it must be its own", command.name));
        }
        told.extend(of_command(&place, &command));
        told.extend(of_options(&place, &command));
        told.extend(of_positionals(&place, &command));
        told.extend(of_strangers(&place, &command));
    }
    told
}

/// A sentence: the key, what it is, what it must be.
fn fault(place: &str, key: &str, is: &str, must: &str) -> String {
    format!("{place}.{key} is {is}; it must be {must}")
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "empty".to_owned() } else { format!("{:?}", text.chars().take(SHOWN_CHARS_MAX).collect::<String>()) }
}

fn of_command(place: &str, command: &Command) -> Vec<String> {
    let say = |key: &str, is: &str, must: &str| Some(fault(place, key, &quoted(is), must));
    let nul = |text: &str| text.contains('\0');
    let mut told: Vec<String> = [
        (!is_name(&command.name, false))
            .then(|| say("name", &command.name, "a name of at most 48 of a-z, 0-9 and _, a letter first"))
            .flatten(),
        crate::tools::find(&command.name).and_then(|_| say("name", &command.name, "another name than that of a tool of this program")),
        command.description.trim().is_empty().then(|| say("description", "", "what the tool answers, for agents")).flatten(),
        (command.program.is_empty() || nul(&command.program))
            .then(|| say("program", &command.program, "a program's name or path"))
            .flatten(),
        (!matches!(command.output.as_str(), "text" | "json")).then(|| say("output", &command.output, "text or json")).flatten(),
        (!command.json_flag.is_empty() && !is_flag(&command.json_flag))
            .then(|| say("json_flag", &command.json_flag, "an option such as --json"))
            .flatten(),
        (!KNOWN_SCOPES.contains(&command.scope.as_str()))
            .then(|| say("scope", &command.scope, &format!("one of {}", KNOWN_SCOPES.join(", "))))
            .flatten(),
        nul(&command.directory).then(|| say("directory", &command.directory, "a directory")).flatten(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let args = command.args.iter().enumerate().filter(|(_, arg)| nul(arg) || *arg == "--");
    told.extend(args.map(|(at, arg)| fault(place, &format!("args[{at}]"), &quoted(arg), "a word other than --, without a NUL")));
    let own = |name: &&String| !is_variable(name) || name.starts_with(OWN_VARIABLES);
    let must = "the name of a variable that is not the server's own (RUNLORE_...)";
    told.extend(command.env.iter().filter(own).map(|name| fault(place, "env", &format!("a list with {}", quoted(name)), must)));
    let wrong = command.set_env.iter().filter(|(name, value)| !is_variable(name) || nul(value));
    told.extend(
        wrong.map(|(name, _)| {
            fault(place, "set_env", &format!("a table with {}", quoted(name)), "variables' names and values without a NUL")
        }),
    );
    told
}

fn of_options(place: &str, command: &Command) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut flags = BTreeSet::from([command.json_flag.as_str()]);
    let mut told = Vec::new();
    for (index, option) in command.option.iter().enumerate() {
        let place = format!("{place}.option[{index}]");
        let mut say = |key: &str, is: &str, must: &str| told.push(fault(&place, key, is, must));
        if !is_name(&option.name, true) || !names.insert(option.name.as_str()) {
            say("name", &quoted(&option.name), "a name of its own of a-z, A-Z, 0-9 and _, a letter first");
        }
        if !is_flag(&option.flag) || !flags.insert(option.flag.as_str()) {
            say("flag", &quoted(&option.flag), "an option of its own such as --goal");
        }
        let boolean = option.r#type == "boolean";
        if boolean && (option.repeated || option.required) {
            say("type", "\"boolean\"", "another where repeated or required is true: a flag is there or not");
        }
        if option.one_flag && !option.repeated {
            say("one_flag", "true", "false where repeated is: there is one value");
        }
        let value = OneValue { kind: &option.r#type, choices: &option.choices, default: &option.default, repeated: option.repeated };
        told.extend(value.faults(&place, &KINDS));
    }
    told
}

fn of_positionals(place: &str, command: &Command) -> Vec<String> {
    let options: BTreeSet<&str> = command.option.iter().map(|option| option.name.as_str()).collect();
    let mut names = options;
    let mut told = Vec::new();
    let last = command.positional.len().saturating_sub(1);
    let mut left_out = false;
    for (index, positional) in command.positional.iter().enumerate() {
        let place = format!("{place}.positional[{index}]");
        let mut say = |key: &str, is: &str, must: &str| told.push(fault(&place, key, is, must));
        if !is_name(&positional.name, true) || !names.insert(positional.name.as_str()) {
            say("name", &quoted(&positional.name), "a name of its own of a-z, A-Z, 0-9 and _, a letter first");
        }
        if positional.repeated && index != last {
            say("repeated", "true", "false for all but the last: nothing tells where a list ends");
        }
        if positional.required && left_out {
            say("required", "true", "false behind one that need not be given: nothing tells which is meant");
        }
        left_out |= !positional.required;
        let value = OneValue {
            kind: &positional.r#type,
            choices: &positional.choices,
            default: &positional.default,
            repeated: positional.repeated,
        };
        told.extend(value.faults(&place, &["string", "integer", "number", "name", "choice"]));
    }
    told
}

/// Strangers could never call a public command of which they lack what must be given.
fn of_strangers(place: &str, command: &Command) -> Vec<String> {
    let options = command.option.iter().enumerate().filter(|(_, one)| one.required && !one.public).map(|(at, _)| format!("option[{at}]"));
    let positionals =
        command.positional.iter().enumerate().filter(|(_, one)| one.required && !one.public).map(|(at, _)| format!("positional[{at}]"));
    let must = "true where it must be given and the command is public";
    let told = |inner: String| fault(&format!("{place}.{inner}"), "public", "false", must);
    if command.public { options.chain(positionals).map(told).collect() } else { Vec::new() }
}

/// What options and positionals have alike.
struct OneValue<'a> {
    kind: &'a str,
    choices: &'a [String],
    default: &'a str,
    repeated: bool,
}

impl OneValue<'_> {
    fn faults(&self, place: &str, kinds: &[&str]) -> Vec<String> {
        let mut told = Vec::new();
        if !kinds.contains(&self.kind) {
            told.push(fault(place, "type", &quoted(self.kind), &format!("one of {}", kinds.join(", "))));
            return told;
        }
        if (self.kind == "choice") && self.choices.is_empty() {
            told.push(fault(place, "choices", "empty", "the values that are taken, where type is choice"));
        }
        if !matches!(self.kind, "choice" | "integer") && !self.choices.is_empty() {
            told.push(fault(place, "choices", "a list", "empty where type is neither choice nor integer"));
        }
        if let Some(choice) = self.choices.iter().find(|choice| !self.fits(choice)) {
            told.push(fault(place, "choices", &format!("a list with {}", quoted(choice)), "values of its type that do not begin with -"));
        }
        let default = self.default;
        let wrong = !default.is_empty() && (self.repeated || !self.is_of_kind(default));
        if wrong {
            told.push(fault(place, "default", &quoted(default), "empty for a list, else a value of its type"));
        }
        told
    }

    fn fits(&self, choice: &str) -> bool {
        !choice.is_empty() && !choice.starts_with('-') && !choice.contains('\0') && self.is_of_kind(choice)
    }

    fn is_of_kind(&self, text: &str) -> bool {
        match self.kind {
            "integer" => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
            "number" => text.parse::<f64>().is_ok_and(f64::is_finite),
            "boolean" => matches!(text, "true" | "false"),
            _ => true,
        }
    }
}

/// A tool's name is in snake_case; an argument's as its program spells it.
fn is_name(name: &str, capitals: bool) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || (capitals && byte.is_ascii_uppercase());
    name.len() <= NAME_CHARS_MAX
        && name.bytes().next().is_some_and(letter)
        && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit() || byte == b'_')
}

/// `-x` or `--word`, and nothing that a value could be read from.
fn is_flag(flag: &str) -> bool {
    let word = flag.strip_prefix("--").or_else(|| flag.strip_prefix('-').filter(|word| word.len() == 1)).unwrap_or_default();
    word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

impl Command {
    /// What is wrong with it where there is no project: on a server of many organizations.
    #[must_use]
    pub fn fault_without_project(&self, index: usize) -> Option<String> {
        let relative = Path::new(&self.directory).is_relative();
        relative.then(|| {
            fault(
                &format!("command[{index}]"),
                "directory",
                &quoted(&self.directory),
                "a path from / on a server of many organizations, which has no project to run it in",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const GOOD: &str = r#"
[[command]]
name = "evh_goals"
description = "The goals and how they stand."
program = "evh"
args = ["goals"]
json_flag = "--json"
output = "json"
env = ["EVH_HOME"]
set_env = { EVH_P_CACHE = "cache/p.jsonl" }
[[command.option]]
name = "goal"
flag = "--goal"
type = "name"
repeated = true
[[command.option]]
name = "limit"
flag = "-n"
type = "integer"
default = "20"
choices = ["10", "20"]
[[command.positional]]
name = "dataset"
required = false
"#;

    const WRONG: &str = r#"
[[command]]
name = "history"
description = ""
program = ""
args = ["--"]
json_flag = "json"
output = "xml"
scope = "eval:everything"
env = ["RUNLORE_MCP_TOKEN"]
set_env = { "A=B" = "x" }
timeout_s = 0
[[command.option]]
name = "a b"
flag = "--"
type = "path"
[[command.option]]
name = "flag"
flag = "--flag"
type = "boolean"
required = true
one_flag = true
[[command.option]]
name = "flag"
flag = "--flag"
type = "choice"
[[command.option]]
name = "n"
flag = "--n"
type = "integer"
choices = ["1", "-2"]
default = "x"
[[command.positional]]
name = "n"
required = false
repeated = true
[[command.positional]]
name = "m"
type = "boolean"
[[command]]
name = "history"
description = "x"
program = "x"
help = "y"
"#;

    fn complaints(text: &str) -> Vec<String> {
        let error = Config::parse(text, "x").expect_err("this config is wrong").to_string();
        error.strip_prefix("x: ").unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_right_is_taken() {
        let config = Config::parse(GOOD, "x").unwrap();
        let command = &config.command[0];
        assert_eq!((command.option.len(), command.positional.len(), command.timeout_s), (2, 1, 300));
        assert_eq!(command.set_env.get("EVH_P_CACHE").map(String::as_str), Some("cache/p.jsonl"));
        assert!(!command.public && command.option[0].public && command.scope == "eval:read");
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_key_and_what_is_right() {
        let told = complaints(WRONG);
        for sentence in [
            "command[0].timeout_s is 0; it must be from 1 to 3600",
            "command[1].help is no key; the keys of [[command]] are name, title, description, program, args, json_flag, output, scope, public, timeout_s, output_bytes_max, directory, env, set_env, option, positional",
            "command[0].name is \"history\"; it must be another name than that of a tool of this program",
            "command[0].description is empty; it must be what the tool answers, for agents",
            "command[0].program is empty; it must be a program's name or path",
            "command[0].output is \"xml\"; it must be text or json",
            "command[0].json_flag is \"json\"; it must be an option such as --json",
            "command[0].args[0] is \"--\"; it must be a word other than --, without a NUL",
            "command[0].env is a list with \"RUNLORE_MCP_TOKEN\"; it must be the name of a variable that is not the server's own (RUNLORE_...)",
            "command[0].set_env is a table with \"A=B\"; it must be variables' names and values without a NUL",
            "command[0].option[0].name is \"a b\"; it must be a name of its own of a-z, A-Z, 0-9 and _, a letter first",
            "command[0].option[0].flag is \"--\"; it must be an option of its own such as --goal",
            "command[0].option[0].type is \"path\"; it must be one of string, integer, number, boolean, name, choice",
            "command[0].option[1].type is \"boolean\"; it must be another where repeated or required is true: a flag is there or not",
            "command[0].option[1].one_flag is true; it must be false where repeated is: there is one value",
            "command[0].option[2].name is \"flag\"; it must be a name of its own of a-z, A-Z, 0-9 and _, a letter first",
            "command[0].option[2].flag is \"--flag\"; it must be an option of its own such as --goal",
            "command[0].option[2].choices is empty; it must be the values that are taken, where type is choice",
            "command[0].option[3].choices is a list with \"-2\"; it must be values of its type that do not begin with -",
            "command[0].option[3].default is \"x\"; it must be empty for a list, else a value of its type",
            "command[0].positional[0].name is \"n\"; it must be a name of its own of a-z, A-Z, 0-9 and _, a letter first",
            "command[0].positional[0].repeated is true; it must be false for all but the last: nothing tells where a list ends",
            "command[0].positional[1].required is true; it must be false behind one that need not be given: nothing tells which is meant",
            "command[0].positional[1].type is \"boolean\"; it must be one of string, integer, number, name, choice",
        ] {
            assert!(told.iter().any(|one| one == sentence), "{sentence}\nis not among\n{}", told.join("\n"));
        }
        assert!(told.iter().any(|one| one.starts_with("command[0].scope is \"eval:everything\"; it must be one of eval:read")), "{told:?}");
        assert_eq!(told.len(), 25, "{}", told.join("\n"));
    }

    #[test]
    fn what_is_no_list_of_tables_and_two_of_one_name_are_refused() {
        assert_eq!(complaints("command = 3"), ["command is 3; it must be at most 200 tables [[command]]"]);
        let twice = "[[command]]\nname = \"a\"\ndescription = \"x\"\nprogram = \"x\"\n".repeat(2);
        assert_eq!(complaints(&twice), ["command[1].name is \"a\", as another's; it must be its own"]);
        let wrong = format!("{twice}[[command.option]]\nname = 3\n");
        assert!(complaints(&wrong).contains(&"command[1].option[0].name is 3; it must be a text".to_owned()));
        let own = Config::parse(GOOD, "x").unwrap().command[0].fault_without_project(0).unwrap();
        assert!(own.starts_with("command[0].directory is empty; it must be a path from /"), "{own}");
    }
}
