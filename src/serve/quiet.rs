//! Which projects' files may say something else than at the last look, told without opening them.
//!
//! Promises: a project that was written to since, or of which something is due by now, is looked at; one that lies still costs two stats. A file
//! that was written a moment ago counts as written: two writes within one tick of the system's clock look the same.
//! Does not: open a store.

use std::{collections::HashMap, os::unix::fs::MetadataExt as _, path::Path, sync::Arc};

use crate::domain::time::Timestamp;

/// Longer than a tick of any file system's clock.
const MOMENT_MS: i64 = 1000;

/// What was seen of the files of projects.
#[derive(Debug, Default)]
pub struct Quiet(HashMap<Arc<str>, Seen>);

#[derive(Debug)]
struct Seen {
    state: State,
    due: Option<Timestamp>,
}

/// A state of a project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The file's, and its log's: number, size, time.
    files: [Option<(u64, u64, i64)>; 2],
    newest_ms: i64,
}

impl Quiet {
    /// The state in which the project's file is to be looked at; none where it says what it said, or is not there.
    #[must_use]
    pub fn begin(&self, id: &str, file: &Path, now: Timestamp) -> Option<State> {
        let log = file.with_extension("db-wal");
        let seen = [file, &log].map(|path| std::fs::metadata(path).ok());
        seen.first()?.as_ref()?;
        let ns = |found: &std::fs::Metadata| found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        let newest_ms = seen.iter().flatten().map(ns).max().unwrap_or_default() / 1_000_000;
        let state = State { files: seen.map(|found| found.map(|found| (found.ino(), found.size(), ns(&found)))), newest_ms };
        let still = self.0.get(id).is_some_and(|seen| seen.state == state && seen.due.is_none_or(|due| now < due));
        (!still).then_some(state)
    }

    /// The file was looked at, in this state or a newer one; it says nothing new before it is written to, or before `due`.
    pub fn settle(&mut self, id: &Arc<str>, state: State, due: Option<Timestamp>, now: Timestamp) {
        if now.millis().saturating_sub(state.newest_ms) < MOMENT_MS {
            self.0.remove(id);
        } else {
            self.0.insert(id.clone(), Seen { state, due });
        }
    }

    /// Forgets projects that are gone.
    pub fn keep(&mut self, is: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| is(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_still_is_left_alone_until_something_is_due() {
        let directory = tempfile::tempdir().unwrap();
        let (file, id) = (directory.path().join("p.db"), Arc::from("p"));
        let mut quiet = Quiet::default();
        let later = |ms: i64| crate::clock::now().plus_millis(ms);
        assert_eq!(quiet.begin("p", &file, later(0)), None, "there is no file");
        std::fs::write(&file, "a").unwrap();
        let state = quiet.begin("p", &file, later(0)).unwrap();
        quiet.settle(&id, state.clone(), None, later(0));
        assert!(quiet.begin("p", &file, later(0)).is_some(), "it was written a moment ago");
        quiet.settle(&id, state.clone(), Some(later(50_000)), later(10_000));
        assert_eq!(quiet.begin("p", &file, later(10_000)), None);
        assert!(quiet.begin("p", &file, later(60_000)).is_some(), "something is due");
        std::fs::write(directory.path().join("p.db-wal"), "b").unwrap();
        assert!(quiet.begin("p", &file, later(10_000)).is_some(), "its log was written");
        quiet.keep(|_| false);
        assert!(quiet.0.is_empty());
    }
}
