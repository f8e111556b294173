//! The logs that an import would read, told without reading them into a store: for whoever sends them elsewhere.
//!
//! Promises: finds what [`Indexer::rescan`] and [`Indexer::import`] would, with the run that a source's rule makes of it and the commits before
//! its own; digests are those that the store keeps.
//! Does not: write anything.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::BufReader,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{Candidate, Found, Indexer, Pass, Report, file, group::Directory};
use crate::{
    domain::declared::Declared,
    importers::Refused,
    local::{git::Ancestry, report::Remarks},
    store::Kind,
};

/// A log as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its main file.
    pub path: PathBuf,
    /// What it is called: relative to the project, else the file's own name.
    pub name: String,
    /// What stands beside it, relative to its directory.
    pub beside: Vec<String>,
    /// Bytes of all of it.
    pub bytes: u64,
    /// SHA-256 over all of it, as the store keeps it.
    pub digest: String,
    /// Recorded or scratch.
    pub kind: Kind,
    /// The run that its source's rule makes of it.
    pub pinned: Option<String>,
    /// The run that it says that it is of.
    pub run: String,
    /// The commits before its own, nearest first.
    pub ancestors: Vec<String>,
}

impl Indexer<'_> {
    /// The logs of the project's sources, and those that were imported by hand and are still there.
    ///
    /// # Errors
    /// The store's, where it cannot say what was imported by hand.
    pub fn list(&self, declared: &Declared) -> crate::store::Result<(Vec<Listed>, Report)> {
        let mut pass = Pass::alone(self);
        let mut candidates = pass.of_sources(declared);
        let by_hand = self.store.files(None)?.into_iter().filter(|row| row.stamp.source.is_none());
        let found = Found { source: None, rule: Rc::default(), kind: Kind::Recorded };
        for row in by_hand {
            candidates.extend(pass.single(self.root.join(&row.stamp.path), &found, true));
        }
        Ok(pass.listed(candidates, false))
    }

    /// The logs of files and directories.
    #[must_use]
    pub fn list_paths(&self, paths: &[PathBuf]) -> (Vec<Listed>, Report) {
        let mut pass = Pass::alone(self);
        let candidates = pass.of_paths(paths, &Rc::default());
        pass.listed(candidates, true)
    }
}

impl<'a> Pass<'a> {
    /// A pass that knows of no file.
    fn alone(indexer: &'a Indexer<'a>) -> Self {
        let ancestry = Ancestry::new(indexer.root, &indexer.environment);
        Self {
            indexer,
            known: HashMap::new(),
            remarks: BTreeMap::new(),
            ancestry,
            report: Report::default(),
            unread: Vec::new(),
            received: false,
            watched: None,
        }
    }

    /// What of the candidates is a log. `all`: what is none is worth a word, since somebody named it.
    fn listed(mut self, candidates: Vec<Candidate>, all: bool) -> (Vec<Listed>, Report) {
        let mut seen = HashSet::new();
        let mut listed = Vec::new();
        for candidate in candidates.into_iter().filter(|candidate| seen.insert(candidate.key.clone())) {
            self.report.files += 1;
            match self.one_listed(&candidate) {
                Ok(one) => listed.extend(one),
                Err(why) => self.complain(&candidate.key, &why),
            }
        }
        if !all {
            self.report.named_skipped = Remarks::default();
        }
        (listed, self.report)
    }

    fn one_listed(&mut self, candidate: &Candidate) -> Result<Option<Listed>, String> {
        let reading = match self.reading(candidate) {
            Ok(reading) => reading,
            Err(file::Unfit::Gone) if !candidate.named => return Ok(None),
            Err(unfit) => return Err(unfit.to_string()),
        };
        let directory = Directory::new(&candidate.path, &candidate.beside);
        // Of the file that is read here, whatever stands at its path by then.
        let digest = file::digest(self.indexer, &reading.file, &directory, &candidate.beside);
        let (bytes, digest) = (reading.stat.size, digest.map_err(|error| file::Unfit::from(error).to_string())?);
        let input = Box::new(BufReader::new(reading.file));
        let opened = match (self.indexer.open)(input, &directory, self.indexer.limits, self.indexer.redactor) {
            Ok(opened) => opened,
            Err(Refused::NotALog(why)) => {
                self.skip(candidate, &why);
                return Ok(None);
            }
            Err(Refused::Broken(why)) => return Err(why),
        };
        let mut header = opened.header;
        let pinned = file::pin(&candidate.rule, &mut header, &candidate.key)?;
        let sha = header.git.as_ref().and_then(|git| git.sha.clone());
        let ancestors = sha.map_or_else(Vec::new, |sha| self.ancestry.before(&sha).to_vec());
        let name = if Path::new(&candidate.key).is_absolute() { own_name(&candidate.path) } else { candidate.key.clone() };
        Ok(Some(Listed {
            path: candidate.path.clone(),
            name,
            beside: candidate.beside.clone(),
            bytes,
            digest,
            kind: candidate.kind,
            pinned: pinned.then(|| header.run_key.clone()),
            run: header.run_key,
            ancestors,
        }))
    }
}

/// Where it stands on this machine is nobody's business.
fn own_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
