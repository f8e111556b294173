//! Bringing the logs of files and directories into the store.
//!
//! Promises: a file is read only when its size or time differs from what the store knows; one broken file never stops the rest; what
//! vanished from a source leaves the store, unless the disk only failed to show it; files imported by hand stay.
//! Does not: parse a format, write anything but changes of the store, or wait longer for another process than the store does.

mod file;
mod group;
mod list;
mod pipe;
mod receive;
#[cfg(test)]
mod tests;
mod watched;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    rc::Rc,
};

use self::group::Grouped;
pub use self::{list::Listed, receive::Received, watched::Watched};
use super::{
    git::Ancestry,
    progress::{Progress, Silent},
    report::{Remark, Report},
    root::reason,
    walk::{Bounds, walk},
};
use crate::{
    domain::{
        declared::{Declared, RunRule, is_of_path, source_label},
        reference::is_latest,
    },
    importers::{
        self, Input, Limits, Opened, Refused,
        beside::{Beside, RECORD},
    },
    store::{Change, FileRow, FileStamp, FileState, Kind, Selector, Store},
    telemetry::redaction::Redactor,
};

/// The directory that is looked at without being declared.
pub const DEFAULT_SOURCE: &str = "logs";

/// Where recorded runs stand as records.
pub const HISTORY: &str = ".history";

/// Where scratch runs stand as records.
pub const SCRATCH: &str = ".runlore/runs";

/// What is looked at without being declared, where it is there.
const UNDECLARED: [(&str, Kind); 3] = [(DEFAULT_SOURCE, Kind::Recorded), (HISTORY, Kind::Recorded), (SCRATCH, Kind::Scratch)];

/// A file of more bytes is refused, unless the operator says otherwise.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// A run's id that is longer is a mistake; ids stand in every answer.
const RUN_ID_BYTES_MAX: usize = 256;

/// Opens a log of any format; [`importers::open`], or another in tests.
pub type Open = for<'a> fn(Box<dyn Input + 'a>, &'a dyn Beside, &'a Limits, &'a Redactor) -> Result<Opened<'a>, Refused>;

/// Brings logs into a store.
pub struct Indexer<'a> {
    /// The project's root, absolute and free of links.
    pub root: &'a Path,
    /// Where logs go.
    pub store: &'a dyn Store,
    /// What one log may cost.
    pub limits: &'a Limits,
    /// What replaces secrets on the way in.
    pub redactor: &'a Redactor,
    /// Who hears how far it is.
    pub progress: &'a dyn Progress,
    /// How far directories are searched.
    pub bounds: Bounds,
    /// What a file may take on disk.
    pub file_bytes_max: u64,
    /// The environment for git: the values of [`super::git::ENVIRONMENT`].
    pub environment: Vec<(OsString, OsString)>,
    /// The commits before the logs' own, as whoever sent them says, nearest first; none asks git.
    pub said: Option<&'a [String]>,
    /// How a log is opened.
    pub open: Open,
}

/// A file to look at.
struct Candidate {
    path: PathBuf,
    /// Its key in the store.
    key: String,
    source: Option<Rc<str>>,
    rule: Rc<RunRule>,
    kind: Kind,
    /// What stands beside it.
    beside: Vec<String>,
    /// Whether it was named itself, rather than found in a directory.
    named: bool,
}

/// How files are found, and what that makes of them.
struct Found {
    source: Option<Rc<str>>,
    rule: Rc<RunRule>,
    kind: Kind,
}

/// One import or look.
struct Pass<'a> {
    indexer: &'a Indexer<'a>,
    known: HashMap<String, FileRow>,
    /// What of a known file could not be read.
    remarks: BTreeMap<String, Vec<String>>,
    ancestry: Ancestry,
    report: Report,
    /// Directories of which nothing can be said to be gone.
    unread: Vec<PathBuf>,
    /// Whether it reads what was sent.
    received: bool,
    /// The name of the watched directory that it reads: before each of its keys, whose files are then opened through no link.
    watched: Option<Rc<str>>,
}

/// What is wrong with a run's id that was given by hand or by a source's rule, if anything.
#[must_use]
pub fn run_id_fault(id: &str) -> Option<String> {
    if id.trim().is_empty() {
        return Some("the run id is empty; give the id of the run, such as a CI job's".to_owned());
    }
    if id.len() > RUN_ID_BYTES_MAX {
        return Some(format!("the run id has {} bytes; at most {RUN_ID_BYTES_MAX} are taken", id.len()));
    }
    if is_latest(id) {
        return Some(format!("the run id \"{id}\" reads as a reference to the newest runs; give another"));
    }
    let wrong = id.chars().find(|character| character.is_control())?;
    Some(format!("the run id \"{}\" holds {wrong:?}; an id has no control characters", id.escape_debug()))
}

impl<'a> Indexer<'a> {
    /// An indexer with the usual bounds that tells nobody how far it is and finds no git.
    #[must_use]
    pub fn new(root: &'a Path, store: &'a dyn Store, limits: &'a Limits, redactor: &'a Redactor) -> Self {
        Self {
            root,
            store,
            limits,
            redactor,
            progress: &Silent,
            bounds: Bounds::default(),
            file_bytes_max: FILE_BYTES_MAX,
            environment: Vec::new(),
            said: None,
            open: importers::open,
        }
    }

    /// Imports files, and the files of directories, by hand: they stay in the store when the files go. `run` makes them all one run.
    ///
    /// Paths are absolute, or relative to the process' working directory.
    #[must_use]
    pub fn import(&self, paths: &[PathBuf], run: Option<&str>) -> Report {
        let rule = Rc::new(run.map_or(RunRule::RunId, |id| RunRule::Fixed(id.to_owned())));
        let mut pass = match Pass::begin(self) {
            Ok(pass) => pass,
            Err(report) => return *report,
        };
        let candidates = pass.of_paths(paths, &rule);
        pass.read(candidates)
    }

    /// Looks at the declared sources and at `logs/`: new and changed files are read, vanished ones leave the store.
    #[must_use]
    pub fn rescan(&self, declared: &Declared) -> Report {
        let mut pass = match Pass::begin(self) {
            Ok(pass) => pass,
            Err(report) => return *report,
        };
        if !pass.declare(declared) {
            return pass.report;
        }
        let mut candidates = pass.of_sources(declared);
        // What overlapping sources both find belongs to the first of them.
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert(candidate.key.clone()));
        if !pass.vanish(&seen) {
            return pass.report;
        }
        pass.read(candidates)
    }

    /// Makes `declared` what the store holds as the project's declarations, where it is not.
    ///
    /// # Errors
    /// As every write: [`crate::store::Error`].
    pub fn declare(&self, declared: &Declared) -> crate::store::Result<bool> {
        if self.store.declared()? == *declared {
            return Ok(false);
        }
        Ok(self.store.apply(Change::Declared(declared.clone()))?.changed)
    }
}

/// The path of a file as its directory really is, a link's own name kept; of a directory, without links.
fn place(path: &Path) -> io::Result<PathBuf> {
    let whole = fs::canonicalize(path)?;
    let parent = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) if !whole.is_dir() => Ok(fs::canonicalize(parent)?.join(name)),
        _ => Ok(whole),
    }
}

/// Whether the file is named as a run record is.
fn is_record(candidate: &Candidate) -> bool {
    candidate.path.file_name().is_some_and(|name| name == RECORD)
}

impl<'a> Pass<'a> {
    fn begin(indexer: &'a Indexer<'a>) -> Result<Self, Box<Report>> {
        let stopped = |error| Box::new(Report { stopped: Some(error), ..Report::default() });
        let known = indexer.store.files(None).map_err(stopped)?;
        let remarks = indexer.store.remarks().map_err(stopped)?;
        let known = known.into_iter().map(|row| (row.stamp.path.clone(), row)).collect();
        let ancestry = Ancestry::new(indexer.root, &indexer.environment);
        Ok(Self { indexer, known, remarks, ancestry, report: Report::default(), unread: Vec::new(), received: false, watched: None })
    }

    /// Whether the declarations stand in the store now.
    fn declare(&mut self, declared: &Declared) -> bool {
        match self.indexer.declare(declared) {
            Ok(changed) => self.report.changed |= changed,
            Err(error) => self.report.stopped = Some(error),
        }
        self.report.stopped.is_none()
    }

    /// The files of the project's sources, and of what is looked at without being declared.
    fn of_sources(&mut self, declared: &Declared) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for source in &declared.source {
            let label = source_label(&source.path, &source.run);
            let found = Found { source: Some(Rc::from(label)), rule: Rc::new(source.run.clone()), kind: Kind::Recorded };
            self.source(&source.path, true, &found, &mut candidates);
        }
        for (path, kind) in UNDECLARED {
            if !declared.source.iter().any(|source| source.path.trim_end_matches('/') == path) {
                let found = Found { source: Some(Rc::from(path)), rule: Rc::default(), kind };
                self.source(path, false, &found, &mut candidates);
            }
        }
        candidates
    }

    /// The files that were named, and those of the directories that were.
    fn of_paths(&mut self, paths: &[PathBuf], rule: &Rc<RunRule>) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let found = Found { source: None, rule: rule.clone(), kind: Kind::Recorded };
        for path in paths {
            match place(path) {
                Ok(path) if path.is_dir() => self.found(&path, &found, &mut candidates),
                Ok(path) => candidates.extend(self.single(path, &found, true)),
                Err(error) => self.complain(&path.display().to_string(), &reason(&error)),
            }
        }
        candidates
    }

    /// One file, with what stands beside it.
    fn single(&mut self, path: PathBuf, how: &Found, named: bool) -> Option<Candidate> {
        let beside = group::companions(&path, self.indexer.bounds);
        self.candidate((path, beside), how, named)
    }

    /// The files of one source.
    fn source(&mut self, path: &str, declared: bool, found: &Found, candidates: &mut Vec<Candidate>) {
        let top = self.indexer.root.join(path);
        match fs::canonicalize(&top) {
            Ok(place) if place.is_dir() => self.found(&place, found, candidates),
            Ok(place) => candidates.extend(self.single(place, found, false)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !declared => {}
            // A disk that is not mounted looks like this: what the source held stays until it can be read again.
            Err(error) => {
                self.complain(path, &format!("this source of runlore.toml cannot be read: {}", reason(&error)));
                self.unread.push(top);
                self.hold(path);
            }
        }
    }

    /// Keeps what the files of the source at `path` held from being taken for gone, whatever its rule was.
    fn hold(&mut self, path: &str) {
        let path = path.trim_end_matches('/');
        let of_source = |source: &str| is_of_path(source, path);
        let held = self.known.values().filter(|row| row.stamp.source.as_deref().is_some_and(of_source));
        self.unread.extend(held.map(|row| self.indexer.root.join(&row.stamp.path)).collect::<Vec<_>>());
    }

    /// The files below a directory.
    fn found(&mut self, top: &Path, how: &Found, candidates: &mut Vec<Candidate>) {
        let walked = walk(top, self.indexer.bounds);
        for (path, why) in walked.unread {
            let shown = self.shown(&path);
            self.complain(&shown, &why);
            self.unread.push(path);
        }
        for path in walked.odd {
            self.report.files += 1;
            let shown = self.shown(&path);
            self.report.skipped.push(Remark::new(&shown, "is no regular file"));
        }
        for grouped in group::group(walked.files) {
            candidates.extend(self.candidate(grouped, how, false));
        }
    }

    fn candidate(&mut self, (path, mut beside): Grouped, how: &Found, named: bool) -> Option<Candidate> {
        group::without_links(&path, &mut beside);
        let relative = path.strip_prefix(self.indexer.root).unwrap_or(&path);
        let key = relative.to_str().map(|key| self.watched.as_ref().map_or_else(|| key.to_owned(), |label| format!("{label}/{key}")));
        let Some(key) = key else {
            // Two such names can look alike as text, and the key must tell them apart.
            let shown = self.shown(&path);
            self.complain(&shown, "the file's name is not UTF-8; rename it");
            return None;
        };
        Some(Candidate { path, key, source: how.source.clone(), rule: how.rule.clone(), kind: how.kind, beside, named })
    }

    /// A key as the path that it is made of.
    fn below_root<'k>(&self, key: &'k str) -> &'k str {
        let below = self.watched.as_ref().and_then(|label| key.strip_prefix(&**label)?.strip_prefix('/'));
        below.unwrap_or(key)
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.indexer.root).unwrap_or(path).display().to_string()
    }

    fn complain(&mut self, path: &str, text: &str) {
        let text = self.indexer.redactor.redact(text);
        self.report.complaints.push(Remark::new(path, &text));
    }

    /// Takes what is gone out of the store; whether the store took it. Before anything is read: a copy of a log that was in a vanished file
    /// is forgotten with it, and so counts as new.
    fn vanish(&mut self, seen: &HashSet<String>) -> bool {
        let gone = |row: &&FileRow| {
            let path = self.indexer.root.join(self.below_root(&row.stamp.path));
            row.stamp.source.is_some() && !seen.contains(&row.stamp.path) && !self.unread.iter().any(|unread| path.starts_with(unread))
        };
        let mut paths: Vec<String> = self.known.values().filter(gone).map(|row| row.stamp.path.clone()).collect();
        if paths.is_empty() {
            return true;
        }
        paths.sort_unstable();
        let number = paths.len() as u64;
        let applied =
            self.indexer.store.apply(Change::Vanished { paths }).and_then(|applied| Ok((applied, self.indexer.store.files(None)?)));
        match applied {
            Ok((applied, files)) => {
                self.report.vanished = number;
                self.report.changed |= applied.changed;
                self.known = files.into_iter().map(|row| (row.stamp.path.clone(), row)).collect();
            }
            Err(error) => self.report.stopped = Some(error),
        }
        self.report.stopped.is_none()
    }

    /// Looks at each candidate, in order, until the store takes no more.
    fn read(mut self, candidates: Vec<Candidate>) -> Report {
        let (mut due, mut copies) = (Vec::new(), Vec::new());
        for candidate in candidates {
            self.report.files += 1;
            due.extend(self.due(candidate, &mut copies));
        }
        self.indexer.progress.begin(due.len() as u64, due.iter().map(|(_, stat)| stat.size).sum());
        for (candidate, _) in &due {
            self.indexer.progress.file(&candidate.key);
            if let Err(error) = self.one(candidate) {
                self.report.stopped = Some(error);
                break;
            }
        }
        let records: Vec<Candidate> = due.into_iter().map(|(candidate, _)| candidate).filter(is_record).collect();
        if self.report.stopped.is_none()
            && let Err(error) = self.again(copies, &records)
        {
            self.report.stopped = Some(error);
        }
        self.indexer.progress.end();
        self.refresh();
        self.report.runs.retain(|run| self.indexer.store.select(&Selector::Id(run), 1).map_or(true, |found| !found.is_empty()));
        self.report
    }

    /// Has the views work out what this pass changed. Nothing that was read is lost where it fails: the next query works it out, or says why not.
    fn refresh(&self) {
        if self.report.changed && self.report.stopped.is_none() {
            drop(self.indexer.store.apply(Change::Refresh));
        }
    }

    /// The candidate, where it has to be read.
    fn due(&mut self, candidate: Candidate, copies: &mut Vec<Candidate>) -> Option<(Candidate, file::Stat)> {
        match file::Stat::of(&candidate, self.indexer.file_bytes_max) {
            Ok(stat) if self.is_unchanged(&candidate, &stat) => {
                self.report.unchanged += 1;
                if matches!(self.known.get(&candidate.key).map(|row| &row.state), Some(FileState::CopyOf(_))) {
                    copies.push(candidate);
                } else {
                    self.still(&candidate.key);
                }
                None
            }
            Ok(stat) => Some((candidate, stat)),
            Err(file::Unfit::Gone) if !candidate.named => None,
            Err(unfit) => {
                self.unfit(&candidate, &unfit);
                None
            }
        }
    }

    /// Copies of logs (`copies` are as they were, `records` were read in this look): those that the look made the store forget, since what they
    /// are copies of has changed, are read now; of the others is said what was said before.
    fn again(&mut self, copies: Vec<Candidate>, records: &[Candidate]) -> crate::store::Result<()> {
        let forgets = self.report.changed && !(copies.is_empty() && records.is_empty());
        let rows = if forgets { self.indexer.store.files(None)? } else { Vec::new() };
        let held: HashSet<&str> = rows.iter().map(|row| row.stamp.path.as_str()).collect();
        let forgotten = |candidate: &&Candidate| forgets && !held.contains(candidate.key.as_str());
        let (lost, kept): (Vec<&Candidate>, Vec<&Candidate>) = copies.iter().partition(forgotten);
        kept.into_iter().for_each(|candidate| self.still(&candidate.key));
        lost.into_iter().chain(records.iter().filter(forgotten)).try_for_each(|candidate| self.one(candidate))
    }

    /// Says of a file that is as it was what was said when it was read.
    fn still(&mut self, key: &str) {
        if let Some(FileState::Broken(reason)) = self.known.get(key).map(|row| &row.state) {
            self.report.broken.push(Remark::new(key, reason));
        }
        for remark in self.remarks.get(key).into_iter().flatten() {
            self.report.broken.push(Remark::new(key, remark));
        }
    }

    fn unfit(&mut self, candidate: &Candidate, unfit: &file::Unfit) {
        if let file::Unfit::Irregular = unfit {
            self.skip(candidate, &unfit.to_string());
        } else {
            self.complain(&candidate.key, &unfit.to_string());
        }
    }

    fn skip(&mut self, candidate: &Candidate, why: &str) {
        let remark = Remark::new(&candidate.key, &self.indexer.redactor.redact(why));
        if candidate.named {
            self.report.named_skipped.push(remark.clone());
        }
        self.report.skipped.push(remark);
    }

    fn is_unchanged(&self, candidate: &Candidate, stat: &file::Stat) -> bool {
        let Some(row) = self.known.get(&candidate.key) else { return false };
        let FileStamp { size, mtime_ns, source, .. } = &row.stamp;
        // What was imported by hand stays so when a source finds it too; what a source found becomes imported by hand.
        let same_source = source.is_none() || source.as_deref() == candidate.source.as_deref();
        // By hand: another run may be meant, and whoever names a file that was no log wants it looked at again.
        let anew = candidate.source.is_none()
            && (*candidate.rule != RunRule::RunId || matches!(row.state, FileState::Skipped(_) | FileState::Broken(_)));
        (*size, *mtime_ns) == (stat.size, stat.mtime_ns) && same_source && !anew
    }
}
