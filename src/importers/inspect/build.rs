//! A sample of one text, as an item: the attempt with its transcript, and what could not be kept of it.
//!
//! Promises: both containers give the same attempt for the same sample.
//! Does not: read containers.

use super::{
    attachments::Attachments,
    lines::Lines,
    sample::{Context, Sample},
    score::CHECKS_MAX,
};
use crate::{
    domain::attempt::Attempt,
    importers::{Item, Limits, left_out},
};

/// Attachments may fill a sample up to this many times the bytes that one entry may have.
const GROWTH_MAX: u64 = 4;

/// How many bytes attachments may put into one sample.
pub(super) fn room(limits: &Limits) -> u64 {
    limits.entry_bytes_max.saturating_mul(GROWTH_MAX)
}

/// The attempt of a sample that stands in one text, and complaints about it.
pub(super) fn whole(sample: &Sample<'_>, context: &Context<'_>) -> Vec<Item> {
    let attachments = Attachments::by_hash(&sample.attachments, room(context.limits));
    let (messages, calls) = sample.pools();
    let mut lines = Lines::new(context.redactor, &attachments, messages, calls);
    sample.messages.0.iter().for_each(|raw| lines.message(raw));
    sample.events.0.iter().for_each(|raw| lines.event(raw));
    finish(sample.attempt(context, &attachments), lines, &attachments)
}

/// Closes the transcript.
pub(super) fn finish(mut attempt: Attempt, lines: Lines<'_, '_>, attachments: &Attachments<'_>) -> Vec<Item> {
    let (transcript, too_deep) = lines.finish();
    attempt.transcript = transcript;
    let who = who(&attempt);
    let full = attempt.checks.len() >= CHECKS_MAX;
    let mut items = vec![Item::Attempt(Box::new(attempt))];
    items.extend(left_out(&who, too_deep, full.then_some(("scores", CHECKS_MAX))).map(Item::Complaint));
    if attachments.refused() {
        items.push(Item::Complaint(format!("{who}: attachments that its events name again and again were left out of its transcript")));
    }
    items
}

/// A sample, in a sentence.
pub(super) fn who(attempt: &Attempt) -> String {
    format!("sample {} (epoch {})", attempt.case.escape_debug(), attempt.epoch)
}

/// JSON bytes as text, and whether some of it was no UTF-8 and had to be replaced.
pub(in crate::importers) fn text_of(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    }
}
