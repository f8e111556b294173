//! The index of words: what new logs hold comes in by steps of its own, what a removed log held goes with it.
//!
//! Promises: importing writes one row a log for it; a step is bounded in bytes; a case's texts are read once, however many logs bring them; of what
//! was removed no word is left.
//! Does not: keep texts: only which words stand where.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Row, STEP_BYTES, excerpt};
use crate::{
    domain::{log::LogHeader, words::WordSet},
    store::{Result, sqlite::attempts},
};

/// Marks a log that was just written.
pub(in crate::store::sqlite) fn mark(connection: &Connection, log_no: i64) -> Result<()> {
    connection.prepare_cached("INSERT OR REPLACE INTO unsearched_m (log_no, after) VALUES (?1, 0)")?.execute([log_no])?;
    Ok(())
}

/// Marks a log whose names have changed: it is read again.
pub(in crate::store::sqlite) fn mark_again(connection: &Connection, log_no: i64) -> Result<()> {
    // One that nobody has read yet stays so.
    connection.prepare_cached("INSERT INTO unsearched_m (log_no, after) VALUES (?1, -1) ON CONFLICT DO NOTHING")?.execute([log_no])?;
    Ok(())
}

/// Takes all words of a log out, before it is removed: its attempts', and those of cases whose texts are its.
pub(in crate::store::sqlite) fn forget(connection: &Connection, log_no: i64) -> Result<()> {
    let after: Option<i64> =
        connection.prepare_cached("SELECT after FROM unsearched_m WHERE log_no = ?1")?.query_row([log_no], |row| row.get(0)).optional()?;
    connection.prepare_cached("DELETE FROM unsearched_m WHERE log_no = ?1")?.execute([log_no])?;
    if after == Some(0) {
        return Ok(());
    }
    let attempts: Vec<(i64, i64)> = {
        let mut statement = connection.prepare_cached("SELECT attempt_no, case_no FROM attempts_m WHERE log_no = ?1")?;
        let rows = statement.query_map([log_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut delete = connection.prepare_cached("DELETE FROM search_m WHERE rowid = ?1")?;
    delete.execute([Row::LogNames.of(log_no)])?;
    let mut case = connection.prepare_cached("DELETE FROM searched_cases_m WHERE case_no = ?1")?;
    for (attempt_no, case_no) in attempts {
        delete.execute([Row::Reasons.of(attempt_no)])?;
        delete.execute([Row::Transcript.of(attempt_no)])?;
        // Another log that has the case brings it back when it is next read; until then its name is not found, and no text of a removed log is.
        if case.execute([case_no])? > 0 {
            delete.execute([Row::CaseNames.of(case_no)])?;
            delete.execute([Row::CaseTexts.of(case_no)])?;
            connection.prepare_cached(AGAIN)?.execute([case_no, log_no])?;
        }
    }
    Ok(())
}

/// A case that lost its rows is read again: kept among the logs to read, as its own number below 0.
const AGAIN: &str = "INSERT OR IGNORE INTO unsearched_m (log_no, after) SELECT -?1, 0
    WHERE EXISTS (SELECT 1 FROM attempts_m WHERE case_no = ?1 AND log_no <> ?2)";

/// Whether something is not in the index yet.
pub(in crate::store::sqlite) fn is_behind(connection: &Connection) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM unsearched_m LIMIT 1")?.exists([])?)
}

/// How many logs are not, or not all.
pub(super) fn behind(connection: &Connection) -> Result<u64> {
    let count = connection.prepare_cached("SELECT count(*) FROM unsearched_m WHERE log_no > 0")?.query_row([], |row| row.get(0))?;
    Ok(super::names::natural(count))
}

/// Brings the next texts in, some [`STEP_BYTES`] of them.
pub(in crate::store::sqlite) fn step(connection: &Connection) -> Result<()> {
    let mut writer = Writer { connection, words: WordSet::default(), left: STEP_BYTES, tails: attempts::Ends::default() };
    let next = "SELECT log_no, after FROM unsearched_m ORDER BY log_no LIMIT 1";
    while writer.left > 0 {
        let found = connection.prepare_cached(next)?.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
        let Some((log_no, after)) = found else { return Ok(()) };
        let whole = if log_no < 0 { writer.case(-log_no).map(|()| true)? } else { writer.log(log_no, after)? };
        if whole {
            connection.prepare_cached("DELETE FROM unsearched_m WHERE log_no = ?1")?.execute([log_no])?;
        }
    }
    Ok(())
}

struct Writer<'a> {
    connection: &'a Connection,
    words: WordSet,
    left: usize,
    tails: attempts::Ends,
}

impl Writer<'_> {
    /// Brings in a log from its attempt `after` on; whether it is whole.
    fn log(&mut self, log_no: i64, after: i64) -> Result<bool> {
        if after <= 0 {
            self.names(log_no)?;
        }
        let sql = "SELECT attempt_no, case_no FROM attempts_m WHERE log_no = ?1 AND attempt_no > ?2 ORDER BY attempt_no";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([log_no, after])?;
        while let Some(row) = rows.next()? {
            let (attempt_no, case_no) = (row.get(0)?, row.get(1)?);
            self.case(case_no)?;
            self.attempt(attempt_no)?;
            if self.left == 0 {
                let sql = "UPDATE unsearched_m SET after = ?2 WHERE log_no = ?1";
                self.connection.prepare_cached(sql)?.execute([log_no, attempt_no])?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn put(&mut self, row: i64) -> Result<()> {
        let words = self.words.take();
        if !words.is_empty() {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO search_m (rowid, words) VALUES (?1, ?2)")?
                .execute(params![row, words])?;
        }
        Ok(())
    }

    fn names(&mut self, log_no: i64) -> Result<()> {
        let sql = "SELECT l.header, r.run_id, r.round, r.branch FROM logs_m l JOIN runs_m r ON r.run_no = l.run_no WHERE l.log_no = ?1";
        let found = self.connection.prepare_cached(sql)?.query_row([log_no], |row| {
            let names: [Option<String>; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((row.get::<_, String>(0)?, names))
        });
        let Some((header, names)) = found.optional()? else { return Ok(()) };
        log_names(&header, names.into_iter().flatten())?.iter().for_each(|text| self.words.add(text));
        self.put(Row::LogNames.of(log_no))
    }

    /// Brings in a case, where its texts are others than were read.
    fn case(&mut self, case_no: i64) -> Result<()> {
        let sql = "SELECT id, input, target FROM cases_m WHERE case_no = ?1";
        let found = self
            .connection
            .prepare_cached(sql)?
            .query_row([case_no], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?)));
        let Some((id, input, target)) = found.optional()? else { return Ok(()) };
        let mut hasher = DefaultHasher::new();
        (&input, &target).hash(&mut hasher);
        let digest = hasher.finish().cast_signed();
        let known = "SELECT 1 FROM searched_cases_m WHERE case_no = ?1 AND digest = ?2";
        if self.connection.prepare_cached(known)?.exists([case_no, digest])? {
            return Ok(());
        }
        self.words.add(&id);
        self.put(Row::CaseNames.of(case_no))?;
        for text in [Some(&id), input.as_ref(), target.as_ref()].into_iter().flatten() {
            self.spend(text.len());
            self.words.add(text);
        }
        self.put(Row::CaseTexts.of(case_no))?;
        let sql = "INSERT OR REPLACE INTO searched_cases_m (case_no, digest) VALUES (?1, ?2)";
        self.connection.prepare_cached(sql)?.execute([case_no, digest])?;
        Ok(())
    }

    fn attempt(&mut self, attempt_no: i64) -> Result<()> {
        for text in excerpt::reasons(self.connection, attempt_no)? {
            self.spend(text.len());
            self.words.add(&text);
        }
        self.put(Row::Reasons.of(attempt_no))?;
        let (words, left) = (&mut self.words, &mut self.left);
        attempts::each_line(self.connection, attempt_no, &mut self.tails, |_, line| {
            *left = left.saturating_sub(line.len());
            words.add_line(line);
            true
        })?;
        self.put(Row::Transcript.of(attempt_no))
    }

    fn spend(&mut self, bytes: usize) {
        // An attempt without texts costs something too.
        self.left = self.left.saturating_sub(bytes + 64);
    }
}

/// What is said of a log by names: its run's, and its own id, tags and arms.
pub(super) fn log_names(header: &str, names: impl Iterator<Item = String>) -> Result<Vec<String>> {
    let header: LogHeader = serde_json::from_str(header)?;
    let own = std::iter::once(header.log_id).chain(header.tags).chain(header.arms.into_iter().map(|arm| arm.name));
    Ok(names.chain(own).collect())
}
