//! The archive of a log (`.eval`): its members by name, read one at a time.
//!
//! Promises: only the central directory is held; of members with one name the last counts; bytes are counted while they inflate, whatever
//! was declared; links and directories are no members; nothing is extracted.
//! Does not: know what the members say.

use std::{
    collections::HashMap,
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use zip::{
    CompressionMethod, HasZipMetadata,
    read::{Config, OwnedZipFileEntry, ZipReadOptions},
    unstable::read::ZipIterable,
};

use crate::importers::{Input, Limits, Refused, nan::strict, window::Window};

/// Why a member cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// It inflates past what one member may.
    TooBig,
    /// It is damaged, or packed in a way that nobody here knows.
    Damaged(String),
    /// The log inflates past what a whole log may: nothing more is read.
    LogTooBig,
}

impl Fault {
    /// What is wrong, for after a member's name.
    pub(super) fn sentence(&self, limits: &Limits) -> String {
        match self {
            Fault::TooBig => format!("inflates past {} bytes, the most that one entry may", limits.entry_bytes_max),
            Fault::Damaged(why) => format!("cannot be read: {why}"),
            Fault::LogTooBig => format!("takes the log past {} inflated bytes, the most that one log may", limits.log_bytes_max),
        }
    }
}

struct Member {
    name: String,
    entry: OwnedZipFileEntry,
}

/// An opened archive.
pub(super) struct Archive<'a> {
    input: Window<Box<dyn Input + 'a>>,
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
    inflated: u64,
    limits: &'a Limits,
    inflater: Option<Inflater>,
}

/// What the buffer for packed bytes may keep between members.
const PACKED_BYTES_KEPT: usize = 1024 * 1024;

/// Inflates zstd members in one step. Making a context costs as much as inflating a short sample, so it is kept.
struct Inflater {
    zstd: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
}

impl Inflater {
    fn new() -> Option<Self> {
        Some(Self { zstd: zstd::bulk::Decompressor::new().ok()?, packed: Vec::new() })
    }

    /// What the member inflates to, where it is just what the directory says and no more than `cap`. Else none: whoever then reads it piece
    /// by piece finds out what is wrong with it.
    fn inflate(&mut self, input: &mut (impl Read + Seek), entry: &OwnedZipFileEntry, cap: u64) -> Option<Vec<u8>> {
        let fits = entry.compression() == CompressionMethod::Zstd && !entry.encrypted() && entry.size() <= cap;
        let size = usize::try_from(entry.size()).ok().filter(|_| fits)?;
        let start = entry.get_metadata().data_start(input).ok()?;
        input.seek(SeekFrom::Start(start)).ok()?;
        self.packed.clear();
        self.packed.shrink_to(PACKED_BYTES_KEPT);
        input.take(entry.compressed_size()).read_to_end(&mut self.packed).ok()?;
        // What a lie reserves is never touched, and nothing is written past it.
        let mut bytes = Vec::with_capacity(size);
        self.zstd.decompress_to_buffer(&self.packed, &mut bytes).ok()?;
        (bytes.len() == size && crc32fast::hash(&bytes) == entry.crc32()).then_some(bytes)
    }
}

impl<'a> Archive<'a> {
    /// Reads the central directory.
    pub(super) fn open(input: Box<dyn Input + 'a>, limits: &'a Limits) -> Result<Self, Refused> {
        let mut input = Window::new(input);
        let (members, by_name) = directory(&mut input, limits)?;
        Ok(Self { input, members, by_name, inflated: 0, limits, inflater: Inflater::new() })
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn name(&self, member: usize) -> &str {
        self.members.get(member).map(|member| member.name.as_str()).unwrap_or_default()
    }

    /// The members that count, in the order of the archive.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.members.len()
    }

    /// What a member inflates to, as strict JSON bytes.
    pub(super) fn read(&mut self, member: usize) -> Result<Vec<u8>, Fault> {
        let Some(Member { entry, .. }) = self.members.get(member) else { return Err(Fault::Damaged("there is no such entry".to_owned())) };
        let cap = self.limits.entry_bytes_max;
        if entry.compressed_size() > cap {
            return Err(Fault::TooBig);
        }
        let left = self.limits.log_bytes_max.saturating_sub(self.inflated);
        let at_once = self.inflater.as_mut().and_then(|inflater| inflater.inflate(&mut self.input, entry, cap.min(left)));
        if let Some(bytes) = at_once {
            self.inflated = self.inflated.saturating_add(bytes.len() as u64);
            return Ok(strict(bytes));
        }
        // A hint, and no more than the cap: what a lie reserves is never touched, and an honest size spares copies of a long entry.
        let hint = entry.size().min(cap).min(left).saturating_add(1);
        let mut bytes = Vec::with_capacity(usize::try_from(hint).unwrap_or_default());
        let damaged = |error: &dyn std::fmt::Display| Fault::Damaged(error.to_string());
        let file = entry.as_ref().with_reader(&mut self.input, ZipReadOptions::default()).map_err(|error| damaged(&error))?;
        let outcome = file.take(cap.min(left).saturating_add(1)).read_to_end(&mut bytes);
        let length = bytes.len() as u64;
        self.inflated = self.inflated.saturating_add(length);
        if length > cap.min(left) {
            return Err(if left < cap { Fault::LogTooBig } else { Fault::TooBig });
        }
        outcome.map_err(|error| damaged(&error))?;
        Ok(strict(bytes))
    }
}

type Directory = (Vec<Member>, HashMap<String, usize>);

fn directory<'a>(input: &mut Window<Box<dyn Input + 'a>>, limits: &Limits) -> Result<Directory, Refused> {
    let broken = |error: &dyn std::fmt::Display| {
        Refused::Broken(format!(
            "the archive has no readable directory at its end ({error}); the file was cut off, or is still being written: copy it again"
        ))
    };
    let mut archive = ZipIterable::try_new(input, Config::default()).map_err(|error| broken(&error))?;
    if archive.len() > limits.entries_max {
        return Err(Refused::Broken(format!("the archive has {} entries; a log may have {}", archive.len(), limits.entries_max)));
    }
    let (mut members, mut by_name) = (Vec::<Member>::new(), HashMap::new());
    for entry in archive.files().map_err(|error| broken(&error))? {
        let entry = OwnedZipFileEntry::from(entry.map_err(|error| broken(&error))?);
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if !entry.is_file() {
            continue;
        }
        // The place of the first and the content of the last, as a reader that keeps a map has it.
        match by_name.get(&name).and_then(|place: &usize| members.get_mut(*place)) {
            Some(member) => member.entry = entry,
            None => {
                by_name.insert(name.clone(), members.len());
                members.push(Member { name, entry });
            }
        }
    }
    Ok((members, by_name))
}
