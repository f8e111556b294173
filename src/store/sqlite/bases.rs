//! Finds the runs that can be another's base: those that counted one of its evaluations.
//!
//! Promises: cost grows with the head's evaluations and with the candidates that are read, not with runs of other evaluations.
//! Does not: choose among them (`tools::history::base` does).

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use rusqlite::{Connection, params};

use super::{
    names::{self, Names},
    runs,
};
use crate::{
    domain::{cell::CellKey, compare::shared, log::RunStatus},
    store::{Base, BaseQuery, Result},
};

/// Rows that a stream reads at first: the nearest run usually holds every evaluation.
const ROWS_FIRST: i64 = 2;
/// Rows that it reads at once in the end.
const ROWS_MAX: i64 = 64;

/// A place in the order of runs.
type At = (i64, String);

/// A counted cell of an evaluation.
struct Row {
    at: At,
    run_no: i64,
    arm_no: i64,
}

/// The counted cells of one evaluation, newest first.
struct Stream<'a> {
    evaluation: &'a str,
    eval_no: i64,
    rows: VecDeque<Row>,
    /// After which row the next is read.
    after: (At, i64),
    next: i64,
    ended: bool,
}

const ROWS: &str = "SELECT created_at, run_id, run_no, arm_no FROM cells_m
    WHERE recorded = 1 AND verdict <= 2 AND eval_no = ?1 AND (created_at, run_id, arm_no) < (?2, ?3, ?4)
    ORDER BY created_at DESC, run_id DESC, arm_no DESC LIMIT ?5";

impl Stream<'_> {
    fn first(&mut self, connection: &Connection) -> Result<Option<&Row>> {
        if self.rows.is_empty() && !self.ended {
            let ((created_at, run_id), arm_no) = &self.after;
            let mut statement = connection.prepare_cached(ROWS)?;
            let mut found = statement.query(params![self.eval_no, created_at, run_id, arm_no, self.next])?;
            while let Some(row) = found.next()? {
                self.rows.push_back(Row { at: (row.get(0)?, row.get(1)?), run_no: row.get(2)?, arm_no: row.get(3)? });
            }
            self.ended = names::int(self.rows.len() as u64) < self.next;
            self.next = (self.next * 2).min(ROWS_MAX);
            if let Some(last) = self.rows.back() {
                self.after = (last.at.clone(), last.arm_no);
            }
        }
        Ok(self.rows.front())
    }
}

/// The streams of the head's evaluations, merged.
struct Merge<'a> {
    connection: &'a Connection,
    streams: Vec<Stream<'a>>,
    /// The place of each stream's first row, and which stream.
    heads: BinaryHeap<(At, usize)>,
    arms: Names<'a>,
}

impl<'a> Merge<'a> {
    fn new(connection: &'a Connection, query: &BaseQuery<'a>) -> Result<Self> {
        let mut merge = Self { connection, streams: Vec::new(), heads: BinaryHeap::new(), arms: Names::arms(connection) };
        let before = (query.before.created_at.millis(), query.before.run_id.clone());
        let evaluations: BTreeSet<&str> = query.keys.iter().map(|key| key.evaluation.as_str()).collect();
        for evaluation in evaluations {
            let Some(eval_no) = names::eval_no(connection, evaluation)? else { continue };
            // No arm has so small a number: the run itself is left out.
            let after = (before.clone(), i64::MIN);
            merge.streams.push(Stream { evaluation, eval_no, rows: VecDeque::new(), after, next: ROWS_FIRST, ended: false });
            merge.push(merge.streams.len() - 1)?;
        }
        Ok(merge)
    }

    /// Puts a stream's first row among the heads.
    fn push(&mut self, index: usize) -> Result<()> {
        let Some(stream) = self.streams.get_mut(index) else { return Ok(()) };
        let at = stream.first(self.connection)?.map(|row| row.at.clone());
        self.heads.extend(at.map(|at| (at, index)));
        Ok(())
    }

    /// The next run, older than the last, with its counted cells of the head's evaluations.
    fn next(&mut self) -> Result<Option<(i64, At, Vec<CellKey>)>> {
        let Some((at, _)) = self.heads.peek().cloned() else { return Ok(None) };
        let (mut run_no, mut keys) = (0, Vec::new());
        while self.heads.peek().is_some_and(|(other, _)| *other == at) {
            let Some((_, index)) = self.heads.pop() else { break };
            let Some(row) = self.streams.get_mut(index).and_then(|stream| stream.rows.pop_front()) else { continue };
            run_no = row.run_no;
            let evaluation = self.streams.get(index).map(|stream| stream.evaluation.to_owned()).unwrap_or_default();
            keys.push(CellKey { evaluation, case: None, arm: self.arms.get(row.arm_no)?.to_owned() });
            self.push(index)?;
        }
        Ok(Some((run_no, at, keys)))
    }
}

pub(super) fn read(connection: &Connection, query: &BaseQuery<'_>) -> Result<Vec<Base>> {
    let commits = query.shas.map(|shas| runs::of_commits(connection, shas)).transpose()?;
    let oldest = commits.as_ref().map(|commits: &BTreeMap<i64, At>| commits.values().min().cloned());
    let mut out = Vec::new();
    if query.limit == 0 || oldest == Some(None) {
        return Ok(out);
    }
    let oldest = oldest.flatten();
    let mut merge = Merge::new(connection, query)?;
    while let Some((run_no, at, keys)) = merge.next()? {
        if oldest.as_ref().is_some_and(|oldest| at < *oldest) {
            break;
        }
        let shared = shared(query.keys, &keys);
        if shared == 0 || commits.as_ref().is_some_and(|commits| !commits.contains_key(&run_no)) {
            continue;
        }
        let run = runs::numbered(connection, run_no)?.filter(|run| run.status == RunStatus::Completed);
        out.extend(run.map(|run| Base { run, shared }));
        if out.len() == query.limit {
            break;
        }
    }
    Ok(out)
}
