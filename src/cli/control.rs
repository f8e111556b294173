//! What the verbs over organizations share: the control file, and how lists look.
//!
//! Promises: the file is the one that `--data-dir` names, else the configuration's `tenants.data_dir`.
//! Does not: know the verbs.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{
    CliError,
    output::Output,
    session::{self, Place},
};
use crate::{
    clock,
    config::Config,
    serve::tenants,
    store::{
        control::{ControlChange, ControlError},
        sqlite::control::Control,
    },
    tools::render::Grid,
};

/// Where the control file is, and how a list is printed.
#[derive(Debug, Clone, Default, Args)]
pub struct ControlArgs {
    /// The directory of the organizations; without it, tenants.data_dir of the configuration.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl ControlArgs {
    /// The control file.
    ///
    /// # Errors
    /// [`CliError`] where no directory is named, there is none in it, or it cannot be opened.
    pub fn open(&self, place: &Place) -> Result<Control, CliError> {
        self.opened(place, false)
    }

    fn opened(&self, place: &Place, make: bool) -> Result<Control, CliError> {
        let config = match &place.config {
            Some(path) => Config::load(Some(path), None).map_err(|error| CliError::Usage(error.to_string()))?,
            None => Config::default(),
        };
        let named = Some(PathBuf::from(&config.tenants.data_dir)).filter(|path| !path.as_os_str().is_empty());
        let directory = self.data_dir.clone().or(named).ok_or_else(|| {
            CliError::Usage("no directory of organizations: give --data-dir DIR, or --config FILE with tenants.data_dir".to_owned())
        })?;
        tenants::control(&directory, &session::options(&config), make)
    }

    /// Applies one change now, and says `done`.
    ///
    /// # Errors
    /// [`CliError::Refused`], with the reason.
    pub fn apply(&self, place: &Place, change: &ControlChange<'_>) -> Result<(), CliError> {
        // Only the first organization makes the file: a mistyped directory is not taken for an empty server.
        let make = matches!(change, ControlChange::Organization { .. });
        self.opened(place, make)?.apply(change, clock::now()).map_err(refused)
    }

    /// Prints a list: as JSON, or as a table of `heads`.
    pub fn list<T: Serialize>(&self, output: &mut Output, heads: &[&str], rows: &[T], cells: impl Fn(&T) -> Vec<String>) {
        if self.json {
            output.json(&serde_json::to_string(rows).unwrap_or_default());
            return;
        }
        let mut grid = Grid::new(&output.style(), heads);
        for row in rows {
            grid.row(cells(row).into_iter().map(Into::into));
        }
        output.say(&grid.text());
    }
}

/// A refused change, for the person who asked for it.
#[must_use]
pub fn refused(error: ControlError) -> CliError {
    CliError::Refused(error.to_string())
}
