//! `runlore mcp`: the server.
//!
//! Promises: starts fast and answers `tools/list` without waiting for a log; the index is looked at from the start, beside the calls.
//! Does not: speak HTTP yet.

use clap::Command;

use super::{
    CliError,
    session::{self, Place, Session},
};
use crate::{
    auth::Caller,
    gate::Gate,
    mcp::{handler::Handler, stdio},
    tools::render::Style,
};

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new("mcp").about("Serves the project's run history to an agent over MCP on standard input and output; ends when stdin closes")
}

/// Serves until stdin closes or a signal comes.
///
/// # Errors
/// [`CliError`] when there is no project, the store cannot be opened, or the session breaks.
pub fn run(place: &Place) -> Result<u8, CliError> {
    let session = Session::open(place)?;
    session.begin_index();
    let gate = Gate::new(session.settings(Style::PLAIN, true));
    let handler = Handler::new(gate, Caller::local());
    session::serve(stdio::serve(handler))?.map_err(|error| CliError::Refused(error.to_string()))?;
    Ok(0)
}
