//! What an import or a look came to.
//!
//! Promises: every number has a sentence; the five counts stand together; what is kept of remarks is bounded, and their number is whole.
//! Does not: print.

use std::{collections::BTreeSet, fmt};

use crate::{domain::outcome::Counts, store};

/// Remarks of one sort that are kept with their text.
const REMARKS_MAX: usize = 1000;

/// A sentence about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The file or directory: relative to the project where it is inside.
    pub path: String,
    /// What there is to say.
    pub text: String,
}

impl Remark {
    /// A remark whose path and text cannot disturb a terminal: a file's name can hold any character.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: printable(path), text: printable(text) }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.text)
    }
}

fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Remarks of one sort: their number, and the first of them.
#[derive(Debug, Default)]
pub struct Remarks {
    /// How many there are.
    pub total: u64,
    /// The first of them.
    pub kept: Vec<Remark>,
}

impl Remarks {
    /// Adds one.
    pub fn push(&mut self, remark: Remark) {
        self.total += 1;
        if self.kept.len() < REMARKS_MAX {
            self.kept.push(remark);
        }
    }
}

/// What an import or a look came to.
#[derive(Debug, Default)]
pub struct Report {
    /// Files met.
    pub files: u64,
    /// Logs written: new, or changed.
    pub logs: u64,
    /// Files that hold a log that another file holds better.
    pub copies: u64,
    /// Files that are as they were.
    pub unchanged: u64,
    /// Files that are no logs.
    pub skipped: Remarks,
    /// Those of them that were named by hand, where silence would puzzle.
    pub named_skipped: Remarks,
    /// What is broken or could not be read.
    pub complaints: Remarks,
    /// What was broken before and is so still: it is not read again until it changes.
    pub broken: Remarks,
    /// What is no fault and still worth a line: a file that is being written.
    pub notes: Remarks,
    /// Files that are gone, and what they held with them.
    pub vanished: u64,
    /// The runs that the written logs belong to, in the end: a retry joins the run of what it retries, whichever came first.
    pub runs: BTreeSet<String>,
    /// The run of the log that was read last, changed or not.
    pub belongs: Option<String>,
    /// Attempts read from them, those that a retry replaces too.
    pub attempts: u64,
    /// Their counts.
    pub counts: Counts,
    /// Whether the store holds anything else than before.
    pub changed: bool,
    /// Why the rest was left for the next time.
    pub stopped: Option<store::Error>,
}

impl Report {
    /// Whether everything that was found was read.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.complaints.total == 0 && self.broken.total == 0 && self.stopped.is_none()
    }

    /// What an answer that was given after this look should say, if anything.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let stopped = self.stopped.as_ref().map(|error| match error {
            store::Error::Busy => "Another process is indexing this project; this answer is from what was indexed before.".to_owned(),
            store::Error::ReadOnly => "The store takes no writes, so logs newer than it are not in this answer.".to_owned(),
            other => format!("Logs could not be indexed ({other}); this answer is from what was indexed before."),
        });
        let total = self.complaints.total + self.broken.total;
        let first = self.complaints.kept.iter().chain(&self.broken.kept).next();
        let broken = first.map(|first| {
            let more = if total > 1 { format!(" ({total} such files or parts; `runlore import` lists them)") } else { String::new() };
            format!("Not everything could be read: {first}{more}.")
        });
        let parts: Vec<String> = stopped.into_iter().chain(broken).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { passed, failed, infra, unscored, missing } = self.counts;
        write!(
            formatter,
            "{} of {}, in {}: {} read",
            counted(self.logs, "log"),
            counted(self.files, "file"),
            counted(self.runs.len() as u64, "run"),
            counted(self.attempts, "attempt")
        )?;
        write!(formatter, " (passed {passed}, failed {failed}, infra {infra}, unscored {unscored}, missing {missing}).")?;
        let rest = [
            (self.unchanged, "unchanged"),
            (self.copies, "copies of other logs"),
            (self.skipped.total, "skipped as no log"),
            (self.vanished, "gone"),
            (self.complaints.total, "complaints"),
        ];
        let rest: Vec<String> = rest.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
        if rest.is_empty() { Ok(()) } else { write!(formatter, " {}.", rest.join(", ")) }
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_five_counts_and_only_what_there_is_besides() {
        let mut report = Report { files: 3, logs: 1, attempts: 7, unchanged: 2, ..Report::default() };
        report.counts = Counts { passed: 3, failed: 2, infra: 1, unscored: 0, missing: 1 };
        report.runs.insert("r".to_owned());
        assert_eq!(
            report.to_string(),
            "1 log of 3 files, in 1 run: 7 attempts read (passed 3, failed 2, infra 1, unscored 0, missing 1). 2 unchanged."
        );
    }

    #[test]
    fn remarks_are_bounded_and_disturb_no_terminal() {
        let mut remarks = Remarks::default();
        (0..2000).for_each(|_| remarks.push(Remark::new("a\u{1b}[2J\n", "é")));
        assert_eq!((remarks.total, remarks.kept.len()), (2000, REMARKS_MAX));
        assert_eq!(remarks.kept[0].to_string(), "a\\u{1b}[2J\\n: é");
    }
}
