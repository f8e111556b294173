//! `connections_sync`: a source is looked at soon, rather than when its turn comes.
//!
//! Promises: one that is switched off is refused.
//! Does not: wait for the look; connector_health says what it came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    authoring::shown,
    connecting::{self, ConnectionId, Done},
};
use crate::{
    auth::Role,
    store::workspace::{Act, Acted, Connection, rules},
    tools::{
        Ctx, ToolError,
        write::{Does, Intent, Write},
    },
};

/// The tool.
pub struct ConnectionsSync;

/// Which.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its id or name.
    connection: ConnectionId,
}

fn enabled(ctx: &Ctx, named: &str) -> Result<Connection, ToolError> {
    connecting::on(ctx)?;
    let connection = connecting::connection(ctx, named)?;
    if connection.enabled {
        return Ok(connection);
    }
    Err(rules::connection_off(&connection.name).into())
}

impl Write for ConnectionsSync {
    const NAME: &'static str = "connections_sync";
    const TITLE: &'static str = "Sync a connection";
    const DOC: &'static str =
        "Has a connection looked at soon; connector_health says what that came to. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["admin:workspace"]];
    const ROLE: Role = Role::Admin;
    const DOES: Does = Does::SyncConnection;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let connection = enabled(ctx, input.connection.get())?;
        Ok(Intent {
            summary: format!("Sync the connection {} now.", shown(&connection.name)),
            effects: vec!["Runs that are new at the source come into the project.".to_owned()],
        })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        Ok(Act::SyncConnection { connection: enabled(ctx, input.connection.get())?.id })
    }

    fn done(acted: Acted) -> Option<Done> {
        Done::of(acted)
    }

    fn text(done: &Done) -> String {
        done.text("is looked at soon")
    }
}
