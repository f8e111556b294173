//! What a caller lacks for a tool: the one rule for calls and for lists.
//!
//! Promises: a role that is too low comes before scopes, since no token of that caller could mend it; all scopes that the tool needs are named
//! at once, so that a client asks for them once (decision 44; RFC 6750, section 3.1).
//! Does not: refuse anything (`authorize` does).

use std::fmt;

use crate::{
    auth::{Caller, Role},
    tools::Entry,
};

/// What is lacking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacks {
    /// The role: this is the least that may.
    Role(Role),
    /// Scopes.
    Scopes {
        /// Those that lack, as words.
        missing: String,
        /// All that the tool needs, those that are there too.
        needed: Vec<&'static str>,
    },
}

impl Lacks {
    /// What `caller` lacks for `entry`; none when it may call it.
    #[must_use]
    pub fn of(caller: &Caller, entry: &Entry) -> Option<Self> {
        if caller.role() < entry.role {
            return Some(Self::Role(entry.role));
        }
        let holds = |group: &&[&'static str]| group.iter().copied().find(|scope| caller.holds(scope));
        let missing: Vec<String> = entry.scopes.iter().filter(|group| holds(group).is_none()).map(|group| group.join(" or ")).collect();
        // Of a group the one that is held, so that whoever asks anew keeps what he has.
        let needed = entry.scopes.iter().filter_map(|group| holds(group).or(group.first().copied())).collect();
        (!missing.is_empty()).then(|| Self::Scopes { missing: missing.join(" and "), needed })
    }
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => write!(f, "role {role}"),
            Self::Scopes { missing, .. } => write!(f, "scope {missing}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::UNKNOWN;

    #[test]
    fn all_that_is_needed_is_named_at_once_and_the_role_first() {
        static ENTRY: Entry =
            Entry { scopes: &[&["eval:read", "runs:read"], &["traces:read"], &["runs:write"]], role: Role::Member, ..UNKNOWN };
        let of = |role, scopes: &[&str]| Lacks::of(&Caller::scoped("k", role, scopes), &ENTRY);
        assert_eq!(of(Role::Viewer, &["*"]), Some(Lacks::Role(Role::Member)));
        assert_eq!(of(Role::Member, &["*"]), None);
        let lacks = of(Role::Member, &["runs:read"]).unwrap();
        assert_eq!(lacks.to_string(), "scope traces:read and runs:write");
        assert_eq!(
            lacks,
            Lacks::Scopes { missing: "traces:read and runs:write".into(), needed: vec!["runs:read", "traces:read", "runs:write"] }
        );
        assert_eq!(of(Role::Member, &["traces:read"]).unwrap().to_string(), "scope eval:read or runs:read and runs:write");
    }
}
