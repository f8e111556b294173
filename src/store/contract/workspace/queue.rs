//! The queue of the port: what may be started, leases, and that nothing passes before it has ended.
//!
//! Promises: each test says one thing of the port and knows no adapter.
//! Does not: run anything.

use super::*;

fn try_end(store: &dyn Store, worker: &str, status: RunStatus, results: &[(&str, crate::domain::outcome::Outcome)]) -> Result<Applied> {
    let result = |(case, outcome): &(&str, crate::domain::outcome::Outcome)| {
        Ok(Attempt { evaluation: "q".into(), arm: "default".into(), ..attempt(case, *outcome) })
    };
    let mut attempts = results.iter().map(result);
    let end = RunEnd { status, error: None, cost_usd: None, attempts: &mut attempts };
    store.apply(Change::Queue(QueueChange::End { run_id: "r", worker, now: at(900), end }))
}

pub(super) fn end(store: &dyn Store, worker: &str, status: RunStatus, results: &[(&str, crate::domain::outcome::Outcome)]) -> QueueOutcome {
    try_end(store, worker, status, results).unwrap().queue.unwrap()
}

pub(crate) fn a_run_starts_only_where_it_may(store: &dyn Store) {
    assert_eq!(fault(store, Act::StartRun(run("r"))), "there is no evaluation \"q\"");
    ok(store, new("q", &[]));
    assert_eq!(fault(store, Act::StartRun(run("r"))), "evaluation \"q\" is draft; only an active evaluation can be started");
    ok(store, status("q", EvaluationStatus::Active));
    assert_eq!(fault(store, Act::StartRun(run("r"))), "evaluation \"q\" has no cases that were made here; add one first");
    ok(store, add("q", None));
    log("x", 1).with([attempt("1", Pass)]).put(store).unwrap();
    // Of a run that is there, of a log's, and of the queue's.
    assert_eq!(fault(store, Act::StartRun(run("Rx"))), "there is run \"Rx\" already");
    assert_eq!(fault(store, Act::StartRun(run("x"))), "there is run \"x\" already");
    assert_eq!(ok(store, Act::StartRun(run("r"))), Acted::Run { run_id: "r".into(), status: RunStatus::Pending });
    assert_eq!(fault(store, Act::StartRun(run("r"))), "there is run \"r\" already");
}

pub(crate) fn a_budget_holds(store: &dyn Store) {
    ready(store);
    let costs = |id: &str, cost: Option<f64>| {
        let budget = Budget { queued_max: 3, cost_usd_max: Some(10.0), since: at(-HOUR) };
        Act::StartRun(NewRun { max_cost_usd: cost, budget, ..run(id) })
    };
    let early = Deed { at: at(-2 * HOUR), ..deed("d") };
    act(store, early, costs("yesterday", Some(9.0))).done.unwrap();
    assert!(fault(store, costs("r", None)).starts_with("argument max_cost_usd: the runs of a day may cost 10 dollars here"));
    for cost in [-1.0, f64::INFINITY, f64::NAN] {
        assert!(fault(store, costs("r", Some(cost))).contains("is no amount of dollars"));
    }
    ok(store, costs("r", Some(4.0)));
    assert!(fault(store, costs("s", Some(6.5))).contains("6.5 and the 4 dollars of the runs since"));
    ok(store, costs("s", Some(6.0)));
    assert!(fault(store, Act::StartRun(run("t"))).starts_with("3 runs are queued or running, and 3 is the most"));
    ok(store, Act::CancelRun { run_id: "s".into() });
    ok(store, Act::StartRun(run("t")));
}

pub(crate) fn a_queued_run_is_seen_and_never_passes(store: &dyn Store) {
    let made = NewEvaluation { id: "q".into(), threshold: Some(0.5), cases: vec![case(Some("a")), case(Some("b"))], ..Default::default() };
    ok(store, Act::CreateEvaluation(made));
    ok(store, status("q", EvaluationStatus::Active));
    ok(store, Act::StartRun(run("r")));
    assert_eq!(shown(store, "r"), (RunStatus::Pending, counts(0, 0, 0, 0, 2)));
    let verdict = |store: &dyn Store| {
        let cell = cells(store, &["r"], Grain::Evaluation).remove(0);
        (cell.key, cell.verdict, cell.threshold)
    };
    assert_eq!(verdict(store), (key("q", None, "default"), Verdict::Unscored, Some(0.5)));
    let arms = store.arms(&["r".into()]).unwrap().remove("r").unwrap();
    assert_eq!(arms[0].info.factors, [("environment".to_owned(), "dev".to_owned())].into());
    assert_eq!(store.extras("r").unwrap().unwrap().metadata["startedBy"], serde_json::json!("ann"));
    assert_eq!(store.queued(&[]).unwrap().into_keys().collect::<Vec<_>>(), ["r"]);
    assert_eq!((queued(store, "r").total, queued(store, "r").created_by.as_str()), (2, "ann"));
    assert!(matches!(claim(store, "w", 10), QueueOutcome::Claimed(_)));
    assert_eq!(shown(store, "r"), (RunStatus::Running, counts(0, 0, 0, 0, 2)));
    let generation = store.generation().unwrap();
    assert_eq!(beat(store, "w", 20, 1), QueueOutcome::Ours);
    assert_eq!((queued(store, "r").done, queued(store, "r").cost_usd, store.generation().unwrap()), (1, Some(0.5), generation));
    assert_eq!(end(store, "w", RunStatus::Completed, &[("a", Pass), ("b", Fail)]), QueueOutcome::Ours);
    assert_eq!(shown(store, "r"), (RunStatus::Completed, counts(1, 1, 0, 0, 0)));
    assert_eq!((verdict(store).1, store.generation().unwrap()), (Verdict::Pass, generation + 1));
    let row = queued(store, "r");
    assert_eq!((row.done, row.ended_at, row.lease_until, row.worker.as_deref()), (2, Some(at(900)), None, Some("w")));
    assert!(store.queued(&[]).unwrap().is_empty());
    let run = store.select(&Selector::Id("r"), 1).unwrap().remove(0);
    assert_eq!((run.created_at, run.started_at, run.completed_at), (at(0), Some(at(10)), Some(at(900))));
    assert_eq!(end(store, "w", RunStatus::Failed, &[]), QueueOutcome::Lost, "what has ended stays so");
}

pub(crate) fn a_run_is_done_with_the_cases_that_it_began_with(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    ok(store, add("q", Some("later")));
    ok(store, status("q", EvaluationStatus::Archived));
    let QueueOutcome::Claimed(claimed) = claim(store, "w", 10) else { panic!("nothing waits") };
    assert_eq!(claimed.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((claimed.evaluation.cases, claimed.run.total, claimed.run.tries), (3, 2, 1));
    assert_eq!((claimed.run.started_at, claimed.run.lease_until), (Some(at(10)), Some(at(110))));
    // A case that was tried twice hides none that was not.
    assert_eq!(end(store, "w", RunStatus::Completed, &[("a", Pass), ("a", Pass)]), QueueOutcome::Ours);
    assert_eq!((shown(store, "r").1, queued(store, "r").done), (counts(2, 0, 0, 0, 1), 1));
}

pub(crate) fn a_lease_is_one_workers(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    ok(store, Act::StartRun(run("s")));
    assert!(matches!(claim(store, "w", 0), QueueOutcome::Claimed(claimed) if claimed.run.run_id == "r"));
    assert!(matches!(claim(store, "v", 0), QueueOutcome::Claimed(claimed) if claimed.run.run_id == "s"));
    assert_eq!(claim(store, "v", 99), QueueOutcome::Idle);
    assert_eq!((beat(store, "v", 50, 0), end(store, "v", RunStatus::Completed, &[("a", Pass)])), (QueueOutcome::Lost, QueueOutcome::Lost));
    // Late, but nobody else has taken it.
    assert_eq!(beat(store, "w", 500, 0), QueueOutcome::Ours);
    assert!(matches!(claim(store, "v", 599), QueueOutcome::Claimed(claimed) if claimed.run.run_id == "s"));
    assert!(matches!(claim(store, "x", 600), QueueOutcome::Claimed(claimed) if claimed.run.run_id == "r" && claimed.run.tries == 2));
    assert_eq!((beat(store, "w", 601, 2), end(store, "w", RunStatus::Completed, &[("a", Pass)])), (QueueOutcome::Lost, QueueOutcome::Lost));
    assert_eq!(shown(store, "r"), (RunStatus::Running, counts(0, 0, 0, 0, 2)));
    assert_eq!(end(store, "x", RunStatus::Completed, &[("a", Pass), ("b", Pass)]), QueueOutcome::Ours);
    assert_eq!(shown(store, "r"), (RunStatus::Completed, counts(2, 0, 0, 0, 0)));
}

pub(crate) fn a_clock_that_is_put_back_holds_no_run(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    let day = 86_400_000;
    assert!(matches!(claim(store, "w", day), QueueOutcome::Claimed(claimed) if claimed.run.run_id == "r"));
    assert_eq!(claim(store, "v", day - rules::LEASE_MS_MAX / 2), QueueOutcome::Idle, "a lease may be as long");
    assert!(matches!(claim(store, "v", 0), QueueOutcome::Claimed(claimed) if claimed.run.tries == 2));
    assert_eq!(beat(store, "w", 1, 0), QueueOutcome::Lost);
}

pub(crate) fn a_lost_run_is_tried_again_and_then_fails(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    for (ms, tries) in [(0, 1), (100, 2)] {
        let QueueOutcome::Claimed(claimed) = claim(store, "w", ms) else { panic!("try {tries}") };
        assert_eq!((claimed.run.tries, claimed.run.done, claimed.run.cost_usd), (tries, 0, (tries > 1).then_some(0.5)));
        beat(store, "w", ms, 1);
    }
    let generation = store.generation().unwrap();
    assert_eq!(claim(store, "v", 300), QueueOutcome::Idle);
    let row = queued(store, "r");
    assert_eq!((row.status, row.error.as_deref()), (RunStatus::Failed, Some("its worker was lost 2 times")));
    assert_eq!((shown(store, "r"), store.generation().unwrap()), ((RunStatus::Failed, counts(0, 0, 0, 0, 2)), generation + 1));
    assert_eq!(store.extras("r").unwrap().unwrap().error.as_deref(), Some("its worker was lost 2 times"));
    assert_eq!(beat(store, "w", 301, 1), QueueOutcome::Lost);
}

pub(crate) fn a_run_is_cancelled(store: &dyn Store) {
    ready(store);
    let cancel = |id: &str| Act::CancelRun { run_id: id.into() };
    for id in ["r", "s"] {
        ok(store, Act::StartRun(run(id)));
    }
    assert_eq!(ok(store, cancel("s")), Acted::Run { run_id: "s".into(), status: RunStatus::Cancelled });
    assert_eq!((shown(store, "s"), queued(store, "s").ended_at), ((RunStatus::Cancelled, counts(0, 0, 0, 0, 2)), Some(at(0))));
    assert_eq!(fault(store, cancel("s")), "run \"s\" has ended: it is cancelled");
    assert_eq!(fault(store, cancel("none")), "there is no run \"none\" in the queue");
    claim(store, "w", 0);
    assert_eq!(ok(store, cancel("r")), Acted::Run { run_id: "r".into(), status: RunStatus::Running });
    assert!(queued(store, "r").cancelling);
    assert_eq!(beat(store, "w", 50, 1), QueueOutcome::Cancelling);
    assert_eq!(end(store, "w", RunStatus::Cancelled, &[]), QueueOutcome::Ours);
    assert_eq!((shown(store, "r").0, queued(store, "r").cancelling), (RunStatus::Cancelled, false));
    // One whose worker is lost meanwhile is not tried again.
    ok(store, Act::StartRun(run("t")));
    claim(store, "w", 1000);
    ok(store, cancel("t"));
    assert_eq!((claim(store, "v", 1100), queued(store, "t").status), (QueueOutcome::Idle, RunStatus::Cancelled));
}

pub(crate) fn what_ends_badly_counts_nothing(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    claim(store, "w", 0);
    assert_eq!(end(store, "w", RunStatus::Failed, &[("a", Pass), ("b", Pass)]), QueueOutcome::Ours);
    assert_eq!(shown(store, "r"), (RunStatus::Failed, counts(0, 0, 0, 0, 2)));
    assert_eq!(store.attempts("r", &AttemptQuery::default()).unwrap(), []);
    assert_eq!(queued(store, "r").error.as_deref(), Some("its worker gave no reason"));
}

pub(crate) fn results_must_be_of_the_run(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    claim(store, "w", 0);
    let error = try_end(store, "w", RunStatus::Completed, &[("a", Pass), ("c", Pass)]).unwrap_err().to_string();
    assert_eq!(error, "a result is of case \"c\", which the run does not have");
    let other = Attempt { evaluation: "e".into(), ..attempt("a", Pass) };
    let mut attempts = [Ok(other)].into_iter();
    let end_with = RunEnd { status: RunStatus::Completed, error: None, cost_usd: None, attempts: &mut attempts };
    let error = store.apply(Change::Queue(QueueChange::End { run_id: "r", worker: "w", now: at(9), end: end_with })).unwrap_err();
    assert!(error.to_string().starts_with("a result is of evaluation \"e\" and arm \"m\"; the run is of"), "{error}");
    assert!(try_end(store, "w", RunStatus::Running, &[]).is_err());
    assert_eq!(shown(store, "r"), (RunStatus::Running, counts(0, 0, 0, 0, 2)));
    assert_eq!(end(store, "w", RunStatus::Completed, &[("a", Pass), ("b", Pass)]), QueueOutcome::Ours);
}

pub(crate) fn the_queue_is_no_file_and_takes_no_log(store: &dyn Store) {
    ready(store);
    ok(store, Act::StartRun(run("r")));
    log("x", 1).with([attempt("1", Pass)]).put(store).unwrap();
    assert_eq!(store.files(None).unwrap().into_iter().map(|row| row.stamp.path).collect::<Vec<_>>(), ["x.json"]);
    let lies = [log("y", 2).run("r"), log("r", 2), log("y", 2).run("r").record_of("r")];
    for lie in lies {
        let error = lie.with([attempt("a", Pass)]).put(store).unwrap_err();
        assert!(error.to_string().starts_with("run \"r\" is one of the queue"), "{error}");
    }
    let error = log("y", 2).file("queue:r", "d").put(store).unwrap_err();
    assert!(error.to_string().starts_with("its path begins with \"queue:\""), "{error}");
    let file = FileStamp { path: "queue:r".into(), size: 1, mtime_ns: 1, digest: "none".into(), source: None };
    let applied = store.apply(Change::Skipped { file, broken: true, reason: "no log".into() }).unwrap();
    let gone = store.apply(Change::Vanished { paths: vec!["queue:r".into()] }).unwrap();
    assert_eq!((applied, gone), (Applied::default(), Applied::default()));
    assert_eq!(shown(store, "r"), (RunStatus::Pending, counts(0, 0, 0, 0, 2)));
    claim(store, "w", 0);
    assert_eq!(end(store, "w", RunStatus::Completed, &[("a", Pass), ("b", Pass)]), QueueOutcome::Ours);
    let error = log("y", 2).run("r").with([attempt("a", Pass)]).put(store).unwrap_err();
    assert!(error.to_string().starts_with("run \"r\" is one of the queue"), "{error}");
}
