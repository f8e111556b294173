//! `runlore record`: a scratch run is kept on purpose.
//!
//! Promises: the run's files move from `.runlore/runs/` to `.history/` in one rename, and nothing is overwritten.
//! Does not: change what the record says.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session},
};
use crate::{
    domain::grouping::record_log_id,
    importers::beside::RECORD,
    local::{
        declared,
        index::{HISTORY, SCRATCH},
        root::reason,
    },
    store::{FileState, Kind},
    tools::{render::clean, resolve},
};

/// Keep a scratch run: move its record from .runlore/runs to .history.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordArgs {
    /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
    #[arg(default_value = "latest")]
    pub run: String,
}

/// Moves the run; the exit code.
///
/// # Errors
/// [`CliError`], where there is no such scratch run or its place is taken.
pub fn run(args: &RecordArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let session = Session::open(place)?;
    session.index_now(&Bar::new(output.watched()))?;
    let run = resolve::run(&session.ctx(), &args.run).map_err(|error| CliError::Refused(error.to_string()))?;
    let id = clean(&run.run_id);
    if run.kind == Kind::Recorded {
        return Err(CliError::Refused(format!("run {id} is recorded already")));
    }
    let files = session.store().files(Some(SCRATCH)).map_err(|error| CliError::Refused(error.to_string()))?;
    let log_id = record_log_id(&run.run_id);
    let held = files.into_iter().find(|row| row.state == FileState::Log(log_id.clone()));
    let file = held
        .map(|row| row.stamp.path)
        .ok_or_else(|| CliError::Refused(format!("run {id} is no run record; move its files from {SCRATCH} to {HISTORY} yourself")))?;
    let (from, to) = moves(&file);
    move_to(&session.root().join(&from), &session.root().join(&to))?;
    let declared = declared::read(session.root()).map_err(|error| CliError::Usage(error.to_string()))?;
    let report = session.indexing(|indexer| indexer.rescan(&declared));
    if let Some(error) = &report.stopped {
        output.complain(&format!("the history could not be read again: {error}"));
    }
    output.say(&format!("Recorded {id}: moved {} to {}.", from.display(), to.display()));
    Ok(0)
}

/// What moves where: a record's directory where it has one of its own, else its file.
fn moves(file: &str) -> (PathBuf, PathBuf) {
    let below = Path::new(file.strip_prefix(SCRATCH).unwrap_or(file).trim_start_matches('/'));
    let own = below.file_name().is_some_and(|name| name == RECORD) && below.components().count() > 1;
    let below = if own { below.parent().unwrap_or(below) } else { below };
    (Path::new(SCRATCH).join(below), Path::new(HISTORY).join(below))
}

fn move_to(from: &Path, to: &Path) -> Result<(), CliError> {
    let refused = |error: std::io::Error| CliError::Refused(format!("the run cannot be moved to {}: {}", to.display(), reason(&error)));
    if to.exists() {
        return Err(CliError::Refused(format!("{} exists already; nothing was moved", to.display())));
    }
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(refused)?;
    fs::rename(from, to).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_moves_with_its_directory() {
        let shown = |file: &str| {
            let (from, to) = moves(file);
            (from.display().to_string(), to.display().to_string())
        };
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(shown(".runlore/runs/a/run.json"), pair(".runlore/runs/a", ".history/a"));
        assert_eq!(shown(".runlore/runs/g/a/run.json"), pair(".runlore/runs/g/a", ".history/g/a"));
        assert_eq!(shown(".runlore/runs/a.json"), pair(".runlore/runs/a.json", ".history/a.json"));
        assert_eq!(shown(".runlore/runs/run.json"), pair(".runlore/runs/run.json", ".history/run.json"));
    }
}
