//! Results of promptfoo: its JSON (version 3, and the older ones with a table) and its JSONL of bare rows (FORMATS.md 2).
//!
//! What becomes what: a file is one evaluation, named by `config.description`, else `promptfoo`. A test is a case: its test case without
//! `options`, named by its description, else by its variables. A provider with a prompt is an arm. A row is an attempt, whose epoch is its
//! ordinal among the rows of one arm and test in the order of `testIdx` (`--repeat` leaves no other mark, and a test that is written twice
//! looks the same); of rows of one test and column with one `testIdx` the last counts, and the others are its retries. The run is the `evalId`, else a digest of the file. Its time is `metadata.evaluationCreatedAt`, else the one in the id,
//! else when the results were written, else the file's own; JSONL has only that.
//!
//! Promises: one pass for the header and the places, then one row at a time, whatever the order of the members; memory is the header, a few
//! words a row and one row (of a table alone, one of its lines); a row that is too big gives everything but its transcript; a test's secrets make no name.
//! Does not: read YAML, CSV or HTML exports, or `traces`.

mod arm;
mod cases;
mod cells;
mod check;
mod header;
mod index;
mod lines;
mod paths;
mod row;
mod slots;
mod table;
mod test;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    io::{Read, Seek, SeekFrom},
};

use sha2::{Digest as _, Sha256};

use self::{
    arm::{Arms, arms},
    header::{Parts, own_id},
    index::{Index, Place},
    row::{Context, Spot, items, who},
};
use super::{
    Input, Item, Limits, Opened, Refused,
    beside::Beside,
    inspect::{build::text_of, header::Shown},
    nan::strict,
    raw::Fields,
    scan::{Scanner, Sink, Stop},
    unreadable,
};
use crate::{
    domain::{extras::Extras, hex::hex_of_first},
    telemetry::redaction::Redactor,
};

/// The parts of a row that can be long and that an attempt can do without.
const LONG_KEYS: [&[u8]; 5] = [b"\"response\"", b"\"prompt\"", b"\"vars\"", b"\"testCase\"", b"\"metadata\""];
const BLOCK_BYTES: usize = 128 * 1024;

/// Opens a file of results.
pub(super) fn results<'a>(
    input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let (mut scanner, mut index) = (Scanner::new(input), Index::default());
    index.envelope(&mut scanner, limits, redactor).map_err(Refused::Broken)?;
    opened(scanner, index, beside, limits, redactor)
}

/// Opens a file of rows.
pub(super) fn rows<'a>(
    input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let (mut scanner, mut index) = (Scanner::new(input), Index::default());
    index.lines(&mut scanner, limits, redactor).map_err(Refused::Broken)?;
    opened(scanner, index, beside, limits, redactor)
}

fn opened<'a>(
    scanner: Scanner<Box<dyn Input + 'a>>,
    mut index: Index,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let broken = |why: String| Refused::Broken(format!("the header of the results {why}"));
    let bytes = strict(index.header());
    let json = std::str::from_utf8(&bytes).map_err(|error| broken(format!("is not UTF-8 at byte {}", error.valid_up_to())))?;
    let top: Fields<'_> = serde_json::from_str(json).map_err(|error| broken(format!("is no JSON: {error}")))?;
    let shown = Shown { redactor, bytes_max: limits.text_bytes_max };
    let own = own_id(&top, &shown);
    if index.rows.is_empty() && own.is_none() {
        return Err(Refused::NotALog("results of promptfoo without a row".to_owned()));
    }
    if !index.judged && !index.rows.is_empty() {
        return Err(Refused::NotALog("no results of promptfoo: no row says how it ended".to_owned()));
    }
    let mut input = scanner.into_inner();
    let digest = if own.is_none() { Some(sha256(&mut input).map_err(unreadable)?) } else { None };
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let Arms { infos, of_slot, names } = arms(&index.slots.all, &top, &shown);
    let parts = Parts { top: &top, tests: index.cases.tests(), digest, modified: beside.own_modified(), shown: &shown };
    let header = parts.header(infos).map_err(Refused::Broken)?;
    let context = Context { limits, redactor, evaluation: parts.name(), graded: index.graded };
    index.settle();
    let epochs = index.epochs(&of_slot);
    let items = Items {
        scanner: Scanner::new(input),
        cases: index.cases.ids(),
        ready: index.complaints.into_iter().map(Item::Complaint).collect(),
        rows: index.rows.into_iter().zip(epochs).collect::<Vec<_>>().into_iter(),
        of_slot,
        names,
        table_names: index.table.names,
        line: None,
        context,
    };
    Ok(Opened { header, extras: Extras::default(), items: Box::new(items) })
}

/// What a file without an id is known by: a digest of all its bytes.
fn sha256(input: &mut (impl Read + Seek + ?Sized)) -> std::io::Result<String> {
    input.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut block) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    loop {
        let read = match input.read(&mut block) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(block.get(..read).unwrap_or_default());
    }
    Ok(format!("sha256-{}", hex_of_first(16, &hasher.finalize())))
}

struct Items<'a> {
    scanner: Scanner<Box<dyn Input + 'a>>,
    rows: std::vec::IntoIter<(Place, u32)>,
    cases: Vec<String>,
    of_slot: Vec<u32>,
    names: Vec<String>,
    /// What the table's variables are called.
    table_names: Vec<String>,
    /// The line of the table that was read last, by its first byte: its cells as rows.
    line: Option<(u64, Vec<String>)>,
    context: Context<'a>,
    ready: VecDeque<Item>,
}

impl Iterator for Items<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let (place, epoch) = self.rows.next()?;
            if let Err(stop) = self.row(place, epoch) {
                // The first pass went over all of it: the file changes under us.
                self.rows = Vec::new().into_iter();
                return Some(Err(format!("{}; it changed while it was read", stop.sentence())));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Items<'_> {
    fn row(&mut self, place: Place, epoch: u32) -> Result<(), Stop> {
        let (at, limit) = (place.at, self.context.limits.entry_bytes_max);
        let (json, whole) = match place.column {
            Some(column) => self.cell(at, column)?,
            None => self.json(at, &LONG_KEYS)?,
        };
        let arm = self.of_slot.get(place.slot as usize).and_then(|arm| self.names.get(*arm as usize)).map_or("", String::as_str);
        let case = self.cases.get(place.test as usize).map_or("", String::as_str);
        match items(&json, &Spot { case, arm, epoch, retries: place.retries }, &self.context) {
            Ok(items) if whole => self.ready.extend(items),
            Ok(items) => self.small(items, limit),
            Err(error) if whole => self.complain(format!("the row at byte {at} cannot be read, so it is missing: {error}")),
            Err(_) => self.complain(format!("the row at byte {at} takes more than {limit} bytes, the most that it may, and is missing")),
        }
        Ok(())
    }

    /// The object at a byte; one that is too big without the members `long`, and whether it is whole.
    fn json(&mut self, at: u64, long: &[&[u8]]) -> Result<(String, bool), Stop> {
        let limit = self.context.limits.entry_bytes_max;
        self.scanner.jump(at)?;
        let mut bytes = Vec::new();
        let mut sink = Sink::into(&mut bytes, limit);
        self.scanner.value(&mut sink)?;
        let whole = sink.whole();
        if !whole {
            self.scanner.jump(at)?;
            bytes = self.scanner.without(long, limit)?.unwrap_or_default();
        }
        let (json, replaced) = text_of(strict(bytes));
        if replaced {
            self.complain(format!("the row at byte {at}: bytes that are no UTF-8 were replaced"));
        }
        Ok((json, whole))
    }

    /// The cell of `column` in the line of the table at a byte, as a row. The line is read once for all of them.
    fn cell(&mut self, at: u64, column: u32) -> Result<(String, bool), Stop> {
        if self.line.as_ref().is_none_or(|(held, _)| *held != at) {
            let (json, _) = self.json(at, &[])?;
            self.line = Some((at, cells::rows(&json, &self.table_names)));
        }
        let row = self.line.as_mut().and_then(|(_, rows)| rows.get_mut(column as usize)).map(std::mem::take);
        // A line that is too big gives none.
        Ok(row.map_or_else(|| (String::new(), false), |row| (row, true)))
    }

    /// A row whose long parts were left out.
    fn small(&mut self, items: Vec<Item>, limit: u64) {
        for item in items {
            if let Item::Attempt(attempt) = &item {
                let who = who(attempt);
                self.ready.push_back(item);
                self.complain(format!(
                    "{who}: it takes more than {limit} bytes, the most that a row may, and is imported without its transcript, input, output \
                     and usage"
                ));
            }
        }
    }

    fn complain(&mut self, sentence: String) {
        self.ready.push_back(Item::Complaint(sentence));
    }
}
