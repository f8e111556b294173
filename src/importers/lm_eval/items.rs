//! The items of a log: task by task, doc by doc, each put together of the lines that its filters left in the samples.
//!
//! Promises: a file of samples that cannot be opened costs its task alone; of a file that is read in places far apart, each filter's place
//! has a window of its own, so that reading is one pass over the file.
//! Does not: keep what was given.

use std::{
    collections::VecDeque,
    io::{Read as _, Seek as _, SeekFrom},
};

pub(super) use super::sample::Context;
use super::{
    header::Task,
    places::{Place, Places},
    row::{Row, json_of},
    sample::{Doc, Rules},
};
use crate::importers::{Input, Item, beside::Beside, window::Window};

/// Windows on one file at once; filters beyond share.
const WINDOWS_MAX: usize = 8;

/// The items of a log.
pub(super) struct Items<'a> {
    beside: &'a dyn Beside,
    context: Context<'a>,
    tasks: std::vec::IntoIter<Task>,
    open: Option<Samples<'a>>,
    ready: VecDeque<Item>,
}

/// A task's samples, whose places are known.
struct Samples<'a> {
    rules: Rules,
    filters: Vec<String>,
    places: std::iter::Peekable<std::vec::IntoIter<Place>>,
    windows: Vec<Window<Box<dyn Input + 'a>>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(beside: &'a dyn Beside, context: Context<'a>, tasks: Vec<Task>, complaints: Vec<String>) -> Self {
        let ready = complaints.into_iter().map(Item::Complaint).collect();
        let mut items = Self { beside, context, tasks: tasks.into_iter(), open: None, ready };
        // At once, so that whoever opens a file can do something else meanwhile: it is the first pass over most of the bytes.
        if let Some(task) = items.tasks.next() {
            items.begin(task);
        }
        items
    }

    fn begin(&mut self, task: Task) {
        let who = format!("the samples of {}", task.id.escape_debug());
        match self.samples(task) {
            Ok((samples, complaints)) => {
                self.ready.extend(complaints.into_iter().map(|complaint| Item::Complaint(format!("{who}: {complaint}"))));
                self.open = Some(samples);
            }
            Err(error) => self.ready.push_back(Item::Complaint(format!("{who} cannot be read, so they are missing: {}", error.kind()))),
        }
    }

    fn samples(&self, task: Task) -> std::io::Result<(Samples<'a>, Vec<String>)> {
        let judge = task.judge;
        let found = Places::find(self.beside.open(&task.file)?, &judge.filters, &|name| judge.knows(name), self.context.limits)?;
        let windows = found.filters.len().clamp(1, WINDOWS_MAX);
        let windows = (0..windows).map(|_| self.beside.open(&task.file).map(Window::new)).collect::<std::io::Result<_>>()?;
        let decider = judge.decider(&found.metrics, &found.filters);
        let rules = Rules { evaluation: task.id, judge, decider };
        Ok((Samples { rules, filters: found.filters, places: found.places.into_iter().peekable(), windows }, found.complaints))
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if let Some(samples) = &mut self.open {
                match samples.next(&self.context, &mut self.ready) {
                    Ok(true) => {}
                    Ok(false) => self.open = None,
                    Err(error) => {
                        // The first pass went over all of it: the file changes under us.
                        (self.open, self.tasks) = (None, Vec::new().into_iter());
                        return Some(Err(error));
                    }
                }
            } else {
                let task = self.tasks.next()?;
                self.begin(task);
            }
        }
    }
}

impl Samples<'_> {
    /// Puts the next doc together; false where there is none.
    fn next(&mut self, context: &Context<'_>, ready: &mut VecDeque<Item>) -> Result<bool, String> {
        let Some(first) = self.places.peek().copied() else { return Ok(false) };
        let mut doc: Option<Doc<'_>> = None;
        while let Some(place) = self.places.next_if(|place| (place.turn, place.doc) == (first.turn, first.doc)) {
            let (json, replaced) = json_of(self.bytes(place).map_err(|why| format!("the samples cannot be read again: {why}"))?);
            let row = match Row::read(&json) {
                Ok(row) => row,
                Err(why) => {
                    let (offset, _) = place.range();
                    let who = self.rules.evaluation.escape_debug();
                    ready.push_back(Item::Complaint(format!(
                        "the sample of {who} at byte {offset} cannot be read, so it is missing: {why}"
                    )));
                    continue;
                }
            };
            let doc = doc.get_or_insert_with(|| Doc::begin(&row, place.turn, &self.rules, context));
            let filter = self.filters.get(usize::from(place.filter)).map_or("none", String::as_str);
            doc.judge(&row, filter, &self.rules, context);
            if replaced {
                let (offset, _) = place.range();
                let who = self.rules.evaluation.escape_debug();
                ready.push_back(Item::Complaint(format!("the sample of {who} at byte {offset}: bytes that are no UTF-8 were replaced")));
            }
        }
        if let Some(doc) = doc {
            let (attempt, complaints) = doc.finish();
            ready.push_front(Item::Attempt(Box::new(attempt)));
            ready.extend(complaints.into_iter().map(Item::Complaint));
        }
        Ok(true)
    }

    fn bytes(&mut self, place: Place) -> Result<Vec<u8>, std::io::ErrorKind> {
        let (offset, length) = place.range();
        let windows = self.windows.len().max(1);
        let window = self.windows.get_mut(usize::from(place.filter) % windows).ok_or(std::io::ErrorKind::NotFound)?;
        window.seek(SeekFrom::Start(offset)).map_err(|error| error.kind())?;
        let mut bytes = vec![0; length];
        window.read_exact(&mut bytes).map_err(|error| error.kind())?;
        Ok(bytes)
    }
}
