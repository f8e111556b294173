//! The first pass over a file: its suites, what they say of the whole, and where the elements of each attempt stand.
//!
//! Promises: elements are counted and never what attributes claim; of every test case no more than a digest and places is held.
//! Does not: read outcomes or texts (the second pass does).

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use super::{
    header::{Facts, Shown},
    names::{self, Directory, NAME_BYTES_MAX},
    properties::{Known, count, known},
    source::Source,
    xml::{Node, Tag, Text, Xml},
};
use crate::{
    domain::log::ArmInfo,
    importers::{Limits, Refused},
};

/// What an evaluation is called in a file without any name.
const NAMELESS: &str = "junit";
/// The arm of tests that name neither an arm nor a model. Runs of one suite share it, and so can be compared.
const DEFAULT_ARM: &str = "default";
const ARM_BYTES_MAX: usize = 80;
/// Of a property's value that stands as text; what is shown of it is far less.
const PROPERTY_BYTES_MAX: usize = 64 * 1024;
/// Places of output that one suite may have.
const OUTPUTS_MAX: usize = 16;

/// The elements that make one attempt.
pub(super) struct Group {
    pub(super) evaluation: usize,
    pub(super) arm: usize,
    pub(super) epoch: u32,
    /// Whether another file has a test of this class and name.
    pub(super) ambiguous: bool,
    /// Whether pytest wrote it, which has an element for every rerun.
    pub(super) pytest: bool,
    /// Where its first element begins, and where others do.
    pub(super) place: u64,
    pub(super) more: Vec<u64>,
    /// Where output of its suite begins that is all its own.
    pub(super) outputs: Vec<u64>,
}

type Key = [u8; 16];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Suite,
    Case,
    Properties,
    Property,
    Output,
    Other,
}

/// A suite that is open.
#[derive(Clone, Default)]
struct Suite {
    /// Tells it from suites of other names, whatever their names come to when they are shown.
    key: Key,
    shown: String,
    evaluation: Option<usize>,
    arm: Option<String>,
    model: Option<String>,
    epoch: Option<u32>,
    pytest: bool,
    cases: u32,
    suites: u32,
    last: usize,
    outputs: Vec<u64>,
    output_bytes: u64,
}

/// A test case that is open.
#[derive(Default)]
struct Case {
    place: u64,
    class: String,
    name: String,
    file: Option<String>,
    arm: Option<String>,
    model: Option<String>,
    epoch: Option<u32>,
}

/// What the first pass finds.
pub(super) struct Index<'a> {
    pub(super) groups: Vec<Group>,
    pub(super) evaluations: Vec<String>,
    pub(super) arms: Vec<ArmInfo>,
    pub(super) facts: Facts,
    pub(super) directory: Directory,
    limits: &'a Limits,
    shown: Shown<'a>,
    by_key: HashMap<Key, usize>,
    /// The first group of each class and name that has a file, whatever the file.
    by_test: HashMap<Key, usize>,
    by_evaluation: HashMap<String, usize>,
    by_arm: HashMap<String, usize>,
    elements: usize,
    /// What is open, and the suites and the test case among it.
    kinds: Vec<Kind>,
    suites: Vec<Suite>,
    case: Option<Case>,
    /// The one before, for the memory of its names.
    spare: Case,
    property: Option<(String, String)>,
    output: (u64, u64),
    is_junit: bool,
    unknown: Option<String>,
}

impl<'a> Index<'a> {
    /// Reads all of `source`. `unknown` says why a file of tests could not be read.
    pub(super) fn read(source: &mut Source<'_>, unknown: Option<String>, limits: &'a Limits, shown: Shown<'a>) -> Result<Self, Refused> {
        let mut index = Self {
            groups: Vec::new(),
            evaluations: Vec::new(),
            arms: Vec::new(),
            facts: Facts::default(),
            directory: Directory::default(),
            limits,
            shown,
            by_key: HashMap::new(),
            by_test: HashMap::new(),
            by_evaluation: HashMap::new(),
            by_arm: HashMap::new(),
            elements: 0,
            kinds: Vec::new(),
            suites: Vec::new(),
            case: None,
            spare: Case::default(),
            property: None,
            output: (0, 0),
            is_junit: false,
            unknown,
        };
        let mut xml = Xml::new(source);
        loop {
            match xml.next().map_err(|why| index.refused(why))? {
                Node::Open(tag) => index.open(&tag)?,
                Node::Text(text) => index.text(text),
                Node::Close => index.close()?,
                Node::Other => {}
                Node::End if index.is_junit => return Ok(index),
                Node::End => return Err(Refused::NotALog("no tests: XML without an element".to_owned())),
            }
        }
    }

    /// Until the root says that it holds tests, nothing is wrong with a file.
    fn refused(&self, why: String) -> Refused {
        if self.is_junit { Refused::Broken(why) } else { Refused::NotALog(format!("no tests: {why}")) }
    }

    fn open(&mut self, tag: &Tag<'_>) -> Result<(), Refused> {
        let kind = match (self.kinds.last(), tag.name()) {
            (None, _) => self.root(tag)?,
            (Some(Kind::Suite), "testsuite" | "testsuites") => self.suite(tag)?,
            (Some(Kind::Suite), "testcase") => self.open_case(tag)?,
            (Some(Kind::Suite | Kind::Case), "properties") => Kind::Properties,
            (Some(Kind::Suite), "system-out" | "system-err") => {
                self.output = (tag.place, 0);
                Kind::Output
            }
            (Some(Kind::Properties), "property") => self.open_property(tag)?,
            // Looked at, so that the second pass meets nothing new.
            _ => tag.attributes(|_, _| {}).map(|()| Kind::Other).map_err(Refused::Broken)?,
        };
        self.kinds.push(kind);
        Ok(())
    }

    fn root(&mut self, tag: &Tag<'_>) -> Result<Kind, Refused> {
        let root = tag.name();
        if root != "testsuites" && root != "testsuite" {
            return Err(Refused::NotALog("no tests: XML whose root is neither testsuites nor testsuite".to_owned()));
        }
        if tag.after_dtd {
            return Err(Refused::Broken("the XML has a DTD; entities are not read, and a file of tests needs none".to_owned()));
        }
        if let Some(unknown) = self.unknown.take() {
            return Err(Refused::Broken(format!("the XML cannot be read: {unknown}")));
        }
        self.is_junit = true;
        if root == "testsuite" {
            return self.suite(tag);
        }
        let name = self.head(tag)?;
        let pytest = name == "pytest tests";
        self.facts.root = (!name.trim().is_empty()).then(|| self.shown.name(name.trim(), NAME_BYTES_MAX));
        self.suites.push(Suite { pytest, ..Suite::default() });
        Ok(Kind::Suite)
    }

    /// The name of a suite or of all; when it ran is kept.
    fn head(&mut self, tag: &Tag<'_>) -> Result<String, Refused> {
        let (mut name, mut timestamp, mut seconds) = (String::new(), String::new(), String::new());
        tag.attributes(|key, value| match key {
            "name" => name = value.into_owned(),
            "timestamp" => timestamp = value.into_owned(),
            "time" => seconds = value.into_owned(),
            _ => {}
        })
        .map_err(Refused::Broken)?;
        self.facts.ran(&timestamp, &seconds);
        Ok(name)
    }

    fn suite(&mut self, tag: &Tag<'_>) -> Result<Kind, Refused> {
        let name = self.head(tag)?;
        if let Some(outer) = self.suites.last_mut() {
            outer.suites += 1;
        }
        let outer = self.suites.last().cloned().unwrap_or_default();
        let name = name.trim();
        self.suites.push(Suite {
            key: if name.is_empty() { outer.key } else { key(&[&outer.key, name.as_bytes()]) },
            shown: names::suite(&outer.shown, &self.shown.redactor.redact(name)),
            arm: outer.arm,
            model: outer.model,
            epoch: outer.epoch,
            pytest: outer.pytest || name == "pytest",
            ..Suite::default()
        });
        Ok(Kind::Suite)
    }

    fn open_case(&mut self, tag: &Tag<'_>) -> Result<Kind, Refused> {
        self.elements += 1;
        if self.elements > self.limits.entries_max {
            return Err(Refused::Broken(format!("the file has more than {} test cases, the most that it may", self.limits.entries_max)));
        }
        let Case { mut class, mut name, .. } = std::mem::take(&mut self.spare);
        class.clear();
        name.clear();
        let mut case = Case { place: tag.place, class, name, ..Case::default() };
        tag.attributes(|key, value| match key {
            "classname" if case.class.is_empty() => case.class.push_str(&value),
            "name" if case.name.is_empty() => case.name.push_str(&value),
            "file" if case.file.is_none() => case.file = Some(value.into_owned()),
            _ => {}
        })
        .map_err(Refused::Broken)?;
        self.case = Some(case);
        Ok(Kind::Case)
    }

    fn open_property(&mut self, tag: &Tag<'_>) -> Result<Kind, Refused> {
        let (mut name, mut set) = (String::new(), String::new());
        tag.attributes(|key, value| match key {
            "name" => name = value.into_owned(),
            "value" => set = value.into_owned(),
            _ => {}
        })
        .map_err(Refused::Broken)?;
        self.property = Some((name, set));
        Ok(Kind::Property)
    }

    fn text(&mut self, text: Text<'_>) {
        match self.kinds.last() {
            Some(Kind::Output) if !text.is_blank() => self.output.1 += text.len() as u64,
            // A value can stand as text as well.
            Some(Kind::Property) => {
                if let Some((_, value)) = &mut self.property {
                    text.add_to(value, PROPERTY_BYTES_MAX.saturating_sub(value.len()));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self) -> Result<(), Refused> {
        match self.kinds.pop() {
            Some(Kind::Suite) => self.close_suite(),
            Some(Kind::Case) => self.close_case(),
            Some(Kind::Property) => self.close_property(),
            Some(Kind::Output) => {
                let (place, bytes) = std::mem::take(&mut self.output);
                if let Some(suite) = self.suites.last_mut().filter(|suite| bytes > 0 && suite.outputs.len() < OUTPUTS_MAX) {
                    suite.outputs.push(place);
                    suite.output_bytes += bytes;
                }
                Ok(())
            }
            Some(Kind::Properties | Kind::Other) | None => Ok(()),
        }
    }

    fn close_property(&mut self) -> Result<(), Refused> {
        let Some((name, value)) = self.property.take() else { return Ok(()) };
        let value = value.trim();
        let said = known(&name, value);
        let git = self.facts.git(said, value, self.shown);
        let (arm, model, epoch) = match (&mut self.case, self.suites.last_mut()) {
            (Some(case), _) => (&mut case.arm, &mut case.model, &mut case.epoch),
            (None, Some(suite)) => (&mut suite.arm, &mut suite.model, &mut suite.epoch),
            (None, None) => return Ok(()),
        };
        match said {
            Some(Known::Arm) => *arm = Some(self.shown.name(value, ARM_BYTES_MAX)),
            Some(Known::Model) => *model = Some(self.shown.name(value, ARM_BYTES_MAX)),
            Some(Known::Epoch) => *epoch = count(value).and_then(|epoch| u32::try_from(epoch).ok()),
            // A test's own properties go to its transcript.
            _ if git || self.case.is_some() => {}
            _ => {
                let suite = self.suites.last().map(|suite| suite.shown.clone()).unwrap_or_default();
                self.facts.property(&suite, &name, value, self.shown);
            }
        }
        Ok(())
    }

    fn close_case(&mut self) -> Result<(), Refused> {
        let Some(case) = self.case.take() else { return Ok(()) };
        let evaluation = self.evaluation();
        let Some(suite) = self.suites.last_mut() else { return Ok(()) };
        let arm =
            arm(&mut self.by_arm, &mut self.arms, case.arm.as_ref().or(suite.arm.as_ref()), case.model.as_ref().or(suite.model.as_ref()));
        let epoch = case.epoch.or(suite.epoch).unwrap_or(1);
        let numbers = [arm as u64, u64::from(epoch)].map(u64::to_le_bytes).concat();
        let test = key(&[&suite.key, &numbers, case.class.as_bytes(), case.name.as_bytes()]);
        let whole = case.file.as_ref().map_or(test, |file| key(&[&test, file.as_bytes()]));
        let next = self.groups.len();
        let found = *self.by_key.entry(whole).or_insert(next);
        if found == next {
            let pytest = suite.pytest;
            self.groups.push(Group {
                evaluation,
                arm,
                epoch,
                ambiguous: false,
                pytest,
                place: case.place,
                more: Vec::new(),
                outputs: Vec::new(),
            });
            if let Some(file) = &case.file {
                self.directory.see(file);
                // A test of this name without a file stands under the name alone.
                let first = *self.by_test.entry(test).or_insert_with(|| self.by_key.get(&test).copied().unwrap_or(next));
                self.tell_apart(first, next);
            } else if let Some(first) = self.by_test.get(&test) {
                self.tell_apart(*first, next);
            }
        } else if let Some(group) = self.groups.get_mut(found) {
            group.more.push(case.place);
        }
        let Some(suite) = self.suites.last_mut() else { return Ok(()) };
        suite.cases += 1;
        suite.last = found;
        self.spare = case;
        Ok(())
    }

    /// Two groups are tests of one class and name in different files.
    fn tell_apart(&mut self, first: usize, second: usize) {
        for place in [first, second] {
            if let Some(group) = self.groups.get_mut(place).filter(|_| first != second) {
                group.ambiguous = true;
            }
        }
    }

    /// The evaluation of the innermost suite: its name, else its root's.
    fn evaluation(&mut self) -> usize {
        let Some(suite) = self.suites.last_mut() else { return 0 };
        if let Some(evaluation) = suite.evaluation {
            return evaluation;
        }
        let name = match suite.shown.as_str() {
            "" => self.facts.root.as_deref().unwrap_or(NAMELESS),
            name => name,
        };
        let next = self.evaluations.len();
        let evaluation = *self.by_evaluation.entry(name.to_owned()).or_insert(next);
        if evaluation == next {
            self.evaluations.push(name.to_owned());
        }
        suite.evaluation = Some(evaluation);
        evaluation
    }

    fn close_suite(&mut self) -> Result<(), Refused> {
        // A suite of which nothing was run is an evaluation without attempts.
        if self.suites.last().is_some_and(|suite| suite.cases == 0 && suite.suites == 0 && !suite.shown.is_empty()) {
            self.evaluation();
        }
        if self.evaluations.len() > self.limits.entries_max {
            return Err(Refused::Broken(format!("the file has more than {} suites, the most that it may", self.limits.entries_max)));
        }
        let Some(suite) = self.suites.pop() else { return Ok(()) };
        match self.groups.get_mut(suite.last) {
            // What a suite of one test wrote, that test wrote (Bazel has it nowhere else).
            Some(group) if suite.cases == 1 => group.outputs.extend(suite.outputs),
            _ => self.facts.output_left_out += suite.output_bytes,
        }
        Ok(())
    }
}

/// The arm that tests name, else their model, else the one that all others share.
fn arm(by_name: &mut HashMap<String, usize>, arms: &mut Vec<ArmInfo>, named: Option<&String>, model: Option<&String>) -> usize {
    let name = named.or(model).map_or(DEFAULT_ARM, String::as_str);
    if let Some(found) = by_name.get(name) {
        return *found;
    }
    let factors = model.map(|model| ("model".to_owned(), model.clone())).into_iter().collect();
    arms.push(ArmInfo { name: name.to_owned(), role: None, factors });
    by_name.insert(name.to_owned(), arms.len() - 1);
    arms.len() - 1
}

/// A digest of `parts`, each with its length, so that no two lists of parts are spelled the same.
fn key(parts: &[&[u8]]) -> Key {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut key = Key::default();
    key.iter_mut().zip(hasher.finalize()).for_each(|(place, byte)| *place = byte);
    key
}
