//! What few histories hold: answers, skills, context use, pairs, analyses; and what a run's logs say besides (tags, metadata, metrics).
//!
//! Promises: rows go with the attempt or log that they belong to; a pair is read only where both its attempts count.
//! Does not: join what analysts ask for (the open views do).

use std::collections::HashMap;

use rusqlite::{Connection, params};
use serde_json::value::RawValue;

use super::names::{self, Word as _};
use crate::{
    domain::{
        attempt::Attempt,
        extras::{Analysis, AnalysisSource, Answer, ContextUse, Extras, Pair, Pick, SkillFile, SkillRead},
        log::LogHeader,
    },
    store::{AttemptRest, Error, Result, RunExtras},
};

/// What a log's removal takes with it.
pub(super) const REMOVE: [&str; 6] = [
    "DELETE FROM answers_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM skill_reads_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM contexts_m WHERE attempt_no IN (SELECT attempt_no FROM attempts_m WHERE log_no = ?1)",
    "DELETE FROM skill_files_m WHERE log_no = ?1",
    "DELETE FROM pairs_m WHERE log_no = ?1",
    "DELETE FROM analyses_m WHERE log_no = ?1",
];

/// Writes what an attempt holds besides.
pub(super) fn attempt(connection: &Connection, attempt_no: i64, attempt: &Attempt) -> Result<()> {
    let sql = "INSERT INTO answers_m (attempt_no, seq, question, answer, passed, judge) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for (seq, Answer { question, answer, passed, judge }) in (0_i64..).zip(&attempt.answers) {
        connection.prepare_cached(sql)?.execute(params![attempt_no, seq, question, answer, passed, judge])?;
    }
    let sql = "INSERT INTO skill_reads_m (attempt_no, seq, skill, file, reads, first_turn) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for (seq, SkillRead { skill, file, reads, first_turn }) in (0_i64..).zip(&attempt.skill_reads) {
        connection.prepare_cached(sql)?.execute(params![attempt_no, seq, skill, file, reads, first_turn])?;
    }
    if let Some(ContextUse { tokens_peak, window_tokens }) = attempt.context {
        let sql = "INSERT INTO contexts_m (attempt_no, tokens_peak, window_tokens) VALUES (?1, ?2, ?3)";
        let values = params![attempt_no, names::int(tokens_peak), window_tokens.map(names::int)];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// Writes what a log holds besides; `labels` are its attempts by the names that its pairs give them.
pub(super) fn log(connection: &Connection, log_no: i64, extras: &Extras, labels: &HashMap<String, i64>) -> Result<()> {
    let sql = "INSERT INTO skill_files_m (log_no, seq, skill, file, bytes, sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for (seq, SkillFile { skill, file, bytes, sha256 }) in (0_i64..).zip(&extras.skill_files) {
        connection.prepare_cached(sql)?.execute(params![log_no, seq, skill, file, names::int(*bytes), sha256])?;
    }
    for (seq, pair) in (0_i64..).zip(&extras.pairs) {
        put_pair(connection, log_no, seq, pair, labels)?;
    }
    put_analyses(connection, log_no, &extras.analyses, None)
}

/// Writes analyses; `path` is the file of the record that they stand beside, where that is not the log's own.
pub(super) fn put_analyses(connection: &Connection, log_no: i64, analyses: &[Analysis], path: Option<&str>) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO analyses_m (log_no, source, file, created_at, doc, path) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for Analysis { file, source, created_at, doc } in analyses {
        connection.prepare_cached(sql)?.execute(params![log_no, source.code(), file, created_at.millis(), doc.get(), path])?;
    }
    Ok(())
}

/// Takes out what a record's file brought while it gave way; whether there was anything.
pub(super) fn drop_analyses(connection: &Connection, path: &str) -> Result<bool> {
    Ok(connection.prepare_cached("DELETE FROM analyses_m WHERE path = ?1")?.execute([path])? > 0)
}

fn put_pair(connection: &Connection, log_no: i64, seq: i64, pair: &Pair, labels: &HashMap<String, i64>) -> Result<()> {
    let named = |label: &str| {
        let unknown =
            || Error::Import(format!("a pair of evaluation {} names the attempt {label}, which the log does not hold", pair.evaluation));
        labels.get(label).copied().ok_or_else(unknown)
    };
    let sql = "INSERT INTO pairs_m (log_no, seq, eval_no, question, a_attempt_no, b_attempt_no, picked, picked_swapped, judge)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute(params![
        log_no,
        seq,
        names::give_eval_no(connection, &pair.evaluation)?,
        pair.question,
        named(&pair.a)?,
        named(&pair.b)?,
        pair.picked.code(),
        pair.picked_swapped.map(|pick| pick.code()),
        pair.judge,
    ])?;
    Ok(())
}

const REST: &str = "SELECT a.uuid, a.working_ms, o.output, c.input, c.target, x.tokens_peak, x.window_tokens,
    EXISTS (SELECT 1 FROM answers_m w WHERE w.attempt_no = a.attempt_no), EXISTS (SELECT 1 FROM skill_reads_m w WHERE w.attempt_no = a.attempt_no),
    (SELECT g.name FROM case_groups_m g CROSS JOIN logs_m l ON l.log_no = g.log_no WHERE g.case_no = a.case_no AND l.run_no = a.run_no
     ORDER BY l.created_at DESC, l.log_id DESC LIMIT 1) FROM attempts_m a
    JOIN cases_m c ON c.case_no = a.case_no LEFT JOIN outputs_m o ON o.attempt_no = a.attempt_no
    LEFT JOIN contexts_m x ON x.attempt_no = a.attempt_no WHERE a.attempt_no = ?1";

/// What an attempt holds besides.
pub(super) fn rest(connection: &Connection, attempt_no: i64) -> Result<AttemptRest> {
    let (mut rest, answers, reads) = connection.prepare_cached(REST)?.query_row([attempt_no], |row| {
        let tokens: Option<i64> = row.get(5)?;
        let window: Option<i64> = row.get(6)?;
        let context = |peak| ContextUse { tokens_peak: names::natural(peak), window_tokens: window.map(names::natural) };
        let rest = AttemptRest {
            uuid: row.get(0)?,
            working_ms: row.get::<_, Option<i64>>(1)?.map(names::natural),
            output: row.get(2)?,
            input: row.get(3)?,
            target: row.get(4)?,
            group: row.get(9)?,
            context: tokens.map(context),
            ..AttemptRest::default()
        };
        Ok((rest, row.get::<_, bool>(7)?, row.get::<_, bool>(8)?))
    })?;
    if answers {
        let sql = "SELECT question, answer, passed, judge FROM answers_m WHERE attempt_no = ?1 ORDER BY seq";
        rest.answers = all(connection, sql, attempt_no, |row| {
            Ok(Answer { question: row.get(0)?, answer: row.get(1)?, passed: row.get(2)?, judge: row.get(3)? })
        })?;
    }
    if reads {
        let sql = "SELECT skill, file, reads, first_turn FROM skill_reads_m WHERE attempt_no = ?1 ORDER BY seq";
        rest.skill_reads = all(connection, sql, attempt_no, |row| {
            Ok(SkillRead { skill: row.get(0)?, file: row.get(1)?, reads: row.get(2)?, first_turn: row.get(3)? })
        })?;
    }
    Ok(rest)
}

fn all<T>(connection: &Connection, sql: &str, number: i64, read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([number], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const SKILL_FILES: &str = "SELECT s.skill, s.file, s.bytes, s.sha256 FROM logs_m l JOIN skill_files_m s ON s.log_no = l.log_no
    WHERE l.run_no = ?1 ORDER BY l.created_at, l.log_id, s.seq";
const PAIRS: &str = "SELECT e.id, p.question, a.key, b.key, p.picked, p.picked_swapped, p.judge FROM logs_m l JOIN pairs_m p ON p.log_no = l.log_no
    JOIN evaluations_m e ON e.eval_no = p.eval_no JOIN attempts_m a ON a.attempt_no = p.a_attempt_no JOIN attempts_m b ON b.attempt_no = p.b_attempt_no
    WHERE l.run_no = ?1 AND a.n IS NOT NULL AND b.n IS NOT NULL ORDER BY l.created_at, l.log_id, p.seq";

/// What the run's logs say besides.
pub(super) fn of_run(connection: &Connection, run: &str) -> Result<Option<RunExtras>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(None) };
    let sql = "SELECT header FROM logs_m WHERE run_no = ?1 ORDER BY created_at, log_id";
    let headers: Vec<String> = all(connection, sql, run_no, |row| row.get(0))?;
    let headers: Vec<LogHeader> = headers.iter().map(|text| serde_json::from_str(text)).collect::<std::result::Result<_, _>>()?;
    let mut extras = RunExtras::together(headers);
    for file in all(connection, SKILL_FILES, run_no, |row| {
        Ok(SkillFile { skill: row.get(0)?, file: row.get(1)?, bytes: row.get::<_, i64>(2).map(names::natural)?, sha256: row.get(3)? })
    })? {
        extras.add_skill_file(file);
    }
    let mut statement = connection.prepare_cached(PAIRS)?;
    let pairs = statement.query_and_then([run_no], |row| -> Result<Pair> {
        let swapped: Option<i64> = row.get(5)?;
        Ok(Pair {
            evaluation: row.get(0)?,
            question: row.get(1)?,
            a: row.get(2)?,
            b: row.get(3)?,
            picked: Pick::from_code(row.get(4)?)?,
            picked_swapped: swapped.map(Pick::from_code).transpose()?,
            judge: row.get(6)?,
        })
    })?;
    extras.pairs = pairs.collect::<Result<_>>()?;
    Ok(Some(extras))
}

const ANALYSES: &str = "SELECT d.file, d.source, d.created_at, d.doc FROM logs_m l JOIN analyses_m d ON d.log_no = l.log_no
    WHERE l.run_no = ?1 ORDER BY d.created_at DESC, d.source, d.file, l.log_id";

/// The run's analyses, newest first; saved ones before cached ones of the same time.
pub(super) fn analyses(connection: &Connection, run: &str) -> Result<Vec<Analysis>> {
    let Some(run_no) = names::run_no(connection, run)? else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(ANALYSES)?;
    let rows = statement.query_and_then([run_no], |row| -> Result<Analysis> {
        Ok(Analysis {
            file: row.get(0)?,
            source: AnalysisSource::from_code(row.get(1)?)?,
            created_at: crate::domain::time::Timestamp::from_millis(row.get(2)?),
            doc: RawValue::from_string(row.get(3)?)?,
        })
    })?;
    rows.collect()
}
