//! The command line: the tools as verbs, and what only a person does.
//!
//! Promises: the same arguments, defaults and answers as over MCP, from the same declarations; `--json` prints the identical JSON. Exit
//! codes (decision 88): 0 done; 1 refused, not found or complaints; 2 usage or config; 3 regressions with `compare --exit-code`.
//! Does not: hold logic of its own.

pub mod demo;
pub mod health;
pub mod import;
pub mod mcp;
pub mod output;
pub mod progress;
pub mod session;
pub mod tool;

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use self::{output::Output, session::Place};
use crate::tools::ENTRIES;

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
    let mut output = Output::standard();
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    crate::telemetry::start();
    match dispatch(&matches, &mut output) {
        Ok(code) => code,
        Err(error) => {
            output.complain(&format!("runlore: {error}"));
            error.code()
        }
    }
}

/// clap prints help and errors itself, coloured where the terminal takes it.
fn usage(error: &clap::Error) -> u8 {
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// The whole command line.
#[must_use]
pub fn command() -> Command {
    let place = [
        Arg::new("project")
            .long("project")
            .value_name("DIR")
            .global(true)
            .value_parser(value_parser!(PathBuf))
            .help("The project's directory; without it, the nearest one upward with .runlore or .git"),
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .global(true)
            .value_parser(value_parser!(PathBuf))
            .help("The configuration; without it, .runlore/config.toml of the project if there is one"),
    ];
    let tools = ENTRIES.iter().map(|entry| tool::command(entry).next_help_heading("Options"));
    Command::new("runlore")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The run history of AI evaluations, for coding agents (over MCP) and people: what fails, since when, what changed, and whether it is real")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(place)
        .subcommand(demo::command())
        .subcommand(import::ImportArgs::augment_args(Command::new("import").about("Imports logs, or directories of them, into the project's history")))
        .subcommand(health::command())
        .subcommand(mcp::command())
        .subcommands(tools)
}

fn dispatch(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    let Some((verb, inner)) = matches.subcommand() else { return Err(CliError::Usage("no command; see runlore --help".to_owned())) };
    let place = Place { project: inner.get_one::<PathBuf>("project").cloned(), config: inner.get_one::<PathBuf>("config").cloned() };
    match verb {
        "demo" => demo::run(output),
        "import" => {
            let args = import::ImportArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            import::run(&args, &place, output)
        }
        "health" => health::run(inner, output),
        "mcp" => {
            let args = mcp::McpArgs::from_arg_matches(inner).map_err(|error| CliError::Usage(error.to_string()))?;
            mcp::run(&args, &place)
        }
        _ => {
            let entry = ENTRIES
                .iter()
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
        ("demo", "shows a person around"),
        ("health", "asks a server, not a project's history"),
        ("import", "writes: what comes into the history is a person's or a CI job's decision"),
        ("mcp", "is the server itself"),
        ("help", "is clap's"),
    ];

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_a_tool_or_says_why_not() {
        for verb in command().get_subcommands().map(|verb| verb.get_name().to_owned()) {
            let tool = ENTRIES.iter().any(|entry| entry.verb == verb);
            let reasons = NOT_TOOLS.iter().filter(|(name, reason)| *name == verb && !reason.is_empty()).count();
            assert_eq!(usize::from(tool) + reasons, 1, "{verb}");
        }
    }
}
