//! What a server of many organizations keeps of them: the changes there are, the lists, and why one was refused.
//!
//! Promises: every write is one [`ControlChange`], applied in one transaction; what is refused says which name and what would be right.
//! Does not: know a key's text: whoever makes one shows it, and hands its digest in.

use serde::Serialize;

use super::Error;
use crate::{
    auth::{Role, api_key::Digest},
    domain::time::Timestamp,
};

/// A change.
#[derive(Debug, Clone)]
pub enum ControlChange<'a> {
    /// A new organization.
    Organization {
        /// Its slug.
        slug: &'a str,
    },
    /// Whether nobody of an organization is let in from now on.
    Suspended {
        /// Its slug.
        slug: &'a str,
        /// Whether nobody is.
        suspended: bool,
    },
    /// A new project.
    Project {
        /// The slug of its organization.
        organization: &'a str,
        /// Its slug.
        slug: &'a str,
        /// Its id: random, and the name of its file.
        id: &'a str,
        /// Whether strangers may read it.
        public: bool,
    },
    /// Whether strangers may read a project from now on.
    Visibility {
        /// The slug of its organization.
        organization: &'a str,
        /// Its slug.
        project: &'a str,
        /// Whether they may.
        public: bool,
    },
    /// A new key.
    Key(NewKey<'a>),
    /// Another secret for a key; the old one ends now.
    Rotate {
        /// The key's id.
        id: &'a str,
        /// What is kept of the new secret.
        digest: Digest,
    },
    /// A key ends now.
    Revoke {
        /// Its id.
        id: &'a str,
    },
    /// When keys were used last, in seconds.
    Used(&'a [(std::sync::Arc<str>, i64)]),
}

/// A key to be kept.
#[derive(Debug, Clone)]
pub struct NewKey<'a> {
    /// Its id.
    pub id: &'a str,
    /// The slug of its organization.
    pub organization: &'a str,
    /// What people call it.
    pub name: &'a str,
    /// What is kept of its secret.
    pub digest: Digest,
    /// What it may do.
    pub role: Role,
    /// What for.
    pub scopes: &'a [String],
    /// When it ends, where it does.
    pub expires_at: Option<Timestamp>,
}

/// A project, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRow {
    /// The slug of its organization.
    pub organization: String,
    /// Its slug.
    pub slug: String,
    /// Its id, which is its file's name.
    pub id: String,
    /// Whether strangers may read it.
    pub public: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An organization, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationRow {
    /// Its slug.
    pub slug: String,
    /// How many projects it has.
    pub projects: i64,
    /// How many keys that hold.
    pub keys: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when nobody is let in, where that is so.
    pub suspended_at: Option<Timestamp>,
}

/// A key, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRow {
    /// Its id.
    pub id: String,
    /// The slug of its organization.
    pub organization: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// What for.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, where it does.
    pub expires_at: Option<Timestamp>,
    /// When it was ended, where it was.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the second, where it was.
    pub used_at: Option<Timestamp>,
}

/// Why a change was refused, or the file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is one of this name already.
    #[error("there is {0} already")]
    Exists(String),
    /// There is none of this name.
    #[error("there is no {0}")]
    NotFound(String),
    /// The key was ended before.
    #[error("key {0} was revoked; create another")]
    Revoked(String),
    /// The file is damaged or another program's. Making one anew would lose who every project and key is.
    #[error("the control file is damaged or no control file of runlore; restore it from a backup")]
    Damaged,
    /// The file could not be read or written.
    #[error("{}", store(.0))]
    Store(Error),
}

impl From<Error> for ControlError {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Damaged) { Self::Damaged } else { Self::Store(error) }
    }
}

/// What is said of the project's file elsewhere is not true of this one: it cannot be made anew.
fn store(error: &Error) -> String {
    match error {
        Error::Newer { found, known } => {
            format!("the control file was written by a newer runlore (schema {found}; this one knows up to {known}); update runlore")
        }
        other => other.to_string(),
    }
}
