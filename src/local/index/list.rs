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

use super::{Candidate, Found, Indexer, Pass, Report, UNDECLARED, file, group, group::Directory, place, source_label};
use crate::{
    domain::declared::Declared,
    importers::Refused,
    local::{git::Ancestry, report::Remarks, root::reason},
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
        let mut candidates = Vec::new();
        for source in &declared.source {
            let label = source_label(&source.path, &source.run);
            let found = Found { source: Some(Rc::from(label)), rule: Rc::new(source.run.clone()), kind: Kind::Recorded };
            pass.source(&source.path, true, &found, &mut candidates);
        }
        for (path, kind) in UNDECLARED {
            if !declared.source.iter().any(|source| source.path.trim_end_matches('/') == path) {
                pass.source(path, false, &Found { source: Some(Rc::from(path)), rule: Rc::default(), kind }, &mut candidates);
            }
        }
        let by_hand = self.store.files(None)?.into_iter().filter(|row| row.stamp.source.is_none());
        for row in by_hand {
            pass.named(&self.root.join(&row.stamp.path), &mut candidates);
        }
        Ok(pass.listed(candidates, false))
    }

    /// The logs of files and directories.
    #[must_use]
    pub fn list_paths(&self, paths: &[PathBuf]) -> (Vec<Listed>, Report) {
        let mut pass = Pass::alone(self);
        let mut candidates = Vec::new();
        for path in paths {
            match place(path) {
                Ok(path) if path.is_dir() => {
                    pass.found(&path, &Found { source: None, rule: Rc::default(), kind: Kind::Recorded }, &mut candidates)
                }
                Ok(path) => pass.named(&path, &mut candidates),
                Err(error) => pass.complain(&path.display().to_string(), &reason(&error)),
            }
        }
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
        }
    }

    fn named(&mut self, path: &Path, candidates: &mut Vec<Candidate>) {
        let beside = group::companions(path, self.indexer.bounds);
        let found = Found { source: None, rule: Rc::default(), kind: Kind::Recorded };
        candidates.extend(self.candidate((path.to_path_buf(), beside), &found, true));
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
        let (bytes, digest) = (reading.stat.size, self.digest_of(candidate).map_err(|unfit| unfit.to_string())?);
        let directory = Directory::new(&candidate.path, &candidate.beside);
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
