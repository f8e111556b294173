//! Who calls, and what they may see.
//!
//! Promises: a [`Caller`] is built only here; a [`Scope`] only from a Caller; a store handle only from a Scope. No Caller, no rows.
//! Does not: yet know keys or JWT (they come with the tenants).

pub mod jwks;
pub mod jwt;
pub mod local;
pub mod metadata;
pub mod token;

/// What a caller may do in an organization; each role includes those before it (decision 44).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Also writes evaluations, runs and traces.
    Member,
    /// Also manages the workspace.
    Admin,
    /// Also manages keys and members.
    Owner,
}

/// The authenticated (or local) origin of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    principal: String,
    role: Role,
    scopes: Scopes,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Scopes {
    /// All that reads (decision 48).
    AllReads,
    /// These, sorted.
    Named(Vec<String>),
    /// None: there is no caller, only someone at the door.
    Nobody,
}

/// All that decides what a caller may see: two callers with equal ones get equal answers (the answer cache's key, decision 82).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Visibility {
    role: Role,
    scopes: Scopes,
}

impl Caller {
    /// The person at this machine: owner of the local project, all read scopes (decision 48).
    #[must_use]
    pub fn local() -> Self {
        Self { principal: "local".to_owned(), role: Role::Owner, scopes: Scopes::AllReads }
    }

    /// Whoever reaches a server that asks for no token (`runlore mcp --http`, decision 48): owner, all read scopes.
    #[must_use]
    pub fn open() -> Self {
        Self { principal: "anonymous".to_owned(), ..Self::local() }
    }

    /// Whoever reaches a public server: reads what is not text of cases and attempts (decision 35).
    #[must_use]
    pub fn public() -> Self {
        Self::scoped("anonymous", Role::Viewer, &["eval:read", "runs:read", "resources:read", "project.evals.read"])
    }

    /// Whoever brings no credential to a server that asks for one: may ask what there is and how to speak to it, and nothing that is a
    /// project's (decision 5).
    #[must_use]
    pub fn nobody() -> Self {
        Self { principal: "anonymous".to_owned(), role: Role::Viewer, scopes: Scopes::Nobody }
    }

    /// Whether there is no caller: [`Caller::nobody`].
    #[must_use]
    pub const fn is_nobody(&self) -> bool {
        matches!(self.scopes, Scopes::Nobody)
    }

    /// Whoever holds the static token: owner, all read scopes. Only [`token::StaticToken`] says so.
    pub(in crate::auth) fn bearer() -> Self {
        Self { principal: "token".to_owned(), ..Self::local() }
    }

    /// A caller with exactly these scopes.
    #[must_use]
    pub fn scoped(principal: &str, role: Role, scopes: &[&str]) -> Self {
        let mut scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        Self { principal: principal.to_owned(), role, scopes: Scopes::Named(scopes) }
    }

    /// The name that logs and audit lines carry: a key or subject id, `anonymous` or `local`; never an address.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// The caller's role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Whether the caller holds the scope `name`, such as `eval:read`.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        match &self.scopes {
            Scopes::AllReads => name.ends_with(":read") || name == "project.evals.read",
            Scopes::Named(names) => names.iter().any(|held| held == name),
            Scopes::Nobody => false,
        }
    }

    /// The key or subject id; none for those who are known by nothing but where they come from.
    #[must_use]
    pub fn identified(&self) -> Option<&str> {
        Some(self.principal.as_str()).filter(|name| !matches!(*name, "anonymous" | "local"))
    }

    /// What decides what the caller may see. Text visibility follows from the scopes.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        Visibility { role: self.role, scopes: self.scopes.clone() }
    }

    /// What of the local project this caller may see.
    #[must_use]
    pub fn local_scope(&self) -> Scope {
        Scope { text: self.holds("traces:read") }
    }
}

/// What a store handle is opened with. Only a [`Caller`] gives one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    text: bool,
}

impl Scope {
    /// Whether cases' texts, outputs and transcripts may be read: decision 35 lists what is text. An arm's factors are not in that list: model, task
    /// and solver arguments say what was run and make two runs comparable, and without them a published result says nothing. They are the
    /// operator's own words on the command line of an evaluation; the texts of the cases and of what the model wrote are not among them. Secrets
    /// in them are redacted at import and on the way out, as everywhere.
    #[must_use]
    pub const fn text(&self) -> bool {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_caller_reads_and_does_not_write() {
        let caller = Caller::local();
        assert!(caller.holds("eval:read") && caller.holds("traces:read") && caller.holds("project.evals.read"));
        assert!(!caller.holds("eval:write") && !caller.holds("admin:workspace"));
        assert!(caller.local_scope().text());
    }

    #[test]
    fn nobody_holds_nothing_and_sees_no_text() {
        let nobody = Caller::nobody();
        assert!(nobody.is_nobody() && !Caller::open().is_nobody() && !Caller::public().is_nobody());
        assert!(!nobody.holds("eval:read") && !nobody.holds("") && !nobody.local_scope().text());
        assert_ne!(nobody.visibility(), Caller::scoped("anonymous", Role::Viewer, &[]).visibility());
    }
}
