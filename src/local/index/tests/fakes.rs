//! A store that remembers files and logs, and an importer of a toy format.
//!
//! The format: `LOG <id> <run> [round=R] [sha=S] [meta=k:v]`, then a line per attempt (`pass`, `fail`, `error_attempt`), `complain`, or
//! `ERROR <text>`. A first line that is a path makes the importer append to that file, as a writer would do meanwhile.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, Mutex},
};

use crate::{
    domain::{
        attempt::Attempt,
        cell::{Cell, CellKey, Grain},
        declared::Declared,
        extras::{Analysis, Extras},
        log::{Git, LogHeader, RunStatus},
        outcome::{Counts, Outcome},
        time::Timestamp,
    },
    importers::{Input, Item, Limits, Opened, Refused, beside::Beside},
    store::{workspace::*, *},
    telemetry::redaction::Redactor,
};

pub fn open<'a>(
    mut input: Box<dyn Input + 'a>,
    _: &'a dyn Beside,
    _: &'a Limits,
    _: &'a Redactor,
) -> std::result::Result<Opened<'a>, Refused> {
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| Refused::Broken(error.to_string()))?;
    if text.starts_with('/') {
        let (path, rest) = text.split_once("\nGROW ").unwrap();
        std::fs::File::options().append(true).open(path).unwrap().write_all(b"pass\n").unwrap();
        text = rest.trim_start_matches("x\n").to_owned();
    }
    let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
    let first = lines.next().unwrap_or_default();
    let words: Vec<&str> = first.split(' ').collect();
    match words.as_slice() {
        ["LOG", id, run, more @ ..] => {
            Ok(Opened { header: header(id, run, more), extras: Extras::default(), items: Box::new(lines.map(item)) })
        }
        ["BROKEN"] => Err(Refused::Broken("the archive is cut short".to_owned())),
        _ => Err(Refused::NotALog("is no log".to_owned())),
    }
}

fn header(id: &str, run: &str, more: &[&str]) -> LogHeader {
    let value = |name: &str| more.iter().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
    let metadata = value("meta=").map(|pair| pair.split_once(':').map(|(key, value)| (key.to_owned(), value.into())).unwrap());
    LogHeader {
        report_path: None,
        format: "toy".to_owned(),
        log_id: id.to_owned(),
        run_key: run.to_owned(),
        task_id: None,
        status: RunStatus::Completed,
        created_at: Timestamp::from_millis(0),
        started_at: None,
        completed_at: None,
        git: value("sha=").map(|sha| Git { sha: Some(sha), ..Git::default() }),
        round: value("round="),
        evaluations: Vec::new(),
        arms: Vec::new(),
        invalidated: false,
        error: None,
        tags: Vec::new(),
        metadata: metadata.into_iter().collect(),
        metrics: Vec::new(),
    }
}

fn item(line: String) -> std::result::Result<Item, String> {
    let outcome = match line.as_str() {
        "pass" => Outcome::Pass,
        "fail" => Outcome::Fail,
        "error_attempt" => Outcome::InfraError,
        "complain" => return Ok(Item::Complaint("sample 1 has no id".to_owned())),
        other => return Err(other.strip_prefix("ERROR ").unwrap_or(other).to_owned()),
    };
    Ok(Item::Attempt(Box::new(Attempt { outcome, ..Attempt::unscored("e".to_owned(), "m".to_owned(), String::new(), 1) })))
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, FileRow>,
    logs: BTreeMap<String, (String, bool)>,
    declared: Declared,
    remarks: BTreeMap<String, Vec<String>>,
    applied: u64,
    pulled: u64,
    ancestors: Vec<String>,
    refusal: Option<Error>,
}

#[derive(Default)]
pub struct Memory(Mutex<State>);

impl Memory {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn refuse(&self, error: Option<Error>) {
        self.state().refusal = error;
    }

    pub fn applied(&self) -> u64 {
        self.state().applied
    }

    pub fn pulled(&self) -> u64 {
        self.state().pulled
    }

    pub fn logs(&self) -> Vec<(String, String, bool)> {
        self.state().logs.iter().map(|(path, (run_key, pinned))| (path.clone(), run_key.clone(), *pinned)).collect()
    }

    pub fn sources(&self) -> Vec<String> {
        let source = |row: &FileRow| row.stamp.source.clone().unwrap_or_else(|| "by hand".to_owned());
        self.state().files.values().map(|row| format!("{} <- {}", row.stamp.path, source(row))).collect()
    }
}

impl State {
    fn log(&mut self, change: LogChange<'_>) -> Result<Applied> {
        let held = (change.header.run_key.clone(), change.pinned);
        self.ancestors = change.ancestors;
        let path = change.file.path.clone();
        let same = self.files.get(&path).is_some_and(|row| row.stamp.digest == change.file.digest) && self.logs.get(&path) == Some(&held);
        let mut applied = Applied { changed: !same, run_id: Some(held.0.clone()), ..Applied::default() };
        if !same {
            let outcomes = change.attempts.map(|attempt| attempt.map(|attempt| attempt.outcome));
            let outcomes = outcomes.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::Import)?;
            self.pulled += outcomes.len() as u64;
            applied.attempts = outcomes.len() as u64;
            applied.counts = Counts::of(outcomes);
            self.logs.insert(path.clone(), held);
        }
        self.files.insert(path, FileRow { stamp: change.file, state: FileState::Log(change.header.log_id) });
        Ok(applied)
    }
}

impl Store for Memory {
    fn heeding(self: Arc<Self>, _: &Cancel) -> Arc<dyn Store> {
        self
    }

    fn generation(&self) -> Result<u64> {
        Ok(self.applied())
    }

    fn apply(&self, change: Change<'_>) -> Result<Applied> {
        let mut state = self.state();
        if let Some(error) = &state.refusal {
            return Err(if matches!(error, Error::Busy) { Error::Busy } else { Error::ReadOnly });
        }
        state.applied += 1;
        match change {
            Change::Deed(_) | Change::Refused { .. } | Change::Queue(_) | Change::Synced { .. } => Err(Error::ReadOnly),
            Change::Log(change) => state.log(change),
            Change::Skipped { file, broken, reason } => {
                let changed = state.logs.remove(&file.path).is_some();
                let held = if broken { FileState::Broken(reason) } else { FileState::Skipped(reason) };
                state.files.insert(file.path.clone(), FileRow { stamp: file, state: held });
                Ok(Applied { changed, ..Applied::default() })
            }
            Change::Vanished { paths } => {
                for path in &paths {
                    state.files.remove(path);
                    state.logs.remove(path);
                }
                Ok(Applied { changed: true, ..Applied::default() })
            }
            Change::Remarks { path, remarks } => {
                state.remarks.insert(path, remarks);
                Ok(Applied::default())
            }
            Change::Refresh | Change::SearchIndex => Ok(Applied::default()),
            Change::Declared(declared) => {
                state.declared = declared;
                Ok(Applied { changed: true, ..Applied::default() })
            }
        }
    }

    fn files(&self, _: Option<&str>) -> Result<Vec<FileRow>> {
        Ok(self.state().files.values().cloned().collect())
    }

    fn remarks(&self) -> Result<BTreeMap<String, Vec<String>>> {
        Ok(self.state().remarks.clone())
    }

    fn declared(&self) -> Result<Declared> {
        Ok(self.state().declared.clone())
    }

    fn runs(&self, _: &RunQuery) -> Result<(Vec<Run>, u64)> {
        Ok((Vec::new(), 0))
    }

    fn select(&self, selector: &Selector<'_>, _: usize) -> Result<Vec<Run>> {
        let Selector::Id(id) = selector else { return Ok(Vec::new()) };
        let run = Run {
            run_id: (*id).to_owned(),
            number: 1,
            kind: Kind::Recorded,
            status: RunStatus::Completed,
            created_at: Timestamp::from_millis(0),
            started_at: None,
            completed_at: None,
            git: None,
            round: None,
            counts: Counts::default(),
        };
        Ok(self.state().logs.values().any(|(run_key, _)| run_key == id).then_some(run).into_iter().collect())
    }

    fn arms(&self, _: &[String]) -> Result<BTreeMap<String, Vec<RunArm>>> {
        Ok(BTreeMap::new())
    }

    fn evaluations(&self, _: &str) -> Result<Vec<RunEvaluation>> {
        Ok(Vec::new())
    }

    fn groups(&self, _: &str) -> Result<Groups> {
        Ok(Groups::new())
    }

    fn ancestors(&self, _: &str) -> Result<Vec<String>> {
        Ok(self.state().ancestors.clone())
    }

    fn cells(&self, _: &CellQuery) -> Result<Vec<Cell>> {
        Ok(Vec::new())
    }

    fn keys(&self, _: &CellQuery) -> Result<Vec<CellKey>> {
        Ok(Vec::new())
    }

    fn points(&self, _: &PointQuery<'_>) -> Result<Vec<Point>> {
        Ok(Vec::new())
    }

    fn projections(&self, _: &ProjectionQuery<'_>) -> Result<Option<ProjectionPage>> {
        Ok(None)
    }

    fn cursor_key(&self) -> Result<[u8; 32]> {
        Ok([7; 32])
    }

    fn bases(&self, _: &BaseQuery<'_>) -> Result<Vec<Base>> {
        Ok(Vec::new())
    }

    fn streaks(&self, _: &RunPoint, _: Grain, _: &[CellKey]) -> Result<Vec<Streak>> {
        Ok(Vec::new())
    }

    fn query(&self, _: &Query) -> std::result::Result<Rows, QueryFault> {
        Err(QueryFault::Busy)
    }

    fn objects(&self) -> Result<Vec<Object>> {
        Ok(Vec::new())
    }

    fn extras(&self, _: &str) -> Result<Option<RunExtras>> {
        Ok(None)
    }

    fn analyses(&self, _: &str) -> Result<Vec<Analysis>> {
        Ok(Vec::new())
    }

    fn attempts(&self, _: &str, _: &AttemptQuery<'_>) -> Result<Vec<AttemptRow>> {
        Ok(Vec::new())
    }

    fn find_attempts(&self, _: &str, _: &str) -> Result<Vec<AttemptRow>> {
        Ok(Vec::new())
    }

    fn names(&self, _: Named<'_>, _: &str, _: usize) -> Result<(Vec<String>, u64)> {
        Ok((Vec::new(), 0))
    }

    fn transcript_text(&self, _: &str, _: &str, _: usize) -> Result<Option<Beginning>> {
        Ok(None)
    }

    fn causes(&self, _: &str, _: Option<&str>) -> Result<Vec<Cause>> {
        Ok(Vec::new())
    }

    fn transcript(&self, _: &str, _: &str, _: u64, _: u64) -> Result<Option<Lines>> {
        Ok(None)
    }
}

impl crate::store::Catalog for Memory {}

impl survey::Survey for Memory {
    fn figures(&self, _: &str) -> Result<BTreeMap<String, crate::domain::figures::Figures>> {
        Ok(BTreeMap::new())
    }

    fn ranked(&self, _: &[survey::Document], _: &[String], _: usize) -> Result<(Vec<survey::Hit>, u64)> {
        Ok((Vec::new(), 0))
    }
}

impl Workspace for Memory {
    fn authored(&self, _: &AuthoredQuery<'_>) -> Result<(Vec<Authored>, u64)> {
        Ok((Vec::new(), 0))
    }

    fn authored_cases(&self, _: &str, _: u64, _: usize) -> Result<(Vec<AuthoredCase>, u64)> {
        Ok((Vec::new(), 0))
    }

    fn queued(&self, _: &[String]) -> Result<BTreeMap<String, Queued>> {
        Ok(BTreeMap::new())
    }

    fn audit(&self, _: &AuditQuery<'_>) -> Result<(Vec<AuditRow>, u64)> {
        Ok((Vec::new(), 0))
    }

    fn baselines(&self, _: Option<&str>) -> Result<Vec<BaselineRow>> {
        Ok(Vec::new())
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        Ok(Vec::new())
    }

    fn trace(&self, _: &str, _: Timestamp) -> Result<Option<Trace>> {
        Ok(None)
    }

    fn remembered(&self, _: &str, _: &str, _: &str, _: Timestamp) -> Result<Option<Remembered>> {
        Ok(None)
    }
}
