//! The first pass over a run record: everything but the attempts as one text, and where each attempt begins.
//!
//! Promises: the order of members does not matter; an attempt costs sixteen bytes here; nothing follows the record.
//! Does not: read values.

use std::io::Read;

use crate::importers::{
    Limits,
    scan::{Scanner, Sink, Stop},
};

/// Attempts of one record: more is no history of one run.
const ATTEMPTS_MAX: usize = 2_000_000;

/// Where an attempt stands.
pub(super) struct Place {
    /// The place of its evaluation among the record's.
    pub(super) evaluation: usize,
    /// Its first byte.
    pub(super) offset: u64,
}

/// What the first pass finds.
pub(super) struct Index {
    /// The record without its attempts.
    pub(super) header: Vec<u8>,
    /// Its attempts, in the order of the file.
    pub(super) places: Vec<Place>,
}

impl Index {
    /// Goes over the record.
    pub(super) fn of<R: Read>(scanner: &mut Scanner<R>, limits: &Limits) -> Result<Self, String> {
        let mut index = Self { header: Vec::new(), places: Vec::new() };
        let mut pass = Pass { scanner, room: limits.entry_bytes_max, index: &mut index };
        pass.record().map_err(|fault| fault.sentence(limits))?;
        Ok(index)
    }
}

enum Fault {
    Stop(Stop),
    Large,
    Many,
    /// Something follows at this byte.
    Trailing(u64),
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl Fault {
    fn sentence(&self, limits: &Limits) -> String {
        match self {
            Fault::Stop(stop) => stop.sentence(),
            Fault::Large => {
                format!("the run record without its attempts takes more than {} bytes, the most that it may", limits.entry_bytes_max)
            }
            Fault::Trailing(at) => {
                format!("the run record ends before byte {at}, and more follows there; a file has one record and nothing else")
            }
            Fault::Many => format!("the run record has more than {ATTEMPTS_MAX} attempts, the most that it may"),
        }
    }
}

struct Pass<'p, R> {
    scanner: &'p mut Scanner<R>,
    room: u64,
    index: &'p mut Index,
}

impl<R: Read> Pass<'_, R> {
    fn record(&mut self) -> Result<(), Fault> {
        self.object(
            |pass, key| if key == b"\"evals\"" && pass.scanner.peek()? == Some(b'[') { pass.evals().map(|()| true) } else { Ok(false) },
        )?;
        // What is not read would be lost without a word.
        if self.scanner.peek()?.is_some() { Err(Fault::Trailing(self.scanner.offset())) } else { Ok(()) }
    }

    fn evals(&mut self) -> Result<(), Fault> {
        let (mut first, mut number) = (self.scanner.take(b'[')?, 0);
        self.push(b"[")?;
        while self.scanner.more(b']', first)? {
            if !first {
                self.push(b",")?;
            }
            first = false;
            if self.scanner.peek()? == Some(b'{') {
                self.object(|pass, key| {
                    let list = key == b"\"attempts\"" && pass.scanner.peek()? == Some(b'[');
                    if list { pass.attempts(number).map(|()| true) } else { Ok(false) }
                })?;
            } else {
                self.copy()?;
            }
            number += 1;
        }
        self.push(b"]")
    }

    fn attempts(&mut self, evaluation: usize) -> Result<(), Fault> {
        let mut first = self.scanner.take(b'[')?;
        while self.scanner.more(b']', first)? {
            first = false;
            if self.index.places.len() >= ATTEMPTS_MAX {
                return Err(Fault::Many);
            }
            self.scanner.peek()?;
            self.index.places.push(Place { evaluation, offset: self.scanner.offset() });
            self.scanner.value(&mut Sink::skip())?;
        }
        self.push(b"[]")
    }

    /// Copies an object; `special` takes a member's value itself where it says so.
    fn object(&mut self, mut special: impl FnMut(&mut Self, &[u8]) -> Result<bool, Fault>) -> Result<(), Fault> {
        let (mut key, mut first) = (Vec::new(), true);
        self.scanner.take(b'{')?;
        self.push(b"{")?;
        while self.scanner.key(first, &mut key)? {
            if !first {
                self.push(b",")?;
            }
            first = false;
            // A key that is too long to be one of ours is shown as such, and refused with its place.
            self.push(if key.is_empty() { b"\"a key of more than a kilobyte\"" } else { &key })?;
            self.push(b":")?;
            if !special(self, &key)? {
                self.copy()?;
            }
        }
        self.push(b"}")
    }

    fn copy(&mut self) -> Result<(), Fault> {
        let before = self.index.header.len() as u64;
        let mut sink = Sink::into(&mut self.index.header, self.room);
        self.scanner.value(&mut sink)?;
        if !sink.whole() {
            return Err(Fault::Large);
        }
        self.room = self.room.saturating_sub((self.index.header.len() as u64).saturating_sub(before));
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or(Fault::Large)?;
        self.index.header.extend_from_slice(bytes);
        Ok(())
    }
}
