//! `runlore prune`: runs that are old enough go (retention), by age and by how many newer ones there are of the same evaluations.
//!
//! Promises: a run goes only if each of its evaluations has `--keep` newer runs that have ended, and it is older than `--older-than`; never a
//! baseline, one that has not ended, or one whose file would be read again. Each goes in one transaction with its row of the trail, so that what was
//! done is done, whatever comes after.
//! Does not: delete logs: what stands in a directory that is looked at is deleted there.

use std::collections::HashMap;

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use serde_json::json;

use super::{
    CliError,
    output::Output,
    session::Place,
    workplace::{WorkArgs, Workplace, arguments},
};
use crate::{
    clock,
    domain::time::{Timestamp, since},
    store::{Run, RunPoint, RunQuery, workspace::Act},
    tools::render::clean,
};

/// Runs that are read at once.
const PAGE: usize = 500;

/// The arguments of `runlore prune`.
#[derive(Debug, Clone, Args)]
struct PruneArgs {
    /// Only runs created before this: an age such as 90d or 12w, a date, or a time.
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// How many of the newest runs of each evaluation stay, however old.
    #[arg(long, value_name = "N", default_value_t = 20)]
    keep: usize,
    /// Say what would go, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Where.
    #[command(flatten)]
    work: WorkArgs,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    PruneArgs::augment_args(Command::new("prune")).about("Takes out runs that are old enough, by age and count; never a baseline")
}

/// Prunes.
///
/// # Errors
/// [`CliError`] where the project cannot be opened, read or written.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = PruneArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    let now = clock::now();
    let before = args.older_than.as_deref().map(|text| since(text, now)).transpose();
    let before = before.map_err(|fault| CliError::Usage(format!("--older-than: {fault}")))?.unwrap_or(now);
    let project = args.work.open(place, true)?;
    let old = old(&project, before, args.keep)?;
    if args.dry_run {
        for run in &old {
            output.say(&format!("{} of {} would go", clean(&run.run_id), run.created_at.rfc3339()));
        }
        output.say(&format!("{} would go, unless they are baselines or their files are looked at.", counted(old.len())));
        return Ok(0);
    }
    let mut gone = 0;
    for run in old {
        let said = arguments([("run", json!(run.run_id))]);
        match project.act("prune", &said, Act::ForgetRun { run_id: run.run_id }) {
            Ok(_) => gone += 1,
            Err(CliError::Refused(why)) => output.say(&format!("Stays: {why}.")),
            Err(error) => return Err(error),
        }
    }
    output.say(&format!("{} went.", counted(gone)));
    Ok(0)
}

fn counted(number: usize) -> String {
    if number == 1 { "1 run".to_owned() } else { format!("{number} runs") }
}

/// Those that may go, the oldest first.
fn old(project: &Workplace, before: Timestamp, keep: usize) -> Result<Vec<Run>, CliError> {
    let refused = |error: crate::store::Error| CliError::Refused(error.to_string());
    let mut newer: HashMap<String, usize> = HashMap::new();
    let (mut old, mut cursor) = (Vec::new(), None);
    loop {
        let query = RunQuery { before: cursor.take(), limit: PAGE, ..RunQuery::default() };
        let (page, _) = project.store().runs(&query).map_err(refused)?;
        cursor = page.last().map(|run| RunPoint { created_at: run.created_at, run_id: run.run_id.clone() });
        let last = page.len() < PAGE;
        for run in page.into_iter().filter(|run| run.status.ended()) {
            let evaluations = project.store().evaluations(&run.run_id).map_err(refused)?;
            // A run of no evaluation has nothing that another could stand for.
            let enough = evaluations.iter().all(|one| newer.get(&one.info.id).is_some_and(|count| *count >= keep) || keep == 0);
            if enough && run.created_at < before && (keep == 0 || !evaluations.is_empty()) {
                old.push(run);
            } else {
                evaluations.into_iter().for_each(|one| *newer.entry(one.info.id).or_default() += 1);
            }
        }
        if last {
            old.reverse();
            return Ok(old);
        }
    }
}
