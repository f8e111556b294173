//! `runlore serve`: the service of a team: the configured endpoints, and the private listener.
//!
//! Promises: the same door and call list as `runlore mcp --http`.
//! Does not: know more than one organization and project yet.

use clap::{Args, Command};

use super::{
    CliError,
    session::{self, Place, Session},
};
use crate::serve::{self, flags::HttpFlags, settings::Settings};

/// The arguments of `runlore serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// What overrides the configuration.
    #[command(flatten)]
    pub flags: HttpFlags,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    ServeArgs::augment_args(Command::new("serve"))
        .about("Serves the project over HTTP as the configuration says, with a private listener for health and metrics")
}

/// Serves until a signal comes.
///
/// # Errors
/// [`CliError`] when there is no project, or the store or a port cannot be opened.
pub fn run(args: &ServeArgs, place: &Place) -> Result<u8, CliError> {
    let config = session::config(place)?;
    let settings = Settings::for_serve(&args.flags, &config).map_err(CliError::Usage)?;
    serve::run(&Session::open_as(place, &settings.anonymous())?, settings)
}
