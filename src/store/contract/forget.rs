//! Runs that go (`runlore prune`).
//!
//! Promises: what stays stays whole, its trail included; what goes is nowhere found.
//! Does not: know an adapter.

use super::{super::workspace::*, workspace::*, *};

fn imported(id: &str, ms: i64) -> Log {
    let mut log = log(id, ms).with([attempt("1", Pass)]);
    log.file.source = None;
    log
}

fn gone(run: &str) -> Act {
    Act::ForgetRun { run_id: run.into() }
}

pub(crate) fn runs_go_but_never_a_baseline(store: &dyn Store) {
    for (id, ms) in [("a", 1), ("b", 2), ("c", 3)] {
        imported(id, ms).put(store).unwrap();
    }
    log("d", 4).with([attempt("1", Pass)]).put(store).unwrap();
    let mut open = imported("o", 5);
    open.header.status = RunStatus::Running;
    open.put(store).unwrap();
    let refused = |run: &str| act(store, deed("d"), gone(run)).done.unwrap_err().to_string();
    assert_eq!(refused("none"), "there is no run \"none\"");
    assert_eq!(refused("Ro"), "run \"Ro\" is running; only one that has ended can go");
    assert!(refused("Rd").starts_with("run \"Rd\" is of file \"d.json\", which is looked at"), "{}", refused("Rd"));
    let accept = |run: &str| act(store, deed("d"), Act::AcceptBaseline { run_id: run.into(), evaluation: None, note: None }).done.unwrap();
    accept("Ra");
    assert_eq!(refused("Ra"), "run \"Ra\" is a baseline; accept another first");
    let before = store.generation().unwrap();
    let outcome = act(store, deed("d"), gone("Rb"));
    assert_eq!(outcome.done.unwrap().to_string(), "run \"Rb\" is gone");
    assert!(store.generation().unwrap() > before, "an answer that was kept is stale");
    let ids = || store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).unwrap().0.into_iter().map(|run| run.run_id).collect::<Vec<_>>();
    assert_eq!(ids(), ["Ro", "Rd", "Rc", "Ra"]);
    assert_eq!(refused("Rb"), "there is no run \"Rb\"");
    assert!(store.files(None).unwrap().iter().all(|file| file.stamp.path != "b.json"));
    // A baseline that another has taken the place of may go; its acceptance stays.
    accept("Rc");
    act(store, deed("d"), gone("Ra")).done.unwrap();
    assert_eq!(store.baselines(None).unwrap().iter().map(|row| row.present).collect::<Vec<_>>(), [true, false]);
    // What went may come again.
    imported("b", 2).put(store).unwrap();
    assert_eq!(ids(), ["Ro", "Rd", "Rc", "Rb"]);
}
