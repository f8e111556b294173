//! Who calls, and what they may see.
//!
//! Promises: a [`Caller`] is built only here; a [`Scope`] only from a Caller; a store handle only from a Scope. No Caller, no rows.
//! Does not: decide what a tool asks for (its entry does), or look anything up on a disk: what it knows of organizations it is handed.

pub mod api_key;
pub mod authority;
pub mod directory;
pub mod jwks;
pub mod jwt;
pub mod local;
pub mod metadata;
mod scopes;
pub mod tenants;
pub mod token;

use std::{fmt, str::FromStr, sync::Arc};

pub use self::scopes::KNOWN as KNOWN_SCOPES;
use self::{
    directory::{Key, Organization, Project},
    jwt::Verified,
    scopes::Scopes,
};

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

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Admin, Self::Owner];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.word() == text)
            .ok_or_else(|| format!("\"{text}\" is no role; the roles are viewer, member, admin and owner"))
    }
}

/// The authenticated (or local) origin of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    principal: Arc<str>,
    /// Whom limits count it as; none for those who are known by nothing but where they come from.
    identity: Option<Arc<str>>,
    /// The slug of its organization; none where the server knows no organizations, and for strangers.
    organization: Option<Arc<str>>,
    /// Whether the identity is an API key's id.
    keyed: bool,
    role: Role,
    scopes: Scopes,
}

/// All that decides what a caller may see: two callers with equal ones get equal answers (the answer cache's key, decision 82).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Visibility {
    role: Role,
    scopes: Scopes,
}

impl Caller {
    fn anonymous(role: Role, scopes: Scopes) -> Self {
        Self { principal: "anonymous".into(), identity: None, organization: None, keyed: false, role, scopes }
    }

    /// The person at this machine: owner of the local project, all read scopes (decision 48).
    #[must_use]
    pub fn local() -> Self {
        Self { principal: "local".into(), ..Self::anonymous(Role::Owner, Scopes::AllReads) }
    }

    /// The person at this machine's terminal, whose files these are: all that an owner may. The command line offers him the tools that read.
    #[must_use]
    pub fn terminal() -> Self {
        Self { principal: "local".into(), ..Self::anonymous(Role::Owner, Scopes::named(["*"])) }
    }

    /// Whoever may read and write a server's own files, at work in `organization`: its worker, its command line, its own tasks. Owner, all read
    /// scopes. Only [`directory::Directory`] says of which organizations there are any.
    pub(in crate::auth) fn operator(organization: &Arc<str>) -> Self {
        Self { principal: "operator".into(), organization: Some(organization.clone()), ..Self::local() }
    }

    /// Whoever reaches a server that asks for no token (`runlore mcp --http`, decision 48): owner, all read scopes.
    #[must_use]
    pub fn open() -> Self {
        Self::anonymous(Role::Owner, Scopes::AllReads)
    }

    /// Whoever reaches a public server: reads what is not text of cases and attempts (decision 35).
    #[must_use]
    pub fn public() -> Self {
        Self::anonymous(Role::Viewer, Scopes::named(["eval:read", "runs:read", "resources:read", "project.evals.read"]))
    }

    /// The same where the operator publishes texts too (decision 35).
    #[must_use]
    pub fn public_with_texts() -> Self {
        Self::anonymous(Role::Viewer, Scopes::named(["eval:read", "runs:read", "resources:read", "project.evals.read", "traces:read"]))
    }

    /// Whoever brings no credential to a server that asks for one: may ask what there is and how to speak to it, and nothing that is a
    /// project's (decision 5).
    #[must_use]
    pub fn nobody() -> Self {
        Self::anonymous(Role::Viewer, Scopes::Nobody)
    }

    /// Whether there is no caller: [`Caller::nobody`].
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.scopes == Scopes::Nobody
    }

    /// Whether it is anybody at all on a public server: [`Caller::public`]. What is not published is not there for it (decision 35).
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.identity.is_none() && self.organization.is_none() && self.role == Role::Viewer && !self.is_nobody()
    }

    /// Whoever holds the static token: owner, all read scopes. Only [`token::StaticToken`] says so.
    pub(in crate::auth) fn bearer() -> Self {
        Self { principal: "token".into(), identity: Some("token".into()), ..Self::open() }
    }

    /// Whoever holds an API key. Only [`directory::Directory`] says so.
    pub(in crate::auth) fn of_key(key: &Key) -> Self {
        Self {
            principal: key.id.clone(),
            identity: Some(key.id.clone()),
            organization: Some(key.organization.clone()),
            keyed: true,
            role: key.role,
            scopes: Scopes::named(key.scopes.iter().map(String::as_str)),
        }
    }

    /// Whoever a verified token speaks for. Two issuers may call two callers the same, so limits count them by both names.
    pub(in crate::auth) fn of_token(token: &Verified) -> Self {
        Self {
            principal: token.subject.as_str().into(),
            identity: Some(format!("{} {}", token.issuer, token.subject).into()),
            organization: token.organization.as_deref().map(Arc::from),
            keyed: false,
            role: token.role,
            scopes: Scopes::named(token.scopes.iter().map(String::as_str)),
        }
    }

    /// A caller with exactly these scopes.
    #[must_use]
    pub fn scoped(principal: &str, role: Role, scopes: &[&str]) -> Self {
        let identity = Some(principal.into()).filter(|_| principal != "anonymous");
        Self { principal: principal.into(), identity, ..Self::anonymous(role, Scopes::named(scopes.iter().copied())) }
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

    /// The id of its API key, where that is how it is known.
    pub(in crate::auth) fn key(&self) -> Option<&Arc<str>> {
        self.identity.as_ref().filter(|_| self.keyed)
    }

    /// The slug of its organization, where it has one.
    #[must_use]
    pub fn organization(&self) -> Option<&Arc<str>> {
        self.organization.as_ref()
    }

    /// Whether the caller holds the scope `name`, such as `eval:read`, and its role allows it (decision 44).
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.scopes.hold(self.role, name)
    }

    /// The scopes that it holds, by name: what `whoami` says.
    #[must_use]
    pub fn scopes(&self) -> Vec<&'static str> {
        KNOWN_SCOPES.into_iter().filter(|name| self.holds(name)).collect()
    }

    /// Whom limits count it as: one name for each caller of all organizations; none for those who are known by nothing but where they come
    /// from.
    #[must_use]
    pub fn identified(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// What decides what the caller may see. Text visibility follows from the scopes.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        Visibility { role: self.role, scopes: self.scopes }
    }

    /// What of the local project this caller may see.
    #[must_use]
    pub fn local_scope(&self) -> Scope {
        Scope { text: self.holds("traces:read"), project: None }
    }

    /// What of `project`, which is one of `organization`'s, this caller may see; none where it may see nothing of it.
    #[must_use]
    pub fn scope(&self, organization: &Organization, project: &Project) -> Option<Scope> {
        let member = self.organization.as_ref() == Some(&organization.slug);
        let stranger = self.organization.is_none() && self.identity.is_none() && !self.is_nobody();
        let seen = !organization.suspended && (member || (stranger && project.public));
        seen.then(|| Scope { text: self.holds("traces:read"), project: Some(project.id.clone()) })
    }
}

/// What a store handle is opened with. Only a [`Caller`] gives one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    text: bool,
    /// The project's id; none for the local project.
    project: Option<Arc<str>>,
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

    /// The project's id, where it is one of a server's.
    #[must_use]
    pub const fn project(&self) -> Option<&Arc<str>> {
        self.project.as_ref()
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
        assert!(Caller::public().is_public() && !nobody.is_public() && !Caller::open().is_public() && !Caller::local().is_public());
        assert!(!nobody.holds("eval:read") && !nobody.holds("") && !nobody.local_scope().text());
        assert_ne!(nobody.visibility(), Caller::scoped("anonymous", Role::Viewer, &[]).visibility());
    }
}
