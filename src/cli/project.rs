//! `runlore project`: the projects of a server's organizations.
//!
//! Promises: a running server knows a new one, and a changed visibility, within `tenants.look_ms`.
//! Does not: delete: a project's runs are a file that an operator keeps or removes.

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand, ValueEnum};

use super::{
    CliError,
    control::{ControlArgs, refused},
    output::Output,
    session::Place,
};
use crate::{auth::directory, clock, domain::hex::hex, store::control::ControlChange};

/// The arguments of `runlore project`.
#[derive(Debug, Clone, Args)]
struct ProjectArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make a project.
    Create {
        /// Its organization and its name, such as acme/main.
        #[arg(value_name = "ORGANIZATION/PROJECT", value_parser = named)]
        name: Named,
        /// Strangers may read it, on a server that lets strangers read.
        #[arg(long)]
        public: bool,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// List the projects.
    List {
        /// Those of this organization only.
        #[arg(value_name = "ORGANIZATION")]
        organization: Option<String>,
        /// Where they are kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Say whether strangers may read a project.
    Visibility {
        /// Its organization and its name, such as acme/main.
        #[arg(value_name = "ORGANIZATION/PROJECT", value_parser = named)]
        name: Named,
        /// Who may read it.
        #[arg(value_name = "WHO")]
        visibility: Visibility,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Visibility {
    /// Its organization's callers alone.
    Private,
    /// Strangers too, on a server that lets strangers read.
    Public,
}

#[derive(Debug, Clone)]
struct Named {
    organization: String,
    project: String,
}

fn named(text: &str) -> Result<Named, String> {
    let (organization, project) =
        text.split_once('/').ok_or_else(|| format!("\"{text}\" names no project: give ORGANIZATION/PROJECT, such as acme/main"))?;
    Ok(Named { organization: directory::slug(organization)?, project: directory::slug(project)? })
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    ProjectArgs::augment_args(Command::new("project")).about("Makes and lists the projects of a server's organizations")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = ProjectArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    match args.action {
        Action::Create { name: Named { organization, project }, public, control } => {
            let id = hex(&clock::random::<12>().map_err(CliError::Refused)?);
            control.apply(place, &ControlChange::Project { organization: &organization, slug: &project, id: &id, public })?;
            let next = format!("Next: runlore key create {organization} --name ci --role member --scope runs:write");
            output.say(&format!("Made project {organization}/{project}. {next}"));
        }
        Action::List { organization, control } => {
            let rows = control.open(place)?.projects(organization.as_deref()).map_err(refused)?;
            control.list(output, &["project", "visibility", "created"], &rows, |row| {
                let visibility = if row.public { "public" } else { "private" };
                vec![format!("{}/{}", row.organization, row.slug), visibility.to_owned(), row.created_at.rfc3339()]
            });
        }
        Action::Visibility { name: Named { organization, project }, visibility, control } => {
            let public = visibility == Visibility::Public;
            control.apply(place, &ControlChange::Visibility { organization: &organization, project: &project, public })?;
            let said = if public { "public: strangers may read it on a server that lets strangers read" } else { "private" };
            output.say(&format!("Project {organization}/{project} is {said}."));
        }
    }
    Ok(0)
}
