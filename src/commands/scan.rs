//! Declarations of commands from a Python argparse program: its parser is read without running what it does.
//!
//! Promises: the program's imports run and nothing after it asks for its command line; it is run under the rules of every command (`child`); what
//! is written is a config that the server takes, or it is refused with what is wrong with it.
//! Does not: write files, or know programs that are not argparse's.

use std::{ffi::OsString, fmt::Write as _, path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{
    child::{self, Groups, Job},
    program::{self, python_of, runs},
};
use crate::config::Config;

/// The reader, for `python3 -c`.
const READER: &str = include_str!("scan.py");
/// Bytes of a program's parser as JSON.
const PARSER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of its complaints.
const STDERR_BYTES_MAX: usize = 4096;
/// Programs import much before they have a parser.
const WITHIN: Duration = Duration::from_secs(60);

/// What is to be read.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The words of the program's command line: a script or program, or `-m` and a module; before them perhaps its interpreter.
    pub words: Vec<String>,
    /// Options that no agent gets.
    pub omit: Vec<String>,
    /// What stands before each tool's name.
    pub prefix: Option<String>,
    /// The interpreter, where neither the words nor the script name one that is right; else python3.
    pub python: Option<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
}

#[derive(Deserialize)]
struct Parser {
    commands: Vec<Read>,
}

#[derive(Deserialize)]
struct Read {
    path: Vec<String>,
    description: String,
    json_flag: String,
    options: Vec<Argument>,
    positionals: Vec<Argument>,
    left_out: Vec<String>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    help: String,
    required: bool,
    choices: Vec<String>,
    default: String,
    repeated: bool,
    one_flag: bool,
    flag: String,
    r#type: String,
}

/// How the program is started: by an interpreter, or by itself.
struct Start {
    /// What the declarations have as `program`.
    program: String,
    /// What stands first in their `args`.
    args: Vec<String>,
    /// The interpreter that reads it.
    python: String,
    /// The words for the reader.
    words: Vec<String>,
}

impl Scan {
    /// The declarations as TOML.
    ///
    /// # Errors
    /// A sentence, or one for each fault.
    pub async fn toml(&self) -> Result<String, String> {
        let start = self.start()?;
        let parser = self.read(&start).await?;
        let text = self.written(&start, &parser.commands);
        match Config::parse(&text, "what was read") {
            Ok(_) => Ok(text),
            Err(error) => Err(format!("{error}\n(--prefix gives tools other names, and --omit leaves options out)")),
        }
    }

    fn start(&self) -> Result<Start, String> {
        let first = self.words.first().ok_or("which program?")?;
        let interpreter = first.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
        let rest: Vec<String> = self.words.iter().skip(1).cloned().collect();
        if interpreter && rest.is_empty() {
            return Err(format!("{first} is Python itself: name the script behind it, or -m and a module"));
        }
        if interpreter {
            return Ok(Start { program: first.clone(), args: rest.clone(), python: first.clone(), words: rest });
        }
        let script = self.script(first).ok_or_else(|| format!("there is no program {first}"))?;
        let python = self.python.clone().or_else(|| python_of(&script)).unwrap_or_else(|| "python3".to_owned());
        let words = std::iter::once(script.display().to_string()).chain(rest.iter().cloned()).collect();
        if !runs(&script) {
            return Ok(Start { program: python.clone(), args: self.words.clone(), python, words });
        }
        // A bare script's name would be looked for on the PATH.
        let here = !first.contains('/') && self.directory.join(first).is_file();
        let program = if here { format!("./{first}") } else { first.clone() };
        Ok(Start { program, args: rest, python, words })
    }

    /// The program's file: as it is named from here, or on the PATH.
    fn script(&self, name: &str) -> Option<PathBuf> {
        let here = Some(self.directory.join(name)).filter(|path| path.is_file());
        here.or_else(|| program::found(name, &self.directory, &self.environment))
    }

    async fn read(&self, start: &Start) -> Result<Parser, String> {
        let omit = serde_json::to_string(&self.omit).map_err(|error| error.to_string())?;
        let args = ["-c".to_owned(), READER.to_owned(), omit].into_iter().chain(start.words.iter().cloned()).collect();
        let python =
            program::found(&start.python, &self.directory, &self.environment).ok_or_else(|| format!("there is no {}", start.python))?;
        let (directory, environment) = (self.directory.clone(), self.environment.clone());
        let job = Job {
            program: python,
            args,
            directory,
            environment,
            within: WITHIN,
            stdout_max: PARSER_BYTES_MAX,
            stderr_max: STDERR_BYTES_MAX,
        };
        let ended = child::run(job, &Groups::default()).await.map_err(|fault| format!("{}: {fault}", start.python))?;
        if ended.code != 0 {
            let late = if ended.late { format!("it did not come to its parser within {} s\n", WITHIN.as_secs()) } else { String::new() };
            return Err(format!("its parser cannot be read: {late}{}", String::from_utf8_lossy(&ended.stderr).trim()));
        }
        serde_json::from_slice(&ended.stdout).map_err(|error| format!("its parser cannot be read: {error}"))
    }

    fn written(&self, start: &Start, commands: &[Read]) -> String {
        let mut text = format!(
            "# Written by `runlore commands scan {}`. What is not public = true is not offered to strangers.\n",
            one_line(&self.words.join(" "))
        );
        for command in commands {
            self.command(&mut text, start, command);
        }
        text
    }

    fn command(&self, text: &mut String, start: &Start, command: &Read) {
        let name = self.name(start, command);
        text.push('\n');
        command.left_out.iter().for_each(|why| text.push_str(&format!("# Left out: {}.\n", one_line(why))));
        text.push_str("[[command]]\n");
        line(text, "name", &name);
        let description = if command.description.is_empty() { format!("Answers of {name}.") } else { command.description.clone() };
        line(text, "description", &description);
        line(text, "program", &start.program);
        let args: Vec<&String> = start.args.iter().chain(&command.path).collect();
        if !args.is_empty() {
            let _ = writeln!(text, "args = [{}]", args.into_iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(", "));
        }
        if !command.json_flag.is_empty() {
            line(text, "json_flag", &command.json_flag);
            line(text, "output", "json");
        }
        command.options.iter().for_each(|option| argument(text, "option", option));
        command.positionals.iter().for_each(|positional| argument(text, "positional", positional));
    }

    /// Its subcommand's words behind the prefix, which is the program's own name where nobody says otherwise.
    fn name(&self, start: &Start, command: &Read) -> String {
        let stem = || {
            let word = start.words.iter().find(|word| *word != "-m").map(String::as_str).unwrap_or_default();
            let last = word.rsplit('/').next().unwrap_or_default();
            last.strip_suffix(".py").unwrap_or(last).to_owned()
        };
        let prefix = self.prefix.clone().unwrap_or_else(stem);
        let parts = Some(prefix).into_iter().filter(|prefix| !prefix.is_empty()).chain(command.path.iter().cloned());
        snake(&parts.collect::<Vec<_>>().join("_"))
    }
}

fn snake(name: &str) -> String {
    let plain = name.chars().map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' });
    plain.collect::<String>().trim_matches('_').to_owned()
}

fn argument(text: &mut String, table: &str, one: &Argument) {
    let _ = writeln!(text, "[[command.{table}]]");
    line(text, "name", &one.name);
    if table == "option" {
        line(text, "flag", &one.flag);
    }
    if one.r#type != "string" {
        line(text, "type", &one.r#type);
    }
    if !one.choices.is_empty() {
        let _ = writeln!(text, "choices = [{}]", one.choices.iter().map(|choice| quoted(choice)).collect::<Vec<_>>().join(", "));
    }
    let kept = |word: &&(&str, &String)| !word.1.is_empty();
    [("default", &one.default), ("help", &one.help)].iter().filter(kept).for_each(|(key, value)| line(text, key, value));
    // A positional is required unless it says otherwise.
    let usual = table == "positional";
    if one.required != usual {
        let _ = writeln!(text, "required = {}", one.required);
    }
    if one.repeated {
        text.push_str("repeated = true\n");
    }
    if one.one_flag {
        text.push_str("one_flag = true\n");
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "{key} = {}", quoted(value));
}

/// A text as TOML has it: as JSON, but for DEL.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007f")
}

fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
