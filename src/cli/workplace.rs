//! The store that a person's writing verbs work on: the local project's, or one of a server's projects on the server's own machine.
//!
//! Promises: every write is one deed with the name of the operating system's user, so that the trail has it; a refusal is a sentence.
//! Does not: ask a server: whoever writes so may write its files.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use serde_json::{Map, Value};

use super::{
    CliError,
    progress::Bar,
    session::{self, Place, Session},
};
use crate::{
    auth::{Caller, Role},
    clock,
    config::Config,
    serve::tenants::{control, project_file, project_options},
    store::{
        Change, Run, Store,
        sqlite::Sqlite,
        workspace::{Act, Acted, Actor, Deed},
    },
    tools::{Ctx, canonical::digest, resolve},
};

/// Which project.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkArgs {
    /// The server's project, such as acme/main; without it, the local project.
    #[arg(long, value_name = "ORGANIZATION/PROJECT")]
    pub into: Option<String>,
    /// The directory of the organizations; without it, tenants.data_dir of the configuration.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// An opened project.
pub struct Workplace {
    store: Arc<dyn Store>,
    caller: Caller,
    config: Config,
}

impl WorkArgs {
    /// Opens the project. `fresh`: the local one's logs are looked at first, so that a run that has just ended is there.
    ///
    /// # Errors
    /// [`CliError`] where there is no such project, or it cannot be opened.
    pub fn open(&self, place: &Place, fresh: bool) -> Result<Workplace, CliError> {
        match (&self.into, &self.data_dir) {
            (Some(into), _) => self.of_server(into, place),
            (None, Some(_)) => Err(CliError::Usage("--data-dir: name the project too, with --into ORGANIZATION/PROJECT".to_owned())),
            (None, None) => {
                let session = Session::open(place)?;
                if fresh {
                    session.index_now(&Bar::new(false))?;
                }
                Ok(Workplace { store: session.shared_store(), caller: Caller::local(), config: session.config().clone() })
            }
        }
    }

    fn of_server(&self, into: &str, place: &Place) -> Result<Workplace, CliError> {
        let config = Config::load(place.config.as_deref(), None).map_err(|error| CliError::Usage(error.to_string()))?;
        let named = Some(PathBuf::from(&config.tenants.data_dir)).filter(|path| !path.as_os_str().is_empty());
        let data = self
            .data_dir
            .clone()
            .or(named)
            .ok_or_else(|| CliError::Usage("--into: give --data-dir DIR too, or --config FILE with tenants.data_dir".to_owned()))?;
        let options = session::options(&config);
        let directory = control(&data, &options, false)?.directory().map_err(|error| CliError::Refused(error.to_string()))?;
        let is = |(organization, project): &(&crate::auth::directory::Organization, &crate::auth::directory::Project)| {
            into.split_once('/') == Some((&*organization.slug, &*project.slug))
        };
        let found = directory.operated().into_iter().find(|(_, _, operated)| is(operated));
        let (caller, scope, (_, project)) = found.ok_or_else(|| {
            CliError::Refused(format!(
                "--into: there is no project \"{into}\", or its organization is suspended; runlore project list shows them"
            ))
        })?;
        // A file that is not there yet is made: the first thing that is done in a project can be done here.
        let store = Sqlite::open(&project_file(&data, &project.id), &scope, &project_options(&config, &options));
        let store = store.map_err(|error| CliError::Refused(error.to_string()))?;
        Ok(Workplace { store: Arc::new(store), caller, config })
    }
}

impl Workplace {
    /// Its store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The run that a reference means.
    ///
    /// # Errors
    /// [`CliError::Refused`] where it means none, or several.
    pub fn run(&self, reference: &str) -> Result<Run, CliError> {
        let ctx = Ctx { limits: self.config.tool_limits(), ..Ctx::new(self.store.clone(), self.caller.clone(), clock::now()) };
        resolve::run(&ctx, reference).map_err(|error| CliError::Refused(error.to_string()))
    }

    /// Does `act` under the name of this machine's user. `verb` and `arguments` are what the trail says of it.
    ///
    /// # Errors
    /// [`CliError::Refused`] with the reason why nothing was done; the trail has that too.
    pub fn act(&self, verb: &str, arguments: &Map<String, Value>, act: Act) -> Result<Acted, CliError> {
        let name = format!("local:{}", user());
        let deed = Deed {
            actor: Actor { identity: name.clone(), principal: name, role: Role::Owner, address: None, request_id: clock::request_id() },
            tool: verb.to_owned(),
            digest: digest(arguments),
            at: clock::now(),
            approval: None,
            idempotency_key: None,
        };
        let applied = self.store.apply(Change::Deed(Box::new((deed, act)))).map_err(|error| CliError::Refused(error.to_string()))?;
        let outcome = applied.outcome.ok_or_else(|| CliError::Refused("the store did not say what was done".to_owned()))?;
        outcome.done.map_err(|fault| CliError::Refused(fault.to_string()))
    }
}

/// The name of the user that runs this, by the system's list and not by the environment, which says what one likes.
fn user() -> String {
    let id = nix::unistd::Uid::effective();
    let found = nix::unistd::User::from_uid(id).ok().flatten().map(|user| user.name);
    let name = found.filter(|name| !name.is_empty() && name.len() <= 64 && !name.chars().any(crate::domain::text::hidden));
    name.unwrap_or_else(|| format!("uid-{id}"))
}

/// Pairs as the arguments that the trail keeps a digest of.
#[must_use]
pub fn arguments<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
