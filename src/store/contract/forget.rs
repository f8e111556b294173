//! Runs that go (`runlore prune`), and what stays as it was: what was accepted, and a no.
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

pub(crate) fn what_was_accepted_stays_as_it_was(store: &dyn Store) {
    let good = log("a", 1).with([attempt("1", Pass), attempt("2", Pass)]);
    good.put(store).unwrap();
    log("b", 2).with([attempt("1", Pass)]).put(store).unwrap();
    act(store, deed("d"), Act::AcceptBaseline { run_id: "Ra".into(), evaluation: None, note: None }).done.unwrap();
    let refused = |log: &Log| matches!(log.put(store), Err(Error::Import(why)) if why.contains("run \"Ra\" is an accepted baseline"));
    let counts = || store.select(&Selector::Id("Ra"), 1).unwrap().remove(0).counts;
    // Its file again with other results, another log of it, and one that retries a part of it.
    let mut worse = log("a", 1).with([attempt("1", Fail), attempt("2", Pass)]);
    worse.file.digest = "other".into();
    let mut more = log("c", 3).with([attempt("3", Fail)]);
    more.header.run_key = "Ra".into();
    assert!(refused(&worse) && refused(&more));
    assert_eq!((counts().passed, counts().failed), (2, 0));
    // The same again, another run, and its own once another is the reference.
    assert!(!good.put(store).unwrap().changed);
    log("d", 4).with([attempt("1", Fail)]).put(store).unwrap();
    act(store, deed("d"), Act::AcceptBaseline { run_id: "Rb".into(), evaluation: None, note: None }).done.unwrap();
    worse.put(store).unwrap();
    assert_eq!((counts().passed, counts().failed), (1, 1));
}

pub(crate) fn who_said_no_has_left_no_handle(store: &dyn Store) {
    let approval = Approval { handle: "h".into(), expires_at: at(1000) };
    let by = || Deed { approval: Some(approval.clone()), ..deed("d") };
    for _ in 0..2 {
        let no = Change::Refused { deed: Box::new(by()), outcome: "refused", reason: "no".into() };
        assert!(!store.apply(no).unwrap().changed);
    }
    let new = Act::CreateEvaluation(NewEvaluation { id: "e".into(), ..NewEvaluation::default() });
    assert_eq!(act(store, by(), new).done, Err(ActFault::ApprovalUsed));
    assert_eq!(store.audit(&AuditQuery { limit: 9, ..AuditQuery::default() }).unwrap().1, 3);
}

pub(crate) fn what_was_spent_counts_against_the_day(store: &dyn Store) {
    let case = NewCase { id: Some("1".into()), input: "asked".into(), ..NewCase::default() };
    let new = NewEvaluation { id: "e".into(), cases: vec![case], ..NewEvaluation::default() };
    act(store, deed("d"), Act::CreateEvaluation(new)).done.unwrap();
    act(store, deed("d"), Act::SetStatus { evaluation: "e".into(), status: EvaluationStatus::Active }).done.unwrap();
    let start = |run: &str| {
        let budget = Budget { queued_max: 9, cost_usd_max: Some(5.0), since: at(0) };
        let (evaluation, environment, max_cost_usd) = ("e".into(), "dev".into(), Some(3.0));
        let new = NewRun { run_id: run.into(), evaluation, arm: None, environment, max_cost_usd, budget };
        act(store, deed("d"), Act::StartRun(new)).done
    };
    let queue = |change: QueueChange<'_>| store.apply(Change::Queue(change)).unwrap().queue.unwrap();
    let claim = |now: i64| queue(QueueChange::Claim { worker: "w", now: at(now), lease_ms: 10, tries_max: 3 });
    start("r1").unwrap();
    assert!(start("r2").unwrap_err().to_string().contains("the 3 dollars"));
    // One that no worker took has cost nothing.
    act(store, deed("d"), Act::CancelRun { run_id: "r1".into() }).done.unwrap();
    start("r2").unwrap();
    // What a lost try cost is the run's, also in the next.
    assert!(matches!(claim(1), QueueOutcome::Claimed(_)));
    queue(QueueChange::Beat { run_id: "r2", worker: "w", now: at(2), lease_ms: 10, done: 0, cost_usd: Some(0.5) });
    let QueueOutcome::Claimed(again) = claim(100) else { panic!("the lease has ended") };
    assert_eq!((again.run.tries, again.run.cost_usd), (2, Some(0.5)));
    let end = RunEnd { status: RunStatus::Failed, error: Some("why".into()), cost_usd: Some(1.5), attempts: &mut std::iter::empty() };
    queue(QueueChange::End { run_id: "r2", worker: "w", now: at(101), end });
    start("r3").unwrap();
    assert!(start("r4").unwrap_err().to_string().contains("the 4.5 dollars"));
}
