//! `runlore push`: sends the runs of this machine to a server of many organizations.
//!
//! Promises: what the server has is not sent again; what broke off goes on where it ended, in the next try or the next call; a line for each
//! run, complaints on stderr; 0 when the server has everything, 1 where it has not, 2 where an argument is wrong (decision 88).
//! Does not: take the key from the command line, where other processes see it.

mod client;
mod send;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use self::{
    client::{Client, Fault},
    send::{Sender, Sent},
};
use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session, directory},
};
use crate::{
    config::Config,
    local::{
        declared, git,
        index::{Indexer, Listed, run_id_fault},
        progress::Progress,
        report::Report,
        root,
        walk::Bounds,
    },
    store::Absent,
    telemetry::redaction::Redactor,
    tools::render::clean,
};

/// Where the key may stand.
const VARIABLE: &str = "RUNLORE_KEY";
/// A key's file is no longer.
const KEY_BYTES_MAX: u64 = 4096;

/// Send runs to a server.
#[derive(Debug, Clone, clap::Args)]
pub struct PushArgs {
    /// The server, such as https://evals.example; its key is taken from RUNLORE_KEY or --key-file.
    pub url: String,
    /// Logs, records, or directories of them; none means all of the project's.
    pub paths: Vec<PathBuf>,
    /// The server's project; needed where the key may see several.
    #[arg(long, value_name = "PROJECT")]
    pub into: Option<String>,
    /// Make all these logs one run with this id (such as a CI job's).
    #[arg(long, value_name = "ID", requires = "paths")]
    pub run: Option<String>,
    /// A file that holds the key.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Seconds that a server which is busy, full or away is asked again, for each request.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub retry_for: u64,
    /// Send the key in the clear, over http to another machine.
    #[arg(long)]
    pub insecure_http: bool,
}

/// Sends; the exit code.
///
/// # Errors
/// [`CliError`], where an argument is wrong, or the server takes nothing from this key.
pub fn run(args: &PushArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    if let Some(fault) = args.run.as_deref().and_then(run_id_fault) {
        return Err(CliError::Usage(fault));
    }
    let key = key(args.key_file.as_deref())?;
    let client = Client::new(&args.url, &key, args.insecure_http, Duration::from_secs(args.retry_for)).map_err(CliError::Usage)?;
    let (logs, report) = if args.paths.is_empty() { of_project(place)? } else { of_paths(&args.paths, place)? };
    complain(&report, output);
    let bar = Bar::new(output.watched());
    let sender = Sender { client: &client, project: args.into.as_deref(), run: args.run.as_deref(), progress: &bar };
    bar.begin(logs.len() as u64, logs.iter().map(|log| log.bytes).sum());
    let (runs, whole) = sent(&sender, &logs, output);
    bar.end();
    runs.values().for_each(|run| output.say(&run.line()));
    let total = runs.values().fold(Run::default(), |total, run| total.plus(run));
    output.say(&format!("{} logs in {} runs: {} sent, {} there already.", logs.len(), runs.len(), total.sent, total.there));
    whole?;
    Ok(u8::from(!report.is_clean() || report.named_skipped.total > 0 || total.refused > 0))
}

/// The key: the variable's, else the file's without its line break.
fn key(file: Option<&Path>) -> Result<String, CliError> {
    let usage = |text: String| CliError::Usage(text);
    let text = match (file, std::env::var(VARIABLE).ok().filter(|text| !text.is_empty())) {
        (Some(file), _) => {
            let unreadable = |error: std::io::Error| usage(format!("--key-file {}: {}", file.display(), root::reason(&error)));
            let mut text = String::new();
            std::fs::File::open(file).map_err(unreadable)?.take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
            text.trim().to_owned()
        }
        (None, Some(text)) => text,
        (None, None) => return Err(usage(format!("no key: set {VARIABLE}, or give --key-file FILE (runlore key create makes one)"))),
    };
    let fit = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fit { Ok(text) } else { Err(usage("the key must be visible ASCII characters without spaces".to_owned())) }
}

/// The logs of the project: those of its sources, and those that were imported by hand.
fn of_project(place: &Place) -> Result<(Vec<Listed>, Report), CliError> {
    let session = Session::open(place)?;
    let declared = declared::read(session.root()).map_err(|error| CliError::Usage(error.to_string()))?;
    session.indexing(|indexer| indexer.list(&declared)).map_err(|error| CliError::Refused(error.to_string()))
}

/// The logs of these paths, whether or not there is a project.
fn of_paths(paths: &[PathBuf], place: &Place) -> Result<(Vec<Listed>, Report), CliError> {
    let here = directory()?;
    let located = root::locate(place.project.as_deref(), &here).map(|located| located.root);
    let root = match (located, &place.project) {
        (Ok(root), _) => root,
        (Err(error), Some(_)) => return Err(CliError::Usage(error.to_string())),
        (Err(_), None) => std::fs::canonicalize(&here).map_err(|error| CliError::Usage(root::reason(&error)))?,
    };
    let config = Config::load(place.config.as_deref(), Some(&root)).map_err(|error| CliError::Usage(error.to_string()))?;
    let redactor = Redactor::at_import(config.redaction.at_import);
    let (limits, environment) = (config.import_limits(), environment());
    let bounds = Bounds::of(&config.index);
    let file_bytes_max = config.import.file_bytes_max;
    let indexer = Indexer { bounds, file_bytes_max, environment, ..Indexer::new(&root, &Absent, &limits, &redactor) };
    let paths: Vec<PathBuf> = paths.iter().map(|path| here.join(path)).collect();
    Ok(indexer.list_paths(&paths))
}

fn environment() -> Vec<(OsString, OsString)> {
    git::ENVIRONMENT.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))).collect()
}

fn complain(report: &Report, output: &mut Output) {
    for (word, remarks) in [("skipped", &report.named_skipped), ("complaint", &report.complaints)] {
        remarks.kept.iter().for_each(|remark| output.complain(&format!("{word}: {remark}")));
    }
}

/// What became of a run's logs.
#[derive(Debug, Clone, Default)]
struct Run {
    id: String,
    sent: u64,
    there: u64,
    refused: u64,
}

impl Run {
    fn plus(self, other: &Self) -> Self {
        let Self { id, sent, there, refused } = self;
        Self { id, sent: sent + other.sent, there: there + other.there, refused: refused + other.refused }
    }

    fn line(&self) -> String {
        let parts = [(self.sent, "sent"), (self.there, "there already"), (self.refused, "refused")];
        let parts: Vec<String> = parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
        format!("{}: {}", clean(&self.id), parts.join(", "))
    }
}

/// Sends the logs one by one, until the server is away or takes nothing of this key: then why.
fn sent(sender: &Sender<'_>, logs: &[Listed], output: &mut Output) -> (BTreeMap<String, Run>, Result<(), CliError>) {
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    for log in logs {
        sender.progress.file(&log.name);
        let (run, note) = match sender.send(log) {
            Ok(Sent { run, changed, complaints }) => {
                complaints.iter().for_each(|text| output.complain(&format!("complaint: {}: {text}", clean(&log.name))));
                (run, Ok(changed))
            }
            Err(fault) if fault.is_of_one_log() => (log.run.clone(), Err(fault)),
            Err(fault) => return (runs, Err(stopped(&fault))),
        };
        let counted = runs.entry(run.clone()).or_insert_with(|| Run { id: run, ..Run::default() });
        match note {
            Ok(true) => counted.sent += 1,
            Ok(false) => counted.there += 1,
            Err(fault) => {
                counted.refused += 1;
                output.complain(&format!("complaint: {}: {fault}", clean(&log.name)));
            }
        }
    }
    (runs, Ok(()))
}

fn stopped(fault: &Fault) -> CliError {
    // What the server does not take of this key or project it will not take the next time either.
    let again = if fault.is_final() { "" } else { "; what was sent before is there, and the same command sends the rest" };
    CliError::Refused(format!("{fault}{again}"))
}
