//! `connections_update`: another name, other settings, on or off.
//!
//! Promises: what is not named stays; settings are given whole.
//! Does not: change a connection's kind, or take back what it brought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    authoring::shown,
    connecting::{self, ConnectionId, ConnectionName, Done, Kind},
};
use crate::{
    auth::Role,
    store::workspace::{Act, Acted, Connection},
    tools::{
        Ctx, ToolError,
        write::{Does, Intent, Write, fields::Name},
    },
};

/// The tool.
pub struct ConnectionsUpdate;

/// What of which is to be other.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its id or name.
    connection: ConnectionId,
    /// Another name.
    #[serde(default)]
    name: Option<ConnectionName>,
    /// Other settings, whole.
    #[serde(default)]
    config: Option<Map<String, Value>>,
    /// Whether it is synced.
    #[serde(default)]
    enabled: Option<bool>,
}

/// Its settings from now on, where they are to be other.
fn settings(connection: &Connection, input: &Input) -> Result<Option<Value>, ToolError> {
    if input.name.is_none() && input.config.is_none() && input.enabled.is_none() {
        return Err(ToolError::Argument("nothing is to be other: give name, config or enabled".to_owned()));
    }
    let Some(config) = &input.config else { return Ok(None) };
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == connection.kind);
    let kind = kind.ok_or_else(|| ToolError::Said(format!("a connection of the kind {} is not known here", shown(&connection.kind))))?;
    connecting::settings(kind, config).map(Some)
}

impl Write for ConnectionsUpdate {
    const NAME: &'static str = "connections_update";
    const TITLE: &'static str = "Change a connection";
    const DOC: &'static str =
        "Changes a connection's name or settings, or switches it on or off. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["admin:workspace"], &["resources:read"], &["resources:write"]];
    const ROLE: Role = Role::Admin;
    const DOES: Does = Does::UpdateConnection;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let connection = connecting::connection(ctx, input.connection.get())?;
        let settings = settings(&connection, input)?;
        let mut effects = Vec::new();
        if let Some(name) = &input.name {
            connecting::free(ctx, name.get(), Some(&connection.id))?;
            effects.push(format!("It is called {} instead of {}.", shown(name.get()), shown(&connection.name)));
        }
        if let Some(settings) = settings {
            effects.push(format!(
                "Runs are synced from {} instead of {}.",
                shown(&settings.to_string()),
                shown(&connection.config.to_string())
            ));
        }
        if let Some(enabled) = input.enabled {
            effects.push(format!("It is {}.", if enabled { "synced" } else { "synced no more; what it brought stays" }));
        }
        Ok(Intent { summary: format!("Change the connection {}.", shown(&connection.name)), effects })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let connection = connecting::connection(ctx, input.connection.get())?;
        let config = settings(&connection, &input)?;
        Ok(Act::UpdateConnection { connection: connection.id, name: input.name.map(Name::into_string), config, enabled: input.enabled })
    }

    fn done(acted: Acted) -> Option<Done> {
        Done::of(acted)
    }

    fn text(done: &Done) -> String {
        done.text("is changed")
    }
}
