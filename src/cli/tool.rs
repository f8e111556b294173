//! A tool as a verb: the same entry, through the same call list.
//!
//! Promises: a table on a terminal, plain text in a pipe, the identical JSON with `--json`, without a cap.
//! Does not: know any tool, but for `compare --exit-code`.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{self, Place, Session},
};
use crate::{
    auth::Caller,
    gate::{Call, Gate},
    tools::{Answer, Entry, Limits},
};

/// The exit code of `compare --exit-code` where something regressed.
const REGRESSED: u8 = 3;

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
    let gate = Gate::new(crate::gate::Settings { limits, ..settings });
    let call = Call::new(entry, arguments, Caller::local());
    let answer = session::block_on(gate.call(call))?.map_err(|refusal| CliError::Refused(refusal.to_string()))?;
    if matches.get_flag("json") {
        output.json(answer.json.get())
    } else {
        output.say(&answer.text)
    }
    let gating = entry.name == "compare" && matches.get_flag("exit-code");
    Ok(if gating && regressed(&answer) { REGRESSED } else { 0 })
}

/// By the counts over all rows, not by the rows that are listed.
fn regressed(answer: &Answer) -> bool {
    let value: serde_json::Value = serde_json::from_str(answer.json.get()).unwrap_or_default();
    value.pointer("/statuses/regressed").and_then(serde_json::Value::as_u64).is_some_and(|count| count > 0)
}
