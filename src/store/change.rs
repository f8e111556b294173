//! What is written, and what a write did.
//!
//! Promises: a [`Change`] is the one way to write; what a store keeps of a file is told by values.
//! Does not: apply anything; the adapters do.

use super::{
    Kind,
    workspace::{Act, Deed, Health, Outcome, QueueChange, QueueOutcome},
};
use crate::domain::{attempt::Attempt, declared::Declared, extras::Extras, log::LogHeader, outcome::Counts};

/// One write. Nothing else writes.
#[expect(
    clippy::large_enum_variant,
    reason = "a change is made once, moved once and never stored: a box would only be one more word to write"
)]
pub enum Change<'a> {
    /// A log, whole: replaces what its file or its log id held before, unless a better copy is there.
    Log(LogChange<'a>),
    /// A file that was looked at and holds no log, so that it is not read again until it changes.
    Skipped {
        /// The file.
        file: FileStamp,
        /// Whether that is a complaint (a broken log) rather than a file that is none.
        broken: bool,
        /// Why.
        reason: String,
    },
    /// Files of a source that are gone: what they held leaves the index, and a copy that stood behind takes its place at the next look (its
    /// row in `files` is dropped, so that it is read again). Which files are gone, the caller knows: one imported by hand is not named here.
    Vanished {
        /// The paths.
        paths: Vec<String>,
    },
    /// What could not be read of a file whose rest stands, so that it is told as long as it holds.
    Remarks {
        /// The path.
        path: String,
        /// Sentences; none for nothing.
        remarks: Vec<String>,
    },
    /// The declarations of `runlore.toml`, whole: cells are judged anew where a threshold changed.
    Declared(Declared),
    /// Somebody does something in the workspace. What it came to, also a refusal, is [`Applied::outcome`]; either way the trail has its row.
    Deed(Box<(Deed, Act)>),
    /// Somebody was refused before anything could be done: a row of the trail.
    Refused {
        /// Who, and what was asked.
        deed: Box<Deed>,
        /// `refused` or `denied`.
        outcome: &'static str,
        /// The sentence that was said.
        reason: String,
    },
    /// A worker takes, keeps or ends a run. What it came to is [`Applied::queue`].
    Queue(QueueChange<'a>),
    /// A connection was looked at.
    Synced {
        /// Its id.
        connection: String,
        /// What that came to.
        health: Health,
    },
    /// What the views say of evaluations that earlier changes touched is worked out. Once after many changes is enough; nothing but the views
    /// looks different.
    Refresh,
    /// Some of the texts that are not in the index of `search` yet come into it. Nothing but what a search finds looks different.
    SearchIndex,
}

/// A log to be written.
pub struct LogChange<'a> {
    /// Where it came from.
    pub file: FileStamp,
    /// Recorded or scratch.
    pub kind: Kind,
    /// Everything but the attempts.
    pub header: LogHeader,
    /// What few formats hold.
    pub extras: Extras,
    /// Whether the operator fixed `header.run_key` (decision 93): then a retry does not move.
    pub pinned: bool,
    /// Up to 500 ancestor shas of the head commit, nearest first, where a repository was at hand (decision 90).
    pub ancestors: Vec<String>,
    /// The attempts, pulled one by one inside the transaction. An error ends it and nothing is kept.
    pub attempts: &'a mut dyn Iterator<Item = std::result::Result<Attempt, String>>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    /// The path: relative to the project root where it is inside, else absolute. The key.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// SHA-256 of the content, hexadecimal.
    pub digest: String,
    /// The declared source that found it; none for what was imported by hand, which stays when the file goes. The last look decides.
    pub source: Option<String>,
}

/// What the store knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// The file, as last looked at.
    pub stamp: FileStamp,
    /// What it held.
    pub state: FileState,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// The log that counts.
    Log(String),
    /// A copy of the log that the file of this path holds.
    CopyOf(String),
    /// No log.
    Skipped(String),
    /// A log that cannot be read.
    Broken(String),
}

/// What a change did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Applied {
    /// Whether anything but file stamps changed: rows, or what a file is known to hold. Only then does the generation rise.
    pub changed: bool,
    /// The run that a log belongs to.
    pub run_id: Option<String>,
    /// Attempts written; 0 where the file held the same before, or is a copy.
    pub attempts: u64,
    /// Their counts.
    pub counts: Counts,
    /// The path of the file that holds the same log and counts instead.
    pub copy_of: Option<String>,
    /// Whether there are more texts to bring into the index of `search`.
    pub left: bool,
    /// What a deed came to.
    pub outcome: Option<Outcome>,
    /// What a change to the queue came to.
    pub queue: Option<QueueOutcome>,
}
