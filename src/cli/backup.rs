//! `runlore backup` and `runlore restore`: a project's file, or all files of a server of many organizations, while it serves.
//!
//! Promises: each file of a backup is one state and checked whole; the control file is copied first, so that a project made meanwhile is in
//! neither; nothing is overwritten. What is restored is brought up to date and opened before it is said to be there.
//! Does not: copy keys that stand in files of their own (`auth.local_key_file`), uploads that have come in part, or logs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    CliError,
    output::Output,
    session::{self, Place},
};
use crate::{
    auth::Caller,
    config::Config,
    local::root,
    serve::tenants::{self, CONTROL, PROJECTS},
    store::sqlite::{
        Options, Sqlite,
        backup::{self, Kind},
        control,
    },
};

/// The arguments of `runlore backup`.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// Where to: a file for a project; for organizations a directory, which must be empty or not there.
    #[arg(value_name = "PATH")]
    pub to: PathBuf,
    /// The directory of organizations; without it and without tenants.data_dir of the configuration, the local project.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// The arguments of `runlore restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// The backup.
    #[arg(value_name = "PATH")]
    pub from: PathBuf,
    /// The directory that the organizations come to, where none are yet; without it, tenants.data_dir of the configuration.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Copies.
///
/// # Errors
/// [`CliError`] where something is in the way, or cannot be read or written; what was written of it is taken away where it is one file.
pub fn backup(args: &BackupArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let config = config(args.data_dir.as_deref(), place)?;
    let options = session::options(&config);
    let Some(data) = directory(args.data_dir.as_deref(), &config) else {
        let from = located(place)?;
        let bytes = one(&from, &args.to, Kind::Project, &options)?;
        output.say(&format!("{}: {bytes} bytes", args.to.display()));
        return Ok(0);
    };
    let control = data.join(CONTROL);
    if !control.is_file() {
        return Err(CliError::Refused(format!("{}: there are no organizations here", data.display())));
    }
    empty(&args.to)?;
    let projects = args.to.join(PROJECTS);
    tenants::private_directory(&args.to).and_then(|()| tenants::private_directory(&projects)).map_err(|error| refused(&args.to, &error))?;
    let mut bytes = one(&control, &args.to.join(CONTROL), Kind::Control, &options)?;
    let ids = ids(&args.to.join(CONTROL), &options)?;
    let mut copied = 0;
    for id in &ids {
        let from = tenants::project_file(&data, id);
        // A project's file is made by the first thing that is done in it.
        if from.is_file() {
            bytes += one(&from, &tenants::project_file(&args.to, id), Kind::Project, &options)?;
            copied += 1;
        }
    }
    output.say(&format!("{}: organizations and {copied} of {} projects, {bytes} bytes", args.to.display(), ids.len()));
    Ok(0)
}

/// The configuration: where a directory of organizations is named, there need be no project.
fn config(data_dir: Option<&Path>, place: &Place) -> Result<Config, CliError> {
    match (&place.config, data_dir) {
        (Some(path), Some(_)) => Config::load(Some(path), None).map_err(|error| CliError::Usage(error.to_string())),
        (None, Some(_)) => Ok(Config::default()),
        (_, None) => session::config(place),
    }
}

/// Brings back.
///
/// # Errors
/// As [`backup`].
pub fn restore(args: &RestoreArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let config = config(args.data_dir.as_deref(), place)?;
    let options = session::options(&config);
    if args.from.is_file() {
        let to = located(place)?;
        one(&args.from, &to, Kind::Project, &options)?;
        opened(&to, &options)?;
        output.say(&format!("{} is restored", to.display()));
        return Ok(0);
    }
    let control = args.from.join(CONTROL);
    if !control.is_file() {
        return Err(CliError::Refused(format!("{} is no backup: there is neither a file nor {CONTROL} in it", args.from.display())));
    }
    let data = directory(args.data_dir.as_deref(), &config)
        .ok_or_else(|| CliError::Usage("give --data-dir DIR, or --config FILE with tenants.data_dir".to_owned()))?;
    empty(&data)?;
    tenants::private_directory(&data)
        .and_then(|()| tenants::private_directory(&data.join(PROJECTS)))
        .map_err(|error| refused(&data, &error))?;
    let ids = ids(&control, &options)?;
    let mut restored = 0;
    for id in &ids {
        let (from, to) = (tenants::project_file(&args.from, id), tenants::project_file(&data, id));
        if from.is_file() {
            one(&from, &to, Kind::Project, &options)?;
            opened(&to, &options)?;
            restored += 1;
        }
    }
    // Last: without it the directory is no server's, so that one that was restored in part is not taken for whole.
    one(&control, &data.join(CONTROL), Kind::Control, &options)?;
    output.say(&format!("{}: organizations and {restored} of {} projects are restored", data.display(), ids.len()));
    Ok(0)
}

fn directory(named: Option<&Path>, config: &Config) -> Option<PathBuf> {
    let configured = Some(PathBuf::from(&config.tenants.data_dir)).filter(|path| !path.as_os_str().is_empty());
    named.map(Path::to_owned).or(configured)
}

/// The file of the local project.
fn located(place: &Place) -> Result<PathBuf, CliError> {
    let here = std::env::current_dir().map_err(|error| CliError::Usage(error.to_string()))?;
    let located = root::locate(place.project.as_deref(), &here).map_err(|error| CliError::Usage(error.to_string()))?;
    root::create(&located.root).map_err(|error| refused(&located.root, &error))?;
    Ok(located.database())
}

fn empty(directory: &Path) -> Result<(), CliError> {
    let is = std::fs::read_dir(directory).map_or(!directory.exists(), |mut inside| inside.next().is_none());
    if is { Ok(()) } else { Err(CliError::Refused(format!("{} must be empty, or not there", directory.display()))) }
}

fn one(from: &Path, to: &Path, kind: Kind, options: &Options) -> Result<u64, CliError> {
    backup::copy(from, to, kind, options).map_err(|error| CliError::Refused(format!("{}: {}", from.display(), told(&error))))
}

/// For the operator's eyes: what callers are never told.
fn told(error: &crate::store::Error) -> String {
    if let crate::store::Error::Internal(reason) = error { reason.clone() } else { error.to_string() }
}

/// The ids of the projects that a control file knows.
fn ids(file: &Path, options: &Options) -> Result<Vec<String>, CliError> {
    control::project_ids(file, options).map_err(|error| refused(file, &error))
}

/// A file that cannot be opened is not restored.
fn opened(path: &Path, options: &Options) -> Result<(), CliError> {
    let store = Sqlite::open(path, &Caller::local().local_scope(), options);
    store.map(drop).map_err(|error| CliError::Refused(format!("{}: {error}", path.display())))
}

fn refused(path: &Path, error: &impl std::fmt::Display) -> CliError {
    CliError::Refused(format!("{}: {error}", path.display()))
}
