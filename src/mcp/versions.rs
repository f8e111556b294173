//! The protocol versions that are spoken (DESIGN.md section 3, decision 85).
//!
//! Promises: one list for discovery, for `initialize` and for headers.
//! Does not: know what differs between them.

/// The oldest, for requests of the older era without a version header (decision 53).
pub const UNSAID: &str = "2025-03-26";
/// What a client is answered that asks `initialize` for a version outside the list.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// The version without a handshake.
pub const MODERN: &str = "2026-07-28";
/// All of them, the newest last.
pub const SPOKEN: &[&str] = &[UNSAID, "2025-06-18", LATEST_LEGACY, MODERN];

/// The version to answer an `initialize` that asks for `asked`.
#[must_use]
pub fn negotiated(asked: &str) -> &'static str {
    SPOKEN.iter().copied().find(|version| *version == asked && *version != MODERN).unwrap_or(LATEST_LEGACY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_version_is_kept_and_an_unknown_one_becomes_the_latest_with_a_handshake() {
        assert_eq!(["2025-03-26", "2025-06-18", "2025-11-25"].map(negotiated), ["2025-03-26", "2025-06-18", "2025-11-25"]);
        assert_eq!(["2026-07-28", "2024-11-05", "x", ""].map(negotiated), [LATEST_LEGACY; 4]);
    }
}
