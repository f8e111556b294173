//! `connector_health`: what the last look at each source came to: when, how long, how far behind, what could not be read.
//!
//! Promises: as it is at the moment of the call, so it is never kept; at most twenty complaints of each source, with how many there were.
//! Does not: look at a source; `connections_sync` asks for a look.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Standing;
use crate::{
    auth::Role,
    domain::{attempt::shorten, text::clean, time::Timestamp},
    store::workspace::Connection,
    tools::{
        Ctx, Tool, ToolError, Toolset,
        render::{self, Grid, Style},
    },
};

/// Sources that one answer has.
const ROWS: usize = 100;
/// Complaints of each that a text shows.
const SHOWN: usize = 5;

/// The tool.
pub enum ConnectorHealth {}

/// The arguments of `connector_health`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only this connection, by id or name; without it, all.
    #[arg(value_name = "CONNECTION")]
    #[serde(default)]
    pub connection: Option<String>,
}

/// The result of `connector_health`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// By name.
    pub connections: Vec<Row>,
    /// How many are here.
    pub returned: usize,
    /// How many there are.
    pub total: usize,
    /// Whether the last one is here.
    pub complete: bool,
    /// What else should be known.
    pub note: Option<String>,
}

/// How a source stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its id.
    pub connection: String,
    /// What people call it.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How it stands, in a word.
    pub standing: Standing,
    /// When the last look began.
    pub looked_at: Option<Timestamp>,
    /// When a look last ended without an error of the whole.
    pub last_sync_at: Option<Timestamp>,
    /// How long ago that is.
    pub lag_ms: Option<i64>,
    /// How long the last look took.
    pub duration_ms: Option<u64>,
    /// Logs that are in.
    pub logs: Option<u64>,
    /// When the newest file that was seen was written.
    pub newest_file_at: Option<Timestamp>,
    /// When somebody asked for a look that has not been made.
    pub asked_at: Option<Timestamp>,
    /// Why nothing could be looked at.
    pub error: Option<String>,
    /// What could not be read, at most twenty.
    pub complaints: Vec<String>,
    /// How many there were.
    pub complaints_total: u64,
}

impl Row {
    fn of(one: Connection, now: Timestamp) -> Self {
        let standing = Standing::of(&one);
        let had = one.health.is_some();
        let health = one.health.unwrap_or_default();
        Self {
            standing,
            connection: one.id,
            name: one.name,
            kind: one.kind,
            asked_at: one.asked_at,
            looked_at: had.then_some(health.at),
            last_sync_at: health.good_at,
            lag_ms: health.good_at.map(|at| now.millis().saturating_sub(at.millis()).max(0)),
            duration_ms: had.then_some(health.duration_ms),
            logs: had.then_some(health.logs),
            newest_file_at: health.newest_file_at,
            error: health.error,
            complaints: health.complaints,
            complaints_total: health.complaints_total,
        }
    }
}

impl Tool for ConnectorHealth {
    const NAME: &'static str = "connector_health";
    const VERB: &'static str = "connector-health";
    const TITLE: &'static str = "Health of connections";
    const ABOUT: &'static str = "When each source was last synced, and what it complains of";
    const DOC: &'static str = "Says of each source that runs are synced from when it was last looked at, how long ago the last good look was, and what could not be read.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["admin:workspace"]];
    const ROLE: Role = Role::Admin;
    const RELEASED: bool = true;
    const NARROWS: &'static str = "connection";
    const CACHEABLE: bool = false;
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let mut all = ctx.store.connections()?;
        if let Some(wanted) = &input.connection {
            all.retain(|one| one.id == *wanted || one.name == *wanted);
            if all.is_empty() {
                let wanted = clean(&shorten(wanted, 80));
                return Err(ToolError::NotFound(format!("there is no connection \"{wanted}\"; connections_list has them")));
            }
        }
        let total = all.len();
        let connections: Vec<Row> = all.into_iter().take(ROWS).map(|one| Row::of(one, ctx.now)).collect();
        let note = (total == 0).then(|| "There are no connections; connections_catalog says which kinds there are.".to_owned());
        Ok(Output { returned: connections.len(), complete: connections.len() == total, connections, total, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let mut parts = Vec::new();
        if !output.connections.is_empty() {
            let mut grid = Grid::new(style, &["name", "kind", "stands", "last sync (UTC)", "logs", "complaints"]);
            for one in output.connections.iter().take(render::ROWS_SHOWN) {
                grid.row([
                    one.name.clone().into(),
                    one.kind.clone().into(),
                    one.standing.word().into(),
                    one.last_sync_at.map_or_else(|| "-".to_owned(), render::short_time).into(),
                    one.logs.map_or_else(|| "-".to_owned(), |logs| logs.to_string()).into(),
                    one.complaints_total.to_string().into(),
                ]);
            }
            parts.push(grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64));
        }
        for one in &output.connections {
            let said = one.error.iter().chain(one.complaints.iter().take(SHOWN));
            parts.extend(said.map(|said| format!("{}: {}", render::clean(&one.name), render::one_line(said))));
        }
        parts.extend(output.note.clone());
        parts.join("\n")
    }
}
