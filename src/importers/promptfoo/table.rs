//! The table of results before version 3, where the test cases stand that the rows do not have.
//!
//! Promises: a row of one test alone gets that test's name and assertions; memory is a few words a row of the table.
//! Does not: read the cells (`results.results` has the same with the tools' own words for what broke; where it is missing, `cells` does).

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{Read, Seek},
};

use super::{
    index::pick,
    test::{Mark, Test, cells_of_row},
};
use crate::{
    importers::{
        Limits,
        nan::strict,
        scan::{Scanner, Sink, Stop},
    },
    telemetry::redaction::Redactor,
};

/// What the table has seen so far.
#[derive(Default)]
pub(super) struct Table {
    /// What its columns of variables are called.
    pub(super) names: Vec<String>,
    /// Its other columns, as they stand.
    pub(super) prompts: Vec<u8>,
    /// Where its lines begin.
    pub(super) body: Option<u64>,
    /// The test of the rows with these cells; none where there are several.
    tests: HashMap<Mark, Option<Test>>,
    rows: usize,
    ambiguous: bool,
}

fn told(stop: Stop) -> String {
    stop.sentence()
}

impl Table {
    /// How many rows it has.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Whether a row could be of several tests.
    pub(super) const fn ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Goes through the table.
    pub(super) fn scan<R: Read + Seek>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        scanner.take(b'{').map_err(told)?;
        let (mut key, mut first, mut bodies) = (Vec::new(), true, Vec::new());
        while scanner.key(first, &mut key).map_err(told)? {
            first = false;
            let opens = scanner.peek().map_err(told)?;
            match (key.as_slice(), opens) {
                (b"\"head\"", Some(b'{')) => {
                    let [names, prompts] = pick(scanner, [b"\"vars\"", b"\"prompts\""], limits.entry_bytes_max).map_err(told)?;
                    self.names = serde_json::from_slice(&strict(names)).unwrap_or_default();
                    self.prompts = strict(prompts);
                }
                (b"\"body\"", Some(b'[')) if self.names.is_empty() => {
                    // Without its head nobody knows whose cells these are.
                    bodies.push(scanner.offset());
                    self.body = Some(scanner.offset());
                    scanner.value(&mut Sink::skip()).map_err(told)?;
                }
                (b"\"body\"", Some(b'[')) => {
                    self.body = Some(scanner.offset());
                    self.body(scanner, limits, redactor)?;
                }
                _ => scanner.value(&mut Sink::skip()).map_err(told)?,
            }
        }
        let end = scanner.offset();
        for body in bodies {
            scanner.jump(body).map_err(told)?;
            self.body(scanner, limits, redactor)?;
        }
        scanner.jump(end).map_err(told)
    }

    fn body<R: Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        let mut first = scanner.take(b'[').map_err(told)?;
        while scanner.more(b']', first).map_err(told)? {
            first = false;
            let [cells, test] = pick(scanner, [b"\"vars\"", b"\"test\""], limits.entry_bytes_max).map_err(told)?;
            self.rows += 1;
            if self.rows > limits.entries_max {
                return Err(format!("the table of the results has more than {} rows, the most that it may", limits.entries_max));
            }
            self.see(cells_of_row(&self.names, &cells), Test::read(&test, b"", redactor));
        }
        Ok(())
    }

    fn see(&mut self, cells: Mark, test: Test) {
        match self.tests.entry(cells) {
            Entry::Vacant(free) => {
                free.insert(Some(test));
            }
            Entry::Occupied(mut held) => {
                if held.get().as_ref().is_some_and(|known| known.identity != test.identity) {
                    held.insert(None);
                }
            }
        }
    }

    /// Tells tests of which only the variables are known what the table has of them.
    pub(super) fn tell(&mut self, tests: &mut [Test]) {
        for test in tests {
            match test.cells.and_then(|cells| self.tests.get(&cells)) {
                Some(Some(known)) if known.cells.is_none() => {
                    test.description.clone_from(&known.description);
                    test.scorer.clone_from(&known.scorer);
                }
                Some(None) => self.ambiguous = true,
                _ => {}
            }
        }
    }
}
