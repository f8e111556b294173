//! A directory that a server watches for a project of its own: read like a declared source, apart from everything else in the store.
//!
//! Promises: only files of this directory are read, none through a link, and only what it brought before can vanish; where the directory itself
//! cannot be read nothing vanishes; what is told of it is relative to it.
//! Does not: choose the directory, or keep what came of it (`serve::connections` does).

use std::{collections::HashSet, fs, os::unix::fs::MetadataExt as _, path::Path, rc::Rc};

use super::{Candidate, Found, Indexer, Pass, Report, group};
use crate::{
    domain::{declared::RunRule, time::Timestamp},
    local::{root::reason, walk::walk},
    store::{FileState, Kind, Result},
};

/// What a look at a watched directory came to.
#[derive(Debug, Default)]
pub struct Watched {
    /// The look.
    pub report: Report,
    /// Logs of it that are in.
    pub logs: u64,
    /// When the newest file that may be a log was written.
    pub newest_file_at: Option<Timestamp>,
}

impl Indexer<'_> {
    /// Looks at [`Indexer::root`] itself as the source `label`, under which the store keeps its files: `<label>/<path>`.
    ///
    /// # Errors
    /// A sentence, where the directory cannot be read.
    pub fn watch(&self, label: &str) -> std::result::Result<Watched, String> {
        // Before anything is taken for gone.
        fs::read_dir(self.root).map_err(|error| format!("the directory cannot be read: {}", reason(&error)))?;
        let mut pass = match Pass::begin(self) {
            Ok(pass) => pass,
            Err(report) => return Ok(Watched { report: *report, ..Watched::default() }),
        };
        pass.watched = Some(Rc::from(label));
        pass.known.retain(|_, row| row.stamp.source.as_deref() == Some(label));
        let candidates = pass.below(label);
        let newest_file_at = candidates.iter().filter_map(|candidate| written(&candidate.path)).max();
        let seen: HashSet<String> = candidates.iter().map(|candidate| candidate.key.clone()).collect();
        let report = if pass.vanish(&seen) { pass.read(candidates) } else { pass.report };
        Ok(Watched { report, logs: self.held(label).unwrap_or_default(), newest_file_at })
    }

    fn held(&self, label: &str) -> Result<u64> {
        let rows = self.store.files(Some(label))?;
        Ok(rows.iter().filter(|row| matches!(row.state, FileState::Log(_) | FileState::CopyOf(_))).count() as u64)
    }
}

impl Pass<'_> {
    /// The files below the directory that are no links. What a link inside names is found by itself; one that leads out is refused.
    fn below(&mut self, label: &str) -> Vec<Candidate> {
        let found = Found { source: Some(Rc::from(label)), rule: Rc::new(RunRule::RunId), kind: Kind::Recorded };
        let walked = walk(self.indexer.root, self.indexer.bounds);
        for (path, why) in walked.unread {
            let shown = self.shown(&path);
            self.complain(&shown, &why);
            self.unread.push(path);
        }
        let (links, files): (Vec<_>, Vec<_>) = walked.files.into_iter().partition(|path| is_link(path));
        for link in links {
            if fs::canonicalize(&link).is_ok_and(|target| !target.starts_with(self.indexer.root)) {
                let shown = self.shown(&link);
                self.complain(&shown, "is a link that leads out of the connection's directory; it is not read");
            }
        }
        let grouped = group::group(files);
        grouped.into_iter().filter_map(|one| self.candidate(one, &found, false)).collect()
    }
}

fn is_link(path: &Path) -> bool {
    // What cannot be asked is not trusted.
    fs::symlink_metadata(path).map_or(true, |found| found.file_type().is_symlink())
}

fn written(path: &Path) -> Option<Timestamp> {
    Timestamp::of_millis(fs::symlink_metadata(path).ok()?.mtime().saturating_mul(1000))
}
