//! Where the lines of each doc stand in a file of samples: the first pass, which keeps some bytes a line.
//!
//! Promises: memory is one line and a place a line, however the lines of a doc lie; a line that is no sample is named in a complaint and the
//! rest stands; a file that is one list, as old releases wrote it, is read the same.
//! Does not: keep what lines say.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::row::{Row, json_of};
use crate::importers::{
    Input, Limits,
    raw::text,
    scan::{Scanner, Sink},
};

/// Read at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// Lines of one file: a place and an id take about a hundred bytes each.
const LINES_MAX: usize = 1_000_000;
/// Filters of one file.
const FILTERS_MAX: usize = 100;
/// Ids of more bytes are taken to differ, so that holding one for each doc stays cheap.
const ID_BYTES_MAX: usize = 1024;
/// Lines that are named one by one when they cannot be read.
const NAMED_MAX: usize = 20;

/// Where a line stands. In order: all docs in their first turn, filter by filter, then those that come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// How many lines of this doc and filter stand before.
    pub(super) turn: u32,
    pub(super) doc: u32,
    pub(super) filter: u16,
    bytes: u32,
    offset: u64,
}

impl Place {
    pub(super) const fn range(self) -> (u64, usize) {
        (self.offset, self.bytes as usize)
    }
}

/// What the first pass finds.
#[derive(Default)]
pub(super) struct Places {
    pub(super) places: Vec<Place>,
    /// The filters' names, by number.
    pub(super) filters: Vec<String>,
    /// The metrics that the first line has.
    pub(super) metrics: Vec<String>,
    pub(super) complaints: Vec<String>,
    unreadable: usize,
}

/// A line as far as its place goes.
#[derive(Deserialize)]
struct Key<'a> {
    #[serde(borrow)]
    doc_id: Option<&'a RawValue>,
    filter: Option<&'a RawValue>,
}

/// Goes over a file of samples.
struct Pass<'p> {
    found: Places,
    docs: HashMap<Box<[u8]>, u32>,
    /// Lines of each doc that named no filter.
    unnamed: Vec<u32>,
    /// The filters of such lines, in turn.
    filters: &'p [String],
    /// Whether a line of the results' metrics is told: names that the task's description knows.
    known: &'p dyn Fn(&str) -> bool,
    bytes_max: u64,
    /// What the whole file may take.
    file_bytes_max: u64,
}

impl Places {
    /// Goes over all of `input`; `filters` are those of lines that name none.
    pub(super) fn find(
        mut input: Box<dyn Input + '_>,
        filters: &[String],
        known: &dyn Fn(&str) -> bool,
        limits: &Limits,
    ) -> Result<Self, std::io::Error> {
        let bytes_max = limits.entry_bytes_max.min(u64::from(u32::MAX));
        let mut pass = Pass {
            found: Self::default(),
            docs: HashMap::new(),
            unnamed: Vec::new(),
            filters,
            known,
            bytes_max,
            file_bytes_max: limits.log_bytes_max,
        };
        let is_list = Scanner::new(&mut input).peek().is_ok_and(|first| first == Some(b'['));
        input.seek(SeekFrom::Start(0))?;
        if is_list {
            pass.list(input)
        } else {
            pass.lines(input)?
        }
        Ok(pass.finish())
    }
}

impl Pass<'_> {
    fn lines(&mut self, input: Box<dyn Input + '_>) -> Result<(), std::io::Error> {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, input);
        let (mut offset, mut line) = (0_u64, Vec::new());
        loop {
            line.clear();
            let read = reader.by_ref().take(self.bytes_max.saturating_add(1)).read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                return Ok(());
            }
            let whole = line.ends_with(b"\n") || read <= self.bytes_max;
            let rest = if whole { 0 } else { reader.skip_until(b'\n')? as u64 };
            let blank = line.trim_ascii().is_empty() || line == b"\xEF\xBB\xBF\n";
            if !whole {
                self.unreadable(offset, &format!("it takes more than {} bytes, the most that a line may", self.bytes_max));
            } else if !blank && !self.take(&line, offset) {
                return Ok(());
            }
            offset += read + rest;
            if !self.has_room(offset) {
                return Ok(());
            }
        }
    }

    /// A file that is one list. What follows a place that is no JSON cannot be told apart, and is missing.
    fn list(&mut self, input: Box<dyn Input + '_>) {
        let mut scanner = Scanner::new(input);
        let mut first = scanner.take(b'[').unwrap_or(false);
        let mut bytes = Vec::new();
        loop {
            let next = scanner.more(b']', first).and_then(|more| Ok(if more { scanner.peek()?.map(|_| scanner.offset()) } else { None }));
            first = false;
            bytes.clear();
            let mut sink = Sink::into(&mut bytes, self.bytes_max);
            let read = next.and_then(|offset| match offset {
                Some(offset) => scanner.value(&mut sink).map(|()| Some(offset)),
                None => Ok(None),
            });
            let whole = sink.whole();
            match read {
                Ok(None) => return,
                Ok(Some(offset)) if !whole => {
                    self.unreadable(offset, &format!("it takes more than {} bytes, the most that it may", self.bytes_max))
                }
                Ok(Some(offset)) => {
                    if !self.take(&bytes, offset) || !self.has_room(scanner.offset()) {
                        return;
                    }
                }
                Err(stop) => return self.found.complaints.push(format!("samples are missing: {}", stop.sentence())),
            }
        }
    }

    /// Whether the file may go on after `offset`.
    fn has_room(&mut self, offset: u64) -> bool {
        let room = offset < self.file_bytes_max;
        if !room {
            let complaint = format!("of the samples only the first {} bytes were read, the most that a file may have", self.file_bytes_max);
            self.found.complaints.push(complaint);
        }
        room
    }

    /// Takes one line in; false where no more are taken.
    fn take(&mut self, line: &[u8], offset: u64) -> bool {
        if self.found.places.len() >= LINES_MAX {
            self.found.complaints.push(format!("of the samples only the first {LINES_MAX} lines were read, the most that a file may have"));
            return false;
        }
        match self.placed(line, offset) {
            Ok(place) => self.found.places.push(place),
            Err(why) => self.unreadable(offset, &why),
        }
        true
    }

    fn placed(&mut self, line: &[u8], offset: u64) -> Result<Place, String> {
        let bytes = u32::try_from(line.len()).map_err(|error| error.to_string())?;
        // Most lines are strict JSON; the others are mended and read again.
        let strict = std::str::from_utf8(line).ok().and_then(|line| Some((line, key(line).ok()?)));
        if let Some((json, key)) = strict {
            return self.place(json, &key, offset, bytes);
        }
        let (json, _) = json_of(line.to_vec());
        let key = key(&json)?;
        self.place(&json, &key, offset, bytes)
    }

    fn place(&mut self, json: &str, key: &Key<'_>, offset: u64, bytes: u32) -> Result<Place, String> {
        let id = key.doc_id.filter(|raw| raw.get() != "null").ok_or("it has no \"doc_id\"")?.get();
        let filter = match text(key.filter) {
            Some(name) => Some(self.filter(&name)?),
            None => None,
        };
        if self.found.metrics.is_empty() {
            self.found.metrics = Row::read(json)?.metrics(self.known);
        }
        let doc = self.doc(id.as_bytes());
        let filter = match filter {
            Some(filter) => filter,
            None => self.filter_in_turn(doc)?,
        };
        Ok(Place { turn: 0, doc, filter, bytes, offset })
    }

    fn doc(&mut self, id: &[u8]) -> u32 {
        let next = u32::try_from(self.unnamed.len()).unwrap_or(u32::MAX);
        let known = self.docs.get(id).copied();
        known.unwrap_or_else(|| {
            self.unnamed.push(0);
            if id.len() <= ID_BYTES_MAX {
                self.docs.insert(id.into(), next);
            }
            next
        })
    }

    /// Releases before 0.4.7 wrote a line a doc and filter, and not which filter: all docs for the first, then all for the next.
    fn filter_in_turn(&mut self, doc: u32) -> Result<u16, String> {
        let Some(before) = self.unnamed.get_mut(doc as usize) else { return Err("its doc is not known".to_owned()) };
        let turn = *before as usize;
        *before = before.saturating_add(1);
        let name = turn.checked_rem(self.filters.len()).and_then(|place| self.filters.get(place)).cloned();
        self.filter(&name.unwrap_or_else(|| "none".to_owned()))
    }

    fn filter(&mut self, name: &str) -> Result<u16, String> {
        let known = self.found.filters.iter().position(|known| known == name);
        let place = known.unwrap_or(self.found.filters.len());
        if known.is_none() {
            if place >= FILTERS_MAX {
                return Err(format!("it is of a further filter, and no more than {FILTERS_MAX} are read"));
            }
            self.found.filters.push(name.to_owned());
        }
        u16::try_from(place).map_err(|error| error.to_string())
    }

    fn unreadable(&mut self, offset: u64, why: &str) {
        self.found.unreadable += 1;
        if self.found.unreadable <= NAMED_MAX {
            self.found.complaints.push(format!("the sample at byte {offset} cannot be read, so it is missing: {why}"));
        }
    }

    fn finish(self) -> Places {
        let mut found = self.found;
        let more = found.unreadable.saturating_sub(NAMED_MAX);
        if more > 0 {
            found.complaints.push(format!("{more} more samples cannot be read"));
        }
        // Lines of one doc and filter in their order, so that each is told its turn.
        found.places.sort_unstable_by_key(|place| (place.doc, place.filter, place.offset));
        let mut before: Option<Place> = None;
        for place in &mut found.places {
            let same = before.filter(|before| (before.doc, before.filter) == (place.doc, place.filter));
            place.turn = same.map_or(0, |before| before.turn + 1);
            before = Some(*place);
        }
        found.places.sort_unstable();
        found
    }
}

fn key(json: &str) -> Result<Key<'_>, String> {
    // A struct can be read from a list as well.
    if !json.trim_start_matches('\u{feff}').trim_ascii_start().starts_with('{') {
        return Err("it is no object".to_owned());
    }
    serde_json::from_str(json.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())
}
