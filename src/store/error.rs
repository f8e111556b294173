//! Why the store could not answer or write.
//!
//! Promises: the text is for people and carries no SQL and no path.
//! Does not: say what went wrong inside; that is for the log.

/// Why the store could not answer or write. The text is for people and carries no SQL and no path.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another process holds the write lock for longer than the deadline.
    #[error("the store is busy: another process is writing to it; try again")]
    Busy,
    /// The file was written by a newer runlore.
    #[error(
        "the store was written by a newer runlore (schema {found}; this one knows up to {known}); update runlore, or move the file away to index anew"
    )]
    Newer {
        /// The file's schema version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The disk or file does not take writes.
    #[error("the store is read-only: the disk, directory or file does not take writes")]
    ReadOnly,
    /// No room.
    #[error("the disk is full; nothing was changed")]
    Full,
    /// The file is no store, or is damaged.
    #[error("the store file is damaged or no runlore store; move it away to index anew")]
    Damaged,
    /// Nobody waits for the answer any more ([`Store::heeding`]).
    #[error("the call was given up before the store had answered")]
    Cancelled,
    /// The importer gave up in the middle of a log; nothing of it was kept.
    #[error("{0}")]
    Import(String),
    /// Anything else; the text is for the log only.
    #[error("the store failed")]
    Internal(String),
}
