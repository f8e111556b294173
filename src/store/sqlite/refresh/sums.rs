//! What is added up for the helper tables: whole numbers by keys of whole numbers, of one run of an evaluation (a part) or of all (its sums).
//!
//! Promises: adding a part and taking it away again leaves nothing; so sums that followed any sequence of changes are those of the parts that
//! are there. What was packed comes back, or is refused as damaged.
//! Does not: know what the numbers mean beyond their sections, or read tables.

use std::collections::BTreeMap;

use crate::store::{Error, Result};

/// What a row of sums is about: the first number of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Variant, case: passed and counted attempts.
    Cases,
    /// Variant, a figure (0 cost, 1 tokens in, 2 tokens out, 3 turns): the sum, and the attempts that have it.
    Usage,
    /// Variant, duration to three digits: attempts.
    Durations,
    /// Arm, check, case: answers that passed, and answers.
    Checks,
    /// Check, its answer, the attempt's other answers that passed, and all of those: how often.
    Rests,
}

/// A key: its section and up to four numbers.
type Key = [i64; 5];

/// Numbers by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sums(BTreeMap<Key, [i64; 2]>);

impl Sums {
    /// Adds to one row.
    pub(super) fn put(&mut self, section: Section, key: [i64; 4], values: [i64; 2]) {
        let [a, b, c, d] = key;
        self.merge([section as i64, a, b, c, d], values);
    }

    /// Adds all rows of a part.
    pub(super) fn add(&mut self, part: &Self) {
        part.0.iter().for_each(|(key, values)| self.merge(*key, *values));
    }

    /// Takes away what a part had added.
    pub(super) fn subtract(&mut self, part: &Self) {
        part.0.iter().for_each(|(key, [a, b])| self.merge(*key, [a.wrapping_neg(), b.wrapping_neg()]));
    }

    /// Wraps rather than saturates: only so does taking away undo adding, whatever a log claims of itself.
    fn merge(&mut self, key: Key, values: [i64; 2]) {
        let held = self.0.entry(key).or_default();
        for (held, value) in held.iter_mut().zip(values) {
            *held = held.wrapping_add(value);
        }
        if *held == [0, 0] {
            self.0.remove(&key);
        }
    }

    /// The rows of a section, by key.
    pub(super) fn of(&self, section: Section) -> impl Iterator<Item = ([i64; 4], [i64; 2])> {
        let section = section as i64;
        let rows = self.0.range([section, i64::MIN, i64::MIN, i64::MIN, i64::MIN]..=[section, i64::MAX, i64::MAX, i64::MAX, i64::MAX]);
        rows.map(|([_, a, b, c, d], values)| ([*a, *b, *c, *d], *values))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows one after the other, each number in as few bytes as it needs.
    pub(super) fn packed(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * 10);
        for (key, values) in &self.0 {
            key.iter().chain(values).for_each(|number| pack(*number, &mut out));
        }
        out
    }

    /// What [`Self::packed`] gave.
    pub(super) fn unpacked(bytes: &[u8]) -> Result<Self> {
        Ok(Self(Packed(bytes.iter()).collect::<Result<_>>()?))
    }
}

/// The rows of packed sums, one after the other.
pub(super) struct Packed<'a>(std::slice::Iter<'a, u8>);

impl<'a> Packed<'a> {
    /// The rows of one section; what stands behind it is not unpacked.
    pub(super) fn of(section: Section, bytes: &'a [u8]) -> impl Iterator<Item = Result<([i64; 4], [i64; 2])>> {
        let section = section as i64;
        let rows = Self(bytes.iter()).take_while(move |row| !matches!(row, Ok(([other, ..], _)) if *other > section));
        rows.filter_map(move |row| match row {
            Ok(([other, ..], _)) if other != section => None,
            Ok(([_, a, b, c, d], values)) => Some(Ok(([a, b, c, d], values))),
            Err(error) => Some(Err(error)),
        })
    }
}

impl Iterator for Packed<'_> {
    type Item = Result<(Key, [i64; 2])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.as_slice().is_empty() {
            return None;
        }
        let mut row = [0_i64; 7];
        for number in &mut row {
            match unpack(&mut self.0) {
                Some(found) => *number = found,
                None => return Some(Err(Error::Damaged)),
            }
        }
        let [section, a, b, c, d, first, second] = row;
        Some(Ok(([section, a, b, c, d], [first, second])))
    }
}

/// Seven bits a byte, the sign in the lowest.
fn pack(number: i64, out: &mut Vec<u8>) {
    let mut left = (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned();
    while left >= 0x80 {
        out.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn unpack(bytes: &mut std::slice::Iter<'_, u8>) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number >> 1).cast_signed() ^ (number & 1).cast_signed().wrapping_neg());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums() -> impl Strategy<Value = Sums> {
        let section = prop::sample::select(vec![Section::Cases, Section::Usage, Section::Durations, Section::Checks, Section::Rests]);
        let row = (section, prop::array::uniform4(prop_oneof![-2..3_i64, any::<i64>()]), prop::array::uniform2(any::<i64>()));
        prop::collection::vec(row, 0..12).prop_map(|rows| {
            let mut sums = Sums::default();
            rows.into_iter().for_each(|(section, key, values)| sums.put(section, key, values));
            sums
        })
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(sums in sums()) {
            let packed = sums.packed();
            for section in [Section::Cases, Section::Usage, Section::Durations, Section::Checks, Section::Rests] {
                let rows: Vec<_> = Packed::of(section, &packed).map(Result::unwrap).collect();
                prop_assert_eq!(rows, sums.of(section).collect::<Vec<_>>());
            }
            prop_assert_eq!(Sums::unpacked(&packed).unwrap(), sums);
        }

        #[test]
        fn taking_away_undoes_adding(a in sums(), b in sums()) {
            let mut both = a.clone();
            both.add(&b);
            both.subtract(&b);
            prop_assert_eq!(both, a);
        }

        #[test]
        fn what_is_cut_short_is_damaged_or_shorter(sums in sums(), at in any::<prop::sample::Index>()) {
            let bytes = sums.packed();
            let cut = at.index(bytes.len() + 1);
            if let Ok(found) = Sums::unpacked(&bytes[..cut]) {
                prop_assert!(found.0.len() <= sums.0.len());
            }
        }
    }

    #[test]
    fn sections_stand_apart() {
        let mut sums = Sums::default();
        sums.put(Section::Cases, [1, 2, 0, 0], [1, 1]);
        sums.put(Section::Checks, [1, 2, 3, 0], [0, 1]);
        assert_eq!(sums.of(Section::Cases).collect::<Vec<_>>(), [([1, 2, 0, 0], [1, 1])]);
        assert_eq!(sums.of(Section::Usage).count(), 0);
    }
}
