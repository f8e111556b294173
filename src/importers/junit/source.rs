//! The bytes of a file as UTF-8, in places: what the XML reader reads from.
//!
//! Promises: a byte that is no UTF-8 becomes one byte that is no character of XML, so that places in the file stay what they are; of one
//! text that is longer than the cap the rest is passed over and counted; memory is one buffer.
//! Does not: know elements, or decode other encodings (`encoding` does).

use std::io::{self, BufRead, Read, Seek as _, SeekFrom};

use memchr::{memchr2, memmem};
use sha2::{Digest as _, Sha256};

use crate::importers::Input;

const READ_BYTES_MAX: u64 = 128 * 1024;
/// After a jump little is read at first: most test cases are small, and the next may stand far away.
const READ_BYTES_MIN: u64 = 8 * 1024;
/// Stands for a byte that is no UTF-8. XML forbids it as well, so `text` shows both the same way.
const NO_CHARACTER: u8 = 0x1A;
/// What some editors put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// As many bytes of a piece as tell what it is.
const LEAD_BYTES: usize = CDATA.len();
const CDATA: &[u8] = b"<![CDATA[";
const COMMENT: &[u8] = b"<!--";

/// What is read, piece by piece. A piece is what the XML reader takes at a time: a tag, a text up to the next tag or reference.
pub(super) struct Source<'a> {
    inner: Box<dyn Input + 'a>,
    /// Where `held` begins.
    start: u64,
    held: Vec<u8>,
    /// Where the next read begins, within `held`.
    at: usize,
    /// Where `held` stops being whole characters.
    ready: usize,
    ended: bool,
    read_bytes: u64,
    digest: Option<Sha256>,
    piece_bytes_max: u64,
    /// What was read of the present piece, and how it began.
    spent: u64,
    lead: Vec<u8>,
    cut: u64,
}

impl<'a> Source<'a> {
    pub(super) fn new(inner: Box<dyn Input + 'a>, piece_bytes_max: u64) -> Self {
        Self {
            inner,
            start: 0,
            held: Vec::new(),
            at: 0,
            ready: 0,
            ended: false,
            read_bytes: READ_BYTES_MAX,
            digest: Some(Sha256::new()),
            piece_bytes_max,
            spent: 0,
            lead: Vec::with_capacity(LEAD_BYTES),
            cut: 0,
        }
    }

    /// Passes over a byte order mark.
    pub(super) fn skip_mark(&mut self) -> io::Result<()> {
        if self.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            self.consume(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// The place of the next byte in the file.
    pub(super) fn place(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Says that a piece begins here.
    pub(super) fn begin_piece(&mut self) {
        self.spent = 0;
        self.lead.clear();
    }

    /// Goes on at a place where a piece was seen to begin.
    pub(super) fn jump(&mut self, place: u64) -> io::Result<()> {
        self.begin_piece();
        // From here on bytes are read again.
        self.digest = None;
        let within = place.checked_sub(self.start).and_then(|at| usize::try_from(at).ok()).filter(|at| *at <= self.ready);
        if let Some(at) = within {
            self.at = at;
            return Ok(());
        }
        self.inner.seek(SeekFrom::Start(place))?;
        self.held.clear();
        (self.start, self.at, self.ready, self.ended, self.read_bytes) = (place, 0, 0, false, READ_BYTES_MIN);
        Ok(())
    }

    /// The SHA-256 of the file, once it was read to its end without a jump.
    pub(super) fn take_digest(&mut self) -> Option<[u8; 32]> {
        self.digest.take().map(|digest| digest.finalize().into())
    }

    /// How many bytes of texts were passed over since this was asked last.
    pub(super) fn take_cut(&mut self) -> u64 {
        std::mem::take(&mut self.cut)
    }

    fn refill(&mut self) -> io::Result<()> {
        self.held.drain(..self.at);
        self.start += self.at as u64;
        self.ready -= self.at;
        self.at = 0;
        let before = self.held.len();
        self.inner.by_ref().take(self.read_bytes).read_to_end(&mut self.held)?;
        self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        let fresh = self.held.get(before..).unwrap_or_default();
        self.ended = fresh.is_empty();
        if let Some(digest) = &mut self.digest {
            digest.update(fresh);
        }
        self.settle();
        Ok(())
    }

    /// Replaces what is no UTF-8, and says how far `held` is whole.
    fn settle(&mut self) {
        loop {
            let rest = self.held.get_mut(self.ready..).unwrap_or_default();
            let Err(error) = std::str::from_utf8(rest) else {
                self.ready = self.held.len();
                return;
            };
            self.ready += error.valid_up_to();
            let wrong = match error.error_len() {
                Some(wrong) => wrong,
                // The rest of a character is yet to come.
                None if !self.ended => return,
                None => usize::MAX,
            };
            let rest = self.held.get_mut(self.ready..).unwrap_or_default();
            let wrong = wrong.min(rest.len());
            rest.get_mut(..wrong).unwrap_or_default().fill(NO_CHARACTER);
            self.ready += wrong;
        }
    }

    fn ahead(&self) -> &[u8] {
        self.held.get(self.at..self.ready).unwrap_or_default()
    }

    /// Passes over the rest of a text that is too long.
    fn pass_over(&mut self) -> io::Result<()> {
        let ends: &[u8] = match self.lead.as_slice() {
            lead if lead.starts_with(CDATA) => b"]]>",
            lead if lead.starts_with(COMMENT) => b"-->",
            lead if lead.starts_with(b"<") || lead.starts_with(b"&") => return Err(io::ErrorKind::FileTooLarge.into()),
            _ => b"",
        };
        loop {
            let ahead = self.ahead();
            let found = if ends.is_empty() { memchr2(b'<', b'&', ahead) } else { memmem::find(ahead, ends) };
            let passed = found.unwrap_or_else(|| ahead.len().saturating_sub(ends.len().saturating_sub(1)));
            self.at += passed;
            self.cut += passed as u64;
            if found.is_some() || self.ended {
                return Ok(());
            }
            self.refill()?;
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.spent >= self.piece_bytes_max {
            self.pass_over()?;
        }
        while self.at >= self.ready && !self.ended {
            self.refill()?;
        }
        Ok(self.ahead())
    }

    fn consume(&mut self, count: usize) {
        let missing = LEAD_BYTES.saturating_sub(self.lead.len()).min(count);
        if missing > 0 {
            self.lead.extend_from_slice(self.held.get(self.at..self.at + missing).unwrap_or_default());
        }
        self.at = (self.at + count).min(self.ready);
        self.spent += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn what_is_no_utf8_becomes_a_byte_of_the_same_place() {
        let mut bytes = b"\xEF\xBB\xBF".to_vec();
        bytes.extend_from_slice(&[b'a'; 131_067]);
        // A character over the border of two reads, a byte alone, a character that is cut off.
        bytes.extend_from_slice("日".as_bytes());
        bytes.extend_from_slice(b"\xFFz\xE6\x97");
        let mut source = Source::new(Box::new(Cursor::new(bytes.clone())), u64::MAX);
        source.skip_mark().unwrap();
        assert_eq!(source.place(), 3);
        let mut text = String::new();
        source.read_to_string(&mut text).unwrap();
        assert_eq!(text.len(), bytes.len() - 3);
        assert!(text.ends_with("a日\u{1A}z\u{1A}\u{1A}"));
        assert_eq!(source.take_digest().map(Vec::from), Some(Sha256::digest(&bytes).to_vec()));
        source.jump(131_070).unwrap();
        text.clear();
        source.read_to_string(&mut text).unwrap();
        assert_eq!(text, "日\u{1A}z\u{1A}\u{1A}");
    }
}
