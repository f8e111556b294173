//! One window of bytes over a seekable input: many small reads and short jumps cost one read of the system.
//!
//! Promises: what it reads is what the input holds at that place; memory is one window.
//! Does not: know formats.

use std::io::{self, Read, Seek, SeekFrom};

/// Small enough to hold many at once, large enough that a sample of a usual log is one or two reads.
const WINDOW_BYTES: usize = 256 * 1024;

/// A buffered reader that keeps its buffer over a seek inside it, which `BufReader` does not.
pub(super) struct Window<R> {
    inner: R,
    /// Where `held` begins.
    start: u64,
    held: Vec<u8>,
    /// Where the next read begins.
    at: u64,
}

impl<R: Read + Seek> Window<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, start: 0, held: Vec::new(), at: 0 }
    }

    /// The held bytes from the current place on.
    fn ahead(&self) -> &[u8] {
        let skip = self.at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.held.get(skip..)).unwrap_or_default()
    }

    fn refill(&mut self) -> io::Result<()> {
        self.inner.seek(SeekFrom::Start(self.at))?;
        self.start = self.at;
        self.held.clear();
        self.inner.by_ref().take(WINDOW_BYTES as u64).read_to_end(&mut self.held)?;
        Ok(())
    }
}

impl<R: Read + Seek> Read for Window<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ahead().is_empty() {
            self.refill()?;
        }
        let count = self.ahead().read(out)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl<R: Read + Seek> Seek for Window<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?,
            SeekFrom::End(_) => self.inner.seek(to)?,
        };
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn reads_and_jumps_see_the_input() {
        let bytes: Vec<u8> = (0..600_000_u32).map(|number| (number % 251) as u8).collect();
        let mut window = Window::new(Cursor::new(bytes.clone()));
        for (at, count) in [(0, 10), (5, 300_000), (599_990, 10), (262_140, 8), (3, 1), (599_999, 1)] {
            window.seek(SeekFrom::Start(at)).unwrap();
            let mut out = vec![0; count];
            window.read_exact(&mut out).unwrap();
            assert_eq!(out, bytes[at as usize..at as usize + count]);
        }
        assert_eq!(window.seek(SeekFrom::End(-4)).unwrap(), 599_996);
        let mut rest = Vec::new();
        window.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, bytes[599_996..]);
        window.seek(SeekFrom::Start(9_000_000)).unwrap();
        assert_eq!(window.read(&mut [0; 4]).unwrap(), 0);
    }
}
