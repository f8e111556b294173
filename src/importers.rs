//! Importers: bytes to a header and an iterator of attempts or complaints.
//!
//! Promises: pure (no store, no clock, no paths of their own), bounded memory whatever the file holds, a format recognised by content and
//! not by name, never a panic. Text is redacted on the way in.
//! Does not: walk directories or write anything.

pub mod beside;
mod inspect;
mod junit;
mod lm_eval;
mod nan;
mod promptfoo;
mod raw;
mod record;
mod scan;
mod sniff;
#[cfg(test)]
mod trial;
mod window;

use std::io::{Read, Seek, SeekFrom};

use self::{beside::Beside, sniff::Format};
use crate::{
    domain::{attempt::Attempt, extras::Extras, log::LogHeader},
    telemetry::redaction::Redactor,
};

/// Enough to see past leading white space.
const HEAD_BYTES: u64 = 512;

/// What an importer may spend on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Entries in an archive.
    pub entries_max: usize,
    /// Bytes that one entry of an archive (or one sample of a JSON log) may inflate to, counted while it inflates.
    pub entry_bytes_max: u64,
    /// Bytes that a whole file may inflate to.
    pub log_bytes_max: u64,
    /// Bytes of a case's input, target, output, of a check's reason and of an error that are kept in the tables.
    pub text_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries_max: 60_000, entry_bytes_max: 64 * 1024 * 1024, log_bytes_max: 64 * 1024 * 1024 * 1024, text_bytes_max: 2048 }
    }
}

/// Why a file gives no attempts at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no log of any known format: skipped without a complaint.
    #[error("{0}")]
    NotALog(String),
    /// It is a log, or wants to be one, and cannot be read: a complaint.
    #[error("{0}")]
    Broken(String),
}

/// What a log yields.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An attempt.
    Attempt(Box<Attempt>),
    /// Something of the log could not be read whole, and the rest stands; a sentence that names what.
    Complaint(String),
}

/// A log, opened. An error among the items means that the log is broken: nothing of it should be kept.
pub struct Opened<'a> {
    /// Everything but the attempts.
    pub header: LogHeader,
    /// What few formats hold.
    pub extras: Extras,
    /// The attempts, in the order of the file.
    pub items: Box<dyn Iterator<Item = Result<Item, String>> + 'a>,
}

/// What an importer reads from.
pub trait Input: Read + Seek {}
impl<T: Read + Seek> Input for T {}

/// What a file is by its first bytes.
enum Container {
    Archive,
    Json,
    Xml,
    Neither,
}

/// Opens a log of any known format.
///
/// # Errors
/// [`Refused`], with a sentence that says why and names no path.
pub fn open<'a>(
    mut input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    match container(&mut input)? {
        Container::Archive => inspect::eval_log::open(input, limits, redactor),
        Container::Json => json(input, beside, limits, redactor),
        Container::Xml => junit::open(input, beside, limits, redactor),
        Container::Neither => Err(Refused::NotALog("no JSON, no archive, no XML".to_owned())),
    }
}

fn json<'a>(
    mut input: Box<dyn Input + 'a>,
    beside: &'a dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let format = sniff::format(&mut input);
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    match format {
        Format::Inspect => inspect::json_log::open(input, limits, redactor),
        Format::Record => record::open(input, beside, limits, redactor),
        Format::LmEval => lm_eval::open(input, beside, limits, redactor),
        Format::LmEvalSamples => Err(Refused::NotALog(lm_eval::SAMPLES_ALONE.to_owned())),
        Format::Promptfoo => promptfoo::results(input, beside, limits, redactor),
        Format::PromptfooRows => promptfoo::rows(input, beside, limits, redactor),
    }
}

fn container(input: &mut dyn Input) -> Result<Container, Refused> {
    let mut first = Vec::new();
    input.take(HEAD_BYTES).read_to_end(&mut first).map_err(unreadable)?;
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    // An archive begins with an entry, or with its end where it has none.
    if first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06") {
        return Ok(Container::Archive);
    }
    if first.starts_with(b"\xFF\xFE<\0") || first.starts_with(b"\xFE\xFF\0<") {
        return Ok(Container::Xml);
    }
    let text = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&first);
    Ok(match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Container::Json,
        Some(b'<') => Container::Xml,
        _ => Container::Neither,
    })
}

/// What of an attempt was left out, in sentences about `who`: `deep` lines of its transcript; checks (what they are called, and their cap).
fn left_out(who: &str, deep: u32, full: Option<(&str, usize)>) -> impl Iterator<Item = String> {
    let deep = (deep > 0).then(|| format!("{who}: {deep} lines of its transcript are nested too deep and were left out"));
    let full = full.map(|(checks, max)| format!("{who}: of its {checks} no more than {max} are kept"));
    deep.into_iter().chain(full)
}

fn unreadable(error: std::io::Error) -> Refused {
    Refused::Broken(format!("the file cannot be read: {}", error.kind()))
}
