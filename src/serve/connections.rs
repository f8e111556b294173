//! The keeper of connections: watched directories, looked at again and again, each into its own project.
//!
//! Promises: a directory is read only below `connections.root`/ORGANIZATION/PROJECT, whatever its settings or links say; one project at a time,
//! on the blocking pool; a look that fails says why in the connection's health and takes nothing away; a look that was asked for comes within
//! `connections.look_ms` or so, where no other is under way.
//! Does not: follow files as they grow, or tell anybody where the root is.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    quiet::{Quiet, State},
    tenants::{Opened, project_file},
};
use crate::{
    auth::{Caller, tenants::Tenants},
    clock,
    config::Config,
    domain::{connection, time::Timestamp},
    importers,
    local::{
        index::{Indexer, Watched},
        report::Remark,
        root::reason,
        walk::Bounds,
    },
    store::{
        self, Change, Store,
        workspace::{Connection, Health},
    },
    telemetry::redaction::Redactor,
};

/// Sentences that health keeps.
const COMPLAINTS_MAX: usize = 20;

/// The keeper.
pub struct Keeper {
    parts: Arc<Parts>,
    opened: Opened,
    tenants: Arc<Tenants>,
    data: PathBuf,
    look: Duration,
    quiet: Arc<Mutex<Quiet>>,
}

/// What a look needs, on any thread.
struct Parts {
    root: PathBuf,
    sync_ms: i64,
    import: importers::Limits,
    bounds: Bounds,
    file_bytes_max: u64,
    redactor: Redactor,
}

/// A project to look at.
struct Due {
    caller: Caller,
    organization: Arc<str>,
    project: Arc<str>,
    id: Arc<str>,
    state: State,
}

impl Keeper {
    /// The keeper of these projects' connections; none where the operator has declared no root.
    #[must_use]
    pub fn new(opened: Opened, tenants: Arc<Tenants>, config: &Config) -> Option<Self> {
        let set = &config.connections;
        if set.root.is_empty() {
            return None;
        }
        let redactor = Redactor::at_import(config.redaction.at_import);
        let parts = Parts {
            root: PathBuf::from(&set.root),
            sync_ms: i64::try_from(set.sync_s.saturating_mul(1000)).unwrap_or(i64::MAX),
            import: config.import_limits(),
            bounds: Bounds::of(&config.index),
            file_bytes_max: config.import.file_bytes_max,
            redactor,
        };
        let (data, look) = (PathBuf::from(&config.tenants.data_dir), Duration::from_millis(set.look_ms));
        Some(Self { parts: Arc::new(parts), opened, tenants, data, look, quiet: Arc::default() })
    }

    /// Looks, until this is dropped. A look that is under way then ends by itself.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(self.look).await;
            for due in self.due().await {
                self.project(due).await;
            }
        }
    }

    /// The projects in which something may be due.
    async fn due(&self) -> Vec<Due> {
        let (directory, quiet, data) = (self.tenants.directory(), self.quiet.clone(), self.data.clone());
        let looking = tokio::task::spawn_blocking(move || {
            let operated = directory.operated();
            let there: HashSet<&str> = operated.iter().map(|(_, _, (_, project))| &*project.id).collect();
            let mut quiet = quiet.lock().unwrap_or_else(PoisonError::into_inner);
            quiet.keep(|id| there.contains(id));
            let now = clock::now();
            let due = operated.into_iter().filter_map(|(caller, _, (organization, project))| {
                let id = project.id.clone();
                let state = quiet.begin(&id, &project_file(&data, &id), now)?;
                Some(Due { caller, organization: organization.slug.clone(), project: project.slug.clone(), id, state })
            });
            due.collect()
        });
        looking.await.unwrap_or_default()
    }

    async fn project(&self, due: Due) {
        let now = clock::now();
        let name = format!("{}/{}", due.organization, due.project);
        let next = match self.opened.target(&due.caller, Some(&name)).await {
            Err(_) => Err("it cannot be opened".to_owned()),
            Ok(target) => {
                let (parts, place) = (self.parts.clone(), PathBuf::from(&*due.organization).join(&*due.project));
                let looked = tokio::task::spawn_blocking(move || parts.project(&*target.store, &place));
                looked.await.map_err(|error| error.to_string()).and_then(|looked| looked.map_err(|error| error.to_string()))
            }
        };
        let next = next.unwrap_or_else(|error| {
            tracing::warn!(error, project = name, "the connections of a project could not be looked at");
            Some(now.plus_millis(self.parts.sync_ms))
        });
        self.quiet.lock().unwrap_or_else(PoisonError::into_inner).settle(&due.id, due.state, next, now);
    }
}

impl Parts {
    /// Looks at the connections of one project that are due; when the next one is. Blocking.
    fn project(&self, store: &dyn Store, place: &Path) -> store::Result<Option<Timestamp>> {
        for one in store.connections()?.iter().filter(|one| self.is_due(one, clock::now())) {
            let health = self.looked(store, place, one);
            store.apply(Change::Synced { connection: one.id.clone(), health })?;
        }
        // As it is now: one was made, or asked for, meanwhile.
        let all = store.connections()?;
        Ok(all.iter().filter(|one| one.enabled).map(|one| self.next(one)).min())
    }

    fn is_due(&self, one: &Connection, now: Timestamp) -> bool {
        one.enabled && (one.asked_at.is_some() || self.next(one) <= now)
    }

    fn next(&self, one: &Connection) -> Timestamp {
        match (&one.health, one.asked_at) {
            (Some(health), None) => health.at.plus_millis(self.sync_ms),
            _ => one.asked_at.unwrap_or(one.created_at),
        }
    }

    /// What a look comes to. What cannot be looked at now keeps what it brought.
    fn looked(&self, store: &dyn Store, place: &Path, one: &Connection) -> Health {
        let (at, began) = (clock::now(), clock::monotonic());
        let before = one.health.clone().unwrap_or_default();
        let looked = self.directory(place, one).and_then(|top| self.watched(store, &top, one));
        let duration_ms = u64::try_from(clock::monotonic().duration_since(began).as_millis()).unwrap_or(u64::MAX);
        match looked {
            Err(error) => Health { at, duration_ms, error: Some(error), complaints: Vec::new(), complaints_total: 0, ..before },
            Ok(Watched { report, logs, newest_file_at }) => {
                let label = format!("{}/", label(one));
                let all = report.complaints.kept.iter().chain(&report.broken.kept);
                Health {
                    at,
                    good_at: Some(at),
                    duration_ms,
                    logs,
                    newest_file_at: newest_file_at.or(before.newest_file_at),
                    complaints: all.take(COMPLAINTS_MAX).map(|remark| sentence(remark, &label)).collect(),
                    complaints_total: report.complaints.total + report.broken.total,
                    error: None,
                }
            }
        }
    }

    /// The directory, below the project's own place and nowhere else.
    fn directory(&self, place: &Path, one: &Connection) -> Result<PathBuf, String> {
        let path = match one.kind.as_str() {
            "directory" => connection::directory(&one.config)?,
            other => return Err(format!("this server syncs no connection of the kind {}", crate::domain::text::clean(other))),
        };
        let missing = |error: std::io::Error| format!("the directory cannot be read: {}", reason(&error));
        let own = std::fs::canonicalize(&self.root).map_err(missing)?.join(place);
        let top = std::fs::canonicalize(own.join(path)).map_err(missing)?;
        if !top.starts_with(&own) {
            return Err("the directory is a link that leads out of the project's place; it is not read".to_owned());
        }
        if top.is_dir() { Ok(top) } else { Err("the path names no directory".to_owned()) }
    }

    fn watched(&self, store: &dyn Store, top: &Path, one: &Connection) -> Result<Watched, String> {
        let indexer =
            Indexer { bounds: self.bounds, file_bytes_max: self.file_bytes_max, ..Indexer::new(top, store, &self.import, &self.redactor) };
        let watched = indexer.watch(&label(one))?;
        match &watched.report.stopped {
            None => Ok(watched),
            Some(error) => Err(format!("the logs could not be kept: {error}")),
        }
    }
}

/// The source under which the store keeps what a connection brings.
fn label(one: &Connection) -> String {
    format!("connection:{}", one.id)
}

/// The remark as people know the file.
fn sentence(remark: &Remark, label: &str) -> String {
    format!("{}: {}", remark.path.strip_prefix(label).unwrap_or(&remark.path), remark.text)
}
