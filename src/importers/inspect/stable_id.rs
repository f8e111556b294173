//! The id that Inspect's reader gives to logs from before `eval_id`: BLAKE2s-128 in base 57 over run, task and time.
//!
//! Promises: the same id as `inspect log list` shows, so that what a person knows of an old log finds it here.
//! Does not: serve any secret (no key, no constant time).

use chrono::{DateTime, SecondsFormat, Utc};

const ALPHABET: &[u8; 57] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const ID_CHARS: usize = 22;
const DIGEST_BYTES: usize = 16;
const BLOCK_BYTES: usize = 64;

const IV: [u32; 8] = [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
/// The message words of each round, two a mix (RFC 7693, table of SIGMA).
const SIGMA: [[u8; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
/// The words that each mix of a round takes: the columns, then the diagonals.
const LANES: [[usize; 4]; 8] =
    [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/// The id of a log without one. `created` is as the log spells it: Inspect hashes it in UTC, as Python writes it.
pub(super) fn stable_id(run_id: &str, task_id: &str, created: &str) -> String {
    base57(u128::from_be_bytes(blake2s(format!("{run_id}{task_id}{}", python_utc(created)).as_bytes())))
}

fn python_utc(created: &str) -> String {
    let Ok(time) = DateTime::parse_from_rfc3339(created) else { return created.to_owned() };
    let time = time.with_timezone(&Utc);
    let format = if time.timestamp_subsec_micros() == 0 { SecondsFormat::Secs } else { SecondsFormat::Micros };
    time.to_rfc3339_opts(format, false)
}

fn base57(mut number: u128) -> String {
    let mut digits = Vec::with_capacity(ID_CHARS);
    for _ in 0..ID_CHARS {
        let digit = usize::try_from(number % 57).unwrap_or_default();
        digits.push(ALPHABET.get(digit).copied().map_or('2', char::from));
        number /= 57;
    }
    digits.iter().rev().collect()
}

fn blake2s(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut state = IV;
    if let Some(first) = state.first_mut() {
        *first ^= 0x0101_0000 ^ DIGEST_BYTES as u32;
    }
    let mut done = 0_u64;
    // The last block is compressed apart, and there is one even of nothing.
    let last_start = bytes.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES;
    let (full, last) = bytes.split_at_checked(last_start).unwrap_or((&[], bytes));
    for block in full.chunks_exact(BLOCK_BYTES) {
        done += BLOCK_BYTES as u64;
        compress(&mut state, block, done, false);
    }
    compress(&mut state, last, done + last.len() as u64, true);
    let mut out = [0; DIGEST_BYTES];
    for (place, byte) in out.iter_mut().zip(state.iter().flat_map(|word| word.to_le_bytes())) {
        *place = byte;
    }
    out
}

fn compress(state: &mut [u32; 8], block: &[u8], done: u64, last: bool) {
    let mut words = [0_u32; 16];
    for (place, byte) in block.iter().enumerate() {
        if let Some(word) = words.get_mut(place / 4) {
            *word |= u32::from(*byte) << (place % 4 * 8);
        }
    }
    let mut work = [0_u32; 16];
    for (place, word) in work.iter_mut().zip(state.iter().chain(&IV)) {
        *place = *word;
    }
    // The count of bytes in two words, and a mark on the last block.
    let marks = [done as u32, (done >> 32) as u32, if last { u32::MAX } else { 0 }];
    for (place, mark) in work.iter_mut().skip(12).zip(marks) {
        *place ^= mark;
    }
    for round in &SIGMA {
        for (lane, pair) in LANES.iter().zip(round.chunks_exact(2)) {
            let word = |place: usize| pair.get(place).and_then(|index| words.get(usize::from(*index))).copied().unwrap_or_default();
            mix(&mut work, *lane, word(0), word(1));
        }
    }
    let (low, high) = work.split_at(8);
    for ((place, low), high) in state.iter_mut().zip(low).zip(high) {
        *place ^= low ^ high;
    }
}

fn mix(work: &mut [u32; 16], [a, b, c, d]: [usize; 4], first: u32, second: u32) {
    let Ok([a, b, c, d]) = work.get_disjoint_mut([a, b, c, d]) else { return };
    for (word, turn_d, turn_b) in [(first, 16, 12), (second, 8, 7)] {
        *a = a.wrapping_add(*b).wrapping_add(word);
        *d = (*d ^ *a).rotate_right(turn_d);
        *c = c.wrapping_add(*d);
        *b = (*b ^ *c).rotate_right(turn_b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_pythons_hashlib() {
        let hex = |bytes: &[u8]| crate::domain::hex::hex(&blake2s(bytes));
        assert_eq!(hex(b"abc"), "aa4938119b1dc7b87cbad0ffd200d0ae");
        assert_eq!(hex(b""), "64550d6ffe2c0a01a14aba1eade0200c");
        assert_eq!(hex(&[b'y'; 64]), "7f2036c46ad69014182e628108fbe966");
        assert_eq!(hex(&[b'x'; 200]), "bad20b998280e4ce9d7d511b1ad55a63");
    }

    #[test]
    fn times_are_spelled_as_python_spells_them() {
        assert_eq!(python_utc("2024-11-05T13:31:45-05:00"), "2024-11-05T18:31:45+00:00");
        assert_eq!(python_utc("2024-11-05T13:31:45.5Z"), "2024-11-05T13:31:45.500000+00:00");
    }
}
