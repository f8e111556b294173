//! Writes the attempts of one log, one after the other: rows of attempts, cases, checks, outputs, signatures and transcripts.
//!
//! Promises: statements are prepared once a log and a name is looked up once; memory is bounded by one attempt, a chunk of shared lines and
//! the names. A new run's attempts get the numbers and keys that they have as a rule, which `rebuild` mends where they are others.
//! Does not: write the log itself (`record` does), or count anything.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::{
    extras, groups,
    names::{self, Word as _},
};
use crate::{
    domain::{
        attempt::Attempt,
        declared::Declared,
        key,
        log::{ArmInfo, EvaluationInfo, LogHeader},
        signature,
    },
    store::Result,
    transcript::{Shared, Tails},
};

/// Signatures of one log that are kept beside their numbers: a log whose every failure differs must not fill memory.
const SIGNATURES_KEPT: usize = 10_000;

const INSERT_ATTEMPT: &str = "INSERT INTO attempts_m (log_no, run_no, eval_no, case_no, arm_no, raw_arm_no, outcome, epoch, uuid, score, input_tokens,
    output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd, duration_ms, working_ms, started_at, error,
    limit_hit, retries, signature_no, lines, messages, n, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
    ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)";
const INSERT_OUTPUT: &str = "INSERT INTO outputs_m (attempt_no, output) VALUES (?1, ?2)";
const INSERT_CHECK: &str = "INSERT INTO checks_m (attempt_no, seq, name, kind, passed, value, label, answer, reason)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const INSERT_CHUNK: &str = "INSERT INTO transcripts_m (attempt_no, first_line, lines, data) VALUES (?1, ?2, ?3, ?4)";
const INSERT_SHARED: &str = "INSERT INTO shared_m (first_no, last_no, data) VALUES (?1, ?2, ?3)";
const SELECT_CASE: &str = "SELECT case_no FROM cases_m WHERE eval_no = ?1 AND id = ?2";
const INSERT_CASE: &str = "INSERT INTO cases_m (eval_no, id, input, target, text_at, text_log) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (eval_no, id) DO NOTHING";
const UPDATE_TEXTS: &str = "UPDATE cases_m SET input = ?2, target = ?3, text_at = ?4, text_log = ?5
    WHERE case_no = ?1 AND (text_at IS NULL OR (text_at, text_log) <= (?4, ?5))
        AND (input IS NOT ?2 OR target IS NOT ?3 OR text_at IS NOT ?4 OR text_log IS NOT ?5)";
const INSERT_SIGNATURE: &str = "INSERT OR IGNORE INTO signatures_m (signature, eval_no, check_name, reason) VALUES (?1, ?2, ?3, ?4)";

/// An evaluation of the log.
#[derive(Clone, Copy)]
struct Evaluation {
    number: i64,
    /// Whether its cases are looked for before they are made: all are new in a new evaluation, until one comes again.
    seeks: bool,
}

/// An arm of the log.
struct Arm {
    /// Its own number.
    raw: i64,
    /// That of its declared name.
    effective: i64,
    /// The declared name.
    name: String,
}

/// The evaluations and arms of a log, by name.
pub(super) struct Names<'a> {
    connection: &'a Connection,
    declared: &'a Declared,
    log_no: i64,
    evaluations: HashMap<String, Evaluation>,
    arms: HashMap<String, Arm>,
}

impl<'a> Names<'a> {
    pub(super) fn new(connection: &'a Connection, declared: &'a Declared, log_no: i64) -> Self {
        Self { connection, declared, log_no, evaluations: HashMap::new(), arms: HashMap::new() }
    }

    /// Writes what the log says of an evaluation; the first word on an id within a log holds.
    pub(super) fn evaluation(&mut self, info: &EvaluationInfo) -> Result<()> {
        if self.evaluations.contains_key(&info.id) {
            return Ok(());
        }
        let number = names::give_eval_no(self.connection, &info.id)?;
        let mut statement = self.connection.prepare_cached("INSERT INTO log_evaluations_m (log_no, eval_no, info) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![self.log_no, number, serde_json::to_string(info)?])?;
        let seeks = self.connection.prepare_cached("SELECT 1 FROM cases_m WHERE eval_no = ?1 LIMIT 1")?.exists([number])?;
        self.evaluations.insert(info.id.clone(), Evaluation { number, seeks });
        Ok(())
    }

    /// Writes what the log says of an arm.
    pub(super) fn arm(&mut self, info: &ArmInfo) -> Result<()> {
        if self.arms.contains_key(&info.name) {
            return Ok(());
        }
        let raw = names::give_arm_no(self.connection, self.declared, &info.name)?;
        let mut statement = self.connection.prepare_cached("INSERT INTO log_arms_m (log_no, arm_no, info) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![self.log_no, raw, serde_json::to_string(info)?])?;
        let sql = "SELECT effective_no FROM arms_m WHERE arm_no = ?1";
        let effective = self.connection.prepare_cached(sql)?.query_row([raw], |row| row.get(0))?;
        let name = self.declared.arm_name(&info.name).to_owned();
        self.arms.insert(info.name.clone(), Arm { raw, effective, name });
        Ok(())
    }

    /// Makes sure that what the attempt names is there: an importer lists both in its header; one that does not loses no attempt for it.
    fn know(&mut self, attempt: &Attempt) -> Result<()> {
        if !self.evaluations.contains_key(&attempt.evaluation) {
            self.evaluation(&EvaluationInfo { id: attempt.evaluation.clone(), ..EvaluationInfo::default() })?;
        }
        if !self.arms.contains_key(&attempt.arm) {
            self.arm(&ArmInfo { name: attempt.arm.clone(), ..ArmInfo::default() })?;
        }
        Ok(())
    }

    fn several_arms(&self) -> bool {
        let mut numbers = self.arms.values().map(|arm| arm.effective);
        numbers.next().is_some_and(|first| numbers.any(|other| other != first))
    }
}

/// Writes attempts.
pub(super) struct Writer<'a> {
    connection: &'a Connection,
    names: Names<'a>,
    header: &'a LogHeader,
    run_no: i64,
    /// How keys are guessed: whether arms are part of them; none where other logs have a say.
    guess: Option<bool>,
    signatures: HashMap<String, i64>,
    /// The attempts that the rest of the log refers to, where it does.
    labels: Option<HashMap<String, i64>>,
    shared: Shared,
    put: Statements<'a>,
}

/// Prepared once for all attempts.
struct Statements<'a> {
    attempt: CachedStatement<'a>,
    output: CachedStatement<'a>,
    check: CachedStatement<'a>,
    chunk: CachedStatement<'a>,
    find_case: CachedStatement<'a>,
    case: CachedStatement<'a>,
    texts: CachedStatement<'a>,
}

impl<'a> Statements<'a> {
    fn new(connection: &'a Connection) -> Result<Self> {
        Ok(Self {
            attempt: connection.prepare_cached(INSERT_ATTEMPT)?,
            output: connection.prepare_cached(INSERT_OUTPUT)?,
            check: connection.prepare_cached(INSERT_CHECK)?,
            chunk: connection.prepare_cached(INSERT_CHUNK)?,
            find_case: connection.prepare_cached(SELECT_CASE)?,
            case: connection.prepare_cached(INSERT_CASE)?,
            texts: connection.prepare_cached(UPDATE_TEXTS)?,
        })
    }
}

impl<'a> Writer<'a> {
    /// A writer for the log of `names`, which stands in its run where it has one yet. `labels` says that its attempts are referred to.
    pub(super) fn new(connection: &'a Connection, names: Names<'a>, header: &'a LogHeader, labels: bool) -> Result<Self> {
        let sql = "SELECT l.run_no, r.run_no IS NOT NULL AND r.number IS NULL FROM logs_m l LEFT JOIN runs_m r ON r.run_no = l.run_no
                   WHERE l.log_no = ?1";
        let (run_no, new): (i64, bool) = connection.prepare_cached(sql)?.query_row([names.log_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self {
            connection,
            header,
            run_no,
            guess: new.then(|| names.several_arms()),
            names,
            signatures: HashMap::new(),
            labels: labels.then(HashMap::new),
            shared: Shared::default(),
            put: Statements::new(connection)?,
        })
    }

    /// Writes what is still held back; the attempts by their labels.
    pub(super) fn finish(mut self) -> Result<HashMap<String, i64>> {
        self.close_shared()?;
        Ok(self.labels.unwrap_or_default())
    }

    pub(super) fn attempt(&mut self, attempt: &Attempt) -> Result<()> {
        self.names.know(attempt)?;
        let Evaluation { number: eval_no, seeks } = self.evaluation(attempt);
        let case_no = self.case(eval_no, seeks, attempt)?;
        if let Some(group) = &attempt.group {
            groups::put(self.connection, self.names.log_no, case_no, group)?;
        }
        let signature_no = self.signature(eval_no, attempt)?;
        let key = self.key(attempt);
        let (raw, effective) = self.names.arms.get(&attempt.arm).map_or((0, 0), |arm| (arm.raw, arm.effective));
        let usage = &attempt.usage;
        let number = |value: Option<u64>| value.map(names::int);
        self.put.attempt.execute(params![
            self.names.log_no,
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
            key.is_some().then_some(attempt.epoch),
            key,
        ])?;
        self.rest(self.connection.last_insert_rowid(), attempt)
    }

    /// What stands in other tables than the attempt itself.
    fn rest(&mut self, attempt_no: i64, attempt: &Attempt) -> Result<()> {
        if let Some(output) = &attempt.output {
            self.put.output.execute(params![attempt_no, output])?;
        }
        if let Some((labels, label)) = self.labels.as_mut().zip(attempt.label.as_ref()) {
            labels.insert(label.clone(), attempt_no);
        }
        for (seq, check) in (0_i64..).zip(&attempt.checks) {
            let values =
                params![attempt_no, seq, check.name, check.kind, check.passed, check.value, check.label, check.answer, check.reason];
            self.put.check.execute(values)?;
        }
        for chunk in &attempt.transcript.chunks {
            self.put.chunk.execute(params![attempt_no, names::int(chunk.first_line), chunk.lines, chunk.data])?;
        }
        if !attempt.transcript.tail.is_empty() {
            self.shared.add(attempt_no, &attempt.transcript.tail);
        }
        if self.shared.full() {
            self.close_shared()?;
        }
        extras::attempt(self.connection, attempt_no, attempt)
    }

    fn evaluation(&self, attempt: &Attempt) -> Evaluation {
        // `know` has put it there.
        self.names.evaluations.get(&attempt.evaluation).copied().unwrap_or(Evaluation { number: 0, seeks: true })
    }

    /// The key that the attempt has where its log is all of its run and its tries are numbered from 1, as they are as a rule. None where a
    /// key can meet another evaluation's (`key::distinct`).
    fn key(&self, attempt: &Attempt) -> Option<String> {
        let several = self.guess?;
        if attempt.case.is_empty() && attempt.evaluation.contains('/') {
            return None;
        }
        let arm = self.names.arms.get(&attempt.arm).filter(|_| several).map(|arm| arm.name.as_str());
        Some(key::attempt_key(&attempt.evaluation, &attempt.case, arm, attempt.epoch))
    }

    fn case(&mut self, eval_no: i64, seeks: bool, attempt: &Attempt) -> Result<i64> {
        let said = attempt.input.is_some() || attempt.target.is_some();
        let (at, log) = (self.header.created_at.millis(), &self.header.log_id);
        let find = |put: &mut Statements<'_>| put.find_case.query_row(params![eval_no, attempt.case], |row| row.get(0)).optional();
        let mut found: Option<i64> = if seeks { find(&mut self.put)? } else { None };
        if found.is_none() {
            let values = params![eval_no, attempt.case, attempt.input, attempt.target, said.then_some(at), said.then_some(log)];
            if self.put.case.execute(values)? > 0 {
                return Ok(self.connection.last_insert_rowid());
            }
            // Of a new evaluation too a case can come again, and then most do.
            if let Some(evaluation) = self.names.evaluations.get_mut(&attempt.evaluation) {
                evaluation.seeks = true;
            }
            found = find(&mut self.put)?;
        }
        let case_no = found.ok_or(crate::store::Error::Damaged)?;
        if said {
            self.put.texts.execute(params![case_no, attempt.input, attempt.target, at, log])?;
        }
        Ok(case_no)
    }

    fn signature(&mut self, eval_no: i64, attempt: &Attempt) -> Result<Option<i64>> {
        let Some(signature) = signature::of(attempt) else { return Ok(None) };
        if let Some(number) = self.signatures.get(&signature.hash) {
            return Ok(Some(*number));
        }
        let values = params![signature.hash, eval_no, signature.check, signature.reason];
        self.connection.prepare_cached(INSERT_SIGNATURE)?.execute(values)?;
        let mut statement = self.connection.prepare_cached("SELECT signature_no FROM signatures_m WHERE signature = ?1")?;
        let number = statement.query_row([&signature.hash], |row| row.get(0))?;
        if self.signatures.len() < SIGNATURES_KEPT {
            self.signatures.insert(signature.hash, number);
        }
        Ok(Some(number))
    }

    /// Writes the last lines of transcripts that were held back.
    fn close_shared(&mut self) -> Result<()> {
        if let Some(Tails { first, last, data }) = self.shared.close() {
            self.connection.prepare_cached(INSERT_SHARED)?.execute(params![first, last, data])?;
        }
        Ok(())
    }
}
