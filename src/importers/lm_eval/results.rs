//! The results file as members: what is in it, and which of its names are tasks.
//!
//! Promises: it takes no more memory than an entry may; what is long and never shown (templates, the environment's dump) is not kept whole.
//! Does not: make anything of the values.

use std::{collections::BTreeSet, io::SeekFrom};

use sha2::{Digest as _, Sha256};

use crate::importers::{
    Input, Limits, Refused,
    inspect::build::text_of,
    nan::strict,
    raw::{Fields, fields, list, text},
    scan::{Scanner, Sink, Stop},
    unreadable,
};

/// Members that are long and stand for something shorter that is kept (their digests), or elsewhere (samples).
const LEFT_OUT: [&[u8]; 3] = [b"\"chat_template\"", b"\"system_instruction\"", b"\"samples\""];
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
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The members of a results file that say something.
pub(super) struct Members<'a> {
    pub(super) top: Fields<'a>,
    pub(super) config: Fields<'a>,
    pub(super) configs: Fields<'a>,
    pub(super) results: Fields<'a>,
}

impl<'a> Members<'a> {
    pub(super) fn read(json: &'a str) -> Result<Self, Refused> {
        let top: Fields<'a> = serde_json::from_str(json).map_err(|error| Refused::Broken(format!("the results are no JSON: {error}")))?;
        let part = |key| fields(top.get(key));
        let (config, configs, results) = (part("config"), part("configs"), part("results"));
        Ok(Self { top, config, configs, results })
    }

    /// Whether what the file says of itself tells it from every other.
    pub(super) fn has_own_id(&self) -> bool {
        self.model_name().is_some() && self.top.get("date").is_some()
    }

    /// The model's name as the harness spells it in directories, which is unique where it is made up.
    pub(super) fn model_name(&self) -> Option<String> {
        text(self.top.get("model_name_sanitized")).or_else(|| text(self.top.get("model_name"))).map(std::borrow::Cow::into_owned)
    }

    /// The value of `task` under the member `key`, an object over tasks.
    pub(super) fn of_task(&self, key: &str, task: &str) -> Option<&'a serde_json::value::RawValue> {
        fields(self.top.get(key)).get(task)
    }

    /// The names of the tasks, in order. Where there are configurations, only tasks have one; a group's average stands among the results too.
    pub(super) fn tasks(&self) -> BTreeSet<String> {
        let groups = self.groups();
        let names = |fields: &Fields<'_>| fields.0.iter().map(|(name, _)| name.clone().into_owned()).collect::<Vec<_>>();
        let versions = if self.configs.0.is_empty() { names(&fields(self.top.get("versions"))) } else { Vec::new() };
        let others = names(&self.results).into_iter().chain(versions).filter(|name| !groups.contains(name));
        names(&self.configs).into_iter().chain(others).collect()
    }

    /// The names of groups. A task may be listed as a group of nothing.
    pub(super) fn groups(&self) -> BTreeSet<String> {
        let averaged = fields(self.top.get("groups"));
        let parts = fields(self.top.get("group_subtasks"));
        let parted = parts.0.iter().filter(|(_, raw)| !list(Some(raw)).0.is_empty());
        averaged.0.iter().chain(parted).map(|(name, _)| name.clone().into_owned()).collect()
    }
}
