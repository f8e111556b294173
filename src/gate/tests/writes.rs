//! Writes on their way down the list: where each may be refused, and the row that it leaves.
//!
//! Promises: each neighbouring pair of steps that the writes brought is broken at once, and the first one answers.

use tokio::sync::watch;

use super::*;
use crate::{
    store::workspace::{AuditQuery, AuditRow, AuthoredQuery, Workspace as _},
    tools::{
        find,
        write::{Leave, Rules},
    },
};

fn settings_that_write(bounds: Bounds, store: &Arc<Model>) -> Settings {
    let only = Only(Project { id: "p".into(), store: store.clone(), refresh: Arc::new(|| Box::pin(std::future::ready(None))) });
    Settings { projects: Arc::new(only), writes: Some(Rules::default()), ..settings(bounds, &Arc::default()) }
}

fn office(bounds: Bounds) -> (Gate, Arc<Model>) {
    let store = Arc::new(Model::default());
    (Gate::new(settings_that_write(bounds, &store)), store)
}

fn rows(store: &Model) -> Vec<AuditRow> {
    store.audit(&AuditQuery { limit: 100, ..AuditQuery::default() }).unwrap().0
}

fn outcomes(store: &Model) -> Vec<String> {
    rows(store).into_iter().rev().map(|row| row.outcome).collect()
}

fn member(arguments: &serde_json::Value) -> Call {
    let caller = Caller::scoped("k", Role::Member, &["eval:write"]);
    with(Call { caller, ..from(find("evaluations_create").unwrap(), 1) }, arguments)
}

fn viewer() -> Call {
    Call { caller: Caller::scoped("k", Role::Viewer, &["*"]), ..member(&json!({"id": "e"})) }
}

fn said(reply: Result<Arc<Answer>, Refusal>) -> String {
    reply.unwrap_err().to_string()
}

#[tokio::test]
async fn rate_before_trail_before_authorize() {
    let (gate, store) = office(one_a_minute());
    assert!(matches!(gate.call(viewer()).await, Err(Refusal::Denied { .. })));
    assert!(matches!(gate.call(viewer()).await, Err(Refusal::Rate { .. })));
    let rows = rows(&store);
    assert_eq!((rows.len(), rows[0].outcome.as_str(), rows[0].detail.as_str()), (1, "denied", "evaluations_create needs role member"));
    assert_eq!(
        (rows[0].address.as_deref(), rows[0].request_id.as_str(), rows[0].tool.as_str()),
        (Some("192.0.2.1"), "r1", "evaluations_create")
    );
}

#[tokio::test]
async fn where_nothing_writes_there_is_no_such_tool() {
    let store = Arc::new(Model::default());
    let gate = Gate::new(Settings { writes: None, ..settings_that_write(Bounds::default(), &store) });
    for call in [member(&json!({"id": "e"})), viewer(), Call { leave: Leave::Direct, ..member(&json!({"id": "e"})) }] {
        assert!(matches!(gate.call(call).await, Err(Refusal::Unknown)));
    }
    assert!(rows(&store).is_empty() && !gate.has(find("runs_start").unwrap()) && gate.has(find("history").unwrap()));
}

#[tokio::test]
async fn project_before_consent_before_arguments() {
    let store = Arc::new(Model::default());
    let gate = Gate::new(Settings { projects: Arc::new(Two(store.clone())), ..settings_that_write(Bounds::default(), &store) });
    let wrong = |project: &str| member(&json!({"project": project, "approval": 7, "id": 7}));
    assert_eq!(said(gate.call(wrong("c")).await), "argument project: there is no project \"c\"");
    assert!(rows(&store).is_empty(), "there is nowhere to leave a row");
    assert_eq!(said(gate.call(wrong("b")).await), "argument approval is no text; give a text of 1 to 58 characters");
    assert!(said(gate.call(member(&json!({"project": "b", "id": 7}))).await).starts_with("argument id: invalid type"));
    assert_eq!(outcomes(&store), ["refused", "refused"]);
}

#[tokio::test]
async fn what_leave_is_given_by_is_no_argument_of_a_read_nor_where_none_is_asked_for() {
    let (gate, store) = office(Bounds::default());
    let read = with(call(find("history").unwrap()), &json!({"approval": "x"}));
    assert!(said(gate.call(read).await).starts_with("unknown argument `approval`"));
    assert!(rows(&store).is_empty());
    let direct = |arguments| Call { leave: Leave::Direct, ..member(&arguments) };
    assert!(said(gate.call(direct(json!({"id": "e", "approval": "x"}))).await).starts_with("unknown argument `approval`"));
    assert!(gate.call(direct(json!({"id": "e", "idempotency_key": "k"}))).await.is_ok());
    assert_eq!(outcomes(&store), ["refused", "ok"]);
    let both = Call {
        given: crate::tools::write::Given::Form { handle: "h".into(), approved: true },
        ..member(&json!({"id": "e", "approval": "x"}))
    };
    assert!(said(gate.call(both).await).contains("send one of the two"));
}

#[tokio::test]
async fn whatever_refuses_a_write_leaves_one_row() {
    let (gate, store) = office(Bounds { light_per_caller: 0, ..Bounds::default() });
    assert!(matches!(gate.call(member(&json!({"id": "e"}))).await, Err(Refusal::CallerBusy { .. })));
    let (gate, other) = office(Bounds { rate_total: 1, ..Bounds::default() });
    let direct = || Call { leave: Leave::Direct, ..member(&json!({"id": "e"})) };
    assert!(gate.call(direct()).await.is_ok());
    assert!(matches!(gate.call(direct()).await, Err(Refusal::Total { .. })));
    assert_eq!((outcomes(&store), outcomes(&other)), (vec!["refused".to_owned()], vec!["ok".to_owned(), "refused".to_owned()]));
    // What the store refuses itself it records itself.
    let (gate, store) = office(Bounds::default());
    assert!(gate.call(direct()).await.is_ok() && gate.call(direct()).await.is_err());
    assert_eq!(outcomes(&store), ["ok", "refused"]);
    assert_eq!(store.authored(&AuthoredQuery { limit: 9, ..AuthoredQuery::default() }).unwrap().1, 1);
}

#[tokio::test]
async fn who_is_known_by_nothing_leaves_no_row() {
    let (gate, store) = office(Bounds::default());
    for caller in [Caller::nobody(), Caller::public(), Caller::open()] {
        assert!(gate.call(Call { caller, ..viewer() }).await.is_err());
    }
    assert!(rows(&store).is_empty());
}

#[tokio::test]
async fn no_secret_stands_in_a_row() {
    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let (gate, store) = office(Bounds::default());
    assert!(gate.call(member(&json!({"id": "e", SECRET: 1}))).await.is_err());
    let row = rows(&store).remove(0);
    assert!(row.detail.contains("[REDACTED]") && !row.detail.contains(SECRET), "{}", row.detail);
}

#[tokio::test]
async fn a_write_that_the_store_has_and_that_is_late_is_undecided() {
    let store = Arc::new(Model::default());
    let trail = Arc::new(trail::Trail::new(&settings_that_write(Bounds::default(), &store)));
    let late = |has: bool| {
        service_fn(move |call: Call| {
            if has {
                call.handed.unwrap().over();
            }
            std::future::ready(Err(Refusal::Timeout { tool: "t", seconds: 3 }) as Reply)
        })
    };
    let refusal = trail.clone().take(member(&json!({})), late(true)).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Undecided { .. }) && refusal.outcome() == Outcome::Timeout, "{refusal}");
    assert!(rows(&store).is_empty(), "the store writes it");
    assert!(matches!(trail.take(member(&json!({})), late(false)).await, Err(Refusal::Timeout { .. })));
    assert_eq!(outcomes(&store), ["refused"]);
}

/// A project whose opening ends when it is told to.
struct Slow(Arc<Model>, watch::Receiver<bool>);

impl Projects for Slow {
    fn visible(&self, _: &Caller) -> Vec<String> {
        vec!["p".to_owned()]
    }

    fn find(&self, _: &Caller, _: Option<&Place>, _: Option<&str>) -> Found {
        let (store, mut open) = (self.0.clone(), self.1.clone());
        Found::Opening(Box::pin(async move {
            let refresh: Refresh = Arc::new(|| Box::pin(std::future::ready(None)));
            open.wait_for(|open| *open).await.map_err(|_| Lost::NotFound)?;
            Ok(Project { id: "p".into(), store, refresh })
        }))
    }
}

fn slow() -> (Gate, Arc<Model>, watch::Sender<bool>) {
    let (opens, open) = watch::channel(false);
    let store = Arc::new(Model::default());
    let projects = Arc::new(Slow(store.clone(), open));
    (Gate::new(Settings { projects, ..settings_that_write(Bounds::default(), &store) }), store, opens)
}

#[tokio::test(start_paused = true)]
async fn a_refusal_waits_no_longer_for_its_row_than_it_may() {
    let (gate, store, _opens) = slow();
    let began = tokio::time::Instant::now();
    assert!(matches!(gate.call(viewer()).await, Err(Refusal::Denied { .. })));
    assert_eq!((began.elapsed(), rows(&store).len()), (Bounds::default().row_wait, 0));
}

#[tokio::test]
async fn the_row_is_written_when_the_caller_has_left() {
    let (gate, store, opens) = slow();
    let calling = tokio::spawn(async move { gate.call(viewer()).await.is_err() });
    // The opening waits with a receiver of its own.
    while opens.receiver_count() < 2 {
        tokio::task::yield_now().await;
    }
    calling.abort();
    assert!(calling.await.is_err());
    opens.send(true).unwrap();
    while rows(&store).is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(outcomes(&store), ["denied"]);
}
