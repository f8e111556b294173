//! Reads one log that was sent into its project, by the way that `runlore import` takes.
//!
//! Promises: one transaction; what cannot be read leaves no trace, and an older state of it stays; what came in parts stays until it was read.
//! Does not: keep the file.

use std::{
    fs::File,
    path::PathBuf,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use serde::Serialize;

use super::{
    disk, fault, internal,
    question::{Manifest, Question},
    spool::{Fresh, Spool},
    uploads::Whole,
};
use crate::{
    config::keys::Ingest as Limits,
    gate::ingest::{Refused, Taken},
    importers,
    local::{
        bundle::{self, BundleLimits, Unpacked},
        index::Indexer,
        report::Report,
        walk::Bounds,
    },
    store::{Change, Store, workspace::Deed},
    telemetry::redaction::Redactor,
};

/// Sentences of an answer.
const COMPLAINTS_MAX: usize = 20;

/// Where a log is.
pub(super) enum Source {
    /// In a file of its request.
    Body {
        /// The request's directory.
        fresh: Fresh,
        /// The file in it.
        path: PathBuf,
    },
    /// It has come in parts.
    Upload {
        /// Where.
        spool: Spool,
        /// Under which digest.
        digest: String,
    },
}

/// A log to be read.
pub(super) struct Job {
    pub(super) store: Arc<dyn Store>,
    pub(super) question: Question,
    pub(super) manifest: Manifest,
    pub(super) source: Source,
    pub(super) limits: Limits,
    pub(super) import: importers::Limits,
    pub(super) redactor: Arc<Redactor>,
    /// Who sends it: what the trail says of it.
    pub(super) deed: Deed,
}

/// What the sender is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    run_id: Option<&'a str>,
    changed: bool,
    copy: bool,
    attempts: u64,
    complaints: Vec<&'a str>,
}

impl Job {
    /// Reads it, and leaves a row in the project's trail where that changed something or was refused. Blocking.
    pub(super) fn run(self) -> Result<Taken, Refused> {
        let (store, deed) = (self.store.clone(), self.deed.clone());
        let done = self.read();
        let (outcome, reason) = match &done {
            Ok(taken) => ("ok", changed(&taken.json)),
            Err(Refused::Unreadable(why)) => ("refused", Some(why.clone())),
            Err(_) => ("refused", None),
        };
        if let Some(reason) = reason {
            let row = Change::Refused { deed: Box::new(deed), outcome, reason };
            if let Err(error) = store.apply(row) {
                tracing::error!(%error, "a log that was sent has no row in the trail");
            }
        }
        done
    }

    fn read(self) -> Result<Taken, Refused> {
        let (fresh, path, whole) = match &self.source {
            Source::Body { fresh, path } => (None, self.main(fresh, path.clone(), None)?, None),
            Source::Upload { spool, digest } => {
                let whole = Whole::take(spool, digest)?;
                let fresh = spool.fresh().map_err(|error| disk(&error))?;
                match self.main(&fresh, fresh.path().join("body"), Some(&whole)) {
                    Ok(path) => (Some(fresh), path, Some(whole)),
                    Err(refused) => return Err(settled(refused, Some(whole))),
                }
            }
        };
        let done = self.received(&path);
        drop(fresh);
        match done {
            Ok(taken) => {
                if let Some(whole) = whole {
                    whole.remove();
                }
                Ok(taken)
            }
            Err(refused) => Err(settled(refused, whole)),
        }
    }

    /// The log's main file under its own name, with what stands beside it.
    fn main(&self, fresh: &Fresh, body: PathBuf, whole: Option<&Whole>) -> Result<PathBuf, Refused> {
        // A directory of its own: what else stands in the request's is none of the log's.
        let into = fresh.path().join("log");
        std::fs::create_dir(&into).map_err(|error| disk(&error))?;
        if let Some(main) = &self.question.bundle {
            let archive = whole.map_or_else(|| File::open(&body), Whole::open).map_err(|error| disk(&error))?;
            let limits = BundleLimits { files_max: self.limits.bundle_files_max, bytes_max: self.limits.bundle_bytes_max };
            let path = bundle::unpack(archive, main, &into, limits).map_err(|error| match error {
                Unpacked::Wrong(text) => Refused::Unreadable(text),
                Unpacked::Disk(error) => disk(&error),
            })?;
            return self.aged(path);
        }
        let name = self.question.name.as_deref().unwrap_or_default();
        let path = into.join(name.rsplit('/').next().unwrap_or(name));
        whole.map_or_else(|| std::fs::rename(&body, &path), |whole| whole.link(&path)).map_err(|error| disk(&error))?;
        self.aged(path)
    }

    /// A log that says no time is as old as its file was where it came from.
    fn aged(&self, path: PathBuf) -> Result<PathBuf, Refused> {
        let Some(modified) = self.manifest.modified else { return Ok(path) };
        let set = || File::options().append(true).open(&path)?.set_modified(UNIX_EPOCH + Duration::from_millis(modified));
        set().map_err(|error: std::io::Error| disk(&error))?;
        Ok(path)
    }

    fn received(&self, path: &std::path::Path) -> Result<Taken, Refused> {
        let root = path.parent().unwrap_or(path).to_path_buf();
        let indexer = Indexer {
            bounds: Bounds { files_max: self.limits.bundle_files_max.saturating_mul(2), ..Bounds::default() },
            said: Some(&self.manifest.ancestors),
            ..Indexer::new(&root, &*self.store, &self.import, &self.redactor)
        };
        told(&indexer.receive(path, &self.question.received()))
    }
}

/// What the trail says of an answer; nothing where nothing was changed.
fn changed(json: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(json).ok()?;
    let (run, attempts) = (answer.get("runId")?.as_str().unwrap_or("none"), answer.get("attempts")?.as_u64()?);
    answer.get("changed")?.as_bool()?.then(|| format!("a log of run {run} with {attempts} attempts"))
}

/// What will never be read is removed.
fn settled(refused: Refused, whole: Option<Whole>) -> Refused {
    if let (Refused::Unreadable(_), Some(whole)) = (&refused, whole) {
        whole.remove();
    }
    refused
}

fn told(report: &Report) -> Result<Taken, Refused> {
    if let Some(error) = &report.stopped {
        return Err(fault(error));
    }
    let first = report.complaints.kept.first().or_else(|| report.named_skipped.kept.first());
    if report.logs + report.copies + report.unchanged == 0 {
        let why = first.map_or_else(|| "it holds no log".to_owned(), |remark| remark.text.clone());
        return Err(Refused::Unreadable(format!("it is no log that can be read: {why}")));
    }
    let answer = Answer {
        ok: true,
        run_id: report.belongs.as_deref(),
        changed: report.changed,
        copy: report.copies > 0,
        attempts: report.attempts,
        complaints: report.complaints.kept.iter().take(COMPLAINTS_MAX).map(|remark| remark.text.as_str()).collect(),
    };
    let json = serde_json::to_string(&answer).map_err(|error| internal(&error))?;
    Ok(Taken { json, held: None })
}
