//! Transcripts: JSON lines packed as compressed chunks, so that a page is read without the rest.
//!
//! Promises: a line never contains a line break; lines are redacted before they are packed; memory is bounded by one chunk.
//! Does not: know what a line says, or where chunks are kept.

use std::{cell::RefCell, fmt::Write as _};

use crate::telemetry::redaction::Redactor;

/// A chunk is closed once its lines take this much: a page of 200 lines reads one or two, and one chunk is quick to inflate.
const CHUNK_BYTES: usize = 128 * 1024;
/// A chunk is closed at this many lines, so that many tiny lines do not make a page inflate thousands.
const CHUNK_LINES: u32 = 512;
/// Fast beats small here: the level costs CPU on every import, the ratio on repetitive JSON is good at any.
const LEVEL: i32 = 1;
/// Lines after the last full chunk that take less stay as they are: many attempts have few, and these are compressed together.
const TAIL_BYTES: usize = 32 * 1024;
/// A chunk of several tails is closed once it takes this much: reading one of them inflates the others too.
const SHARED_BYTES: usize = 32 * 1024;
/// What one chunk may inflate to: a single line can be as long as the importer's cap on an entry.
const INFLATED_MAX: usize = 256 * 1024 * 1024;

/// Some lines in a row, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The number of its first line, from 0.
    pub first_line: u64,
    /// How many lines it holds.
    pub lines: u32,
    /// The lines, each ended by a line feed, as one zstd frame.
    pub data: Vec<u8>,
}

/// A whole transcript, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// The chunks, in order, without gaps.
    pub chunks: Vec<Chunk>,
    /// The lines after the last chunk, each ended by a line feed.
    pub tail: String,
    /// How many lines there are.
    pub lines: u64,
    /// How many of them, from the first, are the conversation's messages.
    pub messages: u64,
    /// How many bytes the lines take, line feeds included.
    pub bytes: u64,
}

/// Packs lines one by one.
pub struct Packer<'a> {
    redactor: &'a Redactor,
    open: String,
    open_lines: u32,
    packed: Packed,
}

/// Why a chunk cannot be read back: the file is damaged, or memory is short.
#[derive(Debug, thiserror::Error)]
#[error("a transcript chunk is damaged: {0}")]
pub struct Damaged(String);

impl<'a> Packer<'a> {
    /// An empty packer; `redactor` sees every chunk before it is compressed.
    #[must_use]
    pub fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, open: String::new(), open_lines: 0, packed: Packed::default() }
    }

    /// Adds one line. A line break inside it would make it two: JSON text has none, anything else has them replaced by spaces.
    pub fn line(&mut self, line: &str) {
        if self.open.capacity() == 0 {
            // Room for a chunk at once: growing to it would copy it once more, and touch twice the memory.
            self.open.reserve(CHUNK_BYTES + line.len());
        }
        if memchr::memchr2(b'\n', b'\r', line.as_bytes()).is_some() {
            self.open.push_str(&line.replace(['\n', '\r'], " "));
        } else {
            self.open.push_str(line);
        }
        self.open.push('\n');
        self.open_lines += 1;
        if self.open.len() >= CHUNK_BYTES || self.open_lines >= CHUNK_LINES {
            self.close();
        }
    }

    /// Says that the lines so far are the conversation, and that what follows is its trace.
    pub fn end_of_conversation(&mut self) {
        self.packed.messages = self.packed.lines + u64::from(self.open_lines);
    }

    /// The packed transcript.
    #[must_use]
    pub fn finish(mut self) -> Packed {
        if self.open.len() >= TAIL_BYTES {
            self.close();
        } else {
            let tail = self.redactor.redact_json(&self.open).into_owned();
            self.packed.bytes += tail.len() as u64;
            self.packed.lines += u64::from(self.open_lines);
            self.packed.tail = tail;
        }
        self.packed
    }

    fn close(&mut self) {
        if self.open_lines == 0 {
            return;
        }
        // Lines are JSON. Their line feeds are no escapes, so a chunk is looked at as one.
        let text = self.redactor.redact_json(&self.open);
        let data = compress(text.as_bytes());
        self.packed.bytes += text.len() as u64;
        self.packed.chunks.push(Chunk { first_line: self.packed.lines, lines: self.open_lines, data });
        self.packed.lines += u64::from(self.open_lines);
        self.open.clear();
        self.open_lines = 0;
    }
}

thread_local! {
    /// Making a compressor costs as much as compressing a small chunk, and an import makes thousands of chunks.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// `bytes` as one frame. Memory to memory fails only when memory is short; the chunk is then damaged, and says so when it is read.
fn compress(bytes: &[u8]) -> Vec<u8> {
    COMPRESSOR
        .with_borrow_mut(|held| {
            let compressor = match held {
                Some(compressor) => compressor,
                None => held.insert(zstd::bulk::Compressor::new(LEVEL).ok()?),
            };
            compressor.compress(bytes).ok()
        })
        .unwrap_or_default()
}

impl Chunk {
    /// A chunk of lines that were redacted before and have no line break in them; the first is line `first_line`.
    #[must_use]
    pub fn of<'a>(first_line: u64, lines: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut text, mut count) = (String::new(), 0_u32);
        for line in lines {
            text.push_str(line);
            text.push('\n');
            count += 1;
        }
        Self { first_line, lines: count, data: compress(text.as_bytes()) }
    }

    /// The lines of this chunk.
    ///
    /// # Errors
    /// [`Damaged`] when the frame does not inflate, inflates past the cap, or is not UTF-8.
    pub fn unpack(&self) -> Result<Vec<String>, Damaged> {
        Ok(self.text()?.lines().map(str::to_owned).collect())
    }

    /// The same as one text, each line ended by a line feed.
    ///
    /// # Errors
    /// As [`Chunk::unpack`].
    pub fn text(&self) -> Result<String, Damaged> {
        inflate(&self.data)
    }
}

impl Packed {
    /// The lines from `offset`, at most `limit`.
    ///
    /// # Errors
    /// [`Damaged`] as [`Chunk::unpack`].
    pub fn page(&self, offset: u64, limit: u64) -> Result<Vec<String>, Damaged> {
        let mut out = page(&self.chunks, offset, limit)?;
        let packed = self.chunks.last().map_or(0, |chunk| chunk.first_line + u64::from(chunk.lines));
        out.extend(lines(&self.tail, packed, offset, limit).map(str::to_owned));
        Ok(out)
    }
}

/// Of the lines in `text`, the first of which is line `first`, those from `offset`, at most `limit`.
pub fn lines(text: &str, first: u64, offset: u64, limit: u64) -> impl Iterator<Item = &str> {
    let end = offset.saturating_add(limit);
    (first..end).zip(text.lines()).filter(move |(number, _)| *number >= offset).map(|(_, line)| line)
}

/// Tails of several transcripts, compressed together: a frame for each would cost more than its lines. Before each stand its number, counted
/// from the first one's, and its bytes.
#[derive(Debug, Default)]
pub struct Shared {
    open: String,
    first: i64,
    last: i64,
}

/// A closed chunk of tails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tails {
    /// The number of the first.
    pub first: i64,
    /// That of the last.
    pub last: i64,
    /// All of them, as one zstd frame.
    pub data: Vec<u8>,
}

impl Shared {
    /// Adds the tail of the transcript with a number, which is greater than those before.
    pub fn add(&mut self, number: i64, tail: &str) {
        if self.open.is_empty() {
            self.first = number;
        }
        self.last = number;
        // Writing to a String cannot fail.
        let _ = writeln!(self.open, "{} {}", number.saturating_sub(self.first), tail.len());
        self.open.push_str(tail);
    }

    /// Whether it is long enough to be closed.
    #[must_use]
    pub fn full(&self) -> bool {
        self.open.len() >= SHARED_BYTES
    }

    /// The tails so far; none where nothing was added. What is added next begins another chunk.
    pub fn close(&mut self) -> Option<Tails> {
        let tails = (!self.open.is_empty()).then(|| Tails { first: self.first, last: self.last, data: compress(self.open.as_bytes()) });
        self.open.clear();
        tails
    }
}

impl Tails {
    /// The tail of the transcript with a number; empty where it has none here.
    ///
    /// # Errors
    /// [`Damaged`] when the frame does not inflate, inflates past the cap, is not UTF-8, or is no chunk of tails.
    pub fn tail(&self, number: i64) -> Result<String, Damaged> {
        let mut found = String::new();
        self.each(|other, tail| {
            if other == number {
                tail.clone_into(&mut found);
            }
            other == number
        })?;
        Ok(found)
    }

    /// All of them, by number.
    ///
    /// # Errors
    /// As [`Tails::tail`].
    pub fn all(&self) -> Result<Vec<(i64, String)>, Damaged> {
        let mut out = Vec::new();
        self.each(|number, tail| {
            out.push((number, tail.to_owned()));
            false
        })?;
        Ok(out)
    }

    /// Hands each to `take`, until that says that it has what it wants.
    fn each(&self, mut take: impl FnMut(i64, &str) -> bool) -> Result<(), Damaged> {
        let text = inflate(&self.data)?;
        let mut rest = text.as_str();
        while let Some((head, after)) = rest.split_once('\n') {
            let read = head.split_once(' ').and_then(|(number, bytes)| Some((number.parse::<i64>().ok()?, bytes.parse::<usize>().ok()?)));
            let split = read.and_then(|(number, bytes)| Some((number, after.split_at_checked(bytes)?)));
            let Some((ahead, (tail, others))) = split else { return Err(Damaged("it is no chunk of tails".to_owned())) };
            if take(self.first.saturating_add(ahead), tail) {
                return Ok(());
            }
            rest = others;
        }
        Ok(())
    }
}

fn inflate(data: &[u8]) -> Result<String, Damaged> {
    let bytes = zstd::bulk::decompress(data, INFLATED_MAX).map_err(|error| Damaged(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| Damaged(error.to_string()))
}

/// The lines from `offset`, at most `limit`, out of `chunks` that together cover them.
///
/// # Errors
/// [`Damaged`] as [`Chunk::unpack`].
pub fn page(chunks: &[Chunk], offset: u64, limit: u64) -> Result<Vec<String>, Damaged> {
    let end = offset.saturating_add(limit);
    let mut out = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.first_line < end && chunk.first_line + u64::from(chunk.lines) > offset) {
        let numbered = (chunk.first_line..).zip(chunk.unpack()?);
        out.extend(numbered.filter(|(number, _)| (offset..end).contains(number)).map(|(_, line)| line));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(lines: impl IntoIterator<Item = String>) -> Packed {
        let redactor = Redactor::patterns_only();
        let mut packer = Packer::new(&redactor);
        lines.into_iter().for_each(|line| packer.line(&line));
        packer.finish()
    }

    #[test]
    fn any_page_is_what_was_packed() {
        let lines: Vec<String> = (0..3000).map(|number| format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(number % 300))).collect();
        let packed = pack(lines.clone());
        assert!(packed.chunks.len() > 3);
        assert_eq!(packed.lines, 3000);
        for (offset, limit) in [(0, 200), (511, 3), (2990, 200), (3000, 10), (0, 3000)] {
            let expected: Vec<String> = lines.iter().skip(offset).take(limit).cloned().collect();
            assert_eq!(packed.page(offset as u64, limit as u64).unwrap(), expected);
        }
    }

    #[test]
    fn tails_share_a_chunk() {
        let tails = [(7, "one\n".to_owned()), (8, "zwei ü\ndrei\n".to_owned()), (12, "x".repeat(SHARED_BYTES))];
        let mut shared = Shared::default();
        assert_eq!(shared.close(), None);
        tails.iter().for_each(|(number, tail)| shared.add(*number, tail));
        assert!(shared.full());
        let mut chunk = shared.close().unwrap();
        assert_eq!((shared.close(), shared.full(), chunk.first, chunk.last), (None, false, 7, 12));
        for (number, tail) in &tails {
            assert_eq!(&chunk.tail(*number).unwrap(), tail);
        }
        assert_eq!((chunk.tail(9).unwrap(), chunk.tail(6).unwrap()), (String::new(), String::new()));
        assert_eq!(lines(&tails[1].1, 7, 8, 1).collect::<Vec<_>>(), ["drei"]);
        for text in ["0 5\none\n", "0\none\n", "x 4\none\n", "0 9\nzwei ü\n"] {
            chunk.data = compress(text.as_bytes());
            assert!(chunk.tail(7).is_err(), "{text}");
        }
        chunk.data.truncate(3);
        assert!(chunk.tail(7).is_err());
    }

    /// The right values are what each line means with its secret left out.
    #[test]
    fn secrets_do_not_hide_in_escapes() {
        let key = "A".repeat(40);
        let lines = [
            r#"{"k":"postgres:\/\/bob:hunter22x@db\/x"}"#.to_owned(),
            r#"{"k":"password\u003dhunter22x"}"#.to_owned(),
            format!(r#"{{"k":"\u0073k-ant-api03-{key}"}}"#),
            r#"{"path":"C:\\u0041","quote":"\u0022"}"#.to_owned(),
        ];
        let shown = pack(lines).page(0, 9).unwrap();
        let all = [
            r#"{"k":"postgres://bob:[REDACTED]@db/x"}"#,
            r#"{"k":"password=[REDACTED]"}"#,
            r#"{"k":"[REDACTED]"}"#,
            r#"{"path":"C:\\u0041","quote":"\u0022"}"#,
        ];
        assert_eq!(shown, all);
    }

    #[test]
    fn a_line_stays_one_line() {
        let packed = pack(["a\nb\r\nc".to_owned(), String::new()]);
        assert_eq!(packed.page(0, 9).unwrap(), ["a b  c", ""]);
        assert_eq!(packed.lines, 2);
    }

    #[test]
    fn a_damaged_chunk_is_an_error() {
        let mut packed = pack(["hello".repeat(TAIL_BYTES)]);
        packed.chunks[0].data.truncate(5);
        assert!(packed.chunks[0].unpack().is_err());
    }
}
