//! `runlore queue`: the runs that wait or are being done.
//!
//! Promises: a run that waits is taken back at once; one that is being done is stopped by its worker within a poll.
//! Does not: start a run (`runs_start` does, with an approval), or do one (`runlore worker` does).

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use serde_json::{Value, json};

use super::{
    CliError,
    output::Output,
    session::Place,
    workplace::{WorkArgs, arguments},
};
use crate::{
    domain::{log::RunStatus, time::Timestamp},
    store::workspace::{Act, Acted, Queued},
    tools::render::{Grid, clean},
};

/// The arguments of `runlore queue`.
#[derive(Debug, Clone, Args)]
struct QueueArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List the runs that have not ended, the oldest first.
    List {
        /// Where.
        #[command(flatten)]
        work: WorkArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take a run back, or stop it.
    Cancel {
        /// The run's id.
        #[arg(value_name = "RUN")]
        run: String,
        /// Where.
        #[command(flatten)]
        work: WorkArgs,
    },
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    QueueArgs::augment_args(Command::new("queue")).about("Lists the runs that wait or are being done, and cancels them")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = QueueArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    match args.action {
        Action::List { work, json } => {
            let queued = work.open(place, false)?.store().queued(&[]).map_err(|error| CliError::Refused(error.to_string()))?;
            let mut rows: Vec<&Queued> = queued.values().collect();
            rows.sort_by(|a, b| (a.created_at, &a.run_id).cmp(&(b.created_at, &b.run_id)));
            if json { output.json(&Value::from_iter(rows.into_iter().map(row)).to_string()) } else { output.say(&table(&rows, output)) }
        }
        Action::Cancel { run, work } => {
            let said = arguments([("run", json!(run))]);
            let acted = work.open(place, false)?.act("queue cancel", &said, Act::CancelRun { run_id: run })?;
            output.say(&sentence(&acted));
        }
    }
    Ok(0)
}

fn sentence(acted: &Acted) -> String {
    match acted {
        Acted::Run { run_id, status: RunStatus::Cancelled } => format!("Run {} is cancelled.", clean(run_id)),
        Acted::Run { run_id, .. } => format!("Run {} is being done; its worker stops it soon.", clean(run_id)),
        _ => "Done.".to_owned(),
    }
}

fn row(run: &Queued) -> Value {
    json!({
        "run": run.run_id, "evaluation": run.evaluation, "arm": run.arm, "environment": run.environment, "status": run.status,
        "createdAt": run.created_at, "createdBy": run.created_by, "startedAt": run.started_at, "worker": run.worker,
        "leaseUntil": run.lease_until, "tries": run.tries, "cancelling": run.cancelling, "done": run.done, "total": run.total,
        "costUsd": run.cost_usd, "maxCostUsd": run.max_cost_usd,
    })
}

fn table(rows: &[&Queued], output: &Output) -> String {
    let mut grid = Grid::new(&output.style(), &["run", "evaluation", "arm", "environment", "status", "done", "queued", "by", "worker"]);
    for run in rows {
        let status = if run.cancelling { "cancelling" } else { run.status.word() };
        let (done, queued) = (format!("{}/{}", run.done, run.total), Timestamp::rfc3339(run.created_at));
        let worker = run.worker.clone().unwrap_or_default();
        let (evaluation, arm, environment) = (run.evaluation.clone(), run.arm.clone(), run.environment.clone());
        let cells = [run.run_id.clone(), evaluation, arm, environment, status.to_owned(), done, queued, run.created_by.clone(), worker];
        grid.row(cells.into_iter().map(Into::into));
    }
    grid.text()
}
