//! A log that somebody sent: read into the store under the name that it was sent under.
//!
//! Promises: a log takes the place of an older state of itself and of nothing else: another log under the same name gets a name of its own;
//! the same bytes change nothing.
//! Does not: keep the file: once it is read, nobody looks for it again.

use std::{io::BufReader, path::Path, rc::Rc};

use sha2::{Digest, Sha256};

use super::{Candidate, Indexer, Pass, Report, group, group::Directory};
use crate::{
    domain::{
        declared::{RunRule, SENT, SENT_SCRATCH, source_label},
        hex::hex_of_first,
    },
    store::{FileRow, FileState, Kind},
};

/// Bytes of a log id's digest in the name of a log whose own name was taken.
const APART_BYTES: usize = 8;

/// How a log was sent.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Its name: relative, with `/` between parts.
    pub name: &'a str,
    /// The run that it was sent for, rather than its own.
    pub run: Option<&'a str>,
    /// Recorded or scratch.
    pub kind: Kind,
}

impl Received<'_> {
    fn rule(&self) -> RunRule {
        self.run.map_or(RunRule::RunId, |id| RunRule::Fixed(id.to_owned()))
    }

    fn source(&self) -> String {
        source_label(if self.kind == Kind::Scratch { SENT_SCRATCH } else { SENT }, &self.rule())
    }

    /// Whether `row` holds the very bytes with this digest, sent for this run: then sending them again changes nothing.
    #[must_use]
    pub fn is_held(&self, row: &FileRow, digest: &str) -> bool {
        let counts = matches!(row.state, FileState::Log(_) | FileState::CopyOf(_));
        counts && row.stamp.digest == digest && row.stamp.source.as_deref() == Some(&*self.source())
    }
}

impl Indexer<'_> {
    /// Reads the log at `path`, and what stands beside it there, as it was sent.
    #[must_use]
    pub fn receive(&self, path: &Path, how: &Received<'_>) -> Report {
        let mut pass = match Pass::begin(self) {
            Ok(pass) => pass,
            Err(report) => return *report,
        };
        pass.received = true;
        let mut beside = group::companions(path, self.bounds);
        group::without_links(path, &mut beside);
        let mut candidate = Candidate {
            path: path.to_path_buf(),
            key: how.name.to_owned(),
            source: Some(Rc::from(how.source())),
            rule: Rc::new(how.rule()),
            kind: how.kind,
            beside,
            named: true,
        };
        if let Some(other) = pass.held_as(&candidate).or_else(|| pass.apart(&candidate)) {
            candidate.key = other;
        }
        pass.report.files = 1;
        if let Err(error) = pass.one(&candidate) {
            pass.report.stopped = Some(error);
        }
        pass.refresh();
        pass.report
    }
}

impl Pass<'_> {
    /// The name under which the very same bytes are there.
    fn held_as(&self, candidate: &Candidate) -> Option<String> {
        let digest = self.digest_of(candidate).ok()?;
        let same = |row: &&FileRow| row.stamp.digest == digest && matches!(row.state, FileState::Log(_));
        self.known.values().find(same).map(|row| row.stamp.path.clone())
    }

    /// Another name for the candidate, where its own is another log's.
    fn apart(&self, candidate: &Candidate) -> Option<String> {
        let held = self.log_of(self.known.get(&candidate.key)?)?;
        let own = self.log_id(candidate)?;
        (held != own).then(|| {
            let digest = Sha256::digest(own.as_bytes());
            let apart = hex_of_first(APART_BYTES, &digest);
            format!("{apart}/{}", candidate.key)
        })
    }

    /// The log that a file held; of a copy, the one that it is a copy of.
    fn log_of<'a>(&'a self, row: &'a FileRow) -> Option<&'a str> {
        match &row.state {
            FileState::Log(id) => Some(id),
            FileState::CopyOf(path) => match &self.known.get(path)?.state {
                FileState::Log(id) => Some(id),
                _ => None,
            },
            FileState::Skipped(_) | FileState::Broken(_) => None,
        }
    }

    /// The id of the log in the candidate's file; none where it holds none, which is said when it is read.
    fn log_id(&self, candidate: &Candidate) -> Option<String> {
        let file = self.reading(candidate).ok()?.file;
        let directory = Directory::new(&candidate.path, &candidate.beside);
        let opened = (self.indexer.open)(Box::new(BufReader::new(file)), &directory, self.indexer.limits, self.indexer.redactor);
        opened.ok().map(|opened| opened.header.log_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::Caller,
        importers::Limits,
        store::{
            Store,
            sqlite::{Options, Sqlite},
        },
        telemetry::redaction::Redactor,
    };

    fn junit(case: &str) -> String {
        format!("<testsuite name=\"s\" timestamp=\"2026-11-01T00:00:00\"><testcase classname=\"c\" name=\"{case}\"/></testsuite>")
    }

    #[test]
    fn a_log_takes_the_place_of_itself_alone() {
        let top = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&top.path().join("1.db"), &Caller::local().local_scope(), &Options::default()).unwrap();
        let (limits, redactor) = (Limits::default(), Redactor::off());
        let receive = |text: &str, name: &str, run: Option<&str>| {
            let path = top.path().join("sent.xml");
            std::fs::write(&path, text).unwrap();
            let indexer = Indexer { said: Some(&[]), ..Indexer::new(top.path(), &store, &limits, &redactor) };
            indexer.receive(&path, &Received { name, run, kind: Kind::Recorded })
        };
        let names = || store.files(None).unwrap().into_iter().map(|row| row.stamp.path).collect::<Vec<_>>();
        let first = receive(&junit("a"), "out.xml", None);
        assert!(first.changed && first.belongs.is_some());
        let generation = store.generation().unwrap();
        for name in ["out.xml", "other.xml"] {
            let again = receive(&junit("a"), name, None);
            assert_eq!((again.changed, again.unchanged, again.belongs.as_ref()), (false, 1, first.belongs.as_ref()));
        }
        let broken = receive("<testsuite", "out.xml", None);
        assert!(!broken.changed && broken.complaints.total + broken.named_skipped.total == 1);
        assert_eq!((store.generation().unwrap(), names()), (generation, vec!["out.xml".to_owned()]));
        receive(&junit("b"), "out.xml", None);
        assert_eq!(names().len(), 2);
        assert_eq!(receive(&junit("a"), "out.xml", Some("ci")).belongs.as_deref(), Some("ci"));
        let row = store.files(None).unwrap().into_iter().find(|row| row.stamp.path == "out.xml").unwrap();
        let sent = |run| Received { name: "", run, kind: Kind::Recorded }.is_held(&row, &row.stamp.digest);
        assert_eq!((sent(Some("ci")), sent(None), sent(Some("x"))), (true, false, false));
        let scratch = Received { name: "", run: Some("ci"), kind: Kind::Scratch };
        assert!(!scratch.is_held(&row, &row.stamp.digest), "a recorded run is no scratch run");
    }
}
