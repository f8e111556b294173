//! An opened project: where it is, its configuration, its store, and how its index is kept fresh.
//!
//! Promises: the composition of a local run stands here and nowhere else; every verb opens a project the same way.
//! Does not: answer anything.

use std::{
    ffi::OsString,
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::CliError;
use crate::{
    auth::Caller,
    clock,
    commands::{
        queries::Workers,
        tool::{self, Commands},
    },
    config::Config,
    gate::{
        self, Settings,
        project::{Only, Project, Projects},
    },
    local::{
        declared,
        freshness::{Begin, Freshness, Ticket},
        git,
        index::Indexer,
        progress::{Progress, Silent},
        report::Report,
        root::{self, Located},
        walk::Bounds,
    },
    store::{
        self, Store,
        kept::PValues,
        sqlite::{Options, Sqlite},
    },
    telemetry::{hook::Hooks, redaction::Redactor},
    tools::{Ctx, Toolset, Toolsets, declared::Registry, render::Style},
};

/// The id of the one project that is opened here.
const PROJECT: &str = "local";

/// What the command line says of where to work.
pub struct Place {
    /// `--project DIR`.
    pub project: Option<PathBuf>,
    /// `--config FILE`.
    pub config: Option<PathBuf>,
}

/// An opened project.
pub struct Session {
    shared: Arc<Shared>,
}

/// What the index needs, from any thread.
struct Shared {
    root: PathBuf,
    config: Config,
    store: Arc<dyn Store>,
    read_only: bool,
    redactor: Arc<Redactor>,
    import_redactor: Arc<Redactor>,
    freshness: Arc<Freshness>,
    /// What answers should say of the index, from the last look.
    standing: Mutex<Option<String>>,
}

impl Session {
    /// Opens the project of `place`, which must be there.
    ///
    /// # Errors
    /// [`CliError::Usage`] without a project or with a wrong configuration; [`CliError::Refused`] when the store cannot be opened.
    pub fn open(place: &Place) -> Result<Self, CliError> {
        Self::open_as(place, &Caller::local())
    }

    /// The same, seeing of the store what `caller` may see.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_as(place: &Place, caller: &Caller) -> Result<Self, CliError> {
        let located = root::locate(place.project.as_deref(), &directory()?).map_err(|error| CliError::Usage(error.to_string()))?;
        Self::at(&located, place, caller)
    }

    /// The same, where a directory that is no project becomes one; whether it was made now.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_or_create(place: &Place) -> Result<(Self, bool), CliError> {
        let located =
            root::locate_or_create(place.project.as_deref(), &directory()?).map_err(|error| CliError::Usage(error.to_string()))?;
        let made = located.how == root::How::Created;
        Ok((Self::at(&located, place, &Caller::local())?, made))
    }

    fn at(located: &Located, place: &Place, caller: &Caller) -> Result<Self, CliError> {
        let config = Config::load(place.config.as_deref(), Some(&located.root)).map_err(|error| CliError::Usage(error.to_string()))?;
        // A read-only project has it already, or cannot be indexed; opening the store says which.
        let _ = root::create(&located.root);
        let store = Sqlite::open(&located.database(), &caller.local_scope(), &options(&config)).map_err(refused)?;
        let store = store.isolated(Arc::new(workers(&config)), config.query_limits());
        let store = store.keeping(Arc::new(PValues::new(&p_cache(&located.root, &config), config.goals.p_cache_bytes_max)));
        let freshness = Freshness::new(Duration::from_secs(config.index.rescan_s));
        let redactor = Arc::new(Redactor::from_environment(Vec::new()));
        let import_redactor = if config.redaction.at_import { redactor.clone() } else { Arc::new(Redactor::off()) };
        Ok(Self {
            shared: Arc::new(Shared {
                root: located.root.clone(),
                config,
                read_only: store.read_only(),
                store: Arc::new(store),
                redactor,
                import_redactor,
                freshness,
                standing: Mutex::default(),
            }),
        })
    }

    /// The project's root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// Whether the store takes no writes (decision 41).
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.shared.read_only
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The store, to be kept.
    #[must_use]
    pub fn shared_store(&self) -> Arc<dyn Store> {
        self.shared.store.clone()
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// What a person's own verbs look things up with.
    #[must_use]
    pub fn ctx(&self) -> Ctx {
        let limits = self.shared.config.tool_limits();
        Ctx { limits, ..Ctx::new(self.shared.store.clone(), Caller::local(), clock::now()) }
    }

    /// Calls `with` with an indexer of this project.
    pub fn indexing<T>(&self, with: impl FnOnce(&Indexer<'_>) -> T) -> T {
        self.shared.indexing(with)
    }

    /// What the gate needs to know; calls wait for the index as long as the configuration says.
    #[must_use]
    pub fn settings(&self, style: Style, audit: bool) -> Settings {
        let shared = self.shared.clone();
        let (store, config, redactor) = (shared.store.clone(), shared.config.clone(), shared.redactor.clone());
        let refresh: gate::Refresh = Arc::new(move || {
            let shared = shared.clone();
            Box::pin(async move { shared.refresh().await })
        });
        let only = Only(Project { id: PROJECT.into(), store, refresh });
        Settings { redactor, style, audit, ..settings_for(&config, Arc::new(only)) }
    }

    /// Begins to look at the files without waiting for the end, so that the first call finds most of it done.
    pub fn begin_index(&self) {
        if let Begin::Due(ticket) = self.shared.freshness.begin(clock::monotonic()) {
            self.shared.look_aside(ticket);
        }
    }

    /// Looks at the files and waits for the end: a person at a terminal wants the whole answer.
    ///
    /// # Errors
    /// [`CliError::Usage`] when `runlore.toml` is wrong.
    pub fn index_now(&self, progress: &dyn Progress) -> Result<(), CliError> {
        let Begin::Due(_ticket) = self.shared.freshness.begin(clock::monotonic()) else { return Ok(()) };
        let report = self.shared.rescan(progress).map_err(CliError::Usage)?;
        // The answer says it: a person at a terminal need not read it twice.
        self.shared.keep(report.note());
        Ok(())
    }
}

impl Shared {
    fn indexing<T>(&self, with: impl FnOnce(&Indexer<'_>) -> T) -> T {
        let limits = self.config.import_limits();
        let index = &self.config.index;
        let environment: Vec<(OsString, OsString)> =
            git::ENVIRONMENT.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))).collect();
        with(&Indexer {
            bounds: Bounds::of(index),
            file_bytes_max: self.config.import.file_bytes_max,
            environment,
            ..Indexer::new(&self.root, &*self.store, &limits, &self.import_redactor)
        })
    }

    /// Looks at the files when that is due, waits for a bounded time, and gives what the answer should say of it.
    async fn refresh(self: &Arc<Self>) -> Option<String> {
        let patience = Duration::from_millis(self.config.index.wait_ms);
        match self.freshness.begin(clock::monotonic()) {
            Begin::Fresh => return self.standing(),
            Begin::UnderWay => {}
            Begin::Due(ticket) => self.look_aside(ticket),
        }
        if self.freshness.settled(patience).await {
            return self.standing();
        }
        Some(
            "The project's logs are still being indexed: this answer is from those that are in already; ask again for the rest.".to_owned(),
        )
    }

    /// Looks on a thread of its own, so that nobody waits longer than he wants to.
    fn look_aside(self: &Arc<Self>, ticket: Ticket) {
        let shared = self.clone();
        let look = move || {
            let _ticket = ticket;
            let report = shared.rescan(&Silent);
            shared.stand(report);
        };
        if let Err(error) = std::thread::Builder::new().name("runlore-index".to_owned()).spawn(look) {
            self.stand(Err(format!("The project's logs could not be looked at: {error}.")));
        }
    }

    fn rescan(&self, progress: &dyn Progress) -> Result<Report, String> {
        let declared = declared::read(&self.root).map_err(|error| error.to_string())?;
        Ok(self.indexing(|indexer| Indexer { progress, environment: indexer.environment.clone(), ..*indexer }.rescan(&declared)))
    }

    /// Keeps what the last look came to, for the answers after it; what is new of it goes to the log once.
    fn stand(&self, look: Result<Report, String>) {
        let note = match look {
            Ok(report) => report.note(),
            Err(sentence) => Some(format!("{sentence}; until that is mended, logs are not looked at and what was declared before holds.")),
        };
        if let Some(note) = note.as_ref().filter(|note| self.standing().as_ref() != Some(*note)) {
            tracing::warn!(note, "the project's index is not whole");
        }
        self.keep(note);
    }

    fn keep(&self, note: Option<String>) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    fn standing(&self) -> Option<String> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a gate over `projects` needs to know: logged calls, plain text.
#[must_use]
pub fn settings_for(config: &Config, projects: Arc<dyn Projects>) -> Settings {
    Settings {
        projects,
        redactor: Arc::new(Redactor::from_environment(Vec::new())),
        limits: config.tool_limits(),
        call_timeout: Duration::from_secs(config.limits.call_timeout_s),
        bounds: gate::Bounds { row_wait: Duration::from_millis(config.approval.row_wait_ms), ..gate::Bounds::default() },
        hooks: Hooks::default(),
        registry: Registry::default(),
        style: Style::PLAIN,
        audit: true,
        // Only a server of many organizations writes.
        writes: None,
    }
}

/// The variable that says where p values are kept.
const P_CACHE: &str = "RUNLORE_P_CACHE";

/// Where p values are kept: the environment's word, else the configuration's, else in the project (decision 42).
fn p_cache(root: &Path, config: &Config) -> PathBuf {
    let said = std::env::var_os(P_CACHE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let configured = Some(&config.goals.p_cache).filter(|path| !path.is_empty()).map(|path| root.join(path));
    said.or(configured).unwrap_or_else(|| root.join(".runlore/cache/p.jsonl"))
}

/// How the configuration says that files are opened.
#[must_use]
pub fn options(config: &Config) -> Options {
    let store = &config.store;
    Options {
        busy_timeout_ms: store.busy_timeout_ms,
        readers_max: store.readers_max,
        cache_kib: u32::try_from(store.cache_kib).unwrap_or(u32::MAX),
        read_only: false,
        durable: false,
    }
}

/// The processes that answer questions in SQL are this program too.
#[must_use]
pub fn workers(config: &Config) -> Workers {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("runlore"));
    Workers::new(program, config.query.workers_max, Duration::from_millis(config.query.wait_ms))
}

/// The operator's commands, where `toolsets` offer them; to be closed when the server ends.
///
/// # Errors
/// [`CliError::Usage`] for a program or directory that is not there.
pub fn commands(config: &Config, root: Option<&Path>, within: Option<Duration>, toolsets: Toolsets) -> Result<Commands, CliError> {
    if !toolsets.has(Toolset::Commands) {
        if !config.command.is_empty() {
            tracing::warn!("commands are declared and not offered: http.toolsets or --toolsets must name commands");
        }
        return Ok(Commands::default());
    }
    // A relative project would be looked for again from where the command runs.
    let root =
        root.map(std::path::absolute).transpose().map_err(|error| CliError::Usage(format!("the project cannot be found: {error}")))?;
    Commands::declare(config, tool::Place { root: root.as_deref(), within }).map_err(|faults| CliError::Usage(faults.join("\n")))
}

fn refused(error: store::Error) -> CliError {
    if let store::Error::Internal(inner) = &error {
        tracing::error!(error = inner, "the store cannot be opened");
    }
    CliError::Refused(format!("{error} (.runlore/history.db)"))
}

/// The configuration of `place`'s project.
///
/// # Errors
/// [`CliError::Usage`] without a project or with a wrong configuration.
pub fn config(place: &Place) -> Result<Config, CliError> {
    // A configuration that names the directory of many organizations needs no project.
    if let Some(path) = &place.config {
        let config = Config::load(Some(path), None).map_err(|error| CliError::Usage(error.to_string()))?;
        if !config.tenants.data_dir.is_empty() {
            return Ok(config);
        }
    }
    let located = root::locate(place.project.as_deref(), &directory()?).map_err(|error| CliError::Usage(error.to_string()))?;
    Config::load(place.config.as_deref(), Some(&located.root)).map_err(|error| CliError::Usage(error.to_string()))
}

/// The working directory.
///
/// # Errors
/// [`CliError::Usage`] when it is gone.
pub fn directory() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| CliError::Usage(format!("the working directory cannot be read: {}", root::reason(&error))))
}

/// Runs one call to its end.
///
/// # Errors
/// [`CliError::Refused`] when the runtime cannot start.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| CliError::Refused(format!("the runtime cannot start: {error}")))?.block_on(work))
}

/// Threads that read the store for calls: more than twice its readers would only wait for those, each with a heap of its own of more than a
/// megabyte (measured).
const BLOCKING_THREADS: usize = 8;

/// Runs a server to its end, without waiting for threads that still read (stdin cannot be interrupted).
///
/// # Errors
/// [`CliError::Refused`] when the runtime cannot start.
pub fn serve<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).max_blocking_threads(BLOCKING_THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Refused(format!("the runtime cannot start: {error}")))?;
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(ended)
}
