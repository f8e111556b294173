//! The catalog's views: overview, goals and arms over the whole store with p values kept, and a search over more than a million transcript lines.
//!
//! Promises: the store is a copy of the one that is measured elsewhere, with a second arm and goals of the two; the first search brings all words in
//! and is told apart.
//! Does not: measure what working out the p values costs but as the first call.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use runlore::{
    auth::Caller,
    domain::{attempt::Attempt, declared::Declared},
    store::{
        Change, Kind, LogChange, Store as _,
        kept::PValues,
        sqlite::{Options, Sqlite},
    },
    tools,
};
use serde_json::{Map, Value};

use super::{
    Failed, Table,
    made::{self, ATTEMPTS, EVALUATIONS, Made, WHOLE},
};

/// What a view, or a search, may take at the median (issue 8).
const TARGET_MS: f64 = 50.0;
const OTHER: &str = "mockllm/other";

const VIEWS: &[(&str, &str, &str)] = &[
    ("overview", "overview", "{}"),
    ("goals", "goals", "{}"),
    ("arms", "arms", "{}"),
    ("datasets", "datasets", "{}"),
    ("activity", "activity", "{}"),
];
const SEARCHES: &[(&str, &str, &str)] = &[
    ("search, a common word", "search", r#"{"query": "ordinary"}"#),
    ("search, a rare word", "search", r#"{"query": "RateLimitError"}"#),
    ("search, side by side", "search", r#"{"query": "\"message of ordinary length\"", "kind": "transcript"}"#),
    ("search, nowhere", "search", r#"{"query": "ordinary nonsensical"}"#),
];

/// Measures and prints; whether a target was missed.
pub fn measured(whole: &Made, small: &Made, table: &mut Table, only: &str) -> Result<bool, Failed> {
    let wanted = |rows: &[(&str, &str, &str)]| rows.iter().any(|row| row.0.contains(only));
    let mut missed = false;
    if wanted(VIEWS) {
        let (of_whole, of_small) = (duel(whole)?, duel(small)?);
        missed |= rows(VIEWS, (&of_whole, &of_small), table, only)?;
    }
    if wanted(SEARCHES) {
        let copy = copied(small, "search")?;
        let store = opened(&copy)?;
        let begun = super::cpu_ms()?;
        let mut steps = 1;
        while store.apply(Change::SearchIndex)?.left {
            steps += 1;
        }
        let took = super::cpu_ms()? - begun;
        table.say(&format!("the words of {} lines: {took:.0} ms of CPU in {steps} steps", small.runs * EVALUATIONS * ATTEMPTS * 40))?;
        missed |= rows(SEARCHES, (&copy, &copy), table, only)?;
    }
    Ok(missed)
}

fn rows(rows: &[(&str, &str, &str)], (whole, small): (&PathBuf, &PathBuf), table: &mut Table, only: &str) -> Result<bool, Failed> {
    let mut missed = false;
    for (name, tool, arguments) in rows.iter().filter(|row| row.0.contains(only)) {
        let entry = tools::find(tool).ok_or("no such tool")?;
        let arguments: Map<String, Value> = serde_json::from_str(arguments)?;
        let spent = |path: &PathBuf| super::spent_on(opened(path)?, tool, entry, &arguments);
        let (of_whole, of_small) = (spent(whole)?, spent(small)?);
        let met = of_whole.median < TARGET_MS;
        missed |= !met;
        table.row(name, &of_whole, &of_small, None, Some((&format!("< {TARGET_MS}"), met)))?;
    }
    Ok(missed)
}

fn opened(path: &Path) -> Result<Sqlite, Failed> {
    let store = Sqlite::open(path, &Caller::local().local_scope(), &Options::default())?;
    Ok(store.keeping(Arc::new(PValues::new(&path.with_extension("jsonl"), 1 << 24))))
}

/// A copy of the store's file, made anew each time.
fn copied(made: &Made, name: &str) -> Result<PathBuf, Failed> {
    let path = made.path.with_extension(format!("{name}.db"));
    for end in ["", "-wal", "-shm"] {
        let mut beside = path.clone().into_os_string();
        beside.push(end);
        if Path::new(&beside).exists() {
            std::fs::remove_file(&beside)?;
        }
    }
    std::fs::copy(&made.path, &path)?;
    Ok(path)
}

/// A copy with one more run, by another arm, and twenty goals of the two.
fn duel(made: &Made) -> Result<PathBuf, Failed> {
    let path = copied(made, "duel")?;
    let store = opened(&path)?;
    let transcript = made::transcript();
    let mut header = made::header(WHOLE);
    header.arms.iter_mut().for_each(|arm| arm.name = OTHER.to_owned());
    let other = |evaluation: u32, epoch: u32| Attempt { arm: OTHER.to_owned(), ..made::attempt(WHOLE, evaluation, epoch, &transcript) };
    let mut attempts =
        (0..EVALUATIONS).flat_map(|evaluation| (1..=ATTEMPTS).map(move |epoch| (evaluation, epoch))).map(|(e, n)| Ok(other(e, n)));
    store.apply(Change::Log(LogChange {
        extras: Default::default(),
        file: made::stamp(WHOLE),
        kind: Kind::Recorded,
        header,
        pinned: false,
        ancestors: Vec::new(),
        attempts: &mut attempts,
    }))?;
    let goal = |number: u32| {
        let metric = if number.is_multiple_of(2) { "pass" } else { "match" };
        let margin = f64::from(number) / 1000.0;
        format!("[[goal]]\nid = \"g{number}\"\narm = \"{OTHER}\"\nversus = \"mockllm/model\"\nmetric = \"{metric}\"\nmargin = {margin}\n")
    };
    let declared: Declared = toml::from_str(&(0..20).map(goal).collect::<String>())?;
    store.apply(Change::Declared(declared))?;
    store.apply(Change::Refresh)?;
    Ok(path)
}
