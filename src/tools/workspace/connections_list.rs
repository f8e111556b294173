//! `connections_list`: the sources that runs are synced from, with their settings and how they stand.
//!
//! Promises: settings are as they are kept: whatever is secret in them was never kept.
//! Does not: say what a look complained of: those are names of files, and `connector_health` has them.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Standing;
use crate::{
    domain::time::Timestamp,
    store::workspace::Connection,
    tools::{
        Ctx, Tool, ToolError, Toolset,
        arguments::Bounded,
        cursor::List,
        render::{self, Grid, Style},
    },
};

/// The tool.
pub enum ConnectionsList {}

/// The arguments of `connections_list`.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// How many connections a page has.
    #[arg(long, value_name = "N", default_value_t)]
    #[serde(default)]
    pub limit: Bounded<1, 100, 20>,
    /// The nextCursor of the answer before, with the same other arguments.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The result of `connections_list`.
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
    /// What to give as `cursor` for the next page.
    pub next_cursor: Option<String>,
    /// What else should be known.
    pub note: Option<String>,
}

/// A source.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its id.
    pub connection: String,
    /// Its kind.
    pub kind: String,
    /// What people call it.
    pub name: String,
    /// Its settings.
    pub config: serde_json::Value,
    /// Whether it is synced.
    pub enabled: bool,
    /// How it stands.
    pub standing: Standing,
    /// When a look last ended without an error of the whole.
    pub last_sync_at: Option<Timestamp>,
    /// When somebody asked for a look that has not been made.
    pub asked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
}

impl From<Connection> for Row {
    fn from(one: Connection) -> Self {
        Self {
            standing: Standing::of(&one),
            last_sync_at: one.health.and_then(|health| health.good_at),
            connection: one.id,
            kind: one.kind,
            name: one.name,
            config: one.config,
            enabled: one.enabled,
            asked_at: one.asked_at,
            created_at: one.created_at,
            created_by: one.created_by,
        }
    }
}

impl Tool for ConnectionsList {
    const NAME: &'static str = "connections_list";
    const VERB: &'static str = "connections-list";
    const TITLE: &'static str = "Connections";
    const ABOUT: &'static str = "The sources that runs are synced from";
    const DOC: &'static str = "Lists the sources that runs are synced from: their kind, settings, whether they are synced, when they last were, and how they stand.";
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    const SCOPES: &'static [&'static [&'static str]] = &[&["resources:read"]];
    const RELEASED: bool = true;
    const NARROWS: &'static str = "limit";
    type Input = Input;
    type Output = Output;

    fn call(ctx: &Ctx, input: Input) -> Result<Output, ToolError> {
        let list = List::of(ctx, Self::NAME, &input);
        let after = list.place::<String>(input.cursor.as_deref())?;
        let mut all = ctx.store.connections()?;
        let total = all.len();
        all.retain(|one| after.as_ref().is_none_or(|after| one.name > *after));
        let complete = all.len() <= input.limit.count();
        all.truncate(input.limit.count());
        let next_cursor = all.last().filter(|_| !complete).map(|last| list.at(&last.name));
        let note = (total == 0).then(|| "There are no connections; connections_catalog says which kinds there are.".to_owned());
        Ok(Output { returned: all.len(), connections: all.into_iter().map(Into::into).collect(), total, complete, next_cursor, note })
    }

    fn note(output: &mut Output) -> &mut Option<String> {
        &mut output.note
    }

    fn text(output: &Output, style: &Style) -> String {
        let note = output.note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        if output.connections.is_empty() {
            return note.trim_start().to_owned();
        }
        let mut grid = Grid::new(style, &["name", "connection", "kind", "stands", "last sync (UTC)", "settings"]);
        for one in output.connections.iter().take(render::ROWS_SHOWN) {
            grid.row([
                one.name.clone().into(),
                one.connection.clone().into(),
                one.kind.clone().into(),
                one.standing.word().into(),
                one.last_sync_at.map_or_else(|| "-".to_owned(), render::short_time).into(),
                one.config.to_string().into(),
            ]);
        }
        grid.text() + &render::more(output.returned.min(render::ROWS_SHOWN), output.total as u64) + &note
    }
}
