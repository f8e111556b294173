//! A tool as a verb: the same entry, through the same call list.
//!
//! Promises: a table on a terminal, plain text in a pipe, the identical JSON with `--json`, without a cap.
//! Does not: know any tool, but for the exit codes of `compare --exit-code` and `verify`.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{self, Place, Session},
};
use crate::{
    auth::Caller,
    gate::{Bounds, Call, Gate, Settings},
    tools::{Answer, Entry, Limits},
};

/// The exit code of `compare --exit-code` where something regressed.
const REGRESSED: u8 = 3;
/// The exit code of `verify` where a number is not what it was.
const NOT_EQUAL: u8 = 1;

/// The entry's verb with its arguments and `--json`.
#[must_use]
pub fn command(entry: &Entry) -> Command {
    let command = (entry.command)().arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the JSON that an agent gets"));
    if entry.name == "compare" {
        command.arg(Arg::new("exit-code").long("exit-code").action(ArgAction::SetTrue).help("Exit with 3 when something regressed"))
    } else {
        command
    }
}

/// Answers one command line.
///
/// # Errors
/// [`CliError`], with the tool's own sentence.
pub fn run(entry: &'static Entry, matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let arguments =
        (entry.arguments)(matches).map_err(|error| CliError::Usage(error.to_string().trim_start_matches("error: ").to_owned()))?;
    let session = Session::open(place)?;
    session.index_now(&Bar::new(output.watched()))?;
    let settings = session.settings(output.style(), false);
    // A person's own terminal takes what an agent's context does not.
    let limits = Limits { result_bytes: usize::MAX, ..settings.limits.clone() };
    // One call and the process ends: nothing to keep an answer for.
    let bounds = Bounds { cache_bytes: 0, ..settings.bounds.clone() };
    let gate = Gate::new(Settings { limits, bounds, ..settings });
    let call = Call::local(entry, arguments, Caller::terminal());
    let answer = session::block_on(gate.call(call))?.map_err(|refusal| CliError::Refused(refusal.to_string()))?;
    if matches.get_flag("json") {
        output.json(answer.json.get())
    } else {
        output.say(&answer.text)
    }
    Ok(match entry.name {
        "compare" if matches.get_flag("exit-code") && regressed(&answer) => REGRESSED,
        "verify" if !equal(&answer) => NOT_EQUAL,
        _ => 0,
    })
}

/// By the counts over all rows, not by the rows that are listed.
fn regressed(answer: &Answer) -> bool {
    let value: serde_json::Value = serde_json::from_str(answer.json.get()).unwrap_or_default();
    value.pointer("/statuses/regressed").and_then(serde_json::Value::as_u64).is_some_and(|count| count > 0)
}

fn equal(answer: &Answer) -> bool {
    let value: serde_json::Value = serde_json::from_str(answer.json.get()).unwrap_or_default();
    value.pointer("/equal") == Some(&serde_json::Value::Bool(true))
}
