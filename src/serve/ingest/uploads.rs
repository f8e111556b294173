//! Logs that come in parts, each a file under its digest.
//!
//! Promises: a part is added only behind what is there; one sender at a time; their number and bytes are bounded; nothing but the digest of the
//! whole makes a log of them.
//! Does not: know a log of another project: each has a directory of its own.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::PathBuf,
};

use sha2::{Digest, Sha256};

use super::{disk, spool::Spool};
use crate::{config::keys::Ingest as Limits, domain::hex::hex, gate::ingest::Refused};

const BLOCK_BYTES: usize = 256 * 1024;
const BUSY: Refused = Refused::Busy { why: "this log is being sent or read", retry_after_s: 2 };

/// Bytes that are there.
pub(super) fn held(spool: &Spool, digest: &str) -> u64 {
    fs::metadata(spool.part(digest)).map_or(0, |found| found.len())
}

/// Removes what came of a log that is not needed any more, unless somebody is at it.
pub(super) fn forget(spool: &Spool, digest: &str) {
    let path = spool.part(digest);
    let free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
    if free && let Err(error) = fs::remove_file(&path) {
        tracing::warn!(%error, "a log that has come in parts could not be removed");
    }
}

/// The file, to be written to from `offset`, which is where it ends; nobody else writes to it as long as it is open.
///
/// # Errors
/// Why `length` more bytes are not taken.
pub(super) fn open(spool: &Spool, digest: &str, offset: u64, length: u64, limits: &Limits) -> Result<File, Refused> {
    spool.make().map_err(|error| disk(&error))?;
    if offset >= limits.upload_bytes_max {
        return Err(Refused::TooLarge { max: limits.upload_bytes_max });
    }
    let path = spool.part(digest);
    let (number, bytes) = spool.parts().map_err(|error| disk(&error))?;
    if (!path.exists() && number >= limits.uploads_max) || bytes.saturating_add(length) > limits.uploads_bytes_max {
        return Err(Refused::Quota);
    }
    if !path.exists() && offset > 0 {
        return Err(Refused::Offset { held: 0 });
    }
    let file = OpenOptions::new().append(true).create(true).open(&path).map_err(|error| disk(&error))?;
    file.try_lock().map_err(|_| BUSY)?;
    let held = file.metadata().map_err(|error| disk(&error))?.len();
    if held == offset { Ok(file) } else { Err(Refused::Offset { held }) }
}

/// A log that is there whole, held against its digest; nobody else sends or reads it as long as this is there.
pub(super) struct Whole {
    path: PathBuf,
    _lock: File,
}

impl Whole {
    /// The log with this digest.
    ///
    /// # Errors
    /// Why there is none; where its bytes are others, they are removed.
    pub(super) fn take(spool: &Spool, digest: &str) -> Result<Self, Refused> {
        let path = spool.part(digest);
        let mut file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Refused::NotFound("there is no upload with this digest in this project; send its parts first".to_owned())
            }
            _ => disk(&error),
        })?;
        file.try_lock().map_err(|_| BUSY)?;
        if hashed(&mut file).map_err(|error| disk(&error))? != digest {
            fs::remove_file(&path).map_err(|error| disk(&error))?;
            return Err(Refused::Digest);
        }
        Ok(Self { path, _lock: file })
    }

    /// The same bytes under another name, which may be changed or removed.
    pub(super) fn link(&self, to: &std::path::Path) -> io::Result<()> {
        // Where a file system has no links, a copy does.
        fs::hard_link(&self.path, to).or_else(|_| fs::copy(&self.path, to).map(drop))
    }

    /// A handle to read it with.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Removes it: it was read, or never will be.
    pub(super) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "a log that has come in parts could not be removed");
        }
    }
}

fn hashed(file: &mut File) -> io::Result<String> {
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(block.get(..read).unwrap_or_default()),
        }
    }
}
