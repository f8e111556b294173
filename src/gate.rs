//! THE WAY OF A REQUEST.
//!
//! Two lists, each step a line with its reason, in the order that a request meets them: the door (over every HTTP request; it comes with the
//! HTTP service) and the call (over every tool call, whatever brought it). Each step is one file under `gate/`.
//!
//! Promises: HTTP, stdio and the command line share the call list, so they cannot disagree.
//! Does not: know SQL, rmcp or a tool's arguments.

pub mod audit;
pub mod authorize;
pub mod deadline;
pub mod fresh;
pub mod redact;
pub mod run;

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

use crate::{
    auth::{Caller, Role},
    clock,
    store::Store,
    telemetry::redaction::Redactor,
    tools::{Answer, Entry, Limits, ToolError, render::Style},
};

/// What a step's future is.
type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// A tool call on its way.
#[derive(Clone)]
pub struct Call {
    /// The tool.
    pub entry: &'static Entry,
    /// Its arguments, not yet decoded.
    pub arguments: Map<String, Value>,
    /// Who calls.
    pub caller: Caller,
    /// The id that the answer and the log share.
    pub request_id: String,
    /// What the answer should say of the index. Set by the `fresh` step.
    pub note: Option<String>,
}

impl Call {
    /// A call as it begins its way.
    #[must_use]
    pub fn new(entry: &'static Entry, arguments: Map<String, Value>, caller: Caller) -> Self {
        Self { entry, arguments, caller, request_id: clock::request_id(), note: None }
    }
}

/// Why a call was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The caller may not.
    #[error("{tool} needs {needs}")]
    Denied {
        /// The tool.
        tool: &'static str,
        /// The missing scopes or role, as words.
        needs: String,
    },
    /// It took too long.
    #[error("{tool} did not answer within {seconds} s; narrow the question and try again")]
    Timeout {
        /// The tool.
        tool: &'static str,
        /// The deadline.
        seconds: u64,
    },
    /// The tool refused or failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The tool panicked; the log has it under this request id.
    #[error("an internal error; the log has it under request {0}")]
    Panicked(String),
}

/// What the gate needs to know.
#[derive(Clone)]
pub struct Settings {
    /// The project.
    pub store: Arc<dyn Store>,
    /// Brings the index up to date with the files, waiting for a bounded time, and says what an answer should say of it.
    pub refresh: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// What replaces secrets on the way out.
    pub redactor: Arc<Redactor>,
    /// Bounds on answers.
    pub limits: Limits,
    /// How text is to look.
    pub style: Style,
    /// How long one call may run.
    pub call_timeout: Duration,
    /// Whether a line per call is logged.
    pub audit: bool,
}

/// The call list, ready to serve.
#[derive(Clone)]
pub struct Gate {
    call: BoxCloneSyncService<Call, Answer, Refusal>,
}

impl Gate {
    /// Puts the steps in their order.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let call = ServiceBuilder::new()
            // Around all that follows, so that a refused call leaves its line too.
            .layer(audit::AuditLayer::new(settings.audit))
            // Before anything is spent on a caller who may not.
            .layer(authorize::AuthorizeLayer)
            // Around all that takes time.
            .layer(deadline::DeadlineLayer::new(settings.call_timeout))
            // Before the answer is computed, so that it knows the files as they are.
            .layer(fresh::FreshLayer::new(settings.refresh.clone()))
            // Around the answer and the refusal: whatever the store holds, no secret leaves.
            .layer(redact::RedactLayer::new(settings.redactor.clone()))
            // On the blocking pool: arguments, the answer, its text.
            .service(run::Run::new(settings));
        Self { call: BoxCloneSyncService::new(call) }
    }

    /// Sends one call down the list.
    ///
    /// # Errors
    /// [`Refusal`], whose text is for the caller.
    pub async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        self.call.clone().oneshot(call).await
    }
}

/// What `caller` lacks for `entry`, as words; none when it may call it. The one rule for calls and for lists.
#[must_use]
pub fn lacks(caller: &Caller, entry: &Entry) -> Option<String> {
    if caller.role() < entry.role {
        return Some(format!("role {}", role_word(entry.role)));
    }
    let missing: Vec<String> =
        entry.scopes.iter().filter(|group| !group.iter().any(|scope| caller.holds(scope))).map(|group| group.join(" or ")).collect();
    (!missing.is_empty()).then(|| format!("scope {}", missing.join(" and ")))
}

const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Member => "member",
        Role::Admin => "admin",
        Role::Owner => "owner",
    }
}
