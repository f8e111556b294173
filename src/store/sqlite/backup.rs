//! A file of ours, copied as it is at one moment while others read and write it.
//!
//! Promises: the copy is one state, checked whole, on the disk and under its name only once it is; it needs no file beside it, and is for its
//! owner's eyes only. Writers wait for none of it, and none of theirs makes it begin again.
//! Does not: overwrite anything, or bring an older file up to date (opening it does).

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use super::{Options, connect, control};
use crate::{
    clock,
    domain::hex::hex,
    store::{Error, Result},
};

/// How often it is asked again while another has the file locked.
const AGAIN: Duration = Duration::from_millis(20);

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A project's.
    Project,
    /// The organizations'.
    Control,
}

/// Copies the file at `from` to `to`, where nothing may be; its bytes.
///
/// # Errors
/// [`Error::Internal`] where there is something at `to`; [`Error::Damaged`] where `from` is not such a file or is not whole,
/// [`Error::Newer`], [`Error::Busy`]; whatever the disk says. Nothing is at `to` then.
pub fn copy(from: &Path, to: &Path, kind: Kind, options: &Options) -> Result<u64> {
    if to.exists() {
        return Err(Error::Internal(format!("{} is there already", to.display())));
    }
    let partial = Partial::make(to)?;
    written(from, &partial.0, kind, options)?;
    let file = File::open(&partial.0).map_err(disk)?;
    file.sync_all().map_err(disk)?;
    let bytes = file.metadata().map_err(disk)?.len();
    // Not `rename`, which would take the place of what has come there meanwhile.
    std::fs::hard_link(&partial.0, to).map_err(disk)?;
    if let Some(directory) = to.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(disk)?;
    }
    Ok(bytes)
}

fn written(from: &Path, to: &Path, kind: Kind, options: &Options) -> Result<()> {
    let source = source(from, kind, options)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let until = clock::monotonic() + Duration::from_millis(options.busy_timeout_ms);
    let backup = Backup::new(&source, &mut copy)?;
    loop {
        // All at once: what is copied in several steps begins again whenever somebody writes, and may never end.
        match backup.step(-1)? {
            StepResult::Done => break,
            _ if clock::monotonic() < until => std::thread::sleep(AGAIN),
            _ => return Err(Error::Busy),
        }
    }
    drop(backup);
    // One file, which can be moved about; whoever opens it as a store makes it what it was.
    copy.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get::<_, String>(0))?;
    let whole: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if whole == "ok" { Ok(()) } else { Err(Error::Damaged) }
}

fn source(from: &Path, kind: Kind, options: &Options) -> Result<Connection> {
    let connection = connect::plain_reader(from, options)?;
    match kind {
        Kind::Project => connect::recognise(&connection)?,
        Kind::Control => control::recognise(&connection)?,
    }
    Ok(connection)
}

/// What is written until it is whole; gone when dropped.
struct Partial(PathBuf);

impl Partial {
    fn make(to: &Path) -> Result<Self> {
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", hex(&clock::random::<6>().map_err(Error::Internal)?)));
        let path = to.with_file_name(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(disk)?;
        Ok(Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn disk(error: std::io::Error) -> Error {
    Error::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{auth::Caller, store::sqlite::Sqlite};

    #[test]
    fn what_is_there_is_not_overwritten_and_what_is_no_store_is_not_copied() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a.db"), directory.path().join("b.db"));
        let options = Options::default();
        drop(Sqlite::open(&from, &Caller::local().local_scope(), &options).unwrap());
        assert!(copy(&from, &to, Kind::Project, &options).unwrap() > 0);
        assert!(matches!(copy(&from, &to, Kind::Project, &options), Err(Error::Internal(why)) if why.contains("there already")));
        std::fs::remove_file(&to).unwrap();
        assert!(matches!(copy(&from, &to, Kind::Control, &options), Err(Error::Damaged)), "a project is no control file");
        std::fs::write(directory.path().join("c.db"), "no database at all, but some text that is long enough").unwrap();
        assert!(copy(&directory.path().join("c.db"), &to, Kind::Project, &options).is_err());
        assert!(copy(&directory.path().join("none.db"), &to, Kind::Project, &options).is_err());
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert!(!to.exists() && left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
    }

    #[test]
    fn a_copy_is_its_owners_and_one_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a.db"), directory.path().join("b.db"));
        let _open = Sqlite::open(&from, &Caller::local().local_scope(), &Options::default()).unwrap();
        copy(&from, &to, Kind::Project, &Options::default()).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!directory.path().join("b.db-wal").exists());
        assert_eq!(
            Connection::open(&to).unwrap().pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0)),
            Ok("delete".into())
        );
    }
}
