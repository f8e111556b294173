//! `runlore import`: logs by hand, or all that the project's sources have.
//!
//! Promises: a summary with the five counts on the output, complaints on the errors; 0 when everything was read, 1 with complaints, 2 where
//! there is no project, its `runlore.toml` is wrong, or an argument is (decision 88).
//! Does not: open the store itself (its adapter is chosen above), or write anywhere but to the writers it is handed.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    importers::Limits,
    local::{
        declared,
        index::{Indexer, run_id_fault},
        report::{Remarks, Report},
        root::{self, How},
        walk::Bounds,
    },
    store::{self, Store},
    telemetry::redaction::Redactor,
};

use super::progress::Bar;

/// Import logs of evaluations into the project's history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ImportArgs {
    /// Files, or directories of files; none means the sources of runlore.toml and logs/.
    pub paths: Vec<PathBuf>,
    /// The project's root directory; without it, the nearest directory upward with .runlore or .git.
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Make all these logs one run with this id (such as a CI job's).
    #[arg(long, value_name = "ID", requires = "paths")]
    pub run: Option<String>,
}

/// What the command stands on.
pub struct Env<'a> {
    /// The working directory.
    pub directory: PathBuf,
    /// Whether standard error is a terminal.
    pub terminal: bool,
    /// The values of [`crate::local::git::ENVIRONMENT`].
    pub git_environment: Vec<(OsString, OsString)>,
    /// What replaces secrets.
    pub redactor: &'a Redactor,
    /// What one log may cost.
    pub limits: &'a Limits,
    /// How far directories are searched.
    pub bounds: Bounds,
    /// What a file may take on disk.
    pub file_bytes_max: u64,
    /// Opens, or makes, the store in this file.
    pub open: &'a dyn Fn(&Path) -> store::Result<Box<dyn Store>>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The exit code.
    pub code: u8,
    /// A sentence.
    pub message: String,
}

impl Fault {
    fn usage(message: impl ToString) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    fn refused(message: impl ToString) -> Self {
        Self { code: 1, message: message.to_string() }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::refused(format!("the output cannot be written: {}", root::reason(&error)))
    }
}

/// Imports; the exit code.
///
/// # Errors
/// [`Fault`], with its exit code, where nothing could be imported at all.
pub fn import(args: &ImportArgs, env: &Env<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Fault> {
    if let Some(fault) = args.run.as_deref().and_then(run_id_fault) {
        return Err(Fault::usage(fault));
    }
    let located = root::locate_or_create(args.project.as_deref(), &env.directory).map_err(Fault::usage)?;
    let declared = declared::read(&located.root).map_err(Fault::usage)?;
    root::create(&located.root)
        .map_err(|error| Fault::refused(format!("{}/.runlore cannot be made: {}", located.root.display(), root::reason(&error))))?;
    if located.how == How::Created {
        writeln!(out, "Made .runlore in {}.", located.root.display())?;
    }
    let store = (env.open)(&located.database()).map_err(Fault::refused)?;
    let bar = Bar::new(env.terminal);
    let indexer = Indexer {
        progress: &bar,
        bounds: env.bounds,
        file_bytes_max: env.file_bytes_max,
        environment: env.git_environment.clone(),
        ..Indexer::new(&located.root, &*store, env.limits, env.redactor)
    };
    let report = if args.paths.is_empty() {
        indexer.rescan(&declared)
    } else {
        indexer.declare(&declared).map_err(Fault::refused)?;
        let paths: Vec<PathBuf> = args.paths.iter().map(|path| env.directory.join(path)).collect();
        indexer.import(&paths, args.run.as_deref())
    };
    say(&report, out, err)?;
    Ok(u8::from(!report.is_clean()))
}

fn say(report: &Report, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    list(&report.named_skipped, "skipped", err)?;
    list(&report.notes, "note", err)?;
    list(&report.complaints, "complaint", err)?;
    if let Some(error) = &report.stopped {
        writeln!(err, "stopped: {error}; what was imported before stands")?;
    }
    writeln!(out, "{report}")
}

fn list(remarks: &Remarks, word: &str, err: &mut dyn Write) -> io::Result<()> {
    remarks.kept.iter().try_for_each(|remark| writeln!(err, "{word}: {remark}"))?;
    match remarks.total.saturating_sub(remarks.kept.len() as u64) {
        0 => Ok(()),
        more => writeln!(err, "{word}: and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::local::index::tests::fakes::Memory;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: ImportArgs,
    }

    struct Ran {
        code: Result<u8, Fault>,
        out: String,
        err: String,
    }

    /// Runs the command over a store that forgets; nothing is a log to the real importers that is not one of their formats.
    fn run(directory: &Path, arguments: &[&str]) -> Ran {
        let args = Command::try_parse_from(["import"].iter().chain(arguments)).unwrap().args;
        let env = Env {
            directory: directory.to_path_buf(),
            terminal: false,
            git_environment: Vec::new(),
            redactor: &Redactor::patterns_only(),
            limits: &Limits::default(),
            bounds: Bounds::default(),
            file_bytes_max: 1024,
            open: &|_| Ok(Box::new(Memory::default())),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = import(&args, &env, &mut out, &mut err);
        Ran { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
    }

    #[test]
    fn without_a_project_one_is_made_where_one_stands() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("notes.txt"), "hello").unwrap();
        let ran = run(directory.path(), &["notes.txt"]);
        assert_eq!(ran.code.unwrap(), 0);
        assert!(ran.out.starts_with("Made .runlore in ") && ran.out.ends_with("missing 0). 1 no logs.\n"), "{}", ran.out);
        assert!(ran.err.starts_with("skipped: notes.txt: "), "{}", ran.err);
        assert!(directory.path().join(".runlore/.gitignore").is_file());
        let again = run(&directory.path().join(".runlore"), &[]);
        assert!(!again.out.contains("Made"), "{}", again.out);
    }

    #[test]
    fn complaints_make_it_one_and_wrong_use_two() {
        let directory = tempfile::tempdir().unwrap();
        let ran = run(directory.path(), &["nowhere.eval"]);
        assert_eq!(ran.code.unwrap(), 1);
        assert!(ran.err.contains("complaint: ") && ran.err.contains("nowhere.eval: no such file or directory"), "{}", ran.err);
        for (arguments, part) in [(&["--project", "nowhere"][..], "--project nowhere"), (&["x", "--run", "a b"], "--run \"a b\"")] {
            let fault = run(directory.path(), arguments).code.unwrap_err();
            assert!(fault.code == 2 && fault.message.contains(part), "{fault}");
        }
        fs::write(directory.path().join("runlore.toml"), "[[source]]\npth = 1").unwrap();
        let fault = run(directory.path(), &[]).code.unwrap_err();
        assert!(fault.code == 2 && fault.message.starts_with("runlore.toml, line 2, column 1"), "{fault}");
        assert!(Command::try_parse_from(["import", "--run", "x"]).is_err(), "--run is for what is named");
    }
}
