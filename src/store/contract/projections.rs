//! The pages of an evaluation's runs: both orders, both ways, while runs come and go.
//!
//! Promises: what a page holds is told by run ids, in one line.
//! Does not: know an adapter, or cursors.

use super::*;
use crate::domain::log::Source;

/// What can be sorted by, and which way.
pub(crate) const ORDERS: [(ProjectionSort, bool); 4] = [
    (ProjectionSort::CreatedAt, true),
    (ProjectionSort::CreatedAt, false),
    (ProjectionSort::Status, true),
    (ProjectionSort::Status, false),
];

/// A row as text, without what depends on the order of changes or on the last bit of a sum.
pub(crate) fn line(row: &Projection) -> String {
    let Projection { run, arms, source, counts, checks, said } = row;
    let checks: Vec<String> =
        checks.iter().map(|check| format!("{} {:.9} {} {}", check.name, check.mean, check.cases, check.answers)).collect();
    format!("{} {:?} {:?} {arms:?} {source:?} {counts:?} {checks:?} {said:?}", run.run_id, run.status, run.created_at)
}

fn newest(limit: usize) -> ProjectionQuery<'static> {
    ProjectionQuery { evaluation: "e", sort: ProjectionSort::CreatedAt, descending: true, from: None, back: false, limit }
}

/// The ids of a page, with dots where runs stand before and after.
fn page(store: &dyn Store, query: &ProjectionQuery<'_>) -> (String, Vec<ProjectionPlace>) {
    let page = store.projections(query).unwrap().unwrap();
    let ids: Vec<&str> = page.rows.iter().map(|row| row.run.run_id.as_str()).collect();
    let dots = |there: bool| if there { ".." } else { "" };
    let places = page.rows.iter().map(|row| ProjectionPlace::of(&row.run)).collect();
    (format!("{}{}{}", dots(page.before), ids.join(" "), dots(page.after)), places)
}

fn shown(store: &dyn Store, query: &ProjectionQuery<'_>) -> String {
    page(store, query).0
}

fn with_status(id: &str, at: i64, status: RunStatus) -> Log {
    let mut log = log(id, at).with([attempt("1", Pass)]);
    log.header.status = status;
    log
}

pub(crate) fn runs_of_an_evaluation_are_paged_both_ways(store: &dyn Store) {
    use RunStatus::{Cancelled, Completed, Failed, Pending, Running, Waiting};
    assert_eq!(store.projections(&newest(9)).unwrap(), None);
    let statuses = [
        ("a", 1, Completed),
        ("b", 2, Waiting),
        ("c", 2, Failed),
        ("d", 2, Completed),
        ("f", 3, Pending),
        ("g", 4, Running),
        ("h", 5, Cancelled),
    ];
    for (id, at, status) in statuses {
        with_status(id, at, status).put(store).unwrap();
    }
    log("other", 3).with([attempt("1", Pass)]).of(evaluation("other")).put(store).unwrap();
    // Ties go by number, which rises as runs come.
    assert_eq!(shown(store, &newest(9)), "Rh Rg Rf Rd Rc Rb Ra");
    assert_eq!(shown(store, &ProjectionQuery { descending: false, ..newest(9) }), "Ra Rb Rc Rd Rf Rg Rh");
    let by_status = ProjectionQuery { sort: ProjectionSort::Status, descending: false, ..newest(9) };
    assert_eq!(shown(store, &by_status), "Rh Ra Rd Rc Rf Rg Rb");
    assert_eq!(shown(store, &ProjectionQuery { descending: true, ..by_status }), "Rb Rg Rf Rc Rd Ra Rh");
    for (sort, descending) in ORDERS {
        let query = ProjectionQuery { sort, descending, ..newest(9) };
        let (all, places) = page(store, &query);
        let ids: Vec<&str> = all.split(' ').collect();
        for (at, place) in places.into_iter().enumerate() {
            let cut = |from: usize, to: usize, back| {
                let dots = |there: bool| if there { ".." } else { "" };
                let given = shown(store, &ProjectionQuery { from: Some(place), back, limit: 3, ..query });
                assert_eq!(
                    given,
                    format!("{}{}{}", dots(from > 0), ids[from..to].join(" "), dots(to < ids.len())),
                    "{sort:?} {descending} {at}"
                );
            };
            cut(at + 1, (at + 4).min(ids.len()), false);
            cut(at.saturating_sub(3), at, true);
        }
    }
}

pub(crate) fn a_page_says_what_its_runs_say(store: &dyn Store) {
    let scored = |case: &str, outcome, value| {
        let mut attempt = attempt(case, outcome);
        attempt.checks[0].value = value;
        attempt
    };
    let mut first = log("a", 1).with([
        scored("1", Pass, Some(1.0)),
        scored("1", Fail, Some(0.0)),
        scored("2", Unscored, Some(0.25)),
        scored("3", InfraError, Some(7.0)),
        Attempt { evaluation: "f".into(), ..scored("1", Pass, Some(9.0)) },
    ]);
    first.attempts.push(Ok(Attempt { arm: "n".into(), ..scored("1", Pass, None) }));
    first.header.arms = vec![arm("m"), ArmInfo { role: Some("variant".into()), ..arm("n") }, arm("idle")];
    first.header.status = RunStatus::Failed;
    first.header.error = Some("out of money".into());
    first.header.metadata = BTreeMap::from([("k".to_owned(), 1.into()), ("old".to_owned(), true.into())]);
    let source = Source { file: "evals/e.py".into(), export: "e".into() };
    first.header.evaluations[0].source = Some(source.clone());
    first.header.report_path = Some("reports/old.html".into());
    first.put(store).unwrap();
    let mut second = log("b", 2).run("Ra").of(evaluation("f")).by("m");
    second.header.metadata = BTreeMap::from([("k".to_owned(), 2.into())]);
    second.header.report_path = Some("reports/new.html".into());
    second.put(store).unwrap();
    let row = store.projections(&newest(9)).unwrap().unwrap().rows.remove(0);
    assert_eq!(Some(&row.run), store.select(&Selector::Id("Ra"), 1).unwrap().first());
    let arms: Vec<(&str, Option<&str>)> = row.arms.iter().map(|arm| (arm.name.as_str(), arm.role.as_deref())).collect();
    assert_eq!(arms, [("m", None), ("n", Some("variant"))]);
    assert_eq!(row.counts, counts(2, 1, 1, 1, 0));
    assert_eq!(row.source, Some(source));
    assert_eq!(
        row.said,
        Said {
            error: Some("out of money".into()),
            report_path: Some("reports/new.html".into()),
            metadata: [("k".to_owned(), 2.into()), ("old".to_owned(), true.into())].into()
        }
    );
    // Case 1: 1, 0, and passed without a value; case 2 was measured though not judged; case 3 broke.
    let expected = (2.0 / 3.0 + 0.25) / 2.0;
    assert!((row.checks[0].mean - expected).abs() < 1e-12, "{:?}", row.checks);
    assert_eq!((row.checks.len(), row.checks[0].name.as_str(), row.checks[0].cases, row.checks[0].answers), (1, "match", 2, 4));
    // Nothing was tried yet: the run's arms, and no checks until it ends.
    let mut begun = with_status("c", 3, RunStatus::Running).of(evaluation("g"));
    begun.attempts.clear();
    begun.put(store).unwrap();
    let row = store.projections(&ProjectionQuery { evaluation: "g", ..newest(9) }).unwrap().unwrap().rows.remove(0);
    assert_eq!((row.arms.len(), row.counts, row.checks.len()), (1, Counts::default(), 0));
}

pub(crate) fn pages_hold_while_runs_come_and_go(store: &dyn Store) {
    for (id, at) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        with_status(id, at, RunStatus::Running).put(store).unwrap();
    }
    let (first, places) = page(store, &newest(2));
    assert_eq!(first, "Rd Rc..");
    let (from, top) = (Some(places[1]), Some(places[0]));
    with_status("new", 9, RunStatus::Running).put(store).unwrap();
    store.apply(Change::Vanished { paths: vec!["c.json".into()] }).unwrap();
    assert_eq!(shown(store, &ProjectionQuery { from, ..newest(2) }), "..Rb Ra");
    // The run at the place is gone, which is still a place.
    assert_eq!(shown(store, &ProjectionQuery { from, back: true, ..newest(2) }), "Rnew Rd..");
    // A run that ends moves in the order of statuses and keeps its place in time.
    let by_status = ProjectionQuery { sort: ProjectionSort::Status, descending: false, ..newest(9) };
    assert_eq!(shown(store, &by_status), "Ra Rb Rd Rnew");
    with_status("d", 4, RunStatus::Completed).file("d.json", "d2").put(store).unwrap();
    assert_eq!((shown(store, &by_status), shown(store, &newest(9))), ("Rd Ra Rb Rnew".into(), "Rnew Rd Rb Ra".into()));
    // Another log of the run: the run is under way again, and older than it was.
    with_status("e", 0, RunStatus::Running).run("Rd").put(store).unwrap();
    assert_eq!((shown(store, &by_status), shown(store, &newest(9))), ("Rd Ra Rb Rnew".into(), "Rnew Rb Ra Rd".into()));
    store.apply(Change::Vanished { paths: ["a", "b", "d", "e", "new"].map(|id| format!("{id}.json")).into() }).unwrap();
    assert_eq!(shown(store, &ProjectionQuery { from: top, ..newest(2) }), "");
    assert_eq!(shown(store, &newest(2)), "", "an evaluation that was seen is known");
    log("z", 7).with([attempt("1", Pass)]).put(store).unwrap();
    // On an empty page the runs are at or before the place, or after it.
    assert_eq!(shown(store, &ProjectionQuery { from: top, ..newest(2) }), "..");
    let later = page(store, &newest(2)).1.first().copied();
    assert_eq!(shown(store, &ProjectionQuery { from: later, back: true, ..newest(2) }), "..");
    assert_eq!(shown(store, &ProjectionQuery { from: later, ..newest(2) }), "..");
}

pub(crate) fn the_key_stays(store: &dyn Store) {
    let key = store.cursor_key().unwrap();
    log("a", 1).with([attempt("1", Pass)]).put(store).unwrap();
    assert_eq!(store.cursor_key().unwrap(), key);
    assert_ne!(key, [0; 32]);
}
