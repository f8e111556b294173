//! A declared command and a client that leaves: through the whole list.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::{Map, json, value::RawValue};
use tokio::sync::Notify;

use super::*;
use crate::{
    auth::Caller,
    gate::{Bounds, Gate, probe::HEAVY, tests::gate_of, visit::Client},
    tools::{
        Answer, Decoded, Entry, ToolError,
        declared::{Asked, Declared, Running},
    },
};

/// A command that runs until it is told to end.
struct Slow {
    begun: Notify,
    end: Notify,
    runs: AtomicUsize,
}

impl Declared for &'static Slow {
    fn is_public(&self) -> bool {
        true
    }
    fn argument_names(&self) -> &[String] {
        &[]
    }
    fn input_schema(&self, _: bool) -> Map<String, serde_json::Value> {
        Map::new()
    }
    fn output_schema(&self) -> Option<Map<String, serde_json::Value>> {
        None
    }
    fn canonical(&self, arguments: Map<String, serde_json::Value>, _: bool) -> Decoded {
        Ok(arguments)
    }
    fn run(&self, asked: Asked) -> Running {
        let slow: &'static Slow = self;
        Box::pin(async move {
            slow.runs.fetch_add(1, SeqCst);
            slow.begun.notify_one();
            slow.end.notified().await;
            match asked.arguments.get("exit") {
                Some(_) => {
                    Err(ToolError::Exit { code: 3, said: "token sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\nexit code 3".into() })
                }
                None => Ok(Answer { json: RawValue::NULL.to_owned(), text: "done".into(), lasting: true }),
            }
        })
    }
}

fn declared() -> (&'static Slow, &'static Entry) {
    let slow: &'static Slow = Box::leak(Box::new(Slow { begun: Notify::new(), end: Notify::new(), runs: AtomicUsize::new(0) }));
    let row: &'static dyn Declared = Box::leak(Box::new(slow));
    (slow, Box::leak(Box::new(Entry { declared: Some(row), of_project: false, name: "slow", scopes: &[&["eval:read"]], ..entry() })))
}

const fn entry() -> Entry {
    Entry { weight: crate::tools::Weight::Heavy, ..crate::tools::UNKNOWN }
}

fn asked(entry: &'static Entry, last: u8, caller: Caller, arguments: serde_json::Value) -> Call {
    let client = Client { address: [192, 0, 2, last].into(), proxied: false };
    Call::remote(entry, arguments.as_object().cloned().unwrap_or_default(), caller, "r1", client)
}

fn of(gate: &Gate, entry: &'static Entry, last: u8, caller: Caller) -> tokio::task::JoinHandle<Result<Arc<Answer>, Refusal>> {
    let (gate, call) = (gate.clone(), asked(entry, last, caller, json!({})));
    tokio::spawn(async move { gate.call(call).await })
}

#[tokio::test(start_paused = true)]
async fn what_was_started_goes_on_without_its_client_and_its_answer_is_kept() {
    let (slow, entry) = declared();
    let gate = gate_of(Bounds { concurrent: 1, slot_wait: Duration::from_secs(5), ..Bounds::default() });
    let first = of(&gate, entry, 1, Caller::public());
    slow.begun.notified().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // It still has its caller's mark and its slot.
    let own = gate.call(asked(&HEAVY, 1, Caller::public(), json!({}))).await.unwrap_err();
    assert!(own.to_string().contains("you have 1 long call running"), "{own}");
    let other = gate.call(asked(&HEAVY, 2, Caller::public(), json!({}))).await.unwrap_err();
    assert!(matches!(other, Refusal::Busy { .. }), "{other}");
    // Who asks the same meanwhile gets its answer, and so does who asks afterwards.
    let same = of(&gate, entry, 3, Caller::public());
    tokio::task::yield_now().await;
    slow.end.notify_one();
    assert_eq!(same.await.unwrap().unwrap().text, "done");
    assert_eq!(of(&gate, entry, 4, Caller::public()).await.unwrap().unwrap().text, "done");
    assert_eq!(slow.runs.load(SeqCst), 1);
    assert!(gate.call(asked(&HEAVY, 1, Caller::public(), json!({}))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_has_not_begun_does_not_begin_without_its_client() {
    let (slow, entry) = declared();
    let gate = gate_of(Bounds { concurrent: 1, slot_wait: Duration::from_secs(60), ..Bounds::default() });
    let first = of(&gate, entry, 1, Caller::open());
    slow.begun.notified().await;
    let waits = of(&gate, entry, 2, Caller::open());
    tokio::task::yield_now().await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    slow.end.notify_one();
    assert_eq!(first.await.unwrap().unwrap().text, "done");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn only_strangers_answers_are_kept_and_refusals_are_not_and_have_no_secret() {
    let (slow, entry) = declared();
    let gate = gate_of(Bounds::default());
    for run in 1..=2 {
        slow.end.notify_one();
        assert_eq!(of(&gate, entry, 1, Caller::open()).await.unwrap().unwrap().text, "done");
        assert_eq!(slow.runs.load(SeqCst), run);
    }
    for run in 3..=4 {
        slow.end.notify_one();
        let refusal = gate.call(asked(entry, 1, Caller::public(), json!({"exit": true}))).await.unwrap_err();
        assert!(
            matches!(&refusal, Refusal::Tool(ToolError::Exit { code: 3, said }) if said == "token [REDACTED]\nexit code 3"),
            "{refusal}"
        );
        assert_eq!(slow.runs.load(SeqCst), run);
    }
}
