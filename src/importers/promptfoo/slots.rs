//! The columns of a file: providers, each with a prompt, as the rows name them.
//!
//! Promises: two columns that differ in the provider's id or label, in the prompt or in the place among the columns are two.
//! Does not: make arms of them (`arm` does).

use std::{borrow::Cow, collections::HashMap};

use super::test::{Mark, mark};
use crate::importers::nan::strict;

/// More columns than this are no comparison that anybody reads.
const SLOTS_MAX: usize = 1000;
/// Spellings that are told apart without looking into them.
const SPELLINGS_MAX: usize = 4 * SLOTS_MAX;

/// A column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// The provider's id; empty where the row has none.
    pub(super) provider: String,
    /// What its author calls it, if anything.
    pub(super) label: String,
    /// A digest of the prompt, as promptfoo makes it.
    pub(super) prompt_id: String,
    /// What the prompt is called; often its text.
    pub(super) prompt: String,
    /// Its place among the columns.
    pub(super) idx: Option<u64>,
}

impl Slot {
    /// Whether the two ask the same prompt of the same provider, as far as rows say.
    pub(super) fn asks_as(&self, other: &Slot) -> bool {
        let parts = |slot: &Self| [&slot.provider, &slot.label, &slot.prompt_id, &slot.prompt].map(String::len);
        parts(self) == parts(other)
            && (self.provider == other.provider && self.label == other.label)
            && (self.prompt_id == other.prompt_id && self.prompt == other.prompt)
    }
}

/// The columns seen so far.
#[derive(Default)]
pub(super) struct Slots {
    by_bytes: HashMap<Mark, u32>,
    pub(super) all: Vec<Slot>,
}

impl Slots {
    /// The number of the column of a row: provider's id and label, the prompt's id and label, the place, as they stand in the file.
    pub(super) fn see(&mut self, raw: [&[u8]; 5]) -> u32 {
        let key = mark(raw);
        if let Some(known) = self.by_bytes.get(&key) {
            return *known;
        }
        let [provider, label, prompt_id, prompt, idx] = raw;
        let slot = Slot {
            provider: word(provider),
            label: word(label),
            prompt_id: word(prompt_id),
            prompt: word(prompt),
            idx: serde_json::from_slice(idx).ok(),
        };
        let number = self.all.iter().position(|known| *known == slot).unwrap_or(self.all.len());
        if number == self.all.len() {
            self.all.push(slot);
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if self.by_bytes.len() < SPELLINGS_MAX {
            self.by_bytes.insert(key, number);
        }
        number
    }

    /// Refuses more columns than can be held.
    pub(super) fn bounded(&self) -> Result<(), String> {
        let few = self.all.len() <= SLOTS_MAX;
        few.then_some(())
            .ok_or_else(|| format!("the results have more than {SLOTS_MAX} pairs of provider and prompt, the most that they may"))
    }

    /// The place of a column among the others.
    pub(super) fn order(&self, slot: u32) -> u64 {
        self.all.get(slot as usize).and_then(|slot| slot.idx).unwrap_or(u64::MAX)
    }
}

/// A string of the file. One that was cut, or is no string, stands as it is.
fn word(raw: &[u8]) -> String {
    if raw.is_empty() || raw == b"null" {
        return String::new();
    }
    let raw = strict(raw.to_vec());
    let read: Option<Cow<'_, str>> = serde_json::from_slice::<String>(&raw).ok().map(Cow::Owned);
    read.unwrap_or_else(|| String::from_utf8_lossy(&raw)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_apart_by_what_they_say() {
        let mut slots = Slots::default();
        let mut see = |label: &str, idx: &str| slots.see([b"\"file://p.js\"", label.as_bytes(), b"\"id\"", b"\"{{q}}\"", idx.as_bytes()]);
        let numbers = [see("\"mock-a\"", "0"), see("\"mock-b\"", "0"), see("\"mock\\u002da\"", "0"), see("\"mock-a\"", "1"), see("", "0")];
        assert_eq!(numbers, [0, 1, 0, 2, 3]);
        assert_eq!((slots.all[0].label.as_str(), slots.all[3].label.as_str(), slots.order(2)), ("mock-a", "", 1));
    }
}
