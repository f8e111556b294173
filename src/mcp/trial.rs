//! What the tests of the methods share: a gate over a plain store, and whoever asks.
//!
//! Promises: nothing of it is in the program.
//! Does not: open sockets or files; `tests/it` does.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    core::{Asker, Core},
    faults::Fault,
};
use crate::{
    auth::Caller,
    gate::{
        Bounds, Gate, Settings,
        message::Era,
        project::{Only, Project},
        visit::Client,
    },
    store::model::Model,
    telemetry::{hook::Hooks, redaction::Redactor},
    tools::{Limits, declared::Registry, render::Style},
};

/// The methods over a store.
pub(crate) struct House {
    pub core: Core,
    pub store: Arc<Model>,
}

/// An empty one.
pub(crate) fn house(limits: Limits, bounds: Bounds) -> House {
    let store = Arc::new(Model::default());
    let gate = Gate::new(Settings {
        projects: Arc::new(Only(Project {
            id: "p".into(),
            store: store.clone(),
            refresh: Arc::new(|| Box::pin(std::future::ready(None))),
        })),
        redactor: Arc::new(Redactor::patterns_only()),
        limits,
        style: Style::PLAIN,
        call_timeout: Duration::from_secs(60),
        bounds,
        audit: false,
        hooks: Hooks::default(),
        writes: None,
        registry: Registry::default(),
    });
    House { core: Core::new(gate), store }
}

/// With the defaults.
pub(crate) fn plain() -> House {
    house(Limits::default(), Bounds::default())
}

/// `caller` on stdio, of the newer era.
pub(crate) fn by(caller: Caller) -> Asker {
    Asker {
        caller,
        client: None,
        era: Era::Modern,
        request_id: "r".into(),
        toolsets: crate::tools::Toolsets::default(),
        place: None,
        parent: None,
    }
}

/// The same over HTTP, where rates hold.
pub(crate) fn remote(caller: Caller) -> Asker {
    Asker { client: Some(Client { address: [192, 0, 2, 1].into(), proxied: false }), ..by(caller) }
}

impl House {
    /// The answer to one request of `asker`.
    pub async fn asked(&self, asker: &Asker, method: &str, params: Value) -> Result<Value, Fault> {
        let params = params.as_object().cloned().unwrap();
        let text = self.core.answer(method, params, asker).await?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// The answer to the person at this machine.
    pub async fn local(&self, method: &str, params: Value) -> Value {
        self.asked(&by(Caller::local()), method, params).await.unwrap()
    }

    /// The text of a resource.
    pub async fn read(&self, uri: &str) -> Result<String, Fault> {
        let result = self.asked(&by(Caller::local()), "resources/read", json!({"uri": uri})).await?;
        assert_eq!((&result["contents"][0]["uri"], &result["contents"][1]), (&json!(uri), &Value::Null));
        Ok(result["contents"][0]["text"].as_str().unwrap().to_owned())
    }
}
