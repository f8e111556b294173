//! What stands around the words in an attempt's texts: read and inflated only for what is shown.
//!
//! Promises: what must stand side by side does, in what is shown; bytes that are inflated for one search are bounded, and then an attempt is
//! shown without what stands there, or, where that cannot be known, not at all.
//! Does not: look anything up in the index.

use rusqlite::Connection;

use super::super::attempts;
use crate::{
    domain::words::{Look, Question, each_text},
    store::{Hit, Place, Result},
};

/// Bytes of transcripts that one search inflates.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// A search's look at attempts' texts.
pub(super) struct Reading<'a> {
    connection: &'a Connection,
    question: &'a Question,
    left: usize,
    gave_up: bool,
    tails: attempts::Ends,
}

impl<'a> Reading<'a> {
    pub(super) fn new(connection: &'a Connection, question: &'a Question) -> Self {
        Self { connection, question, left: BYTES_MAX, gave_up: false, tails: attempts::Ends::default() }
    }

    /// Whether something was left out since too much had been inflated.
    pub(super) const fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether the attempt holds what the index says that it may; fills in where and in which words.
    pub(super) fn confirms(&mut self, hit: &mut Hit, attempt_no: i64) -> Result<bool> {
        if hit.place == Place::Reason {
            let texts = reasons(self.connection, attempt_no)?;
            hit.snippet = texts.iter().find_map(|text| self.question.excerpt(text));
            return Ok(self.question.found_in(texts.iter().map(String::as_str)));
        }
        if self.left == 0 {
            // Without a phrase the index alone knows; with one nobody does.
            self.gave_up |= self.question.has_phrases();
            return Ok(!self.question.has_phrases());
        }
        self.transcript(hit, attempt_no)
    }

    fn transcript(&mut self, hit: &mut Hit, attempt_no: i64) -> Result<bool> {
        let mut look = Look::new(self.question);
        let phrases = self.question.has_phrases();
        let (left, question) = (&mut self.left, self.question);
        let mut placed = false;
        attempts::each_line(self.connection, attempt_no, &mut self.tails, |number, line| {
            *left = left.saturating_sub(line.len());
            each_text(line, |text| {
                if phrases {
                    look.see(text);
                }
                // The phrase's own place rather than that of one of its words before.
                if !placed
                    && let Some((excerpt, whole)) = question.found_at(text)
                    && (whole || hit.snippet.is_none())
                {
                    (hit.line, hit.snippet, placed) = (Some(number), Some(excerpt), whole);
                }
            });
            *left > 0 && !(placed && (!phrases || look.all()))
        })?;
        let found = !phrases || look.all();
        self.gave_up |= !found && self.left == 0;
        Ok(found)
    }
}

/// What is said of an attempt besides its transcript.
pub(super) fn reasons(connection: &Connection, attempt_no: i64) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let sql = "SELECT name, label, answer, reason FROM checks_m WHERE attempt_no = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([attempt_no])?;
    while let Some(row) = rows.next()? {
        for column in [3, 1, 2, 0] {
            out.extend(row.get::<_, Option<String>>(column)?);
        }
    }
    let sql = "SELECT a.error, a.limit_hit, (SELECT o.output FROM outputs_m o WHERE o.attempt_no = a.attempt_no) FROM attempts_m a
               WHERE a.attempt_no = ?1";
    let texts: [Option<String>; 3] =
        connection.prepare_cached(sql)?.query_row([attempt_no], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    out.extend(texts.into_iter().flatten());
    Ok(out)
}
