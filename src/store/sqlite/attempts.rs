//! Reads attempts of one run: by cell, by name, by cause; and their transcripts.
//!
//! Promises: only attempts that count are seen; keys are looked up whole; a page of a transcript inflates only the chunks that it touches.
//! Does not: number attempts or give keys.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    extras,
    names::{self, Names, Word as _},
};
use crate::{
    domain::{
        attempt::{Check, Usage},
        cell::CellKey,
        key,
        outcome::Outcome,
    },
    store::{AttemptQuery, AttemptRow, Beginning, Cause, Lines, Result},
    transcript::{self, Chunk, Tails},
};

/// As many as `find` gives: enough to say "several" and to list five.
const FOUND_MAX: usize = 6;

const COLUMNS: &str = "a.attempt_no, a.eval_no, a.arm_no, c.id, a.key, a.n, a.outcome, a.score, a.input_tokens, a.output_tokens, a.total_tokens,
    a.cache_read_tokens, a.cache_write_tokens, a.reasoning_tokens, a.cost_usd, a.duration_ms, a.started_at, a.error, a.limit_hit, a.retries, a.lines, a.messages";

/// Reads rows of [`COLUMNS`].
struct Reader<'a> {
    connection: &'a Connection,
    evaluations: Names<'a>,
    arms: Names<'a>,
    checks: bool,
    rest: bool,
    out: Vec<AttemptRow>,
}

impl<'a> Reader<'a> {
    fn new(connection: &'a Connection, checks: bool, rest: bool) -> Self {
        Self { connection, evaluations: Names::evaluations(connection), arms: Names::arms(connection), checks, rest, out: Vec::new() }
    }

    /// Adds the attempts of the run that `filter` leaves; its values are numbered from 2.
    fn add(&mut self, run_no: i64, filter: &str, values: &[&dyn rusqlite::ToSql]) -> Result<()> {
        let sql = format!(
            "SELECT {COLUMNS} FROM attempts_m a JOIN cases_m c ON c.case_no = a.case_no WHERE a.run_no = ?1 AND a.n IS NOT NULL AND {filter}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let all: Vec<&dyn rusqlite::ToSql> = std::iter::once(&run_no as &dyn rusqlite::ToSql).chain(values.iter().copied()).collect();
        let mut rows = statement.query(all.as_slice())?;
        while let Some(row) = rows.next()? {
            let attempt = self.row(row)?;
            self.out.push(attempt);
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<AttemptRow> {
        let number = |at: usize| row.get::<_, Option<i64>>(at).map(|value| value.map(names::natural));
        let usage = Usage {
            input_tokens: number(8)?,
            output_tokens: number(9)?,
            total_tokens: number(10)?,
            cache_read_tokens: number(11)?,
            cache_write_tokens: number(12)?,
            reasoning_tokens: number(13)?,
        };
        Ok(AttemptRow {
            key: row.get(4)?,
            evaluation: self.evaluations.get(row.get(1)?)?.to_owned(),
            case: row.get(3)?,
            arm: self.arms.get(row.get(2)?)?.to_owned(),
            n: row.get(5)?,
            outcome: Outcome::from_code(row.get(6)?)?,
            score: row.get(7)?,
            checks: if self.checks { checks(self.connection, row.get(0)?)? } else { Vec::new() },
            usage,
            cost_usd: row.get(14)?,
            duration_ms: number(15)?,
            started_at: names::time(row.get(16)?),
            error: row.get(17)?,
            limit: row.get(18)?,
            retries: row.get(19)?,
            lines: names::natural(row.get(20)?),
            messages: names::natural(row.get(21)?),
            rest: if self.rest { Some(Box::new(extras::rest(self.connection, row.get(0)?)?)) } else { None },
        })
    }

    fn in_order(self) -> Vec<AttemptRow> {
        let mut out = self.out;
        out.sort_by(|a, b| {
            let order = |row: &AttemptRow| row.n;
            (&a.evaluation, &a.case, &a.arm).cmp(&(&b.evaluation, &b.case, &b.arm)).then_with(|| order(a).cmp(&order(b)))
        });
        out
    }
}

fn checks(connection: &Connection, attempt_no: i64) -> Result<Vec<Check>> {
    let sql = "SELECT name, kind, passed, value, label, answer, reason FROM checks_m WHERE attempt_no = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([attempt_no], |row| {
        Ok(Check {
            name: row.get(0)?,
            kind: row.get(1)?,
            passed: row.get(2)?,
            value: row.get(3)?,
            label: row.get(4)?,
            answer: row.get(5)?,
            reason: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn read(connection: &Connection, run: &str, query: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    let mut reader = Reader::new(connection, query.checks, query.rest);
    let bits = query.outcomes.iter().fold(0_i64, |bits, outcome| bits | (1 << outcome.code().clamp(0, 62)));
    let outcomes = "(?2 = 0 OR (1 << a.outcome) & ?2)";
    let part = query.evaluation_contains.map(str::to_lowercase).filter(|part| !part.is_empty());
    match (query.keys, part) {
        (Some(keys), part) => {
            let wanted = keys.iter().filter(|key| part.as_ref().is_none_or(|part| key.evaluation.to_lowercase().contains(part)));
            by_keys(&mut reader, run_no, bits, wanted)?;
        }
        (None, Some(part)) => {
            let sql = "SELECT count(*) FROM run_evaluations_m WHERE run_no = ?1 AND eval_no = ?2";
            for (eval_no, _) in names::evaluations_containing(connection, &part)? {
                if connection.prepare_cached(sql)?.query_row([run_no, eval_no], |row| row.get::<_, i64>(0))? > 0 {
                    reader.add(run_no, &format!("{outcomes} AND a.eval_no = ?3"), &[&bits, &eval_no])?;
                }
            }
        }
        (None, None) => reader.add(run_no, outcomes, &[&bits])?,
    }
    Ok(reader.in_order())
}

/// Adds the attempts of each key once; a key of an evaluation covers those of its cases.
fn by_keys<'k>(reader: &mut Reader<'_>, run_no: i64, bits: i64, keys: impl Iterator<Item = &'k CellKey>) -> Result<()> {
    let connection = reader.connection;
    let mut wanted = HashSet::new();
    for key in keys {
        let Some(eval_no) = names::eval_no(connection, &key.evaluation)? else { continue };
        let Some(arm_no) = names::arm_no(connection, &key.arm)? else { continue };
        let case_no = match &key.case {
            Some(case) => match names::case_no(connection, eval_no, case)? {
                Some(case_no) => Some(case_no),
                None => continue,
            },
            None => None,
        };
        wanted.insert((eval_no, arm_no, case_no));
    }
    for (eval_no, arm_no, case_no) in &wanted {
        let filter = "(?2 = 0 OR (1 << a.outcome) & ?2) AND a.eval_no = ?3 AND a.arm_no = ?4";
        match case_no {
            None => reader.add(run_no, filter, &[&bits, eval_no, arm_no])?,
            Some(_) if wanted.contains(&(*eval_no, *arm_no, None)) => {}
            Some(case_no) => reader.add(run_no, &format!("{filter} AND a.case_no = ?5"), &[&bits, eval_no, arm_no, case_no])?,
        }
    }
    Ok(())
}

pub(super) fn find(connection: &Connection, run: &str, name: &str) -> Result<Vec<AttemptRow>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    let mut reader = Reader::new(connection, true, false);
    reader.add(run_no, "a.key = ?2", &[&name])?;
    // `+1` and `01` parse too, and are no number of an attempt.
    let short = name.rsplit_once('#').and_then(|(id, text)| text.parse::<u32>().ok().filter(|n| n.to_string() == text).map(|n| (id, n)));
    if let (true, Some((id, n))) = (reader.out.is_empty(), short) {
        for eval_no in of_name(connection, run_no, id)? {
            reader.add(run_no, "a.eval_no = ?2 AND a.n = ?3", &[&eval_no, &n])?;
        }
    }
    let mut out = reader.in_order();
    out.truncate(FOUND_MAX);
    Ok(out)
}

/// The run's evaluations that are written `id` or, as in keys, escaped so.
fn of_name(connection: &Connection, run_no: i64, id: &str) -> Result<Vec<i64>> {
    let sql = "SELECT e.eval_no, e.id FROM run_evaluations_m r JOIN evaluations_m e ON e.eval_no = r.eval_no WHERE r.run_no = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run_no])?;
    let escaped = format!("{id}#1");
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let other: String = row.get(1)?;
        if other == id || key::attempt_key(&other, "", None, 1) == escaped {
            out.push(row.get(0)?);
        }
    }
    Ok(out)
}

pub(super) fn causes(connection: &Connection, run: &str, evaluation_contains: Option<&str>) -> Result<Vec<Cause>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    // All attempts of a signature ended alike, so one of them says how.
    let sql = "SELECT s.signature, e.id, s.check_name, s.reason, g.attempts,
        (SELECT o.outcome FROM attempts_m o WHERE o.run_no = ?1 AND o.signature_no = g.signature_no AND o.n IS NOT NULL LIMIT 1) FROM
        (SELECT signature_no, count(*) AS attempts FROM attempts_m WHERE run_no = ?1 AND signature_no IS NOT NULL AND n IS NOT NULL
         GROUP BY signature_no) g
        JOIN signatures_m s ON s.signature_no = g.signature_no JOIN evaluations_m e ON e.eval_no = s.eval_no
        ORDER BY g.attempts DESC, s.signature";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run_no])?;
    let part = evaluation_contains.unwrap_or("").to_lowercase();
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let evaluation: String = row.get(1)?;
        if evaluation.to_lowercase().contains(&part) {
            let (signature, check, reason, attempts) = (row.get(0)?, row.get(2)?, row.get(3)?, names::natural(row.get(4)?));
            out.push(Cause { signature, evaluation, outcome: Outcome::from_code(row.get(5)?)?, check, reason, attempts });
        }
    }
    Ok(out)
}

/// The number of the attempt with `key`, and how many lines its transcript has.
fn with_lines(connection: &Connection, run: &str, key: &str) -> Result<Option<(i64, u64)>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(None) };
    let mut statement = connection.prepare_cached("SELECT attempt_no, lines FROM attempts_m WHERE run_no = ?1 AND key = ?2")?;
    Ok(statement.query_row(params![run_no, key], |row| Ok((row.get(0)?, names::natural(row.get(1)?)))).optional()?)
}

/// The number of the first line that stands in no chunk of the attempt's own.
fn own_lines(connection: &Connection, attempt_no: i64) -> Result<u64> {
    let sql = "SELECT first_line + lines FROM transcripts_m WHERE attempt_no = ?1 ORDER BY first_line DESC LIMIT 1";
    Ok(connection.prepare_cached(sql)?.query_row([attempt_no], |row| row.get(0)).optional()?.map_or(0, names::natural))
}

/// The attempt's lines that stand in a chunk with others'.
fn tail(connection: &Connection, attempt_no: i64) -> Result<String> {
    shared(connection, attempt_no)?.map_or_else(|| Ok(String::new()), |chunk| Ok(chunk.tail(attempt_no)?))
}

/// The chunk in which the attempt's last lines stand, where it has any there.
fn shared(connection: &Connection, attempt_no: i64) -> Result<Option<Tails>> {
    let sql = "SELECT first_no, last_no, data FROM shared_m WHERE first_no <= ?1 ORDER BY first_no DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([attempt_no])?;
    match rows.next()? {
        Some(row) if row.get::<_, i64>(1)? >= attempt_no => Ok(Some(Tails { first: row.get(0)?, last: row.get(1)?, data: row.get(2)? })),
        _ => Ok(None),
    }
}

/// Hands each line of an attempt's transcript to `take`, with its number, until that says to stop.
pub(super) fn each_line(connection: &Connection, attempt_no: i64, ends: &mut Ends, mut take: impl FnMut(u64, &str) -> bool) -> Result<()> {
    let sql = "SELECT first_line, lines, data FROM transcripts_m WHERE attempt_no = ?1 ORDER BY first_line";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([attempt_no])?;
    let mut number = 0;
    while let Some(row) = rows.next()? {
        let chunk = Chunk { first_line: names::natural(row.get(0)?), lines: row.get(1)?, data: row.get(2)? };
        for line in chunk.text()?.lines() {
            if !take(number, line) {
                return Ok(());
            }
            number += 1;
        }
    }
    for line in ends.of(connection, attempt_no)?.lines() {
        if !take(number, line) {
            return Ok(());
        }
        number += 1;
    }
    Ok(())
}

/// The ends of transcripts that stand in one chunk, kept for whoever reads one after the other.
#[derive(Default)]
pub(super) struct Ends {
    first: i64,
    last: i64,
    ends: Vec<(i64, String)>,
}

impl Ends {
    fn of(&mut self, connection: &Connection, attempt_no: i64) -> Result<&str> {
        if self.ends.is_empty() || !(self.first..=self.last).contains(&attempt_no) {
            let Some(chunk) = shared(connection, attempt_no)? else { return Ok("") };
            *self = Self { first: chunk.first, last: chunk.last, ends: chunk.all()? };
        }
        let at = self.ends.binary_search_by_key(&attempt_no, |(number, _)| *number).ok();
        Ok(at.and_then(|at| self.ends.get(at)).map_or("", |(_, end)| end.as_str()))
    }
}

pub(super) fn text(connection: &Connection, run: &str, key: &str, bytes_max: usize) -> Result<Option<Beginning>> {
    let Some((attempt_no, total)) = with_lines(connection, run, key)? else { return Ok(None) };
    let mut out = Beginning { total, ..Beginning::default() };
    let mut fits = |line: &str| {
        let fits = out.text.len() + line.len() < bytes_max;
        if fits {
            out.text.push_str(line);
            out.text.push('\n');
            out.lines += 1;
        }
        fits
    };
    let sql = "SELECT first_line, lines, data FROM transcripts_m WHERE attempt_no = ?1 ORDER BY first_line";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([attempt_no])?;
    let mut own = 0;
    while let Some(row) = rows.next()? {
        let chunk = Chunk { first_line: names::natural(row.get(0)?), lines: row.get(1)?, data: row.get(2)? };
        if !chunk.unpack()?.iter().all(|line| fits(line)) {
            return Ok(Some(out));
        }
        own = chunk.first_line + u64::from(chunk.lines);
    }
    if own < total {
        tail(connection, attempt_no)?.lines().all(fits);
    }
    Ok(Some(out))
}

pub(super) fn transcript(connection: &Connection, run: &str, key: &str, offset: u64, limit: u64) -> Result<Option<Lines>> {
    let Some((attempt_no, total)) = with_lines(connection, run, key)? else { return Ok(None) };
    let sql = "SELECT first_line, lines, data FROM transcripts_m
               WHERE attempt_no = ?1 AND first_line < ?2 AND first_line + lines > ?3 ORDER BY first_line";
    let end = offset.saturating_add(limit).min(total);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![attempt_no, names::int(end), names::int(offset)], |row| {
        Ok(Chunk { first_line: names::natural(row.get(0)?), lines: row.get(1)?, data: row.get(2)? })
    })?;
    let chunks: Vec<Chunk> = rows.collect::<rusqlite::Result<_>>()?;
    let mut lines = transcript::page(&chunks, offset, limit)?;
    let own = own_lines(connection, attempt_no)?;
    if own < end {
        lines.extend(transcript::lines(&tail(connection, attempt_no)?, own, offset, limit).map(str::to_owned));
    }
    Ok(Some(Lines { total, lines }))
}
