//! XML as a row of nodes, with what is dangerous in it refused.
//!
//! Promises: no entity is expanded, no DTD is read, nothing outside the file is opened; depth and attributes are capped; an error says what
//! is wrong and where, and quotes nothing that is long.
//! Does not: know JUnit, or judge a DTD (whether it matters depends on the root).

use std::borrow::Cow;

use quick_xml::{
    Error, Reader,
    events::{BytesStart, Event},
};

use super::{
    source::Source,
    text::{clean, resolve, unescape},
};
use crate::domain::attempt::shorten;

const DEPTH_MAX: usize = 64;
const ATTRIBUTES_MAX: usize = 256;
const REASON_BYTES_MAX: usize = 200;

/// What comes next.
pub(super) enum Node<'b> {
    /// An element begins.
    Open(Tag<'b>),
    /// The innermost element ends.
    Close,
    /// Text, in as many parts as it has references and sections.
    Text(Text<'b>),
    /// Nothing that means anything here.
    Other,
    /// The file ends, with every element closed.
    End,
}

/// The beginning of an element.
pub(super) struct Tag<'b> {
    element: BytesStart<'b>,
    /// Where it stands in the file.
    pub(super) place: u64,
    /// Whether a DTD with something in it stood before.
    pub(super) after_dtd: bool,
}

/// A part of a text.
pub(super) enum Text<'b> {
    Plain(Cow<'b, str>),
    Character(char),
}

/// Reads nodes from where a source stands.
pub(super) struct Xml<'s, 'a> {
    reader: Reader<&'s mut Source<'a>>,
    buffer: Vec<u8>,
    depth: usize,
    closed: bool,
    dtd: bool,
}

impl<'s, 'a> Xml<'s, 'a> {
    pub(super) fn new(source: &'s mut Source<'a>) -> Self {
        let mut reader = Reader::from_reader(source);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new(), depth: 0, closed: false, dtd: false }
    }

    /// How many elements are open.
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// The next node, or a sentence that says why there is none.
    pub(super) fn next(&mut self) -> Result<Node<'_>, String> {
        self.buffer.clear();
        let source = self.reader.get_mut();
        source.begin_piece();
        let place = source.place();
        let outside = self.depth == 0;
        let read = match self.reader.read_event_into(&mut self.buffer) {
            Ok(event) => event,
            Err(error) => return Err(sentence(&error, place)),
        };
        let at = |why: String| format!("the XML cannot be read at byte {place}: {why}");
        match read {
            Event::Start(element) => {
                if self.closed {
                    return Err(at("it goes on after its root element".to_owned()));
                }
                if !is_name(element.local_name().into_inner()) {
                    return Err(at("a tag has no name".to_owned()));
                }
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(at(format!("its elements are nested deeper than {DEPTH_MAX}")));
                }
                Ok(Node::Open(Tag { element, place, after_dtd: self.dtd }))
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.closed = self.depth == 0;
                Ok(Node::Close)
            }
            Event::Text(text) if outside => {
                let blank = text.trim_ascii().is_empty();
                blank.then_some(Node::Other).ok_or_else(|| at("there is text outside its root element".to_owned()))
            }
            Event::CData(_) | Event::GeneralRef(_) if outside => Err(at("there is text outside its root element".to_owned())),
            Event::Text(text) => Ok(Node::Text(Text::Plain(text.xml10_content()))),
            Event::CData(text) => Ok(Node::Text(Text::Plain(text.xml10_content()))),
            Event::GeneralRef(name) => Ok(Node::Text(Text::Character(resolve(&name).map_err(at)?))),
            Event::DocType(text) => {
                // A bare name says nothing; a list of declarations, or the address of one, does.
                self.dtd |= text.trim_ascii().contains(|character: char| character.is_ascii_whitespace() || character == '[');
                Ok(Node::Other)
            }
            Event::Eof if outside => Ok(Node::End),
            Event::Eof => Err("the file ends in the middle of its XML; it was cut off, or is still being written".to_owned()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Ok(Node::Other),
        }
    }
}

impl Tag<'_> {
    /// Its name without a namespace.
    pub(super) fn name(&self) -> &str {
        self.element.local_name().into_inner()
    }

    /// Hands on each attribute's name and value, up to the first that cannot be read.
    pub(super) fn attributes(&self, mut take: impl FnMut(&str, Cow<'_, str>)) -> Result<(), String> {
        let wrong = |why: String| format!("the XML cannot be read at byte {}: {why}", self.place);
        let mut all = self.element.attributes();
        // Of two with one name the first is taken; looking for them would cost the square of their number.
        all.with_checks(false);
        for (number, attribute) in all.enumerate() {
            if number >= ATTRIBUTES_MAX {
                return Err(wrong(format!("an element has more than {ATTRIBUTES_MAX} attributes")));
            }
            let attribute = attribute.map_err(|error| wrong(short(&error.to_string())))?;
            let key = attribute.key.local_name().into_inner();
            if !is_name(key) {
                return Err(wrong("an attribute has no name".to_owned()));
            }
            take(key, unescape(&attribute.value).map_err(wrong)?);
        }
        Ok(())
    }
}

impl Text<'_> {
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Text::Plain(text) => text.trim().is_empty(),
            Text::Character(character) => character.is_whitespace(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Text::Plain(text) => text.len(),
            Text::Character(character) => character.len_utf8(),
        }
    }

    /// Adds it to `out` as far as there is room; how many bytes there was no room for.
    pub(super) fn add_to(self, out: &mut String, room: usize) -> usize {
        match self {
            Text::Plain(text) => {
                let text = clean(text);
                let (kept, cut) = text.split_at_checked(text.floor_char_boundary(room)).unwrap_or(("", &text));
                out.push_str(kept);
                cut.len()
            }
            Text::Character(character) if character.len_utf8() > room => character.len_utf8(),
            Text::Character(character) => {
                out.push(character);
                0
            }
        }
    }
}

/// Whether it could name something: a sign of markup in it means that another tag was swallowed.
fn is_name(text: &str) -> bool {
    let markup = |byte| matches!(byte, b'<' | b'>' | b'"' | b'\'' | b'=' | b'/' | b'&' | b';' | b'[' | b']');
    !text.is_empty() && !text.bytes().any(markup)
}

fn sentence(error: &Error, place: u64) -> String {
    match error {
        Error::Io(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            format!("the XML cannot be read at byte {place}: a tag takes more bytes than it may")
        }
        Error::Io(error) => format!("the file cannot be read: {}", error.kind()),
        Error::Syntax(_) => format!("the XML cannot be read at byte {place}: {}; it may have been cut off", short(&error.to_string())),
        error => format!("the XML cannot be read at byte {place}: {}", short(&error.to_string())),
    }
}

fn short(text: &str) -> String {
    shorten(&text.escape_debug().to_string(), REASON_BYTES_MAX)
}
