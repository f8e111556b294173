//! `runlore executor-guard`: the process between a worker and an executor's program.
//!
//! Promises: ends with the program's exit code.
//! Does not: serve people; it is in no help.

use std::{ffi::OsString, time::Duration};

use clap::{Arg, ArgMatches, Command, value_parser};

use super::CliError;
use crate::commands::executor::guard::{VERB, run as guard};

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new(VERB)
        .hide(true)
        .about("Runs one executor for the worker that started it")
        .arg(
            Arg::new("grace-ms")
                .long("grace-ms")
                .value_name("MS")
                .required(true)
                .value_parser(value_parser!(u64))
                .help("Between TERM and KILL"),
        )
        .arg(
            Arg::new("words")
                .value_name("PROGRAM")
                .num_args(1..)
                .last(true)
                .required(true)
                .value_parser(value_parser!(OsString))
                .help("The program and its arguments"),
        )
}

/// Runs the program to its end.
///
/// # Errors
/// [`CliError::Usage`] where no program is named.
pub fn run(matches: &ArgMatches) -> Result<u8, CliError> {
    let grace = Duration::from_millis(matches.get_one("grace-ms").copied().unwrap_or_default());
    let mut words = matches.get_many::<OsString>("words").into_iter().flatten().cloned();
    let program = words.next().ok_or_else(|| CliError::Usage("no program".to_owned()))?;
    Ok(guard(&program, &words.collect::<Vec<_>>(), grace))
}
