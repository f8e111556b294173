//! The plain model of the port: everything kept as it came, everything worked out anew at each read.
//!
//! Promises: no SQL and no cleverness, so that reading it is believing it; other tests may use it as a store that costs nothing to open.
//! Does not: save anything, or care how long it takes.

mod catalog;
mod projections;
mod survey;
mod workspace;
mod world;

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::{workspace::rules, *};
use crate::domain::{attempt::Attempt, compare, extras::Extras, grouping, key, log::LogHeader};
use workspace::Desk;
use world::{KeptAttempt, World};

/// A store in memory.
pub(crate) struct Model(Mutex<State>, AtomicUsize, [u8; 32]);

impl Default for Model {
    fn default() -> Self {
        let key = std::array::from_fn(|place| RandomState::new().hash_one(place).to_le_bytes()[0]);
        Self(Mutex::default(), AtomicUsize::default(), key)
    }
}

#[derive(Default, Clone)]
struct State {
    generation: u64,
    declared: Declared,
    files: BTreeMap<String, File>,
    /// The runs that there are, and their numbers.
    numbers: BTreeMap<String, i64>,
    last_number: i64,
    /// Every evaluation ever seen; its number is its place, from 1.
    evaluations: Vec<String>,
    desk: Desk,
}

#[derive(Clone)]
struct File {
    row: FileRow,
    log: Option<KeptLog>,
    remarks: Vec<String>,
}

/// A log as it came.
#[derive(Clone)]
struct KeptLog {
    kind: Kind,
    header: LogHeader,
    extras: Extras,
    pinned: bool,
    ancestors: Vec<String>,
    attempts: Vec<Attempt>,
}

impl KeptLog {
    fn copy(&self, path: &str) -> grouping::Copy {
        grouping::Copy {
            kind: self.kind,
            status: self.header.status,
            attempts: self.attempts.len() as u64,
            completed_at: self.header.completed_at,
            path: path.to_owned(),
        }
    }
}

impl State {
    fn world(&self) -> World {
        let logs = self.files.values().filter(|file| matches!(file.row.state, FileState::Log(_))).filter_map(|file| file.log.clone());
        let copies = self.files.values().filter(|file| matches!(file.row.state, FileState::CopyOf(_))).filter_map(|file| file.log.as_ref());
        let records = copies.filter(|log| grouping::is_record(&log.header.format, log.pinned)).cloned().collect();
        World::of(logs.collect(), records, &self.declared, &self.numbers, &self.evaluations)
    }

    fn run_of(&self, log_id: &str) -> Option<String> {
        self.world().run_of.get(log_id).cloned()
    }

    fn log(&mut self, change: LogChange<'_>) -> Result<Applied> {
        let LogChange { file, kind, mut header, extras, pinned, ancestors, attempts } = change;
        let held = self.files.get(&file.path);
        if let Some(held) = held.filter(|held| held.row.stamp.digest == file.digest) {
            let same = |log: &KeptLog| (log.kind, log.pinned, &log.header.run_key) == (kind, pinned, &header.run_key);
            let copy_of = match &held.row.state {
                FileState::Log(_) if held.log.as_ref().is_some_and(same) => Some(None),
                FileState::CopyOf(path) => Some(Some(path.clone())),
                _ => None,
            };
            if let Some(copy_of) = copy_of {
                let run_id = match &copy_of {
                    Some(path) => self.files.get(path).and_then(|file| file.log.as_ref()).and_then(|log| self.run_of(&log.header.log_id)),
                    None => self.run_of(&header.log_id),
                };
                if let Some(held) = self.files.get_mut(&file.path) {
                    held.row.stamp = file;
                }
                return Ok(Applied { run_id, copy_of, ..Applied::default() });
            }
        }
        let attempts = attempts.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::Import)?;
        complete(&mut header, &attempts);
        for pair in &extras.pairs {
            for label in [&pair.a, &pair.b] {
                if !attempts.iter().any(|attempt| attempt.label.as_ref() == Some(label)) {
                    return Err(Error::Import(format!("a pair names the attempt {label}, which the log does not hold")));
                }
            }
        }
        let log = KeptLog { kind, header, extras, pinned, ancestors, attempts };
        let before = self.take(&file.path, Some(&log.header.log_id));
        let dropped = before.as_ref().is_some_and(brings_analyses);
        Ok(self.keep(file, log, before.map(|file| file.row.state), dropped))
    }

    fn keep(&mut self, stamp: FileStamp, log: KeptLog, before: Option<FileState>, dropped: bool) -> Applied {
        let id = log.header.log_id.clone();
        let copy = log.copy(&stamp.path);
        let others: Vec<(String, grouping::Copy, bool)> = self
            .files
            .iter()
            .filter_map(|(path, file)| {
                let other = file.log.as_ref().filter(|other| other.header.log_id == id)?;
                Some((path.clone(), other.copy(path), matches!(file.row.state, FileState::Log(_))))
            })
            .collect();
        if let Some((winner, ..)) = others.iter().find(|(_, other, counts)| *counts && !grouping::wins(&copy, other)) {
            let state = FileState::CopyOf(winner.clone());
            let changed = before.as_ref() != Some(&state);
            self.files.insert(stamp.path.clone(), File { row: FileRow { stamp, state }, log: Some(log), remarks: vec![] });
            return Applied { changed, run_id: self.run_of(&id), copy_of: Some(winner.clone()), ..Applied::default() };
        }
        let run = grouping::runs(&[world::stub(&log)]).first().map(|run| (*run).to_owned());
        if grouping::is_record(&log.header.format, log.pinned) {
            let world = self.world();
            let own = |file: &&File| {
                file.log.as_ref().is_some_and(|other| {
                    matches!(file.row.state, FileState::Log(_))
                        && !grouping::is_record(&other.header.format, other.pinned)
                        && world.run_of.get(&other.header.log_id) == run.as_ref()
                })
            };
            if let Some(winner) = self.files.values().find(own).map(|file| file.row.stamp.path.clone()) {
                let state = FileState::CopyOf(winner.clone());
                let changed = before.as_ref() != Some(&state) || dropped || !log.extras.analyses.is_empty();
                self.files.insert(stamp.path.clone(), File { row: FileRow { stamp, state }, log: Some(log), remarks: vec![] });
                return Applied { changed, run_id: run, copy_of: Some(winner), ..Applied::default() };
            }
        }
        for (path, other, _) in others {
            if grouping::wins(&copy, &other) {
                if let Some(file) = self.files.get_mut(&path) {
                    file.row.state = FileState::CopyOf(stamp.path.clone());
                }
            } else {
                self.files.remove(&path);
            }
        }
        for info in &log.header.evaluations {
            if !self.evaluations.contains(&info.id) {
                self.evaluations.push(info.id.clone());
            }
        }
        let counts = Counts::of(log.attempts.iter().map(|attempt| attempt.outcome));
        let attempts = log.attempts.len() as u64;
        let path = stamp.path.clone();
        let own = !grouping::is_record(&log.header.format, log.pinned);
        self.files
            .insert(path.clone(), File { row: FileRow { stamp, state: FileState::Log(id.clone()) }, log: Some(log), remarks: vec![] });
        if own {
            self.give_way(&id);
        }
        Applied { changed: true, run_id: self.run_of(&id), attempts, counts, ..Applied::default() }
    }

    /// Forgets the records of the run that the log `id` is in.
    fn give_way(&mut self, id: &str) {
        let world = self.world();
        let run = world.run_of.get(id).cloned();
        self.files.retain(|_, file| {
            let Some(log) = file.log.as_ref().filter(|log| grouping::is_record(&log.header.format, log.pinned)) else { return true };
            Some(&log.header.run_key) != run.as_ref()
        });
    }

    /// Takes a file out; where it held a log that counted and will hold another, the copies of that log go too.
    fn take(&mut self, path: &str, new: Option<&str>) -> Option<File> {
        let world = self.world();
        let file = self.files.remove(path)?;
        let run = file.log.as_ref().and_then(|log| world.run_of.get(&log.header.log_id)).map(|run| grouping::record_log_id(run));
        if matches!(&file.row.state, FileState::Log(old) if new != Some(old)) {
            let record = |log: &KeptLog| Some(&log.header.log_id) == run.as_ref();
            self.files.retain(|_, other| !matches!(&other.row.state, FileState::CopyOf(_)) || !other.log.as_ref().is_some_and(record));
        }
        if matches!(&file.row.state, FileState::Log(old) if new != Some(old)) {
            self.files.retain(|_, other| !matches!(&other.row.state, FileState::CopyOf(winner) if winner == path));
        }
        Some(file)
    }

    fn skipped(&mut self, stamp: FileStamp, state: FileState) -> Applied {
        let before = self.take(&stamp.path, None);
        let changed = before.is_none_or(|file| file.row.state != state || brings_analyses(&file));
        self.files.insert(stamp.path.clone(), File { row: FileRow { stamp, state }, log: None, remarks: vec![] });
        Applied { changed, ..Applied::default() }
    }

    /// Numbers new runs, in the order of their ids, and forgets those that are gone.
    fn number(&mut self) {
        let world = self.world();
        self.numbers.retain(|run, _| world.runs.contains_key(run));
        for run in world.runs.keys() {
            if !self.numbers.contains_key(run) {
                self.last_number += 1;
                self.numbers.insert(run.clone(), self.last_number);
            }
        }
    }
}

/// Whether the file is that of a record that gave way and left its analyses to the run.
fn brings_analyses(file: &File) -> bool {
    matches!(file.row.state, FileState::CopyOf(_)) && file.log.as_ref().is_some_and(|log| !log.extras.analyses.is_empty())
}

/// Adds evaluations and arms that only attempts name; of two with one name the first stands.
fn complete(header: &mut LogHeader, attempts: &[Attempt]) {
    let mut evaluations: Vec<EvaluationInfo> = Vec::new();
    let mut arms: Vec<ArmInfo> = Vec::new();
    let named = attempts.iter().map(|attempt| EvaluationInfo { id: attempt.evaluation.clone(), ..EvaluationInfo::default() });
    for info in header.evaluations.drain(..).chain(named) {
        if !evaluations.iter().any(|other| other.id == info.id) {
            evaluations.push(info);
        }
    }
    let named = attempts.iter().map(|attempt| ArmInfo { name: attempt.arm.clone(), ..ArmInfo::default() });
    for info in header.arms.drain(..).chain(named) {
        if !arms.iter().any(|other| other.name == info.name) {
            arms.push(info);
        }
    }
    header.evaluations = evaluations;
    header.arms = arms;
}

impl Model {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn world(&self) -> World {
        self.state().world()
    }

    fn found(&self, query: &CellQuery) -> Vec<Cell> {
        let world = self.world();
        let fits = |cell: &&Cell| {
            cell.key.case.is_some() == (query.grain == Grain::Case)
                && contains(&cell.key.evaluation, query.evaluation_contains.as_deref())
                && query.evaluation.as_ref().is_none_or(|id| *id == cell.key.evaluation)
                && query.keys.as_ref().is_none_or(|keys| keys.contains(&cell.key))
                && (!query.failing || cell.counts.failed + cell.counts.infra > 0)
        };
        let mut runs: Vec<&String> = Vec::new();
        query.runs.iter().for_each(|run| {
            if !runs.contains(&run) {
                runs.push(run);
            }
        });
        let mut out: Vec<Cell> =
            runs.into_iter().filter_map(|run| world.runs.get(run)).flat_map(|run| run.cells.iter().filter(fits)).cloned().collect();
        // The sort is stable, so the query's runs stay in order.
        out.sort_by(|a, b| a.key.cmp(&b.key));
        out
    }

    /// The most cells that one read has given so far: what a tool has held at once.
    pub(crate) fn most_cells(&self) -> usize {
        self.1.load(Relaxed)
    }
}

/// Whether `id` contains `part`, ignoring case.
fn contains(id: &str, part: Option<&str>) -> bool {
    id.to_lowercase().contains(&part.unwrap_or("").to_lowercase())
}

fn place(run: &Run) -> (Timestamp, &str) {
    (run.created_at, &run.run_id)
}

fn at(point: &RunPoint) -> (Timestamp, &str) {
    (point.created_at, &point.run_id)
}

impl Store for Model {
    fn heeding(self: Arc<Self>, _: &Cancel) -> Arc<dyn Store> {
        self
    }

    fn generation(&self) -> Result<u64> {
        Ok(self.state().generation)
    }

    fn apply(&self, change: Change<'_>) -> Result<Applied> {
        let mut state = self.state();
        let applied = match change {
            Change::Log(change) => match state.reserved(&change) {
                Some(why) => return Err(Error::Import(why)),
                None => state.kept_as_accepted(change)?,
            },
            Change::Skipped { file, .. } if file.path.starts_with(rules::QUEUE) => Applied::default(),
            Change::Skipped { file, broken: true, reason } => state.skipped(file, FileState::Broken(reason)),
            Change::Skipped { file, broken: false, reason } => state.skipped(file, FileState::Skipped(reason)),
            Change::Vanished { paths } => {
                // One by one: the second of two paths may be a copy that goes with the first.
                let gone = paths.iter().filter(|path| !path.starts_with(rules::QUEUE) && state.take(path, None).is_some()).count();
                Applied { changed: gone > 0, ..Applied::default() }
            }
            Change::Remarks { path, remarks } => {
                if let Some(file) = state.files.get_mut(&path) {
                    file.remarks = remarks;
                }
                Applied::default()
            }
            Change::Deed(both) => state.deed(&both.0, both.1),
            Change::Refused { deed, outcome, reason } => state.refused(&deed, outcome, reason),
            Change::Queue(change) => state.queue(change)?,
            Change::Synced { connection, health } => state.synced(&connection, health),
            Change::Refresh | Change::SearchIndex => Applied::default(),
            Change::Declared(declared) => {
                let changed = state.declared != declared;
                state.declared = declared;
                Applied { changed, ..Applied::default() }
            }
        };
        state.number();
        state.generation += u64::from(applied.changed);
        Ok(applied)
    }

    fn files(&self, source: Option<&str>) -> Result<Vec<FileRow>> {
        let rows = self.state().files.values().map(|file| file.row.clone()).collect::<Vec<_>>();
        let fits = |row: &FileRow| source.is_none() || row.stamp.source.as_deref() == source;
        Ok(rows.into_iter().filter(|row| fits(row) && !row.stamp.path.starts_with(rules::QUEUE)).collect())
    }

    fn remarks(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let state = self.state();
        let held = state.files.iter().filter(|(_, file)| !file.remarks.is_empty());
        Ok(held.map(|(path, file)| (path.clone(), file.remarks.clone())).collect())
    }

    fn declared(&self) -> Result<Declared> {
        Ok(self.state().declared.clone())
    }

    fn runs(&self, query: &RunQuery) -> Result<(Vec<Run>, u64)> {
        let world = self.world();
        let fits = |run: &Run| {
            let cells = &world.runs[&run.run_id].cells;
            let sha = run.git.as_ref().and_then(|git| git.sha.as_deref());
            let same = |given: &String| sha.is_some_and(|sha| crate::domain::reference::same_commit(sha, given));
            query.evaluation_contains.as_deref().is_none_or(|part| cells.iter().any(|cell| contains(&cell.key.evaluation, Some(part))))
                && query.kind.is_none_or(|kind| kind == run.kind)
                && query.status.is_none_or(|status| status == run.status)
                && query.round.as_ref().is_none_or(|round| run.round.as_ref() == Some(round))
                && query.since.is_none_or(|since| run.created_at >= since)
                && query.shas.as_ref().is_none_or(|shas| shas.iter().any(same))
        };
        let all: Vec<Run> = world.newest_first().into_iter().filter(fits).collect();
        let total = all.len() as u64;
        let before = |run: &Run| query.before.as_ref().is_none_or(|before| place(run) < at(before));
        Ok((all.into_iter().filter(before).take(query.limit).collect(), total))
    }

    fn select(&self, selector: &Selector<'_>, limit: usize) -> Result<Vec<Run>> {
        let runs = self.world().newest_first().into_iter();
        let sha = |run: &Run| run.git.as_ref().and_then(|git| git.sha.as_ref()).map(|sha| sha.to_ascii_lowercase());
        Ok(match selector {
            Selector::Latest(back) => runs.skip(*back as usize).take(limit.min(1)).collect(),
            Selector::Id(id) => runs.filter(|run| run.run_id == *id).take(limit).collect(),
            Selector::IdPrefix(prefix) => runs.filter(|run| run.run_id.starts_with(prefix)).take(limit).collect(),
            Selector::ShaPrefix(prefix) => runs.filter(|run| sha(run).is_some_and(|sha| sha.starts_with(prefix))).take(limit).collect(),
        })
    }

    fn arms(&self, runs: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>> {
        let world = self.world();
        Ok(runs.iter().filter_map(|run| Some((run.clone(), world.runs.get(run)?.arms.clone()))).collect())
    }

    fn evaluations(&self, run: &str) -> Result<Vec<RunEvaluation>> {
        Ok(self.world().runs.get(run).map(|run| run.evaluations.clone()).unwrap_or_default())
    }

    fn groups(&self, run: &str) -> Result<Groups> {
        Ok(self.world().runs.get(run).map(|run| run.groups.clone()).unwrap_or_default())
    }

    fn ancestors(&self, run: &str) -> Result<Vec<String>> {
        Ok(self.world().runs.get(run).map(|run| run.ancestors.clone()).unwrap_or_default())
    }

    fn cells(&self, query: &CellQuery) -> Result<Vec<Cell>> {
        let found = self.found(query);
        self.1.fetch_max(found.len(), Relaxed);
        Ok(found)
    }

    fn keys(&self, query: &CellQuery) -> Result<Vec<CellKey>> {
        let mut keys: Vec<CellKey> = self.found(query).into_iter().map(|cell| cell.key).collect();
        keys.dedup();
        Ok(keys)
    }

    fn points(&self, query: &PointQuery<'_>) -> Result<Vec<Point>> {
        let world = self.world();
        let grain = if query.keys.is_some() { query.grain } else { Grain::Evaluation };
        let mut newest: BTreeMap<CellKey, Point> = BTreeMap::new();
        for (run, cell) in world.recorded_cells() {
            let point = Point { cell: cell.clone(), run: RunPoint { run_id: run.run_id.clone(), created_at: run.created_at } };
            let fits = cell.key.case.is_some() == (grain == Grain::Case)
                && contains(&cell.key.evaluation, query.evaluation_contains)
                && query.keys.is_none_or(|keys| keys.contains(&cell.key))
                && (!query.counted || cell.verdict.counted())
                && (query.statuses.is_empty() || query.statuses.contains(&run.status));
            let (inside, rising) = match query.pick {
                Pick::Newest => (true, true),
                Pick::NewestUpTo(time) => (run.created_at <= time, true),
                Pick::OldestAfter(time) => (run.created_at > time, false),
            };
            let better = newest.get(&cell.key).is_none_or(|held| (at(&point.run) > at(&held.run)) == rising);
            if fits && inside && better {
                newest.insert(cell.key.clone(), point);
            }
        }
        Ok(newest.into_values().collect())
    }

    fn projections(&self, query: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>> {
        let state = self.state();
        let seen = state.evaluations.iter().any(|id| id == query.evaluation);
        Ok(seen.then(|| projections::page(&state.world(), query)))
    }

    fn cursor_key(&self) -> Result<[u8; 32]> {
        Ok(self.2)
    }

    fn bases(&self, query: &BaseQuery<'_>) -> Result<Vec<Base>> {
        let world = self.world();
        let same = |run: &Run, given: &String| {
            let sha = run.git.as_ref().and_then(|git| git.sha.as_deref());
            sha.is_some_and(|sha| crate::domain::reference::same_commit(sha, given))
        };
        let base = |run: Run| {
            let cells = world.runs[&run.run_id].cells.iter().filter(|cell| cell.key.case.is_none() && cell.verdict.counted());
            let keys: Vec<CellKey> = cells.map(|cell| cell.key.clone()).collect();
            let fits = run.kind == Kind::Recorded
                && run.status == RunStatus::Completed
                && place(&run) < at(&query.before)
                && query.shas.is_none_or(|shas| shas.iter().any(|sha| same(&run, sha)));
            let shared = compare::shared(query.keys, &keys);
            (fits && shared > 0).then_some(Base { run, shared })
        };
        Ok(world.newest_first().into_iter().filter_map(base).take(query.limit).collect())
    }

    fn streaks(&self, run: &RunPoint, grain: Grain, keys: &[CellKey]) -> Result<Vec<Streak>> {
        let world = self.world();
        let streak = |key: &CellKey| {
            if key.case.is_some() != (grain == Grain::Case) {
                return Streak::default();
            }
            let mut earlier: Vec<(Verdict, RunPoint)> = world
                .recorded_cells()
                .filter(|(_, cell)| cell.key == *key && cell.verdict.counted())
                .map(|(run, cell)| (cell.verdict, RunPoint { run_id: run.run_id.clone(), created_at: run.created_at }))
                .filter(|(_, other)| at(other) < at(run))
                .collect();
            earlier.sort_by(|a, b| at(&a.1).cmp(&at(&b.1)));
            let own = world.runs.get(&run.run_id).and_then(|run| run.cells.iter().find(|cell| cell.key == *key)).map(|cell| cell.verdict);
            story(&earlier, own, run)
        };
        Ok(keys.iter().map(streak).collect())
    }

    fn attempts(&self, run: &str, query: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>> {
        let world = self.world();
        let Some(run) = world.runs.get(run) else { return Ok(Vec::new()) };
        let of = |key: &CellKey, row: &AttemptRow| {
            key.evaluation == row.evaluation && key.arm == row.arm && key.case.as_ref().is_none_or(|case| *case == row.case)
        };
        let fits = |row: &AttemptRow| {
            contains(&row.evaluation, query.evaluation_contains)
                && query.keys.is_none_or(|keys| keys.iter().any(|key| of(key, row)))
                && (query.outcomes.is_empty() || query.outcomes.contains(&row.outcome))
        };
        let shown = |kept: &KeptAttempt| {
            let checks = if query.checks { kept.row.checks.clone() } else { Vec::new() };
            let rest = kept.row.rest.clone().filter(|_| query.rest);
            AttemptRow { checks, rest, ..kept.row.clone() }
        };
        Ok(run.attempts.iter().filter(|kept| fits(&kept.row)).map(shown).collect())
    }

    fn find_attempts(&self, run: &str, name: &str) -> Result<Vec<AttemptRow>> {
        let world = self.world();
        let Some(run) = world.runs.get(run) else { return Ok(Vec::new()) };
        let rows = || run.attempts.iter().map(|kept| AttemptRow { rest: None, ..kept.row.clone() });
        let exact: Vec<AttemptRow> = rows().filter(|row| row.key == name).collect();
        if !exact.is_empty() {
            return Ok(exact);
        }
        let short = |row: &AttemptRow| {
            name == format!("{}#{}", row.evaluation, row.n) || name == key::attempt_key(&row.evaluation, "", None, row.n)
        };
        Ok(rows().filter(short).take(6).collect())
    }

    fn causes(&self, run: &str, evaluation_contains: Option<&str>) -> Result<Vec<Cause>> {
        let world = self.world();
        let Some(run) = world.runs.get(run) else { return Ok(Vec::new()) };
        let mut causes: BTreeMap<String, Cause> = BTreeMap::new();
        for signature in run.attempts.iter().filter_map(|kept| kept.signature.as_ref()) {
            let cause = Cause {
                signature: signature.hash.clone(),
                evaluation: signature.evaluation.clone(),
                outcome: signature.outcome,
                check: signature.check.clone(),
                reason: signature.reason.clone(),
                attempts: 0,
            };
            causes.entry(signature.hash.clone()).or_insert(cause).attempts += 1;
        }
        let mut out: Vec<Cause> = causes.into_values().filter(|cause| contains(&cause.evaluation, evaluation_contains)).collect();
        out.sort_by_key(|cause| std::cmp::Reverse(cause.attempts));
        Ok(out)
    }

    fn query(&self, _: &Query) -> std::result::Result<Rows, QueryFault> {
        Err(QueryFault::Store("the plain model speaks no SQL".to_owned()))
    }

    fn objects(&self) -> Result<Vec<Object>> {
        Ok(Vec::new())
    }

    fn extras(&self, run: &str) -> Result<Option<RunExtras>> {
        Ok(self.world().runs.get(run).map(|run| run.extras.clone()))
    }

    fn analyses(&self, run: &str) -> Result<Vec<Analysis>> {
        Ok(self.world().runs.get(run).map(|run| run.analyses.clone()).unwrap_or_default())
    }

    fn names(&self, of: Named<'_>, part: &str, limit: usize) -> Result<(Vec<String>, u64)> {
        let world = self.world();
        let all: Vec<String> = match of {
            Named::Runs => world.newest_first().into_iter().map(|run| run.run_id).collect(),
            Named::Evaluations => {
                let ids: BTreeSet<String> =
                    world.runs.values().flat_map(|run| run.evaluations.iter().map(|evaluation| evaluation.info.id.clone())).collect();
                ids.into_iter().collect()
            }
            Named::Attempts(run) => {
                let keys: BTreeSet<String> =
                    world.runs.get(run).into_iter().flat_map(|run| run.attempts.iter().map(|kept| kept.row.key.clone())).collect();
                keys.into_iter().collect()
            }
        };
        let mut found: Vec<String> = all.into_iter().filter(|name| contains(name, Some(part))).collect();
        found.sort_by_key(|name| !name.to_lowercase().starts_with(&part.to_lowercase()));
        let total = found.len() as u64;
        found.truncate(limit);
        Ok((found, total))
    }

    fn transcript_text(&self, run: &str, key: &str, bytes_max: usize) -> Result<Option<Beginning>> {
        let Some(Lines { total, lines }) = self.transcript(run, key, 0, u64::MAX)? else { return Ok(None) };
        let mut text = String::new();
        let fitting = lines.iter().take_while(|line| {
            let fits = text.len() + line.len() < bytes_max;
            if fits {
                text = format!("{text}{line}\n");
            }
            fits
        });
        let lines = fitting.count() as u64;
        Ok(Some(Beginning { total, lines, text }))
    }

    fn transcript(&self, run: &str, key: &str, offset: u64, limit: u64) -> Result<Option<Lines>> {
        let world = self.world();
        let Some(kept) = world.runs.get(run).and_then(|run| run.attempts.iter().find(|kept| kept.row.key == key)) else { return Ok(None) };
        let lines = kept.transcript.page(offset, limit).map_err(|_| Error::Damaged)?;
        Ok(Some(Lines { total: kept.transcript.lines, lines }))
    }
}

/// The streak at `run`, whose own verdict is `own`, after the counted cells of `earlier` runs.
fn story(earlier: &[(Verdict, RunPoint)], own: Option<Verdict>, run: &RunPoint) -> Streak {
    let last_pass = earlier.iter().rposition(|(verdict, _)| *verdict == Verdict::Pass);
    let after = &earlier[last_pass.map_or(0, |place| place + 1)..];
    let row = earlier.iter().rev().take_while(|(verdict, _)| Some(*verdict) == own).last();
    Streak {
        previous: earlier.last().cloned(),
        last_pass: last_pass.map(|place| earlier[place].1.clone()),
        failing_since: after.first().map(|(_, run)| run.clone()),
        failed_before: earlier.iter().any(|(verdict, _)| *verdict != Verdict::Pass),
        verdict_since: own.map(|_| row.map_or_else(|| run.clone(), |(_, run)| run.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contract::{Fresh, contract, workspace_contract};

    fn fresh() -> Fresh {
        Fresh { store: Box::new(Model::default()), _dir: None }
    }

    contract!(fresh);
    workspace_contract!(fresh);
}
