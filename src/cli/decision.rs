//! `runlore decision check FILE`: whether a file keeps the decision contract (decision 27).
//!
//! Promises: names every fault with its place; exits with 0 where there is none, else with 1; reads at most [`FILE_BYTES_MAX`].
//! Does not: take a decision, or keep one.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use serde::de::DeserializeSeed as _;
use serde_json::Value;

use super::{CliError, output::Output};
use crate::{
    domain::{decision, json::Strict},
    tools::render::clean,
};

/// Bytes of a file: a decision is some kilobytes, and what is a thousand times as large is another file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What to do.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Checks a file against the decision contract and names every fault; exits with 0 if there is none, else with 1
    Check(CheckArgs),
    /// Prints the contract's JSON Schema
    Schema,
}

#[derive(Debug, Clone, Args)]
struct CheckArgs {
    /// The file, JSON; - reads it from the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    Action::augment_subcommands(Command::new("decision"))
        .about("Checks what an agent decided against the decision contract; takes no decision itself")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Checks, or prints the schema.
///
/// # Errors
/// [`CliError::Refused`] where the file cannot be read or is no JSON.
pub fn run(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    match Action::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))? {
        Action::Schema => {
            output.say(decision::SCHEMA.trim_end());
            Ok(0)
        }
        Action::Check(args) => {
            let name = clean(&args.file.to_string_lossy());
            let faults = decision::check(&read(&args, &name)?);
            if faults.is_empty() {
                output.say(&format!("{name} keeps the decision contract"));
                return Ok(0);
            }
            faults.iter().for_each(|fault| output.complain(&format!("{name}: {fault}")));
            let count = faults.len();
            output.complain(&format!("{name}: {count} fault{}", if count == 1 { "" } else { "s" }));
            Ok(1)
        }
    }
}

fn read(args: &CheckArgs, name: &str) -> Result<Value, CliError> {
    let unread = |error: io::Error| CliError::Refused(format!("{name} cannot be read: {error}"));
    let source: Box<dyn Read> =
        if args.file.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(&args.file).map_err(unread)?) };
    let mut bytes = Vec::new();
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(CliError::Refused(format!("{name} has more than {FILE_BYTES_MAX} bytes; a decision has some thousand")));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
    let value = Strict.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| CliError::Refused(format!("{name} is no JSON: {}", clean(&error.to_string()))))
}
