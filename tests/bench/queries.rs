//! CPU time per call of the read tools over a large store, beside a bare SELECT of as many cells.
//!
//! `cargo bench --bench queries` prints a table; `-- --check` also exits with 1 when a target is missed; `-- --fresh` makes the stores anew
//! (they are kept under `target/bench/` and made anew by themselves when the schema has changed); `-- --only=history` measures the calls
//! whose name contains that, which is also what to run under a profiler.
//!
//! Promises: what is measured is what a call costs behind the protocol (decode, store, JSON, text), in CPU time of the one thread that does
//! it; the same calls over a tenth of the runs show that cost grows with what is shown and not with what is stored.
//! Does not: measure the protocol, process start or imports.

#[path = "queries/catalog.rs"]
mod catalog;
#[path = "queries/made.rs"]
mod made;

use std::{error::Error, io::Write as _, process::ExitCode, sync::Arc};

use nix::time::{ClockId, clock_gettime};
use runlore::{
    auth::Caller,
    store::sqlite::{Options, Sqlite},
    tools::{self, Ctx, query::views::VIEWS},
};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};

use made::{Made, NOW_MS, SMALL, WHOLE};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a call may take at the median, where a target is set (issue 2).
const TARGET_MS: f64 = 20.0;
/// The whole store may cost so many times what a tenth of its runs costs for the same answer, and a little more: a seek in a tree that is
/// a level deeper, a count over rows of runs.
const GROWTH_MAX: f64 = 1.5;
const GROWTH_MS: f64 = 0.5;
const TIMES: usize = 20;
/// What a view may take with its default limit (issue 5), and how much of an import's cost its refresh may be.
const VIEW_MS: f64 = 50.0;
const REFRESH_MAX: f64 = 0.3;

/// The calls: their name, the tool, its arguments, whether the target holds for it, and the runs of which the floor selects the cells.
const CALLS: &[(&str, &str, &str, bool, u32)] = &[
    ("history", "history", "{}", true, 20),
    ("history, one evaluation", "history", r#"{"filter": "evaluation-250"}"#, true, 0),
    ("failures", "failures", "{}", true, 1),
    ("compare", "compare", "{}", true, 2),
    ("compare since 4d", "compare", r#"{"since": "4d"}"#, true, 2),
    ("compare by case", "compare", r#"{"by": "case"}"#, true, 2),
    ("compare with a margin", "compare", r#"{"margin": 0.05, "all": true}"#, true, 2),
    ("plan_run", "plan_run", "{}", false, 20),
    ("runs_list", "runs_list", "{}", true, 0),
    ("show", "show", r#"{"limit": 1000, "attempts": false}"#, false, 1),
    ("show with attempts", "show", "{}", false, 1),
];

type Failed = Box<dyn Error>;

fn main() -> ExitCode {
    let given = |word: &str| std::env::args().any(|argument| argument == word);
    match measured(given("--fresh")) {
        Ok(missed) if missed && given("--check") => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the benchmark failed: {error}");
            ExitCode::from(2)
        }
    }
}

/// Measures and prints; whether a target was missed.
fn measured(fresh: bool) -> Result<bool, Failed> {
    let (whole, small) = (Made::have(WHOLE, fresh)?, Made::have(SMALL, fresh)?);
    let mut table = Table::begin(&[&whole, &small])?;
    let only = std::env::args().find_map(|argument| argument.strip_prefix("--only=").map(str::to_owned)).unwrap_or_default();
    let mut missed = false;
    for (name, tool, arguments, target, runs) in CALLS.iter().filter(|call| call.0.contains(&only)) {
        let (of_whole, of_small) = (spent(&whole, tool, arguments)?, spent(&small, tool, arguments)?);
        let floor = if *runs > 0 { Some(floor(&whole, *runs)?) } else { None };
        let met = !target || (of_whole.median < TARGET_MS && of_whole.median < of_small.median * GROWTH_MAX + GROWTH_MS);
        missed |= !met;
        let said = format!("< {TARGET_MS} and < {GROWTH_MAX}x a tenth's");
        table.row(name, &of_whole, &of_small, floor, target.then_some((&said, met)))?;
    }
    for view in VIEWS.iter().map(|view| format!("query_{}", view.name)).filter(|name| name.contains(&only)) {
        let (of_whole, of_small) = (spent(&whole, &view, "{}")?, spent(&small, &view, "{}")?);
        let met = of_whole.median < VIEW_MS;
        missed |= !met;
        table.row(&view, &of_whole, &of_small, None, Some((&format!("< {VIEW_MS}"), met)))?;
    }
    missed |= catalog::measured(&whole, &small, &mut table, &only)?;
    Ok(missed | table.refresh(&whole)?)
}

/// What calls took, in milliseconds of CPU.
struct Spent {
    /// The first, over a handle that was just opened.
    cold: f64,
    /// Of the others.
    median: f64,
    /// Kilobytes of the answer's JSON.
    kilobytes: f64,
}

fn spent(made: &Made, tool: &str, arguments: &str) -> Result<Spent, Failed> {
    let entry = tools::find(tool).ok_or("no such tool")?;
    let arguments: Map<String, Value> = serde_json::from_str(arguments)?;
    let store = Sqlite::open(&made.path, &Caller::local().local_scope(), &Options::default())?;
    spent_on(store, tool, entry, &arguments)
}

/// The same over a handle.
fn spent_on(store: Sqlite, tool: &str, entry: &tools::Entry, arguments: &Map<String, Value>) -> Result<Spent, Failed> {
    let caller = Caller::local();
    let now = runlore::domain::time::Timestamp::from_millis(NOW_MS);
    let ctx = Ctx::new(Arc::new(store), caller, now);
    let call = || -> Result<(f64, usize), Failed> {
        let arguments = arguments.clone();
        let begun = cpu_ms()?;
        let answer = (entry.run)(&ctx, arguments)?;
        let took = cpu_ms()? - begun;
        if answer.text.is_empty() {
            return Err(format!("{tool} said nothing").into());
        }
        Ok((took, answer.json.get().len()))
    };
    let (cold, bytes) = call()?;
    let rest = (0..TIMES).map(|_| call().map(|(took, _)| took)).collect::<Result<Vec<f64>, Failed>>()?;
    Ok(Spent { cold, median: median(rest), kilobytes: bytes as f64 / 1e3 })
}

/// What a prepared SELECT of all columns of the cells of the newest `runs` runs costs, row by row.
fn floor(made: &Made, runs: u32) -> Result<f64, Failed> {
    let connection = Connection::open_with_flags(&made.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let sql = "SELECT * FROM cells_m WHERE run_no IN (SELECT run_no FROM runs_m ORDER BY created_at DESC LIMIT ?1)";
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut select = || -> Result<f64, Failed> {
        let begun = cpu_ms()?;
        let (mut rows, mut seen) = (statement.query([runs])?, 0);
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                seen += usize::from(row.get_ref(column)?.data_type() != rusqlite::types::Type::Null);
            }
        }
        let took = cpu_ms()? - begun;
        if seen == 0 { Err("the floor selected nothing".into()) } else { Ok(took) }
    };
    select()?;
    Ok(median((0..TIMES).map(|_| select()).collect::<Result<_, _>>()?))
}

/// CPU milliseconds (user and system) that this thread has used. Not getrusage, which counts in ticks of four while a thread runs.
fn cpu_ms() -> Result<f64, Failed> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(used.tv_sec() as f64 * 1e3 + used.tv_nsec() as f64 / 1e6)
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The table, printed as it grows.
struct Table {
    out: std::io::Stdout,
}

impl Table {
    fn begin(stores: &[&Made]) -> Result<Self, Failed> {
        let mut out = std::io::stdout();
        for made in stores {
            let megabytes = std::fs::metadata(&made.path)?.len() as f64 / 1e6;
            let how = made.took_s.map_or_else(|| "kept".to_owned(), |seconds| format!("made now in {seconds:.1} s of CPU"));
            writeln!(
                out,
                "{} runs x {} evaluations x {} attempts: {megabytes:.0} MB, {how}",
                made.runs,
                made::EVALUATIONS,
                made::ATTEMPTS
            )?;
        }
        writeln!(out, "CPU ms per call; cold is the first over a new handle; the floor is a bare SELECT of the same runs' cells")?;
        let heads = ["call", "cold", "median", "median, a tenth", "floor", "ratio", "JSON kB", "target"];
        let [name, cold, median, small, floor, ratio, size, target] = heads;
        writeln!(out, "{name:<26}{cold:>8}{median:>9}{small:>17}{floor:>9}{ratio:>8}{size:>9}  {target}")?;
        Ok(Self { out })
    }

    fn row(&mut self, name: &str, whole: &Spent, small: &Spent, floor: Option<f64>, target: Option<(&str, bool)>) -> Result<(), Failed> {
        let dash = || "-".to_owned();
        let ratio = floor.map_or_else(dash, |floor| format!("{:.1}", whole.median / floor));
        let floor = floor.map_or_else(dash, |floor| format!("{floor:.2}"));
        let target = target.map_or_else(dash, |(said, met)| format!("{said}: {}", if met { "ok" } else { "MISSED" }));
        let Spent { cold, median, kilobytes } = whole;
        let small = small.median;
        writeln!(self.out, "{name:<26}{cold:>8.2}{median:>9.2}{small:>17.2}{floor:>9}{ratio:>8}{kilobytes:>9.1}  {target}")?;
        Ok(())
    }

    fn say(&mut self, line: &str) -> Result<(), Failed> {
        Ok(writeln!(self.out, "{line}")?)
    }

    /// What the last import and its refresh took, where the store was made now; whether that was too much.
    fn refresh(&mut self, made: &Made) -> Result<bool, Failed> {
        let Some(made::Last { import_ms, refresh_ms, whole_ms }) = made.last else { return Ok(false) };
        let met = refresh_ms < REFRESH_MAX * import_ms;
        let share = refresh_ms / import_ms * 100.0;
        writeln!(
            self.out,
            "the last import {import_ms:.1} ms, its refresh {refresh_ms:.1} ms, {share:.0} %: {}; all runs before it {whole_ms:.0} ms",
            if met { "ok" } else { "MISSED" }
        )?;
        Ok(!met)
    }
}
