//! Random changes, and every read of a store as text: what two stores, or two orders of import, are compared by.
//!
//! Promises: few names, so that retries, copies, namesakes and merges happen all the time.
//! Does not: know an adapter.

use std::{fmt::Write as _, hash::Hasher as _};

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;
use crate::domain::declared::{ArmRule, EvaluationRule, Role};

/// A change as a value.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A log.
    Put(Box<Log>),
    /// A file that holds none.
    Skip(String, bool),
    /// Files that are gone.
    Vanish(Vec<String>),
    /// Declarations.
    Declare(Declared),
}

impl Step {
    /// Applies the change.
    pub(crate) fn apply(&self, store: &dyn Store) -> std::result::Result<Applied, String> {
        let applied = match self {
            Step::Put(log) => log.put(store),
            Step::Skip(path, broken) => {
                let file = FileStamp { path: path.clone(), size: 1, mtime_ns: 1, digest: "none".into(), source: None };
                store.apply(Change::Skipped { file, broken: *broken, reason: "no log".into() })
            }
            Step::Vanish(paths) => store.apply(Change::Vanished { paths: paths.clone() }),
            Step::Declare(declared) => store.apply(Change::Declared(declared.clone())),
        };
        applied.map_err(|error| format!("{error:?}"))
    }
}

const EVALUATIONS: [&str; 3] = ["a", "a/b", "É"];
const ARMS: [&str; 3] = ["m", "n", "m+x=1"];

fn path() -> impl Strategy<Value = String> {
    (0..5).prop_map(|number| format!("p{number}"))
}

fn one_attempt() -> impl Strategy<Value = Attempt> {
    let ids = (select(&EVALUATIONS[..]), select(&ARMS[..]), select(&["", "b", "1", "ß/2"][..]), option::of(select(&["u", "v", "w"][..])));
    let group = option::weighted(0.3, select(&["g", "h"][..]));
    (ids, 1..3_u32, select(&Outcome::ALL[..]), option::of(-1.0..1.0_f64), group).prop_map(
        |((evaluation, arm, case, uuid), epoch, outcome, score, group)| Attempt {
            group: group.map(Into::into),
            evaluation: evaluation.into(),
            arm: arm.into(),
            uuid: uuid.map(Into::into),
            epoch,
            score,
            ..attempt(case, outcome)
        },
    )
}

fn info() -> impl Strategy<Value = EvaluationInfo> {
    let numbers = (option::weighted(0.3, select(&[0.5, 1.0][..])), option::weighted(0.3, 0..4_u32), option::weighted(0.4, 0..7_u32));
    let measured = (option::weighted(0.3, select(&["d1", "d2"][..])), option::weighted(0.2, select(&["0", "1"][..])));
    (select(&EVALUATIONS[..]), numbers, option::of(select(&["f", "g"][..])), measured).prop_map(
        |(id, (threshold, dataset_cases, planned), family, (dataset, temperature))| EvaluationInfo {
            dataset_digest: dataset.map(Into::into),
            settings: temperature.map(|level| ("temperature".to_owned(), level.to_owned())).into_iter().collect(),
            threshold,
            dataset_cases,
            planned,
            family: family.map(Into::into),
            ..evaluation(id)
        },
    )
}

fn header() -> impl Strategy<Value = Log> {
    let ids = (0..4, 0..3, option::of(0..2), any::<bool>(), any::<bool>());
    let times = (0..4_i64, option::of(0..3_i64), option::of(0..3_i64), select(&RunStatus::ALL[..]));
    let code =
        (option::of(select(&["abcd1", "ABCD12", "ffff"][..])), option::of(select(&["r", "s"][..])), vec(select(&["s1", "s2"][..]), 0..2));
    let inside = (vec(info(), 0..3), vec((select(&ARMS[..]), option::weighted(0.2, select(&["x", "y"][..]))), 0..3));
    (ids, times, code, inside).prop_map(
        |((id, run, task, pinned, scratch), (at, start, end, status), (sha, round, shas), (infos, arms))| {
            let mut log = log(&format!("L{id}"), at).run(&format!("R{run}"));
            log.header.task_id = task.map(|task| format!("T{task}"));
            log.pinned = pinned && run == 2;
            log.kind = if scratch && run == 1 { Kind::Scratch } else { Kind::Recorded };
            log.header.status = status;
            log.header.started_at = start.map(Timestamp::from_millis);
            log.header.completed_at = end.map(Timestamp::from_millis);
            log.header.git = sha.map(|sha| Git { sha: Some(sha.into()), branch: None, dirty: None });
            log.header.round = round.map(Into::into);
            log.ancestors = shas.into_iter().map(Into::into).collect();
            log.header.evaluations = infos;
            let judged = |(name, judge): (&str, Option<&str>)| {
                let mut info = arm(name);
                info.factors.extend(judge.map(|judge| ("judge".to_owned(), judge.to_owned())));
                info
            };
            log.header.arms = arms.into_iter().map(judged).collect();
            log
        },
    )
}

/// A log in one of a few files; its digest is that of its content.
pub(crate) fn one_log() -> impl Strategy<Value = Log> {
    (header(), path(), vec(one_attempt(), 0..7), any::<u8>()).prop_map(|(mut log, path, attempts, fault)| {
        log.attempts = attempts.into_iter().map(Ok).collect();
        if fault < 8 {
            log.attempts.push(Err("cut short".into()));
        }
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(format!("{:?} {:?}", log.header, log.attempts).as_bytes());
        log.file(&path, &format!("{:x}", hasher.finish()))
    })
}

fn declared() -> impl Strategy<Value = Declared> {
    let rule = (select(&["a", "a*", "É"][..]), option::of(select(&[0.4, 0.6][..])), option::of(Just("d".to_owned())));
    let rule = rule.prop_map(|(id, threshold, family)| EvaluationRule { id: id.into(), threshold, family });
    let arm =
        (select(&["m*", "n", "z"][..]), option::of(select(&["n", "z", "m"][..])), option::of(select(&[Role::Control, Role::Variant][..])));
    let arm = arm.prop_map(|(matches, name, role)| ArmRule { matches: matches.into(), name: name.map(Into::into), role });
    (vec(rule, 0..2), vec(arm, 0..2)).prop_map(|(evaluation, arm)| Declared { evaluation, arm, ..Declared::default() })
}

/// One change.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => one_log().prop_map(|log| Step::Put(Box::new(log))),
        1 => (path(), any::<bool>()).prop_map(|(path, broken)| Step::Skip(path, broken)),
        2 => vec(path(), 1..3).prop_map(Step::Vanish),
        2 => declared().prop_map(Step::Declare),
    ]
}

/// Every read of the store, as text; `numbers` also what depends on the order of changes by design.
pub(crate) fn dump(store: &dyn Store, numbers: bool) -> String {
    let mut out = String::new();
    let (mut runs, total) = store.runs(&RunQuery { limit: 99, ..RunQuery::default() }).unwrap();
    if numbers {
        writeln!(out, "generation {}", store.generation().unwrap()).unwrap();
    } else {
        runs.iter_mut().for_each(|run| run.number = 0);
    }
    writeln!(out, "files {:#?}\ndeclared {:?}\n{total} runs {runs:#?}", store.files(None).unwrap(), store.declared().unwrap()).unwrap();
    let ids: Vec<String> = runs.iter().map(|run| run.run_id.clone()).collect();
    writeln!(out, "arms {:?}", store.arms(&ids).unwrap()).unwrap();
    for run in &ids {
        dump_run(store, run, numbers, &mut out);
    }
    let mut keys = Vec::new();
    for grain in [Grain::Evaluation, Grain::Case] {
        for (part, failing) in [(None, false), (Some("A/"), false), (None, true)] {
            let query =
                CellQuery { runs: ids.clone(), evaluation_contains: part.map(str::to_owned), grain, failing, ..CellQuery::default() };
            let cells = store.cells(&query).unwrap();
            writeln!(out, "cells {grain:?} {part:?} {failing} {cells:#?}").unwrap();
            keys.extend(cells.into_iter().map(|cell| cell.key));
        }
    }
    keys.sort();
    keys.dedup();
    dump_series(store, &runs, &keys, &mut out);
    dump_lists(store, &runs, &mut out);
    if numbers {
        dump_projections(store, &mut out);
    }
    out
}

fn dump_run(store: &dyn Store, run: &str, numbers: bool, out: &mut String) {
    let mut evaluations = store.evaluations(run).unwrap();
    if !numbers {
        evaluations.iter_mut().for_each(|evaluation| evaluation.number = 0);
    }
    writeln!(out, "run {run} {evaluations:?} {:?} {:?}", store.ancestors(run).unwrap(), store.causes(run, None).unwrap()).unwrap();
    let with_rest = store.attempts(run, &AttemptQuery { rest: true, ..AttemptQuery::default() }).unwrap();
    let groups: Vec<_> = with_rest.into_iter().map(|row| (row.key, row.rest.unwrap().group)).collect();
    writeln!(out, "groups {:?} {groups:?}", store.groups(run).unwrap()).unwrap();
    let all = store.attempts(run, &AttemptQuery { checks: true, ..AttemptQuery::default() }).unwrap();
    for row in &all {
        assert_eq!(store.find_attempts(run, &row.key).unwrap(), std::slice::from_ref(row), "{}", row.key);
    }
    writeln!(out, "attempts {all:#?}").unwrap();
    for name in ["a#1", "a/b#1", "É#2", "nothing#1"] {
        writeln!(out, "{name} {:?}", store.find_attempts(run, name).unwrap()).unwrap();
    }
    let failing = AttemptQuery { outcomes: &[Fail, InfraError], evaluation_contains: Some("A"), ..AttemptQuery::default() };
    writeln!(out, "failing {:?}", store.attempts(run, &failing).unwrap()).unwrap();
}

fn dump_series(store: &dyn Store, runs: &[Run], keys: &[CellKey], out: &mut String) {
    for grain in [Grain::Evaluation, Grain::Case] {
        for run in runs {
            let point = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
            writeln!(out, "streaks {grain:?} {point:?} {:?}", store.streaks(&point, grain, keys).unwrap()).unwrap();
        }
        for run in runs {
            let before = RunPoint { run_id: run.run_id.clone(), created_at: run.created_at };
            for (shas, limit) in [(None, 1), (None, 9), (Some(&["abcd12".to_owned()][..]), 9)] {
                let query = BaseQuery { keys, before: before.clone(), shas, limit };
                let found: Vec<_> = store.bases(&query).unwrap().into_iter().map(|base| (base.run.run_id, base.shared)).collect();
                writeln!(out, "bases {before:?} {shas:?} {limit} {found:?}").unwrap();
            }
        }
        let time = Timestamp::from_millis(1000);
        for pick in [Pick::Newest, Pick::NewestUpTo(time), Pick::OldestAfter(time)] {
            for (counted, statuses) in [(false, &[][..]), (true, &[]), (true, &[RunStatus::Completed, RunStatus::Failed])] {
                for keys in [None, Some(keys)] {
                    let query = PointQuery { evaluation_contains: None, keys, grain, counted, statuses, pick };
                    writeln!(out, "points {query:?} {:?}", store.points(&query).unwrap()).unwrap();
                }
            }
        }
    }
}

fn dump_projections(store: &dyn Store, out: &mut String) {
    for evaluation in EVALUATIONS {
        for (sort, descending) in projections::ORDERS {
            let (mut from, query) = (None, ProjectionQuery { evaluation, sort, descending, from: None, back: false, limit: 2 });
            loop {
                let page = store.projections(&ProjectionQuery { from, ..query }).unwrap().unwrap_or_default();
                writeln!(out, "projections {evaluation} {sort:?} {descending} {} {}", page.before, page.after).unwrap();
                page.rows.iter().for_each(|row| writeln!(out, "  {}", projections::line(row)).unwrap());
                let Some(last) = page.rows.last().filter(|_| page.after) else { break };
                from = Some(ProjectionPlace::of(&last.run));
                let back = store.projections(&ProjectionQuery { from, back: true, limit: 1, ..query }).unwrap().unwrap_or_default();
                writeln!(
                    out,
                    "  back {} {} {:?}",
                    back.before,
                    back.after,
                    back.rows.iter().map(|row| &row.run.run_id).collect::<Vec<_>>()
                )
                .unwrap();
            }
        }
    }
}

fn dump_lists(store: &dyn Store, runs: &[Run], out: &mut String) {
    let all = RunQuery { limit: 2, ..RunQuery::default() };
    let mut queries = vec![
        RunQuery { kind: Some(Kind::Recorded), ..all.clone() },
        RunQuery { status: Some(RunStatus::Completed), ..all.clone() },
        RunQuery { round: Some("r".into()), ..all.clone() },
        RunQuery { since: Some(Timestamp::from_millis(2000)), ..all.clone() },
        RunQuery { evaluation_contains: Some("é".into()), ..all.clone() },
        RunQuery { shas: Some(vec!["abcd".into(), "FFFF12".into()]), ..all.clone() },
    ];
    queries.extend(
        runs.iter()
            .map(|run| RunQuery { before: Some(RunPoint { run_id: run.run_id.clone(), created_at: run.created_at }), ..all.clone() }),
    );
    let ids = |runs: Vec<Run>| runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>();
    for query in queries {
        let (runs, total) = store.runs(&query).unwrap();
        writeln!(out, "list {query:?} {total} {:?}", ids(runs)).unwrap();
    }
    for part in ["", "r", "É", "/"] {
        let attempts: Vec<_> = runs.iter().map(|run| store.names(Named::Attempts(&run.run_id), part, 3).unwrap()).collect();
        let (runs, evaluations) = (store.names(Named::Runs, part, 2).unwrap(), store.names(Named::Evaluations, part, 2).unwrap());
        writeln!(out, "names {part:?} {runs:?} {evaluations:?} {attempts:?}").unwrap();
    }
    for selector in [Selector::Latest(1), Selector::Id("R1"), Selector::IdPrefix("R"), Selector::ShaPrefix("abcd1")] {
        writeln!(out, "{selector:?} {:?}", ids(store.select(&selector, 2).unwrap())).unwrap();
    }
}
