//! `attachment://…` in a sample's text, replaced by what it stands for.
//!
//! Promises: a reference whose target exists is replaced, inside JSON as JSON; one without a target stays; what is put in is not looked
//! through again; the bytes put into one sample are bounded.
//! Does not: decode images.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
};

use memchr::memmem;
use serde_json::value::RawValue;

use crate::importers::raw::Fields;

const SCHEME: &str = "attachment://";
static FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(SCHEME));
const HASH_DIGITS: usize = 32;

/// The attachments of one sample.
#[derive(Debug, Default)]
pub(super) struct Attachments<'a> {
    by_hash: HashMap<Cow<'a, str>, &'a str>,
    by_index: Vec<&'a str>,
    /// Bytes that may still be put in: one long attachment can be named by thousands of events.
    room: Cell<u64>,
    refused: Cell<bool>,
    /// Hashes of contents, by where they stand: one attachment is compared again and again.
    hashes: RefCell<HashMap<usize, u64>>,
}

/// A JSON string without its quotes.
fn inside(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl<'a> Attachments<'a> {
    /// Attachments by the hash of their content, of which `room` bytes may be put in.
    pub(super) fn by_hash(fields: &Fields<'a>, room: u64) -> Self {
        let by_hash = fields.0.iter().filter_map(|(hash, raw)| Some((hash.clone(), inside(raw)?))).collect();
        Self { by_hash, room: Cell::new(room), ..Self::default() }
    }

    /// Attachments by their place, as chunked samples have them.
    pub(super) fn by_index(values: impl Iterator<Item = &'a RawValue>, room: u64) -> Self {
        Self { by_index: values.map(|raw| inside(raw).unwrap_or_default()).collect(), room: Cell::new(room), ..Self::default() }
    }

    /// Whether a reference was left because the sample grew past its bound.
    pub(super) fn refused(&self) -> bool {
        self.refused.get()
    }

    /// JSON text with its references replaced.
    pub(super) fn in_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.by_hash.is_empty() && self.by_index.is_empty() {
            return Cow::Borrowed(json);
        }
        // Put together at the end, when its length is known: contents are long, and a text that grows is copied again and again.
        let mut parts = Vec::new();
        let mut rest = json;
        while let Some((before, after)) = FINDER.find(rest.as_bytes()).and_then(|at| rest.split_at_checked(at)) {
            let name = after.get(SCHEME.len()..).unwrap_or_default();
            let (taken, content) = self.find(name).map_or((0, SCHEME), |(taken, content)| (taken, content));
            parts.extend([before, content]);
            rest = name.get(taken..).unwrap_or_default();
        }
        if parts.is_empty() {
            return Cow::Borrowed(json);
        }
        parts.push(rest);
        Cow::Owned(parts.concat())
    }

    /// Decoded text with its references replaced.
    pub(super) fn in_text<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        if FINDER.find(text.as_bytes()).is_none() {
            return text;
        }
        let json = serde_json::to_string(text.as_ref()).unwrap_or_default();
        serde_json::from_str(&self.in_json(&json)).map_or(text, Cow::Owned)
    }

    /// A hash of a JSON string's inside that is the same whether the text stands there or is named.
    pub(super) fn hash(&self, inside: &str) -> u64 {
        let named = inside.strip_prefix(SCHEME).and_then(|name| self.target(name).filter(|(taken, _)| *taken == name.len()));
        let Some((_, content)) = named else { return hash_of(inside) };
        *self.hashes.borrow_mut().entry(content.as_ptr().addr()).or_insert_with(|| hash_of(content))
    }

    fn target(&self, name: &str) -> Option<(usize, &'a str)> {
        self.by_hash_at(name).or_else(|| self.by_index_at(name))
    }

    /// What `name` begins with the name of, and how many bytes that name takes.
    fn find(&self, name: &str) -> Option<(usize, &'a str)> {
        let (taken, content) = self.target(name)?;
        let Some(left) = self.room.get().checked_sub(content.len() as u64) else {
            self.refused.set(true);
            return None;
        };
        self.room.set(left);
        Some((taken, content))
    }

    fn by_hash_at(&self, name: &str) -> Option<(usize, &'a str)> {
        self.by_hash.get(name.get(..HASH_DIGITS)?).map(|content| (HASH_DIGITS, *content))
    }

    fn by_index_at(&self, name: &str) -> Option<(usize, &'a str)> {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let place: usize = name.get(..digits)?.parse().ok()?;
        self.by_index.get(place).map(|content| (digits, *content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_where_their_target_exists() {
        let hash = "0123456789abcdef0123456789abcdef";
        let json = format!(r#"{{"{hash}":"line\n\"two\" attachment://{hash}"}}"#);
        let fields: Fields<'_> = serde_json::from_str(&json).unwrap();
        let found = Attachments::by_hash(&fields, 1000);
        let line = format!(r#"["attachment://{hash}","x attachment://ffffffffffffffffffffffffffffffff","attachment://"]"#);
        let expected =
            format!(r#"["line\n\"two\" attachment://{hash}","x attachment://ffffffffffffffffffffffffffffffff","attachment://"]"#);
        assert_eq!(found.in_json(&line), expected);
        assert_eq!(found.in_text(format!("a\nattachment://{hash}").into()), format!("a\nline\n\"two\" attachment://{hash}"));
        assert!(!found.refused());
    }

    #[test]
    fn what_is_put_in_is_bounded() {
        let values: Vec<Box<RawValue>> = vec![RawValue::from_string("\"0123456789\"".to_owned()).unwrap()];
        let found = Attachments::by_index(values.iter().map(AsRef::as_ref), 25);
        let line = "\"attachment://0 attachment://0 attachment://0 attachment://7\"";
        assert_eq!(found.in_json(line), "\"0123456789 0123456789 attachment://0 attachment://7\"");
        assert!(found.refused());
    }
}
