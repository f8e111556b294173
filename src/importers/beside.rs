//! Files that belong to a log and stand beside its main file: transcripts and analyses of a run record, samples of lm-eval.
//!
//! Promises: which file belongs to which is told by names alone, so that a look at unchanged files opens none of them; a name leads to no
//! file but those that were found.
//! Does not: touch the disk.

use std::io;

use super::Input;
use crate::domain::time::Timestamp;

/// The main file of a run record.
pub const RECORD: &str = "run.json";
/// Where the transcripts of a run record stand, below its directory.
pub const TRANSCRIPTS: &str = "transcripts/";
/// Where the analyses of a run record stand, below its directory.
pub const ANALYSES: &str = "analysis/";

/// The shape of lm-eval's stamps, `0` being any digit.
const STAMP: &str = "0000-00-00T00-00-00";

/// The files beside the one that is opened.
pub trait Beside {
    /// The main file's own name, without its directory; empty where it has none.
    fn main(&self) -> &str {
        ""
    }

    /// Their names, relative to the main file's directory, with `/` between parts; in order.
    fn names(&self) -> &[String];

    /// When the main file itself was last changed, where that is known: a log that says no time is as old as its file.
    fn own_modified(&self) -> Option<Timestamp> {
        None
    }

    /// When a file was last changed.
    fn modified(&self, name: &str) -> Option<Timestamp>;

    /// Opens one of [`Beside::names`].
    ///
    /// # Errors
    /// The system's; not found for a name that is not among them.
    fn open(&self, name: &str) -> io::Result<Box<dyn Input + '_>>;
}

/// Nothing stands beside the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Beside for Alone {
    fn names(&self) -> &[String] {
        &[]
    }

    fn modified(&self, _: &str) -> Option<Timestamp> {
        None
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Input + '_>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Whether files can stand beside one of this name at all.
#[must_use]
pub fn leads(main: &str) -> bool {
    main == RECORD || results(main).is_some()
}

/// Whether the file `name` (relative to the directory of `main`) belongs to `main`.
#[must_use]
pub fn belongs(main: &str, name: &str) -> bool {
    if main == RECORD {
        return name.starts_with(TRANSCRIPTS) || name.starts_with(ANALYSES);
    }
    results(main).is_some_and(|(prefix, stamp)| task(prefix, stamp, name).is_some())
}

/// The task whose samples the file `name` holds, where it belongs to the lm-eval results file `main`.
#[must_use]
pub fn task_of<'a>(main: &str, name: &'a str) -> Option<&'a str> {
    let (prefix, stamp) = results(main)?;
    task(prefix, stamp, name)
}

/// lm-eval's `[prefix]results_<stamp>.json`: the prefix and the stamp. Where the user named the file, it is `<name>_<stamp>.json`, and its
/// samples are named as ever.
fn results(main: &str) -> Option<(&str, &str)> {
    let stem = main.strip_suffix(".json")?;
    let samples = stem.contains("samples_");
    let named = || stem.rsplit_once('_').filter(|(_, stamp)| !samples && is_stamp(stamp)).map(|(_, stamp)| ("", stamp));
    let (prefix, stamp) = stem.split_once("results_").or_else(named)?;
    (!stamp.is_empty() && !main.contains('/')).then_some((prefix, stamp))
}

/// Whether `text` is `2026-01-21T03-44-18` with or without a fraction.
fn is_stamp(text: &str) -> bool {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let like = |(byte, shape): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    whole.len() == STAMP.len() && whole.bytes().zip(STAMP.bytes()).all(like)
}

/// lm-eval's `[prefix]samples_<task>_<stamp>.jsonl`; the task's name may hold underscores. Some releases name it `.json`.
fn task<'a>(prefix: &str, stamp: &str, name: &'a str) -> Option<&'a str> {
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"))?;
    let task = stem.strip_prefix(prefix)?.strip_prefix("samples_")?.strip_suffix(stamp)?.strip_suffix('_')?;
    (!task.is_empty() && !name.contains('/')).then_some(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_belongs_together() {
        let stamp = "2026-01-21T03-44-18.458309";
        let results = format!("results_{stamp}.json");
        assert_eq!(task_of(&results, &format!("samples_gsm8k_cot_{stamp}.jsonl")), Some("gsm8k_cot"));
        assert_eq!(task_of(&format!("eee_{results}"), &format!("eee_samples_a_{stamp}.json")), Some("a"));
        for name in
            ["samples_a_2025.jsonl".to_owned(), format!("samples_{stamp}.jsonl"), format!("x/samples_a_{stamp}.jsonl"), results.clone()]
        {
            assert_eq!(task_of(&results, &name), None, "{name}");
        }
        assert_eq!(task_of(&format!("mine_{stamp}.json"), &format!("samples_a_{stamp}.jsonl")), Some("a"));
        assert!(!leads("mine_2026.json") && !leads("mine_2026-01-21T03-44-1x.json"));
        assert!(leads(RECORD) && leads(&results) && !leads("results.json") && !leads("my.json"));
        assert!(belongs(RECORD, "transcripts/1.jsonl") && belongs(RECORD, "analysis/saved/a.json") && !belongs(RECORD, "a.json"));
    }
}
