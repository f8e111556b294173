//! `connections_delete`: a source is synced no more.
//!
//! Promises: what it brought stays.
//! Does not: touch the source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    authoring::shown,
    connecting::{self, ConnectionId, Done},
};
use crate::{
    auth::Role,
    store::workspace::{Act, Acted},
    tools::{
        Ctx, ToolError,
        write::{Does, Intent, Write},
    },
};

/// The tool.
pub struct ConnectionsDelete;

/// Which.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its id or name.
    connection: ConnectionId,
}

impl Write for ConnectionsDelete {
    const NAME: &'static str = "connections_delete";
    const TITLE: &'static str = "Delete a connection";
    const DOC: &'static str =
        "Deletes a connection; the runs that it brought stay. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["admin:workspace"], &["resources:write"]];
    const ROLE: Role = Role::Admin;
    const DESTRUCTIVE: bool = true;
    const DOES: Does = Does::DeleteConnection;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let connection = connecting::connection(ctx, input.connection.get())?;
        Ok(Intent {
            summary: format!("Delete the connection {}.", shown(&connection.name)),
            effects: vec![
                "It is gone with its settings and its health; nothing more is synced from it, and the runs that it brought stay."
                    .to_owned(),
            ],
        })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        Ok(Act::DeleteConnection { connection: connecting::connection(ctx, input.connection.get())?.id })
    }

    fn done(acted: Acted) -> Option<Done> {
        Done::of(acted)
    }

    fn text(done: &Done) -> String {
        done.text("is deleted")
    }
}
