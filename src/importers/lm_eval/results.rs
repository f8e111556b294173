//! The results file as members: what is in it, and which of its names are tasks.
//!
//! Promises: it takes no more memory than an entry may; what is long and never shown (templates, the environment's dump) is not kept whole.
//! Does not: make anything of the values.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    io::SeekFrom,
};

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{
    domain::hex::hex,
    importers::{
        Input, Limits, Refused,
        inspect::build::text_of,
        nan::strict,
        raw::{Fields, fields, list, text},
        scan::{Scanner, Sink, Stop},
        unreadable,
    },
};

/// Members that are long and stand for something shorter that is kept (their digests), or elsewhere (samples).
const LEFT_OUT: [&[u8]; 3] = [b"\"chat_template\"", b"\"system_instruction\"", b"\"samples\""];
/// Tasks of one file: each is an evaluation of the run.
const TASKS_MAX: usize = 10_000;
/// Read at once for the digest.
const BLOCK_BYTES: usize = 64 * 1024;

/// The file's members as one object of strict JSON, and whether bytes of it were no UTF-8.
pub(super) fn members(input: &mut dyn Input, limits: &Limits) -> Result<(String, bool), Refused> {
    let mut out = b"{".to_vec();
    copy(&mut Scanner::new(input), &mut out, limits.entry_bytes_max).map_err(Refused::Broken)?;
    out.push(b'}');
    Ok(text_of(strict(out)))
}

fn copy(scanner: &mut Scanner<&mut dyn Input>, out: &mut Vec<u8>, bytes_max: u64) -> Result<(), String> {
    let wrong = |stop: Stop| stop.sentence();
    let (mut key, mut first) = (Vec::new(), true);
    scanner.take(b'{').map_err(wrong)?;
    while scanner.key(first, &mut key).map_err(wrong)? {
        first = false;
        scanner.peek().map_err(wrong)?;
        if key.is_empty() || LEFT_OUT.contains(&key.as_slice()) {
            scanner.value(&mut Sink::skip()).map_err(wrong)?;
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&key);
        out.push(b':');
        let room = bytes_max.saturating_sub(out.len() as u64);
        let mut sink = Sink::into(out, room);
        scanner.value(&mut sink).map_err(wrong)?;
        if !sink.whole() {
            return Err(format!("the results take more than {bytes_max} bytes, the most that they may"));
        }
    }
    Ok(())
}

/// SHA-256 of the whole file.
pub(super) fn sha256(input: &mut dyn Input) -> Result<String, Refused> {
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    loop {
        let read = input.read(&mut block).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        hash.update(block.get(..read).unwrap_or_default());
    }
    Ok(hex(&hash.finalize()))
}

/// An object over tasks. Each of many tasks is looked up in several of them.
#[derive(Default)]
pub(super) struct ByTask<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl<'a> ByTask<'a> {
    fn of(raw: Option<&'a RawValue>) -> Self {
        Self(fields(raw).0.into_iter().collect())
    }

    /// What stands under `task`, null being nothing.
    pub(super) fn get(&self, task: &str) -> Option<&'a RawValue> {
        self.0.get(task).copied().filter(|raw| raw.get() != "null")
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.0.keys().map(|name| name.clone().into_owned())
    }
}

/// The members of a results file that say something.
pub(super) struct Members<'a> {
    pub(super) top: Fields<'a>,
    pub(super) config: Fields<'a>,
    pub(super) configs: ByTask<'a>,
    pub(super) results: ByTask<'a>,
    pub(super) versions: ByTask<'a>,
    pub(super) shots: ByTask<'a>,
    pub(super) samples: ByTask<'a>,
    pub(super) directions: ByTask<'a>,
    pub(super) hashes: ByTask<'a>,
}

impl<'a> Members<'a> {
    pub(super) fn read(json: &'a str) -> Result<Self, Refused> {
        let top: Fields<'a> = serde_json::from_str(json).map_err(|error| Refused::Broken(format!("the results are no JSON: {error}")))?;
        let part = |key| ByTask::of(top.get(key));
        let members = Self {
            config: fields(top.get("config")),
            configs: part("configs"),
            results: part("results"),
            versions: part("versions"),
            shots: part("n-shot"),
            samples: part("n-samples"),
            directions: part("higher_is_better"),
            hashes: part("task_hashes"),
            top,
        };
        if members.results.0.len().max(members.configs.0.len()).max(members.versions.0.len()) > TASKS_MAX {
            return Err(Refused::Broken(format!("the results name more than {TASKS_MAX} tasks, the most that a file may")));
        }
        Ok(members)
    }

    /// Whether what the file says of itself tells it from every other.
    pub(super) fn has_own_id(&self) -> bool {
        self.model_name().is_some() && self.top.get("date").is_some()
    }

    /// The model's name as the harness spells it in directories, which is unique where it is made up.
    pub(super) fn model_name(&self) -> Option<String> {
        text(self.top.get("model_name_sanitized")).or_else(|| text(self.top.get("model_name"))).map(Cow::into_owned)
    }

    /// The names of the tasks, in order. Where there are configurations, only tasks have one; a group's average stands among the results too.
    pub(super) fn tasks(&self) -> BTreeSet<String> {
        let groups = self.groups();
        let versions = self.configs.0.is_empty().then_some(&self.versions).into_iter().flat_map(ByTask::names);
        let others = self.results.names().chain(versions).filter(|name| !groups.contains(name));
        self.configs.names().chain(others).collect()
    }

    /// The names of groups. A task may be listed as a group of nothing.
    pub(super) fn groups(&self) -> BTreeSet<String> {
        let averaged = fields(self.top.get("groups"));
        let parts = fields(self.top.get("group_subtasks"));
        let parted = parts.0.iter().filter(|(_, raw)| !list(Some(raw)).0.is_empty());
        averaged.0.iter().chain(parted).map(|(name, _)| name.clone().into_owned()).collect()
    }
}
