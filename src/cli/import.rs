//! `runlore import`: logs by hand, or all that the project's sources have.
//!
//! Promises: a summary with the five counts on stdout, complaints on stderr; 0 when everything was read, 1 with complaints, 2 where there is
//! no project, its `runlore.toml` is wrong, or an argument is (decision 88).
//! Does not: read a log (`importers`), or decide what is one.

use std::path::PathBuf;

use super::{
    CliError,
    output::Output,
    progress::Bar,
    session::{Place, Session, directory},
};
use crate::local::{
    declared,
    index::{Indexer, run_id_fault},
    report::{Remarks, Report},
};

/// Import logs of evaluations into the project's history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ImportArgs {
    /// Files, or directories of files; none means the sources of runlore.toml and logs/.
    pub paths: Vec<PathBuf>,
    /// Make all these logs one run with this id (such as a CI job's).
    #[arg(long, value_name = "ID", requires = "paths")]
    pub run: Option<String>,
}

/// Imports; the exit code.
///
/// # Errors
/// [`CliError`], where nothing could be imported at all.
pub fn run(args: &ImportArgs, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    if let Some(fault) = args.run.as_deref().and_then(run_id_fault) {
        return Err(CliError::Usage(fault));
    }
    let (session, made) = Session::open_or_create(place)?;
    let declared = declared::read(session.root()).map_err(|error| CliError::Usage(error.to_string()))?;
    if made {
        output.say(&format!("Made .runlore in {}.", session.root().display()));
    }
    let bar = Bar::new(output.watched());
    let paths = args.paths.iter().map(|path| Ok(directory()?.join(path))).collect::<Result<Vec<PathBuf>, CliError>>()?;
    let report = session.indexing(|indexer| {
        let indexer = Indexer { progress: &bar, environment: indexer.environment.clone(), ..*indexer };
        if paths.is_empty() {
            return Ok(indexer.rescan(&declared));
        }
        indexer.declare(&declared).map_err(|error| CliError::Refused(error.to_string()))?;
        Ok(indexer.import(&paths, args.run.as_deref()))
    })?;
    say(&report, output);
    Ok(u8::from(!report.is_clean()))
}

/// Says what an import did, and what of it went wrong.
pub fn say(report: &Report, output: &mut Output) {
    list(&report.named_skipped, "skipped", output);
    list(&report.notes, "note", output);
    list(&report.complaints, "complaint", output);
    if let Some(error) = &report.stopped {
        output.complain(&format!("stopped: {error}; what was imported before stands"));
    }
    output.say(&report.to_string());
}

fn list(remarks: &Remarks, word: &str, output: &mut Output) {
    remarks.kept.iter().for_each(|remark| output.complain(&format!("{word}: {remark}")));
    let more = remarks.total.saturating_sub(remarks.kept.len() as u64);
    if more > 0 {
        output.complain(&format!("{word}: and {more} more"));
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
