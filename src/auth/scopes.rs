//! What a caller's scopes let it do, capped by its role (decisions 43, 44).
//!
//! Promises: a scope implies no other; `*` is all that the role allows; what the role does not allow is not held, whoever wrote it in a token.
//! Words that are no scope are not kept: a token with thousands of them takes no room, and its holder is the same to the cache as one without.
//! Does not: know which tool asks for what.

use super::Role;

/// Every scope there is. A key can be given these and `*`.
pub const KNOWN: [&str; 10] = [
    "eval:read",
    "runs:read",
    "traces:read",
    "resources:read",
    "project.evals.read",
    "eval:write",
    "runs:write",
    "traces:write",
    "admin:workspace",
    "resources:write",
];

/// The bit of `*`.
const ALL: u16 = 1 << 15;

/// The scopes of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scopes {
    /// All that reads (decision 48).
    AllReads,
    /// These: a bit for each of [`KNOWN`].
    Named(u16),
    /// None: there is no caller, only someone at the door.
    Nobody,
}

impl Scopes {
    /// Those of these names that are scopes.
    pub(super) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Named(names.into_iter().fold(0, |held, name| held | if name == "*" { ALL } else { bit(name) }))
    }

    /// Whether `name` is among them, for one of this role.
    pub(super) fn hold(self, role: Role, name: &str) -> bool {
        match self {
            Self::AllReads => reads(name),
            Self::Named(held) => held & (bit(name) | ALL) != 0 && bit(name) != 0 && allows(role, name),
            Self::Nobody => false,
        }
    }
}

/// 0 for what is no scope.
fn bit(name: &str) -> u16 {
    KNOWN.iter().position(|known| *known == name).map_or(0, |place| 1 << place)
}

fn reads(name: &str) -> bool {
    name.ends_with(":read") || name == "project.evals.read"
}

/// What a role allows at most (decision 44). An owner's further powers are the command line's.
fn allows(role: Role, name: &str) -> bool {
    match name {
        "eval:write" | "runs:write" | "traces:write" => role >= Role::Member,
        "admin:workspace" | "resources:write" => role >= Role::Admin,
        name => reads(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_caps_what_a_token_says() {
        let all = Scopes::named(["*"]);
        let held = |role| KNOWN.into_iter().filter(|name| all.hold(role, name)).count();
        assert_eq!(Role::ALL.map(held), [5, 8, 10, 10]);
        assert!(!Scopes::named(["eval:write"]).hold(Role::Viewer, "eval:write"));
        assert!(!all.hold(Role::Owner, "keys:write") && !all.hold(Role::Owner, "*") && !all.hold(Role::Owner, ""));
        assert!(!all.hold(Role::Owner, "invented:read"), "only what there is");
    }

    #[test]
    fn a_scope_implies_no_other() {
        let one = Scopes::named(["eval:write", "eval:write"]);
        assert_eq!(KNOWN.into_iter().filter(|name| one.hold(Role::Owner, name)).collect::<Vec<_>>(), ["eval:write"]);
        assert!(Scopes::AllReads.hold(Role::Viewer, "traces:read") && !Scopes::AllReads.hold(Role::Owner, "eval:write"));
        assert!(KNOWN.iter().all(|name| !Scopes::Nobody.hold(Role::Owner, name)));
    }

    #[test]
    fn words_that_are_no_scope_make_no_difference() {
        let invented: Vec<String> = (0..1000).map(|number| format!("invented{number}:read")).collect();
        let many = invented.iter().map(String::as_str).chain(["eval:read"]);
        assert_eq!(Scopes::named(many), Scopes::named(["eval:read"]));
    }
}
