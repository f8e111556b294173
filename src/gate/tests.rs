//! The call list as a whole: its order, its limits, what it tells.
//!
//! Promises: each neighbouring pair of refusing steps is broken at once, and the first one answers; `door::tests` does the same for the door,
//! and `tests/it/http/order.rs` for both over sockets.
//! Does not: wait for real time.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::{Map, json};
use tokio::sync::Notify;
use tower::service_fn;

use super::{
    next::Step,
    probe::{CLOSED, HEAVY, LIGHT, MEMBERS, PANICS, RELEASED, call, counting, from, never, reply, with},
    project::{Found, Lost, Only, Project},
    *,
};
use crate::{
    store::{Change, FileStamp, Store as _, model::Model},
    telemetry::hook::{CallEvent, Fault, Hook, Outcome},
    tools::{self, ToolError},
};

mod writes;

#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<CallEvent>>,
    faults: Mutex<Vec<Fault>>,
}

impl Hook for Arc<Recorder> {
    fn request(&self, event: &CallEvent) {
        self.calls.lock().unwrap().push(event.clone());
    }

    fn error(&self, fault: &Fault) {
        self.faults.lock().unwrap().push(fault.clone());
    }
}

impl Recorder {
    fn last(&self) -> Outcome {
        self.calls.lock().unwrap().last().unwrap().outcome
    }
}

struct House {
    gate: Gate,
    store: Arc<Model>,
    seen: Arc<Recorder>,
    looks: Arc<AtomicUsize>,
}

fn house(bounds: Bounds) -> House {
    house_that(bounds, || Box::pin(std::future::ready(None)))
}

/// With another look at the files.
fn house_that(bounds: Bounds, look: fn() -> BoxFuture<Option<String>>) -> House {
    let (store, seen, looks) = (Arc::new(Model::default()), Arc::new(Recorder::default()), Arc::new(AtomicUsize::new(0)));
    let counted = looks.clone();
    let only = Only(Project {
        id: "p".into(),
        store: store.clone(),
        refresh: Arc::new(move || {
            counted.fetch_add(1, SeqCst);
            look()
        }),
    });
    let settings = Settings { projects: Arc::new(only), ..settings(bounds, &seen) };
    House { gate: Gate::new(settings), store, seen, looks }
}

/// A list of these bounds over an empty project.
pub(super) fn gate_of(bounds: Bounds) -> Gate {
    Gate::new(settings(bounds, &Arc::default()))
}

fn settings(bounds: Bounds, seen: &Arc<Recorder>) -> Settings {
    let store = Arc::new(Model::default());
    Settings {
        projects: Arc::new(Only(Project { id: "p".into(), store, refresh: Arc::new(|| Box::pin(std::future::ready(None))) })),
        redactor: Arc::new(Redactor::from_environment(Vec::new())),
        limits: Limits::default(),
        style: Style::PLAIN,
        // Shorter than the wait for a slot: that must not count.
        call_timeout: Duration::from_secs(10),
        bounds,
        audit: false,
        hooks: Hooks::new(vec![Arc::new(seen.clone())]),
        writes: None,
        registry: Registry::default(),
    }
}

fn wrong(call: Call) -> Call {
    with(call, &json!({"wrong": 1}))
}

fn one_a_minute() -> Bounds {
    Bounds { rate: 1, ..Bounds::default() }
}

#[tokio::test]
async fn rate_before_authorize() {
    let house = house(one_a_minute());
    assert!(matches!(house.gate.call(call(&CLOSED)).await, Err(Refusal::Denied { .. })), "a denied call takes a cell");
    let refusal = house.gate.call(call(&CLOSED)).await.unwrap_err();
    assert_eq!(refusal.to_string(), "too many calls: at most 1 a minute from one caller; try again in 60 seconds");
    assert_eq!(house.seen.last(), Outcome::Rate);
}

#[tokio::test]
async fn rate_before_the_want_of_a_credential_before_arguments() {
    let house = house(one_a_minute());
    let nobody = |entry| Call { caller: Caller::nobody(), ..call(entry) };
    for _ in 0..2 {
        let refusal = house.gate.call(wrong(nobody(&CLOSED))).await.unwrap_err();
        match house.seen.last() {
            Outcome::Denied => assert!(matches!(refusal, Refusal::Unauthenticated), "{refusal}"),
            other => assert_eq!(other, Outcome::Rate, "{refusal}"),
        }
    }
    assert_eq!((house.seen.last(), house.looks.load(SeqCst)), (Outcome::Rate, 0), "nobody has the files looked at");
}

#[test]
fn nobodys_list_has_what_is_released_and_anybodys_to_read() {
    assert!(listed(&Caller::nobody(), &RELEASED) && !listed(&Caller::nobody(), &LIGHT) && !listed(&Caller::nobody(), &MEMBERS));
    assert!(listed(&Caller::open(), &LIGHT) && !listed(&Caller::open(), &CLOSED), "who calls sees what it may call");
    assert!(tools::ENTRIES.iter().all(|entry| entry.released), "every tool of the documents is released");
}

#[tokio::test]
async fn authorize_before_arguments() {
    let house = house(Bounds::default());
    assert!(matches!(house.gate.call(wrong(call(&CLOSED))).await, Err(Refusal::Denied { .. })));
    assert_eq!(house.seen.last(), Outcome::Denied);
}

/// Two projects: the caller `one` sees the first, everyone else both.
struct Two(Arc<Model>);

impl Projects for Two {
    fn visible(&self, caller: &Caller) -> Vec<String> {
        if caller.principal() == "one" { vec!["a".to_owned()] } else { vec!["a".to_owned(), "b".to_owned()] }
    }

    fn find(&self, caller: &Caller, place: Option<&Place>, named: Option<&str>) -> Found {
        let wanted = place.map(|place| &*place.project).or(named);
        let seen = self.visible(caller);
        match (wanted, seen.as_slice()) {
            (Some(wanted), _) if seen.iter().any(|name| name == wanted) => {
                let refresh: Refresh = Arc::new(|| Box::pin(std::future::ready(None)));
                let project = Project { id: wanted.into(), store: self.0.clone(), refresh };
                // Half of them have to be opened first.
                if wanted == "a" { Found::Here(project) } else { Found::Opening(Box::pin(std::future::ready(Ok(project)))) }
            }
            (None, [only]) => self.find(caller, None, Some(&only.clone())),
            (None, [_, ..]) => Found::Lost(Lost::Which),
            _ => Found::Lost(Lost::NotFound),
        }
    }
}

fn two() -> Gate {
    let seen = Arc::new(Recorder::default());
    Gate::new(Settings { projects: Arc::new(Two(Arc::default())), ..settings(Bounds::default(), &seen) })
}

#[tokio::test]
async fn a_call_names_its_project_where_its_caller_sees_several() {
    let gate = two();
    let ask = async |call: Call| gate.call(call).await.map(|answer| answer.text.clone()).map_err(|refusal| refusal.to_string());
    let named = |name: serde_json::Value| with(call(&LIGHT), &json!({ "project": name }));
    let one = |call: Call| Call { caller: Caller::scoped("one", Role::Viewer, &["eval:read"]), ..call };
    assert!(ask(named(json!("a"))).await.is_ok_and(|text| !text.contains("project")), "the tool does not see it");
    assert!(ask(named(json!("b"))).await.is_ok() && ask(one(call(&LIGHT))).await.is_ok());
    assert_eq!(ask(call(&LIGHT)).await.unwrap_err(), "argument project: say which project; there are a, b");
    assert_eq!(ask(named(json!(null))).await.unwrap_err(), "argument project: say which project; there are a, b");
    assert_eq!(ask(named(json!(7))).await.unwrap_err(), "argument project: give the project's name as a text");
    assert_eq!(ask(named(json!("c"))).await.unwrap_err(), "argument project: there is no project \"c\"");
    let placed =
        |call: Call, project: &str| Call { place: Some(Place { organization: "o".into(), project: project.into() }.into()), ..call };
    assert!(ask(placed(call(&LIGHT), "b")).await.is_ok());
    assert_eq!(ask(placed(one(call(&LIGHT)), "b")).await.unwrap_err(), "there is no project that you may see");
    assert!(matches!(gate.call(with(one(call(&LIGHT)), &json!({"project": "a", "wrong": 1}))).await, Err(Refusal::Tool(_))));
}

#[tokio::test]
async fn authorize_before_project_before_arguments() {
    let gate = two();
    let lost = |entry| with(call(entry), &json!({"project": "c", "wrong": 1}));
    assert!(matches!(gate.call(lost(&CLOSED)).await, Err(Refusal::Denied { .. })));
    let refusal = gate.call(lost(&LIGHT)).await.unwrap_err().to_string();
    assert_eq!(refusal, "argument project: there is no project \"c\"");
}

#[tokio::test]
async fn what_one_project_answers_is_not_anothers() {
    let gate = two();
    let ask = async |project: &str| gate.call(with(call(&LIGHT), &json!({ "project": project }))).await.unwrap();
    let (a, again, b) = (ask("a").await, ask("a").await, ask("b").await);
    assert!(Arc::ptr_eq(&a, &again) && !Arc::ptr_eq(&a, &b), "the same store and generation, and yet two answers");
}

#[tokio::test]
async fn arguments_before_fresh_and_all_that_costs() {
    let house = house(Bounds { rate_total: 1, concurrent: 0, ..Bounds::default() });
    assert!(matches!(house.gate.call(wrong(call(&HEAVY))).await, Err(Refusal::Tool(ToolError::Argument(_)))));
    assert_eq!((house.looks.load(SeqCst), house.seen.last()), (0, Outcome::Refused));
    assert!(house.gate.call(call(&LIGHT)).await.is_ok(), "the total was not touched");
}

#[tokio::test]
async fn fresh_before_cache() {
    let house = house(Bounds::default());
    house.gate.call(call(&LIGHT)).await.unwrap();
    house.gate.call(call(&LIGHT)).await.unwrap();
    assert_eq!((house.looks.load(SeqCst), house.seen.last()), (2, Outcome::Cached), "a hit looks too");
    let file = FileStamp { path: "a".into(), size: 1, mtime_ns: 1, digest: "d".into(), source: None };
    assert!(house.store.apply(Change::Skipped { file, broken: true, reason: "x".into() }).unwrap().changed);
    house.gate.call(call(&LIGHT)).await.unwrap();
    assert_eq!(house.seen.last(), Outcome::Ok, "a write is a miss");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_does_not_end_before_the_cache_and_all_that_runs() {
    let house = house_that(Bounds { rate_total: 1, concurrent: 0, ..Bounds::default() }, || Box::pin(std::future::pending()));
    let refusal = house.gate.call(call(&HEAVY)).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Timeout { tool: "heavy", seconds: 10 }), "{refusal}");
    assert_eq!((house.seen.last(), house.gate.watched.cache.misses()), (Outcome::Timeout, 0));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_before_a_place_on_the_pool() {
    let house = house(Bounds { handlers: 0, ..Bounds::default() });
    let refusal = house.gate.call(call(&LIGHT)).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Timeout { tool: "light", seconds: 10 }), "{refusal}");
    assert_eq!((house.seen.last(), house.gate.watched.slots.callers()), (Outcome::Timeout, 0));
}

#[tokio::test]
async fn cache_before_slots_and_total() {
    let house = house(Bounds { rate_total: 1, ..Bounds::default() });
    house.gate.call(call(&HEAVY)).await.unwrap();
    // No share of the total is left, and the caller has one running.
    let held = tokio::spawn(house.gate.watched.slots.clone().take(call(&HEAVY), never()));
    tokio::task::yield_now().await;
    assert_eq!(house.gate.watched.slots.in_use(), 1);
    for _ in 0..3 {
        assert!(house.gate.call(call(&HEAVY)).await.is_ok());
        assert_eq!(house.seen.last(), Outcome::Cached);
    }
    assert!(matches!(house.gate.call(from(&LIGHT, 9)).await, Err(Refusal::Total { .. })));
    held.abort();
}

#[tokio::test(start_paused = true)]
async fn slots_before_total_and_before_the_deadline() {
    let house = house(Bounds { rate_total: 1, concurrent: 1, ..Bounds::default() });
    house.gate.call(call(&LIGHT)).await.unwrap();
    let held = tokio::spawn(house.gate.watched.slots.clone().take(from(&HEAVY, 7), never()));
    tokio::task::yield_now().await;
    assert!(matches!(house.gate.call(from(&HEAVY, 7)).await, Err(Refusal::CallerBusy { .. })));
    assert!(
        matches!(house.gate.call(call(&HEAVY)).await, Err(Refusal::Busy { slots: 1, waited_s: 30 })),
        "not the total, not the deadline"
    );
    assert_eq!(house.seen.last(), Outcome::Busy);
    held.abort();
    assert!(held.await.is_err());
    assert!(matches!(house.gate.call(call(&HEAVY)).await, Err(Refusal::Total { .. })));
}

#[tokio::test]
async fn no_secret_leaves_by_an_answer_a_refusal_or_the_cache() {
    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let house = house(Bounds::default());
    let echo = || with(call(&LIGHT), &json!({"a": SECRET}));
    let answers = [house.gate.call(echo()).await.unwrap(), house.gate.call(echo()).await.unwrap()];
    assert_eq!(house.seen.last(), Outcome::Cached);
    assert!(answers.iter().all(|answer| answer.text.contains("[REDACTED]") && !answer.text.contains(SECRET)), "{answers:?}");
    let refusal = house.gate.call(with(call(&LIGHT), &json!({"wrong": SECRET}))).await.unwrap_err().to_string();
    assert!(refusal.contains("[REDACTED]") && !refusal.contains(SECRET), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn one_running_before_slots_before_total() {
    let slots = Arc::new(slots::Slots::new(&Bounds { concurrent: 1, ..Bounds::default() }));
    let total = || service_fn(|_: Call| async { Err(Refusal::Total { per_minute: 1, wait_s: 1 }) as Reply });
    let held = tokio::spawn(slots.clone().take(call(&HEAVY), never()));
    tokio::task::yield_now().await;
    let began = tokio::time::Instant::now();
    let refusal = slots.clone().take(call(&HEAVY), total()).await.unwrap_err();
    assert!(matches!(refusal, Refusal::CallerBusy { .. }) && began.elapsed().is_zero(), "at once: {refusal}");
    let refusal = slots.clone().take(from(&HEAVY, 2), total()).await.unwrap_err();
    assert_eq!(refusal.to_string(), "busy: all 1 places for long calls were taken for 30 s; try again in 30 seconds");
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    held.abort();
    assert!(held.await.is_err());
    assert!(matches!(slots.take(call(&HEAVY), total()).await, Err(Refusal::Total { .. })), "freed by the cancelled call");
}

#[tokio::test]
async fn total_before_the_tool_runs() {
    let house = house(Bounds { rate_total: 1, ..Bounds::default() });
    house.gate.call(call(&LIGHT)).await.unwrap();
    let refusal = house.gate.call(call(&PANICS)).await.unwrap_err();
    assert!(refusal.to_string().ends_with("for all callers together; try again in 60 seconds"), "{refusal}");
    assert_eq!(house.seen.last(), Outcome::Total);
}

#[tokio::test]
async fn every_call_takes_one_cell_and_the_total_only_what_runs() {
    let house = house(Bounds { rate: 5, rate_total: 2, ..Bounds::default() });
    let unknown = Call::remote(&tools::UNKNOWN, Map::new(), call(&LIGHT).caller, "r", call(&LIGHT).client.unwrap());
    // Run, cached, wrong, denied, unknown: five of the caller's, one of the total.
    assert!(house.gate.call(call(&LIGHT)).await.is_ok() && house.gate.call(call(&LIGHT)).await.is_ok());
    assert!(house.gate.call(wrong(call(&LIGHT))).await.is_err() && house.gate.call(call(&CLOSED)).await.is_err());
    assert!(matches!(house.gate.call(unknown.clone()).await, Err(Refusal::Unknown)));
    assert!(matches!(house.gate.call(unknown).await, Err(Refusal::Rate { per_minute: 5, wait_s: 12 })));
    assert!(house.gate.call(from(&HEAVY, 2)).await.is_ok(), "another caller, the total's second");
    let third = with(from(&HEAVY, 2), &json!({"a": 1}));
    assert!(matches!(house.gate.call(third).await, Err(Refusal::Total { per_minute: 2, wait_s: 30 })));
}

#[tokio::test]
async fn stdio_and_the_command_line_have_no_limits() {
    let house = house(Bounds { rate: 1, rate_total: 1, concurrent: 0, light_per_caller: 0, cache_bytes: 0, ..Bounds::default() });
    for _ in 0..10 {
        for entry in [&LIGHT, &HEAVY] {
            assert!(house.gate.call(Call::local(entry, Map::new(), Caller::local())).await.is_ok());
        }
    }
}

#[tokio::test]
async fn eight_light_calls_at_once_and_a_ninth_is_refused_at_once() {
    let slots = Arc::new(slots::Slots::new(&Bounds::default()));
    let mut held: Vec<_> = (0..8).map(|_| tokio::spawn(slots.clone().take(call(&LIGHT), never()))).collect();
    tokio::task::yield_now().await;
    let refusal = slots.clone().take(call(&LIGHT), never()).await.unwrap_err();
    assert!(refusal.to_string().starts_with("light was not started: you have 8 calls running already"), "{refusal}");
    assert!(slots.clone().take(from(&LIGHT, 2), counting(&Arc::default())).await.is_ok(), "another caller");
    assert!(slots.clone().take(call(&HEAVY), counting(&Arc::default())).await.is_ok(), "heavy ones are counted apart");
    held.pop().unwrap().abort();
    tokio::task::yield_now().await;
    assert!(slots.clone().take(call(&LIGHT), counting(&Arc::default())).await.is_ok());
    held.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::task::yield_now().await;
    assert_eq!((slots.callers(), slots.in_use()), (0, 0), "nobody is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_given_back_however_a_call_ends() {
    let slots = Arc::new(slots::Slots::new(&Bounds { concurrent: 1, ..Bounds::default() }));
    let free = |slots: &slots::Slots| (slots.in_use(), slots.callers()) == (0, 0);
    assert!(slots.clone().take(call(&HEAVY), counting(&Arc::default())).await.is_ok() && free(&slots));
    let panicking = service_fn(|_: Call| async { panic!("on purpose") as Reply });
    assert!(tokio::spawn(slots.clone().take(call(&HEAVY), panicking)).await.is_err() && free(&slots));
    let late = tokio::time::timeout(Duration::from_secs(1), slots.clone().take(call(&HEAVY), never()));
    assert!(late.await.is_err() && free(&slots));
    // One that gives up while it waits leaves no mark either.
    let held = tokio::spawn(slots.clone().take(call(&HEAVY), never()));
    tokio::task::yield_now().await;
    assert!(slots.clone().take(from(&HEAVY, 2), never()).await.is_err());
    assert_eq!(slots.callers(), 1);
    held.abort();
    assert!(held.await.is_err() && free(&slots));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_slot_gets_it_when_it_comes_free() {
    let (slots, go) = (Arc::new(slots::Slots::new(&Bounds { concurrent: 1, ..Bounds::default() })), Arc::new(Notify::new()));
    let held = go.clone();
    let until = service_fn(move |_: Call| {
        let held = held.clone();
        async move {
            held.notified().await;
            reply("first")
        }
    });
    let first = tokio::spawn(slots.clone().take(call(&HEAVY), until));
    tokio::task::yield_now().await;
    let second = tokio::spawn(slots.clone().take(from(&HEAVY, 2), counting(&Arc::default())));
    tokio::time::advance(Duration::from_secs(29)).await;
    go.notify_one();
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_panic_is_a_refusal_with_the_request_id_and_a_fault() {
    let house = house(Bounds::default());
    let refusal = house.gate.call(call(&PANICS)).await.unwrap_err();
    assert_eq!(refusal.to_string(), "an internal error; the log has it under request r1");
    let fault = house.seen.faults.lock().unwrap().pop().unwrap();
    assert_eq!((fault.kind, fault.tool, fault.request_id.as_str()), ("panic", Some("panics"), "r1"));
    assert_eq!(house.seen.last(), Outcome::Error);
}

#[tokio::test]
async fn a_hook_sees_names_and_never_a_value() {
    let house = house(Bounds::default());
    let entry = tools::find("runs-list").unwrap();
    let arguments = json!({"limit": 7, "invented": "SENTINEL", "status": "SENTINEL"});
    assert!(house.gate.call(with(call(entry), &arguments)).await.is_err());
    let event = house.seen.calls.lock().unwrap().pop().unwrap();
    assert_eq!((event.tool, event.outcome, event.principal.as_str()), ("runs_list", Outcome::Refused, "anonymous"));
    assert!(event.arguments.contains(&"limit") && !format!("{event:?}").contains("SENTINEL") && !format!("{event:?}").contains("invented"));
    assert_eq!(event.address, Some([192, 0, 2, 1].into()));
}

#[tokio::test]
async fn a_call_whose_client_leaves_is_told_as_cancelled() {
    let house = house(Bounds::default());
    let audit = house.gate.watched.audit.clone();
    let left = tokio::spawn(audit.clone().take(call(&LIGHT), never()));
    tokio::task::yield_now().await;
    assert_eq!(audit.in_flight(), 1);
    left.abort();
    assert!(left.await.is_err());
    assert_eq!((house.seen.last(), audit.in_flight()), (Outcome::Cancelled, 0));
}

#[tokio::test]
async fn the_gates_numbers_are_on_the_page() {
    let house = house(one_a_minute());
    let metrics = Metrics::new(["light"]).unwrap();
    house.gate.watch(&metrics).unwrap();
    house.gate.call(call(&LIGHT)).await.unwrap();
    house.gate.call(from(&LIGHT, 2)).await.unwrap();
    let page = metrics.text().unwrap();
    for line in ["runlore_cache_misses_total 1", "runlore_cache_hits_total 1", "runlore_limiter_entries{limiter=\"tool_rate\"} 2"] {
        assert!(page.lines().any(|other| other == line), "{line} in {page}");
    }
}

#[test]
fn a_caller_is_counted_by_name_or_address() {
    let named = Call { caller: Caller::scoped("key_1", Role::Viewer, &[]), ..call(&LIGHT) };
    assert_eq!(named.counted_as(), CallerKey::Named("key_1".into()));
    assert_eq!(call(&LIGHT).counted_as(), CallerKey::Address([192, 0, 2, 1].into()));
    assert_eq!(Call { client: None, ..call(&LIGHT) }.counted_as(), CallerKey::Unplaced);
}
