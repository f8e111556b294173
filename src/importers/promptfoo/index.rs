//! The first pass over a file of results: the parts that are its header, and for each row its place, its test and its column.
//!
//! Promises: one pass, whatever the order of the members; the tests that `config` repeats, prompts' texts in rows, outputs and traces are
//! passed over; memory is the header, each test's digests and a few words a row.
//! Does not: read rows (`row` does, one at a time); of a table's cells only whether they were graded.

use std::{
    collections::{BTreeMap, HashMap},
    io::{Read, Seek},
};

use serde_json::value::RawValue;

use super::{
    cases::Cases,
    cells::{graded, says, variables},
    slots::Slots,
    table::Table,
};
use crate::{
    importers::{
        Limits,
        inspect::build::text_of,
        nan::strict,
        raw::{fields, list},
        scan::{Scanner, Sink, Stop},
    },
    telemetry::redaction::Redactor,
};

/// Ids, labels and numbers of a row: what is longer is told apart by its beginning.
const WORD_BYTES_MAX: u64 = 8 * 1024;
/// Complaints about rows that are told one by one.
const COMPLAINTS_MAX: usize = 20;

/// An object of the envelope that is gone through member by member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Top,
    Results,
    Config,
}

impl Part {
    /// What stands before its members' names in the header.
    const fn prefix(self) -> &'static str {
        match self {
            Part::Top => "",
            Part::Results => "results.",
            Part::Config => "config.",
        }
    }

    /// Its members that are part of the header.
    fn keeps(self, key: &[u8]) -> bool {
        let kept: &[&[u8]] = match self {
            Part::Top => {
                &[b"\"evalId\"", b"\"id\"", b"\"createdAt\"", b"\"metadata\"", b"\"author\"", b"\"description\"", b"\"runtimeOptions\""]
            }
            Part::Results => &[b"\"timestamp\"", b"\"prompts\"", b"\"stats\""],
            Part::Config => &[b"\"description\"", b"\"tags\"", b"\"providers\"", b"\"targets\"", b"\"metadata\"", b"\"evaluateOptions\""],
        };
        kept.contains(&key)
    }
}

/// Where a row stands and what it is a try at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its first byte.
    pub(super) at: u64,
    /// The number of its test.
    pub(super) test: u32,
    /// The number of its column: a provider with a prompt.
    pub(super) slot: u32,
    /// Its place in the order of the tests; rows stand in the order in which they ended.
    test_idx: u64,
    /// Rows before it that it replaces.
    pub(super) retries: u32,
    /// The cell of the table's line that begins there, where it is one.
    pub(super) column: Option<u32>,
}

/// What the first pass finds.
#[derive(Default)]
pub(super) struct Index {
    header: Vec<u8>,
    /// The rows, in the order of the file.
    pub(super) rows: Vec<Place>,
    pub(super) cases: Cases,
    pub(super) slots: Slots,
    /// Whether any row was graded: files from before gradings have none.
    pub(super) graded: bool,
    /// Whether any row says how it ended.
    pub(super) judged: bool,
    /// What of the file could not be read, and the rest stands.
    pub(super) complaints: Vec<String>,
    complained: usize,
    pub(super) table: Table,
    case: Vec<u8>,
    vars: Vec<u8>,
}

fn told(stop: Stop) -> String {
    stop.sentence()
}

impl Index {
    /// Goes through an envelope.
    pub(super) fn envelope<R: Read + Seek>(
        &mut self,
        scanner: &mut Scanner<R>,
        limits: &Limits,
        redactor: &Redactor,
    ) -> Result<(), String> {
        self.object(scanner, Part::Top, limits, redactor)?;
        self.table.tell(self.cases.tests_mut());
        if self.table.ambiguous() {
            self.complain(
                "some tests differ in their assertions alone, which this old format does not tell of a row: they are one case".to_owned(),
            );
        }
        if self.rows.is_empty() && self.table.rows() > 0 { self.cells(scanner, limits, redactor) } else { Ok(()) }
    }

    /// The cells of the table as rows, where some say how they ended: the others then mean something by saying nothing.
    fn cells<R: Read + Seek>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        let prompts = std::mem::take(&mut self.table.prompts);
        let columns: Vec<&RawValue> = list(serde_json::from_slice(&prompts).ok()).0;
        scanner.jump(self.table.body.unwrap_or_default()).map_err(told)?;
        let (mut first, mut line) = (scanner.take(b'[').map_err(told)?, 0);
        while scanner.more(b']', first).map_err(told)? {
            first = false;
            scanner.peek().map_err(told)?;
            let at = scanner.offset();
            let parts = pick(scanner, [b"\"vars\"", b"\"test\"", b"\"outputs\""], limits.entry_bytes_max).map_err(told)?;
            self.line(parts.map(|part| text_of(strict(part)).0), &columns, (at, line), redactor);
            self.bounded(limits)?;
            line += 1;
        }
        if !self.judged {
            return Err(
                "the results stand only in a table, whose cells do not say whether a test broke: export it again as JSON".to_owned()
            );
        }
        // The columns are what later versions have as prompts.
        if !columns.is_empty() {
            self.header.extend_from_slice(if self.header.is_empty() { b"" } else { b"," });
            self.header.extend_from_slice(b"\"results.prompts\":");
            self.header.extend_from_slice(&prompts);
        }
        Ok(())
    }

    /// The cells of the line of the table that begins at the byte `at`.
    fn line(&mut self, [vars, case, outputs]: [String; 3], columns: &[&RawValue], (at, line): (u64, u64), redactor: &Redactor) {
        let Some(outputs) = serde_json::from_str::<&RawValue>(&outputs).ok() else {
            return self.complain(format!("the line of the table at byte {at} is too big or has no cells, so it is missing"));
        };
        let vars = if case.is_empty() { variables(&self.table.names, serde_json::from_str(&vars).ok()) } else { String::new() };
        let test = self.cases.see(case.as_bytes(), vars.as_bytes(), None, redactor);
        for (column, raw) in (0_u32..).zip(list(Some(outputs)).0) {
            if !raw.get().starts_with('{') {
                continue;
            }
            let (cell, prompt) = (fields(Some(raw)), fields(columns.get(column as usize).copied()));
            self.judged |= says(&cell);
            self.graded |= graded(&cell);
            let word = |raw: Option<&RawValue>| raw.map_or(&[][..], |raw| raw.get().as_bytes()).to_vec();
            let provider = word(cell.get("provider").or_else(|| prompt.get("provider")));
            let label = word(prompt.get("label").or_else(|| prompt.get("display")));
            let slot = self.slots.see([&provider, b"", &word(prompt.get("id")), &label, column.to_string().as_bytes()]);
            self.rows.push(Place { at, test, slot, test_idx: line, retries: 0, column: Some(column) });
        }
    }

    /// Goes through rows that follow each other. A last one that is cut off is named, and those before it stand.
    pub(super) fn lines<R: Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        while let Some(next) = scanner.peek().map_err(told)? {
            let at = scanner.offset();
            if next != b'{' {
                return Err(Stop::Wrong(at).sentence());
            }
            match self.row(scanner, limits, redactor) {
                Err(Stop::Ended) if !self.rows.is_empty() => {
                    self.complain(format!("the row at byte {at} is cut off, so it is missing"));
                    break;
                }
                row => row.map_err(told)?,
            }
            self.bounded(limits)?;
        }
        Ok(())
    }

    /// The header: one object, whose members are named by their way.
    pub(super) fn header(&mut self) -> Vec<u8> {
        let mut header = std::mem::take(&mut self.header);
        header.splice(..0, *b"{");
        header.push(b'}');
        header
    }

    fn object<R: Read + Seek>(&mut self, scanner: &mut Scanner<R>, part: Part, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        if !scanner.take(b'{').map_err(told)? {
            return Err(Stop::Wrong(scanner.offset()).sentence());
        }
        let (mut key, mut first) = (Vec::new(), true);
        while scanner.key(first, &mut key).map_err(told)? {
            first = false;
            let opens = scanner.peek().map_err(told)?;
            match (part, key.as_slice(), opens) {
                (Part::Top, b"\"results\"", Some(b'{')) => self.object(scanner, Part::Results, limits, redactor)?,
                (Part::Top, b"\"config\"", Some(b'{')) => self.object(scanner, Part::Config, limits, redactor)?,
                (Part::Top | Part::Results, b"\"results\"", Some(b'[')) => self.list(scanner, limits, redactor)?,
                (Part::Top | Part::Results, b"\"table\"", Some(b'{')) => self.table.scan(scanner, limits, redactor)?,
                _ if part.keeps(&key) => self.keep(scanner, part, &key, limits)?,
                // What promptfoo's library gives has no envelope.
                _ if part == Part::Top && Part::Results.keeps(&key) => self.keep(scanner, Part::Results, &key, limits)?,
                _ => scanner.value(&mut Sink::skip()).map_err(told)?,
            }
        }
        Ok(())
    }

    fn keep<R: Read>(&mut self, scanner: &mut Scanner<R>, part: Part, key: &[u8], limits: &Limits) -> Result<(), String> {
        if !self.header.is_empty() {
            self.header.push(b',');
        }
        self.header.push(b'"');
        self.header.extend_from_slice(part.prefix().as_bytes());
        self.header.extend_from_slice(key.strip_prefix(b"\"").unwrap_or(key));
        self.header.push(b':');
        let limit = limits.entry_bytes_max;
        let room = limit.saturating_sub(self.header.len() as u64);
        let mut sink = Sink::into(&mut self.header, room);
        scanner.value(&mut sink).map_err(told)?;
        sink.whole().then_some(()).ok_or_else(|| format!("the header of the results takes more than {limit} bytes, the most that it may"))
    }

    fn list<R: Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), String> {
        let mut first = scanner.take(b'[').map_err(told)?;
        while scanner.more(b']', first).map_err(told)? {
            first = false;
            self.row(scanner, limits, redactor).map_err(told)?;
            self.bounded(limits)?;
        }
        Ok(())
    }

    fn bounded(&self, limits: &Limits) -> Result<(), String> {
        if self.rows.len() > limits.entries_max {
            return Err(format!("the results have more than {} rows, the most that they may", limits.entries_max));
        }
        self.slots.bounded()
    }

    fn row<R: Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits, redactor: &Redactor) -> Result<(), Stop> {
        let opens = scanner.peek()?;
        let at = scanner.offset();
        if opens != Some(b'{') {
            self.complain(format!("the row at byte {at} is no object, so it is missing"));
            return scanner.value(&mut Sink::skip());
        }
        scanner.take(b'{')?;
        let (mut key, mut first) = (Vec::new(), true);
        let mut words = Words::default();
        self.case.clear();
        self.vars.clear();
        let mut cut = false;
        while scanner.key(first, &mut key)? {
            first = false;
            let opens = scanner.peek()?;
            let mut sink = match key.as_slice() {
                b"\"testCase\"" => Sink::into(cleared(&mut self.case), limits.entry_bytes_max),
                b"\"vars\"" => Sink::into(cleared(&mut self.vars), limits.entry_bytes_max),
                b"\"gradingResult\"" | b"\"success\"" => {
                    self.graded |= opens == Some(b'{');
                    self.judged = true;
                    Sink::skip()
                }
                other => {
                    words.member(scanner, other)?;
                    continue;
                }
            };
            scanner.value(&mut sink)?;
            cut |= matches!(key.as_slice(), b"\"testCase\"" | b"\"vars\"") && !sink.whole();
        }
        let test = self.cases.see(&self.case, &self.vars, cut.then_some(at), redactor);
        let [provider, label] = &words.provider;
        let [prompt, older, id] = &words.prompt;
        let prompt = if prompt.is_empty() { older } else { prompt };
        let prompt_id = if words.prompt_id.is_empty() { id } else { &words.prompt_id };
        let slot = self.slots.see([provider, label, prompt_id, prompt, &words.prompt_idx]);
        let test_idx = serde_json::from_slice(&words.test_idx).unwrap_or(u64::MAX);
        self.rows.push(Place { at, test, slot, test_idx, retries: 0, column: None });
        Ok(())
    }

    fn complain(&mut self, sentence: String) {
        self.complained += 1;
        if self.complained <= COMPLAINTS_MAX {
            self.complaints.push(sentence);
        }
    }

    /// Leaves the last of the rows of one cell: a run that resumes appends to JSONL, and may do again what was written there before.
    pub(super) fn settle(&mut self) {
        let mut last = HashMap::<(u64, u32, u32), (usize, u32)>::new();
        let slots = &self.slots;
        // A row that does not say both its places could be of any cell.
        let cell = |place: &Place| {
            let placed = place.test_idx != u64::MAX && slots.order(place.slot) != u64::MAX;
            placed.then_some((place.test_idx, place.slot, place.test))
        };
        for (number, place) in self.rows.iter().enumerate() {
            if let Some(cell) = cell(place) {
                last.entry(cell).and_modify(|(row, times)| (*row, *times) = (number, *times + 1)).or_insert((number, 0));
            }
        }
        let rows = self.rows.iter().enumerate().filter_map(|(number, place)| match cell(place).and_then(|cell| last.get(&cell)) {
            Some((row, _)) if *row != number => None,
            Some((_, retries)) => Some(Place { retries: *retries, ..*place }),
            None => Some(*place),
        });
        self.rows = rows.collect();
    }

    /// The ordinal of each row among those of one arm and test, in the order of the tests and then of the columns. `arms` has the arm of
    /// each column.
    pub(super) fn epochs(&self, arms: &[u32]) -> Vec<u32> {
        let arm = |place: &Place| arms.get(place.slot as usize).copied().unwrap_or_default();
        let mut order: Vec<(usize, &Place)> = self.rows.iter().enumerate().collect();
        order.sort_by_key(|(_, place)| (place.test_idx, self.slots.order(place.slot), place.at));
        let mut times = BTreeMap::<(u32, u32), u32>::new();
        let mut epochs = vec![1; self.rows.len()];
        for (row, place) in order {
            let count = times.entry((arm(place), place.test)).or_default();
            *count += 1;
            if let Some(epoch) = epochs.get_mut(row) {
                *epoch = *count;
            }
        }
        epochs
    }
}

fn cleared(bytes: &mut Vec<u8>) -> &mut Vec<u8> {
    bytes.clear();
    bytes
}

/// The short members of a row, as they stand.
#[derive(Default)]
struct Words {
    provider: [Vec<u8>; 2],
    prompt: [Vec<u8>; 3],
    prompt_id: Vec<u8>,
    prompt_idx: Vec<u8>,
    test_idx: Vec<u8>,
}

impl Words {
    fn member<R: Read>(&mut self, scanner: &mut Scanner<R>, key: &[u8]) -> Result<(), Stop> {
        let word = match key {
            b"\"provider\"" => {
                self.provider = pick(scanner, [b"\"id\"", b"\"label\""], WORD_BYTES_MAX)?;
                return Ok(());
            }
            b"\"prompt\"" => {
                self.prompt = pick(scanner, [b"\"label\"", b"\"display\"", b"\"id\""], WORD_BYTES_MAX)?;
                return Ok(());
            }
            b"\"promptId\"" => &mut self.prompt_id,
            b"\"promptIdx\"" => &mut self.prompt_idx,
            b"\"testIdx\"" => &mut self.test_idx,
            _ => return scanner.value(&mut Sink::skip()),
        };
        scanner.value(&mut Sink::into(cleared(word), WORD_BYTES_MAX))
    }
}

/// Members of the object that comes next, as they stand; a value of another type goes to the first place.
pub(super) fn pick<R: Read, const N: usize>(scanner: &mut Scanner<R>, names: [&[u8]; N], room: u64) -> Result<[Vec<u8>; N], Stop> {
    let mut found: [Vec<u8>; N] = std::array::from_fn(|_| Vec::new());
    if !scanner.take(b'{')? {
        let mut nowhere = Vec::new();
        scanner.value(&mut Sink::into(found.first_mut().unwrap_or(&mut nowhere), room))?;
        return Ok(found);
    }
    let (mut key, mut first) = (Vec::new(), true);
    while scanner.key(first, &mut key)? {
        first = false;
        scanner.peek()?;
        let place = names.iter().position(|name| *name == key.as_slice());
        match place.and_then(|place| found.get_mut(place)) {
            Some(out) => scanner.value(&mut Sink::into(cleared(out), room))?,
            None => scanner.value(&mut Sink::skip())?,
        }
    }
    Ok(found)
}
