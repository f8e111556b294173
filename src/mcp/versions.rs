//! The protocol versions that are spoken (DESIGN.md section 3, decision 85).
//!
//! Promises: one list for discovery, for `initialize` and for headers (`gate::message` has it, and what is negotiated).
//! Does not: know what differs between them.

use crate::gate::message::OLDEST_LEGACY;
pub use crate::gate::message::{MODERN, NEWEST_LEGACY, negotiated};

/// All of them, the newest last.
pub const SPOKEN: &[&str] = &[OLDEST_LEGACY, "2025-06-18", NEWEST_LEGACY, MODERN];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_speaks_the_same() {
        let mut door = crate::gate::message::VERSIONS;
        door.reverse();
        assert_eq!(SPOKEN, door);
    }
}
