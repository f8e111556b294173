//! Small look-ups that the other parts share: meta values, files, numbers and names, words as integers.
//!
//! Promises: a name is read once per call; ids compare bytewise; `contains` ignores case for every script, since it is decided in Rust.
//! Does not: write, but for giving numbers to new names.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasherDefault, Hasher},
};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::{
    domain::{
        cell::Verdict,
        declared::Declared,
        extras::{AnalysisSource, Pick},
        log::RunStatus,
        outcome::Outcome,
        time::Timestamp,
    },
    store::{
        Error, FileRow, FileStamp, FileState, Kind, Result,
        workspace::{EvaluationStatus, rules},
    },
};

pub(super) fn generation(connection: &Connection) -> Result<u64> {
    let value: i64 = connection.prepare_cached("SELECT value FROM meta WHERE name = 'generation'")?.query_row([], |row| row.get(0))?;
    Ok(natural(value))
}

pub(super) fn declared(connection: &Connection) -> Result<Declared> {
    let text: String = connection.prepare_cached("SELECT value FROM meta WHERE name = 'declared'")?.query_row([], |row| row.get(0))?;
    Ok(serde_json::from_str(&text)?)
}

/// States of a file, as stored.
pub(super) const LOG: i64 = 0;
pub(super) const COPY: i64 = 1;
pub(super) const SKIPPED: i64 = 2;
pub(super) const BROKEN: i64 = 3;

const FILE: &str = "SELECT path, size, mtime_ns, digest, source, state, detail FROM files";

/// What was looked at; runs of the queue are no files, though their logs have a row here as all logs have.
pub(super) fn files(connection: &Connection, source: Option<&str>) -> Result<Vec<FileRow>> {
    let filter = if source.is_some() { "WHERE source = ?1" } else { "WHERE ?1 IS NULL" };
    let mut statement = connection.prepare_cached(&format!("{FILE} {filter} ORDER BY path"))?;
    let rows = statement.query_and_then([source], file_row)?;
    let queued = |row: &Result<FileRow>| row.as_ref().is_ok_and(|row| row.stamp.path.starts_with(rules::QUEUE));
    rows.filter(|row| !queued(row)).collect()
}

pub(super) fn file(connection: &Connection, path: &str) -> Result<Option<FileRow>> {
    let mut statement = connection.prepare_cached(&format!("{FILE} WHERE path = ?1"))?;
    let mut rows = statement.query_and_then([path], file_row)?;
    rows.next().transpose()
}

pub(super) fn remarks(connection: &Connection) -> Result<BTreeMap<String, Vec<String>>> {
    let mut statement = connection.prepare_cached("SELECT path, remarks FROM files WHERE remarks IS NOT NULL")?;
    let rows = statement.query_and_then([], |row| -> Result<(String, Vec<String>)> {
        let text: String = row.get(1)?;
        Ok((row.get(0)?, serde_json::from_str(&text)?))
    })?;
    rows.collect()
}

fn file_row(row: &Row<'_>) -> Result<FileRow> {
    let detail = row.get(6)?;
    let state = match row.get::<_, i64>(5)? {
        LOG => FileState::Log(detail),
        COPY => FileState::CopyOf(detail),
        SKIPPED => FileState::Skipped(detail),
        BROKEN => FileState::Broken(detail),
        _ => return Err(Error::Damaged),
    };
    let stamp =
        FileStamp { path: row.get(0)?, size: natural(row.get(1)?), mtime_ns: row.get(2)?, digest: row.get(3)?, source: row.get(4)? };
    Ok(FileRow { stamp, state })
}

pub(super) fn run_no(connection: &Connection, run: &str) -> Result<Option<i64>> {
    number(connection, "SELECT run_no FROM runs_m WHERE run_id = ?1", run)
}

pub(super) fn eval_no(connection: &Connection, id: &str) -> Result<Option<i64>> {
    number(connection, "SELECT eval_no FROM evaluations_m WHERE id = ?1", id)
}

pub(super) fn arm_no(connection: &Connection, name: &str) -> Result<Option<i64>> {
    number(connection, "SELECT arm_no FROM arms_m WHERE name = ?1", name)
}

/// The arm that `name` counts as, where a log has brought it.
pub(super) fn effective_arm_no(connection: &Connection, name: &str) -> Result<Option<i64>> {
    number(connection, "SELECT effective_no FROM arms_m WHERE name = ?1 AND effective_no IS NOT NULL", name)
}

pub(super) fn case_no(connection: &Connection, eval_no: i64, id: &str) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT case_no FROM cases_m WHERE eval_no = ?1 AND id = ?2")?;
    Ok(statement.query_row(params![eval_no, id], |row| row.get(0)).optional()?)
}

fn number(connection: &Connection, sql: &str, key: &str) -> Result<Option<i64>> {
    Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

/// The number of an evaluation, given now if it has none.
pub(super) fn give_eval_no(connection: &Connection, id: &str) -> Result<i64> {
    if let Some(number) = eval_no(connection, id)? {
        return Ok(number);
    }
    connection.prepare_cached("INSERT INTO evaluations_m (id) VALUES (?1)")?.execute([id])?;
    Ok(connection.last_insert_rowid())
}

/// The number of an arm's name, given now if it has none, together with that of its declared name.
pub(super) fn give_arm_no(connection: &Connection, declared: &Declared, name: &str) -> Result<i64> {
    let number = bare_arm_no(connection, name)?;
    let effective = match declared.arm_name(name) {
        same if same == name => number,
        other => bare_arm_no(connection, other)?,
    };
    let sql = "UPDATE arms_m SET effective_no = ?2 WHERE arm_no = ?1 AND effective_no IS NOT ?2";
    connection.prepare_cached(sql)?.execute([number, effective])?;
    Ok(number)
}

fn bare_arm_no(connection: &Connection, name: &str) -> Result<i64> {
    if let Some(number) = arm_no(connection, name)? {
        return Ok(number);
    }
    connection.prepare_cached("INSERT INTO arms_m (name) VALUES (?1)")?.execute([name])?;
    Ok(connection.last_insert_rowid())
}

/// Things by row number. The numbers are the store's own, so nobody can choose them to collide, and 10,000 cells ask 60,000 times.
pub(super) type ByNumber<T> = HashMap<i64, T, BuildHasherDefault<NumberHasher>>;

/// Spreads consecutive numbers over the table by one multiplication.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_i64(i64::from(*byte)));
    }

    fn write_i64(&mut self, number: i64) {
        let mixed = (self.0 ^ number.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Names by number, read as they are met.
pub(super) struct Names<'a> {
    connection: &'a Connection,
    sql: &'static str,
    known: ByNumber<String>,
}

impl<'a> Names<'a> {
    pub(super) fn evaluations(connection: &'a Connection) -> Self {
        Self { connection, sql: "SELECT id FROM evaluations_m WHERE eval_no = ?1", known: ByNumber::default() }
    }

    pub(super) fn arms(connection: &'a Connection) -> Self {
        Self { connection, sql: "SELECT name FROM arms_m WHERE arm_no = ?1", known: ByNumber::default() }
    }

    pub(super) fn cases(connection: &'a Connection) -> Self {
        Self { connection, sql: "SELECT id FROM cases_m WHERE case_no = ?1", known: ByNumber::default() }
    }

    pub(super) fn get(&mut self, number: i64) -> Result<&str> {
        use std::collections::hash_map::Entry;
        match self.known.entry(number) {
            Entry::Occupied(held) => Ok(held.into_mut().as_str()),
            Entry::Vacant(free) => {
                let name: String = self.connection.prepare_cached(self.sql)?.query_row([number], |row| row.get(0))?;
                Ok(free.insert(name).as_str())
            }
        }
    }
}

/// The evaluations whose id contains `part`, ignoring case in every script. The table is small: one row per id ever seen.
pub(super) fn evaluations_containing(connection: &Connection, part: &str) -> Result<Vec<(i64, String)>> {
    let part = part.to_lowercase();
    let mut statement = connection.prepare_cached("SELECT eval_no, id FROM evaluations_m ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(1)?;
        if part.is_empty() || id.to_lowercase().contains(&part) {
            out.push((row.get(0)?, id));
        }
    }
    Ok(out)
}

/// A word's place in the list of its type.
fn place<T: PartialEq>(all: &[T], word: &T) -> i64 {
    all.iter().position(|other| other == word).and_then(|place| i64::try_from(place).ok()).unwrap_or(-1)
}

fn at<T: Copy>(all: &[T], place: i64) -> Result<T> {
    usize::try_from(place).ok().and_then(|place| all.get(place).copied()).ok_or(Error::Damaged)
}

/// Types that are stored as their place in the type's list.
pub(super) trait Word: Sized {
    fn code(&self) -> i64;
    fn from_code(code: i64) -> Result<Self>;
}

macro_rules! words {
    ($($type:ty => $all:expr;)*) => {
        $(impl Word for $type {
            fn code(&self) -> i64 {
                place(&$all, self)
            }
            fn from_code(code: i64) -> Result<Self> {
                at(&$all, code)
            }
        })*
    };
}

words! {
    Outcome => Outcome::ALL;
    Verdict => Verdict::ALL;
    RunStatus => RunStatus::ALL;
    Kind => [Kind::Recorded, Kind::Scratch];
    Pick => Pick::ALL;
    AnalysisSource => AnalysisSource::ALL;
    EvaluationStatus => EvaluationStatus::ALL;
}

/// A count as SQLite holds integers; what does not fit stands at the end of the range.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A stored count; a negative one cannot have been written.
pub(super) fn natural(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn small(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn time(millis: Option<i64>) -> Option<Timestamp> {
    millis.map(Timestamp::from_millis)
}

pub(super) fn millis(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::millis)
}
