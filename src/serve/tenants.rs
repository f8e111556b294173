//! A server of many organizations: the control file as it is now, and their projects, opened when somebody asks.
//!
//! Promises: a project is opened with a scope that its caller's place in the directory gives, and with nothing else; one that nobody asks for is
//! closed; what was revoked is refused within `tenants.look_ms`. Opening is done once for all who ask meanwhile, on the blocking pool.
//! Does not: write runs, or decide who may what (`auth` does).

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use crate::{
    auth::{Caller, Scope, directory::Directory, tenants::Tenants},
    cli::CliError,
    clock,
    commands::queries::Workers,
    config::Config,
    gate::project::{Found, Lost, Place, Project, Projects},
    store::{
        self,
        control::{ControlChange, ControlError},
        query::QueryLimits,
        sqlite::{Options, Sqlite, control::Control},
    },
};

/// The control file, in `tenants.data_dir`.
const CONTROL: &str = "control.db";
/// The directory of the projects' files beside it.
const PROJECTS: &str = "projects";

/// The control file of a directory, which is made where there is none.
///
/// # Errors
/// [`CliError::Refused`], with a sentence for the operator.
pub fn control(data: &Path, options: &Options) -> Result<Control, CliError> {
    let refused = |reason: String| CliError::Refused(format!("{}: {reason}", data.display()));
    std::fs::create_dir_all(data).map_err(|error| refused(error.to_string()))?;
    Control::open(&data.join(CONTROL), options).map_err(|error| refused(error.to_string()))
}

/// The organizations of a server.
pub struct House {
    control: Arc<Control>,
    tenants: Arc<Tenants>,
    look: Duration,
    wait: Duration,
    opened: Opened,
}

impl House {
    /// Those of `config.tenants.data_dir`.
    ///
    /// # Errors
    /// [`CliError::Refused`] where the control file cannot be opened or read.
    pub fn open(config: &Config, options: Options, workers: Arc<Workers>) -> Result<Self, CliError> {
        let (set, data) = (&config.tenants, PathBuf::from(&config.tenants.data_dir));
        let control = control(&data, &options)?;
        let directory = control.directory().map_err(|error| CliError::Refused(error.to_string()))?;
        let tenants = Arc::new(Tenants::new(directory));
        let parts = Parts {
            directory: data.join(PROJECTS),
            tenants: tenants.clone(),
            // What was sent and answered for must outlive a power cut: its sender may have nothing left of it.
            options: Options { cache_kib: u32::try_from(set.cache_kib).unwrap_or(u32::MAX), durable: true, ..options },
            workers,
            limits: config.query_limits(),
            open: Mutex::default(),
            open_max: set.open_max,
            idle: Duration::from_secs(set.idle_s),
            wait: Duration::from_millis(set.wait_ms),
        };
        let (look, wait) = (Duration::from_millis(set.look_ms), Duration::from_millis(set.wait_ms));
        Ok(Self { control: Arc::new(control), tenants, look, wait, opened: Opened(Arc::new(parts)) })
    }

    /// Who its callers are.
    #[must_use]
    pub fn tenants(&self) -> Arc<Tenants> {
        self.tenants.clone()
    }

    /// Its projects.
    #[must_use]
    pub fn projects(&self) -> Arc<dyn Projects> {
        Arc::new(self.opened.clone())
    }

    /// The same, for what is sent to them.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.opened.clone()
    }

    /// Whether the control file answers.
    #[must_use]
    pub fn answers(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let control = self.control.clone();
        Arc::new(move || control.version().is_ok())
    }

    /// Keeps what is known up to date, closes what nobody asks for and writes down which keys were used, until this is dropped.
    pub async fn keep(&self) {
        let mut version = None;
        loop {
            tokio::time::sleep(self.look).await;
            let (control, tenants, known) = (self.control.clone(), self.tenants.clone(), version);
            let looking = tokio::task::spawn_blocking(move || look(&control, &tenants, known));
            match tokio::time::timeout(self.wait, looking).await {
                Ok(Ok(Ok(seen))) => version = Some(seen),
                Ok(Ok(Err(error))) => tracing::warn!(%error, "the control file could not be read; what was known of callers holds on"),
                Ok(Err(_)) | Err(_) => tracing::warn!("the control file did not answer; what was known of callers holds on"),
            }
            self.opened.0.close_idle(clock::monotonic());
        }
    }
}

/// Reads the directory where another process has changed it; the version that was seen. When keys were used is written on the way.
fn look(control: &Control, tenants: &Tenants, known: Option<i64>) -> Result<i64, ControlError> {
    let used = tenants.take_used();
    if !used.is_empty() {
        control.apply(&ControlChange::Used(&used), clock::now())?;
    }
    let version = control.version()?;
    if known != Some(version) {
        tenants.replace(control.directory()?);
    }
    Ok(version)
}

/// Where what somebody sends is put.
pub struct Target {
    /// The project's store.
    pub store: Arc<dyn store::Store>,
    /// The directory for what is not in it yet; it may have to be made.
    pub spool: PathBuf,
}

/// The projects that are open.
#[derive(Clone)]
pub struct Opened(Arc<Parts>);

impl Opened {
    /// The directory of the projects' files.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.0.directory.clone()
    }

    /// The project that `named` names, else the only one that `caller` may see.
    ///
    /// # Errors
    /// Why there is none; what `caller` may not see is not there.
    pub async fn target(&self, caller: &Caller, named: Option<&str>) -> Result<Target, Lost> {
        let scope = self.0.scope(caller, None, named)?;
        let (organization, project) = scope.project().ok_or(Lost::NotFound)?;
        let spool = self.0.directory.join(organization.to_string()).join(format!("{project}.spool"));
        let slot = self.0.slot(&scope, clock::monotonic());
        Ok(Target { store: self.0.clone().opening(scope, slot).await?.store, spool })
    }
}

struct Parts {
    directory: PathBuf,
    tenants: Arc<Tenants>,
    options: Options,
    workers: Arc<Workers>,
    limits: QueryLimits,
    /// By what of which project is seen: a caller who may not read texts has a handle of its own.
    open: Mutex<HashMap<Scope, Slot>>,
    open_max: usize,
    idle: Duration,
    wait: Duration,
}

/// One of them, or its opening.
struct Slot {
    project: Arc<OnceCell<Project>>,
    asked: Instant,
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, HashMap<Scope, Slot>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of `scope`; where there is no room, the one that nobody has asked for longest makes some.
    fn slot(&self, scope: &Scope, now: Instant) -> Arc<OnceCell<Project>> {
        let mut open = self.lock();
        if let Some(slot) = open.get_mut(scope) {
            slot.asked = now;
            return slot.project.clone();
        }
        if open.len() >= self.open_max {
            let oldest = open.iter().min_by_key(|(_, slot)| slot.asked).map(|(scope, _)| scope.clone());
            oldest.and_then(|scope| open.remove(&scope));
        }
        let project = Arc::new(OnceCell::new());
        open.insert(scope.clone(), Slot { project: project.clone(), asked: now });
        project
    }

    /// Closes what nobody has asked for. Who is at it keeps it open to the end.
    fn close_idle(&self, now: Instant) {
        self.lock().retain(|_, slot| now.saturating_duration_since(slot.asked) < self.idle);
    }

    async fn opening(self: Arc<Self>, scope: Scope, slot: Arc<OnceCell<Project>>) -> Result<Project, Lost> {
        let wait = self.wait;
        let opening = slot.get_or_try_init(|| async move {
            let opened = tokio::task::spawn_blocking(move || self.store(&scope)).await;
            opened.unwrap_or_else(|error| Err(store::Error::Internal(error.to_string())))
        });
        match tokio::time::timeout(wait, opening).await {
            Ok(opened) => opened.cloned().map_err(Lost::Store),
            Err(_) => Err(Lost::Store(store::Error::Busy)),
        }
    }

    fn store(&self, scope: &Scope) -> store::Result<Project> {
        let (organization, project) = scope.project().ok_or_else(|| store::Error::Internal("a scope without a project".to_owned()))?;
        let directory = self.directory.join(organization.to_string());
        if !directory.is_dir() {
            std::fs::create_dir_all(&directory).map_err(|error| store::Error::Internal(error.to_string()))?;
        }
        let store = Sqlite::open(&directory.join(format!("{project}.db")), scope, &self.options)?;
        let store = store.isolated(self.workers.clone(), self.limits);
        let refresh = Arc::new(|| -> crate::gate::BoxFuture<Option<String>> { Box::pin(std::future::ready(None)) });
        Ok(Project { id: format!("{organization}/{project}").into(), store: Arc::new(store), refresh })
    }

    /// What `caller` may see of the project that it means.
    fn scope(&self, caller: &Caller, place: Option<&Place>, named: Option<&str>) -> Result<Scope, Lost> {
        let directory = self.tenants.directory();
        if let Some(place) = place {
            let found = directory.scope(caller, &place.organization, &place.project);
            return found.map(|(scope, _)| scope).ok_or(Lost::NotFound);
        }
        match named {
            Some(named) => by_name(&directory, caller, named).ok_or(Lost::NotFound),
            None => match directory.visible(caller).as_slice() {
                [] => Err(Lost::NotFound),
                [(organization, project)] => caller.scope(organization, project).ok_or(Lost::NotFound),
                _ => Err(Lost::Which),
            },
        }
    }
}

/// A project's name as this caller says it: its slug in its own organization, `organization/project` for a stranger.
fn shown(caller: &Caller, (organization, project): crate::auth::directory::Place<'_>) -> String {
    if caller.organization().is_some() { project.slug.to_string() } else { format!("{}/{}", organization.slug, project.slug) }
}

/// The project that a caller calls by its slug, or by `organization/slug`.
fn by_name(directory: &Directory, caller: &Caller, named: &str) -> Option<Scope> {
    let (organization, project) = match (named.split_once('/'), caller.organization()) {
        (Some((organization, project)), _) => (organization, project),
        (None, Some(own)) => (&**own, named),
        (None, None) => return None,
    };
    directory.scope(caller, organization, project).map(|(scope, _)| scope)
}

impl Projects for Opened {
    fn visible(&self, caller: &Caller) -> Vec<String> {
        self.0.tenants.directory().visible(caller).into_iter().map(|place| shown(caller, place)).collect()
    }

    fn several(&self, caller: &Caller) -> bool {
        self.0.tenants.directory().visible(caller).len() > 1
    }

    fn find(&self, caller: &Caller, place: Option<&Place>, named: Option<&str>) -> Found {
        let scope = match self.0.scope(caller, place, named) {
            Ok(scope) => scope,
            Err(lost) => return Found::Lost(lost),
        };
        let slot = self.0.slot(&scope, clock::monotonic());
        match slot.get() {
            Some(project) => Found::Here(project.clone()),
            None => Found::Opening(Box::pin(self.0.clone().opening(scope, slot))),
        }
    }
}
