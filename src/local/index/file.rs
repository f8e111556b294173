//! One file: its stamp, its digest, and what it holds, into the store.
//!
//! Promises: only regular files are opened, and opening never waits; the digest is over the bytes that were read; a file that changed while
//! it was read keeps a stamp that the next look finds outdated.
//! Does not: decide which files are looked at.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, BufReader, Read},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
};

use sha2::{Digest, Sha256};

use super::{Candidate, HISTORY, Indexer, Pass, Remark, SCRATCH, group::Directory, pipe, run_id_fault};
use crate::{
    domain::{attempt::Attempt, declared::RunRule, extras::Extras, grouping, hex::hex, log::LogHeader},
    importers::{
        Item, Opened, Refused,
        beside::{Beside as _, RECORD},
    },
    local::root::reason,
    store::{self, Applied, Change, FileStamp, FileState, LogChange, Selector},
};

/// Read at once: large enough that the system's cost per read does not show.
const BLOCK_BYTES: usize = 256 * 1024;

/// Complaints about the parts of one log that are told one by one.
const COMPLAINTS_MAX: usize = 20;

/// Ancestors that are kept with a run (decision 90).
const ANCESTORS_MAX: usize = 500;

/// What is seen of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It is not there (any more).
    #[error("no such file or directory")]
    Gone,
    /// A pipe, a socket, a device: reading it could wait for ever.
    #[error("is no regular file")]
    Irregular,
    /// Over the cap.
    #[error("has {size} bytes; files of more than {max} are not read (import.file_bytes_max)")]
    Large {
        /// Its bytes.
        size: u64,
        /// The cap.
        max: u64,
    },
    /// The system says no.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Gone } else { Self::Unreadable(reason(&error)) }
    }
}

impl Stat {
    /// What is seen of a candidate and of what stands beside it.
    pub(super) fn of(candidate: &Candidate, bytes_max: u64) -> Result<Self, Unfit> {
        Ok(Self::fit(&std::fs::metadata(&candidate.path)?, bytes_max)?.with_beside(candidate))
    }

    /// Together with what stands beside: a file there that changes, comes or goes shows in the sum or the time.
    fn with_beside(mut self, candidate: &Candidate) -> Self {
        let directory = Directory::new(&candidate.path, &candidate.beside);
        let seen = candidate.beside.iter().filter_map(|name| Self::fit(&std::fs::metadata(directory.path(name)).ok()?, u64::MAX).ok());
        for other in seen {
            self.size = self.size.saturating_add(other.size);
            self.mtime_ns = self.mtime_ns.max(other.mtime_ns);
        }
        self
    }

    fn fit(found: &Metadata, bytes_max: u64) -> Result<Self, Unfit> {
        if !found.is_file() {
            return Err(Unfit::Irregular);
        }
        if found.len() > bytes_max {
            return Err(Unfit::Large { size: found.len(), max: bytes_max });
        }
        let mtime_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        Ok(Self { size: found.len(), mtime_ns })
    }
}

/// A file that is open, with what was seen of it before a byte was read.
pub(super) struct Reading {
    pub(super) file: File,
    /// Of the file alone.
    own: Stat,
    /// With what stands beside.
    pub(super) stat: Stat,
}

/// Reads a file from its beginning, wherever another reader of the same open file stands.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The digest of a file and of what stands beside it.
pub(super) fn digest(indexer: &Indexer<'_>, file: &File, directory: &Directory<'_>, beside: &[String]) -> io::Result<String> {
    let mut hash = Sha256::new();
    add(indexer, &mut FromStart { file, at: 0 }, &mut hash)?;
    for name in beside {
        // One that cannot be read is the importer's to complain of.
        let Ok(mut other) = directory.open(name) else { continue };
        hash.update(name.as_bytes());
        add(indexer, &mut other, &mut hash)?;
    }
    Ok(hex(&hash.finalize()))
}

fn add(indexer: &Indexer<'_>, file: &mut dyn Read, hash: &mut Sha256) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    // A file that grows as fast as it is read must end too.
    let mut bounded = file.take(indexer.file_bytes_max);
    loop {
        let read = match bounded.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(block.get(..read).unwrap_or_default());
        indexer.progress.advance(read as u64);
    }
}

impl Pass<'_> {
    /// Reads one file into the store. An error is the store's, and ends the pass.
    pub(super) fn one(&mut self, candidate: &Candidate) -> store::Result<()> {
        match self.reading(candidate) {
            Ok(reading) => self.held(candidate, reading),
            Err(unfit) => self.unread(candidate, &unfit),
        }
    }

    fn unread(&mut self, candidate: &Candidate, unfit: &Unfit) -> store::Result<()> {
        if candidate.named || !matches!(unfit, Unfit::Gone) {
            self.unfit(candidate, unfit);
        }
        Ok(())
    }

    pub(super) fn reading(&self, candidate: &Candidate) -> Result<Reading, Unfit> {
        // Between the look and this moment a pipe can have taken the file's place: without this flag opening it would wait for a writer.
        let links = if self.watched.is_some() { nix::libc::O_NOFOLLOW } else { 0 };
        let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK | links).open(&candidate.path)?;
        let own = Stat::fit(&file.metadata()?, self.indexer.file_bytes_max)?;
        Ok(Reading { stat: own.with_beside(candidate), file, own })
    }

    /// The digest of a candidate and of what stands beside it.
    pub(super) fn digest_of(&self, candidate: &Candidate) -> Result<String, Unfit> {
        let Reading { file, .. } = self.reading(candidate)?;
        Ok(digest(self.indexer, &file, &Directory::new(&candidate.path, &candidate.beside), &candidate.beside)?)
    }

    fn held(&mut self, candidate: &Candidate, reading: Reading) -> store::Result<()> {
        let Reading { file, own, stat } = reading;
        let (indexer, beside) = (self.indexer, candidate.beside.as_slice());
        let directory = Directory::new(&candidate.path, beside);
        let digest = || digest(indexer, &file, &directory, beside);
        // Both handles share the place in the file, and only this one uses it.
        let open =
            || file.try_clone().map(|file| (indexer.open)(Box::new(BufReader::new(file)), &directory, indexer.limits, indexer.redactor));
        // What was no log is not opened again where its bytes are the same.
        let at_once = stat.size >= pipe::WORTH_BYTES && !self.was_no_log(candidate);
        let (digest, opened) = if at_once { pipe::both(&digest, || Some(open())) } else { (digest(), None) };
        let digest = match digest {
            Ok(digest) => digest,
            Err(error) => return self.unread(candidate, &error.into()),
        };
        let stamp =
            FileStamp { path: candidate.key.clone(), size: stat.size, mtime_ns: stat.mtime_ns, digest, source: self.source_of(candidate) };
        if let Some((broken, reason)) = self.still_no_log(candidate, &stamp) {
            self.report.unchanged += 1;
            return self.apply(Change::Skipped { file: stamp, broken, reason }).map(drop);
        }
        let changed = || file.metadata().ok().map(|found| Stat::fit(&found, u64::MAX).ok()) != Some(Some(own));
        match opened.unwrap_or_else(open) {
            Ok(Ok(opened)) => self.log(candidate, stamp, opened, &changed),
            Ok(Err(refused)) => self.refused(candidate, stamp, refused, &changed),
            Err(error) => self.unread(candidate, &error.into()),
        }
    }

    /// A file that is no log, or none that can be read.
    fn refused(&mut self, candidate: &Candidate, stamp: FileStamp, refused: Refused, changed: &dyn Fn() -> bool) -> store::Result<()> {
        match refused {
            // Whoever names a file so means a log: an empty or overwritten one is worth a complaint.
            Refused::NotALog(reason) if candidate.path.extension().is_some_and(|extension| extension == "eval") => {
                self.broken(candidate, stamp, format!("it is named .eval and is no log: {reason}"), changed)
            }
            Refused::NotALog(reason) if is_kept_record(candidate) => {
                self.broken(candidate, stamp, format!("it is named {RECORD} and is no run record: {reason}"), changed)
            }
            Refused::NotALog(reason) => {
                self.skip(candidate, &reason);
                self.unreadable(Change::Skipped { file: stamp, broken: false, reason })
            }
            Refused::Broken(reason) => self.broken(candidate, stamp, reason, changed),
        }
    }

    fn was_no_log(&self, candidate: &Candidate) -> bool {
        matches!(self.known.get(&candidate.key).map(|row| &row.state), Some(FileState::Skipped(_) | FileState::Broken(_)))
    }

    /// Imported by hand once, a file stays so.
    fn source_of(&self, candidate: &Candidate) -> Option<String> {
        let by_hand = self.known.get(&candidate.key).is_some_and(|row| row.stamp.source.is_none());
        candidate.source.as_deref().filter(|_| !by_hand).map(str::to_owned)
    }

    /// The reason why a file with the same bytes was no log, where it was not named again.
    fn still_no_log(&self, candidate: &Candidate, stamp: &FileStamp) -> Option<(bool, String)> {
        let again = candidate.source.is_none() || candidate.named;
        let row = self.known.get(&candidate.key).filter(|row| row.stamp.digest == stamp.digest && !again)?;
        match &row.state {
            FileState::Skipped(reason) => Some((false, reason.clone())),
            FileState::Broken(reason) => Some((true, reason.clone())),
            FileState::Log(_) | FileState::CopyOf(_) => None,
        }
    }

    fn log(&mut self, candidate: &Candidate, file: FileStamp, opened: Opened<'_>, changed: &dyn Fn() -> bool) -> store::Result<()> {
        let Opened { mut header, mut extras, items } = opened;
        let pinned = match pin(&candidate.rule, &mut header, &candidate.key) {
            Ok(pinned) => pinned,
            Err(why) => {
                self.complain(&candidate.key, &why);
                false
            }
        };
        let ancestors = self.ancestors(&header, &mut extras);
        let mut complaints = Vec::new();
        let mut complained = 0_usize;
        let mut seen = 0_u64;
        let record = grouping::is_record(&header.format, pinned).then(|| header.run_key.clone());
        let mut complain = |complaint: Option<String>| {
            let Some(complaint) = complaint else { return };
            complained += 1;
            complaints.extend((complained <= COMPLAINTS_MAX).then_some(complaint));
        };
        let mut attempts = items.filter_map(|item| match item {
            Ok(Item::Attempt(mut attempt)) => {
                seen += 1;
                complain(attempt.forget_absurd());
                Some(Ok::<Attempt, String>(*attempt))
            }
            Ok(Item::Complaint(complaint)) => {
                complain(Some(complaint));
                None
            }
            Err(error) => Some(Err(error)),
        });
        let (store, stamp, kind) = (self.indexer.store, file.clone(), candidate.kind);
        let write = move |attempts: &mut dyn Iterator<Item = pipe::Read>| {
            store.apply(Change::Log(LogChange { file: stamp, kind, header, extras, pinned, ancestors, attempts }))
        };
        let applied = if file.size < pipe::WORTH_BYTES { write(&mut attempts) } else { pipe::alongside(&mut attempts, write) };
        drop(attempts);
        self.report.changed |= applied.as_ref().is_ok_and(|applied| applied.changed);
        match applied {
            Ok(applied) => {
                complaints.extend((complained > COMPLAINTS_MAX).then(|| format!("and {} more of the sort", complained - COMPLAINTS_MAX)));
                complaints.extend(record.filter(|_| applied.copy_of.is_some()).and_then(|run| self.outnumbered(&run, seen)));
                complaints.iter().for_each(|complaint| self.complain(&candidate.key, complaint));
                self.written(candidate, applied, changed);
                self.remember(candidate, complaints)
            }
            Err(store::Error::Import(reason)) => self.broken(candidate, file, reason, changed),
            Err(error) => Err(error),
        }
    }

    /// What a record that gives way to its run's own logs holds beyond them: said, since nobody sees it otherwise.
    fn outnumbered(&self, run: &str, held: u64) -> Option<String> {
        let run = self.indexer.store.select(&Selector::Id(run), 1).ok()?.into_iter().next()?;
        let counted = u64::from(run.counts.total());
        (held > counted).then(|| {
            format!(
                "this record of run {} holds {held} attempts; {counted} count, from the run's own logs that are here. Put the missing logs back, or take these away to let the record count",
                run.run_id
            )
        })
    }

    /// Keeps what could not be read, so that it is said at every look until the file changes.
    fn remember(&mut self, candidate: &Candidate, complaints: Vec<String>) -> store::Result<()> {
        if complaints.is_empty() {
            return Ok(());
        }
        let remarks = complaints.iter().map(|complaint| self.indexer.redactor.redact(complaint).into_owned()).collect();
        self.apply(Change::Remarks { path: candidate.key.clone(), remarks }).map(drop)
    }

    /// The commits before the log's own: the repository's word, else the log's.
    fn ancestors(&mut self, header: &LogHeader, extras: &mut Extras) -> Vec<String> {
        let sha = header.git.as_ref().and_then(|git| git.sha.clone());
        let mut known = match (sha, self.indexer.said) {
            (None, _) => Vec::new(),
            (Some(_), Some(said)) => said.to_vec(),
            (Some(sha), None) => self.ancestry.before(&sha).to_vec(),
        };
        let mut said = std::mem::take(&mut extras.ancestors);
        known.truncate(ANCESTORS_MAX);
        said.truncate(ANCESTORS_MAX);
        if known.is_empty() { said } else { known }
    }

    fn written(&mut self, candidate: &Candidate, applied: Applied, changed: &dyn Fn() -> bool) {
        let report = &mut self.report;
        if applied.copy_of.is_some() {
            report.copies += 1;
        } else if applied.changed {
            report.logs += 1;
            report.attempts += applied.attempts;
            report.counts = report.counts.plus(applied.counts);
        } else {
            report.unchanged += 1;
        }
        report.belongs.clone_from(&applied.run_id);
        report.runs.extend(applied.run_id.filter(|_| applied.changed));
        if changed() {
            report.notes.push(Remark::new(&candidate.key, "changed while it was read; the next look reads it again"));
        }
    }

    /// A log that cannot be read. What is being written right now is no complaint yet, and what the file held before stays.
    fn broken(&mut self, candidate: &Candidate, file: FileStamp, reason: String, changed: &dyn Fn() -> bool) -> store::Result<()> {
        if changed() && !candidate.named {
            self.report.notes.push(Remark::new(&candidate.key, "is being written; the next look reads it again"));
            return Ok(());
        }
        self.complain(&candidate.key, &reason);
        self.unreadable(Change::Skipped { file, broken: true, reason })
    }

    /// Remembers what cannot be read, so that it is not read again; not of what was sent: that is refused, and an older state of it stays.
    fn unreadable(&mut self, change: Change<'_>) -> store::Result<()> {
        if self.received { Ok(()) } else { self.apply(change).map(drop) }
    }

    fn apply(&mut self, change: Change<'_>) -> store::Result<Applied> {
        let applied = self.indexer.store.apply(change)?;
        self.report.changed |= applied.changed;
        Ok(applied)
    }
}

/// Gives the log the run that the source's rule makes (decision 93); whether the rule did. A log that lacks what a rule asks for keeps its
/// own run; for metadata, which somebody meant every log to have, that is a complaint.
pub(super) fn pin(rule: &RunRule, header: &mut LogHeader, key: &str) -> Result<bool, String> {
    let run_key = match rule {
        RunRule::RunId => None,
        RunRule::EvalSet => header.round.clone(),
        RunRule::Directory => Some(directory(key)),
        RunRule::Fixed(id) => Some(id.clone()),
        RunRule::Metadata(name) => Some(metadata(header, name).ok_or_else(|| {
            format!(
                "its metadata has no text or number \"{name}\", which makes the run in this source; it keeps the run id {}",
                header.run_key
            )
        })?),
    };
    if let Some(fault) = run_key.as_deref().and_then(run_id_fault) {
        return Err(format!("this source's rule makes no run id of it ({fault}); it keeps the run id {}", header.run_key));
    }
    let pinned = run_key.is_some();
    header.run_key = run_key.unwrap_or_else(|| std::mem::take(&mut header.run_key));
    Ok(pinned)
}

/// Whether somebody keeps the file as a run record: one that is none is a slip, not another file.
fn is_kept_record(candidate: &Candidate) -> bool {
    let kept = candidate.source.as_deref().is_some_and(|source| source == HISTORY || source == SCRATCH);
    kept && super::is_record(candidate)
}

fn directory(key: &str) -> String {
    key.rsplit_once('/').map_or(".", |(directory, _)| directory).to_owned()
}

fn metadata(header: &LogHeader, name: &str) -> Option<String> {
    match header.metadata.get(name)? {
        serde_json::Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
