//! A server of many organizations: the control file as it is now, and their projects, opened when somebody asks.
//!
//! Promises: a project is opened with a scope that its caller's place in the directory gives, and with nothing else; its file is named by an id
//! that no other project ever has; one that nobody asks for is closed; what was revoked is refused within `tenants.look_ms`, and where the
//! control file cannot be read the server is not ready. Opening is done once for all who ask meanwhile, on the blocking pool.
//! Does not: write runs, or decide who may what (`auth` does).

use std::{
    collections::HashMap,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use crate::{
    auth::{Caller, Scope, directory::Directory, jwt::JwtVerifier, tenants::Tenants},
    cli::CliError,
    clock,
    commands::queries::Workers,
    config::Config,
    gate::project::{Found, Lost, Place, Project, Projects},
    store::{
        self,
        control::{ControlChange, ControlError},
        kept::PValues,
        query::QueryLimits,
        sqlite::{Options, Sqlite, control::Control},
    },
};

/// The control file, in `tenants.data_dir`.
pub const CONTROL: &str = "control.db";
/// The directory of the projects' files beside it.
pub const PROJECTS: &str = "projects";

/// Descriptors of one open project: its connections with their logs.
const DESCRIPTORS_EACH: u64 = 12;
/// Descriptors that are not for projects and connections: listeners, the log, the control file, child processes.
const DESCRIPTORS_ELSE: u64 = 128;
/// Looks that may fail before the server says that it is not ready.
const LOOKS_MISSED_MAX: u32 = 3;

/// The control file of a directory; `make` makes both where they are not there.
///
/// # Errors
/// [`CliError::Refused`], with a sentence for the operator.
pub fn control(data: &Path, options: &Options, make: bool) -> Result<Control, CliError> {
    let path = data.join(CONTROL);
    let refused = |reason: String| CliError::Refused(format!("{}: {reason}", data.display()));
    if !make && !path.is_file() {
        return Err(refused("there are no organizations here; runlore org create makes the first".to_owned()));
    }
    // What is in it is for whoever runs the server, and for nobody else on this machine: SQLite gives its other files the mode of this one.
    private_directory(data).and_then(|()| private_file(&path)).map_err(|error| refused(error.to_string()))?;
    Control::open(&path, options).map_err(|error| refused(error.to_string()))
}

/// How the files of projects are opened: what was sent and answered for must outlive a power cut, since its sender may have nothing left of it.
#[must_use]
pub fn project_options(config: &Config, options: &Options) -> Options {
    Options { cache_kib: u32::try_from(config.tenants.cache_kib).unwrap_or(u32::MAX), durable: true, ..options.clone() }
}

/// The file of the project with this id.
#[must_use]
pub fn project_file(data: &Path, id: &str) -> PathBuf {
    data.join(PROJECTS).join(format!("{id}.db"))
}

/// Makes a directory that nobody else may read, where there is none.
pub fn private_directory(path: &Path) -> std::io::Result<()> {
    if path.is_dir() { Ok(()) } else { std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path) }
}

/// Makes an empty file that nobody else may read, where there is none; SQLite takes it for a new one.
fn private_file(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

/// How many projects may be open at once by the descriptors that the system gives this process; the soft limit is raised to the hard one.
fn affordable(open_max: usize, connections_max: usize) -> usize {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return open_max };
    let limit = if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft };
    let left = limit.saturating_sub(DESCRIPTORS_ELSE).saturating_sub(connections_max as u64);
    let affordable = usize::try_from(left / DESCRIPTORS_EACH).unwrap_or(usize::MAX).max(1);
    if affordable < open_max {
        tracing::warn!(limit, affordable, open_max, "fewer projects are open at once than tenants.open_max: raise the limit of open files");
    }
    affordable.min(open_max)
}

/// The control file as it was opened.
struct Kept {
    path: PathBuf,
    options: Options,
    control: Control,
    /// What tells the file from one that was put in its place.
    file: Option<(u64, u64)>,
    version: Option<i64>,
    /// Uses of keys that are still to be written.
    used: Vec<(Arc<str>, i64)>,
}

/// The organizations of a server.
pub struct House {
    kept: Arc<Mutex<Kept>>,
    /// Looks that have failed in a row.
    missed: Arc<AtomicU32>,
    tenants: Arc<Tenants>,
    tokens: Option<Arc<JwtVerifier>>,
    look: Duration,
    wait: Duration,
    opened: Opened,
}

impl House {
    /// Those of `config.tenants.data_dir`.
    ///
    /// # Errors
    /// [`CliError::Refused`] where the control file cannot be opened or read; [`CliError::Usage`] where a key's file cannot be used.
    pub fn open(config: &Config, options: Options, workers: Arc<Workers>) -> Result<Self, CliError> {
        let issuers = config.jwt_issuers().map_err(|faults| CliError::Usage(faults.join("\n")))?;
        let tokens = (!issuers.is_empty()).then(|| Arc::new(JwtVerifier::new(issuers, config.jwt_limits())));
        let (set, data) = (&config.tenants, PathBuf::from(&config.tenants.data_dir));
        let control = control(&data, &options, true)?;
        let path = data.join(CONTROL);
        let kept = Kept { file: identity(&path), path, options: options.clone(), version: None, used: Vec::new(), control };
        let directory = kept.control.directory().map_err(|error| CliError::Refused(error.to_string()))?;
        let tenants = Arc::new(Tenants::new(directory, tokens.clone()));
        let parts = Parts {
            directory: data.join(PROJECTS),
            tenants: tenants.clone(),
            options: project_options(config, &options),
            workers,
            limits: config.query_limits(),
            p_cache_bytes_max: config.goals.p_cache_bytes_max,
            open: Mutex::default(),
            open_max: affordable(set.open_max, config.http.connections_max),
            idle: Duration::from_secs(set.idle_s),
            wait: Duration::from_millis(set.wait_ms),
        };
        let (look, wait) = (Duration::from_millis(set.look_ms), Duration::from_millis(set.wait_ms));
        Ok(Self { kept: Arc::new(Mutex::new(kept)), missed: Arc::default(), tenants, tokens, look, wait, opened: Opened(Arc::new(parts)) })
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

    /// Whether the control file could be read at one of the last looks.
    #[must_use]
    pub fn answers(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let missed = self.missed.clone();
        Arc::new(move || missed.load(Relaxed) < LOOKS_MISSED_MAX)
    }

    /// Writes down which keys were used since the last look: once the server ends, nobody else will.
    pub fn close(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        write_uses(&mut kept, &self.tenants);
    }

    fn missed(&self, reason: &str) {
        if self.missed.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(reason, "the control file could not be read; what was known of callers holds on, and the server is not ready");
        }
    }

    /// A misspelt file or URL is told at start, though a server may begin while an issuer is away.
    async fn tell_missing_keys(&self) {
        if let Some(tokens) = &self.tokens
            && let Err(faults) = tokens.prefetch(clock::now_s()).await
        {
            faults.iter().for_each(|fault| tracing::warn!("{fault}; until its keys can be read its tokens are refused"));
        }
    }

    /// Keeps what is known up to date, closes what nobody asks for and writes down which keys were used, until this is dropped.
    pub async fn keep(&self) {
        // Their keys are read anew on tasks of their own, which end with this.
        let _keys = self.tokens.as_ref().map(|tokens| tokens.keep_fresh(clock::now_s));
        self.tell_missing_keys().await;
        loop {
            tokio::time::sleep(self.look).await;
            let (kept, tenants) = (self.kept.clone(), self.tenants.clone());
            let looking = tokio::task::spawn_blocking(move || look(&mut kept.lock().unwrap_or_else(PoisonError::into_inner), &tenants));
            match tokio::time::timeout(self.wait, looking).await {
                Ok(Ok(Ok(()))) => self.missed.store(0, Relaxed),
                Ok(Ok(Err(error))) => self.missed(&error.to_string()),
                Ok(Err(_)) | Err(_) => self.missed("it did not answer"),
            }
            self.opened.0.close_idle(clock::monotonic());
        }
    }
}

/// What tells a file from another in its place; none where there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Reads the directory where another process has changed it. Reading comes first: who may no longer call must not wait for a write.
fn look(kept: &mut Kept, tenants: &Tenants) -> Result<(), ControlError> {
    let file = identity(&kept.path);
    if file.is_none() {
        return Err(ControlError::NotFound("control file".to_owned()));
    }
    if file != kept.file {
        // Restored from a backup, say: the handle is on a file that nobody else sees.
        kept.control = Control::open(&kept.path, &kept.options)?;
        (kept.file, kept.version) = (file, None);
    }
    let version = kept.control.version()?;
    if kept.version != Some(version) {
        tenants.replace(kept.control.directory()?);
        kept.version = Some(version);
    }
    write_uses(kept, tenants);
    Ok(())
}

/// Writes down when keys were used; what cannot be written now is kept for the next time.
fn write_uses(kept: &mut Kept, tenants: &Tenants) {
    kept.used.extend(tenants.take_used());
    if kept.used.is_empty() {
        return;
    }
    match kept.control.apply(&ControlChange::Used(&kept.used), clock::now()) {
        Ok(()) => kept.used.clear(),
        Err(error) => tracing::warn!(%error, "when keys were used could not be written down"),
    }
    // One entry for each key, however often it was used meanwhile.
    kept.used.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
    kept.used.dedup_by(|a, b| a.0 == b.0);
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
        let id = scope.project().ok_or(Lost::NotFound)?;
        let spool = self.0.directory.join(format!("{id}.spool"));
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
    p_cache_bytes_max: u64,
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
        let id = scope.project().ok_or_else(|| store::Error::Internal("a scope without a project".to_owned()))?;
        private_directory(&self.directory).map_err(|error| store::Error::Internal(error.to_string()))?;
        let store = Sqlite::open(&self.directory.join(format!("{id}.db")), scope, &self.options)?;
        // Beside the project's file, and nobody else's.
        let kept = PValues::new(&self.directory.join(format!("{id}.p.jsonl")), self.p_cache_bytes_max);
        let store = store.isolated(self.workers.clone(), self.limits).keeping(Arc::new(kept));
        let refresh = Arc::new(|| -> crate::gate::BoxFuture<Option<String>> { Box::pin(std::future::ready(None)) });
        Ok(Project { id: id.clone(), store: Arc::new(store), refresh })
    }

    /// What `caller` may see of the project that it means.
    fn scope(&self, caller: &Caller, place: Option<&Place>, named: Option<&str>) -> Result<Scope, Lost> {
        let directory = self.tenants.directory();
        if let Some(place) = place {
            let found = directory.scope(caller, &place.organization, &place.project);
            let same = |scope: &Scope| named.is_none_or(|named| by_name(&directory, caller, named).as_ref() == Some(scope));
            return found.map(|(scope, _)| scope).filter(same).ok_or(Lost::NotFound);
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
