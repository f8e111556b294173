//! A log in an archive (`.eval`): the header, then one sample at a time.
//!
//! Promises: memory is one sample, whatever the log holds; a log without a header (killed, or still running) gives what its journal has; a
//! sample that cannot be read gives what the summaries say of it and a complaint that names it.
//! Does not: keep the order of epochs (the archive's order is when samples ended).

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;

use super::{
    archive::{Archive, Fault},
    attachments::Attachments,
    build::{finish, room, text_of, who, whole},
    chunked::{Chunks, Pieces, Place, places},
    header::read_header,
    lines::Lines,
    pool::Pool,
    sample::{Context, Sample},
    score::{Decider, Kinds},
};
use crate::{
    domain::extras::Extras,
    importers::{Input, Item, Limits, Opened, Refused, raw::List},
    telemetry::redaction::Redactor,
};

const HEADER: &str = "header.json";
const START: &str = "_journal/start.json";
const SUMMARIES: &str = "summaries.json";
const JOURNAL_SUMMARIES: &str = "_journal/summaries/";

/// Opens the log in an archive.
pub(in crate::importers) fn open<'a>(
    input: Box<dyn Input + 'a>,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let mut archive = Archive::open(input, limits)?;
    let Some(member) = archive.find(HEADER).or_else(|| archive.find(START)) else {
        return Err(Refused::NotALog(format!("no eval log: an archive without {HEADER} and {START}")));
    };
    let name = archive.name(member).to_owned();
    let json = archive.read(member).map_err(|fault| Refused::Broken(format!("{name} {}", fault.sentence(limits))))?;
    let head = read_header(&json, limits, redactor)?;
    let kinds = kinds(&mut archive, head.old_scorer.as_deref());
    let evaluation = head.header.evaluations.first().map(|evaluation| evaluation.id.clone()).unwrap_or_default();
    let arm = head.header.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let context = Context { limits, redactor, evaluation, arm, decider: Decider::of(head.ranking, &kinds), cluster: head.cluster };
    let places = places(&archive).into_iter();
    let items =
        Items { archive, places, context, old_scorer: head.old_scorer, seen: HashSet::new(), summaries: None, ready: VecDeque::new() };
    Ok(Opened { header: head.header, extras: Extras::default(), items: Box::new(items) })
}

/// The members that hold the summaries: the whole ones, else the journal's parts.
fn summary_members(archive: &Archive<'_>) -> Vec<usize> {
    let journal = || archive.all().filter(|member| archive.name(*member).starts_with(JOURNAL_SUMMARIES)).collect();
    archive.find(SUMMARIES).map_or_else(journal, |member| vec![member])
}

/// The text of a member with summaries. One that cannot be read is empty, since the samples say the same.
fn summary_text(archive: &mut Archive<'_>, member: usize) -> String {
    archive.read(member).map(|bytes| text_of(bytes).0).unwrap_or_default()
}

/// Which scorers give numbers in this log.
fn kinds(archive: &mut Archive<'_>, old_scorer: Option<&str>) -> Kinds {
    let mut kinds = Kinds::default();
    for member in summary_members(archive) {
        let json = summary_text(archive, member);
        let List(rows) = serde_json::from_str(&json).unwrap_or_default();
        for sample in rows.iter().filter_map(|row| Sample::read(row.get(), old_scorer).ok()) {
            kinds.see(&sample.scores);
        }
    }
    kinds
}

/// The summaries by the name of their sample's entry, as many as one entry of an archive may take.
fn summaries(archive: &mut Archive<'_>, bytes_max: u64) -> HashMap<String, String> {
    let (mut found, mut left) = (HashMap::new(), bytes_max);
    for member in summary_members(archive) {
        let json = summary_text(archive, member);
        let Some(less) = left.checked_sub(json.len() as u64) else { break };
        left = less;
        let List(rows) = serde_json::from_str(&json).unwrap_or_default();
        found.extend(rows.iter().filter_map(|row| Some((Sample::read(row.get(), None).ok()?.entry_stem(), row.get().to_owned()))));
    }
    found
}

struct Items<'a> {
    archive: Archive<'a>,
    places: std::vec::IntoIter<Place>,
    context: Context<'a>,
    old_scorer: Option<String>,
    seen: HashSet<(String, u32)>,
    /// Summaries by the name of the sample's entry: read once, when a sample cannot be.
    summaries: Option<HashMap<String, String>>,
    ready: VecDeque<Result<Item, String>>,
}

impl Iterator for Items<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let place = self.places.next()?;
            self.place(&place);
        }
        let item = self.ready.pop_front();
        if matches!(item, Some(Err(_))) {
            // The log is broken: nothing after it counts.
            self.places = Vec::new().into_iter();
        }
        item
    }
}

impl Items<'_> {
    fn place(&mut self, place: &Place) {
        let member = place.member();
        let (json, replaced) = match self.archive.read(member) {
            Ok(bytes) => text_of(bytes),
            Err(fault) => return self.instead(member, &fault),
        };
        if replaced {
            self.complain(format!("{}: bytes that are no UTF-8 were replaced", self.shown_name(member)));
        }
        let read = Sample::read(&json, self.old_scorer.as_deref());
        let sample = match read {
            Ok(sample) => sample,
            Err(error) => return self.instead(member, &Fault::Damaged(format!("is no sample: {error}"))),
        };
        let items = match place {
            Place::Whole(_) => Ok(whole(&sample, &self.context)),
            Place::Chunked(_, pieces) => chunked(&mut self.archive, &sample, pieces, &self.context),
        };
        match items {
            Ok(items) => self.add(member, items),
            Err(fault) => self.ready.push_back(Err(format!("{} {}", self.shown_name(member), fault.sentence(self.context.limits)))),
        }
    }

    /// Adds a sample's items, unless another entry was the same row.
    fn add(&mut self, member: usize, items: Vec<Item>) {
        for item in items {
            if let Item::Attempt(attempt) = &item
                && !self.seen.insert((attempt.case.clone(), attempt.epoch))
            {
                let again = who(attempt);
                return self.complain(format!("{}: {again} stands in another entry too, which was kept", self.shown_name(member)));
            }
            self.ready.push_back(Ok(item));
        }
    }

    /// What the summaries say of a sample whose entry cannot be read.
    fn instead(&mut self, member: usize, fault: &Fault) {
        let name = self.shown_name(member);
        let why = fault.sentence(self.context.limits);
        if *fault == Fault::LogTooBig {
            return self.ready.push_back(Err(format!("{name} {why}")));
        }
        let stem = self.archive.name(member).trim_end_matches(".json").trim_end_matches("/sample").to_owned();
        let Some(summary) = self.summary(&stem) else {
            return self.complain(format!("{name} {why}; the summaries do not have it either, so it is missing"));
        };
        match Sample::read(&summary, self.old_scorer.as_deref()) {
            Ok(sample) => {
                let attempt = sample.attempt(&self.context, &Attachments::default());
                let complaint = Item::Complaint(format!("{}: {name} {why}; it is imported without its transcript", who(&attempt)));
                self.add(member, vec![Item::Attempt(Box::new(attempt)), complaint]);
            }
            Err(error) => self.complain(format!("{name} {why}; its summary cannot be read either ({error}), so it is missing")),
        }
    }

    fn summary(&mut self, stem: &str) -> Option<String> {
        let bytes_max = self.context.limits.entry_bytes_max;
        let summaries = self.summaries.get_or_insert_with(|| summaries(&mut self.archive, bytes_max));
        summaries.get(stem).cloned()
    }

    fn complain(&mut self, sentence: String) {
        self.ready.push_back(Ok(Item::Complaint(sentence)));
    }

    fn shown_name(&self, member: usize) -> String {
        self.context.shown(self.archive.name(member)).escape_debug().to_string()
    }
}

/// A chunked sample: the pools are held, the events stream by. Only an archive that is too big is an error; damaged chunks cost the
/// transcript, since the shell says everything else.
fn chunked(archive: &mut Archive<'_>, sample: &Sample<'_>, pieces: &Pieces, context: &Context<'_>) -> Result<Vec<Item>, Fault> {
    match transcribed(archive, sample, pieces, context) {
        Ok(items) => Ok(items),
        Err(Fault::LogTooBig) => Err(Fault::LogTooBig),
        Err(fault) => {
            let attempt = sample.attempt(context, &Attachments::default());
            let why = format!("{}: a chunk of it {}; it is imported without its transcript", who(&attempt), fault.sentence(context.limits));
            Ok(vec![Item::Attempt(Box::new(attempt)), Item::Complaint(why)])
        }
    }
}

fn transcribed(archive: &mut Archive<'_>, sample: &Sample<'_>, pieces: &Pieces, context: &Context<'_>) -> Result<Vec<Item>, Fault> {
    let mut left = context.limits.entry_bytes_max;
    let mut texts = |chunks: &Chunks| chunk_texts(archive, chunks, &mut left);
    let (attachments, messages, calls) = (texts(&pieces.attachments)?, texts(&pieces.messages)?, texts(&pieces.calls)?);
    let attachments = Attachments::by_index(items_of(&attachments)?.into_iter(), room(context.limits));
    let (messages, calls) = (Pool::new(items_of(&messages)?), Pool::new(items_of(&calls)?));
    let mut lines = Lines::new(context.redactor, &attachments, messages, calls);
    lines.pooled_messages(&sample.message_refs.0);
    for (_, member) in &pieces.events {
        let (json, _) = text_of(archive.read(*member)?);
        let List(events) = serde_json::from_str(&json).map_err(|error| Fault::Damaged(error.to_string()))?;
        events.into_iter().for_each(|raw| lines.event(raw));
    }
    Ok(finish(sample.attempt(context, &attachments), lines, &attachments))
}

/// The texts of a sequence's chunks, each with the number of its first item. All pools of a sample together may have what one entry may.
fn chunk_texts(archive: &mut Archive<'_>, chunks: &Chunks, left: &mut u64) -> Result<Vec<(u64, String)>, Fault> {
    let mut texts = Vec::new();
    for (start, member) in chunks {
        let bytes = archive.read(*member)?;
        *left = left.checked_sub(bytes.len() as u64).ok_or(Fault::TooBig)?;
        texts.push((*start, text_of(bytes).0));
    }
    Ok(texts)
}

/// The items of a sequence in order; a gap would shift every reference after it.
fn items_of(texts: &[(u64, String)]) -> Result<Vec<&RawValue>, Fault> {
    let mut items = Vec::new();
    for (start, json) in texts {
        if *start != items.len() as u64 {
            return Err(Fault::Damaged(format!("is missing: items from {} to {start} are in no chunk", items.len())));
        }
        let List(more) = serde_json::from_str(json).map_err(|error| Fault::Damaged(error.to_string()))?;
        items.extend(more);
    }
    Ok(items)
}
