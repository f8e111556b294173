//! One log to the server: asked for by its digest, sent in parts from where the server has it, then read there.
//!
//! Promises: what the server has is not sent; a log with files beside it goes as one archive, the same at each try; memory is one part.
//! Does not: wait or ask again (`client` does).

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::{Carries, Client, Fault};
use crate::{
    domain::hex::hex,
    local::{bundle, index::Listed, progress::Progress, root::reason},
    store::Kind,
};

/// Bytes of a part, until the server says that it takes less.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Less than this is no part.
const PART_BYTES_MIN: usize = 64 * 1024;
/// How often a part may begin elsewhere than the server wants, and a log be sent from its beginning.
const MENDS_MAX: usize = 8;

/// Sends logs.
pub(super) struct Sender<'a> {
    pub(super) client: &'a Client,
    /// The server's project.
    pub(super) project: Option<&'a str>,
    /// The run that all are for.
    pub(super) run: Option<&'a str>,
    pub(super) progress: &'a dyn Progress,
}

/// What became of a log.
pub(super) struct Sent {
    /// The run that it is of now.
    pub(super) run: String,
    /// Whether the server has anything now that it had not.
    pub(super) changed: bool,
    /// What of it could not be read.
    pub(super) complaints: Vec<String>,
}

/// What is sent of a log.
struct Cargo {
    file: File,
    digest: String,
    bytes: u64,
    bundle: bool,
}

/// What the server says of a digest.
struct Seen {
    bytes: u64,
    imported: bool,
}

impl Sender<'_> {
    /// Sends one log.
    pub(super) fn send(&self, log: &Listed) -> Result<Sent, Fault> {
        let run = self.run.or(log.pinned.as_deref());
        let there = || Sent { run: run.unwrap_or(&log.run).to_owned(), changed: false, complaints: Vec::new() };
        let seen = self.look(log, &log.digest, run)?;
        if seen.imported {
            self.progress.advance(log.bytes);
            return Ok(there());
        }
        let mut cargo = cargo(log).map_err(|error| Fault::Local(format!("it cannot be read: {}", reason(&error))))?;
        let mut from = if cargo.bundle { self.look(log, &cargo.digest, run)?.bytes } else { seen.bytes };
        for _ in 0..MENDS_MAX {
            self.parts(&mut cargo, from)?;
            match self.read(log, &cargo, run) {
                Ok(answer) => {
                    self.progress.advance(if cargo.bundle { log.bytes } else { 0 });
                    return Ok(sent(&answer, there()));
                }
                // An answer was lost, and the log was read meanwhile; or parts were, which are sent again.
                Err(fault) if fault.is_not_found() || fault.is_digest() => {
                    let seen = self.look(log, &log.digest, run)?;
                    if seen.imported {
                        return Ok(there());
                    }
                    from = if cargo.bundle { self.look(log, &cargo.digest, run)?.bytes } else { seen.bytes };
                }
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Local("the server lost it again and again, or it changes while it is sent".to_owned()))
    }

    fn query<'q>(&'q self, run: Option<&'q str>) -> Vec<(&'q str, &'q str)> {
        let project = self.project.map(|project| ("project", project));
        project.into_iter().chain(run.map(|run| ("run", run))).collect()
    }

    fn look(&self, log: &Listed, digest: &str, run: Option<&str>) -> Result<Seen, Fault> {
        let mut query = self.query(run);
        query.extend((log.kind == Kind::Scratch).then_some(("kind", "scratch")));
        let answer = self.client.ask(&format!("/v1/uploads/{digest}"), &query, Carries::Nothing)?;
        let bytes = answer.get("bytes").and_then(Value::as_u64).unwrap_or_default();
        Ok(Seen { bytes, imported: answer.get("imported") == Some(&Value::Bool(true)) })
    }

    /// Sends what the server has not, from `from` on.
    fn parts(&self, cargo: &mut Cargo, from: u64) -> Result<(), Fault> {
        let unreadable = |error: io::Error| Fault::Local(format!("it cannot be read: {}", reason(&error)));
        let path = format!("/v1/uploads/{}", cargo.digest);
        let (mut at, mut size, mut mends) = (from, PART_BYTES, 0);
        self.done(cargo, at.min(cargo.bytes));
        while at < cargo.bytes {
            let mut part = Vec::new();
            cargo.file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
            (&mut cargo.file).take(size as u64).read_to_end(&mut part).map_err(unreadable)?;
            if part.is_empty() {
                return Err(Fault::Local("it became shorter while it was sent; send it again".to_owned()));
            }
            let offset = at.to_string();
            let query: Vec<(&str, &str)> = self.query(None).into_iter().chain([("offset", offset.as_str())]).collect();
            match self.client.ask(&path, &query, Carries::Part(&part)) {
                Ok(_) => {
                    at += part.len() as u64;
                    self.done(cargo, part.len() as u64);
                }
                Err(Fault::Refused { offset: Some(held), .. }) if mends < MENDS_MAX => {
                    (at, mends) = (held, mends + 1);
                }
                Err(fault) if fault.is_too_large() && size > PART_BYTES_MIN && part.len() > PART_BYTES_MIN => size /= 2,
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// An archive's bytes are others than its log's: told at its end.
    fn done(&self, cargo: &Cargo, bytes: u64) {
        self.progress.advance(if cargo.bundle { 0 } else { bytes });
    }

    fn read(&self, log: &Listed, cargo: &Cargo, run: Option<&str>) -> Result<Value, Fault> {
        let main = log.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut query = self.query(run);
        query.extend([("upload", cargo.digest.as_str()), ("name", log.name.as_str())]);
        query.extend((log.kind == Kind::Scratch).then_some(("kind", "scratch")));
        query.extend(cargo.bundle.then_some(("bundle", main.as_str())));
        let modified = std::fs::metadata(&log.path).and_then(|found| found.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let millis = since.and_then(|since| u64::try_from(since.as_millis()).ok());
        let manifest = json!({"ancestors": log.ancestors, "modified": millis}).to_string();
        self.client.ask("/v1/runs", &query, Carries::Json(&manifest))
    }
}

fn sent(answer: &Value, otherwise: Sent) -> Sent {
    let complaints = answer.get("complaints").and_then(Value::as_array).into_iter().flatten();
    Sent {
        run: answer.get("runId").and_then(Value::as_str).map_or(otherwise.run, str::to_owned),
        changed: answer.get("changed") == Some(&Value::Bool(true)),
        complaints: complaints.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn cargo(log: &Listed) -> io::Result<Cargo> {
    if log.beside.is_empty() {
        let file = File::open(&log.path)?;
        let bytes = file.metadata()?.len();
        return Ok(Cargo { file, digest: log.digest.clone(), bytes, bundle: false });
    }
    let mut file = bundle::pack(&log.path, &log.beside, tempfile::tempfile()?)?;
    file.rewind()?;
    let mut hash = Sha256::new();
    let bytes = io::copy(&mut file, &mut Hashes(&mut hash))?;
    Ok(Cargo { file, digest: hex(&hash.finalize()), bytes, bundle: true })
}

/// Writes into a digest.
struct Hashes<'a>(&'a mut Sha256);

impl io::Write for Hashes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
