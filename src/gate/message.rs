//! A JSON-RPC message, decoded once.
//!
//! Promises: what the endpoint gets has one meaning: no duplicate keys, a valid envelope, headers that agree with the body.
//! Does not: know which methods or tools there are.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The id of a request: a whole number or a text; 1 and "1" are two ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl Id {
    /// The id as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => Value::String(text.clone()).to_string(),
        }
    }
}

/// Which era's rules hold for a message (DESIGN.md section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: every request says everything in `_meta` and headers.
    Modern,
    /// 2025-03-26 to 2025-11-25: `initialize` first, versions by header.
    Legacy,
}

/// The one modern version.
pub const MODERN: &str = "2026-07-28";
/// What an `initialize` gets that asks for a version that is not spoken (decision 85).
pub const NEWEST_LEGACY: &str = "2025-11-25";
/// What a request without the version header speaks: it is older than that header (decision 53).
pub const OLDEST_LEGACY: &str = "2025-03-26";
/// The versions that are spoken, newest first.
pub const VERSIONS: [&str; 4] = [MODERN, NEWEST_LEGACY, "2025-06-18", OLDEST_LEGACY];

/// What an `initialize` that asks for `asked` gets: that version where it has the handshake, else the newest that has (decision 85).
#[must_use]
pub fn negotiated(asked: Option<&str>) -> &'static str {
    VERSIONS.into_iter().find(|version| *version != MODERN && Some(*version) == asked).unwrap_or(NEWEST_LEGACY)
}

/// One message from a client.
#[derive(Debug, Clone)]
pub struct Message {
    /// None for a notification.
    pub id: Option<Id>,
    /// The method, such as `tools/call`.
    pub method: Arc<str>,
    /// The parameters, an object where present. `_meta` is still in it.
    pub params: Map<String, Value>,
    /// Whose rules hold.
    pub era: Era,
    /// The protocol version, checked to be one that is spoken.
    pub version: &'static str,
    /// Whether it is a response to a request of ours (answered with 202 and dropped: we never ask).
    pub response: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_version_is_kept_and_an_unknown_one_becomes_the_latest_with_a_handshake() {
        let given = |asked: &[&'static str]| asked.iter().map(|asked| negotiated(Some(asked))).collect::<Vec<_>>();
        assert_eq!(given(&["2025-03-26", "2025-06-18", "2025-11-25"]), ["2025-03-26", "2025-06-18", "2025-11-25"]);
        assert_eq!(given(&["2026-07-28", "2024-11-05", "x", ""]), [NEWEST_LEGACY; 4]);
        assert_eq!(negotiated(None), NEWEST_LEGACY);
    }
}
