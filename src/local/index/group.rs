//! Which of the files that a walk found are logs of their own, and which stand beside one.
//!
//! Promises: told by names alone; a file that belongs to a log is no log; the cost grows with the number of files.
//! Does not: open anything.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::{
    domain::time::Timestamp,
    importers::{
        Input,
        beside::{self, ANALYSES, Beside, RECORD, TRANSCRIPTS},
    },
    local::walk::{Bounds, walk},
};

/// A log's main file, and the names of what stands beside it, relative to its directory.
pub(super) type Grouped = (PathBuf, Vec<String>);

/// Groups files, whose order is kept.
pub(super) fn group(files: Vec<PathBuf>) -> Vec<Grouped> {
    let leaders = Leaders::of(&files);
    let mut names: HashMap<usize, Vec<String>> = HashMap::new();
    let mut mains = Vec::new();
    for (number, file) in files.iter().enumerate() {
        match leaders.leader(number, file) {
            Some((leader, name)) => names.entry(leader).or_default().push(name),
            None => mains.push(number),
        }
    }
    let mut files: Vec<Option<PathBuf>> = files.into_iter().map(Some).collect();
    let mut grouped = |number: usize| Some((files.get_mut(number)?.take()?, names.remove(&number).unwrap_or_default()));
    mains.into_iter().filter_map(&mut grouped).collect()
}

/// What stands beside one file that was named itself.
pub(super) fn companions(main: &Path, bounds: Bounds) -> Vec<String> {
    let (Some(directory), Some(name)) = (main.parent(), main.file_name().and_then(|name| name.to_str())) else { return Vec::new() };
    if !beside::leads(name) {
        return Vec::new();
    }
    let near = |top: PathBuf, depth_max: usize| walk(&top, Bounds { depth_max, ..bounds }).files;
    let found = if name == RECORD {
        [near(directory.join(TRANSCRIPTS), bounds.depth_max), near(directory.join(ANALYSES), bounds.depth_max)].concat()
    } else {
        near(directory.to_path_buf(), 0)
    };
    let mut names: Vec<String> = found.iter().filter_map(|file| relative(directory, file)).collect();
    names.retain(|other| beside::belongs(name, other));
    // In the order of a walk, so that the digest over all is the same however the main file was found.
    names.sort_unstable_by(|a, b| Path::new(a).cmp(Path::new(b)));
    names
}

/// Takes links out: what stands beside a log comes with it, from a repository perhaps, and must not lead to anything else of the reader's.
pub(super) fn without_links(main: &Path, names: &mut Vec<String>) {
    let directory = Directory::new(main, &[]);
    names.retain(|name| fs::symlink_metadata(directory.path(name)).is_ok_and(|found| !found.file_type().is_symlink()));
}

fn relative(directory: &Path, file: &Path) -> Option<String> {
    file.strip_prefix(directory).ok()?.to_str().map(str::to_owned)
}

/// The files that others can stand beside, by where these would have to be.
#[derive(Default)]
struct Leaders<'a> {
    records: HashMap<&'a Path, usize>,
    /// By directory and stamp.
    results: HashMap<(&'a Path, &'a str), Vec<(usize, &'a str)>>,
}

impl<'a> Leaders<'a> {
    fn of(files: &'a [PathBuf]) -> Self {
        let mut leaders = Self::default();
        for (number, file) in files.iter().enumerate() {
            let (Some(directory), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else { continue };
            if name == RECORD {
                leaders.records.insert(directory, number);
            } else if let Some(stamp) = stamp(name).filter(|_| beside::leads(name)) {
                leaders.results.entry((directory, stamp)).or_default().push((number, name));
            }
        }
        leaders
    }

    fn leader(&self, number: usize, file: &Path) -> Option<(usize, String)> {
        let found = self.record(file).or_else(|| self.result(file));
        found.filter(|(leader, _)| *leader != number)
    }

    /// Transcripts and analyses stand one or two directories below their record.
    fn record(&self, file: &Path) -> Option<(usize, String)> {
        file.ancestors().skip(2).take(3).find_map(|directory| {
            let leader = self.records.get(directory)?;
            relative(directory, file).filter(|name| beside::belongs(RECORD, name)).map(|name| (*leader, name))
        })
    }

    fn result(&self, file: &Path) -> Option<(usize, String)> {
        let name = file.file_name()?.to_str()?;
        let held = self.results.get(&(file.parent()?, stamp(name)?))?;
        held.iter().find(|(_, main)| beside::belongs(main, name)).map(|(leader, _)| (*leader, name.to_owned()))
    }
}

/// What the names of files of one lm-eval invocation share: it has no underscore.
fn stamp(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"))?;
    stem.rsplit_once('_').map(|(_, stamp)| stamp)
}

/// The files beside a log on disk.
pub(super) struct Directory<'a> {
    main: &'a Path,
    names: &'a [String],
}

impl<'a> Directory<'a> {
    pub(super) const fn new(main: &'a Path, names: &'a [String]) -> Self {
        Self { main, names }
    }

    /// Where a file stands.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.main.with_file_name(name)
    }
}

impl Beside for Directory<'_> {
    fn main(&self) -> &str {
        self.main.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn own_modified(&self) -> Option<Timestamp> {
        changed_at(self.main)
    }

    fn names(&self) -> &[String] {
        self.names
    }

    fn modified(&self, name: &str) -> Option<Timestamp> {
        changed_at(&self.path(name))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Input + '_>> {
        if !self.names.iter().any(|other| other == name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // A pipe or a link can have taken the file's place since it was found: opening must not wait for a writer, nor go elsewhere.
        let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW).open(self.path(name))?;
        if file.metadata()?.is_file() { Ok(Box::new(io::BufReader::new(file))) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

fn changed_at(path: &Path) -> Option<Timestamp> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).ok()?;
    Timestamp::of_millis(found.mtime().saturating_mul(1000).saturating_add(found.mtime_nsec() / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_log_is_no_log() {
        let files = [
            "a/run.json",
            "a/transcripts/1.jsonl",
            "a/analysis/saved/x.json",
            "a/other.json",
            "b/results_T.json",
            "b/samples_x_y_T.jsonl",
            "b/samples_x_U.jsonl",
            "c/transcripts/1.jsonl",
            "run.json",
            "x/results_T.json",
        ];
        let grouped = group(files.iter().map(PathBuf::from).collect());
        let shown: Vec<(String, Vec<String>)> = grouped.into_iter().map(|(main, names)| (main.display().to_string(), names)).collect();
        let own = |main: &str, names: &[&str]| (main.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            shown,
            [
                own("a/run.json", &["transcripts/1.jsonl", "analysis/saved/x.json"]),
                own("a/other.json", &[]),
                own("b/results_T.json", &["samples_x_y_T.jsonl"]),
                own("b/samples_x_U.jsonl", &[]),
                own("c/transcripts/1.jsonl", &[]),
                own("run.json", &[]),
                own("x/results_T.json", &[]),
            ]
        );
    }

    #[test]
    fn a_named_record_finds_its_own_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        for name in ["transcripts/1.jsonl", "analysis/cached/a.md", "elsewhere/2.jsonl", "run.json"] {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let main = top.path().join("run.json");
        std::os::unix::fs::symlink("/etc/hostname", top.path().join("transcripts/link.jsonl")).unwrap();
        let mut names = companions(&main, Bounds::default());
        without_links(&main, &mut names);
        assert_eq!(names, ["analysis/cached/a.md", "transcripts/1.jsonl"]);
        let directory = Directory::new(&main, &names);
        let mut text = String::new();
        io::Read::read_to_string(&mut directory.open("transcripts/1.jsonl").unwrap(), &mut text).unwrap();
        assert_eq!(text, "transcripts/1.jsonl");
        assert!(directory.open("elsewhere/2.jsonl").is_err() && directory.open("../run.json").is_err());
    }
}
