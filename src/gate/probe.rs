//! Tools and services for the tests of the call list.
//!
//! Promises: no clock but tokio's; nothing that is shared between tests.
//! Does not: test anything.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use clap::Command;
use serde_json::{Map, value::RawValue};
use tower::service_fn;

use super::{Call, Refusal, Reply, Served, next::Next, project::Project, visit::Client};
use crate::{
    auth::{Caller, Role},
    store::model::Model,
    tools::{Answer, Decoded, Effect, Entry, ToolError, Weight},
};

/// A light tool that echoes its arguments.
pub static LIGHT: Entry = entry("light", Weight::Light);
/// A heavy tool that echoes its arguments.
pub static HEAVY: Entry = entry("heavy", Weight::Heavy);
/// A tool whose answers are not to be kept.
pub static FLEETING: Entry = Entry { cacheable: false, ..entry("fleeting", Weight::Light) };
/// A heavy tool for which nobody has the scope.
pub static CLOSED: Entry = Entry { scopes: &[&["nobody:has"]], ..entry("closed", Weight::Heavy) };
/// A light tool that is released.
pub static RELEASED: Entry = Entry { released: true, ..entry("released", Weight::Light) };
/// One that is released and for members.
pub static MEMBERS: Entry = Entry { released: true, role: Role::Member, ..entry("members", Weight::Light) };
/// A heavy tool that panics.
pub static PANICS: Entry = Entry { run: |_, _| panic!("on purpose"), ..entry("panics", Weight::Heavy) };

const fn entry(name: &'static str, weight: Weight) -> Entry {
    Entry {
        name,
        verb: name,
        alias: None,
        about: "",
        title: "",
        doc: "",
        toolsets: &[],
        scopes: &[],
        role: Role::Viewer,
        of_project: true,
        project_argument: None,
        text_arguments: &[],
        released: false,
        weight,
        cacheable: true,
        effect: Effect::Read,
        declared: None,
        input_schema: Map::new,
        output_schema: Map::new,
        command: || Command::new("probe"),
        arguments: |_| Ok(Map::new()),
        canonical,
        run: |_, arguments| Ok(text(&serde_json::Value::Object(arguments).to_string())),
    }
}

fn canonical(arguments: Map<String, serde_json::Value>) -> Decoded {
    match arguments.get("wrong") {
        Some(value) => Err(ToolError::Argument(format!("argument wrong: {value} is wrong"))),
        None => Ok(arguments),
    }
}

/// An answer of this text.
pub fn text(text: &str) -> Answer {
    Answer { json: RawValue::from_string("{}".into()).unwrap(), text: text.into(), lasting: true }
}

/// A reply of this text.
pub fn reply(of: &str) -> Reply {
    Ok(Served { answer: Arc::new(text(of)), cached: false })
}

/// An anonymous caller's call from 192.0.2.1, with generation 1.
pub fn call(entry: &'static Entry) -> Call {
    from(entry, 1)
}

/// The same from 192.0.2.`last`.
pub fn from(entry: &'static Entry, last: u8) -> Call {
    let client = Client { address: [192, 0, 2, last].into(), proxied: false };
    let caller = Caller::scoped("anonymous", Role::Viewer, &["eval:read"]);
    Call { generation: Some(1), project: Some(project("p")), ..Call::remote(entry, Map::new(), caller, "r1", client) }
}

/// A project of this id that holds nothing.
pub fn project(id: &str) -> Project {
    Project { id: id.into(), store: Arc::new(Model::default()), refresh: Arc::new(|| Box::pin(std::future::ready(None))) }
}

/// With these arguments.
pub fn with(call: Call, arguments: &serde_json::Value) -> Call {
    Call { arguments: arguments.as_object().cloned().unwrap(), ..call }
}

/// Replies at once, and counts.
pub fn counting(count: &Arc<AtomicUsize>) -> impl Next + use<> {
    let count = count.clone();
    service_fn(move |_: Call| {
        let number = count.fetch_add(1, SeqCst);
        std::future::ready(reply(&number.to_string()))
    })
}

/// Replies after a while.
pub fn after(wait: Duration, of: &'static str) -> impl Next {
    service_fn(move |_: Call| async move {
        tokio::time::sleep(wait).await;
        reply(of)
    })
}

/// Never replies.
pub fn never() -> impl Next {
    service_fn(|_: Call| std::future::pending::<Reply>())
}

/// Refuses at once, and counts.
pub fn refusing(count: &Arc<AtomicUsize>, refusal: Refusal) -> impl Next + use<> {
    let count = count.clone();
    service_fn(move |_: Call| {
        count.fetch_add(1, SeqCst);
        std::future::ready(Err(refusal.clone()))
    })
}
