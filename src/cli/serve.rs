//! `runlore serve`: the service of a team: the configured endpoints, and the private listener.
//!
//! Promises: the same door and call list as `runlore mcp --http`.
//! Does not: look for a project where the configuration names the directory of many organizations' (`tenants.data_dir`).

use std::sync::Arc;

use clap::{Args, Command};

use super::{
    CliError,
    session::{self, Place, Session},
};
use crate::serve::{self, flags::HttpFlags, settings::Settings, tenants::House};

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
        .about("Serves a project, or the projects of many organizations, over HTTP, with a private listener for health and metrics")
}

/// Serves until a signal comes.
///
/// # Errors
/// [`CliError`] when there is no project, or the store or a port cannot be opened.
pub fn run(args: &ServeArgs, place: &Place) -> Result<u8, CliError> {
    let config = session::config(place)?;
    let settings = Settings::for_serve(&args.flags, &config).map_err(CliError::Usage)?;
    if settings.tenants {
        let house = House::open(&config, session::options(&config), Arc::new(session::workers(&config)))?;
        return serve::run_tenants(&house, &config, settings);
    }
    serve::run(&Session::open_as(place, &settings.anonymous())?, settings)
}
