//! Writes one log as it came: header, evaluations, arms, attempts with checks and transcripts.
//!
//! Promises: attempts are pulled one by one, so memory is bounded by one of them; an error of the importer is an error here.
//! Does not: give keys or cells, or decide whether the log counts.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    extras, groups,
    names::{self, Word as _},
    regroup::{self, Touched},
};
use crate::{
    domain::{
        attempt::{Attempt, Check},
        declared::Declared,
        extras::Extras,
        grouping::{self, Copy},
        log::{ArmInfo, EvaluationInfo, LogHeader},
        outcome::Counts,
        signature,
    },
    store::{Error, LogChange, Result},
    transcript::Packed,
};

/// A log that was written.
pub(super) struct Kept {
    pub log_no: i64,
    /// What decides between it and other files of the same log; the path is the caller's to fill in.
    pub copy: Copy,
    pub counts: Counts,
    /// What was read besides.
    pub extras: Extras,
}

const INSERT_LOG: &str =
    "INSERT INTO logs_m (log_id, path, run_no, run_key, pinned, task_id, kind, status, created_at, started_at, completed_at,
    git, round, ancestors_no, header, record) VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// Writes the log; with `place` it joins its run before the attempts come, which saves moving them.
pub(super) fn log(connection: &Connection, declared: &Declared, change: LogChange<'_>, place: Option<&mut Touched>) -> Result<Kept> {
    let LogChange { file, kind, header, extras, pinned, ancestors, attempts } = change;
    let ancestors_no = give_ancestors(connection, &ancestors)?;
    connection.prepare_cached(INSERT_LOG)?.execute(params![
        header.log_id,
        file.path,
        header.run_key,
        pinned,
        header.task_id,
        kind.code(),
        header.status.code(),
        header.created_at.millis(),
        names::millis(header.started_at),
        names::millis(header.completed_at),
        header.git.as_ref().map(serde_json::to_string).transpose()?,
        header.round,
        ancestors_no,
        serde_json::to_string(&header)?,
        grouping::is_record(&header.format, pinned),
    ])?;
    let mut writer = Writer {
        connection,
        declared,
        header: &header,
        log_no: connection.last_insert_rowid(),
        run_no: 0,
        evaluations: HashMap::new(),
        arms: HashMap::new(),
        labels: HashMap::new(),
    };
    header.evaluations.iter().try_for_each(|info| writer.evaluation(info).map(drop))?;
    header.arms.iter().try_for_each(|info| writer.arm(info).map(drop))?;
    if let Some(touched) = place {
        regroup::place(connection, writer.log_no, touched)?;
        writer.run_no = connection.query_row("SELECT run_no FROM logs_m WHERE log_no = ?1", [writer.log_no], |row| row.get(0))?;
    }
    let mut counts = Counts::default();
    let mut written = 0_u64;
    for attempt in attempts {
        let attempt = attempt.map_err(Error::Import)?;
        writer.attempt(&attempt, !extras.pairs.is_empty())?;
        counts.add(attempt.outcome);
        written += 1;
    }
    extras::log(connection, writer.log_no, &extras, &writer.labels)?;
    let copy = Copy { kind, status: header.status, attempts: written, completed_at: header.completed_at, path: String::new() };
    Ok(Kept { log_no: writer.log_no, copy, counts, extras })
}

fn give_ancestors(connection: &Connection, ancestors: &[String]) -> Result<Option<i64>> {
    if ancestors.is_empty() {
        return Ok(None);
    }
    let shas = ancestors.join("\n");
    connection.prepare_cached("INSERT OR IGNORE INTO ancestors_m (shas) VALUES (?1)")?.execute([&shas])?;
    let number = connection.prepare_cached("SELECT ancestors_no FROM ancestors_m WHERE shas = ?1")?.query_row([&shas], |row| row.get(0))?;
    Ok(Some(number))
}

/// The log with this id that counts.
pub(super) fn log_no(connection: &Connection, log_id: &str) -> Result<Option<i64>> {
    other_log_no(connection, log_id, 0)
}

/// The log with this id that is not `but`.
pub(super) fn other_log_no(connection: &Connection, log_id: &str, but: i64) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT log_no FROM logs_m WHERE log_id = ?1 AND log_no <> ?2")?;
    Ok(statement.query_row(params![log_id, but], |row| row.get(0)).optional()?)
}

/// The stored log, where it was imported just as `change` would be.
pub(super) fn same(connection: &Connection, log_id: &str, change: &LogChange<'_>) -> Result<Option<i64>> {
    let sql = "SELECT log_no FROM logs_m WHERE log_id = ?1 AND run_key = ?2 AND pinned = ?3 AND kind = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let values = params![log_id, change.header.run_key, change.pinned, change.kind.code()];
    Ok(statement.query_row(values, |row| row.get(0)).optional()?)
}

struct Writer<'a> {
    connection: &'a Connection,
    declared: &'a Declared,
    header: &'a LogHeader,
    log_no: i64,
    run_no: i64,
    evaluations: HashMap<String, i64>,
    arms: HashMap<String, (i64, i64)>,
    /// The attempts that the rest of the log may refer to.
    labels: HashMap<String, i64>,
}

const INSERT_ATTEMPT: &str = "INSERT INTO attempts_m (log_no, run_no, eval_no, case_no, arm_no, raw_arm_no, outcome, epoch, uuid, score, input_tokens,
    output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd, duration_ms, working_ms, started_at, error,
    limit_hit, retries, signature_no, lines, messages) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
    ?22, ?23, ?24, ?25, ?26)";
const INSERT_CHECK: &str = "INSERT INTO checks_m (attempt_no, seq, name, kind, passed, value, label, answer, reason)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const INSERT_CHUNK: &str = "INSERT INTO transcripts_m (attempt_no, first_line, lines, data) VALUES (?1, ?2, ?3, ?4)";
const UPDATE_TEXTS: &str = "UPDATE cases_m SET input = ?2, target = ?3, text_at = ?4, text_log = ?5
    WHERE case_no = ?1 AND (text_at IS NULL OR (text_at, text_log) <= (?4, ?5))";
const INSERT_SIGNATURE: &str = "INSERT OR IGNORE INTO signatures_m (signature, eval_no, check_name, reason) VALUES (?1, ?2, ?3, ?4)";

impl Writer<'_> {
    /// The evaluation's number; the first word on an id within a log holds.
    fn evaluation(&mut self, info: &EvaluationInfo) -> Result<i64> {
        if let Some(number) = self.evaluations.get(&info.id) {
            return Ok(*number);
        }
        let number = names::give_eval_no(self.connection, &info.id)?;
        let mut statement = self.connection.prepare_cached("INSERT INTO log_evaluations_m (log_no, eval_no, info) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![self.log_no, number, serde_json::to_string(info)?])?;
        self.evaluations.insert(info.id.clone(), number);
        Ok(number)
    }

    /// The arm's own number and that of its declared name.
    fn arm(&mut self, info: &ArmInfo) -> Result<(i64, i64)> {
        if let Some(numbers) = self.arms.get(&info.name) {
            return Ok(*numbers);
        }
        let raw = names::give_arm_no(self.connection, self.declared, &info.name)?;
        let mut statement = self.connection.prepare_cached("INSERT INTO log_arms_m (log_no, arm_no, info) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![self.log_no, raw, serde_json::to_string(info)?])?;
        let sql = "SELECT effective_no FROM arms_m WHERE arm_no = ?1";
        let effective = self.connection.prepare_cached(sql)?.query_row([raw], |row| row.get(0))?;
        self.arms.insert(info.name.clone(), (raw, effective));
        Ok((raw, effective))
    }

    fn attempt(&mut self, attempt: &Attempt, named: bool) -> Result<()> {
        // An importer lists both in its header; one that does not loses no attempt for it.
        let eval_no = match self.evaluations.get(&attempt.evaluation) {
            Some(number) => *number,
            None => self.evaluation(&EvaluationInfo { id: attempt.evaluation.clone(), ..EvaluationInfo::default() })?,
        };
        let (raw, effective) = match self.arms.get(&attempt.arm) {
            Some(numbers) => *numbers,
            None => self.arm(&ArmInfo { name: attempt.arm.clone(), ..ArmInfo::default() })?,
        };
        let case_no = self.case(eval_no, attempt)?;
        let signature_no = self.signature(eval_no, attempt)?;
        let usage = &attempt.usage;
        let number = |value: Option<u64>| value.map(names::int);
        self.connection.prepare_cached(INSERT_ATTEMPT)?.execute(params![
            self.log_no,
            self.run_no,
            eval_no,
            case_no,
            effective,
            raw,
            attempt.outcome.code(),
            attempt.epoch,
            attempt.uuid,
            attempt.score,
            number(usage.input_tokens),
            number(usage.output_tokens),
            number(usage.total_tokens),
            number(usage.cache_read_tokens),
            number(usage.cache_write_tokens),
            number(usage.reasoning_tokens),
            attempt.cost_usd,
            number(attempt.duration_ms),
            number(attempt.working_ms),
            names::millis(attempt.started_at),
            attempt.error,
            attempt.limit,
            attempt.retries,
            signature_no,
            names::int(attempt.transcript.lines),
            names::int(attempt.transcript.messages),
        ])?;
        let attempt_no = self.connection.last_insert_rowid();
        if let Some(output) = &attempt.output {
            self.connection
                .prepare_cached("INSERT INTO outputs_m (attempt_no, output) VALUES (?1, ?2)")?
                .execute(params![attempt_no, output])?;
        }
        if let Some(label) = attempt.label.as_ref().filter(|_| named) {
            self.labels.insert(label.clone(), attempt_no);
        }
        extras::attempt(self.connection, attempt_no, attempt)?;
        self.checks(attempt_no, &attempt.checks)?;
        self.transcript(attempt_no, &attempt.transcript)
    }

    fn case(&self, eval_no: i64, attempt: &Attempt) -> Result<i64> {
        let case_no = match names::case_no(self.connection, eval_no, &attempt.case)? {
            Some(number) => number,
            None => {
                let mut statement = self.connection.prepare_cached("INSERT INTO cases_m (eval_no, id) VALUES (?1, ?2)")?;
                statement.execute(params![eval_no, attempt.case])?;
                self.connection.last_insert_rowid()
            }
        };
        if attempt.input.is_some() || attempt.target.is_some() {
            let values = params![case_no, attempt.input, attempt.target, self.header.created_at.millis(), self.header.log_id];
            self.connection.prepare_cached(UPDATE_TEXTS)?.execute(values)?;
        }
        if let Some(group) = &attempt.group {
            groups::put(self.connection, self.log_no, case_no, group)?;
        }
        Ok(case_no)
    }

    fn signature(&self, eval_no: i64, attempt: &Attempt) -> Result<Option<i64>> {
        let Some(signature) = signature::of(attempt) else { return Ok(None) };
        let values = params![signature.hash, eval_no, signature.check, signature.reason];
        self.connection.prepare_cached(INSERT_SIGNATURE)?.execute(values)?;
        let mut statement = self.connection.prepare_cached("SELECT signature_no FROM signatures_m WHERE signature = ?1")?;
        Ok(Some(statement.query_row([signature.hash], |row| row.get(0))?))
    }

    fn checks(&self, attempt_no: i64, checks: &[Check]) -> Result<()> {
        let mut statement = self.connection.prepare_cached(INSERT_CHECK)?;
        for (seq, check) in (0_i64..).zip(checks) {
            let Check { name, kind, passed, value, label, answer, reason } = check;
            statement.execute(params![attempt_no, seq, name, kind, passed, value, label, answer, reason])?;
        }
        Ok(())
    }

    fn transcript(&self, attempt_no: i64, packed: &Packed) -> Result<()> {
        let mut statement = self.connection.prepare_cached(INSERT_CHUNK)?;
        for chunk in &packed.chunks {
            statement.execute(params![attempt_no, names::int(chunk.first_line), chunk.lines, chunk.data])?;
        }
        Ok(())
    }
}
