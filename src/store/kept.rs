//! Where estimated p values are kept on disk, so that a view of the goals costs a read instead of their tests (decision 42).
//!
//! Promises: a p is read back exactly; a line is one append of one write, so that several processes may keep theirs in one file; a torn last line
//! and one that is none are skipped; where the file takes no writes it is read, and that is no error. Bounded in memory and on disk.
//! Does not: know what a p is of: its key does.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::domain::hex::is_sha256;

/// A line: some 100 bytes.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    k: &'a str,
    p: &'a str,
}

/// p values by key.
pub struct PValues {
    path: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

/// What is in memory: as much as the file may hold.
#[derive(Default)]
struct State {
    known: HashMap<String, f64>,
    /// As far as the file was read: behind a whole line.
    read: u64,
    /// What tells the file from another in its place.
    file: Option<(u64, u64)>,
    /// Whether a write has failed: then it is not tried again.
    shut: bool,
}

impl PValues {
    /// Those in the file at `path`, which need not be there. Beyond `bytes_max` the file is begun anew, and what it held stays beside it until the
    /// next time.
    #[must_use]
    pub fn new(path: &Path, bytes_max: u64) -> Self {
        Self { path: path.to_owned(), bytes_max, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The p under `key`: what this process knows, else what another has written since.
    pub fn known(&self, key: &str) -> Option<f64> {
        let mut state = self.lock();
        if let Some(p) = state.known.get(key) {
            return Some(*p);
        }
        state.catch_up(&self.path);
        state.known.get(key).copied()
    }

    /// Keeps a p; where the file takes no writes, in memory alone.
    pub fn keep(&self, key: &str, p: f64) {
        let mut state = self.lock();
        if !is_sha256(key) || !(0.0..=1.0).contains(&p) || state.known.insert(key.to_owned(), p).is_some() || state.shut {
            return;
        }
        if self.append(&mut state, key, p).is_err() {
            state.shut = true;
        }
    }

    fn append(&self, state: &mut State, key: &str, p: f64) -> std::io::Result<()> {
        let line = serde_json::to_string(&Line { k: key, p: &hexadecimal(p) })?;
        if fs::metadata(&self.path).is_ok_and(|found| found.len() + line.len() as u64 + 1 > self.bytes_max) {
            fs::rename(&self.path, before(&self.path))?;
            state.known.retain(|held, _| held == key);
        }
        if let Some(directory) = self.path.parent().filter(|directory| !directory.exists()) {
            fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&self.path)?;
        // Behind a torn line this one would be torn too.
        let begin = if ends_whole(&mut file)? { "" } else { "\n" };
        file.write_all(format!("{begin}{line}\n").as_bytes())
    }
}

/// Where what was kept before the file was begun anew is.
fn before(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

fn ends_whole(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

impl State {
    /// Reads what was written since; a file that cannot be read holds nothing.
    fn catch_up(&mut self, path: &Path) {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(mut file) = File::open(path) else { return };
        let Ok(found) = file.metadata() else { return };
        let identity = Some((found.dev(), found.ino()));
        if self.file != identity || found.len() < self.read {
            if self.file.is_none()
                && let Ok(mut old) = File::open(before(path))
            {
                let _ = self.read_from(&mut old);
            }
            if self.file.is_some() {
                // Begun anew by another process: what was before it is not kept for ever.
                self.known.clear();
            }
            (self.file, self.read) = (identity, 0);
        }
        if found.len() > self.read && file.seek(SeekFrom::Start(self.read)).is_ok() {
            self.read += self.read_from(&mut file).unwrap_or(0);
        }
    }

    /// Reads whole lines; how many bytes they take.
    fn read_from(&mut self, file: &mut File) -> std::io::Result<u64> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        for line in bytes.split(|byte| *byte == b'\n') {
            let read = serde_json::from_slice::<Line<'_>>(line).ok().filter(|line| is_sha256(line.k));
            if let Some((key, p)) = read.and_then(|line| Some((line.k, exact(line.p)?))) {
                self.known.insert(key.to_owned(), p);
            }
        }
        Ok(whole as u64)
    }
}

/// Digits after the point of a number in hexadecimal.
const FRACTION_BITS: u32 = 52;

/// A number of 0 or more as C's `%a` has it: `0x1.8p-4`. It is read back to the last bit.
#[must_use]
pub fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << FRACTION_BITS) - 1), (bits >> FRACTION_BITS) & 0x7ff);
    if bits == 0 {
        return "0x0p+0".to_owned();
    }
    let (lead, power) = if exponent == 0 { (0, -1022) } else { (1, exponent.cast_signed() - 1023) };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{power:+}")
}

/// The p that `text` is; none where it is none from 0 to 1.
#[must_use]
pub fn exact(text: &str) -> Option<f64> {
    let (mantissa, power) = text.strip_prefix("0x")?.split_once('p')?;
    let (lead, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let power: i32 = power.parse().ok().filter(|power| (-1100..=1).contains(power))?;
    let plain = fraction.len() <= 13 && fraction.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lead: u64 = lead.parse().ok().filter(|lead| *lead <= 1 && plain)?;
    let digits = format!("{fraction:0<13}");
    let bits = (lead << FRACTION_BITS) | u64::from_str_radix(&digits, 16).ok()?;
    // Both steps are exact: 53 bits are a whole number, and the powers of two stay in range.
    let scaled = (bits as f64) * 2.0_f64.powi(-52);
    let value = if power < -1022 { 0.0 } else { scaled * 2.0_f64.powi(power) };
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "aa00000000000000000000000000000000000000000000000000000000000000";
    const OTHER: &str = "bb00000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn numbers_are_read_back_to_the_last_bit() {
        let tiny = [f64::MIN_POSITIVE, f64::from_bits(1), f64::MIN_POSITIVE / 2.0];
        for p in [0.0, 1.0, 0.5, 0.09375, 0.05, 1.0 / 3.0, 0.0001, 1e-300, 1.0 - f64::EPSILON / 2.0].into_iter().chain(tiny) {
            assert_eq!(exact(&hexadecimal(p)).map(f64::to_bits), Some(p.to_bits()), "{p} {}", hexadecimal(p));
        }
        assert_eq!((hexadecimal(0.09375), hexadecimal(0.0), hexadecimal(1.0)), ("0x1.8p-4".into(), "0x0p+0".into(), "0x1p+0".into()));
        for wrong in
            ["", "0.5", "0x", "0x1", "0x2p-1", "0x1.p", "0x1p+1", "0x1.8p+0", "0xgp-1", "-0x1p-1", "0x1.00000000000000p-1", "0x1p-9999"]
        {
            assert_eq!(exact(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_is_known_to_the_next_process_and_to_one_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache/p.jsonl");
        let (one, two) = (PValues::new(&path, 1 << 20), PValues::new(&path, 1 << 20));
        assert_eq!(one.known(KEY), None);
        one.keep(KEY, 1.0 / 3.0);
        assert_eq!(two.known(KEY), Some(1.0 / 3.0));
        two.keep(OTHER, 0.25);
        one.keep(KEY, 0.5);
        assert_eq!((one.known(OTHER), one.known(KEY)), (Some(0.25), Some(1.0 / 3.0)), "the first stays");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().last().unwrap(), format!("{{\"k\":\"{OTHER}\",\"p\":\"0x1p-2\"}}"));
    }

    #[test]
    fn torn_and_strange_lines_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.jsonl");
        fs::write(&path, format!("nonsense\n\u{0}\n{{\"k\":\"{KEY}\",\"p\":\"0x1p-1\"}}\n{{\"k\":\"{OTHER}\",\"p\":\"0x1")).unwrap();
        let kept = PValues::new(&path, 1 << 20);
        assert_eq!((kept.known(KEY), kept.known(OTHER)), (Some(0.5), None));
        kept.keep(OTHER, 0.125);
        assert_eq!(PValues::new(&path, 1 << 20).known(OTHER), Some(0.125), "what comes behind a torn line is whole");
    }

    #[test]
    fn a_folder_that_takes_no_writes_is_read() {
        let dir = tempfile::tempdir().unwrap();
        // A file stands where the folder should be: nobody can write there, whoever the test runs as.
        fs::write(dir.path().join("cache"), "").unwrap();
        let kept = PValues::new(&dir.path().join("cache/p.jsonl"), 1 << 20);
        kept.keep(KEY, 0.5);
        assert_eq!((kept.known(KEY), kept.known(OTHER)), (Some(0.5), None));
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.jsonl");
        let kept = PValues::new(&path, 1000);
        let key = |number: u32| format!("{number:064x}");
        (0..100).for_each(|number| kept.keep(&key(number), 0.5));
        let bytes = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(bytes(&path) <= 1000 && bytes(&before(&path)) <= 1000);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        let next = PValues::new(&path, 1000);
        assert_eq!((next.known(&key(99)), next.known(&key(0))), (Some(0.5), None));
        assert!(kept.lock().known.len() < 25);
    }
}
