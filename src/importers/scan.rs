//! A scanner over streamed JSON: walks objects and lists, and copies or skips the values in them.
//!
//! Promises: memory is one buffer and what the caller lets it copy; nothing recurses; bare constants (`NaN`) pass.
//! Does not: check values (whoever parses a copied one does).

use std::io::{Read, Seek, SeekFrom};

use memchr::memchr2;

const BUFFER_BYTES: usize = 128 * 1024;
/// What some editors put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why scanning stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The input ended inside a value.
    Ended,
    /// This is no JSON at this byte.
    Wrong(u64),
    /// The input could not be read.
    Unreadable(String),
}

impl Stop {
    /// The sentence for a reader.
    pub(super) fn sentence(&self) -> String {
        match self {
            Stop::Ended => "the file ends in the middle of its JSON; it was cut off, or is still being written".to_owned(),
            Stop::Wrong(at) => format!("the file is no JSON at byte {at}"),
            Stop::Unreadable(why) => format!("the file cannot be read: {why}"),
        }
    }
}

/// Where a copied value goes.
pub(super) struct Sink<'a> {
    out: Option<&'a mut Vec<u8>>,
    room: u64,
}

impl<'a> Sink<'a> {
    /// Copies nothing.
    pub(super) const fn skip() -> Self {
        Self { out: None, room: 0 }
    }

    /// Copies to `out` while there is room.
    pub(super) fn into(out: &'a mut Vec<u8>, room: u64) -> Self {
        Self { out: Some(out), room }
    }

    fn push(&mut self, bytes: &[u8]) {
        let Some(out) = &mut self.out else { return };
        match self.room.checked_sub(bytes.len() as u64) {
            Some(left) => {
                self.room = left;
                out.extend_from_slice(bytes);
            }
            None => {
                // What is there is kept: it says that the value was longer than it.
                out.extend(bytes.iter().take(usize::try_from(self.room).unwrap_or_default()));
                self.out = None;
            }
        }
    }

    /// Whether all of the value was copied.
    pub(super) const fn whole(&self) -> bool {
        self.out.is_some()
    }
}

/// The scanner.
pub(super) struct Scanner<R> {
    input: R,
    held: Vec<u8>,
    at: usize,
    /// Where `held` begins in the input.
    base: u64,
}

impl<R: Read> Scanner<R> {
    /// Scans `input` from its beginning.
    pub(super) fn new(input: R) -> Self {
        Self { input, held: Vec::with_capacity(BUFFER_BYTES), at: 0, base: 0 }
    }

    /// Goes on at byte `to`.
    pub(super) fn jump(&mut self, to: u64) -> Result<(), Stop>
    where
        R: Seek,
    {
        let ahead = to.checked_sub(self.base).and_then(|ahead| usize::try_from(ahead).ok());
        if let Some(at) = ahead.filter(|at| *at <= self.held.len()) {
            self.at = at;
            return Ok(());
        }
        self.input.seek(SeekFrom::Start(to)).map_err(|error| Stop::Unreadable(error.kind().to_string()))?;
        self.held.clear();
        (self.at, self.base) = (0, to);
        Ok(())
    }

    /// What it reads from, wherever that stands.
    pub(super) fn into_inner(self) -> R {
        self.input
    }

    /// The object that comes next without the members `left_out`; none where it is none, or the rest takes more than `room` bytes.
    pub(super) fn without(&mut self, left_out: &[&[u8]], room: u64) -> Result<Option<Vec<u8>>, Stop> {
        let (mut out, mut key, mut first) = (Vec::new(), Vec::new(), true);
        if !self.take(b'{')? {
            return Ok(None);
        }
        while self.key(first, &mut key)? {
            first = false;
            self.peek()?;
            if key.is_empty() || left_out.contains(&key.as_slice()) {
                self.value(&mut Sink::skip())?;
                continue;
            }
            out.push(if out.is_empty() { b'{' } else { b',' });
            out.extend_from_slice(&key);
            out.push(b':');
            let left = room.saturating_sub(out.len() as u64);
            let mut sink = Sink::into(&mut out, left);
            self.value(&mut sink)?;
            if !sink.whole() {
                return Ok(None);
            }
        }
        out.push(b'}');
        Ok(Some(out))
    }

    /// Where the next byte stands.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    fn ahead(&mut self) -> Result<&[u8], Stop> {
        if self.at >= self.held.len() {
            self.base += self.held.len() as u64;
            self.held.clear();
            self.at = 0;
            let read = self.input.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut self.held);
            read.map_err(|error| Stop::Unreadable(error.kind().to_string()))?;
            if self.base == 0 && self.held.starts_with(BYTE_ORDER_MARK) {
                self.at = BYTE_ORDER_MARK.len();
            }
        }
        Ok(self.held.get(self.at..).unwrap_or_default())
    }

    /// The next byte that is no white space, left in place; none at the end.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Stop> {
        loop {
            let ahead = self.ahead()?;
            let Some(skip) = ahead.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                if ahead.is_empty() {
                    return Ok(None);
                }
                self.at = self.held.len();
                continue;
            };
            let found = ahead.get(skip).copied();
            self.at += skip;
            return Ok(found);
        }
    }

    /// Takes `byte` if it comes next.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == Some(byte);
        self.at += usize::from(found);
        Ok(found)
    }

    fn need(&mut self, byte: u8) -> Result<(), Stop> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Stop::Wrong(self.offset())),
            None => Err(Stop::Ended),
        }
    }

    /// After `{` or a member: the next key, with its quotes, into `key`; false at the end of the object. A key over a kilobyte is left empty.
    pub(super) fn key(&mut self, first: bool, key: &mut Vec<u8>) -> Result<bool, Stop> {
        key.clear();
        if !self.more(b'}', first)? {
            return Ok(false);
        }
        if self.peek()? != Some(b'"') {
            return Err(self.peek()?.map_or(Stop::Ended, |_| Stop::Wrong(self.offset())));
        }
        let mut sink = Sink::into(key, 1024);
        self.string(&mut sink)?;
        if !sink.whole() {
            key.clear();
        }
        self.need(b':')?;
        Ok(true)
    }

    /// After `[` or an element, `{` or a member: whether another follows before `close`.
    pub(super) fn more(&mut self, close: u8, first: bool) -> Result<bool, Stop> {
        if self.take(close)? {
            return Ok(false);
        }
        if !first {
            self.need(b',')?;
        }
        Ok(true)
    }

    /// The next value, into `sink`.
    pub(super) fn value(&mut self, sink: &mut Sink<'_>) -> Result<(), Stop> {
        match self.peek()? {
            None => Err(Stop::Ended),
            Some(b'"') => self.string(sink),
            Some(b'{' | b'[') => self.nested(sink),
            Some(b'}' | b']' | b',' | b':') => Err(Stop::Wrong(self.offset())),
            Some(_) => self.scalar(sink),
        }
    }

    /// A number or a word. Anything else in it, a quote above all, would be read otherwise by whoever looks at brackets and strings alone.
    fn scalar(&mut self, sink: &mut Sink<'_>) -> Result<(), Stop> {
        loop {
            let ahead = self.ahead()?;
            if ahead.is_empty() {
                return Ok(());
            }
            let end = ahead.iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.'));
            let closed =
                end.and_then(|end| ahead.get(end)).is_none_or(|byte| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace());
            let taken = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or_default();
            sink.push(taken);
            self.at += taken.len();
            if !closed {
                return Err(Stop::Wrong(self.offset()));
            }
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// A string, whose opening quote comes next.
    fn string(&mut self, sink: &mut Sink<'_>) -> Result<(), Stop> {
        self.step(1, sink);
        loop {
            let ahead = self.ahead()?;
            if ahead.is_empty() {
                return Err(Stop::Ended);
            }
            let Some(found) = memchr2(b'"', b'\\', ahead) else {
                let all = ahead.len();
                self.step(all, sink);
                continue;
            };
            let quote = ahead.get(found) == Some(&b'"');
            self.step(found + 1, sink);
            if quote {
                return Ok(());
            }
            // The byte after a backslash may stand in the next buffer.
            if self.ahead()?.is_empty() {
                return Err(Stop::Ended);
            }
            self.step(1, sink);
        }
    }

    fn nested(&mut self, sink: &mut Sink<'_>) -> Result<(), Stop> {
        let mut depth = 0_u64;
        loop {
            let ahead = self.ahead()?;
            if ahead.is_empty() {
                return Err(Stop::Ended);
            }
            let Some(found) = ahead.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')) else {
                let all = ahead.len();
                self.step(all, sink);
                continue;
            };
            let byte = ahead.get(found).copied();
            match byte {
                Some(b'"') => {
                    self.step(found, sink);
                    self.string(sink)?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            self.step(found + 1, sink);
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn step(&mut self, count: usize, sink: &mut Sink<'_>) {
        sink.push(self.held.get(self.at..self.at + count).unwrap_or_default());
        self.at += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a read, so that everything is split over buffers.
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(out.len()).min(1);
            (&mut self.0).read_exact(&mut out[..count])?;
            Ok(count)
        }
    }

    fn members(text: &str) -> Result<Vec<(String, String)>, Stop> {
        let mut scanner = Scanner::new(Drops(text.as_bytes()));
        let (mut key, mut found) = (Vec::new(), Vec::new());
        assert!(scanner.take(b'{')?);
        while scanner.key(found.is_empty(), &mut key)? {
            let mut value = Vec::new();
            scanner.value(&mut Sink::into(&mut value, 100))?;
            found.push((String::from_utf8_lossy(&key).into_owned(), String::from_utf8_lossy(&value).into_owned()));
        }
        Ok(found)
    }

    #[test]
    fn members_come_out_as_they_stand() {
        let found = members(r#" { "a" : [1,{"x":"]\"\\"}] , "b\"":NaN,"c":"" ,"d":-1.5e3}"#).unwrap();
        let expected = [("\"a\"", r#"[1,{"x":"]\"\\"}]"#), ("\"b\\\"\"", "NaN"), ("\"c\"", "\"\""), ("\"d\"", "-1.5e3")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn cut_or_wrong_text_says_so() {
        for text in ["{\"a\":[1,", "{\"a", "{\"a\\", "{\"a\":", "{\"a\":1", "{\"a\":{\"b\":\"\\"] {
            assert_eq!(members(text), Err(Stop::Ended), "{text}");
        }
        assert_eq!(members("{\"a\" 1}"), Err(Stop::Wrong(5)));
        assert_eq!(members("{\"a\":,}"), Err(Stop::Wrong(5)));
        assert_eq!(members("{\"a\":1\"2,}"), Err(Stop::Wrong(6)));
    }
}
