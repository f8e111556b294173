//! The workspace of the port: deeds with their approvals, keys and rows of the trail; evaluations, the queue, traces, sources and baselines.
//!
//! Promises: each test says one thing of the port and knows no adapter.
//! Does not: try every interleaving (`deeds` does).

mod queue;

use super::{super::workspace::*, *};
pub(crate) use queue::*;

use crate::{auth::Role, store::workspace::Outcome};

/// Makes the workspace's tests for the stores that `$fresh` gives.
macro_rules! workspace_contract {
    ($fresh:path) => {
        crate::store::contract::contract! { $fresh;
            an_empty_workspace_answers_everything a_deed_leaves_its_row a_refused_deed_leaves_its_row_and_nothing_else
            an_approval_is_used_once a_key_gets_the_first_answer the_trail_is_filtered_and_paged evaluations_are_made_and_listed
            cases_are_added_and_named what_came_with_logs_can_be_worked_on a_locked_evaluation_is_not_changed a_run_starts_only_where_it_may
            a_budget_holds a_queued_run_is_seen_and_never_passes a_run_is_done_with_the_cases_that_it_began_with a_lease_is_one_workers
            a_lost_run_is_tried_again_and_then_fails a_run_is_cancelled what_ends_badly_counts_nothing results_must_be_of_the_run
            the_queue_is_no_file_and_takes_no_log traces_last_until_their_day sources_are_kept_with_their_health baselines_form_a_lineage
            any_text_is_a_name runs_go_but_never_a_baseline what_was_accepted_stays_as_it_was who_said_no_has_left_no_handle
            what_was_spent_counts_against_the_day
            a_clock_that_is_put_back_holds_no_run
        }
    };
}
pub(crate) use workspace_contract;

const NOON: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(NOON + ms)
}

/// A deed of `ann` with the tool `tool` at noon, whose request and digest are `name`.
pub(crate) fn deed(name: &str) -> Deed {
    Deed {
        actor: Actor {
            identity: "id-ann".into(),
            principal: "ann".into(),
            role: Role::Member,
            address: Some([10, 0, 0, 7].into()),
            request_id: format!("r-{name}"),
        },
        tool: "tool".into(),
        digest: name.into(),
        at: at(0),
        approval: None,
        idempotency_key: None,
    }
}

/// What it came to.
pub(crate) fn act(store: &dyn Store, deed: Deed, act: Act) -> Outcome {
    store.apply(Change::Deed(Box::new((deed, act)))).unwrap().outcome.unwrap()
}

fn ok(store: &dyn Store, what: Act) -> Acted {
    act(store, deed("d"), what).done.unwrap()
}

fn fault(store: &dyn Store, what: Act) -> String {
    act(store, deed("d"), what).done.unwrap_err().to_string()
}

fn new(id: &str, cases: &[&str]) -> Act {
    let cases = cases.iter().map(|id| case(Some(id))).collect();
    Act::CreateEvaluation(NewEvaluation { id: id.into(), cases, ..NewEvaluation::default() })
}

fn case(id: Option<&str>) -> NewCase {
    NewCase { id: id.map(Into::into), input: "asked".into(), expected: Some("right".into()), metadata: None }
}

fn add(evaluation: &str, id: Option<&str>) -> Act {
    Act::AddCase { evaluation: evaluation.into(), case: case(id) }
}

fn status(evaluation: &str, status: EvaluationStatus) -> Act {
    Act::SetStatus { evaluation: evaluation.into(), status }
}

fn lock(evaluation: &str, reason: Option<&str>) -> Act {
    Act::SetLock { evaluation: evaluation.into(), reason: reason.map(Into::into) }
}

fn run(id: &str) -> NewRun {
    let budget = Budget { queued_max: 3, cost_usd_max: None, since: at(-HOUR) };
    NewRun { run_id: id.into(), evaluation: "q".into(), arm: None, environment: "dev".into(), max_cost_usd: None, budget }
}

/// An active evaluation `q` with the cases `a` and `b`.
fn ready(store: &dyn Store) {
    ok(store, new("q", &["a", "b"]));
    ok(store, status("q", EvaluationStatus::Active));
}

fn queue(store: &dyn Store, change: QueueChange<'_>) -> QueueOutcome {
    store.apply(Change::Queue(change)).unwrap().queue.unwrap()
}

fn claim(store: &dyn Store, worker: &str, ms: i64) -> QueueOutcome {
    queue(store, QueueChange::Claim { worker, now: at(ms), lease_ms: 100, tries_max: 2 })
}

fn beat(store: &dyn Store, worker: &str, ms: i64, done: u64) -> QueueOutcome {
    queue(store, QueueChange::Beat { run_id: "r", worker, now: at(ms), lease_ms: 100, done, cost_usd: Some(0.5) })
}

fn queued(store: &dyn Store, id: &str) -> Queued {
    store.queued(&[id.to_owned()]).unwrap().remove(id).unwrap()
}

fn shown(store: &dyn Store, id: &str) -> (RunStatus, Counts) {
    let run = store.select(&Selector::Id(id), 1).unwrap().remove(0);
    (run.status, run.counts)
}

fn trail(store: &dyn Store) -> Vec<String> {
    let rows = store.audit(&AuditQuery { limit: 99, ..AuditQuery::default() }).unwrap().0;
    rows.into_iter().map(|row| format!("{} {} {}", row.number, row.outcome, row.detail)).collect()
}

fn one(store: &dyn Store, id: &str) -> Option<Authored> {
    store.authored(&AuthoredQuery { id: Some(id), limit: 9, ..AuthoredQuery::default() }).unwrap().0.pop()
}

pub(crate) fn an_empty_workspace_answers_everything(store: &dyn Store) {
    assert_eq!(store.authored(&AuthoredQuery { limit: 9, ..AuthoredQuery::default() }).unwrap(), (vec![], 0));
    assert_eq!(store.authored_cases("e", 0, 9).unwrap(), (vec![], 0));
    assert!(store.queued(&[]).unwrap().is_empty() && store.queued(&["r".into()]).unwrap().is_empty());
    assert_eq!(store.audit(&AuditQuery { limit: 9, ..AuditQuery::default() }).unwrap(), (vec![], 0));
    assert_eq!((store.baselines(None).unwrap(), store.baselines(Some("e")).unwrap()), (vec![], vec![]));
    assert_eq!(store.connections().unwrap(), []);
    assert_eq!(store.trace("t", at(0)).unwrap(), None);
    assert_eq!(store.remembered("id-ann", "tool", "k", at(0)).unwrap(), None);
    assert_eq!((claim(store, "w", 0), beat(store, "w", 0, 0)), (QueueOutcome::Idle, QueueOutcome::Lost));
    assert_eq!(end(store, "w", RunStatus::Failed, &[]), QueueOutcome::Lost);
    store.apply(Change::Synced { connection: "none".into(), health: Health::default() }).unwrap();
    assert_eq!(store.generation().unwrap(), 0);
}

pub(crate) fn a_deed_leaves_its_row(store: &dyn Store) {
    let applied = store.apply(Change::Deed(Box::new((deed("d1"), new("e", &["1"]))))).unwrap();
    let did = Acted::Evaluation { evaluation: "e".into(), number: 1, status: EvaluationStatus::Draft };
    assert_eq!((applied.changed, applied.outcome), (true, Some(Outcome { done: Ok(did), repeated: false })));
    assert_eq!(store.generation().unwrap(), 1);
    let (rows, total) = store.audit(&AuditQuery { limit: 9, ..AuditQuery::default() }).unwrap();
    let expected = AuditRow {
        number: 1,
        at: at(0),
        actor: "ann".into(),
        role: "member".into(),
        tool: "tool".into(),
        digest: "d1".into(),
        outcome: "ok".into(),
        detail: "evaluation \"e\" is draft".into(),
        address: Some("10.0.0.7".into()),
        request_id: "r-d1".into(),
    };
    assert_eq!((rows, total), (vec![expected], 1));
}

pub(crate) fn a_refused_deed_leaves_its_row_and_nothing_else(store: &dyn Store) {
    let approval = Some(Approval { handle: "h".into(), expires_at: at(9) });
    let asked = Deed { approval: approval.clone(), idempotency_key: Some("k".into()), ..deed("d") };
    // The second of its cases is its first again, when the evaluation and the first stand already.
    let refused = act(store, asked.clone(), new("e", &["1", "1"]));
    let why = "there is case \"1\" of evaluation \"e\" already";
    assert_eq!((refused.done.unwrap_err().to_string(), refused.repeated), (why.to_owned(), false));
    assert_eq!((one(store, "e"), store.authored_cases("e", 0, 9).unwrap(), store.generation().unwrap()), (None, (vec![], 0), 0));
    assert_eq!(trail(store), [format!("1 refused {why}")]);
    // Nothing was used up: the same leave, key and name are good.
    act(store, Deed { digest: "other".into(), ..asked }, new("e", &["1"])).done.unwrap();
    let refused = Change::Refused { deed: Box::new(deed("x")), outcome: "denied", reason: "needs role admin".into() };
    assert_eq!(store.apply(refused).unwrap(), Applied::default());
    assert_eq!((trail(store).remove(0), store.generation().unwrap()), ("3 denied needs role admin".to_owned(), 1));
}

pub(crate) fn an_approval_is_used_once(store: &dyn Store) {
    let with = |expires: i64, now: i64| Deed {
        approval: Some(Approval { handle: "h".into(), expires_at: at(expires) }),
        at: at(now),
        ..deed("d")
    };
    let late = act(store, with(300, 300), new("a", &[])).done.unwrap_err();
    assert_eq!(late, ActFault::ApprovalExpired);
    act(store, with(300, 299), new("a", &[])).done.unwrap();
    assert_eq!(act(store, with(300, 299), new("b", &[])).done.unwrap_err(), ActFault::ApprovalUsed);
    // It has expired meanwhile, and the clock was set back.
    act(store, Deed { at: at(HOUR), ..deed("later") }, new("c", &[])).done.unwrap();
    assert_eq!(act(store, with(300, 299), new("b", &[])).done.unwrap_err(), ActFault::ApprovalUsed);
    assert_eq!(one(store, "b"), None);
}

pub(crate) fn a_key_gets_the_first_answer(store: &dyn Store) {
    let keyed = |digest: &str, ms: i64| Deed { idempotency_key: Some("k".into()), at: at(ms), ..deed(digest) };
    let first = act(store, keyed("d", 0), add_to(store)).done.unwrap();
    let generation = store.generation().unwrap();
    // The leave that a repeat carries is left alone.
    let again = Deed { approval: Some(Approval { handle: "h".into(), expires_at: at(9) }), ..keyed("d", 5) };
    assert_eq!(act(store, again.clone(), add("e", None)), Outcome { done: Ok(first.clone()), repeated: true });
    assert_eq!((store.authored_cases("e", 0, 9).unwrap().1, store.generation().unwrap()), (1, generation));
    assert_eq!(act(store, keyed("other", 6), add("e", None)).done.unwrap_err(), ActFault::KeyReused);
    let held = Remembered { digest: "d".into(), acted: first };
    assert_eq!(store.remembered("id-ann", "tool", "k", at(0)).unwrap(), Some(held));
    assert_eq!(store.remembered("id-ann", "tool", "k", at(1)).unwrap(), None);
    // Of another caller, or another tool, the key is another.
    let mut other = keyed("d", 7);
    other.actor.identity = "id-bob".into();
    assert!(!act(store, other, add("e", None)).repeated);
    assert!(!act(store, Deed { tool: "else".into(), ..keyed("d", 8) }, add("e", None)).repeated);
    assert!(act(store, Deed { approval: again.approval, idempotency_key: None, ..deed("z") }, add("e", None)).done.is_ok());
    // A day later it is forgotten.
    assert!(act(store, keyed("d", REMEMBERED_MS), add("e", None)).repeated);
    assert!(!act(store, keyed("d", REMEMBERED_MS + 1), add("e", None)).repeated);
    assert_eq!(trail(store).iter().filter(|row| row.contains("repeated")).count(), 2);
}

/// The evaluation `e`, and a case more for it.
fn add_to(store: &dyn Store) -> Act {
    ok(store, new("e", &[]));
    add("e", None)
}

pub(crate) fn the_trail_is_filtered_and_paged(store: &dyn Store) {
    for number in 0..6 {
        let mut deed = Deed { at: at(number), ..deed("d") };
        deed.actor.principal = if number % 2 == 0 { "ann".into() } else { "bob".into() };
        deed.actor.address = None;
        deed.tool = if number < 3 { "first".into() } else { "second".into() };
        act(store, deed, new(&format!("e{}", number.min(4)), &[]));
    }
    let numbers = |query: AuditQuery<'_>| {
        let (rows, total) = store.audit(&query).unwrap();
        (rows.into_iter().map(|row| row.number).collect::<Vec<_>>(), total)
    };
    let all = AuditQuery { limit: 2, ..AuditQuery::default() };
    assert_eq!(numbers(all.clone()), (vec![6, 5], 6));
    assert_eq!(numbers(AuditQuery { before: Some(5), ..all.clone() }), (vec![4, 3], 6));
    assert_eq!(numbers(AuditQuery { actor: Some("bob"), ..all.clone() }), (vec![6, 4], 3));
    assert_eq!(numbers(AuditQuery { tool: Some("first"), before: Some(3), ..all.clone() }), (vec![2, 1], 3));
    assert_eq!(numbers(AuditQuery { outcome: Some("refused"), ..all.clone() }), (vec![6], 1));
    assert_eq!(numbers(AuditQuery { since: Some(at(4)), limit: 9, ..all }), (vec![6, 5], 2));
}

pub(crate) fn evaluations_are_made_and_listed(store: &dyn Store) {
    log("a", 1).with([attempt("1", Pass)]).of(EvaluationInfo { threshold: Some(0.5), ..evaluation("seen") }).put(store).unwrap();
    let made = NewEvaluation {
        id: "made".into(),
        name: Some("Größe".into()),
        description: Some("what it is".into()),
        family: Some("f".into()),
        threshold: Some(0.75),
        cases: vec![case(None), case(Some("x"))],
    };
    act(store, deed("d"), Act::CreateEvaluation(made)).done.unwrap();
    act(store, Deed { at: at(5), ..deed("d") }, new("zuletzt", &[])).done.unwrap();
    assert_eq!(fault(store, new("made", &[])), "there is evaluation \"made\" already");
    assert_eq!(fault(store, new("seen", &[])), "there is evaluation \"seen\" already");
    let expected = Authored {
        id: "made".into(),
        number: 2,
        name: Some("Größe".into()),
        description: Some("what it is".into()),
        family: Some("f".into()),
        threshold: Some(0.75),
        status: EvaluationStatus::Draft,
        authored: true,
        created_at: at(0),
        created_by: Some("ann".into()),
        lock: None,
        cases: 2,
        runs: 0,
    };
    assert_eq!(one(store, "made"), Some(expected));
    let seen = one(store, "seen").unwrap();
    assert_eq!((seen.number, seen.authored, seen.status, seen.threshold), (1, false, EvaluationStatus::Active, Some(0.5)));
    assert_eq!((seen.created_at, seen.created_by, seen.cases, seen.runs), (Timestamp::from_millis(1000), None, 0, 1));
    let ids = |query: AuthoredQuery<'_>| {
        let (rows, total) = store.authored(&query).unwrap();
        (rows.into_iter().map(|row| row.id).collect::<Vec<_>>(), total)
    };
    let all = AuthoredQuery { limit: 9, ..AuthoredQuery::default() };
    assert_eq!(ids(all.clone()), (vec!["zuletzt".into(), "made".into(), "seen".into()], 3));
    assert_eq!(ids(AuthoredQuery { offset: 1, limit: 1, ..all.clone() }), (vec!["made".into()], 3));
    assert_eq!(ids(AuthoredQuery { contains: Some("GRÖ"), ..all.clone() }), (vec!["made".into()], 1));
    assert_eq!(ids(AuthoredQuery { contains: Some("E"), ..all.clone() }).1, 3);
    assert_eq!(ids(AuthoredQuery { number: Some(1), ..all.clone() }), (vec!["seen".into()], 1));
    assert_eq!(ids(AuthoredQuery { number: Some(1), id: Some("made"), ..all.clone() }).1, 0);
    assert_eq!(ids(AuthoredQuery { status: Some(EvaluationStatus::Draft), ..all.clone() }).1, 2);
    // What only logs held goes with them; its number is kept for it.
    store.apply(Change::Vanished { paths: vec!["a.json".into()] }).unwrap();
    assert_eq!((one(store, "seen"), ids(all).1), (None, 2));
    ok(store, new("seen", &[]));
    assert_eq!(one(store, "seen").unwrap().number, 1);
}

pub(crate) fn cases_are_added_and_named(store: &dyn Store) {
    ok(store, new("e", &["case-3"]));
    let named = |acted| match acted {
        Acted::Case { case, .. } => case,
        other => panic!("{other:?}"),
    };
    let names = [None, None, Some("x"), None].map(|id| named(ok(store, add("e", id))));
    assert_eq!(names, ["case-2", "case-4", "x", "case-5"]);
    assert_eq!(fault(store, add("e", Some("x"))), "there is case \"x\" of evaluation \"e\" already");
    assert_eq!(fault(store, add("nowhere", None)), "there is no evaluation \"nowhere\"");
    let metadata = serde_json::Map::from_iter([("k".to_owned(), serde_json::json!([1, null]))]);
    let more = NewCase { metadata: Some(metadata.clone()), expected: None, ..case(Some("m")) };
    act(store, Deed { at: at(7), ..deed("d") }, Act::AddCase { evaluation: "e".into(), case: more }).done.unwrap();
    let (cases, total) = store.authored_cases("e", 1, 2).unwrap();
    assert_eq!((cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), total), (vec!["case-2", "case-4"], 6));
    let last = store.authored_cases("e", 5, 9).unwrap().0.remove(0);
    let (id, created_by) = ("m".to_owned(), "ann".to_owned());
    assert_eq!(last, AuthoredCase { id, input: "asked".into(), expected: None, metadata, created_at: at(7), created_by });
    ok(store, status("e", EvaluationStatus::Archived));
    assert_eq!(fault(store, add("e", None)), "evaluation \"e\" is archived; nothing is added to it");
}

pub(crate) fn what_came_with_logs_can_be_worked_on(store: &dyn Store) {
    let info = EvaluationInfo { threshold: Some(0.5), family: Some("f".into()), ..evaluation("q") };
    log("a", 1).with([attempt("1", Pass)]).of(info).put(store).unwrap();
    assert_eq!(fault(store, Act::StartRun(run("r"))), "evaluation \"q\" has no cases that were made here; add one first");
    ok(store, add("q", Some("a")));
    let held = one(store, "q").unwrap();
    assert_eq!((held.authored, held.status, held.cases, held.created_by.as_deref()), (true, EvaluationStatus::Active, 1, Some("ann")));
    // What the newest run says of it reaches the runs that are started here.
    ok(store, Act::StartRun(run("r")));
    let info = store.evaluations("r").unwrap().remove(0).info;
    assert_eq!((info.threshold, info.family.as_deref()), (Some(0.5), Some("f")));
}

pub(crate) fn a_locked_evaluation_is_not_changed(store: &dyn Store) {
    ready(store);
    ok(store, lock("q", Some("the release")));
    let expected = Lock { by: "ann".into(), at: at(0), reason: "the release".into() };
    assert_eq!(one(store, "q").unwrap().lock, Some(expected));
    let locked = "evaluation q is locked by ann: the release";
    let acts = [add("q", None), status("q", EvaluationStatus::Draft), lock("q", Some("mine")), Act::StartRun(run("r"))];
    for act in acts {
        assert_eq!(fault(store, act), locked);
    }
    ok(store, lock("q", None));
    assert_eq!(fault(store, lock("q", None)), "evaluation \"q\" is not locked");
    ok(store, add("q", None));
    assert_eq!((one(store, "q").unwrap().lock, fault(store, lock("none", Some("x")))), (None, "there is no evaluation \"none\"".into()));
}

pub(crate) fn traces_last_until_their_day(store: &dyn Store) {
    let metadata = serde_json::Map::from_iter([("k".to_owned(), serde_json::json!(1))]);
    let trace = |id: &str, lines: &[&str]| NewTrace {
        trace_id: id.into(),
        name: "n".into(),
        status: Some("ok".into()),
        duration_ms: Some(7),
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        metadata: metadata.clone(),
        expires_at: at(HOUR),
    };
    let did = Acted::Trace { trace_id: "t".into(), expires_at: at(HOUR) };
    assert_eq!(ok(store, Act::CreateTrace(trace("t", &["{\"a\":1}", "\"ü\"\n\"x\""]))), did);
    assert_eq!(fault(store, Act::CreateTrace(trace("t", &[]))), "there is trace \"t\" already");
    let add = |id: &str, lines: Vec<String>| Act::AddLines { trace_id: id.into(), lines };
    assert_eq!(ok(store, add("t", vec!["3".into(), String::new()])), did);
    assert_eq!(ok(store, add("t", vec![])), did);
    assert_eq!(fault(store, add("none", vec![])), "there is no trace \"none\"");
    let expected = Trace {
        trace_id: "t".into(),
        name: "n".into(),
        status: Some("ok".into()),
        duration_ms: Some(7),
        metadata: metadata.clone(),
        created_at: at(0),
        created_by: "ann".into(),
        expires_at: at(HOUR),
        lines: ["{\"a\":1}", "\"ü\" \"x\"", "3", ""].map(str::to_owned).into(),
    };
    assert_eq!(store.trace("t", at(HOUR - 1)).unwrap(), Some(expected));
    assert_eq!(store.trace("t", at(HOUR)).unwrap(), None);
    // Too long in lines, in bytes, and by little.
    assert!(fault(store, add("t", vec!["x".into(); 9_997])).contains("would have 10001 lines"));
    assert!(fault(store, add("t", vec!["x".repeat(4 * 1024 * 1024)])).contains("the most are 10000 lines and 4194304 bytes"));
    ok(store, add("t", vec!["x".into(); 9_996]));
    assert_eq!(store.trace("t", at(0)).unwrap().unwrap().lines.len(), 10_000);
    // Past its day its name is free.
    let late = Deed { at: at(HOUR), ..deed("d") };
    assert_eq!(act(store, late.clone(), add("t", vec![])).done.unwrap_err().to_string(), "there is no trace \"t\"");
    let again = NewTrace { expires_at: at(2 * HOUR), ..trace("t", &["new"]) };
    act(store, late, Act::CreateTrace(again)).done.unwrap();
    assert_eq!(store.trace("t", at(HOUR)).unwrap().unwrap().lines, ["new"]);
}

pub(crate) fn sources_are_kept_with_their_health(store: &dyn Store) {
    let config = serde_json::json!({"path": "logs"});
    let create =
        |id: &str, name: &str| Act::CreateConnection { id: id.into(), kind: "directory".into(), name: name.into(), config: config.clone() };
    let update =
        |name: Option<&str>, enabled| Act::UpdateConnection { connection: "c".into(), name: name.map(Into::into), config: None, enabled };
    ok(store, create("c", "nightly"));
    ok(store, create("b", "adhoc"));
    assert_eq!(fault(store, create("c", "x")), "there is connection \"c\" already");
    assert_eq!(fault(store, create("x", "adhoc")), "there is a connection named \"adhoc\" already");
    assert_eq!(fault(store, update(Some("adhoc"), None)), "there is a connection named \"adhoc\" already");
    let sync = || Act::SyncConnection { connection: "c".into() };
    ok(store, update(Some("nightly"), Some(false)));
    assert_eq!(fault(store, sync()), "connection \"c\" is disabled; enable it first");
    ok(store, update(Some("later"), Some(true)));
    ok(store, sync());
    let held = store.connections().unwrap();
    assert_eq!(held.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["adhoc", "later"]);
    assert_eq!((held[1].asked_at, held[1].enabled, &held[1].config, &held[1].health), (Some(at(0)), true, &config, &None));
    let health = |ms: i64| Health { at: at(ms), logs: 3, complaints: vec!["one".into()], complaints_total: 1, ..Health::default() };
    let synced = |ms: i64| store.apply(Change::Synced { connection: "c".into(), health: health(ms) }).unwrap();
    // A look that began before somebody asked is not the one that he asked for.
    assert!(synced(-5).changed);
    assert_eq!(store.connections().unwrap()[1].asked_at, Some(at(0)));
    synced(0);
    let held = store.connections().unwrap().remove(1);
    assert_eq!((held.asked_at, held.health), (None, Some(health(0))));
    ok(store, Act::DeleteConnection { connection: "c".into() });
    for act in [Act::DeleteConnection { connection: "c".into() }, sync(), update(None, None)] {
        assert_eq!(fault(store, act), "there is no connection \"c\"");
    }
    assert!(!synced(9).changed && store.connections().unwrap().len() == 1);
}

pub(crate) fn baselines_form_a_lineage(store: &dyn Store) {
    let accept = |run: &str, evaluation: Option<&str>| Act::AcceptBaseline {
        run_id: run.into(),
        evaluation: evaluation.map(Into::into),
        note: Some("why".into()),
    };
    for (id, at) in [("a", 1), ("b", 2)] {
        log(id, at).with([attempt("1", Pass)]).put(store).unwrap();
    }
    let mut scratch = log("s", 3).with([attempt("1", Pass)]);
    scratch.kind = Kind::Scratch;
    scratch.put(store).unwrap();
    let mut failed = log("f", 4).with([attempt("1", Pass)]);
    failed.header.status = RunStatus::Failed;
    failed.put(store).unwrap();
    log("i", 5).with([attempt("1", InfraError)]).of(evaluation("other")).put(store).unwrap();
    assert_eq!(fault(store, accept("none", None)), "there is no run \"none\"");
    assert_eq!(fault(store, accept("Ra", Some("none"))), "there is no evaluation \"none\"");
    assert_eq!(fault(store, accept("Rs", None)), "run \"Rs\" is scratch; record it first");
    assert_eq!(fault(store, accept("Rf", None)), "run \"Rf\" is failed; only a completed run can be a baseline");
    assert!(fault(store, accept("Ri", None)).starts_with("run \"Ri\" has no attempt that passed or failed"));
    assert!(fault(store, accept("Ra", Some("other"))).starts_with("run \"Ra\" has no attempt of evaluation \"other\" that"));
    let did = |run: &str, evaluation: Option<&str>, replaces: Option<&str>| Acted::Baseline {
        run_id: run.into(),
        evaluation: evaluation.map(Into::into),
        replaces: replaces.map(Into::into),
    };
    assert_eq!(ok(store, accept("Ra", None)), did("Ra", None, None));
    assert_eq!(ok(store, accept("Ra", Some("e"))), did("Ra", Some("e"), None));
    assert_eq!(fault(store, accept("Ra", Some("e"))), "run \"Ra\" is the baseline already");
    let later = Deed { at: at(60), ..deed("d") };
    assert_eq!(act(store, later, accept("Rb", Some("e"))).done.unwrap(), did("Rb", Some("e"), Some("Ra")));
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    let row = |run: &str, evaluation: Option<&str>, ms: i64| BaselineRow {
        run_id: run.into(),
        evaluation: evaluation.map(Into::into),
        accepted_at: at(ms),
        accepted_by: "ann".into(),
        note: Some("why".into()),
        replaces: None,
        superseded_at: None,
        present: true,
    };
    let newest = BaselineRow { replaces: Some("Ra".into()), present: false, ..row("Rb", Some("e"), 60) };
    let old = BaselineRow { superseded_at: Some(at(60)), ..row("Ra", Some("e"), 0) };
    assert_eq!(store.baselines(Some("e")).unwrap(), [newest, old, row("Ra", None, 0)]);
    assert_eq!((store.baselines(Some("other")).unwrap(), store.baselines(None).unwrap().len()), (vec![row("Ra", None, 0)], 3));
    // Back to an earlier one.
    assert_eq!(ok(store, accept("Ra", Some("e"))), did("Ra", Some("e"), Some("Rb")));
}

pub(crate) fn any_text_is_a_name(store: &dyn Store) {
    for name in ["", "'; DROP TABLE audit_m; --", "\u{0}\n\u{202e}", "é/路#1@%", &"x".repeat(5_000)] {
        let made = NewEvaluation { id: name.into(), cases: vec![case(Some(name))], ..NewEvaluation::default() };
        ok(store, Act::CreateEvaluation(made));
        assert_eq!((one(store, name).unwrap().id.as_str(), store.authored_cases(name, 0, 9).unwrap().0[0].id.as_str()), (name, name));
        assert!(!fault(store, add(name, Some(name))).contains(['\n', '\u{202e}', '\u{0}']));
        ok(store, status(name, EvaluationStatus::Active));
        let budget = Budget { queued_max: 9, cost_usd_max: None, since: at(0) };
        let (run_id, arm) = (format!("run {name}"), Some(name.to_owned()));
        ok(store, Act::StartRun(NewRun { run_id: run_id.clone(), evaluation: name.into(), arm, budget, ..run("") }));
        assert_eq!((shown(store, &run_id).1.missing, queued(store, &run_id).evaluation.as_str()), (1, name));
    }
    assert_eq!(store.authored(&AuthoredQuery { limit: 9, ..AuthoredQuery::default() }).unwrap().1, 5);
}
