//! The second pass: the elements of one test as one attempt.
//!
//! Promises: of several elements the worst outcome holds (error, failure, skipped, pass); every text stands in the transcript, as a line
//! of its own or a line for each of its lines; what is too long is cut, and that is said.
//! Does not: find the elements (`index` does).

use std::borrow::Cow;

use serde::Serialize;

use super::{
    header::Shown,
    properties::{Known, amount, known, tokens},
    text::{millis, time},
    xml::{Node, Tag, Text, Xml},
};
use crate::{
    domain::{
        attempt::{Attempt, Check, Usage},
        outcome::Outcome,
        time::Timestamp,
    },
    transcript::Packer,
};

const CHECKS_MAX: usize = 100;
const PROPERTIES_MAX: usize = 1000;

/// How a test ended, the better before the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Pass,
    Skipped,
    Failed,
    Broken,
}

/// What an element within a test case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Verdict(Verdict),
    /// A try before this one, as Surefire writes it.
    Rerun,
    Out,
    Err,
    Properties,
    Other,
}

/// An element within a test case, being read.
struct Child {
    kind: Kind,
    tag: String,
    message: String,
    label: String,
    text: String,
}

/// A line of a transcript.
#[derive(Serialize)]
struct Line<'a> {
    stream: &'a str,
    #[serde(rename = "type", skip_serializing_if = "str::is_empty")]
    label: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    text: &'a str,
}

/// One attempt, being put together.
pub(super) struct Merged<'a> {
    shown: Shown<'a>,
    packer: Packer<'a>,
    /// Bytes of text that may still be kept.
    room: usize,
    left_out: u64,
    worst: Verdict,
    elements: u32,
    passes: u32,
    reruns: u32,
    checks: Vec<(Verdict, Check)>,
    checks_left_out: u32,
    duration_ms: Option<u64>,
    started_at: Option<Timestamp>,
    usage: Usage,
    cost_usd: Option<f64>,
    properties: Vec<(String, String)>,
    child: Option<Child>,
    property: Option<(String, String)>,
    /// The first element's.
    pub(super) class: String,
    pub(super) name: String,
    pub(super) file: Option<String>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(shown: Shown<'a>, room: u64) -> Self {
        Self {
            shown,
            packer: Packer::new(shown.redactor),
            room: usize::try_from(room).unwrap_or(usize::MAX),
            left_out: 0,
            worst: Verdict::Pass,
            elements: 0,
            passes: 0,
            reruns: 0,
            checks: Vec::new(),
            checks_left_out: 0,
            duration_ms: None,
            started_at: None,
            usage: Usage::default(),
            cost_usd: None,
            properties: Vec::new(),
            child: None,
            property: None,
            class: String::new(),
            name: String::new(),
            file: None,
        }
    }

    /// Reads a test case.
    pub(super) fn element(&mut self, xml: &mut Xml<'_, '_>) -> Result<(), String> {
        let mut verdict = match xml.next()? {
            Node::Open(tag) if tag.name() == "testcase" => self.attributes(&tag)?,
            _ => return Err("a test case is no longer where it was".to_owned()),
        };
        while xml.depth() > 0 {
            if let Some(found) = self.step(xml, 2)? {
                verdict = verdict.max(found);
            }
        }
        self.elements += 1;
        self.passes += u32::from(verdict == Verdict::Pass);
        self.worst = self.worst.max(verdict);
        Ok(())
    }

    /// Reads output that stands outside the test case.
    pub(super) fn output(&mut self, xml: &mut Xml<'_, '_>) -> Result<(), String> {
        loop {
            self.step(xml, 1)?;
            if xml.depth() == 0 {
                return Ok(());
            }
        }
    }

    /// Takes one node; `level` is how deep children stand. What a child says of the outcome, when it ends.
    fn step(&mut self, xml: &mut Xml<'_, '_>, level: usize) -> Result<Option<Verdict>, String> {
        let before = xml.depth();
        match xml.next()? {
            Node::Open(tag) if before + 1 == level => self.child = Some(child(&tag)?),
            Node::Open(tag) if before == level && self.is_in(Kind::Properties) && tag.name() == "property" => {
                self.property = Some(property(&tag)?);
            }
            Node::Open(_) | Node::Other => {}
            Node::Text(text) => self.text(text),
            Node::Close if before == level => return Ok(self.close_child()),
            Node::Close if before == level + 1 => {
                if let Some((name, value)) = self.property.take() {
                    self.close_property(name, &value);
                }
            }
            Node::Close => {}
            Node::End => return Err("a test case is no longer whole".to_owned()),
        }
        Ok(None)
    }

    fn is_in(&self, kind: Kind) -> bool {
        self.child.as_ref().is_some_and(|child| child.kind == kind)
    }

    /// What the test case's own tag says: some tools mark a test that was not run there, and nowhere else.
    fn attributes(&mut self, tag: &Tag<'_>) -> Result<Verdict, String> {
        let first = self.elements == 0;
        let (mut seconds, mut verdict) = (None, Verdict::Pass);
        tag.attributes(|key, value| match key {
            "classname" if first && self.class.is_empty() => self.class = value.into_owned(),
            "name" if first && self.name.is_empty() => self.name = value.into_owned(),
            "file" if first && self.file.is_none() => self.file = Some(value.into_owned()),
            "time" => seconds = millis(&value),
            "timestamp" if self.started_at.is_none() => self.started_at = time(&value),
            "status" | "result" if matches!(&*value, "notrun" | "disabled" | "suppressed" | "skipped") => verdict = Verdict::Skipped,
            _ => {}
        })?;
        self.duration_ms = seconds.map(|took| took.saturating_add(self.duration_ms.unwrap_or(0))).or(self.duration_ms);
        Ok(verdict)
    }

    fn text(&mut self, text: Text<'_>) {
        let Some(child) = &mut self.child else { return };
        let into = match (&mut self.property, child.kind) {
            (Some((_, value)), _) => value,
            (None, Kind::Properties | Kind::Other) => return,
            (None, _) => &mut child.text,
        };
        let before = into.len();
        self.left_out += text.add_to(into, self.room) as u64;
        self.room = self.room.saturating_sub(into.len() - before);
    }

    fn close_child(&mut self) -> Option<Verdict> {
        let child = self.child.take()?;
        match child.kind {
            Kind::Verdict(verdict) => {
                self.check(verdict, &child);
                self.line(&child);
                return Some(verdict);
            }
            Kind::Rerun => {
                self.reruns += 1;
                self.line(&child);
            }
            Kind::Out => self.lines("stdout", &child.text),
            Kind::Err => self.lines("stderr", &child.text),
            Kind::Properties => self.close_properties(),
            Kind::Other => {}
        }
        None
    }

    fn check(&mut self, verdict: Verdict, child: &Child) {
        if self.checks.len() >= CHECKS_MAX {
            self.checks_left_out += 1;
            return;
        }
        let reason = reason(&child.message, child.text.trim());
        let (kind, passed) = match verdict {
            Verdict::Failed => ("assertion", Some(false)),
            Verdict::Skipped => ("skipped", None),
            Verdict::Pass | Verdict::Broken => ("error", None),
        };
        let check = Check {
            name: child.tag.clone(),
            kind: kind.to_owned(),
            passed,
            label: (!child.label.is_empty()).then(|| self.shown.text(&child.label)),
            reason: (!reason.is_empty()).then(|| self.shown.text(&reason)),
            ..Check::default()
        };
        self.checks.push((verdict, check));
    }

    fn line(&mut self, child: &Child) {
        let text = child.text.trim_matches('\n').trim_end();
        let line = Line { stream: &child.tag, label: &child.label, message: &child.message, text };
        // What is made of texts always serialises.
        self.packer.line(&serde_json::to_string(&line).unwrap_or_default());
    }

    fn lines(&mut self, stream: &str, text: &str) {
        for text in text.trim_matches('\n').trim_end().lines() {
            let line = Line { stream, label: "", message: "", text };
            self.packer.line(&serde_json::to_string(&line).unwrap_or_default());
        }
    }

    fn close_property(&mut self, name: String, value: &str) {
        let value = value.trim();
        match known(&name, value) {
            Some(Known::Cost) => self.cost_usd = amount(value),
            Some(said) => tokens(&mut self.usage, said, value),
            None => {}
        }
        if self.properties.len() < PROPERTIES_MAX {
            let value = self.shown.safe(&name, value);
            self.properties.push((name, value));
        } else {
            self.left_out += value.len() as u64;
        }
    }

    fn close_properties(&mut self) {
        for (name, text) in std::mem::take(&mut self.properties) {
            let line = Line { stream: "property", label: "", message: &name, text: &text };
            self.packer.line(&serde_json::to_string(&line).unwrap_or_default());
        }
    }

    /// The attempt, and what to complain of, without saying of which attempt. `cut` bytes of its texts were passed over while they were read.
    pub(super) fn finish(self, place: Place, pytest: bool, cut: u64) -> (Attempt, Vec<String>) {
        let reruns = self.retries(pytest);
        let mut checks = self.checks;
        checks.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
        let error = checks.first().filter(|(verdict, _)| *verdict == Verdict::Broken).map(|(_, check)| check);
        let error = error
            .map(|check| check.reason.clone().or_else(|| check.label.clone()).unwrap_or_else(|| "an error without a message".to_owned()));
        if checks.is_empty() && self.worst == Verdict::Skipped {
            checks.push((Verdict::Skipped, Check { name: "skipped".to_owned(), kind: "skipped".to_owned(), ..Check::default() }));
        }
        let mut complaints = Vec::new();
        if self.left_out + cut > 0 {
            complaints.push(format!("{} bytes of its texts were left out, for it has more than it may", self.left_out + cut));
        }
        if self.checks_left_out > 0 {
            complaints.push(format!("of its failures {} were left out; no more than {CHECKS_MAX} are kept", self.checks_left_out));
        }
        let attempt = Attempt {
            outcome: match self.worst {
                Verdict::Pass => Outcome::Pass,
                Verdict::Skipped => Outcome::Unscored,
                Verdict::Failed => Outcome::Fail,
                Verdict::Broken => Outcome::InfraError,
            },
            checks: checks.into_iter().map(|(_, check)| check).collect(),
            usage: self.usage,
            cost_usd: self.cost_usd,
            duration_ms: self.duration_ms,
            started_at: self.started_at,
            error,
            retries: reruns,
            transcript: self.packer.finish(),
            ..Attempt::unscored(place.evaluation, place.arm, place.case, place.epoch.max(1))
        };
        (attempt, complaints)
    }

    /// pytest-rerunfailures (16.6.1 and later) leaves an element without a result for every rerun. Elsewhere two elements of one name are
    /// two tests that somebody called the same, and say nothing of reruns.
    fn retries(&self, pytest: bool) -> u32 {
        let before = if pytest { self.passes.saturating_sub(u32::from(self.worst == Verdict::Pass)) } else { 0 };
        self.reruns.saturating_add(before)
    }
}

/// Where an attempt belongs.
pub(super) struct Place {
    pub(super) evaluation: String,
    pub(super) arm: String,
    pub(super) case: String,
    pub(super) epoch: u32,
}

fn child(tag: &Tag<'_>) -> Result<Child, String> {
    let kind = match tag.name() {
        "failure" => Kind::Verdict(Verdict::Failed),
        "error" => Kind::Verdict(Verdict::Broken),
        "skipped" => Kind::Verdict(Verdict::Skipped),
        "rerun" | "rerunFailure" | "rerunError" | "flakyFailure" | "flakyError" => Kind::Rerun,
        "system-out" => Kind::Out,
        "system-err" => Kind::Err,
        "properties" => Kind::Properties,
        _ => Kind::Other,
    };
    let (mut message, mut label) = (String::new(), String::new());
    if matches!(kind, Kind::Verdict(_) | Kind::Rerun) {
        tag.attributes(|key, value| match key {
            "message" => message = value.into_owned(),
            "type" => label = value.into_owned(),
            _ => {}
        })?;
    }
    Ok(Child { kind, tag: tag.name().to_owned(), message, label, text: String::new() })
}

fn property(tag: &Tag<'_>) -> Result<(String, String), String> {
    let (mut name, mut set) = (String::new(), String::new());
    tag.attributes(|key, value| match key {
        "name" => name = value.into_owned(),
        "value" => set = value.into_owned(),
        _ => {}
    })?;
    Ok((name, set))
}

/// The message, then the text, unless that says the message itself at its beginning.
fn reason<'t>(message: &'t str, text: &'t str) -> Cow<'t, str> {
    let message = message.trim();
    if message.is_empty() || text.starts_with(message) {
        Cow::Borrowed(text)
    } else if text.is_empty() {
        Cow::Borrowed(message)
    } else {
        Cow::Owned(format!("{message}\n{text}"))
    }
}
