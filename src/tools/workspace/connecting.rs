//! What the writes of connections share: kinds with what each asks for, and the connection that an argument names.
//!
//! Promises: a directory is named relative to what the operator has opened, never upward and never absolute; what a kind does not know is refused
//! by name.
//! Does not: look at a disk: whoever syncs holds the path below the operator's directory once more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::authoring::shown;
use crate::{
    domain::connection::OFF,
    store::workspace::{Acted, Connection},
    tools::{Ctx, ToolError, arguments, write::fields::Name},
};

/// Characters of a directory's path.
const PATH_CHARS_MAX: usize = 1024;

/// What people call a connection.
pub type ConnectionName = Name<100>;
/// The argument that names one.
pub type ConnectionId = Name<100>;

/// What runs are synced from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A directory of logs on the server.
    Directory,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 1] = [Self::Directory];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
        }
    }

    /// What it is.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Directory => {
                "A directory of logs on the server, which are imported as they are written; its operator declares below which root."
            }
        }
    }

    /// The JSON Schema of its settings.
    #[must_use]
    pub fn schema(self) -> Map<String, Value> {
        match self {
            Self::Directory => arguments::input_schema::<Directory>(),
        }
    }
}

/// What a directory asks for.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Directory {
    /// The directory, relative to the project's own below the operator's root, such as logs.
    #[schemars(length(min = 1, max = 1024))]
    path: String,
}

/// The settings of a connection of this kind, as they are kept.
///
/// # Errors
/// [`ToolError::Argument`] that names the setting.
pub fn settings(kind: Kind, config: &Map<String, Value>) -> Result<Value, ToolError> {
    let wrong = |what: String| ToolError::Argument(format!("argument config: {what}"));
    match kind {
        Kind::Directory => {
            let read = serde_json::from_value::<Directory>(Value::Object(config.clone()));
            let directory = read.map_err(|error| wrong(format!("a directory takes {{\"path\"}}: {error}")))?;
            inside(&directory.path).map_err(wrong)?;
            serde_json::to_value(directory).map_err(|error| ToolError::Internal(error.to_string()))
        }
    }
}

/// Whether a path goes down from where it begins, and nowhere else.
fn inside(path: &str) -> Result<(), String> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let fault = if path.chars().count() > PATH_CHARS_MAX {
        return Err(format!("path has more than {PATH_CHARS_MAX} characters"));
    } else if path.starts_with('/') || path.contains('\\') || path.contains(':') {
        "is not relative"
    } else if path.chars().any(crate::domain::text::hidden) {
        "has characters that cannot be seen"
    } else if !path.split('/').all(plain) {
        "does not only go down"
    } else {
        return Ok(());
    };
    Err(format!("path {} {fault}; give one such as \"team/logs\", below the directory that the operator has opened", shown(path)))
}

/// The connection that `named` names, by its id or its name.
///
/// # Errors
/// [`ToolError::NotFound`] where there is none.
pub fn connection(ctx: &Ctx, named: &str) -> Result<Connection, ToolError> {
    let all = ctx.store.connections()?;
    let by_id = all.iter().position(|connection| connection.id == named);
    let place = by_id.or_else(|| all.iter().position(|connection| connection.name == named));
    let none = || {
        ToolError::NotFound(format!("argument connection: there is no connection {}; connections_list names those there are", shown(named)))
    };
    place.and_then(|place| all.into_iter().nth(place)).ok_or_else(none)
}

/// Whether this server syncs anything.
///
/// # Errors
/// [`ToolError::Said`] where it does not: a connection would wait for ever.
pub fn on(ctx: &Ctx) -> Result<(), ToolError> {
    if ctx.rules.connections_on { Ok(()) } else { Err(ToolError::Said(OFF.to_owned())) }
}

/// Whether a name is free.
///
/// # Errors
/// [`ToolError::Argument`] where it is another's.
pub fn free(ctx: &Ctx, name: &str, own: Option<&str>) -> Result<(), ToolError> {
    let taken = ctx.store.connections()?.into_iter().any(|other| other.name == name && Some(other.id.as_str()) != own);
    if taken {
        Err(ToolError::Argument(format!("argument name: there is a connection {} already; take another name", shown(name))))
    } else {
        Ok(())
    }
}

/// The connection that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    connection: String,
}

impl Done {
    /// What `acted` was about.
    #[must_use]
    pub fn of(acted: Acted) -> Option<Self> {
        match acted {
            Acted::Connection { connection } => Some(Self { connection }),
            _ => None,
        }
    }

    /// With what became of it.
    #[must_use]
    pub fn text(&self, became: &str) -> String {
        format!("connection {} {became}", shown(&self.connection))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(config: &Value) -> Result<Value, String> {
        settings(Kind::Directory, config.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_directory_goes_down_and_nowhere_else() {
        assert_eq!(said(&json!({"path": "team/logs"})), Ok(json!({"path": "team/logs"})));
        assert!(said(&json!({"path": "a..b/.c"})).is_ok());
        for path in ["", "/etc", "..", "a/../b", "a/..", "./a", "a//b", "a/", "a\\b", "c:/x", "a\u{0}b", "a\nb", &"a/".repeat(600)] {
            assert!(said(&json!({"path": path})).is_err(), "{path:?}");
        }
        assert!(
            said(&json!({"path": "/etc"})).unwrap_err().starts_with("argument config: path \"/etc\" is not relative; give one such as")
        );
        assert!(said(&json!({"path": "a", "token": "x"})).unwrap_err().contains("unknown field `token`"));
        assert!(said(&json!({"path": 7})).is_err() && said(&json!({})).is_err());
    }
}
