//! Where bodies wait on the disk until they are read: a directory beside each project's file.
//!
//! Promises: what a request left there goes with it; what a killed server left is known by its lock, which the system gave up, and removed;
//! memory is a quarter of a MiB for each body that comes in.
//! Does not: hold a thread while a slow body comes.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use axum::body::HttpBody;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{
    super::tenants::{Target, private_directory},
    blocking, disk, internal,
};
use crate::{
    clock,
    domain::hex::hex,
    gate::ingest::{Counted, Refused},
};

/// Written at once.
const BLOCK_BYTES: usize = 256 * 1024;
/// What requests keep there begins so; parts of logs end so; and this holds a request's lock.
const FRESH: &str = "in-";
const PART: &str = ".part";
const LOCK: &str = "lock";
/// A directory without a lock is being made, or its maker was killed just then.
const MAKING: Duration = Duration::from_secs(60);

/// The directory of one project.
#[derive(Debug, Clone)]
pub(super) struct Spool(PathBuf);

/// A directory of one request, gone when dropped.
#[derive(Debug)]
pub(super) struct Fresh {
    directory: TempDir,
    _lock: File,
}

impl Fresh {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Spool {
    /// That of the project of `target`. It is made when something is put there.
    pub(super) fn of(target: &Target) -> Self {
        Self(target.spool.clone())
    }

    /// An empty directory that nobody else knows.
    pub(super) fn fresh(&self) -> io::Result<Fresh> {
        self.make()?;
        let directory = tempfile::Builder::new().prefix(FRESH).tempdir_in(&self.0)?;
        let lock = File::create_new(directory.path().join(LOCK))?;
        lock.lock()?;
        Ok(Fresh { directory, _lock: lock })
    }

    /// Makes the directory where it is not there.
    pub(super) fn make(&self) -> io::Result<()> {
        private_directory(&self.0)
    }

    /// The file of a log that comes in parts.
    pub(super) fn part(&self, digest: &str) -> PathBuf {
        self.0.join(format!("{digest}{PART}"))
    }

    /// How many logs have come in part, and their bytes.
    pub(super) fn parts(&self) -> io::Result<(usize, u64)> {
        let entries = fs::read_dir(&self.0)?.filter_map(Result::ok).filter(|entry| is_part(&entry.path()));
        Ok(entries.filter_map(|entry| entry.metadata().ok()).fold((0, 0), |(number, bytes), found| (number + 1, bytes + found.len())))
    }
}

fn is_part(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(PART))
}

/// Removes below `projects` what no running server holds: directories of requests, and parts that are older than `keep`.
pub(super) fn sweep(projects: &Path, keep: Duration) {
    let entries =
        |path: &Path| fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect::<Vec<_>>();
    for spool in entries(projects).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "spool")) {
        for path in entries(&spool) {
            if is_part(&path) {
                expire(&path, keep);
            } else if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(FRESH)) {
                abandoned(&path);
            }
        }
    }
}

/// Since when nothing about the file changed; not its own time, which its sender may have set.
fn age(path: &Path) -> Duration {
    use std::os::unix::fs::MetadataExt as _;
    let changed = fs::metadata(path).map_or(0, |found| found.ctime());
    let since = Duration::from_secs(u64::try_from(changed).unwrap_or_default());
    let now = Duration::from_millis(u64::try_from(clock::now().millis()).unwrap_or_default());
    now.saturating_sub(since)
}

fn expire(part: &Path, keep: Duration) {
    let free = || File::open(part).is_ok_and(|file| file.try_lock().is_ok());
    if age(part) >= keep && free() {
        removed(fs::remove_file(part));
    }
}

fn abandoned(directory: &Path) {
    let free = match File::open(directory.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(_) => age(directory) > MAKING,
    };
    if free {
        removed(fs::remove_dir_all(directory));
    }
}

fn removed(done: io::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(%error, "something that was left behind could not be removed");
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// Bytes.
    pub(super) bytes: u64,
    /// Their SHA-256, hexadecimal, where it was asked for.
    pub(super) digest: Option<String>,
}

/// Writes a body to a file.
pub(super) struct Sink {
    /// None while it is being written to, and when that failed.
    at: Option<(File, Option<Sha256>)>,
    buffer: BytesMut,
    bytes: u64,
    max: u64,
}

impl Sink {
    /// To `file`, from where it stands, `max` bytes at most. `whole`: the body is a whole log, whose digest is wanted.
    pub(super) fn new(file: File, max: u64, whole: bool) -> Self {
        Self { at: Some((file, whole.then(Sha256::new))), buffer: BytesMut::new(), bytes: 0, max }
    }

    /// All of `body`, within `within`.
    ///
    /// # Errors
    /// Why not all of it came; what came before stands.
    pub(super) async fn take(&mut self, body: &mut Counted, within: Duration) -> Result<(), Refused> {
        tokio::time::timeout(within, self.all(body)).await.unwrap_or(Err(Refused::Late))
    }

    async fn all(&mut self, body: &mut Counted) -> Result<(), Refused> {
        while !body.is_end_stream() {
            let Some(frame) = body.frame().await else { break };
            let Ok(data) = frame.map_err(|_| Refused::Broken)?.into_data() else { continue };
            self.bytes = self.bytes.saturating_add(data.len() as u64);
            if self.bytes > self.max {
                self.bytes -= data.len() as u64;
                return Err(Refused::TooLarge { max: self.max });
            }
            self.buffer.extend_from_slice(&data);
            if self.buffer.len() >= BLOCK_BYTES {
                self.flush(false).await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self, last: bool) -> Result<(), Refused> {
        let (mut file, mut hash) = self.at.take().ok_or_else(|| internal(&"a body's file is gone"))?;
        let block = self.buffer.split();
        let written = blocking(move || {
            file.write_all(&block)?;
            hash.iter_mut().for_each(|hash| hash.update(&block));
            if last {
                file.sync_all()?;
            }
            Ok((file, hash))
        });
        self.at = Some(written.await?.map_err(|error: io::Error| disk(&error))?);
        Ok(())
    }

    /// Writes what is left, and waits until the disk has it.
    ///
    /// # Errors
    /// Why the disk has it not.
    pub(super) async fn close(mut self) -> Result<Written, Refused> {
        self.flush(true).await?;
        let hash = self.at.and_then(|(_, hash)| hash);
        Ok(Written { bytes: self.bytes, digest: hash.map(|hash| hex(&hash.finalize())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_removed() {
        let top = tempfile::tempdir().unwrap();
        let spool = Spool(top.path().join("2.spool"));
        let held = spool.fresh().unwrap();
        let left = spool.0.join("in-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let making = spool.0.join("in-making");
        fs::create_dir(&making).unwrap();
        fs::write(spool.part("a"), "part").unwrap();
        fs::write(spool.part("b"), "parts").unwrap();
        let busy = File::open(spool.part("b")).unwrap();
        busy.lock().unwrap();
        assert_eq!(spool.parts().unwrap(), (2, 9));
        sweep(top.path(), Duration::from_secs(3600));
        assert_eq!((held.path().exists(), left.exists(), making.exists()), (true, false, true));
        assert_eq!(spool.parts().unwrap().0, 2, "they are young");
        sweep(top.path(), Duration::ZERO);
        assert_eq!(spool.parts().unwrap(), (1, 5), "one is being sent");
        let path = held.path().to_path_buf();
        drop(held);
        assert!(!path.exists());
    }
}
