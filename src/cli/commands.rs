//! `runlore commands scan`: declarations of an argparse program's commands, for the config.
//!
//! Promises: prints TOML that the server takes, or says why not; writes no file.
//! Does not: run the program's commands.

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::{CliError, output::Output, session};
use crate::commands::scan::Scan;

/// What to do.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Prints declarations of a Python program's commands, read from its argparse parser without running them
    Scan(ScanArgs),
}

#[derive(Debug, Clone, Args)]
struct ScanArgs {
    /// The program as it is started: a script, a program on the PATH, or python3 -m and a module
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<String>,
    /// An option that no agent gets, without its dashes; may be given several times
    #[arg(long, value_name = "NAME", default_value = "adapter")]
    omit: Vec<String>,
    /// What stands before each tool's name; without it the program's name
    #[arg(long, value_name = "WORD")]
    prefix: Option<String>,
    /// The Python that reads the program; without it the one that PROGRAM begins with or its first line names, else python3
    #[arg(long, value_name = "FILE")]
    python: Option<String>,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    Action::augment_subcommands(Command::new("commands"))
        .about("Writes declarations of your own programs' commands, which then are tools")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Prints the declarations.
///
/// # Errors
/// [`CliError::Refused`], where the program's parser cannot be read or says what no declaration can.
pub fn run(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    let Action::Scan(args) = Action::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    let scan = Scan {
        words: args.program,
        omit: args.omit,
        prefix: args.prefix,
        python: args.python,
        directory: session::directory()?,
        environment: std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("RUNLORE_")).collect(),
    };
    let text = session::block_on(scan.toml())?.map_err(CliError::Refused)?;
    output.say(&text);
    Ok(0)
}
