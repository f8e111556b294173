//! What the importers' tests share: a whole file as it was read, and nothing beside it.
//!
//! Promises: every item is kept, and what broke the file.
//! Does not: know a format.

use std::io;

use super::{Input, Item, Opened, beside::Beside};
use crate::domain::{attempt::Attempt, log::LogHeader, outcome::Counts, time::Timestamp};

/// A whole file.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) header: LogHeader,
    pub(super) attempts: Vec<Attempt>,
    pub(super) complaints: Vec<String>,
    pub(super) broken: Option<String>,
}

impl Whole {
    pub(super) fn read(opened: Opened<'_>) -> Self {
        let mut whole = Self { header: opened.header, attempts: Vec::new(), complaints: Vec::new(), broken: None };
        for item in opened.items {
            match item {
                Ok(Item::Attempt(attempt)) => whole.attempts.push(*attempt),
                Ok(Item::Complaint(complaint)) => whole.complaints.push(complaint),
                Err(broken) => whole.broken = Some(broken),
            }
        }
        whole
    }

    pub(super) fn lines(&self, attempt: usize) -> Vec<String> {
        self.attempts[attempt].transcript.page(0, u64::MAX).unwrap()
    }

    pub(super) fn of(&self, case: &str) -> &Attempt {
        self.attempts.iter().find(|attempt| attempt.case == case).unwrap_or_else(|| panic!("no {case}"))
    }

    pub(super) fn counts(&self) -> Counts {
        Counts::of(self.attempts.iter().map(|attempt| attempt.outcome))
    }
}

/// Nothing stands beside the file, whose time is known.
pub(super) struct Written(pub(super) Option<Timestamp>);

impl Beside for Written {
    fn names(&self) -> &[String] {
        &[]
    }

    fn modified(&self, _: &str) -> Option<Timestamp> {
        None
    }

    fn own_modified(&self) -> Option<Timestamp> {
        self.0
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Input + '_>> {
        Err(io::ErrorKind::NotFound.into())
    }
}
