//! The control file: organizations, projects and keys (DESIGN.md section 8).
//!
//! Promises: every write is one transaction; several processes may use the file, and each sees by [`Control::version`] that another has
//! written; a key's text is never here.
//! Does not: check slugs or roles (whoever takes them from a person does), or hold any run.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::{Options, connect};
use crate::{
    auth::directory::{Directory, Key, Organization, Project},
    auth::{Role, api_key::Digest},
    domain::time::Timestamp,
    store::{
        Error,
        control::{ControlChange, ControlError, KeyRow, NewKey, OrganizationRow, ProjectRow},
    },
};

/// The steps from an empty file to today's schema, in order.
const MIGRATIONS: [&str; 1] = [include_str!("control.sql")];
/// Written into the file's header ("rloc").
const APPLICATION_ID: i64 = 0x726c_6f63;

type Result<T> = std::result::Result<T, ControlError>;

impl From<rusqlite::Error> for ControlError {
    fn from(error: rusqlite::Error) -> Self {
        Error::from(error).into()
    }
}

/// Refuses a newer file and another program's.
pub(super) fn recognise(connection: &Connection) -> crate::store::Result<()> {
    connect::recognise_as(connection, APPLICATION_ID, MIGRATIONS.len() as i64)
}

/// The ids of the projects that the file at `path` knows; it is not opened for writing, nor brought up to date.
///
/// # Errors
/// As every read.
pub fn project_ids(path: &Path, options: &Options) -> Result<Vec<String>> {
    let connection = connect::plain_reader(path, options)?;
    recognise(&connection)?;
    let mut statement = connection.prepare("SELECT id FROM projects_m ORDER BY id")?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// A handle on the control file.
pub struct Control {
    connection: Mutex<Connection>,
}

impl Control {
    /// Opens the file, creating and migrating it where needed. Its directory must be there.
    ///
    /// # Errors
    /// [`ControlError::Store`].
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        let connection = connect::control(path, options, APPLICATION_ID, &MIGRATIONS)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that changes when another handle has written.
    ///
    /// # Errors
    /// As every read.
    pub fn version(&self) -> Result<i64> {
        Ok(self.lock().pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    /// All that callers are known and projects are found by.
    ///
    /// # Errors
    /// As every read.
    pub fn directory(&self) -> Result<Directory> {
        let mut connection = self.lock();
        let state = connection.transaction()?;
        Ok(Directory::new(organizations(&state)?, keys(&state)?))
    }

    /// Applies one change at `now`.
    ///
    /// # Errors
    /// [`ControlError`]; nothing was changed then.
    pub fn apply(&self, change: &ControlChange<'_>, now: Timestamp) -> Result<()> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change_in(&transaction, change, now)?;
        Ok(transaction.commit()?)
    }

    /// The organizations, by slug.
    ///
    /// # Errors
    /// As every read.
    pub fn organizations(&self) -> Result<Vec<OrganizationRow>> {
        let sql =
            "SELECT o.slug, o.created_at, o.suspended_at, (SELECT count(*) FROM projects_m p WHERE p.organization_no = o.organization_no),
            (SELECT count(*) FROM keys_m k WHERE k.organization_no = o.organization_no AND k.revoked_at IS NULL)
            FROM organizations_m o ORDER BY o.slug";
        let connection = self.lock();
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            let suspended_at = row.get::<_, Option<i64>>(2)?.map(at);
            Ok(OrganizationRow { slug: row.get(0)?, created_at: at(row.get(1)?), suspended_at, projects: row.get(3)?, keys: row.get(4)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The projects, of one organization or of all, by organization and slug.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] where there is no such organization.
    pub fn projects(&self, organization: Option<&str>) -> Result<Vec<ProjectRow>> {
        let connection = self.lock();
        organization.map(|slug| number_of(&connection, slug)).transpose()?;
        let sql = "SELECT o.slug, p.slug, p.id, p.public, p.created_at FROM projects_m p
            JOIN organizations_m o ON o.organization_no = p.organization_no WHERE ?1 IS NULL OR o.slug = ?1 ORDER BY o.slug, p.slug";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([organization], |row| {
            let (organization, slug) = (row.get(0)?, row.get(1)?);
            Ok(ProjectRow { organization, slug, id: row.get(2)?, public: row.get(3)?, created_at: at(row.get(4)?) })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The keys, of one organization or of all, as they were made.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] where there is no such organization.
    pub fn keys(&self, organization: Option<&str>) -> Result<Vec<KeyRow>> {
        let connection = self.lock();
        organization.map(|slug| number_of(&connection, slug)).transpose()?;
        let sql = "SELECT k.id, o.slug, k.name, k.role, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.used_at FROM keys_m k
            JOIN organizations_m o ON o.organization_no = k.organization_no WHERE ?1 IS NULL OR o.slug = ?1 ORDER BY k.key_no";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([organization], |row| {
            Ok(KeyRow {
                id: row.get(0)?,
                organization: row.get(1)?,
                name: row.get(2)?,
                role: row.get(3)?,
                scopes: words(&row.get::<_, String>(4)?),
                created_at: at(row.get(5)?),
                expires_at: row.get::<_, Option<i64>>(6)?.map(at),
                revoked_at: row.get::<_, Option<i64>>(7)?.map(at),
                used_at: row.get::<_, Option<i64>>(8)?.map(|second| at(second.saturating_mul(1000))),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

const fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Scopes hold no space.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn organizations(state: &Connection) -> Result<Vec<Organization>> {
    let sql = "SELECT o.organization_no, o.slug, o.suspended_at IS NOT NULL, p.id, p.slug, p.public FROM organizations_m o
        LEFT JOIN projects_m p ON p.organization_no = o.organization_no ORDER BY o.organization_no";
    let mut statement = state.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut out = BTreeMap::<i64, Organization>::new();
    while let Some(row) = rows.next()? {
        let (slug, suspended): (String, bool) = (row.get(1)?, row.get(2)?);
        let new = || Organization { slug: slug.into(), suspended, projects: BTreeMap::new() };
        let organization = out.entry(row.get(0)?).or_insert_with(new);
        if let Some(id) = row.get::<_, Option<String>>(3)? {
            let slug: Arc<str> = row.get::<_, String>(4)?.into();
            organization.projects.insert(slug.clone(), Project { slug, id: id.into(), public: row.get(5)? });
        }
    }
    Ok(out.into_values().collect())
}

fn keys(state: &Connection) -> Result<Vec<(Digest, Key)>> {
    let sql = "SELECT k.digest, k.id, o.slug, k.role, k.scopes, k.expires_at FROM keys_m k
        JOIN organizations_m o ON o.organization_no = k.organization_no WHERE k.revoked_at IS NULL";
    let mut statement = state.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let digest = Digest::kept(row.get_ref(0)?.as_blob().unwrap_or_default()).ok_or(Error::Damaged)?;
        let role: Role = row.get::<_, String>(3)?.parse().map_err(|_| Error::Damaged)?;
        let key = Key {
            id: row.get::<_, String>(1)?.into(),
            organization: row.get::<_, String>(2)?.into(),
            role,
            scopes: words(&row.get::<_, String>(4)?),
            expires_at: row.get::<_, Option<i64>>(5)?.map(at),
        };
        out.push((digest, key));
    }
    Ok(out)
}

fn number_of(connection: &Connection, slug: &str) -> Result<i64> {
    let sql = "SELECT organization_no FROM organizations_m WHERE slug = ?1";
    let found = connection.query_row(sql, [slug], |row| row.get(0)).optional()?;
    found.ok_or_else(|| ControlError::NotFound(format!("organization {slug}")))
}

fn change_in(transaction: &Transaction<'_>, change: &ControlChange<'_>, now: Timestamp) -> Result<()> {
    match change {
        ControlChange::Organization { slug } => {
            let sql = "INSERT OR IGNORE INTO organizations_m (slug, created_at) VALUES (?1, ?2)";
            let made = transaction.execute(sql, params![slug, now.millis()])?;
            if made == 0 { Err(ControlError::Exists(format!("an organization {slug}"))) } else { Ok(()) }
        }
        ControlChange::Suspended { slug, suspended } => {
            let number = number_of(transaction, slug)?;
            let since = suspended.then_some(now.millis());
            transaction.execute("UPDATE organizations_m SET suspended_at = ?2 WHERE organization_no = ?1", params![number, since])?;
            Ok(())
        }
        ControlChange::Project { organization, slug, id, public } => {
            let number = number_of(transaction, organization)?;
            let sql = "INSERT OR IGNORE INTO projects_m (organization_no, slug, id, public, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
            let made = transaction.execute(sql, params![number, slug, id, public, now.millis()])?;
            if made == 0 { Err(ControlError::Exists(format!("a project {organization}/{slug}"))) } else { Ok(()) }
        }
        ControlChange::Visibility { organization, project, public } => {
            let number = number_of(transaction, organization)?;
            let sql = "UPDATE projects_m SET public = ?3 WHERE organization_no = ?1 AND slug = ?2";
            let changed = transaction.execute(sql, params![number, project, public])?;
            if changed == 0 { Err(ControlError::NotFound(format!("project {organization}/{project}"))) } else { Ok(()) }
        }
        ControlChange::Key(key) => put_key(transaction, key, now),
        ControlChange::Rotate { id, digest } => {
            let sql = "UPDATE keys_m SET digest = ?2 WHERE id = ?1 AND revoked_at IS NULL";
            held(transaction, id, transaction.execute(sql, params![id, &digest.bytes()[..]])?)
        }
        ControlChange::Revoke { id } => {
            let sql = "UPDATE keys_m SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
            held(transaction, id, transaction.execute(sql, params![id, now.millis()])?)
        }
        ControlChange::Used(used) => {
            let mut statement = transaction.prepare("UPDATE keys_m SET used_at = max(coalesce(used_at, 0), ?2) WHERE id = ?1")?;
            used.iter().try_for_each(|(id, second)| statement.execute(params![id, second]).map(drop))?;
            Ok(())
        }
    }
}

fn put_key(transaction: &Transaction<'_>, key: &NewKey<'_>, now: Timestamp) -> Result<()> {
    let number = number_of(transaction, key.organization)?;
    let sql = "INSERT INTO keys_m (id, organization_no, name, digest, role, scopes, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    transaction.execute(
        sql,
        params![
            key.id,
            number,
            key.name,
            &key.digest.bytes()[..],
            key.role.word(),
            key.scopes.join(" "),
            now.millis(),
            key.expires_at.map(Timestamp::millis)
        ],
    )?;
    Ok(())
}

/// Whether the key was there to be changed.
fn held(transaction: &Transaction<'_>, id: &str, changed: usize) -> Result<()> {
    if changed > 0 {
        return Ok(());
    }
    let there = transaction.prepare("SELECT 1 FROM keys_m WHERE id = ?1")?.exists([id])?;
    Err(if there { ControlError::Revoked(id.to_owned()) } else { ControlError::NotFound(format!("key {id}")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{
        api_key,
        tenants::{Known, Tenants},
    };

    fn opened() -> (tempfile::TempDir, Control) {
        let dir = tempfile::tempdir().unwrap();
        let control = Control::open(&dir.path().join("control.db"), &Options::default()).unwrap();
        (dir, control)
    }

    fn key<'a>(id: &'a str, organization: &'a str, digest: Digest, scopes: &'a [String]) -> ControlChange<'a> {
        ControlChange::Key(NewKey { id, organization, name: "ci", digest, role: Role::Member, scopes, expires_at: None })
    }

    fn done(control: &Control, change: &ControlChange<'_>) -> std::result::Result<(), String> {
        control.apply(change, at(7)).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_taken_once_and_what_is_not_there_is_said() {
        let (_dir, control) = opened();
        let organization = ControlChange::Organization { slug: "acme" };
        let project = |organization, slug| ControlChange::Project { organization, slug, id: slug, public: false };
        assert_eq!(done(&control, &organization), Ok(()));
        assert_eq!(done(&control, &organization), Err("there is an organization acme already".to_owned()));
        assert_eq!(done(&control, &project("acme", "main")), Ok(()));
        assert_eq!(done(&control, &project("acme", "main")), Err("there is a project acme/main already".to_owned()));
        assert_eq!(done(&control, &project("zeta", "main")), Err("there is no organization zeta".to_owned()));
        let visible = |project| ControlChange::Visibility { organization: "acme", project, public: true };
        assert_eq!(
            (done(&control, &visible("main")), done(&control, &visible("x"))),
            (Ok(()), Err("there is no project acme/x".to_owned()))
        );
        let rows = control.projects(None).unwrap();
        assert_eq!((rows.len(), rows[0].public, rows[0].created_at), (1, true, at(7)));
        assert!(matches!(control.projects(Some("zeta")), Err(ControlError::NotFound(_))));
        assert_eq!(
            control.organizations().unwrap()[0],
            OrganizationRow { slug: "acme".into(), projects: 1, keys: 0, created_at: at(7), suspended_at: None }
        );
    }

    #[test]
    fn a_key_lives_until_it_is_rotated_or_revoked() {
        let (dir, control) = opened();
        done(&control, &ControlChange::Organization { slug: "acme" }).unwrap();
        let ((first, first_digest), (second, second_digest)) = (api_key::generate().unwrap(), api_key::generate().unwrap());
        let scopes = ["eval:read".to_owned(), "runs:write".to_owned()];
        done(&control, &key("k1", "acme", first_digest, &scopes)).unwrap();
        let known = |text: &str| matches!(Tenants::new(control.directory().unwrap(), None).known(text.as_bytes()), Known::Caller(_));
        assert_eq!((known(&first), known(&second)), (true, false));
        done(&control, &ControlChange::Rotate { id: "k1", digest: second_digest }).unwrap();
        assert_eq!((known(&first), known(&second)), (false, true));
        done(&control, &ControlChange::Used(&[("k1".into(), 5), ("gone".into(), 6)])).unwrap();
        done(&control, &ControlChange::Used(&[("k1".into(), 3)])).unwrap();
        let rows = control.keys(Some("acme")).unwrap();
        assert_eq!((rows[0].used_at, &rows[0].scopes[..], rows[0].revoked_at), (Some(at(5000)), &scopes[..], None));
        let suspended = |suspended| done(&control, &ControlChange::Suspended { slug: "acme", suspended });
        suspended(true).unwrap();
        assert!(!known(&second) && control.organizations().unwrap()[0].suspended_at == Some(at(7)));
        suspended(false).unwrap();
        assert!(known(&second));
        done(&control, &ControlChange::Revoke { id: "k1" }).unwrap();
        assert!(!known(&second));
        let again = ControlChange::Revoke { id: "k1" };
        assert_eq!(done(&control, &again), Err("key k1 was revoked; create another".to_owned()));
        assert_eq!(done(&control, &ControlChange::Revoke { id: "k2" }), Err("there is no key k2".to_owned()));
        for file in std::fs::read_dir(dir.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            for secret in [&first, &second] {
                assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "only a digest is kept");
            }
        }
    }

    #[test]
    fn another_handle_is_noticed_and_another_programs_file_refused() {
        let (dir, control) = opened();
        let path = dir.path().join("control.db");
        let before = control.version().unwrap();
        let other = Control::open(&path, &Options::default()).unwrap();
        done(&other, &ControlChange::Organization { slug: "acme" }).unwrap();
        assert_ne!(control.version().unwrap(), before);
        assert_eq!(control.organizations().unwrap().len(), 1);
        assert!(matches!(connect::open(&path, &Options::default()), Err(Error::Damaged)), "it is no project's store");
        let store = dir.path().join("history.db");
        connect::open(&store, &Options::default()).unwrap();
        assert!(matches!(Control::open(&store, &Options::default()), Err(ControlError::Damaged)));
    }
}
