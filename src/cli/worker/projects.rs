//! Where a worker finds runs: the local project's queue, or those of all projects of a server.
//!
//! Promises: a project in which nothing was written costs two stats a look; projects are looked at in turn, so that a long queue of one does not
//! stand before the others; those of a suspended organization rest.
//! Does not: do a run.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    auth::Scope,
    cli::{
        CliError,
        session::{self, Place, Session},
    },
    clock,
    config::Config,
    domain::{log::RunStatus, time::Timestamp},
    serve::{
        quiet::Quiet,
        tenants::{control, project_file, project_options},
    },
    store::{
        self, Change, Store,
        sqlite::{Options, Sqlite, control::Control},
        workspace::{Claimed, QueueChange, QueueOutcome, Queued},
    },
};

/// A run that was claimed.
pub struct Found {
    /// The project's name, for the log.
    pub project: String,
    /// Where it is.
    pub store: Arc<dyn Store>,
    /// The run.
    pub claimed: Box<Claimed>,
}

/// Where runs come from.
pub enum Source {
    /// The local project.
    Local(Arc<dyn Store>),
    /// The projects of a server.
    Server(Box<Server>),
}

/// The projects of a server.
pub struct Server {
    data: PathBuf,
    control: Control,
    version: Option<i64>,
    options: Options,
    projects: Vec<Project>,
    open: HashMap<Arc<str>, (Arc<dyn Store>, Instant)>,
    open_max: usize,
    quiet: Quiet,
    /// Whose turn it is.
    next: usize,
}

struct Project {
    name: String,
    id: Arc<str>,
    scope: Scope,
}

/// Who claims, and how.
struct Claim<'a> {
    worker: &'a str,
    lease_ms: i64,
    tries_max: u32,
}

impl Source {
    /// What `config` names: the directory of organizations, else the project of `place`.
    ///
    /// # Errors
    /// [`CliError`] where there is neither.
    pub fn open(config: &Config, place: &Place) -> Result<Self, CliError> {
        if config.tenants.data_dir.is_empty() {
            return Ok(Self::Local(Session::open(place)?.shared_store()));
        }
        let (data, options) = (PathBuf::from(&config.tenants.data_dir), session::options(config));
        Ok(Self::Server(Box::new(Server {
            control: control(&data, &options, false)?,
            data,
            version: None,
            options: project_options(config, &options),
            projects: Vec::new(),
            open: HashMap::new(),
            open_max: config.tenants.open_max,
            quiet: Quiet::default(),
            next: 0,
        })))
    }

    /// Claims the next run, if any waits. What cannot be read now is told to the log and looked at again.
    pub fn claim(&mut self, worker: &str, lease: Duration, tries_max: u32) -> Option<Found> {
        let claim = Claim { worker, lease_ms: i64::try_from(lease.as_millis()).unwrap_or(i64::MAX), tries_max };
        match self {
            Self::Local(store) => match claim.one(&**store) {
                Ok((found, _)) => found.map(|claimed| Found { project: "local".to_owned(), store: store.clone(), claimed }),
                Err(error) => {
                    tracing::warn!(%error, "the queue cannot be read");
                    None
                }
            },
            Self::Server(server) => server.claim(&claim),
        }
    }
}

impl Server {
    fn claim(&mut self, claim: &Claim<'_>) -> Option<Found> {
        if let Err(error) = self.look() {
            tracing::warn!(%error, "the control file cannot be read; what was known of projects holds");
        }
        let count = self.projects.len();
        for step in 0..count {
            let at = (self.next + step) % count;
            if let Some(found) = self.of_project(at, claim) {
                self.next = (at + 1) % count;
                return Some(found);
            }
        }
        None
    }

    /// Reads the list of projects where it has changed.
    fn look(&mut self) -> Result<(), store::control::ControlError> {
        let version = self.control.version()?;
        if self.version == Some(version) {
            return Ok(());
        }
        let directory = self.control.directory()?;
        let named = directory.operated().into_iter().filter_map(|(_, scope, (organization, project))| {
            Some(Project { name: format!("{}/{}", organization.slug, project.slug), id: scope.project()?.clone(), scope })
        });
        self.projects = named.collect();
        let there: HashSet<&str> = self.projects.iter().map(|project| &*project.id).collect();
        self.quiet.keep(|id| there.contains(id));
        self.open.retain(|id, _| there.contains(&**id));
        self.version = Some(version);
        Ok(())
    }

    fn of_project(&mut self, at: usize, claim: &Claim<'_>) -> Option<Found> {
        let project = self.projects.get(at)?;
        let (id, name, now) = (project.id.clone(), project.name.clone(), clock::now());
        let state = self.quiet.begin(&id, &project_file(&self.data, &id), now)?;
        let claimed = self.store(at).and_then(|store| Ok((claim.one(&*store)?, store)));
        match claimed {
            Ok(((Some(claimed), _), store)) => Some(Found { project: name, store, claimed }),
            Ok(((None, due), _)) => {
                self.quiet.settle(&id, state, due, now);
                None
            }
            Err(error) => {
                tracing::warn!(%error, project = name, "the queue of a project cannot be read");
                None
            }
        }
    }

    /// The project's store; one that nobody has asked for longest makes room for it.
    fn store(&mut self, at: usize) -> store::Result<Arc<dyn Store>> {
        let project = self.projects.get(at).ok_or_else(|| store::Error::Internal("no such project".to_owned()))?;
        let now = clock::monotonic();
        if let Some((store, asked)) = self.open.get_mut(&project.id) {
            *asked = now;
            return Ok(store.clone());
        }
        if self.open.len() >= self.open_max {
            let oldest = self.open.iter().min_by_key(|(_, (_, asked))| *asked).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.open.remove(&id));
        }
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&project_file(&self.data, &project.id), &project.scope, &self.options)?);
        self.open.insert(project.id.clone(), (store.clone(), now));
        Ok(store)
    }
}

impl Claim<'_> {
    /// The next run of one project; else when there may be one though nobody writes: when a lease ends.
    fn one(&self, store: &dyn Store) -> store::Result<(Option<Box<Claimed>>, Option<Timestamp>)> {
        let (queued, now) = (store.queued(&[])?, clock::now());
        if !queued.values().any(|run| is_free(run, now)) {
            return Ok((None, queued.values().filter_map(|run| run.lease_until).min()));
        }
        // A look before the write: many workers look at many projects, and only one writes at a time.
        let claim = QueueChange::Claim { worker: self.worker, now, lease_ms: self.lease_ms, tries_max: self.tries_max };
        match store.apply(Change::Queue(claim))?.queue {
            Some(QueueOutcome::Claimed(claimed)) => Ok((Some(claimed), None)),
            // Another was faster, or it was taken too often: at once again.
            _ => Ok((None, Some(now))),
        }
    }
}

fn is_free(run: &Queued, now: Timestamp) -> bool {
    run.status == RunStatus::Pending || run.lease_until.is_none_or(|until| until <= now)
}
