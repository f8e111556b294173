//! Changes inputs at random and keeps those with a new outcome.
//!
//! Promises: the same seed gives the same inputs; an input is at most `BYTES_MAX` long, the corpus at most `KEPT_MAX` inputs; ends when the time
//! is up.
//! Does not: know what an input means.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant, SystemTime},
};

const BYTES_MAX: usize = 8192;
const KEPT_MAX: usize = 1024;
/// Inputs between two looks at the clock.
const A_LOOK: u64 = 64;

/// Numbers that look random (SplitMix64).
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.below(length + 1), self.below(length + 1));
        // Short ones mostly: long ones throw everything away.
        let (from, to) = (a.min(b), a.max(b));
        from..to.min(from + 1 + self.below(32))
    }
}

/// One target.
pub struct Fuzz<'a> {
    /// What to begin with.
    pub corpus: Vec<Vec<u8>>,
    /// Words of the language.
    pub words: &'a [&'a str],
}

impl Fuzz<'_> {
    /// Gives `check` inputs until the time is up; all outcomes that it named.
    pub fn run(mut self, name: &str, check: impl Fn(&[u8]) -> String) -> BTreeSet<String> {
        let seed = setting("RUNLORE_FUZZ_SEED").unwrap_or_else(|| now().as_nanos() as u64);
        let budget = Duration::from_secs(setting("RUNLORE_FUZZ_SECONDS").unwrap_or(10));
        let (mut random, began, mut count) = (Random(seed), Instant::now(), 0_u64);
        let checked = |input: &[u8]| {
            catch_unwind(AssertUnwindSafe(|| check(input))).unwrap_or_else(|panic| {
                eprintln!("{name}: seed {seed}, input {:?}", String::from_utf8_lossy(input));
                eprintln!("as bytes: {}", input.escape_ascii());
                resume_unwind(panic)
            })
        };
        let mut outcomes: BTreeSet<String> = self.corpus.iter().map(|input| checked(input)).collect();
        while count % A_LOOK != 0 || began.elapsed() < budget {
            let input = self.changed(&mut random);
            let outcome = checked(&input);
            if !outcomes.contains(&outcome) && self.corpus.len() < KEPT_MAX {
                outcomes.insert(outcome);
                self.corpus.push(input);
            }
            count += 1;
        }
        println!("{name}: {count} inputs, {} outcomes, seed {seed}", outcomes.len());
        outcomes
    }

    fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut input = self.corpus[random.below(self.corpus.len())].clone();
        for _ in 0..=random.below(4) {
            self.change(&mut input, random);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let place = random.below(input.len() + 1);
        let range = random.range(input.len());
        match random.below(9) {
            0 if place < input.len() => input[place] = random.next() as u8,
            1 if place < input.len() => input[place] ^= 1 << random.below(8),
            2 => drop(input.drain(range)),
            // The same again, there or elsewhere: keys twice, lines twice, deep nesting.
            3 => {
                let piece = input[range].to_vec();
                let times = 1 + if random.below(16) == 0 { random.below(200) } else { 0 };
                input.splice(place..place, piece.repeat(times));
            }
            4 => {
                let other = &self.corpus[random.below(self.corpus.len())];
                let piece = other[random.range(other.len())].to_vec();
                input.splice(range, piece);
            }
            5 => {
                let other = &self.corpus[random.below(self.corpus.len())];
                input.truncate(place);
                input.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
            6 => drop(input.splice(range, self.words[random.below(self.words.len())].bytes())),
            _ => drop(input.splice(place..place, self.words[random.below(self.words.len())].bytes())),
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

#[test]
fn a_seed_repeats_itself_and_inputs_are_bounded() {
    let fuzz = Fuzz { corpus: vec![b"{\"a\":1}".to_vec(), Vec::new()], words: &["x", "\"b\":2,"] };
    let inputs = |seed| {
        let mut random = Random(seed);
        (0..2000).map(|_| fuzz.changed(&mut random)).collect::<Vec<_>>()
    };
    let once = inputs(7);
    assert!(once == inputs(7) && once != inputs(8));
    assert!(once.iter().all(|input| input.len() <= BYTES_MAX) && once.iter().collect::<BTreeSet<_>>().len() > 1000);
}
