//! `connections_create`: a source that runs are synced from.
//!
//! Promises: it takes no program and no address: a kind that the server knows, and what that kind asks for.
//! Does not: look at the source; a worker does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    authoring::shown,
    connecting::{self, ConnectionName, Done, Kind},
};
use crate::{
    auth::Role,
    clock,
    domain::hex::hex,
    store::workspace::{Act, Acted},
    tools::{
        Ctx, ToolError,
        write::{Does, Intent, Write},
    },
};

/// The tool.
pub struct ConnectionsCreate;

/// The connection.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its kind, as connections_catalog has them.
    kind: Kind,
    /// What people call it, unique in the project.
    name: ConnectionName,
    /// What its kind asks for; a directory: path, below the directory that the operator has opened.
    config: Map<String, Value>,
}

impl Write for ConnectionsCreate {
    const NAME: &'static str = "connections_create";
    const TITLE: &'static str = "Create a connection";
    const DOC: &'static str =
        "Creates a connection: a source that the server syncs runs from. Needs approval: the first call says what would be done.";
    const SCOPES: &'static [&'static [&'static str]] = &[&["admin:workspace"], &["resources:write"]];
    const ROLE: Role = Role::Admin;
    const DOES: Does = Does::CreateConnection;

    type Input = Input;
    type Done = Done;

    fn intent(ctx: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        connecting::on(ctx)?;
        let settings = connecting::settings(input.kind, &input.config)?;
        let name = input.name.get();
        connecting::free(ctx, name, None)?;
        Ok(Intent {
            summary: format!("Create the connection {} ({}).", shown(name), input.kind.word()),
            effects: vec![format!("The server syncs runs into this project from {}.", shown(&settings.to_string()))],
        })
    }

    fn act(_: &Ctx, input: Input) -> Result<Act, ToolError> {
        let config = connecting::settings(input.kind, &input.config)?;
        let id = clock::random::<8>().map_err(ToolError::Internal)?;
        Ok(Act::CreateConnection {
            id: format!("con-{}", hex(&id)),
            kind: input.kind.word().to_owned(),
            name: input.name.into_string(),
            config,
        })
    }

    fn done(acted: Acted) -> Option<Done> {
        Done::of(acted)
    }

    fn text(done: &Done) -> String {
        done.text("is made")
    }
}
