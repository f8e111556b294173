//! The second pass over a run record: one attempt at a time.
//!
//! Promises: an attempt that does not fit the schema ends the import with its place, and nothing of the record is kept.
//! Does not: check that pairs name attempts (the store does, when all are there).

use std::collections::VecDeque;

use super::{beside, index::Place, read};
use crate::{
    domain::{
        attempt::{Attempt, shorten},
        key::group_text,
        run_record::AttemptRecord,
    },
    importers::{
        Input, Item, Limits,
        beside::Beside,
        scan::{Scanner, Sink},
    },
    telemetry::redaction::Redactor,
    transcript::Packed,
};

/// Checks, answers or skill reads of one attempt: more would fill the store with one line of a file.
const LIST_MAX: usize = 1000;

/// The attempts of a record.
pub(super) struct Attempts<'a> {
    pub(super) scanner: Scanner<Box<dyn Input + 'a>>,
    pub(super) places: std::vec::IntoIter<Place>,
    /// The ids of the evaluations, in the order of the file.
    pub(super) evaluations: Vec<String>,
    pub(super) beside: &'a dyn Beside,
    pub(super) limits: &'a Limits,
    pub(super) redactor: &'a Redactor,
    pub(super) ready: VecDeque<Item>,
}

impl Iterator for Attempts<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.ready.pop_front() {
            return Some(Ok(item));
        }
        let place = self.places.next()?;
        let read = self.attempt(&place);
        if read.is_err() {
            self.places = Vec::new().into_iter();
        }
        Some(read.map(|attempt| Item::Attempt(Box::new(attempt))))
    }
}

impl Attempts<'_> {
    fn attempt(&mut self, place: &Place) -> Result<Attempt, String> {
        let evaluation = self.evaluations.get(place.evaluation).cloned().unwrap_or_default();
        let said = |why: String| format!("the attempt at byte {} of evaluation {} {why}", place.offset, evaluation.escape_debug());
        self.scanner.jump(place.offset).map_err(|stop| stop.sentence())?;
        let mut bytes = Vec::new();
        let mut sink = Sink::into(&mut bytes, self.limits.entry_bytes_max);
        self.scanner.value(&mut sink).map_err(|stop| stop.sentence())?;
        if !sink.whole() {
            return Err(said(format!("takes more than {} bytes, the most that it may", self.limits.entry_bytes_max)));
        }
        let record: AttemptRecord = read(bytes, self.redactor).map_err(&said)?;
        let lists = [record.checks.len(), record.answers.len(), record.skill_reads.len()];
        if lists.into_iter().any(|length| length > LIST_MAX) {
            return Err(said(format!("has a list of more than {LIST_MAX} items, the most that it may")));
        }
        let (transcript, complaint) = self.transcript(&record);
        self.ready.extend(complaint.map(|why| Item::Complaint(said(why))));
        Ok(self.built(evaluation, record, transcript))
    }

    /// The attempt's transcript, and what could not be read of it: the rest of the attempt stands.
    fn transcript(&self, record: &AttemptRecord) -> (Packed, Option<String>) {
        let Some(file) = &record.transcript else { return (Packed::default(), None) };
        let read = beside::transcript(self.beside, file, self.limits, self.redactor);
        read.unwrap_or_else(|why| (Packed::default(), Some(why)))
    }

    fn built(&self, evaluation: String, record: AttemptRecord, transcript: Packed) -> Attempt {
        let short = |text: Option<String>| text.map(|text| shorten(&text, self.limits.text_bytes_max));
        let mut checks = record.checks;
        for check in &mut checks {
            check.reason = short(check.reason.take());
            check.answer = short(check.answer.take());
            check.label = short(check.label.take());
        }
        let mut answers = record.answers;
        answers.iter_mut().for_each(|answer| answer.answer = short(answer.answer.take()));
        Attempt {
            evaluation,
            arm: record.arm,
            case: record.case,
            // As it stands: an exported group is written as its id.
            group: record.group.and_then(|group| group_text(&group)),
            epoch: record.n.max(1),
            uuid: record.uuid,
            outcome: record.outcome,
            score: record.score,
            checks,
            usage: record.usage,
            cost_usd: record.cost_usd,
            duration_ms: record.duration_ms,
            working_ms: record.working_ms,
            started_at: record.started_at,
            error: short(record.error),
            limit: record.limit,
            retries: record.retries,
            input: short(record.input),
            target: short(record.target),
            output: short(record.output),
            transcript,
            label: Some(record.attempt).filter(|label| !label.is_empty()),
            answers,
            skill_reads: record.skill_reads,
            context: record.context,
        }
    }
}
