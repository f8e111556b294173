//! `runlore demo`: what runlore answers, on a small history that comes with it.
//!
//! Promises: works in any directory and leaves nothing behind; every line is the tools' own answer over really imported logs.
//! Does not: touch the user's project.

use clap::Command;

use super::{
    CliError,
    output::Output,
    session::{Place, Session, block_on},
};
use crate::{
    auth::Caller,
    gate::{Call, Gate},
    local::declared,
    tools,
};

mod logs;

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new("demo").about("Shows what runlore answers, on a small bundled history of a support agent's evaluations")
}

const CONNECT: &str = "Your own project, in its directory:

  runlore compare --since 7d    (logs/ is indexed by itself; elsewhere: runlore import PATH)

Your agent, over MCP:

  Claude Code   claude mcp add runlore -- runlore mcp --project .
  Cursor        .cursor/mcp.json:
                { \"mcpServers\": { \"runlore\": { \"command\": \"runlore\", \"args\": [\"mcp\", \"--project\", \".\"] } } }";

/// The calls that the demo makes: what is said before, the tool, its arguments.
const CALLS: &[(&str, &str, &str)] = &[
    ("What ran, and how did it go?", "history", "{}"),
    ("What regressed since last week (22 November), and is it real?", "compare", r#"{"since": "2026-11-22"}"#),
    ("Why, and what did the model say?", "failures", r#"{"filter": "refund", "limit": 1}"#),
];

/// Shows it.
///
/// # Errors
/// [`CliError::Refused`] when the temporary project cannot be made.
pub fn run(output: &mut Output) -> Result<u8, CliError> {
    let folder = tempfile::Builder::new().prefix("runlore-demo-").tempdir().map_err(|error| refused(&error))?;
    logs::write(&folder.path().join("logs")).map_err(|error| refused(&error))?;
    let session = Session::open(&Place { project: Some(folder.path().to_owned()), config: None })?;
    let declared = declared::read(session.root()).map_err(|error| CliError::Refused(error.to_string()))?;
    let report = session.indexing(|indexer| indexer.rescan(&declared));
    output.say(&format!("A support agent's evaluations: {report}"));
    let gate = Gate::new(session.settings(output.style(), false));
    for (question, tool, arguments) in CALLS {
        let verb = arguments_as_words(tool, arguments);
        output.say(&format!("\n== {question}\n   {verb}\n"));
        output.say(&answer(&gate, tool, arguments)?);
    }
    output.say(&format!("\n== On your own logs\n\n{CONNECT}"));
    Ok(0)
}

fn answer(gate: &Gate, tool: &str, arguments: &str) -> Result<String, CliError> {
    let entry = tools::find(tool).ok_or_else(|| CliError::Refused(format!("no tool {tool}")))?;
    let arguments = serde_json::from_str(arguments).map_err(|error| CliError::Refused(error.to_string()))?;
    let call = Call::new(entry, arguments, Caller::local());
    let answer = block_on(gate.call(call))?;
    answer.map(|answer| answer.text).map_err(|refusal| CliError::Refused(refusal.to_string()))
}

/// The command line of a call, as a person would type it.
fn arguments_as_words(tool: &str, arguments: &str) -> String {
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).unwrap_or_default();
    let words: String =
        map.iter().map(|(name, value)| format!(" --{name} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect();
    format!("$ runlore {tool}{words}")
}

fn refused(error: &std::io::Error) -> CliError {
    CliError::Refused(format!("the demo's temporary project cannot be made: {}", crate::local::root::reason(error)))
}
