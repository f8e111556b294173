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

/// A key with its two numbers.
type Row = (Key, [i64; 2]);

/// Sums in the making.
#[derive(Debug, Default)]
pub(super) struct Building(BTreeMap<Key, [i64; 2]>);

impl Building {
    /// Adds to one row.
    pub(super) fn put(&mut self, section: Section, key: [i64; 4], values: [i64; 2]) {
        let [a, b, c, d] = key;
        let held = self.0.entry([section as i64, a, b, c, d]).or_default();
        *held = plus(*held, values);
    }

    /// The sums.
    pub(super) fn done(self) -> Sums {
        Sums(self.0.into_iter().filter(|(_, values)| *values != [0, 0]).collect())
    }
}

/// Wraps rather than saturates: only so does taking away undo adding, whatever a log claims of itself.
fn plus([a, b]: [i64; 2], [c, d]: [i64; 2]) -> [i64; 2] {
    [a.wrapping_add(c), b.wrapping_add(d)]
}

/// Numbers by key, in the order of the keys; none of them is a pair of zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sums(Vec<Row>);

impl Sums {
    /// Adds all rows of a part.
    pub(super) fn add(&mut self, part: &Self) {
        self.merge(part, |values| values);
    }

    /// Takes away what a part had added.
    pub(super) fn subtract(&mut self, part: &Self) {
        self.merge(part, |[a, b]| [a.wrapping_neg(), b.wrapping_neg()]);
    }

    fn merge(&mut self, part: &Self, sign: impl Fn([i64; 2]) -> [i64; 2]) {
        if part.is_empty() {
            return;
        }
        let mut out = Vec::with_capacity(self.0.len() + part.0.len());
        let mut held = self.0.iter().peekable();
        for (key, values) in &part.0 {
            while let Some(row) = held.next_if(|(other, _)| other < key) {
                out.push(*row);
            }
            let before = held.next_if(|(other, _)| other == key).map_or([0, 0], |(_, values)| *values);
            out.push((*key, plus(before, sign(*values))));
        }
        out.extend(held);
        out.retain(|(_, values)| *values != [0, 0]);
        self.0 = out;
    }

    /// The rows of a section, by key.
    pub(super) fn of(&self, section: Section) -> impl Iterator<Item = ([i64; 4], [i64; 2])> {
        let section = section as i64;
        let from = self.0.partition_point(|([other, ..], _)| *other < section);
        let rows = self.0.iter().skip(from).take_while(move |([other, ..], _)| *other == section);
        rows.map(|([_, a, b, c, d], values)| ([*a, *b, *c, *d], *values))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows one after the other: of each a byte that says which numbers differ from the row before, and by how much these do.
    pub(super) fn packed(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * 4);
        let mut before = [0_i64; 7];
        for ([section, a, b, c, d], [first, second]) in &self.0 {
            let row = [*section, *a, *b, *c, *d, *first, *second];
            let differs = row.iter().zip(&before).enumerate().filter(|(_, (now, before))| now != before);
            out.push(differs.fold(0, |mask, (place, _)| mask | 1 << place));
            row.iter()
                .zip(&before)
                .filter(|(now, before)| now != before)
                .for_each(|(now, before)| pack(now.wrapping_sub(*before), &mut out));
            before = row;
        }
        out
    }

    /// What [`Self::packed`] gave.
    pub(super) fn unpacked(bytes: &[u8]) -> Result<Self> {
        let mut rows = Vec::with_capacity(bytes.len() / 3);
        for row in Packed::new(bytes) {
            rows.push(row?);
        }
        Ok(Self(rows))
    }
}

/// The rows of packed sums, one after the other.
pub(super) struct Packed<'a> {
    rest: std::slice::Iter<'a, u8>,
    before: [i64; 7],
}

impl<'a> Packed<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes.iter(), before: [0; 7] }
    }

    /// The rows of one section; what stands behind it is not unpacked.
    pub(super) fn of(section: Section, bytes: &'a [u8]) -> impl Iterator<Item = Result<([i64; 4], [i64; 2])>> {
        let section = section as i64;
        let rows = Self::new(bytes).take_while(move |row| !matches!(row, Ok(([other, ..], _)) if *other > section));
        rows.filter_map(move |row| match row {
            Ok(([other, ..], _)) if other != section => None,
            Ok(([_, a, b, c, d], values)) => Some(Ok(([a, b, c, d], values))),
            Err(error) => Some(Err(error)),
        })
    }
}

impl Iterator for Packed<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let mask = *self.rest.next()?;
        for (place, number) in self.before.iter_mut().enumerate() {
            if mask >> place & 1 == 1 {
                let Some(by) = unpack(&mut self.rest) else { return Some(Err(Error::Damaged)) };
                *number = number.wrapping_add(by);
            }
        }
        let [section, a, b, c, d, first, second] = self.before;
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
            let mut building = Building::default();
            rows.into_iter().for_each(|(section, key, values)| building.put(section, key, values));
            building.done()
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
        let mut building = Building::default();
        building.put(Section::Cases, [1, 2, 0, 0], [1, 1]);
        building.put(Section::Checks, [1, 2, 3, 0], [0, 1]);
        let sums = building.done();
        assert_eq!(sums.of(Section::Cases).collect::<Vec<_>>(), [([1, 2, 0, 0], [1, 1])]);
        assert_eq!(sums.of(Section::Usage).count(), 0);
    }
}
