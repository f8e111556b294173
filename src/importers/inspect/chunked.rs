//! Where the samples of an archive stand: one entry each, or a shell with chunks beside it.
//!
//! Promises: the shape is told by the names of the entries, ids and epochs never are; a sample that has both shapes counts once.
//! Does not: read samples.

use std::collections::HashMap;

use super::archive::Archive;

const SHELL: &str = "/sample.json";
const SIDECARS: [&str; 2] = ["/metadata.json", "/skeleton.json"];

/// The chunks of one sequence: the number of the first item, and the member.
pub(super) type Chunks = Vec<(u64, usize)>;

/// The chunks beside a shell.
#[derive(Debug, Default, Clone)]
pub(super) struct Pieces {
    pub(super) messages: Chunks,
    pub(super) events: Chunks,
    pub(super) calls: Chunks,
    pub(super) attachments: Chunks,
}

/// One sample's place.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// One entry.
    Whole(usize),
    /// A shell, and what stands beside it.
    Chunked(usize, Box<Pieces>),
}

impl Place {
    /// The member that says who the sample is.
    pub(super) fn member(&self) -> usize {
        match self {
            Place::Whole(member) | Place::Chunked(member, _) => *member,
        }
    }
}

/// All samples, in the order of the archive.
pub(super) fn places(archive: &Archive<'_>) -> Vec<Place> {
    let mut pieces: HashMap<String, Pieces> = HashMap::new();
    for member in archive.all() {
        if let Some(prefix) = sample_entry(archive.name(member)).and_then(|name| name.strip_suffix(SHELL)) {
            pieces.entry(prefix.to_owned()).or_default();
        }
    }
    let mut found = Vec::new();
    for member in archive.all() {
        let name = archive.name(member);
        let Some(entry) = sample_entry(name) else { continue };
        if let Some((prefix, sequence, start)) = chunk(entry)
            && let Some(pieces) = pieces.get_mut(prefix)
        {
            pieces.add(sequence, start, member);
        } else if !beside_a_shell(entry, &pieces) {
            found.push(Place::Whole(member));
        } else if let Some(prefix) = entry.strip_suffix(SHELL)
            && archive.find(&format!("{prefix}.json")).is_none()
        {
            found.push(Place::Chunked(member, Box::default()));
        }
    }
    for place in &mut found {
        if let Place::Chunked(member, own) = place
            && let Some(mut chunks) = archive.name(*member).strip_suffix(SHELL).and_then(|prefix| pieces.remove(prefix))
        {
            chunks.sort();
            **own = chunks;
        }
    }
    found
}

fn sample_entry(name: &str) -> Option<&str> {
    (name.starts_with("samples/") && name.ends_with(".json")).then_some(name)
}

fn beside_a_shell(entry: &str, pieces: &HashMap<String, Pieces>) -> bool {
    let own = SIDECARS.iter().chain([&SHELL]).find_map(|end| entry.strip_suffix(end));
    let derived = entry.strip_suffix("/events/stats.json").or_else(|| entry.strip_suffix("/events/uuids.json"));
    own.or(derived).is_some_and(|prefix| pieces.contains_key(prefix))
}

/// `prefix/sequence/start.json`
fn chunk(entry: &str) -> Option<(&str, &str, u64)> {
    let (rest, start) = entry.strip_suffix(".json")?.rsplit_once('/')?;
    let (prefix, sequence) = rest.rsplit_once('/')?;
    Some((prefix, sequence, start.parse().ok()?))
}

impl Pieces {
    fn add(&mut self, sequence: &str, start: u64, member: usize) {
        let chunks = match sequence {
            "messages" => &mut self.messages,
            "events" => &mut self.events,
            "calls" => &mut self.calls,
            "attachments" => &mut self.attachments,
            _ => return,
        };
        chunks.push((start, member));
    }

    fn sort(&mut self) {
        for chunks in [&mut self.messages, &mut self.events, &mut self.calls, &mut self.attachments] {
            chunks.sort_unstable();
        }
    }
}
