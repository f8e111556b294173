//! CPU time of pages of one evaluation's runs over 100,000 of them: whether the last page costs what the first does.
//!
//! `cargo bench --bench projections` makes the store (some minutes, once; kept under `target/bench/`), walks each of the four orders to its end
//! by cursors and prints what pages cost; `-- --check` also exits with 1 when a target is missed; `-- --runs=N` takes another number of runs.
//!
//! Promises: what is measured is what a call costs behind the protocol (decode, cursor, store, JSON, text), in CPU time of the one thread that
//! does it; a walk sees every run once.
//! Does not: measure the protocol.

use std::{collections::HashSet, error::Error, io::Write as _, path::PathBuf, process::ExitCode, sync::Arc};

use nix::time::{ClockId, clock_gettime};
use runlore::{
    auth::Caller,
    domain::{
        attempt::{Attempt, Check},
        log::{ArmInfo, EvaluationInfo, LogHeader, RunStatus},
        outcome::Outcome,
        time::Timestamp,
    },
    store::{
        Change, FileStamp, Kind, LogChange, Store as _,
        sqlite::{Options, Sqlite},
    },
    tools::{self, Ctx, Entry},
};
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: u32 = 100_000;
const PAGE: u32 = 100;
const EVALUATION: &str = "suite/refunds";
/// How much more than the first pages the last ones may cost (issue 6, decision 13).
const GROWTH_MAX: f64 = 1.2;
/// Pages at either end of a walk whose median is compared; each of them is a whole page between others.
const PAGES: usize = 25;
/// Changed whenever what is made here changes.
const EDITION: u32 = 1;

type Failed = Box<dyn Error>;

fn main() -> ExitCode {
    match measured() {
        Ok(missed) if missed && std::env::args().any(|argument| argument == "--check") => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the benchmark failed: {error}");
            ExitCode::from(2)
        }
    }
}

/// Measures and prints; whether a target was missed.
fn measured() -> Result<bool, Failed> {
    let given = std::env::args().find_map(|argument| argument.strip_prefix("--runs=").and_then(|runs| runs.parse().ok()));
    let runs = given.unwrap_or(RUNS);
    let path = have(runs)?;
    let mut out = std::io::stdout();
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    writeln!(out, "{runs} runs of one evaluation: {megabytes:.0} MB; CPU ms per page of {PAGE}, medians of {PAGES} pages at either end")?;
    writeln!(out, "{:<18}{:>7}{:>8}{:>8}{:>8}{:>9}  target", "order", "pages", "first", "last", "ratio", "all (s)")?;
    let mut missed = false;
    for by in ["created_at", "status"] {
        for order in ["desc", "asc"] {
            let took = walk(&path, by, order, runs)?;
            // Neither the page without a cursor nor the one without a next has two neighbours.
            let inner = took.get(1..took.len().saturating_sub(1)).unwrap_or_default();
            let (first, last) = (median(inner.iter().take(PAGES)), median(inner.iter().rev().take(PAGES)));
            let met = last <= first * GROWTH_MAX;
            missed |= !met;
            let name = format!("{by} {order}");
            let said = if met { "ok" } else { "MISSED" };
            let (ratio, all) = (last / first, took.iter().sum::<f64>() / 1e3);
            writeln!(out, "{name:<18}{:>7}{first:>8.3}{last:>8.3}{ratio:>8.2}{all:>9.2}  <= {GROWTH_MAX}: {said}", took.len())?;
        }
    }
    Ok(missed)
}

/// What each page of one order took, by the cursors of the pages before; an error where it was not every run once.
fn walk(path: &std::path::Path, by: &str, order: &str, runs: u32) -> Result<Vec<f64>, Failed> {
    let entry = tools::find("veryfront__list_eval_run_projections").ok_or("no such tool")?;
    let caller = Caller::local();
    let store = Sqlite::open(path, &caller.local_scope(), &Options::default())?;
    let now = Timestamp::from_millis(0);
    let ctx = Ctx { project: "local".into(), ..Ctx::new(Arc::new(store), caller, now) };
    let (mut took, mut seen, mut cursor) = (Vec::new(), HashSet::new(), Value::Null);
    // A handle that was just opened has planned no statement yet.
    page(&ctx, entry, by, order, &Value::Null)?;
    loop {
        let (ms, answer) = page(&ctx, entry, by, order, &cursor)?;
        took.push(ms);
        let rows = answer.get("data").and_then(Value::as_array).ok_or("no data")?;
        seen.extend(rows.iter().filter_map(|row| row.get("run_id")?.as_str().map(str::to_owned)));
        cursor = answer.pointer("/page_info/next").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    let expected = (runs.div_ceil(PAGE) as usize, runs as usize);
    if (took.len(), seen.len()) == expected { Ok(took) } else { Err(format!("{} pages of {} runs", took.len(), seen.len()).into()) }
}

fn page(ctx: &Ctx, entry: &Entry, by: &str, order: &str, cursor: &Value) -> Result<(f64, Value), Failed> {
    let given = json!({"eval_id": EVALUATION, "limit": PAGE, "sort_by": by, "sort_order": order, "cursor": cursor});
    let arguments: Map<String, Value> = given.as_object().cloned().unwrap_or_default();
    let begun = cpu_ms()?;
    let answer = (entry.run)(ctx, arguments)?;
    let took = cpu_ms()? - begun;
    Ok((took, serde_json::from_str(answer.json.get())?))
}

/// The store, which is there or made now.
fn have(runs: u32) -> Result<PathBuf, Failed> {
    let tmp = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = tmp.parent().unwrap_or(tmp).join("bench");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("projections-{runs}.{EDITION}.db"));
    if path.exists() {
        return Ok(path);
    }
    // Under another name until it is whole, so that a killed run leaves no half store to be measured.
    let partial = directory.join(format!("projections-{}.partial", std::process::id()));
    let store = Sqlite::open(&partial, &Caller::local().local_scope(), &Options::default())?;
    for run in 0..runs {
        store.apply(Change::Log(log(run, &mut [Ok(attempt(run))].into_iter())))?;
    }
    drop(store);
    rusqlite::Connection::open(&partial)?.pragma_update_and_check(None, "wal_checkpoint", "truncate", |_| Ok(()))?;
    std::fs::rename(&partial, &path)?;
    Ok(path)
}

fn log<'a>(run: u32, attempts: &'a mut dyn Iterator<Item = Result<Attempt, String>>) -> LogChange<'a> {
    // Neither in the order of their coming nor of their status; some at one time.
    let created_at = Timestamp::from_millis(1_700_000_000_000 + i64::from(run.wrapping_mul(2_654_435_761) % 50_000) * 60_000);
    // All have ended, so that every page of every order shows as much.
    let ended = [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];
    let status = ended.get(run.wrapping_mul(40_503) as usize / 64 % 3).copied().unwrap_or(RunStatus::Completed);
    let header = LogHeader {
        report_path: None,
        log_id: format!("log-{run}"),
        format: "inspect".to_owned(),
        run_key: format!("run-{run:08}"),
        task_id: None,
        status,
        created_at,
        started_at: Some(created_at),
        completed_at: Some(created_at.plus_millis(60_000)),
        git: None,
        round: None,
        evaluations: vec![EvaluationInfo { id: EVALUATION.to_owned(), ..EvaluationInfo::default() }],
        arms: vec![ArmInfo { name: "agent".to_owned(), ..ArmInfo::default() }],
        invalidated: false,
        error: (status == RunStatus::Failed).then(|| "the provider refused".to_owned()),
        tags: Vec::new(),
        metadata: [("branch".to_owned(), json!("main"))].into(),
        metrics: Vec::new(),
    };
    let file = FileStamp {
        path: format!("logs/{run}.eval"),
        size: 1_000,
        mtime_ns: 1,
        digest: format!("{run:064x}"),
        source: Some("logs".to_owned()),
    };
    LogChange { file, kind: Kind::Recorded, header, extras: Default::default(), pinned: false, ancestors: Vec::new(), attempts }
}

fn attempt(run: u32) -> Attempt {
    let passed = !run.is_multiple_of(3);
    let check = |name: &str, value: f64| Check { name: name.to_owned(), kind: "score".to_owned(), value: Some(value), ..Check::default() };
    Attempt {
        outcome: if passed { Outcome::Pass } else { Outcome::Fail },
        checks: vec![check("match", f64::from(u8::from(passed))), check("tone", 0.5)],
        duration_ms: Some(1_000),
        ..Attempt::unscored(EVALUATION.to_owned(), "agent".to_owned(), "1".to_owned(), 1)
    }
}

/// CPU milliseconds (user and system) that this thread has used.
fn cpu_ms() -> Result<f64, Failed> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(used.tv_sec() as f64 * 1e3 + used.tv_nsec() as f64 / 1e6)
}

fn median<'a>(of: impl Iterator<Item = &'a f64>) -> f64 {
    let mut of: Vec<f64> = of.copied().collect();
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}
