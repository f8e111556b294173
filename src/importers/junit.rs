//! JUnit XML, as pytest, Jest, Mocha, Bazel, node:test, Surefire, promptfoo and most other runners write it.
//!
//! A suite is an evaluation (nested ones are joined from the outside in, `add/errors`; tests without a named suite have their root's name,
//! else `junit`), a test a case, a file a run of the arm `default` unless properties name an `arm` or a `model`. A failure fails, an error
//! is an infrastructure error, skipped is unscored, everything else passes. All elements of one test (its suite, class, name and file) are
//! one attempt with the worst outcome of them: a failure and an error of its teardown, or the tries of a rerun. Times without an offset
//! are taken as UTC. Properties of a suite count for the tests after them; a test's own win.
//!
//! Promises: two passes, the first of which holds a digest and places of each test, the second one test at a time; no entity is expanded;
//! numbers that attributes claim are not believed.
//! Does not: keep output of a suite of several tests (it is no one test's), or follow attachments.

mod attempt;
mod encoding;
mod header;
mod index;
mod names;
mod properties;
mod source;
mod text;
mod xml;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::VecDeque};

use self::{
    attempt::{Merged, Place},
    header::Shown,
    index::{Group, Index},
    names::Directory,
    source::Source,
    xml::Xml,
};
use super::{Input, Item, Limits, Opened, Refused, beside::Beside, unreadable};
use crate::{
    domain::{extras::Extras, log::ArmInfo},
    telemetry::redaction::Redactor,
};

/// Opens a file of tests.
pub(super) fn open<'a>(
    input: Box<dyn Input + 'a>,
    beside: &dyn Beside,
    limits: &'a Limits,
    redactor: &'a Redactor,
) -> Result<Opened<'a>, Refused> {
    let shown = Shown { redactor, bytes_max: limits.text_bytes_max };
    let utf8 = encoding::utf8(input, limits.entry_bytes_max)?;
    let mut source = Source::new(utf8.input, limits.entry_bytes_max);
    source.skip_mark().map_err(unreadable)?;
    let index = Index::read(&mut source, utf8.unknown, limits, shown)?;
    source.take_cut();
    let digest = utf8.digest.or_else(|| source.take_digest()).unwrap_or_default();
    let Index { groups, evaluations, arms, facts, directory, .. } = index;
    let (header, complaint) = facts.header(&digest, beside.own_modified(), evaluations.clone(), arms.clone());
    let ready = complaint.map(Item::Complaint).into_iter().collect();
    let items = Items { source, groups: groups.into_iter(), evaluations, arms, directory, limits, shown, ready };
    Ok(Opened { header, extras: Extras::default(), items: Box::new(items) })
}

struct Items<'a> {
    source: Source<'a>,
    groups: std::vec::IntoIter<Group>,
    evaluations: Vec<String>,
    arms: Vec<ArmInfo>,
    directory: Directory,
    limits: &'a Limits,
    shown: Shown<'a>,
    ready: VecDeque<Item>,
}

impl Iterator for Items<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let group = self.groups.next()?;
            if let Err(why) = self.attempt(&group) {
                // The first pass went over all of it: the file changes under us.
                self.groups = Vec::new().into_iter();
                return Some(Err(format!("{why}; it changed while it was read")));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl<'a> Items<'a> {
    fn attempt(&mut self, group: &Group) -> Result<(), String> {
        let mut merged = Merged::new(self.shown, self.limits.entry_bytes_max);
        for place in std::iter::once(&group.place).chain(&group.more) {
            merged.element(&mut self.xml_at(*place)?)?;
        }
        for place in &group.outputs {
            merged.output(&mut self.xml_at(*place)?)?;
        }
        let file = merged.file.as_deref().filter(|_| group.ambiguous).map(|file| self.directory.below(file));
        let case = names::case(file.as_deref(), &merged.class, &merged.name);
        let place = Place {
            evaluation: self.evaluations.get(group.evaluation).cloned().unwrap_or_default(),
            arm: self.arms.get(group.arm).map(|arm| arm.name.clone()).unwrap_or_default(),
            case: match self.shown.redactor.redact(&case) {
                Cow::Borrowed(_) => case,
                Cow::Owned(safe) => safe,
            },
            epoch: group.epoch,
        };
        let (attempt, complaints) = merged.finish(place, group.pytest, self.source.take_cut());
        let who = |why: String| format!("test case {}: {why}", attempt.case.escape_debug());
        let complaints: Vec<String> = complaints.into_iter().map(who).collect();
        self.ready.push_back(Item::Attempt(Box::new(attempt)));
        self.ready.extend(complaints.into_iter().map(Item::Complaint));
        Ok(())
    }

    fn xml_at(&mut self, place: u64) -> Result<Xml<'_, 'a>, String> {
        self.source.jump(place).map_err(|error| format!("the file cannot be read: {}", error.kind()))?;
        Ok(Xml::new(&mut self.source))
    }
}
