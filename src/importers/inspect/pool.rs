//! The pools of a sample (`events_data`), which model events name by half-open ranges.
//!
//! Promises: a range past the end names what exists and says what does not; ranges that name the same thing again and again cost no more
//! than a bound.
//! Does not: know what stands in a pool.

use serde_json::value::RawValue;

use crate::importers::raw::read;

/// Steps over items of a pool that a sample may take: a long conversation takes few, since what was seen is skipped whole.
const STEPS_MAX: u64 = 20_000_000;

/// Messages or calls.
#[derive(Debug, Default)]
pub(super) struct Pool<'a> {
    items: Vec<&'a RawValue>,
    seen: Vec<bool>,
    /// All items before this one were seen.
    seen_until: usize,
    steps: u64,
}

impl<'a> Pool<'a> {
    pub(super) fn new(items: Vec<&'a RawValue>) -> Self {
        Self { seen: vec![false; items.len()], items, seen_until: 0, steps: 0 }
    }

    /// Calls `each` with every item that `refs` name.
    pub(super) fn expand(&mut self, refs: &[&RawValue], mut each: impl FnMut(usize, &'a RawValue)) {
        for (start, end) in refs.iter().filter_map(|raw| read::<(u64, u64)>(Some(raw))) {
            let (start, end) = self.clamp(start, end);
            for (place, raw) in self.items.iter().enumerate().take(end).skip(start) {
                self.steps += 1;
                if self.steps > STEPS_MAX {
                    return;
                }
                each(place, raw);
            }
        }
    }

    /// Calls `each` with every item that `refs` name for the first time. Gives how many were named before, and the references that lead
    /// nowhere as JSON.
    pub(super) fn expand_new(&mut self, refs: &[&RawValue], mut each: impl FnMut(&'a RawValue)) -> (u64, Option<String>) {
        let (mut again, mut missing) = (0, Vec::new());
        for raw in refs {
            let Some((start, end)) = read::<(u64, u64)>(Some(raw)) else {
                missing.push(raw.get().to_owned());
                continue;
            };
            let (first, last) = self.clamp(start, end);
            if (last as u64) < end {
                missing.push(format!("[{},{end}]", start.max(last as u64)));
            }
            let old = self.seen_until.clamp(first, last.max(first));
            again += (old - first) as u64;
            self.walk(old, last, &mut again, &mut each);
        }
        (again, (!missing.is_empty()).then(|| format!("[{}]", missing.join(","))))
    }

    fn walk(&mut self, first: usize, last: usize, again: &mut u64, each: &mut impl FnMut(&'a RawValue)) {
        for (place, (raw, seen)) in self.items.iter().zip(&mut self.seen).enumerate().take(last).skip(first) {
            self.steps += 1;
            if *seen || self.steps > STEPS_MAX {
                *again += 1;
            } else {
                *seen = true;
                each(raw);
            }
            if place == self.seen_until && *seen {
                self.seen_until += 1;
            }
            if self.steps > STEPS_MAX {
                *again += (last - place - 1) as u64;
                return;
            }
        }
    }

    fn clamp(&self, start: u64, end: u64) -> (usize, usize) {
        let clamp = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(self.items.len());
        (clamp(start), clamp(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raws(json: &str) -> Vec<&RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn items_come_once_and_what_is_missing_is_said() {
        let mut pool = Pool::new(raws("[0,1,2,3]"));
        let mut named = |refs: &str| {
            let mut found = Vec::new();
            let rest = pool.expand_new(&raws(refs), |raw| found.push(raw.get().to_owned()));
            (found.join(" "), rest)
        };
        assert_eq!(named("[[0,2]]"), ("0 1".into(), (0, None)));
        assert_eq!(named("[[0,2],[3,6]]"), ("3".into(), (2, Some("[[4,6]]".into()))));
        assert_eq!(named("[[1,4]]"), ("2".into(), (2, None)));
        assert_eq!(named("[[2,1],[9,18446744073709551615],\"x\"]"), (String::new(), (0, Some("[[9,18446744073709551615],\"x\"]".into()))));
    }

    #[test]
    fn ranges_that_repeat_are_bounded() {
        let items = format!("[{}]", vec!["1"; 10_000].join(","));
        let mut pool = Pool::new(raws(&items));
        let refs = format!("[{}]", vec!["[1,10000]"; 3_000].join(","));
        let (again, _) = pool.expand_new(&raws(&refs), |_| {});
        assert_eq!(again, 9_999 * 2_999);
    }
}
