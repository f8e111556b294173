//! `runlore mcp`: the server of one project, over stdio or HTTP.
//!
//! Promises: starts fast, answers `tools/list` without reading a log; indexing happens before the first call; flags that need `--http` are
//! refused without it.
//! Does not: put the service together (`serve` does).

use std::sync::Arc;

use clap::{Args, Command};

use super::{
    CliError,
    session::{self, Place, Session},
};
use crate::{
    auth::Caller,
    commands::tool,
    gate::{Gate, Settings},
    mcp::{core::Core, handler::Handler, stdio},
    serve,
    telemetry::redaction::Redactor,
    tools::{Toolsets, render::Style},
};

/// The arguments of `runlore mcp`.
#[derive(Debug, Clone, Default, Args)]
pub struct McpArgs {
    /// Serve over HTTP instead of standard input and output.
    #[arg(long)]
    pub http: bool,
    /// What the HTTP service is told.
    #[command(flatten)]
    pub flags: serve::flags::HttpFlags,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    McpArgs::augment_args(Command::new("mcp"))
        .about("Serves the project's run history to agents over MCP: on standard input and output, or with --http over HTTP")
}

/// Serves until stdin closes or a signal comes.
///
/// # Errors
/// [`CliError`] when there is no project, the store or port cannot be opened, or the session breaks.
pub fn run(args: &McpArgs, place: &Place) -> Result<u8, CliError> {
    if args.http {
        let config = session::config(place)?;
        let settings = serve::settings::Settings::for_mcp(&args.flags, &config).map_err(CliError::Usage)?;
        return serve::run(&Session::open_as(place, &settings.anonymous())?, settings);
    }
    if let Some(flag) = args.flags.given() {
        return Err(CliError::Usage(format!("--{flag} needs --http")));
    }
    let session = Session::open(place)?;
    session.begin_index();
    let toolsets = serve::settings::toolsets(&args.flags, &session.config().http, Toolsets::local()).map_err(CliError::Usage)?;
    // Nobody but the client at the other end of the pipe waits for a command, and it may leave.
    let commands = session::commands(session.config(), Some(session.root()), None, toolsets)?;
    let settings = Settings { registry: commands.registry, ..session.settings(Style::PLAIN, true) };
    let redactor = Arc::new(Redactor::from_environment(tool::secrets(session.config())));
    let gate = Gate::new(Settings { redactor, ..settings });
    let handler = Handler::new(Core::new(gate).offering(toolsets), Caller::local());
    let ended = session::serve(stdio::serve(handler));
    commands.close();
    ended?.map_err(|error| CliError::Refused(error.to_string()))?;
    Ok(0)
}
