//! `runlore org`: the organizations of a server.
//!
//! Promises: a running server knows a new one within `tenants.look_ms`.
//! Does not: delete: an organization's projects are files that an operator keeps or removes.

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};

use super::{
    CliError,
    control::{ControlArgs, refused},
    output::Output,
    session::Place,
};
use crate::{auth::directory, store::control::ControlChange};

/// The arguments of `runlore org`.
#[derive(Debug, Clone, Args)]
struct OrgArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make an organization.
    Create {
        /// Its name in paths and tokens: 1 to 63 of a-z, 0-9 and -.
        #[arg(value_name = "ORGANIZATION", value_parser = directory::slug)]
        slug: String,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Let nobody of an organization in from now on; nothing of it is lost.
    Suspend {
        /// Its name.
        #[arg(value_name = "ORGANIZATION")]
        slug: String,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Let a suspended organization in again.
    Resume {
        /// Its name.
        #[arg(value_name = "ORGANIZATION")]
        slug: String,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// List the organizations.
    List {
        /// Where they are kept.
        #[command(flatten)]
        control: ControlArgs,
    },
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    OrgArgs::augment_args(Command::new("org")).about("Makes, lists and suspends the organizations of a server of many")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = OrgArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    match args.action {
        Action::Create { slug, control } => {
            control.apply(place, &ControlChange::Organization { slug: &slug })?;
            output.say(&format!("Made organization {slug}. Next: runlore project create {slug}/main"));
        }
        Action::Suspend { slug, control } => {
            control.apply(place, &ControlChange::Suspended { slug: &slug, suspended: true })?;
            output.say(&format!("Organization {slug} is suspended: its keys and tokens are refused."));
        }
        Action::Resume { slug, control } => {
            control.apply(place, &ControlChange::Suspended { slug: &slug, suspended: false })?;
            output.say(&format!("Organization {slug} is let in again."));
        }
        Action::List { control } => {
            let rows = control.open(place)?.organizations().map_err(refused)?;
            control.list(output, &["organization", "projects", "keys", "created", "state"], &rows, |row| {
                let state = row.suspended_at.map_or_else(|| "open".to_owned(), |since| format!("suspended {}", since.rfc3339()));
                vec![row.slug.clone(), row.projects.to_string(), row.keys.to_string(), row.created_at.rfc3339(), state]
            });
        }
    }
    Ok(0)
}
