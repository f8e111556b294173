//! A log with what stands beside it as one file: a ZIP archive, so that any tool can make one.
//!
//! Promises: the same files give the same bytes; what is taken out is counted, files and bytes, while it inflates; only the main file and what
//! belongs beside it is taken, under plain names, into a directory that is empty before; no link is made or followed.
//! Does not: believe a size or a name that an archive declares.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Datelike, TimeZone, Timelike, Utc};
use zip::{
    CompressionMethod, ZipWriter,
    read::{Config, OwnedZipFileEntry, ZipReadOptions},
    unstable::read::ZipIterable,
    write::SimpleFileOptions,
};

use super::root::reason;
use crate::importers::beside;

/// Read and written at once.
const BLOCK_BYTES: u64 = 256 * 1024;

/// How much may be taken out of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleLimits {
    /// Files.
    pub files_max: usize,
    /// Bytes of all of them, inflated.
    pub bytes_max: u64,
}

/// Why a bundle was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Unpacked {
    /// It is none, or holds what it may not; a sentence.
    #[error("{0}")]
    Wrong(String),
    /// The disk takes no more.
    #[error("{0}")]
    Disk(io::Error),
}

/// Packs the log at `main` and the files `names` beside it into `out`, each as it is when it is read.
///
/// # Errors
/// The system's; what a name led to was no regular file.
pub fn pack(main: &Path, names: &[String], out: File) -> io::Result<File> {
    let own = main.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let mut archive = ZipWriter::new(BufWriter::new(out));
    for name in std::iter::once(&own).chain(names) {
        // As the index opens them: a pipe or a link can have taken a file's place. The main file itself may be a link, which somebody named.
        let link = if *name == own { 0 } else { nix::libc::O_NOFOLLOW };
        let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK | link).open(main.with_file_name(name))?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file"));
        }
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(found.len() > u64::from(u32::MAX / 2))
            .last_modified_time(stamp(found.modified().ok()));
        archive.start_file(name.as_str(), options)?;
        io::copy(&mut BufReader::new(file), &mut archive)?;
    }
    archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A file's time as archives have it: two seconds' grain, from 1980 on.
fn stamp(modified: Option<SystemTime>) -> zip::DateTime {
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let time = i64::try_from(since.as_secs()).ok().and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    let narrow = |number: u32| u8::try_from(number).unwrap_or_default();
    time.and_then(|time| {
        let year = u16::try_from(time.year()).ok()?;
        let (month, day) = (narrow(time.month()), narrow(time.day()));
        zip::DateTime::from_date_and_time(year, month, day, narrow(time.hour()), narrow(time.minute()), narrow(time.second())).ok()
    })
    .unwrap_or_default()
}

fn unstamped(time: zip::DateTime) -> Option<SystemTime> {
    let (month, day, hour) = (u32::from(time.month()), u32::from(time.day()), u32::from(time.hour()));
    let seconds = (u32::from(time.minute()), u32::from(time.second()));
    let time = Utc.with_ymd_and_hms(i32::from(time.year()), month, day, hour, seconds.0, seconds.1).single()?;
    Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).ok()?))
}

/// Unpacks the log `main` and what belongs beside it from `archive` into the empty directory `into`; the main file's path.
///
/// # Errors
/// [`Unpacked`]; what was written by then is the caller's to remove.
pub fn unpack(archive: File, main: &str, into: &Path, limits: BundleLimits) -> Result<PathBuf, Unpacked> {
    let wrong = |text: &dyn std::fmt::Display| Unpacked::Wrong(format!("the bundle is no readable ZIP archive: {text}"));
    let mut input = BufReader::new(archive);
    let entries: Vec<OwnedZipFileEntry> = {
        let mut all = ZipIterable::try_new(&mut input, Config::default()).map_err(|error| wrong(&error))?;
        if all.len() > limits.files_max {
            return Err(Unpacked::Wrong(format!("the bundle has {} entries; it may have {}", all.len(), limits.files_max)));
        }
        let entries = all.files().map_err(|error| wrong(&error))?.take(limits.files_max);
        entries.map(|entry| entry.map(OwnedZipFileEntry::from)).collect::<Result<_, _>>().map_err(|error| wrong(&error))?
    };
    let mut left = limits.bytes_max;
    let mut found = None;
    for entry in &entries {
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if let Some(path) = wanted(main, &name, entry, into)? {
            one(entry, &mut input, &path, &mut left, limits)?;
            found = found.or((name == main).then_some(path));
        }
    }
    found.ok_or_else(|| Unpacked::Wrong(format!("the bundle has no {} at its top", main.escape_debug())))
}

/// Where an entry goes, where it is one that is wanted.
fn wanted(main: &str, name: &str, entry: &OwnedZipFileEntry, into: &Path) -> Result<Option<PathBuf>, Unpacked> {
    if name.ends_with('/') {
        return Ok(None);
    }
    let shown = name.escape_debug();
    if !entry.is_file() || entry.unix_mode().is_some_and(|mode| mode & 0o170_000 == 0o120_000) {
        return Err(Unpacked::Wrong(format!("the bundle's entry {shown} is a link; only files are taken")));
    }
    if !is_plain(name) {
        return Err(Unpacked::Wrong(format!(
            "the bundle's entry {shown} has a name that leads elsewhere; give names such as transcripts/1.jsonl"
        )));
    }
    if name != main && !beside::belongs(main, name) {
        return Err(Unpacked::Wrong(format!("the bundle's entry {shown} does not belong beside {}", main.escape_debug())));
    }
    Ok(Some(into.join(name)))
}

/// Bytes of one part of a name, as file systems take it.
const PART_BYTES_MAX: usize = 200;

/// Whether `name` is relative, stays below where it begins, and can be a file's.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    let parts = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    // What `components` passes over in silence counts here too.
    parts
        && !name.is_empty()
        && name.split('/').all(|part| !part.is_empty() && part != "." && part.len() <= PART_BYTES_MAX)
        && !name.chars().any(|c| c.is_control() || c == '\\')
}

fn one(
    entry: &OwnedZipFileEntry,
    input: &mut (impl Read + Seek),
    path: &Path,
    left: &mut u64,
    limits: BundleLimits,
) -> Result<(), Unpacked> {
    let broken = |error: &dyn std::fmt::Display| Unpacked::Wrong(format!("an entry of the bundle cannot be read: {error}"));
    // A second entry of one name is refused: which of them counts would be a guess.
    let taken = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Unpacked::Wrong("two entries of the bundle have one name".to_owned())
        }
        io::ErrorKind::InvalidFilename => Unpacked::Wrong("an entry of the bundle has a name that is too long".to_owned()),
        _ => Unpacked::Disk(error),
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(taken)?;
    }
    let mut out = File::create_new(path).map_err(taken)?;
    let mut packed = entry.as_ref().with_reader(input, ZipReadOptions::default()).map_err(|error| broken(&error))?;
    let mut block = Vec::new();
    loop {
        block.clear();
        let count = (&mut packed).take(BLOCK_BYTES).read_to_end(&mut block).map_err(|error| broken(&reason(&error)))?;
        if count == 0 {
            break;
        }
        *left = left
            .checked_sub(count as u64)
            .ok_or_else(|| Unpacked::Wrong(format!("the bundle inflates past {} bytes, the most that it may", limits.bytes_max)))?;
        out.write_all(&block).map_err(Unpacked::Disk)?;
    }
    let time = entry.last_modified().and_then(unstamped);
    time.map_or(Ok(()), |time| out.set_modified(time)).map_err(Unpacked::Disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BundleLimits = BundleLimits { files_max: 5, bytes_max: 1000 };

    fn archive(entries: &[(&str, &[u8])]) -> File {
        let mut archive = ZipWriter::new(tempfile::tempfile().unwrap());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        for (name, bytes) in entries {
            archive.start_file(*name, options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap()
    }

    fn unpacked(archive: File) -> Result<Vec<String>, String> {
        let into = tempfile::tempdir().unwrap();
        let main = unpack(archive, "run.json", into.path(), LIMITS).map_err(|error| error.to_string())?;
        assert_eq!(main, into.path().join("run.json"));
        let walked = super::super::walk::walk(into.path(), super::super::walk::Bounds::default());
        Ok(walked.files.iter().map(|file| file.strip_prefix(into.path()).unwrap().display().to_string()).collect())
    }

    #[test]
    fn what_was_packed_comes_out_with_its_times_and_twice_the_same() {
        let from = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(from.path().join("transcripts")).unwrap();
        for (name, text) in [("run.json", "{}"), ("transcripts/1.jsonl", "1\n"), ("other.txt", "no")] {
            std::fs::write(from.path().join(name), text).unwrap();
            let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
            File::options().append(true).open(from.path().join(name)).unwrap().set_modified(time).unwrap();
        }
        let packed = || {
            let mut file = pack(&from.path().join("run.json"), &["transcripts/1.jsonl".to_owned()], tempfile::tempfile().unwrap()).unwrap();
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            (file, bytes)
        };
        let (file, bytes) = packed();
        assert_eq!(packed().1, bytes);
        let into = tempfile::tempdir().unwrap();
        let main = unpack(file, "run.json", into.path(), LIMITS).unwrap();
        assert_eq!(std::fs::read_to_string(into.path().join("transcripts/1.jsonl")).unwrap(), "1\n");
        assert_eq!(main.metadata().unwrap().modified().unwrap(), UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        std::os::unix::fs::symlink("/etc/passwd", from.path().join("transcripts/2.jsonl")).unwrap();
        assert!(pack(&from.path().join("run.json"), &["transcripts/2.jsonl".to_owned()], tempfile::tempfile().unwrap()).is_err());
    }

    #[test]
    fn nothing_leads_elsewhere() {
        let good: (&str, &[u8]) = ("run.json", b"{}");
        assert_eq!(unpacked(archive(&[good, ("analysis/saved/a.json", b"1")])).unwrap(), ["analysis/saved/a.json", "run.json"]);
        for name in [
            "../x",
            "/etc/x",
            "transcripts/../../x",
            "transcripts//x",
            "transcripts/./x",
            "transcripts\\x",
            "a.txt",
            "transcripts/\u{1}x",
            "lock",
            "body",
            "transcripts/..",
        ] {
            let refused = unpacked(archive(&[good, (name, b"x")])).unwrap_err();
            assert!(refused.contains("leads elsewhere") || refused.contains("does not belong"), "{name}: {refused}");
        }
        let mut links = ZipWriter::new(tempfile::tempfile().unwrap());
        links.add_symlink("transcripts/1.jsonl", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        assert!(unpacked(links.finish().unwrap()).unwrap_err().contains("link"));
        assert!(unpacked(archive(&[("transcripts/1.jsonl", b"1")])).unwrap_err().contains("no run.json"));
        let clash: [(&str, &[u8]); 3] = [good, ("transcripts/a", b"1"), ("transcripts/a/b", b"2")];
        assert!(unpacked(archive(&clash)).is_err());
        let mut plain = tempfile::tempfile().unwrap();
        plain.write_all(b"no archive").unwrap();
        assert!(unpacked(plain).unwrap_err().contains("no readable ZIP"));
    }

    #[test]
    fn what_inflates_is_counted() {
        let zeros = vec![0; 2000];
        assert!(unpacked(archive(&[("run.json", &zeros)])).unwrap_err().contains("inflates past 1000 bytes"));
        let half = vec![0; 600];
        assert!(unpacked(archive(&[("run.json", &half), ("transcripts/1", &half)])).unwrap_err().contains("inflates past"));
        let names: Vec<String> = (0..6).map(|number| format!("transcripts/{number}")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"1"[..])).collect();
        assert!(unpacked(archive(&many)).unwrap_err().contains("6 entries"));
    }
}
