//! The command line: the tools as verbs, and what only a person does.
//!
//! Promises: the same arguments, defaults and answers as over MCP, from the same declarations; `--json` prints the identical JSON. Exit
//! codes (decision 88): 0 done; 1 refused, not found, complaints or not equal (`verify`); 2 usage or config; 3 regressions with `compare --exit-code`.
//! Does not: hold logic of its own.

pub mod audit;
pub mod backup;
pub mod baseline;
pub mod check_config;
pub mod commands;
pub mod control;
pub mod decision;
pub mod demo;
pub mod evaluation;
pub mod executor_guard;
pub mod export;
pub mod health;
pub mod import;
pub mod key;
pub mod mcp;
pub mod org;
pub mod output;
pub mod progress;
pub mod project;
pub mod prune;
pub mod push;
pub mod query_worker;
pub mod queue;
pub mod record;
pub mod serve;
pub mod session;
pub mod token;
pub mod tool;
pub mod warm;
pub mod worker;
pub mod workplace;

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use self::{output::Output, session::Place};
use crate::tools::{readers, render};

/// Why a verb did not end with 0; the text goes to stderr.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Refused, not found: exit code 1.
    #[error("{0}")]
    Refused(String),
    /// Usage, configuration, no project: exit code 2.
    #[error("{0}")]
    Usage(String),
}

impl CliError {
    const fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
        }
    }
}

/// Runs one command line (the program's name first) and returns its exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut output = Output::standard();
    let code = match command().try_get_matches_from(&words) {
        Ok(matches) => answer(&matches, &mut output),
        Err(error) => usage(&words, &error, &mut output),
    };
    output.end(code)
}

fn answer(matches: &ArgMatches, output: &mut Output) -> u8 {
    crate::telemetry::start();
    let done = dispatch(matches, output);
    crate::telemetry::stderr::finish(LOG_PATIENCE);
    done.unwrap_or_else(|error| {
        output.complain(&format!("runlore: {error}"));
        error.code()
    })
}

/// How long the end waits for lines of the log that are still to be written.
const LOG_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// clap prints help and errors itself, coloured where the terminal takes it.
fn usage(words: &[OsString], error: &clap::Error, output: &mut Output) -> u8 {
    // Its errors repeat the words: asked again with clean ones, it says the same of what a terminal may be shown.
    let cleaned = words.iter().map(|word| render::clean(&word.to_string_lossy()));
    let printed = match command().try_get_matches_from(cleaned) {
        Err(again) if error.use_stderr() => again.print(),
        _ => error.print(),
    };
    if let Err(fault) = printed {
        output.failed(fault);
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Where what every verb takes stands in its help: behind its own.
const LAST: usize = 900;

/// The whole command line.
#[must_use]
pub fn command() -> Command {
    let place = [
        Arg::new("project")
            .long("project")
            .value_name("DIR")
            .global(true)
            .value_parser(value_parser!(PathBuf))
            .display_order(LAST)
            .help("The project's directory; without it, the nearest one upward with .runlore or .git"),
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .global(true)
            .value_parser(value_parser!(PathBuf))
            .display_order(LAST)
            .help("The configuration; without it, .runlore/config.toml of the project if there is one"),
    ];
    let tools = readers().map(|entry| tool::command(entry).next_help_heading("Options"));
    Command::new("runlore")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The run history of AI evaluations, for coding agents (over MCP) and people: what fails, since when, what changed, and whether it is real")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(place)
        .subcommand(check_config::command())
        .subcommand(decision::command())
        .subcommand(audit::command())
        .subcommand(backup::BackupArgs::augment_args(Command::new("backup")).about("Copies a project's file, or all files of a server, while it serves"))
        .subcommand(baseline::command())
        .subcommand(commands::command())
        .subcommand(demo::command())
        .subcommand(evaluation::command())
        .subcommand(import::ImportArgs::augment_args(Command::new("import")).about("Imports logs, or directories of them, into the project's history"))
        .subcommand(executor_guard::command())
        .subcommand(export::ExportArgs::augment_args(Command::new("export")).about("Writes a run as a record: run.json with its transcripts and analyses beside it"))
        .subcommand(health::command())
        .subcommand(key::command())
        .subcommand(mcp::command())
        .subcommand(org::command())
        .subcommand(project::command())
        .subcommand(prune::command())
        .subcommand(push::PushArgs::augment_args(Command::new("push")).about("Sends the project's runs, or logs, to a server of many organizations"))
        .subcommand(query_worker::command())
        .subcommand(queue::command())
        .subcommand(record::RecordArgs::augment_args(Command::new("record")).about("Keeps a scratch run: moves its record from .runlore/runs to .history"))
        .subcommand(backup::RestoreArgs::augment_args(Command::new("restore")).about("Brings a backup back, where nothing is yet"))
        .subcommand(serve::command())
        .subcommand(token::command())
        .subcommand(worker::command())
        .subcommand(warm::command())
        .subcommands(tools)
}

fn dispatch(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    let Some((verb, inner)) = matches.subcommand() else { return Err(CliError::Usage("no command; see runlore --help".to_owned())) };
    let place = Place { project: inner.get_one::<PathBuf>("project").cloned(), config: inner.get_one::<PathBuf>("config").cloned() };
    match verb {
        "check-config" => check_config::run(inner, output),
        "decision" => decision::run(inner, output),
        "audit" => audit::run(inner, &place, output),
        "backup" => {
            let args = backup::BackupArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            backup::backup(&args, &place, output)
        }
        "restore" => {
            let args = backup::RestoreArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            backup::restore(&args, &place, output)
        }
        "prune" => prune::run(inner, &place, output),
        "baseline" => baseline::run(inner, &place, output),
        "commands" => commands::run(inner, output),
        "demo" => demo::run(output),
        "evaluation" => evaluation::run(inner, &place, output),
        "queue" => queue::run(inner, &place, output),
        "import" => {
            let args = import::ImportArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            import::run(&args, &place, output)
        }
        "export" => {
            let args = export::ExportArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            export::run(&args, &place, output)
        }
        crate::commands::queries::VERB => query_worker::run(),
        "push" => {
            let args = push::PushArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            push::run(&args, &place, output)
        }
        "record" => {
            let args = record::RecordArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            record::run(&args, &place, output)
        }
        "serve" => {
            let args = serve::ServeArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            serve::run(&args, &place)
        }
        "health" => health::run(inner, output),
        "key" => key::run(inner, &place, output),
        "org" => org::run(inner, &place, output),
        "project" => project::run(inner, &place, output),
        "token" => token::run(inner, output),
        crate::commands::executor::guard::VERB => executor_guard::run(inner),
        "warm" => warm::run(&place, output),
        "worker" => {
            let args = worker::WorkerArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            worker::run(&args, &place, output)
        }
        "mcp" => {
            let args = mcp::McpArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            mcp::run(&args, &place)
        }
        _ => {
            let entry = readers()
                .find(|entry| entry.verb == verb)
                .ok_or_else(|| CliError::Usage(format!("no command \"{verb}\"; see runlore --help")))?;
            tool::run(entry, inner, &place, output)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verbs that are no tool, each with the reason (decision 36).
    const NOT_TOOLS: &[(&str, &str)] = &[
        ("check-config", "is about a server's configuration, not a project's history"),
        ("decision", "is about a file, not a project's history"),
        ("audit", "shows who did what, which is an operator's to read"),
        ("backup", "writes files"),
        ("restore", "writes files"),
        ("prune", "writes: what goes is a person's decision"),
        ("baseline", "writes: what is accepted is a person's decision"),
        ("evaluation", "writes: what may be started or changed is a person's decision"),
        ("queue", "writes: who stops another's run is an operator's decision"),
        ("commands", "writes configuration: what becomes a tool is an operator's decision"),
        ("demo", "shows a person around"),
        ("export", "writes files"),
        ("push", "sends quality results elsewhere, with a key"),
        ("health", "asks a server, not a project's history"),
        ("import", "writes: what comes into the history is a person's or a CI job's decision"),
        ("key", "writes: who may call is an operator's decision"),
        ("mcp", "is the server itself"),
        ("org", "writes: who is served is an operator's decision"),
        ("project", "writes: what is served is an operator's decision"),
        (crate::commands::queries::VERB, "is a part of the server"),
        ("record", "writes: what is kept is a person's decision"),
        ("serve", "is the server itself, for a team"),
        ("token", "makes credentials: who gets one is a person's decision"),
        ("worker", "runs programs: an operator's decision"),
        (crate::commands::executor::guard::VERB, "is a part of the worker"),
        ("warm", "writes: what later calls read is worked out beforehand"),
        ("help", "is clap's"),
    ];

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    /// Every argument of every verb with a value says what kind of value, and every text ends without a stray dot or a second sentence cut off.
    #[test]
    fn help_reads_well() {
        let root = command();
        for verb in root.get_subcommands().filter(|verb| verb.get_name() != "help") {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() <= 120 && !about.contains("argument"), "{}: {about}", verb.get_name());
            for argument in verb.get_arguments() {
                let (verb, id) = (verb.get_name(), argument.get_id().as_str());
                assert!(argument.get_help().is_some(), "{verb} {id} has no help");
                let derived = id.to_uppercase().replace('-', "_");
                let names: Vec<&str> = argument.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
                let own = argument.is_positional() || names != [derived.as_str()];
                assert!(!argument.get_action().takes_values() || own, "{verb} --{id} <{derived}> says nothing of its value");
            }
        }
        for entry in readers() {
            let mut verb = (entry.command)();
            let (list, own) = (root.clone().render_help().to_string(), verb.render_long_help().to_string());
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat(&list).contains(entry.about), "{}: {list}", entry.name);
            assert!(flat(&own).contains(entry.doc), "{}: {own}", entry.name);
        }
    }

    #[test]
    fn every_verb_is_a_tool_or_says_why_not() {
        for verb in command().get_subcommands().map(|verb| verb.get_name().to_owned()) {
            let tool = readers().any(|entry| entry.verb == verb);
            let reasons = NOT_TOOLS.iter().filter(|(name, reason)| *name == verb && !reason.is_empty()).count();
            assert_eq!(usize::from(tool) + reasons, 1, "{verb}");
        }
    }
}
