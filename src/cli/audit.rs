//! `runlore audit`: who did what in a project, and who was refused.
//!
//! Promises: the trail as it is kept, the newest first; nothing here can change it.
//! Does not: show what was written, only its digest: a question of a case can be a secret.

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use serde_json::json;

use super::{CliError, output::Output, session::Place, workplace::WorkArgs};
use crate::{
    clock,
    domain::{attempt::shorten, time::since},
    store::workspace::{AuditQuery, AuditRow},
    tools::render::Grid,
};

/// Characters of a digest that a table shows; `--json` has it whole.
const DIGEST_BYTES: usize = 12;
/// Bytes of what was done that a table shows; `--json` has it whole.
const DETAIL_BYTES: usize = 200;

/// The arguments of `runlore audit`.
#[derive(Debug, Clone, Args)]
struct AuditArgs {
    /// Only what this actor did: a key's or subject's id, or local:USER.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only this tool or verb, such as runs_start or "baseline accept".
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only this outcome.
    #[arg(long, value_name = "WORD", value_parser = ["ok", "repeated", "refused", "denied"])]
    outcome: Option<String>,
    /// Only since then: an age such as 7d or 12h, a date, or a time.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only before this number: the last of the page before.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Where.
    #[command(flatten)]
    work: WorkArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    AuditArgs::augment_args(Command::new("audit")).about("Shows who did what in a project, by which tool, and who was refused")
}

/// Shows the trail.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = AuditArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    let since = args.since.as_deref().map(|text| since(text, clock::now())).transpose();
    let query = AuditQuery {
        actor: args.actor.as_deref(),
        tool: args.tool.as_deref(),
        outcome: args.outcome.as_deref(),
        since: since.map_err(|why| CliError::Usage(format!("--since: {why}")))?,
        before: args.before,
        limit: args.limit.into(),
    };
    let (rows, total) = args.work.open(place, false)?.store().audit(&query).map_err(|error| CliError::Refused(error.to_string()))?;
    if args.json {
        output.json(&json!({"rows": rows, "returned": rows.len(), "total": total}).to_string());
        return Ok(0);
    }
    output.say(&table(&rows, output));
    if let Some(last) = rows.last().filter(|_| rows.len() < usize::try_from(total).unwrap_or(usize::MAX)) {
        output.say(&format!("{} of {total}; --before {} goes on.", rows.len(), last.number));
    }
    Ok(0)
}

fn table(rows: &[AuditRow], output: &Output) -> String {
    let mut grid = Grid::new(&output.style(), &["number", "at", "actor", "role", "tool", "outcome", "detail", "digest", "address"]);
    for row in rows {
        let digest = row.digest.get(..DIGEST_BYTES).unwrap_or(&row.digest).to_owned();
        let (detail, address) = (shorten(&row.detail, DETAIL_BYTES), row.address.clone().unwrap_or_default());
        let (actor, role, tool, outcome) = (row.actor.clone(), row.role.clone(), row.tool.clone(), row.outcome.clone());
        let cells = [row.number.to_string(), row.at.rfc3339(), actor, role, tool, outcome, detail, digest, address];
        grid.row(cells.into_iter().map(Into::into));
    }
    grid.text()
}
