//! Where words stand: questions to the index, and what stands around the words that were found.
//!
//! Promises: a word of a question is data, never an operator of the index; a handle that may not see texts reads the names' rows and no others; what
//! is looked at is bounded, and it is said where there may be more. Evaluations are so few that they are looked at themselves.
//! Does not: write the index (`index` does).

mod excerpt;
pub(super) mod index;

use std::{collections::BTreeMap, time::Duration};

use rusqlite::{Connection, OptionalExtension as _, params};

use self::excerpt::Reading;
use super::{
    Sqlite, catalog,
    names::{self, Names, Word as _},
};
use crate::{
    clock,
    domain::{log::EvaluationInfo, outcome::Outcome, time::Timestamp, words::Question},
    store::{Cancel, Change, Error, Found, FoundIn, Hit, Place, Result, RunPoint, SearchQuery, Store as _},
};

/// Bytes of texts that one change brings into the index: some tenth of a second, for which other writes wait.
pub(super) const STEP_BYTES: usize = 4 * 1024 * 1024;
/// How long a search waits for the index: what is left is said, and the next one goes on.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rows of one place that are looked at, newest first.
const LOOKED_AT: i64 = 5_000;

/// The rows of the index: a place in the high bits, the number of the thing below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    CaseNames = 1,
    CaseTexts = 2,
    Reasons = 3,
    Transcript = 4,
    LogNames = 5,
}

impl Row {
    const BITS: u32 = 40;

    pub(super) const fn of(self, number: i64) -> i64 {
        ((self as i64) << Self::BITS) | number
    }

    const fn number(row: i64) -> i64 {
        row & ((1 << Self::BITS) - 1)
    }
}

impl Sqlite {
    /// Brings into the index what came since, for a bounded time; where nothing can be written it says what it said.
    pub(super) fn searchable(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        let deadline = clock::monotonic() + PATIENCE;
        let mut left = self.read(index::is_behind)?;
        while left && clock::monotonic() < deadline && !self.cancel.as_ref().is_some_and(Cancel::raised) {
            left = match self.apply(Change::SearchIndex) {
                Ok(applied) => applied.left,
                Err(Error::ReadOnly) => false,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}

pub(super) fn find(connection: &Connection, query: &SearchQuery<'_>, text: bool) -> Result<Found> {
    let mut out = Found { places: BTreeMap::new(), unindexed: index::behind(connection)? };
    let mut reading = Reading::new(connection, query.question);
    for place in Place::ALL.into_iter().filter(|place| query.searches(*place, text)) {
        let found = match place {
            Place::Evaluation => evaluations(connection, query)?,
            Place::Run => runs(connection, query)?,
            Place::Case => cases(connection, query, text)?,
            Place::Reason => attempts(connection, query, Row::Reasons, &mut reading)?,
            Place::Transcript => attempts(connection, query, Row::Transcript, &mut reading)?,
        };
        out.places.insert(place, found);
    }
    Ok(out)
}

/// The question in the index's language: each word a quoted string, so that nothing of it is an operator.
fn terms(question: &Question) -> String {
    let quoted =
        question.words().iter().map(|word| format!("\"{}\"{}", word.text.replace('"', "\"\""), if word.beginning { " *" } else { "" }));
    quoted.collect::<Vec<_>>().join(" AND ")
}

/// The numbers of the things of a place that hold every word, newest first; one more than are looked at where there are.
fn numbers(connection: &Connection, question: &Question, row: Row) -> Result<Vec<i64>> {
    let sql = "SELECT rowid FROM search_m WHERE search_m MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let (from, to) = (row.of(0), row.of(0) + (1 << Row::BITS));
    let rows = statement.query_map(params![terms(question), from, to, LOOKED_AT + 1], |row| row.get(0).map(Row::number))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The first `LOOKED_AT`, and whether there are more.
fn looked_at(mut numbers: Vec<i64>) -> (Vec<i64>, bool) {
    let most = usize::try_from(LOOKED_AT).unwrap_or(usize::MAX);
    let more = numbers.len() > most;
    numbers.truncate(most);
    (numbers, more)
}

const fn nothing(place: Place) -> Hit {
    Hit { place, run: None, attempt: None, evaluation: None, case: None, outcome: None, cost_usd: None, line: None, snippet: None }
}

/// What is said of an evaluation, as it is searched.
pub(in crate::store) fn names_of(info: &EvaluationInfo) -> Vec<&str> {
    let more = [info.family.as_deref(), info.dataset.as_deref(), info.version.as_deref()];
    std::iter::once(info.id.as_str()).chain(more.into_iter().flatten()).collect()
}

fn evaluations(connection: &Connection, query: &SearchQuery<'_>) -> Result<FoundIn> {
    let mut out = FoundIn::default();
    for dataset in catalog::datasets(connection)? {
        let names = names_of(&dataset.info);
        if query.question.found_in(names.iter().copied()) {
            let snippet = names.iter().find_map(|name| query.question.excerpt(name));
            out.hits.push(Hit { evaluation: Some(dataset.info.id.clone()), snippet, ..nothing(Place::Evaluation) });
        }
    }
    out.more = out.hits.len() > query.limit;
    out.hits.truncate(query.limit);
    Ok(out)
}

/// Whether a run was created in the time that is asked for.
fn in_time(query: &SearchQuery<'_>, created_at: Timestamp) -> bool {
    query.since.is_none_or(|since| created_at >= since) && query.until.is_none_or(|until| created_at <= until)
}

fn runs(connection: &Connection, query: &SearchQuery<'_>) -> Result<FoundIn> {
    let (numbers, more) = looked_at(numbers(connection, query.question, Row::LogNames)?);
    let sql =
        "SELECT l.header, r.run_id, r.created_at, r.round, r.branch FROM logs_m l JOIN runs_m r ON r.run_no = l.run_no WHERE l.log_no = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = BTreeMap::<(std::cmp::Reverse<Timestamp>, std::cmp::Reverse<String>), Hit>::new();
    for log_no in numbers {
        let row = statement.query_row([log_no], |row| {
            let names: [Option<String>; 3] = [Some(row.get(1)?), row.get(3)?, row.get(4)?];
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, Timestamp::from_millis(row.get(2)?), names))
        });
        let Some((header, run_id, created_at, names)) = row.optional()? else { continue };
        let texts = index::log_names(&header, names.into_iter().flatten())?;
        if in_time(query, created_at) && query.question.found_in(texts.iter().map(String::as_str)) {
            let snippet = texts.iter().find_map(|text| query.question.excerpt(text));
            let run = Some(RunPoint { run_id: run_id.clone(), created_at });
            let order = (std::cmp::Reverse(created_at), std::cmp::Reverse(run_id));
            found.entry(order).or_insert(Hit { run, snippet, ..nothing(Place::Run) });
        }
    }
    let more = more || found.len() > query.limit;
    Ok(FoundIn { hits: found.into_values().take(query.limit).collect(), more })
}

fn cases(connection: &Connection, query: &SearchQuery<'_>, text: bool) -> Result<FoundIn> {
    let row = if text { Row::CaseTexts } else { Row::CaseNames };
    let (numbers, more) = looked_at(numbers(connection, query.question, row)?);
    let sql = format!(
        "SELECT e.id, c.id, c.input, c.target FROM cases_m c JOIN evaluations_m e ON e.eval_no = c.eval_no WHERE c.case_no = ?1 AND {}",
        catalog::TRIED
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut hits = Vec::new();
    for case_no in numbers {
        let row = statement.query_row([case_no], |row| {
            let texts: [Option<String>; 2] = if text { [row.get(2)?, row.get(3)?] } else { [None, None] };
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, texts))
        });
        let Some((evaluation, case, texts)) = row.optional()? else { continue };
        let all = || std::iter::once(case.as_str()).chain(texts.iter().flatten().map(String::as_str));
        if query.question.found_in(all()) {
            let snippet = all().find_map(|text| query.question.excerpt(text));
            hits.push(Hit { evaluation: Some(evaluation), case: Some(case), snippet, ..nothing(Place::Case) });
        }
    }
    hits.sort_by(|a, b| (&a.evaluation, &a.case).cmp(&(&b.evaluation, &b.case)));
    let more = more || hits.len() > query.limit;
    hits.truncate(query.limit);
    Ok(FoundIn { hits, more })
}

/// An attempt that holds the words, before it is looked at more closely.
struct Candidate {
    attempt_no: i64,
    hit: Hit,
}

const ATTEMPT: &str = "SELECT a.eval_no, a.case_no, a.key, a.outcome, a.cost_usd, r.run_id, r.created_at FROM attempts_m a
    JOIN runs_m r ON r.run_no = a.run_no WHERE a.attempt_no = ?1 AND a.n IS NOT NULL
        AND (?2 IS NULL OR a.outcome = ?2) AND (?3 IS NULL OR a.cost_usd >= ?3)
        AND (?4 IS NULL OR r.created_at >= ?4) AND (?5 IS NULL OR r.created_at <= ?5)";

fn attempts(connection: &Connection, query: &SearchQuery<'_>, row: Row, reading: &mut Reading<'_>) -> Result<FoundIn> {
    let (numbers, mut more) = looked_at(numbers(connection, query.question, row)?);
    let (mut evaluations, mut cases) = (Names::evaluations(connection), Names::cases(connection));
    let place = if row == Row::Reasons { Place::Reason } else { Place::Transcript };
    let (outcome, since, until) = (query.outcome.map(|outcome| outcome.code()), names::millis(query.since), names::millis(query.until));
    let mut statement = connection.prepare_cached(ATTEMPT)?;
    let mut found = Vec::new();
    for attempt_no in numbers {
        let mut rows = statement.query(params![attempt_no, outcome, query.min_cost_usd, since, until])?;
        let Some(row) = rows.next()? else { continue };
        let run = Some(RunPoint { run_id: row.get(5)?, created_at: Timestamp::from_millis(row.get(6)?) });
        let hit = Hit {
            run,
            attempt: row.get(2)?,
            evaluation: Some(evaluations.get(row.get(0)?)?.to_owned()),
            case: Some(cases.get(row.get(1)?)?.to_owned()),
            outcome: Some(Outcome::from_code(row.get(3)?)?),
            cost_usd: row.get(4)?,
            ..nothing(place)
        };
        found.push(Candidate { attempt_no, hit });
    }
    found.sort_by(|a, b| newest_first(&a.hit, &b.hit));
    let mut hits = Vec::new();
    for Candidate { attempt_no, mut hit } in found {
        if hits.len() == query.limit {
            more = true;
            break;
        }
        if reading.confirms(&mut hit, attempt_no)? {
            hits.push(hit);
        }
    }
    Ok(FoundIn { hits, more: more || reading.gave_up() })
}

fn newest_first(a: &Hit, b: &Hit) -> std::cmp::Ordering {
    let age = |hit: &Hit| hit.run.as_ref().map(|run| (run.created_at, run.run_id.clone()));
    age(b).cmp(&age(a)).then_with(|| a.attempt.cmp(&b.attempt))
}
