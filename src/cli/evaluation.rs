//! `runlore evaluation`: which evaluations can be started, and which nobody may change.
//!
//! Promises: each change is in the trail under the name of this machine's user.
//! Does not: write an evaluation or a case: `evaluations_create` and `test_cases_add` do, with an approval.

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use serde_json::{Value, json};

use super::{
    CliError,
    output::Output,
    session::Place,
    workplace::{WorkArgs, arguments},
};
use crate::{
    store::workspace::{Act, Acted, Authored, AuthoredQuery, EvaluationStatus},
    tools::render::{Grid, clean},
};

/// Bytes of a reason.
const REASON_BYTES_MAX: usize = 2000;

/// The arguments of `runlore evaluation`.
#[derive(Debug, Clone, Args)]
struct EvaluationArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Let it be started.
    Activate(One),
    /// Keep it for its history: it cannot be started any more.
    Archive(One),
    /// Make it a draft again: it cannot be started until it is activated.
    Draft(One),
    /// Let nobody add cases to it or start it.
    Lock {
        /// Which one, and where.
        #[command(flatten)]
        one: One,
        /// Why; whoever is refused reads it.
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: String,
    },
    /// Open it again.
    Unlock(One),
    /// List the evaluations, the newest first.
    List {
        /// Those whose id or name contains this only.
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
        /// Those of this status only.
        #[arg(long, value_name = "WORD")]
        status: Option<EvaluationStatus>,
        /// At most so many.
        #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Where.
        #[command(flatten)]
        work: WorkArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Args)]
struct One {
    /// The evaluation's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Where.
    #[command(flatten)]
    work: WorkArgs,
}

fn reason(text: &str) -> Result<String, String> {
    let good = !text.trim().is_empty() && text.len() <= REASON_BYTES_MAX;
    good.then(|| text.to_owned()).ok_or_else(|| format!("give a text of 1 to {REASON_BYTES_MAX} bytes"))
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    EvaluationArgs::augment_args(Command::new("evaluation")).about("Activates, archives and locks evaluations, and lists them")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = EvaluationArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    let status = |one: One, verb: &str, status| {
        let act = Act::SetStatus { evaluation: one.id.clone(), status };
        written(&one, place, verb, None, act)
    };
    let said = match args.action {
        Action::Activate(one) => status(one, "evaluation activate", EvaluationStatus::Active)?,
        Action::Archive(one) => status(one, "evaluation archive", EvaluationStatus::Archived)?,
        Action::Draft(one) => status(one, "evaluation draft", EvaluationStatus::Draft)?,
        Action::Lock { one, reason } => {
            let act = Act::SetLock { evaluation: one.id.clone(), reason: Some(reason.clone()) };
            written(&one, place, "evaluation lock", Some(reason), act)?;
            format!("Evaluation {} is locked.", clean(&one.id))
        }
        Action::Unlock(one) => {
            let act = Act::SetLock { evaluation: one.id.clone(), reason: None };
            written(&one, place, "evaluation unlock", None, act)?;
            format!("Evaluation {} is open.", clean(&one.id))
        }
        Action::List { filter, status, limit, work, json } => {
            let project = work.open(place, false)?;
            let query = AuthoredQuery { contains: filter.as_deref(), status, limit: limit.into(), ..AuthoredQuery::default() };
            let (rows, total) = project.store().authored(&query).map_err(|error| CliError::Refused(error.to_string()))?;
            if json {
                output.json(&json!({"rows": rows.iter().map(row).collect::<Vec<_>>(), "returned": rows.len(), "total": total}).to_string());
                return Ok(0);
            }
            let more = if total > rows.len() as u64 { format!("\n{} of {total}; --limit shows more.", rows.len()) } else { String::new() };
            table(&rows, output) + &more
        }
    };
    output.say(&said);
    Ok(0)
}

fn written(one: &One, place: &Place, verb: &str, reason: Option<String>, act: Act) -> Result<String, CliError> {
    let said = arguments([("evaluation", json!(one.id)), ("reason", json!(reason))]);
    match one.work.open(place, false)?.act(verb, &said, act)? {
        Acted::Evaluation { evaluation, status, .. } => Ok(format!("Evaluation {} is {}.", clean(&evaluation), status.word())),
        _ => Ok("Done.".to_owned()),
    }
}

fn row(row: &Authored) -> Value {
    let lock = row.lock.as_ref().map(|lock| json!({"by": lock.by, "at": lock.at, "reason": lock.reason}));
    json!({
        "id": row.id, "number": row.number, "name": row.name, "family": row.family, "threshold": row.threshold,
        "status": row.status, "authored": row.authored, "createdAt": row.created_at, "createdBy": row.created_by,
        "lock": lock, "cases": row.cases, "runs": row.runs,
    })
}

fn table(rows: &[Authored], output: &Output) -> String {
    let mut grid = Grid::new(&output.style(), &["evaluation", "number", "status", "cases", "runs", "created", "lock"]);
    for row in rows {
        let lock = row.lock.as_ref().map(|lock| format!("by {}: {}", lock.by, lock.reason)).unwrap_or_default();
        let (number, cases, runs) = (row.number.to_string(), row.cases.to_string(), row.runs.to_string());
        let cells = [row.id.clone(), number, row.status.word().to_owned(), cases, runs, row.created_at.rfc3339(), lock];
        grid.row(cells.into_iter().map(Into::into));
    }
    grid.text()
}
