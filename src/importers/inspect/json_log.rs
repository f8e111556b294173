//! A log in one JSON object (`.json`): one pass over the file for the header and the places of the samples, then one sample at a time.
//!
//! Promises: memory is the header and one sample, wherever in the file the header's parts stand; of two samples with one id and epoch the
//! last counts; a sample that is too big gives everything but its transcript.
//! Does not: keep `reductions` (the metrics say the same).

use std::collections::{HashMap, VecDeque};

use super::{
    attachments::Attachments,
    build::{text_of, who, whole},
    header::read_header,
    sample::{Context, Sample},
    score::{Decider, Kinds},
};
use crate::{
    domain::extras::Extras,
    importers::{
        Input, Item, Limits, Opened, Refused,
        nan::strict,
        raw::Fields,
        scan::{Scanner, Sink, Stop},
    },
    telemetry::redaction::Redactor,
};

/// The parts of a log that are its header.
const HEADER_KEYS: [&[u8]; 10] = [
    b"\"version\"",
    b"\"status\"",
    b"\"eval\"",
    b"\"plan\"",
    b"\"results\"",
    b"\"stats\"",
    b"\"error\"",
    b"\"invalidated\"",
    b"\"tags\"",
    b"\"metadata\"",
];
/// The parts of a sample that a transcript is made of; last, what may name the group of its case.
const TRANSCRIPT_KEYS: [&[u8]; 8] = [
    b"\"messages\"",
    b"\"events\"",
    b"\"attachments\"",
    b"\"events_data\"",
    b"\"transcript\"",
    b"\"store\"",
    b"\"timelines\"",
    b"\"metadata\"",
];
/// Ids of more bytes are taken to differ, so that holding one for each sample stays cheap.
const ID_BYTES_MAX: usize = 1024;
const SCORES_BYTES_MAX: u64 = 1024 * 1024;

/// Opens the log in a JSON file.
pub(in crate::importers) fn open<'a>(
    input: Box<dyn Input + 'a>,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let mut scanner = Scanner::new(input);
    let mut index = Index { header: b"{".to_vec(), ..Index::default() };
    let scanned = index.scan(&mut scanner, limits);
    if !index.is_log(scanned.is_err()) {
        return Err(Refused::NotALog(index.what_else(scanned.as_ref().err())));
    }
    scanned.map_err(Refused::Broken)?;
    index.header.push(b'}');
    let head = read_header(&strict(std::mem::take(&mut index.header)), limits, redactor)?;
    let evaluation = head.header.evaluations.first().map(|evaluation| evaluation.id.clone()).unwrap_or_default();
    let arm = head.header.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let kinds = index.kinds(head.old_scorer.as_deref());
    let context = Context { limits, redactor, evaluation, arm, decider: Decider::of(head.ranking, &kinds), cluster: head.cluster };
    let places = index.places();
    let items = Items { scanner, places: places.into_iter(), context, old_scorer: head.old_scorer, ready: VecDeque::new() };
    Ok(Opened { header: head.header, extras: Extras::default(), items: Box::new(items) })
}

/// What the first pass finds.
#[derive(Default)]
struct Index {
    header: Vec<u8>,
    /// Names of the first members, to say what the file is if it is no log.
    keys: Vec<String>,
    has_eval: bool,
    has_kind: bool,
    /// Where samples begin, by id and epoch as they are spelled.
    samples: HashMap<(Vec<u8>, Vec<u8>), u64>,
    nameless: Vec<u64>,
    kinds: Kinds,
    /// Old logs have one score a sample, of the one scorer that the header names.
    lone_scores: Kinds,
}

impl Index {
    fn scan<R: std::io::Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits) -> Result<(), String> {
        let wrong = |stop: Stop| stop.sentence();
        let (mut key, mut first) = (Vec::new(), true);
        if !scanner.take(b'{').map_err(wrong)? {
            return Err(Stop::Wrong(scanner.offset()).sentence());
        }
        while scanner.key(first, &mut key).map_err(wrong)? {
            first = false;
            if self.keys.len() < 8 {
                self.keys.push(String::from_utf8_lossy(&key).into_owned());
            }
            let opens = scanner.peek().map_err(wrong)?;
            self.has_eval |= key == b"\"eval\"" && opens == Some(b'{');
            self.has_kind |= key == b"\"version\"" || key == b"\"status\"";
            if key == b"\"samples\"" && opens == Some(b'[') {
                self.samples(scanner, limits)?;
            } else if HEADER_KEYS.contains(&key.as_slice()) {
                self.header_part(scanner, &key, limits)?;
            } else {
                scanner.value(&mut Sink::skip()).map_err(wrong)?;
            }
        }
        Ok(())
    }

    /// An `eval` beside what only logs have, which a file that ends early may not have shown yet.
    fn is_log(&self, ends_early: bool) -> bool {
        self.has_eval && (self.has_kind || ends_early)
    }

    fn header_part<R: std::io::Read>(&mut self, scanner: &mut Scanner<R>, key: &[u8], limits: &Limits) -> Result<(), String> {
        if self.header.len() > 1 {
            self.header.push(b',');
        }
        self.header.extend_from_slice(key);
        self.header.push(b':');
        let room = limits.entry_bytes_max.saturating_sub(self.header.len() as u64);
        let mut sink = Sink::into(&mut self.header, room);
        scanner.value(&mut sink).map_err(|stop| stop.sentence())?;
        let whole = sink.whole();
        let limit = limits.entry_bytes_max;
        whole.then_some(()).ok_or_else(|| format!("the header of the log takes more than {limit} bytes, the most that it may"))
    }

    fn samples<R: std::io::Read>(&mut self, scanner: &mut Scanner<R>, limits: &Limits) -> Result<(), String> {
        let wrong = |stop: Stop| stop.sentence();
        let mut first = scanner.take(b'[').map_err(wrong)?;
        while scanner.more(b']', first).map_err(wrong)? {
            first = false;
            self.sample(scanner).map_err(wrong)?;
            if self.samples.len() + self.nameless.len() > limits.entries_max {
                return Err(format!("the log has more than {} samples, the most that a log may", limits.entries_max));
            }
        }
        Ok(())
    }

    fn sample<R: std::io::Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), Stop> {
        let opens = scanner.peek()?;
        let place = scanner.offset();
        let (mut id, mut epoch, mut scores, mut score) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        if opens != Some(b'{') {
            self.nameless.push(place);
            return scanner.value(&mut Sink::skip());
        }
        scanner.take(b'{')?;
        let (mut key, mut first) = (Vec::new(), true);
        while scanner.key(first, &mut key)? {
            first = false;
            scanner.peek()?;
            let mut sink = match key.as_slice() {
                b"\"id\"" => Sink::into(&mut id, 2 * ID_BYTES_MAX as u64),
                b"\"epoch\"" => Sink::into(&mut epoch, 2 * ID_BYTES_MAX as u64),
                b"\"scores\"" => Sink::into(&mut scores, SCORES_BYTES_MAX),
                b"\"score\"" => Sink::into(&mut score, SCORES_BYTES_MAX),
                _ => Sink::skip(),
            };
            scanner.value(&mut sink)?;
        }
        self.see(scores, score);
        if id.len() > ID_BYTES_MAX || epoch.len() > ID_BYTES_MAX {
            self.nameless.push(place);
        } else {
            self.samples.insert((id, epoch), place);
        }
        Ok(())
    }

    fn see(&mut self, scores: Vec<u8>, score: Vec<u8>) {
        if let Ok(scores) = serde_json::from_slice::<Fields<'_>>(&strict(scores)) {
            self.kinds.see(&scores);
        }
        if !score.is_empty() {
            let lone = strict([b"{\"score\":".as_slice(), &score, b"}"].concat());
            self.lone_scores.see(&serde_json::from_slice(&lone).unwrap_or_default());
        }
    }

    fn kinds(&mut self, old_scorer: Option<&str>) -> Kinds {
        let mut kinds = std::mem::take(&mut self.kinds);
        kinds.take_lone(&self.lone_scores, old_scorer.unwrap_or("score"));
        kinds
    }

    /// Where the samples that count begin, in the order of the file.
    fn places(self) -> Vec<u64> {
        let mut places: Vec<u64> = self.samples.into_values().chain(self.nameless).collect();
        places.sort_unstable();
        places
    }

    /// Why the file is skipped.
    fn what_else(&self, stop: Option<&String>) -> String {
        let has = |name: &str| self.keys.iter().any(|key| key.trim_matches('"') == name);
        let names_logs = |key: &String| key.ends_with(".eval\"") || key.ends_with(".json\"");
        if has("eval_set_id") && has("tasks") {
            "no eval log: an eval set's index".to_owned()
        } else if !self.keys.is_empty() && self.keys.iter().all(names_logs) {
            "no eval log: a list of logs".to_owned()
        } else if let Some(stop) = stop {
            format!("no eval log: {stop}")
        } else {
            "no eval log: JSON without \"eval\" and \"status\"".to_owned()
        }
    }
}

struct Items<'a> {
    scanner: Scanner<Box<dyn Input + 'a>>,
    places: std::vec::IntoIter<u64>,
    context: Context<'a>,
    old_scorer: Option<String>,
    ready: VecDeque<Item>,
}

impl Iterator for Items<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let place = self.places.next()?;
            if let Err(stop) = self.sample(place) {
                // The first pass went over all of it: the file changes under us.
                self.places = Vec::new().into_iter();
                return Some(Err(format!("{}; it changed while it was read", stop.sentence())));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Items<'_> {
    fn sample(&mut self, place: u64) -> Result<(), Stop> {
        self.scanner.jump(place)?;
        let mut bytes = Vec::new();
        let mut sink = Sink::into(&mut bytes, self.context.limits.entry_bytes_max);
        self.scanner.value(&mut sink)?;
        if sink.whole() {
            self.whole_sample(bytes, place);
            return Ok(());
        }
        let small = self.without_transcript(place)?;
        self.small_sample(small, place);
        Ok(())
    }

    fn whole_sample(&mut self, bytes: Vec<u8>, place: u64) {
        let (json, replaced) = text_of(strict(bytes));
        if replaced {
            self.complain(format!("the sample at byte {place}: bytes that are no UTF-8 were replaced"));
        }
        match Sample::read(&json, self.old_scorer.as_deref()) {
            Ok(sample) => self.ready.extend(whole(&sample, &self.context)),
            Err(error) => self.complain(format!("the sample at byte {place} cannot be read, so it is missing: {error}")),
        }
    }

    fn small_sample(&mut self, small: Option<Vec<u8>>, place: u64) {
        let limit = self.context.limits.entry_bytes_max;
        let (json, _) = text_of(strict(small.unwrap_or_default()));
        match Sample::read(&json, self.old_scorer.as_deref()) {
            Ok(sample) => {
                let attempt = sample.attempt(&self.context, &Attachments::default());
                let why = format!(
                    "{}: it takes more than {limit} bytes, the most that a sample may, and is imported without its transcript",
                    who(&attempt)
                );
                self.ready.push_back(Item::Attempt(Box::new(attempt)));
                self.complain(why);
            }
            Err(_) => {
                self.complain(format!("the sample at byte {place} takes more than {limit} bytes, the most that it may, and is missing"))
            }
        }
    }

    /// The sample without what a transcript is made of; none where the rest is too big as well.
    fn without_transcript(&mut self, place: u64) -> Result<Option<Vec<u8>>, Stop> {
        self.scanner.jump(place)?;
        let named = TRANSCRIPT_KEYS.split_last().filter(|_| self.context.cluster.is_some());
        let keys = named.map_or(&TRANSCRIPT_KEYS[..], |(_, rest)| rest);
        self.scanner.without(keys, self.context.limits.entry_bytes_max)
    }

    fn complain(&mut self, sentence: String) {
        self.ready.push_back(Item::Complaint(sentence));
    }
}
