//! The stores that are measured: made through the store's own changes, kept under `target/bench/`.
//!
//! Promises: the same rows every time; a file of another schema is made anew.
//! Does not: import logs (tests/bench/import.py measures that).

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use runlore::{
    auth::Caller,
    domain::{
        attempt::{Attempt, Check, Usage},
        log::{ArmInfo, EvaluationInfo, Git, LogHeader, RunStatus},
        outcome::Outcome,
        time::Timestamp,
    },
    store::{
        Change, FileStamp, Kind, LogChange, Store as _,
        sqlite::{Options, Sqlite},
    },
    telemetry::redaction::Redactor,
    transcript::{Packed, Packer},
};
use rusqlite::{Connection, OpenFlags};

/// Runs of the store that the targets are about.
pub const WHOLE: u32 = 200;
/// Runs of the store that shows what the same answers cost with less behind them. No call looks at more.
pub const SMALL: u32 = 20;
pub const EVALUATIONS: u32 = 500;
pub const ATTEMPTS: u32 = 3;
/// The instant at which the calls are made: 2026-11-30, an hour after the newest run.
pub const NOW_MS: i64 = 1_796_000_400_000;
const RUN_EVERY_MS: i64 = 6 * 3_600_000;
const ARM: &str = "mockllm/model";
/// Changed whenever what is made here changes.
const EDITION: u32 = 1;

/// A store on disk.
pub struct Made {
    pub path: PathBuf,
    pub runs: u32,
    /// CPU seconds that making it took; none where it was there.
    pub took_s: Option<f64>,
    /// What its last run took; none where it was there.
    pub last: Option<Last>,
}

/// CPU milliseconds of the last run: its import, and what the views then had to work out.
#[derive(Clone, Copy)]
pub struct Last {
    pub import_ms: f64,
    pub refresh_ms: f64,
    /// Of all runs before it at once.
    pub whole_ms: f64,
}

type Failed = Box<dyn Error>;

impl Made {
    /// The store of `runs` runs: the one that is there, or made now.
    pub fn have(runs: u32, fresh: bool) -> Result<Self, Failed> {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = tmp.parent().unwrap_or(tmp).join("bench");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("queries-{runs}x{EVALUATIONS}x{ATTEMPTS}.{EDITION}.db"));
        if !fresh && path.exists() && schema(&path)? == newest_schema()? {
            return Ok(Self { path, runs, took_s: None, last: None });
        }
        for end in ["", "-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(end);
            if Path::new(&name).exists() {
                std::fs::remove_file(&name)?;
            }
        }
        // Under another name until it is whole, so that a killed run leaves no half store to be measured.
        let partial = path.with_extension("partial");
        if partial.exists() {
            std::fs::remove_file(&partial)?;
        }
        let begun = super::cpu_ms()?;
        let last = fill(&partial, runs)?;
        std::fs::rename(&partial, &path)?;
        Ok(Self { path, runs, took_s: Some((super::cpu_ms()? - begun) / 1e3), last: Some(last) })
    }
}

fn fill(path: &Path, runs: u32) -> Result<Last, Failed> {
    let store = Sqlite::open(path, &Caller::local().local_scope(), &Options::default())?;
    let transcript = transcript();
    let timed = |change: Change<'_>| -> Result<f64, Failed> {
        let begun = super::cpu_ms()?;
        store.apply(change)?;
        Ok(super::cpu_ms()? - begun)
    };
    let mut last = Last { import_ms: 0.0, refresh_ms: 0.0, whole_ms: 0.0 };
    // Both stores end with the same runs.
    for run in WHOLE - runs..WHOLE {
        if run + 1 == WHOLE {
            last.whole_ms = timed(Change::Refresh)?;
        }
        let mut attempts = (0..EVALUATIONS)
            .flat_map(|evaluation| (1..=ATTEMPTS).map(move |epoch| (evaluation, epoch)))
            .map(|(evaluation, epoch)| Ok(attempt(run, evaluation, epoch, &transcript)));
        last.import_ms = timed(Change::Log(LogChange {
            extras: Default::default(),
            file: stamp(run),
            kind: Kind::Recorded,
            header: header(run),
            pinned: false,
            ancestors: (run.saturating_sub(60)..run).rev().map(sha).collect(),
            attempts: &mut attempts,
        }))?;
    }
    last.refresh_ms = timed(Change::Refresh)?;
    drop(store);
    // A file that is renamed takes no journal with it.
    Connection::open(path)?.pragma_update_and_check(None, "wal_checkpoint", "truncate", |_| Ok(()))?;
    Ok(last)
}

/// The texts of all tables and indexes, and the size of a page.
fn schema(path: &Path) -> Result<Vec<String>, Failed> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut statement = connection.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    let mut found: Vec<String> = rows.collect::<Result<_, _>>()?;
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    found.push(page_bytes.to_string());
    Ok(found)
}

fn newest_schema() -> Result<Vec<String>, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("empty.db");
    drop(Sqlite::open(&path, &Caller::local().local_scope(), &Options::default())?);
    schema(&path)
}

pub fn stamp(run: u32) -> FileStamp {
    FileStamp { path: format!("logs/{run}.eval"), size: 1_000, mtime_ns: 1, digest: format!("{run:064x}"), source: Some("logs".to_owned()) }
}

fn created(run: u32) -> Timestamp {
    Timestamp::from_millis(NOW_MS - 3_600_000 - i64::from(WHOLE - 1 - run) * RUN_EVERY_MS)
}

fn sha(run: u32) -> String {
    format!("{:040x}", u128::from(mixed(&[run, 99])) << 64 | u128::from(run))
}

fn evaluation_id(evaluation: u32) -> String {
    format!("suite/evaluation-{evaluation:03}")
}

pub fn header(run: u32) -> LogHeader {
    let evaluations = (0..EVALUATIONS).map(|number| EvaluationInfo {
        id: evaluation_id(number),
        dataset: Some(format!("dataset-{number:03}")),
        dataset_cases: Some(1),
        dataset_digest: Some(format!("{number:016x}")),
        scorer_digest: Some("match".to_owned()),
        planned: Some(ATTEMPTS),
        ..EvaluationInfo::default()
    });
    let factors = [("model", ARM), ("inspect_ai", "0.3.285")].map(|(name, level)| (name.to_owned(), level.to_owned()));
    LogHeader {
        report_path: None,
        log_id: format!("log-{run}"),
        format: "inspect".to_owned(),
        run_key: format!("run-{:016x}", mixed(&[run, 7])),
        task_id: None,
        status: RunStatus::Completed,
        created_at: created(run),
        started_at: Some(created(run)),
        completed_at: Some(created(run).plus_millis(600_000)),
        git: Some(Git { sha: Some(sha(run)), branch: Some("main".to_owned()), dirty: Some(false) }),
        round: None,
        evaluations: evaluations.collect(),
        arms: vec![ArmInfo { name: ARM.to_owned(), role: None, factors: factors.into() }],
        invalidated: false,
        error: None,
        tags: Vec::new(),
        metadata: std::collections::BTreeMap::new(),
        metrics: Vec::new(),
    }
}

/// One in twenty evaluations fails for ten runs out of forty; of the others one attempt in forty fails, and one in two hundred errs.
pub fn attempt(run: u32, evaluation: u32, epoch: u32, transcript: &Packed) -> Attempt {
    let broken = evaluation % 20 == 3 && (run + evaluation) % 40 < 10;
    let outcome = match mixed(&[run, evaluation, epoch]) % 200 {
        _ if broken => Outcome::Fail,
        0 => Outcome::InfraError,
        1..=5 => Outcome::Fail,
        _ => Outcome::Pass,
    };
    let passed = outcome == Outcome::Pass;
    let error =
        (outcome == Outcome::InfraError).then(|| format!("RateLimitError: request {} was refused after 5 tries", mixed(&[run, epoch])));
    let check = |name: &str, passed: bool| Check {
        name: name.to_owned(),
        kind: "score".to_owned(),
        passed: Some(passed),
        value: Some(f64::from(u8::from(passed))),
        label: Some(if passed { "C" } else { "I" }.to_owned()),
        answer: Some(format!("the answer of evaluation {evaluation}")),
        reason: Some(format!("the answer {} what was asked for in evaluation {evaluation}", if passed { "has" } else { "lacks" })),
    };
    let checks = if error.is_some() { Vec::new() } else { vec![check("match", passed), check("tone", true)] };
    Attempt {
        evaluation: evaluation_id(evaluation),
        arm: ARM.to_owned(),
        case: "1".to_owned(),
        group: None,
        epoch,
        uuid: Some(format!("{:016x}", mixed(&[run, evaluation, epoch, 1]))),
        outcome,
        score: error.is_none().then_some(f64::from(u8::from(passed))),
        checks,
        usage: Usage { input_tokens: Some(900), output_tokens: Some(180), total_tokens: Some(1_080), ..Usage::default() },
        cost_usd: Some(0.0042),
        duration_ms: Some(4_000 + mixed(&[run, evaluation, epoch, 2]) % 4_000),
        working_ms: Some(4_000),
        started_at: Some(created(run).plus_millis(i64::from(evaluation) * 1_000)),
        error,
        limit: None,
        retries: 0,
        input: Some(format!("What is asked in evaluation {evaluation}, in a sentence or two of ordinary length.")),
        target: Some(format!("what is right in evaluation {evaluation}")),
        output: Some(format!("What was answered in evaluation {evaluation}, in a sentence or two of ordinary length.")),
        transcript: transcript.clone(),
        label: None,
        answers: Vec::new(),
        skill_reads: Vec::new(),
        context: None,
    }
}

/// Every attempt's transcript: twenty messages and as many events.
pub fn transcript() -> Packed {
    let redactor = Redactor::patterns_only();
    let mut packer = Packer::new(&redactor);
    let text = "a message of ordinary length, as agents and models send them to each other all day long ".repeat(4);
    for number in 0..20 {
        packer.line(&format!("{{\"role\":\"assistant\",\"id\":\"message-{number}\",\"content\":\"{text}\"}}"));
    }
    packer.end_of_conversation();
    for number in 0..20 {
        packer.line(&format!("{{\"event\":\"tool\",\"id\":\"call-{number}\",\"function\":\"search\",\"result\":\"{text}\"}}"));
    }
    packer.finish()
}

/// A number that looks random and is the same every time (FNV-1a with a last stir).
fn mixed(of: &[u32]) -> u64 {
    let hash = of.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| (hash ^ u64::from(*part)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}
