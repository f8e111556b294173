//! `runlore import`: logs by hand, or all that the project's sources have.
//!
//! Promises: a summary with the five counts on stdout, complaints on stderr; 0 when everything was read, 1 with complaints, 2 where there is
//! no project, its `runlore.toml` is wrong, or an argument is (decision 88).
//! Does not: read a log (`importers`), or decide what is one.

use std::path::PathBuf;

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session, directory},
};
use crate::local::{
    declared,
    index::{Indexer, run_id_fault},
    report::{Remarks, Report},
};

/// Import logs of evaluations into the project's history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ImportArgs {
    /// Files, or directories of files; none means the sources of runlore.toml and logs/.
    pub paths: Vec<PathBuf>,
    /// Make all these logs one run with this id (such as a CI job's).
    #[arg(long, value_name = "ID", requires = "paths")]
    pub run: Option<String>,
}

/// Imports; the exit code.
///
/// # Errors
/// [`CliError`], where nothing could be imported at all.
pub fn run(args: &ImportArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    if let Some(fault) = args.run.as_deref().and_then(run_id_fault) {
        return Err(CliError::Usage(fault));
    }
    let (session, made) = Session::open_or_create(place)?;
    let declared = declared::read(session.root()).map_err(|error| CliError::Usage(error.to_string()))?;
    if made {
        output.say(&format!("Made .runlore in {}.", session.root().display()));
    }
    let bar = Bar::new(output.watched());
    let paths = args.paths.iter().map(|path| Ok(directory()?.join(path))).collect::<Result<Vec<PathBuf>, CliError>>()?;
    let report = session.indexing(|indexer| {
        let indexer = Indexer { progress: &bar, environment: indexer.environment.clone(), ..*indexer };
        if paths.is_empty() {
            return Ok(indexer.rescan(&declared));
        }
        indexer.declare(&declared).map_err(|error| CliError::Refused(error.to_string()))?;
        Ok(indexer.import(&paths, args.run.as_deref()))
    })?;
    say(&report, output);
    Ok(u8::from(!report.is_clean()))
}

/// Says what an import did, and what of it went wrong.
pub fn say(report: &Report, output: &mut Output) {
    list(&report.named_skipped, "skipped", output);
    list(&report.notes, "note", output);
    list(&report.complaints, "complaint", output);
    list(&report.broken, "complaint", output);
    if let Some(error) = &report.stopped {
        output.complain(&format!("stopped: {error}; what was imported before stands"));
    }
    output.say(&report.to_string());
}

fn list(remarks: &Remarks, word: &str, output: &mut Output) {
    remarks.kept.iter().for_each(|remark| output.complain(&format!("{word}: {remark}")));
    let more = remarks.total.saturating_sub(remarks.kept.len() as u64);
    if more > 0 {
        output.complain(&format!("{word}: and {more} more"));
    }
}
