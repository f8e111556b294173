//! `runlore mcp`: the server of one project, over stdio or HTTP.
//!
//! Promises: starts fast, answers `tools/list` without reading a log; indexing happens before the first call; flags that need `--http` are
//! refused without it.
//! Does not: put the service together (`serve` does).

use clap::{Args, Command};

use super::{
    CliError,
    session::{self, Place, Session},
};
use crate::{
    auth::Caller,
    gate::Gate,
    mcp::{core::Core, handler::Handler, stdio},
    serve,
    tools::{Toolsets, render::Style},
};

/// The arguments of `runlore mcp`.
#[derive(Debug, Clone, Default, Args)]
pub struct McpArgs {
    /// Serve over HTTP instead of standard input and output.
    #[arg(long)]
    pub http: bool,
    /// Only these tools, with commas between: history, query, catalog (these three where it is not said), workspace, projections.
    #[arg(long, value_name = "WORDS", value_parser = Toolsets::parse)]
    pub toolsets: Option<Toolsets>,
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
        let settings = serve::settings::Settings { toolsets: args.toolsets.unwrap_or_else(Toolsets::local), ..settings };
        return serve::run(&Session::open_as(place, &settings.anonymous())?, settings);
    }
    if let Some(flag) = args.flags.given() {
        return Err(CliError::Usage(format!("--{flag} needs --http")));
    }
    let session = Session::open(place)?;
    session.begin_index();
    let gate = Gate::new(session.settings(Style::PLAIN, true));
    let handler = Handler::new(Core::new(gate).offering(args.toolsets.unwrap_or_else(Toolsets::local)), Caller::local());
    session::serve(stdio::serve(handler))?.map_err(|error| CliError::Refused(error.to_string()))?;
    Ok(0)
}
