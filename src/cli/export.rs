//! `runlore export`: a run as a record, with its transcripts and analyses beside it.
//!
//! Promises: importing what was written and exporting it again gives the same bytes; a directory appears whole or not at all; nothing but an
//! older export of the same run is replaced, and what else stands there stays; memory is one evaluation.
//! Does not: export what is only worked out in this project (numbers, recorded or scratch).

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session, directory},
};
use crate::{
    domain::{
        extras::Analysis,
        hex::hex_of_first,
        run_record::{AttemptRecord, Eval, RunRecord},
    },
    importers::beside::{ANALYSES, RECORD, TRANSCRIPTS},
    local::root::reason,
    store::{self, Run, RunEvaluation, Store},
    tools::{
        history::run_record::{self, Wants},
        render::clean,
        resolve,
    },
};

/// Lines of a transcript that are read at once.
const PAGE: u64 = 512;
/// Bytes of a directory's name, under what file systems take.
const NAME_BYTES_MAX: usize = 200;

/// Write a run as a record: run.json with its transcripts and analyses beside it.
#[derive(Debug, Clone, clap::Args)]
pub struct ExportArgs {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    pub run: String,
    /// The directory that the run's own directory is made in (.history keeps it in the project's repository).
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub to: PathBuf,
}

/// Why a run could not be written.
enum Fault {
    Store(store::Error),
    Disk(io::Error),
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Disk(error.into())
    }
}

/// Exports; the exit code.
///
/// # Errors
/// [`CliError`], where there is no such run or its directory cannot be written.
pub fn run(args: &ExportArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let session = Session::open(place)?;
    session.index_now(&Bar::new(output.watched()))?;
    let run = resolve::run(&session.ctx(), &args.run).map_err(|error| CliError::Refused(error.to_string()))?;
    let top = directory()?.join(&args.to);
    let target = top.join(directory_name(&run.run_id));
    may_replace(&target, &run.run_id)?;
    let refused = |fault: Fault| match fault {
        Fault::Store(error) => CliError::Refused(error.to_string()),
        Fault::Disk(error) => CliError::Refused(format!("{} cannot be written: {}", target.display(), reason(&error))),
    };
    write_whole(session.store(), &run, &top, &target).map_err(refused)?;
    output.say(&format!("Wrote {} to {}.", clean(&run.run_id), target.display()));
    Ok(0)
}

/// A run's id as the name of a directory that a walk enters: unreserved characters stand, the rest is percent-encoded.
#[must_use]
pub fn directory_name(run_id: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for (at, byte) in run_id.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || (byte == b'.' && at > 0) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    if out.len() > NAME_BYTES_MAX {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(run_id.as_bytes());
        out.truncate(NAME_BYTES_MAX - 17);
        out.push('-');
        out.push_str(&hex_of_first(8, &digest));
    }
    out
}

/// Refuses to replace anything but an older export of the same run.
fn may_replace(target: &Path, run_id: &str) -> Result<(), CliError> {
    if !target.exists() {
        return Ok(());
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        run_id: String,
    }
    let held = fs::File::open(target.join(RECORD)).ok();
    let held = held.and_then(|file| serde_json::from_reader::<_, Head>(io::BufReader::new(file)).ok());
    if held.is_some_and(|head| head.run_id == run_id) {
        return Ok(());
    }
    Err(CliError::Refused(format!("{} exists and holds something else; give another --to", target.display())))
}

fn write_whole(store: &dyn Store, run: &Run, top: &Path, target: &Path) -> Result<(), Fault> {
    fs::create_dir_all(top)?;
    let made = tempfile::Builder::new().prefix(".runlore-export-").tempdir_in(top)?;
    let fresh = made.path().join("new");
    fs::create_dir(&fresh)?;
    record(store, run, &fresh)?;
    for analysis in store.analyses(&run.run_id)? {
        document(&fresh, &analysis)?;
    }
    if target.exists() {
        let old = made.path().join("old");
        fs::rename(target, &old)?;
        keep(&old, Path::new(""), &fresh)?;
    }
    Ok(fs::rename(&fresh, target)?)
}

/// Moves what an older export did not write, such as an analysis that was saved there since, over to the new one.
fn keep(old: &Path, below: &Path, fresh: &Path) -> io::Result<()> {
    for entry in fs::read_dir(old.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            keep(old, &name, fresh)?;
        } else if !is_ours(&name, fresh) {
            fs::create_dir_all(fresh.join(below))?;
            fs::rename(old.join(&name), fresh.join(&name))?;
        }
    }
    Ok(())
}

/// Whether an export wrote the file, or has just written what it holds.
fn is_ours(name: &Path, fresh: &Path) -> bool {
    let text = name.to_string_lossy();
    let numbered = text.strip_prefix(TRANSCRIPTS).and_then(|file| file.strip_suffix(".jsonl"));
    let transcript = numbered.is_some_and(|number| number.len() == 6 && number.bytes().all(|byte| byte.is_ascii_digit()));
    let saved = text.strip_prefix(ANALYSES).filter(|file| !file.contains('/')).map(|file| format!("{ANALYSES}saved/{file}"));
    transcript || fresh.join(name).exists() || saved.is_some_and(|file| fresh.join(file).exists())
}

fn record(store: &dyn Store, run: &Run, directory: &Path) -> Result<(), Fault> {
    let mut out = BufWriter::new(fs::File::create_new(directory.join(RECORD))?);
    let head = RunRecord { kind: None, ancestors: store.ancestors(&run.run_id)?, ..run_record::head(store, run)? };
    out.write_all(open(&serde_json::to_string(&head)?))?;
    let mut transcripts = Transcripts { store, run, directory, written: 0 };
    for (number, evaluation) in store.evaluations(&run.run_id)?.into_iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        eval(store, run, evaluation, &mut transcripts, &mut out)?;
    }
    out.write_all(b"\n]}\n")?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// JSON that ends with an empty list and its object, up to inside the list.
fn open(json: &str) -> &[u8] {
    json.strip_suffix("]}").unwrap_or(json).as_bytes()
}

/// An evaluation, an attempt a line.
fn eval(
    store: &dyn Store,
    run: &Run,
    evaluation: RunEvaluation,
    transcripts: &mut Transcripts<'_>,
    out: &mut impl Write,
) -> Result<(), Fault> {
    let wants = Wants { attempts: true, texts: true };
    for mut eval in run_record::evals(store, run, vec![evaluation], wants)? {
        let attempts = eval.attempts.replace(Vec::new()).unwrap_or_default();
        out.write_all(open(&serde_json::to_string(&Eval { number: None, ..eval })?))?;
        let (mut before, mut first) = (None, true);
        for mut attempt in attempts {
            // A case's texts once are enough.
            if before.as_ref() == Some(&attempt.case) {
                (attempt.input, attempt.target) = (None, None);
            }
            transcripts.write(&mut attempt)?;
            out.write_all(if first { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *out, &attempt)?;
            (before, first) = (Some(attempt.case), false);
        }
        out.write_all(b"\n]}")?;
    }
    Ok(())
}

/// Writes transcripts, numbered.
struct Transcripts<'a> {
    store: &'a dyn Store,
    run: &'a Run,
    directory: &'a Path,
    written: u64,
}

impl Transcripts<'_> {
    /// Writes the attempt's transcript, where it has one, and names its file.
    fn write(&mut self, attempt: &mut AttemptRecord) -> Result<(), Fault> {
        let Some(transcript) = &mut attempt.transcript else { return Ok(()) };
        if self.written == 0 {
            fs::create_dir(self.directory.join(TRANSCRIPTS))?;
        }
        self.written += 1;
        transcript.file = format!("{TRANSCRIPTS}{:06}.jsonl", self.written);
        let mut out = BufWriter::new(fs::File::create_new(self.directory.join(&transcript.file))?);
        let mut offset = 0;
        while let Some(page) =
            self.store.transcript(&self.run.run_id, &attempt.attempt, offset, PAGE)?.filter(|page| !page.lines.is_empty())
        {
            offset += page.lines.len() as u64;
            for line in page.lines {
                out.write_all(line.as_bytes())?;
                out.write_all(b"\n")?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// Writes an analysis, with the time that its place among the others comes from.
fn document(directory: &Path, analysis: &Analysis) -> Result<(), Fault> {
    let name = Path::new(&analysis.file);
    // The name came from a file of its own; one that would lead elsewhere was never one.
    if name.file_name() != Some(name.as_os_str()) {
        return Ok(());
    }
    let folder = directory.join(ANALYSES).join(analysis.source.word());
    fs::create_dir_all(&folder)?;
    let mut file = fs::File::create_new(folder.join(name))?;
    let text = serde_json::from_str::<String>(analysis.doc.get()).ok().filter(|_| !analysis.file.ends_with(".json"));
    writeln!(file, "{}", text.as_deref().unwrap_or(analysis.doc.get()))?;
    let millis = u64::try_from(analysis.created_at.millis()).unwrap_or(0);
    Ok(file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_run_id_names_a_directory_that_a_walk_enters() {
        for (id, name) in [("nightly-7", "nightly-7"), ("a/b c", "a%2Fb%20c"), ("..", "%2E."), (".x", "%2Ex"), ("é", "%C3%A9")] {
            assert_eq!(directory_name(id), name);
        }
        let (one, other) = (directory_name(&"é".repeat(128)), directory_name(&format!("{}x", "é".repeat(127))));
        assert!(one.len() <= NAME_BYTES_MAX && one != other, "{one}");
    }
}
