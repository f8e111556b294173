//! `runlore baseline`: which run is the reference, and which were before.
//!
//! Promises: an acceptance is a person's, with a name and a time; none takes another away, it only supersedes it.
//! Does not: judge the run: `runlore compare` and `run-explain` show what speaks for it.

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use serde_json::{Value, json};

use super::{
    CliError,
    output::Output,
    session::Place,
    workplace::{WorkArgs, arguments},
};
use crate::{
    store::workspace::{Act, Acted, BaselineRow},
    tools::render::{Grid, clean},
};

/// Bytes of a note.
const NOTE_BYTES_MAX: usize = 2000;

/// The arguments of `runlore baseline`.
#[derive(Debug, Clone, Args)]
struct BaselineArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make a run the reference, for one of its evaluations or for the project.
    Accept {
        /// The run: latest, latest~N, an id, the beginning of one, or a Git sha.
        #[arg(value_name = "RUN")]
        run: String,
        /// The evaluation that it is the reference for; without it, the project.
        #[arg(long, value_name = "ID")]
        evaluation: Option<String>,
        /// Why.
        #[arg(long, value_name = "TEXT", value_parser = note)]
        note: Option<String>,
        /// Where.
        #[command(flatten)]
        work: WorkArgs,
    },
    /// List the acceptances, the newest first.
    List {
        /// Those for this evaluation and for the project only.
        #[arg(long, value_name = "ID")]
        evaluation: Option<String>,
        /// Where.
        #[command(flatten)]
        work: WorkArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

fn note(text: &str) -> Result<String, String> {
    let good = !text.trim().is_empty() && text.len() <= NOTE_BYTES_MAX;
    good.then(|| text.to_owned()).ok_or_else(|| format!("give a text of 1 to {NOTE_BYTES_MAX} bytes"))
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    BaselineArgs::augment_args(Command::new("baseline")).about("Accepts a run as the reference, and lists what was accepted")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = BaselineArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    match args.action {
        Action::Accept { run, evaluation, note, work } => {
            let project = work.open(place, true)?;
            let run_id = project.run(&run)?.run_id;
            let said = arguments([("run", json!(run_id)), ("evaluation", json!(evaluation)), ("note", json!(note))]);
            let acted = project.act("baseline accept", &said, Act::AcceptBaseline { run_id, evaluation, note })?;
            output.say(&sentence(&acted));
        }
        Action::List { evaluation, work, json } => {
            let rows = work.open(place, false)?.store().baselines(evaluation.as_deref());
            let rows = rows.map_err(|error| CliError::Refused(error.to_string()))?;
            if json { output.json(&Value::from_iter(rows.iter().map(row)).to_string()) } else { output.say(&table(&rows, output)) }
        }
    }
    Ok(0)
}

fn sentence(acted: &Acted) -> String {
    let Acted::Baseline { run_id, evaluation, replaces } = acted else { return "Done.".to_owned() };
    let whose = evaluation.as_ref().map_or_else(|| "the project".to_owned(), |id| format!("evaluation {}", clean(id)));
    let before = replaces.as_ref().map(|run| format!(", in the place of {}", clean(run))).unwrap_or_default();
    format!("Run {} is the baseline of {whose}{before}.", clean(run_id))
}

fn row(row: &BaselineRow) -> Value {
    json!({
        "run": row.run_id,
        "evaluation": row.evaluation,
        "acceptedAt": row.accepted_at,
        "acceptedBy": row.accepted_by,
        "note": row.note,
        "replaces": row.replaces,
        "supersededAt": row.superseded_at,
        "present": row.present,
    })
}

fn table(rows: &[BaselineRow], output: &Output) -> String {
    let mut grid = Grid::new(&output.style(), &["evaluation", "run", "accepted", "by", "note", "state"]);
    for row in rows {
        let state = match (row.superseded_at, row.present) {
            (Some(at), _) => format!("superseded {}", at.rfc3339()),
            (None, true) => "holds".to_owned(),
            (None, false) => "holds, and its run is gone".to_owned(),
        };
        let evaluation = row.evaluation.clone().unwrap_or_else(|| "(project)".to_owned());
        let note = row.note.clone().unwrap_or_default();
        let cells = [evaluation, row.run_id.clone(), row.accepted_at.rfc3339(), row.accepted_by.clone(), note, state];
        grid.row(cells.into_iter().map(Into::into));
    }
    grid.text()
}
