//! The protocol versions that are spoken (DESIGN.md section 3, decision 85).
//!
//! Promises: one list for discovery, for `initialize` and for headers.
//! Does not: know what differs between them.

use crate::gate::message::OLDEST_LEGACY;
pub use crate::gate::message::{MODERN, NEWEST_LEGACY};

/// All of them, the newest last.
pub const SPOKEN: &[&str] = &[OLDEST_LEGACY, "2025-06-18", NEWEST_LEGACY, MODERN];

/// The version to answer an `initialize` that asks for `asked`.
#[must_use]
pub fn negotiated(asked: &str) -> &'static str {
    SPOKEN.iter().copied().find(|version| *version == asked && *version != MODERN).unwrap_or(NEWEST_LEGACY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_speaks_the_same() {
        let mut door = crate::gate::message::VERSIONS;
        door.reverse();
        assert_eq!(SPOKEN, door);
    }

    #[test]
    fn a_known_version_is_kept_and_an_unknown_one_becomes_the_latest_with_a_handshake() {
        assert_eq!(["2025-03-26", "2025-06-18", "2025-11-25"].map(negotiated), ["2025-03-26", "2025-06-18", "2025-11-25"]);
        assert_eq!(["2026-07-28", "2024-11-05", "x", ""].map(negotiated), [NEWEST_LEGACY; 4]);
    }
}
