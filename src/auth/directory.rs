//! What a server of many organizations knows of them: who they are, which projects they have, whose a key is.
//!
//! Promises: one state, whole and never changed; whoever looks a project up looks among those of one organization only, so another's is not
//! there, in words and in time. A key that was revoked or has expired is none.
//! Does not: read or write anything (`store::sqlite::control` does).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Caller, Role, Scope, api_key::Digest};
use crate::domain::time::Timestamp;

/// The letters of a slug: one to 63 of these, the first no dash (decision 92).
const SLUG_BYTES_MAX: usize = 63;
/// What no organization may be called: paths of the server's own.
const RESERVED: [&str; 2] = ["health", "docs"];

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Its name in paths and tokens.
    pub slug: Arc<str>,
    /// Whether nobody is let in for now.
    pub suspended: bool,
    /// Its projects, by slug.
    pub projects: BTreeMap<Arc<str>, Project>,
}

/// A project of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name in the organization.
    pub slug: Arc<str>,
    /// Its id: random, so that no other project ever has it.
    pub id: Arc<str>,
    /// Whether strangers may read it, on a server that lets strangers read.
    pub public: bool,
}

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its id, for logs, lists and revoking.
    pub id: Arc<str>,
    /// The slug of its organization.
    pub organization: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// What for.
    pub scopes: Vec<String>,
    /// When it ends, where it does.
    pub expires_at: Option<Timestamp>,
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Directory {
    organizations: HashMap<Arc<str>, Organization>,
    keys: HashMap<Digest, Key>,
}

/// A project with its organization.
pub type Place<'a> = (&'a Organization, &'a Project);

impl Directory {
    /// What is known of these.
    #[must_use]
    pub fn new(organizations: impl IntoIterator<Item = Organization>, keys: impl IntoIterator<Item = (Digest, Key)>) -> Self {
        let organizations = organizations.into_iter().map(|organization| (organization.slug.clone(), organization)).collect();
        Self { organizations, keys: keys.into_iter().collect() }
    }

    /// Whose key this is, while it holds.
    #[must_use]
    pub fn caller(&self, digest: &Digest, now: Timestamp) -> Option<Caller> {
        let key = self.keys.get(digest)?;
        let open = self.organizations.get(&key.organization).is_some_and(|organization| !organization.suspended);
        let holds = open && key.expires_at.is_none_or(|end| now < end);
        holds.then(|| Caller::of_key(key))
    }

    /// Whether the caller's organization is suspended.
    #[must_use]
    pub fn suspended(&self, caller: &Caller) -> bool {
        caller.organization().and_then(|slug| self.organizations.get(slug)).is_some_and(|organization| organization.suspended)
    }

    /// The projects that `caller` may see, by organization and slug.
    #[must_use]
    pub fn visible(&self, caller: &Caller) -> Vec<Place<'_>> {
        let mut organizations: Vec<&Organization> = match caller.organization() {
            Some(slug) => self.organizations.get(slug).into_iter().collect(),
            None => self.organizations.values().collect(),
        };
        organizations.sort_by(|a, b| a.slug.cmp(&b.slug));
        let all =
            organizations.into_iter().flat_map(|organization| organization.projects.values().map(move |project| (organization, project)));
        all.filter(|(organization, project)| caller.scope(organization, project).is_some()).collect()
    }

    /// All projects of organizations that are not suspended, each with its operator, by organization and slug. For whoever has read this
    /// directory from the server's own files.
    #[must_use]
    pub fn operated(&self) -> Vec<(Caller, Scope, Place<'_>)> {
        let mut organizations: Vec<&Organization> = self.organizations.values().collect();
        organizations.sort_by(|a, b| a.slug.cmp(&b.slug));
        let projects = organizations.into_iter().flat_map(|one| {
            let operator = Caller::operator(&one.slug);
            one.projects.values().map(move |project| (operator.clone(), one, project))
        });
        projects.filter_map(|(caller, one, project)| Some((caller.clone(), caller.scope(one, project)?, (one, project)))).collect()
    }

    /// What `caller` may see of a project; none where there is none or it may not: these two are one.
    #[must_use]
    pub fn scope(&self, caller: &Caller, organization: &str, project: &str) -> Option<(Scope, Place<'_>)> {
        // Before anything is looked up: what is another's takes as long as what is nowhere.
        if caller.organization().is_some_and(|slug| &**slug != organization) {
            return None;
        }
        let organization = self.organizations.get(organization)?;
        let project = organization.projects.get(project)?;
        Some((caller.scope(organization, project)?, (organization, project)))
    }
}

/// Whether `text` can be the slug of an organization or a project.
///
/// # Errors
/// A sentence that says what a slug is.
pub fn slug(text: &str) -> Result<String, String> {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let good = !text.is_empty() && text.len() <= SLUG_BYTES_MAX && text.bytes().all(letters) && !text.starts_with('-');
    if RESERVED.contains(&text) {
        return Err(format!("\"{text}\" is taken by the server itself; choose another name"));
    }
    good.then(|| text.to_owned())
        .ok_or_else(|| format!("\"{text}\" is no name: take 1 to {SLUG_BYTES_MAX} of a-z, 0-9 and -, not beginning with -"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two organizations whose projects have the same names; `open` of the first is public. A key each, `rlk_` and 43 times `a` or `b`.
    pub(crate) fn two() -> Directory {
        let project = |slug: &str, id: String, public| (Arc::from(slug), Project { slug: slug.into(), id: id.into(), public });
        let organization = |slug: &str, number: i64| Organization {
            slug: slug.into(),
            suspended: false,
            projects: [project("main", format!("{number}m"), false), project("open", format!("{number}o"), number == 1)].into(),
        };
        let key = |letter: &str, slug: &str, role| {
            let digest = Digest::of(secret(letter).as_bytes()).unwrap();
            let scopes = vec!["eval:read".to_owned(), "runs:write".to_owned()];
            (digest, Key { id: format!("k-{slug}").into(), organization: slug.into(), role, scopes, expires_at: None })
        };
        Directory::new([organization("acme", 1), organization("zeta", 2)], [key("a", "acme", Role::Member), key("b", "zeta", Role::Viewer)])
    }

    pub(crate) fn secret(letter: &str) -> String {
        format!("rlk_{}", letter.repeat(43))
    }

    fn caller(directory: &Directory, letter: &str) -> Caller {
        directory.caller(&Digest::of(secret(letter).as_bytes()).unwrap(), Timestamp::from_millis(0)).unwrap()
    }

    fn names(places: Vec<Place<'_>>) -> Vec<String> {
        places.into_iter().map(|(organization, project)| format!("{}/{}", organization.slug, project.slug)).collect()
    }

    #[test]
    fn a_caller_sees_its_own_organization_and_a_stranger_what_is_public() {
        let directory = two();
        let acme = caller(&directory, "a");
        assert_eq!(names(directory.visible(&acme)), ["acme/main", "acme/open"]);
        assert_eq!(names(directory.visible(&caller(&directory, "b"))), ["zeta/main", "zeta/open"]);
        assert_eq!(names(directory.visible(&Caller::public())), ["acme/open"]);
        assert_eq!(names(directory.visible(&Caller::nobody())), [""; 0]);
        let scope = |caller: &Caller, organization, project| {
            directory.scope(caller, organization, project).map(|(scope, _)| scope.project().map(|id| id.to_string()))
        };
        assert_eq!(scope(&acme, "acme", "main"), Some(Some("1m".to_owned())));
        for (organization, project) in [("zeta", "main"), ("zeta", "open"), ("acme", "none"), ("none", "main"), ("", "")] {
            assert_eq!(scope(&acme, organization, project), None, "{organization}/{project}");
        }
        assert_eq!(
            (scope(&Caller::public(), "acme", "open"), scope(&Caller::public(), "acme", "main")),
            (Some(Some("1o".to_owned())), None)
        );
        assert_eq!(scope(&caller(&directory, "b"), "acme", "open"), None, "public or not, it is another organization's");
        assert_eq!(scope(&Caller::nobody(), "acme", "open"), None);
    }

    #[test]
    fn a_key_ends_when_it_says_so_and_its_role_caps_its_scopes() {
        let mut directory = two();
        let digest = Digest::of(secret("a").as_bytes()).unwrap();
        directory.keys.get_mut(&digest).unwrap().expires_at = Some(Timestamp::from_millis(5));
        assert!(directory.caller(&digest, Timestamp::from_millis(4)).is_some_and(|caller| caller.holds("runs:write")));
        assert_eq!(directory.caller(&digest, Timestamp::from_millis(5)), None);
        assert!(!caller(&directory, "b").holds("runs:write"), "a viewer writes nothing");
        assert!(directory.scope(&Caller::scoped("x", Role::Owner, &["*"]), "zeta", "main").is_none());
        directory.organizations.get_mut("zeta").unwrap().suspended = true;
        assert_eq!(directory.caller(&Digest::of(secret("b").as_bytes()).unwrap(), Timestamp::from_millis(0)), None);
    }

    #[test]
    fn slugs() {
        for good in ["a", "0", "a-b", "a--", &"x".repeat(63)] {
            assert_eq!(slug(good).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "A", "a_b", "a/b", "a.b", "ä", "a b", "health", "docs", &"x".repeat(64)] {
            assert!(slug(bad).is_err(), "{bad}");
        }
    }
}
