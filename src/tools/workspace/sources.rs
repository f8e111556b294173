//! What the reads of connections share: how a connection stands, in a word.
//!
//! Promises: one rule for the word, wherever it is shown.
//! Does not: look at a source (whoever syncs it does, and says what it came to).

use schemars::JsonSchema;
use serde::Serialize;

use crate::store::workspace::Connection;

/// How a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is not synced.
    Disabled,
    /// Nobody has looked at it yet.
    New,
    /// The last look could not be made.
    Failing,
    /// The last look found files that could not be read.
    Complaints,
    /// The last look was good.
    Well,
}

impl Standing {
    /// That of `connection`.
    #[must_use]
    pub fn of(connection: &Connection) -> Self {
        match &connection.health {
            _ if !connection.enabled => Self::Disabled,
            None => Self::New,
            Some(health) if health.error.is_some() => Self::Failing,
            Some(health) if health.complaints_total > 0 => Self::Complaints,
            Some(_) => Self::Well,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::New => "new",
            Self::Failing => "failing",
            Self::Complaints => "complaints",
            Self::Well => "well",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{domain::time::Timestamp, store::workspace::Health};

    #[test]
    fn the_word_is_the_worst_that_is_known() {
        let at = Timestamp::from_millis(0);
        let connection = |enabled, health| Connection {
            id: "c".into(),
            kind: "directory".into(),
            name: "n".into(),
            config: serde_json::Value::Null,
            enabled,
            created_at: at,
            created_by: "k".into(),
            asked_at: None,
            health,
        };
        let complaints = Health { complaints_total: 1, ..Health::default() };
        let failing = Health { error: Some("gone".into()), ..complaints.clone() };
        let words = [
            (false, Some(failing.clone())),
            (true, None),
            (true, Some(failing)),
            (true, Some(complaints)),
            (true, Some(Health::default())),
        ];
        let words = words.map(|(enabled, health)| Standing::of(&connection(enabled, health)).word());
        assert_eq!(words, ["disabled", "new", "failing", "complaints", "well"]);
    }
}
