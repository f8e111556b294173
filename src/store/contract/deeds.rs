//! Random deeds and turns of the queue, and every read of the workspace as text: what two stores, or two orders of writers, are compared by.
//!
//! Promises: few names, keys and approvals, so that they meet all the time; each deed has a request id of its own.
//! Does not: know an adapter.

use std::fmt::Write as _;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{super::workspace::*, workspace::at, *};
use crate::auth::Role;

/// A deed, or a turn of the queue, as a value.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    /// Somebody does something.
    Deed(Box<(Deed, Act)>),
    /// Somebody was refused.
    Refused(Box<Deed>),
    /// A worker asks for a run.
    Claim(&'static str, i64),
    /// A worker says that it works.
    Beat(&'static str, &'static str, i64, u64),
    /// A worker ends a run, with results of these cases.
    End(&'static str, &'static str, i64, RunStatus, Vec<(&'static str, crate::domain::outcome::Outcome)>),
    /// A look at a source.
    Synced(&'static str, i64),
    /// A log from outside.
    Log(Box<Log>),
    /// Files that are gone.
    Vanish(String),
}

impl Turn {
    /// Applies it.
    pub(crate) fn apply(&self, store: &dyn Store) -> std::result::Result<Applied, String> {
        let applied = match self.clone() {
            Self::Deed(both) => store.apply(Change::Deed(both)),
            Self::Refused(deed) => store.apply(Change::Refused { deed, outcome: "denied", reason: "not today".into() }),
            Self::Claim(worker, ms) => store.apply(Change::Queue(QueueChange::Claim { worker, now: at(ms), lease_ms: 20, tries_max: 2 })),
            Self::Beat(run_id, worker, ms, done) => {
                store.apply(Change::Queue(QueueChange::Beat { run_id, worker, now: at(ms), lease_ms: 20, done, cost_usd: None }))
            }
            Self::End(run_id, worker, ms, status, results) => {
                let of = queued_evaluation(store, run_id);
                let mut attempts = results
                    .into_iter()
                    .map(|(case, outcome)| Ok(Attempt { evaluation: of.clone(), arm: "default".into(), ..attempt(case, outcome) }));
                let end = RunEnd { status, error: None, cost_usd: Some(0.25), attempts: &mut attempts };
                store.apply(Change::Queue(QueueChange::End { run_id, worker, now: at(ms), end }))
            }
            Self::Synced(connection, ms) => {
                let health = Health { at: at(ms), logs: 2, ..Health::default() };
                store.apply(Change::Synced { connection: connection.into(), health })
            }
            Self::Log(log) => log.put(store),
            Self::Vanish(path) => store.apply(Change::Vanished { paths: vec![path] }),
        };
        applied.map_err(|error| format!("{error:?}"))
    }
}

fn queued_evaluation(store: &dyn Store, run_id: &str) -> String {
    store.queued(&[run_id.to_owned()]).unwrap().remove(run_id).map(|run| run.evaluation).unwrap_or_default()
}

const EVALUATIONS: [&str; 3] = ["a", "a/b", "É"];
const CASES: [&str; 3] = ["1", "case-2", "ß"];
const RUNS: [&str; 3] = ["q1", "q2", "R0"];
const NAMES: [&str; 2] = ["s", "t"];

fn new_case() -> impl Strategy<Value = NewCase> {
    option::weighted(0.5, select(&CASES[..])).prop_map(|id| NewCase { id: id.map(Into::into), input: "asked".into(), ..NewCase::default() })
}

fn evaluation_act() -> impl Strategy<Value = Act> {
    let id = || select(&EVALUATIONS[..]).prop_map(str::to_owned);
    let new = (id(), option::of(select(&[0.5, 1.0][..])), vec(new_case(), 0..3)).prop_map(|(id, threshold, cases)| {
        Act::CreateEvaluation(NewEvaluation { id, threshold, cases, family: threshold.map(|_| "f".into()), ..NewEvaluation::default() })
    });
    prop_oneof![
        2 => new,
        3 => (id(), new_case()).prop_map(|(evaluation, case)| Act::AddCase { evaluation, case }),
        3 => (id(), select(&[EvaluationStatus::Active, EvaluationStatus::Active, EvaluationStatus::Archived][..]))
            .prop_map(|(evaluation, status)| Act::SetStatus { evaluation, status }),
        1 => (id(), option::of(Just("held".to_owned()))).prop_map(|(evaluation, reason)| Act::SetLock { evaluation, reason }),
    ]
}

fn run_act() -> impl Strategy<Value = Act> {
    let start = (select(&RUNS[..]), select(&EVALUATIONS[..]), option::of(select(&[1.0, 2.5][..])), option::weighted(0.3, Just(4.0)));
    let start = start.prop_map(|(run_id, evaluation, max_cost_usd, cost_usd_max)| {
        let budget = Budget { queued_max: 2, cost_usd_max, since: at(5) };
        let environment = "dev".to_owned();
        Act::StartRun(NewRun { run_id: run_id.into(), evaluation: evaluation.into(), arm: None, environment, max_cost_usd, budget })
    });
    let accept = (select(&RUNS[..]), option::of(select(&EVALUATIONS[..]))).prop_map(|(run, evaluation)| Act::AcceptBaseline {
        run_id: run.into(),
        evaluation: evaluation.map(Into::into),
        note: None,
    });
    prop_oneof![
        4 => start,
        1 => select(&RUNS[..]).prop_map(|run| Act::CancelRun { run_id: run.into() }),
        2 => accept,
        2 => select(&RUNS[..]).prop_map(|run| Act::ForgetRun { run_id: run.into() }),
    ]
}

fn other_act() -> impl Strategy<Value = Act> {
    let name = || select(&NAMES[..]).prop_map(str::to_owned);
    let lines = || vec(select(&["{}", "[1,\n2]", ""][..]).prop_map(str::to_owned), 0..3);
    let trace = (name(), lines(), 1..60_i64).prop_map(|(trace_id, lines, ms)| {
        let metadata = serde_json::Map::new();
        Act::CreateTrace(NewTrace { trace_id, name: "n".into(), status: None, duration_ms: None, lines, metadata, expires_at: at(ms) })
    });
    let create = (name(), name()).prop_map(|(id, name)| Act::CreateConnection {
        id,
        kind: "directory".into(),
        name,
        config: serde_json::json!({"path": "logs"}),
    });
    let update = (name(), option::of(name()), option::of(any::<bool>()));
    prop_oneof![
        2 => trace,
        2 => (name(), lines()).prop_map(|(trace_id, lines)| Act::AddLines { trace_id, lines }),
        2 => create,
        1 => update.prop_map(|(connection, name, enabled)| Act::UpdateConnection { connection, name, config: None, enabled }),
        1 => name().prop_map(|connection| Act::DeleteConnection { connection }),
        1 => name().prop_map(|connection| Act::SyncConnection { connection }),
    ]
}

/// A deed without a request id.
fn deed() -> impl Strategy<Value = Deed> {
    let under = (option::weighted(0.3, (select(&["h1", "h2"][..]), 1..60_i64)), option::weighted(0.3, select(&["k1", "k2"][..])));
    (select(&["ann", "bob"][..]), 0..40_i64, select(&["d1", "d1", "d2"][..]), under).prop_map(|(who, ms, digest, (approval, key))| Deed {
        actor: Actor { identity: format!("id-{who}"), principal: who.into(), role: Role::Member, address: None, request_id: String::new() },
        tool: "tool".into(),
        digest: digest.into(),
        at: at(ms),
        approval: approval.map(|(handle, ms)| Approval { handle: handle.into(), expires_at: at(ms) }),
        idempotency_key: key.map(Into::into),
    })
}

/// Something that leaves a row of the trail.
pub(crate) fn trailed() -> impl Strategy<Value = Turn> {
    let act = prop_oneof![5 => evaluation_act(), 4 => run_act(), 3 => other_act()];
    prop_oneof![
        12 => (deed(), act).prop_map(|both| Turn::Deed(Box::new(both))),
        1 => deed().prop_map(|deed| Turn::Refused(Box::new(deed))),
    ]
}

/// Any turn.
pub(crate) fn turn() -> impl Strategy<Value = Turn> {
    let worker = || select(&["w", "v"][..]);
    // Mostly cases that the runs have: results of others are refused.
    let results = vec((select(&["1", "1", "1", "ß", "ß", "case-2"][..]), select(&[Pass, Fail, InfraError][..])), 0..4);
    let status = select(&[RunStatus::Completed, RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled][..]);
    let gone = select(&["p0", "p1", "queue:q1", "queue:q2"][..]).prop_map(str::to_owned);
    prop_oneof![
        10 => trailed(),
        4 => (worker(), 0..60_i64).prop_map(|(worker, ms)| Turn::Claim(worker, ms)),
        2 => (select(&RUNS[..]), worker(), 0..60_i64, 0..3_u64).prop_map(|(run, worker, ms, done)| Turn::Beat(run, worker, ms, done)),
        4 => (select(&RUNS[..]), worker(), 0..60_i64, status, results)
            .prop_map(|(run, worker, ms, status, results)| Turn::End(run, worker, ms, status, results)),
        1 => (select(&NAMES[..]), 0..60_i64).prop_map(|(name, ms)| Turn::Synced(name, ms)),
        2 => (super::random::one_log(), any::<bool>()).prop_map(|(mut log, imported)| {
            // What was imported by hand may be forgotten; what stands in a directory may not.
            log.file.source = log.file.source.filter(|_| !imported);
            Turn::Log(Box::new(log))
        }),
        1 => gone.prop_map(Turn::Vanish),
    ]
}

/// What there is before anything random happens: two evaluations that can be started, and a run that waits.
pub(crate) fn beginning() -> Vec<Turn> {
    let mut acts = Vec::new();
    for id in ["a", "É"] {
        let cases = ["1", "ß"].map(|id| NewCase { id: Some(id.into()), input: "asked".into(), ..NewCase::default() });
        let new = NewEvaluation { id: id.into(), threshold: Some(0.5), cases: cases.into(), ..NewEvaluation::default() };
        acts.extend([Act::CreateEvaluation(new), Act::SetStatus { evaluation: id.into(), status: EvaluationStatus::Active }]);
    }
    let budget = Budget { queued_max: 2, cost_usd_max: None, since: at(5) };
    let environment = "prod".to_owned();
    let (run_id, evaluation) = ("q1".to_owned(), "a".to_owned());
    acts.push(Act::StartRun(NewRun { run_id, evaluation, arm: None, environment, max_cost_usd: Some(1.5), budget }));
    let deed = |(number, act)| {
        let mut deed = super::workspace::deed("begin");
        deed.actor.request_id = format!("begin-{number}");
        Turn::Deed(Box::new((deed, act)))
    };
    acts.into_iter().enumerate().map(deed).collect()
}

/// Gives the deeds of `turns` their request ids.
pub(crate) fn named(writer: &str, mut turns: Vec<Turn>) -> Vec<Turn> {
    for (number, turn) in turns.iter_mut().enumerate() {
        if let Turn::Deed(both) = turn {
            both.0.actor.request_id = format!("{writer}-{number}");
        } else if let Turn::Refused(deed) = turn {
            deed.actor.request_id = format!("{writer}-{number}");
        }
    }
    turns
}

/// The rows of the trail, the oldest first.
pub(crate) fn trail(store: &dyn Store) -> Vec<AuditRow> {
    let (mut rows, total) = store.audit(&AuditQuery { limit: usize::MAX, ..AuditQuery::default() }).unwrap();
    rows.reverse();
    assert!(rows.iter().map(|row| row.number).eq(1..=total as i64), "the trail has gaps");
    rows
}

/// Every read of the workspace, as text.
pub(crate) fn dump(store: &dyn Store) -> String {
    let mut out = String::new();
    for query in [
        AuthoredQuery { limit: 9, ..AuthoredQuery::default() },
        AuthoredQuery { limit: 1, offset: 1, contains: Some("É"), ..AuthoredQuery::default() },
        AuthoredQuery { limit: 9, status: Some(EvaluationStatus::Active), ..AuthoredQuery::default() },
    ] {
        writeln!(out, "authored {:#?}", store.authored(&query).unwrap()).unwrap();
    }
    for evaluation in EVALUATIONS {
        writeln!(out, "cases {evaluation} {:#?}", store.authored_cases(evaluation, 0, 9).unwrap()).unwrap();
        writeln!(out, "baselines {evaluation} {:#?}", store.baselines(Some(evaluation)).unwrap()).unwrap();
    }
    writeln!(out, "open {:#?}", store.queued(&[]).unwrap()).unwrap();
    writeln!(out, "queued {:#?}", store.queued(&RUNS.map(str::to_owned)).unwrap()).unwrap();
    writeln!(out, "baselines {:#?}\nconnections {:#?}", store.baselines(None).unwrap(), store.connections().unwrap()).unwrap();
    for name in NAMES {
        writeln!(out, "trace {:#?}", store.trace(name, at(20)).unwrap()).unwrap();
    }
    for (who, key) in [("ann", "k1"), ("ann", "k2"), ("bob", "k1"), ("bob", "k2")] {
        writeln!(out, "remembered {:?}", store.remembered(&format!("id-{who}"), "tool", key, at(10)).unwrap()).unwrap();
    }
    trail(store).iter().for_each(|row| writeln!(out, "{row:?}").unwrap());
    writeln!(out, "generation {}", store.generation().unwrap()).unwrap();
    out
}
