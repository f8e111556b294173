//! How far an import is.
//!
//! Promises: told per file and per block read.
//! Does not: show anything (`cli::progress` does, on a terminal).

/// Hears how far an import is.
pub trait Progress: Sync {
    /// So many files, of so many bytes together, will be read.
    fn begin(&self, files: u64, bytes: u64);
    /// This file is read next.
    fn file(&self, path: &str);
    /// So many more bytes are done with.
    fn advance(&self, bytes: u64);
    /// Nothing more will be read.
    fn end(&self);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _files: u64, _bytes: u64) {}
    fn file(&self, _path: &str) {}
    fn advance(&self, _bytes: u64) {}
    fn end(&self) {}
}
