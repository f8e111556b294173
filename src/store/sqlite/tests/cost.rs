//! What a read costs, in steps of SQLite's virtual machine: exact, and the same on every machine.
//!
//! Promises: a read that asks for few runs costs the same however many are stored.
//! Does not: measure time (`tests/bench` does).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{
    auth::Caller,
    domain::{outcome::Outcome, time::Timestamp},
    store::{
        Pick, ProjectionPlace, ProjectionSort,
        contract::{attempt, evaluation, log},
    },
};

const EVALUATIONS: usize = 6;

/// A store of `runs` runs, each of a few evaluations; every fifth attempt fails.
fn history(path: &Path, runs: i64) -> Sqlite {
    let store = Sqlite::open(path, &Caller::local().local_scope(), &Options::default()).unwrap();
    for at in 0..runs {
        let mut log = log(&format!("{at:04}"), at);
        log.header.evaluations = (0..EVALUATIONS).map(|number| evaluation(&format!("e{number}"))).collect();
        for number in 0..EVALUATIONS {
            let outcome = if (at + number as i64) % 5 == 0 { Outcome::Fail } else { Outcome::Pass };
            log = log.with([crate::domain::attempt::Attempt { evaluation: format!("e{number}"), ..attempt("1", outcome) }]);
        }
        log.put(&store).unwrap();
    }
    store
}

fn steps<T>(store: &Sqlite, look: impl FnOnce(&Connection) -> Result<T>) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let mut connection = connect::reader(&store.path, false, &store.options).unwrap();
    let counter = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(1, Some(counter)).unwrap();
    look(&connection).unwrap();
    counted.load(Ordering::Relaxed)
}

/// The reads that few runs are enough for, in the middle of the history.
fn costs(store: &Sqlite, runs: i64) -> Vec<(&'static str, u64)> {
    let middle = runs / 2;
    let id = |at: i64| format!("R{at:04}");
    let point = RunPoint { run_id: id(middle), created_at: Timestamp::from_millis(middle * 1000) };
    let key = |case: Option<&str>| CellKey { evaluation: "e1".into(), case: case.map(str::to_owned), arm: "m".into() };
    let (at_evaluation, at_case) = ([key(None)], [key(Some("1"))]);
    let points = PointQuery {
        evaluation_contains: None,
        keys: None,
        grain: Grain::Evaluation,
        counted: true,
        statuses: &[crate::domain::log::RunStatus::Completed],
        pick: Pick::NewestUpTo(point.created_at),
    };
    let few = CellQuery { runs: (middle..middle + 4).map(id).collect(), ..CellQuery::default() };
    let run = id(middle);
    vec![
        ("cells", steps(store, |connection| cells::read(connection, &few))),
        ("case cells", steps(store, |connection| cells::read(connection, &CellQuery { grain: Grain::Case, ..few.clone() }))),
        ("points", steps(store, |connection| series::points(connection, &points))),
        (
            "points of keys",
            steps(store, |connection| series::points(connection, &PointQuery { keys: Some(&at_evaluation), ..points.clone() })),
        ),
        ("streaks", steps(store, |connection| streaks::read(connection, &point, Grain::Evaluation, &at_evaluation))),
        (
            "bases",
            steps(store, |connection| {
                bases::read(connection, &BaseQuery { keys: &at_evaluation, before: point.clone(), shas: None, limit: 4 })
            }),
        ),
        ("case streaks", steps(store, |connection| streaks::read(connection, &point, Grain::Case, &at_case))),
        (
            "attempts",
            steps(store, |connection| attempts::read(connection, &run, &AttemptQuery { checks: true, ..AttemptQuery::default() })),
        ),
        ("an attempt", steps(store, |connection| attempts::find(connection, &run, "e1/1#1"))),
        ("causes", steps(store, |connection| attempts::causes(connection, &run, None))),
        ("latest", steps(store, |connection| runs::select(connection, &Selector::Latest(0), 1))),
        ("a run", steps(store, |connection| runs::select(connection, &Selector::Id(&run), 1))),
        // As many as the smaller store holds before its middle: a page of the same size in both.
        (
            "a page of runs",
            steps(store, |connection| runs::list(connection, &RunQuery { before: Some(point.clone()), limit: 4, ..RunQuery::default() })),
        ),
        ("a page of an evaluation's runs", steps(store, |connection| projections::page(connection, &projected(true, false, middle)))),
        ("a page back by status", steps(store, |connection| projections::page(connection, &projected(false, true, middle)))),
        ("arms", steps(store, |connection| runs::arms(connection, &few.runs))),
        ("evaluations", steps(store, |connection| runs::evaluations(connection, &run))),
    ]
}

/// Four runs beside the middle of the history, by time or by status.
fn projected(by_time: bool, back: bool, middle: i64) -> ProjectionQuery<'static> {
    let place = ProjectionPlace {
        status: crate::domain::log::RunStatus::Completed,
        created_at: Timestamp::from_millis(middle * 1000),
        number: middle + 1,
    };
    let sort = if by_time { ProjectionSort::CreatedAt } else { ProjectionSort::Status };
    ProjectionQuery { evaluation: "e1", sort, descending: true, from: Some(place), back, limit: 4 }
}

#[test]
fn a_read_costs_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let (few, many) = (10, 100);
    let (small, large) = (history(&dir.path().join("small.db"), few), history(&dir.path().join("large.db"), many));
    for ((name, before), (_, after)) in costs(&small, few).into_iter().zip(costs(&large, many)) {
        // Ten times the runs; a little is left for the middle falling on another outcome.
        assert!(before > 0 && after * 2 < before * 3, "{name}: {before} steps grew to {after}");
    }
}

/// Steps of the one write that `write` makes.
fn write_steps(store: &Sqlite, write: impl FnOnce()) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let counter = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    store.writer.lend(None, || Err(Error::Busy)).unwrap().get().unwrap().progress_handler(1, Some(counter)).unwrap();
    write();
    store.writer.lend(None, || Err(Error::Busy)).unwrap().get().unwrap().progress_handler(1, None::<fn() -> bool>).unwrap();
    counted.load(Ordering::Relaxed)
}

#[test]
fn a_log_costs_the_same_however_many_its_run_has() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&dir.path().join("history.db"), &Caller::local().local_scope(), &Options::default()).unwrap();
    let cost = |at: i64| {
        let attempts = [attempt("same", Outcome::Pass), attempt(&format!("own {at}"), Outcome::Fail)];
        let log = log(&format!("{at:04}"), at).run("R").task(&format!("t{at}")).with(attempts);
        write_steps(&store, || drop(log.put(&store).unwrap()))
    };
    let costs: Vec<u64> = (0..120).map(cost).collect();
    let (few, many) = (costs[8], costs[119]);
    assert!(few > 0 && many * 10 < few * 12, "{few} steps grew to {many}");
}

#[test]
fn statements_are_planned_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = history(&dir.path().join("history.db"), 8);
    let mut connection = connect::reader(&store.path, false, &store.options).unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    // The authorizer is asked whenever a statement is planned, also where SQLite does so again by itself because a bound value changed.
    let authorizer = move |_: rusqlite::hooks::AuthContext<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        rusqlite::hooks::Authorization::Allow
    };
    connection.authorizer(Some(authorizer)).unwrap();
    let key = |number: i64| CellKey { evaluation: format!("e{number}"), case: Some("1".into()), arm: "m".into() };
    let look = |at: i64| {
        let point = RunPoint { run_id: format!("R{at:04}"), created_at: Timestamp::from_millis(at * 1000) };
        streaks::read(&connection, &point, Grain::Case, &[key(at % 6), key(1)]).unwrap();
        let pick = Pick::NewestUpTo(point.created_at);
        let query = PointQuery { evaluation_contains: None, keys: None, grain: Grain::Evaluation, counted: true, statuses: &[], pick };
        series::points(&connection, &query).unwrap();
        cells::read(&connection, &CellQuery { runs: vec![point.run_id.clone()], ..CellQuery::default() }).unwrap();
        attempts::read(&connection, &point.run_id, &AttemptQuery { keys: Some(&[key(at % 6)]), ..AttemptQuery::default() }).unwrap();
        attempts::causes(&connection, &point.run_id, None).unwrap();
        runs::list(&connection, &RunQuery { before: Some(point), limit: 3, ..RunQuery::default() }).unwrap();
        runs::select(&connection, &Selector::IdPrefix("R"), 3).unwrap();
    };
    look(3);
    let once = asked.load(Ordering::Relaxed);
    (2..7).for_each(look);
    assert!(once > 0);
    assert_eq!(asked.load(Ordering::Relaxed), once, "planned again");
}
