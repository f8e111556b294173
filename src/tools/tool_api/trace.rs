//! `trace.create`: a transcript outside a run is kept until its day (decision 72).
//!
//! Promises: what `traces_create` promises over MCP (reviewed, with a day on which it is deleted, secrets replaced), without a question of leave:
//! the operator's switch is it.
//! Does not: take lines; `trace.span.create` adds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    clock,
    domain::hex::hex,
    store::workspace::{Act, Acted, NewTrace},
    tools::{
        Ctx, ToolError, Toolset,
        arguments::Bounded,
        uri,
        workspace::{
            authoring::shown,
            traces_create::{DURATION_MS_MAX, METADATA_BYTES_MAX, end, pairs},
        },
        write::{
            Does, Intent, Write,
            fields::{Name, Pairs, Reviewed},
        },
    },
};

/// The tool.
pub enum TraceCreate {}

/// The trace.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// What people call it.
    name: Name<200>,
    /// Its id as its maker has it, unique in the project; one is made where there is none.
    #[serde(default)]
    trace_id: Option<Name<200>>,
    /// How it ended, in a word.
    #[serde(default)]
    status: Option<Name<64>>,
    /// Wall time.
    #[serde(default)]
    duration_ms: Option<Bounded<0, DURATION_MS_MAX, 0>>,
    /// Free pairs.
    #[serde(default)]
    metadata: Option<Pairs<METADATA_BYTES_MAX>>,
    /// That somebody has looked for personal data in it, and that it may be kept.
    pii_reviewed: Reviewed,
    /// After so many days it is deleted; 30 where it is not said.
    #[serde(default)]
    retention_days: Bounded<1, 365, 30>,
}

/// The trace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    trace_id: String,
    /// Where MCP's clients read it.
    uri: String,
    /// When it is deleted.
    expires_at: String,
}

impl Write for TraceCreate {
    const NAME: &'static str = "trace.create";
    const TITLE: &'static str = "Keep a trace";
    const DOC: &'static str = "Keeps a trace until its day; somebody must have reviewed it for personal data. Spans are added one by one.";
    const TOOLSETS: &'static [Toolset] = &[];
    const SCOPES: &'static [&'static [&'static str]] = &[&["traces:write"]];
    const DOES: Does = Does::CreateTrace;

    type Input = Input;
    type Done = Done;

    fn intent(_: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        let summary = format!("Keep the trace {} for {} days.", shown(input.name.get()), input.retention_days.get());
        Ok(Intent { summary, effects: Vec::new() })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let made = || clock::random::<10>().map(|id| format!("trace-{}", hex(&id))).map_err(ToolError::Internal);
        let clean = |name: Name<200>| ctx.redactor.redact(name.get()).into_owned();
        Ok(Act::CreateTrace(NewTrace {
            trace_id: input.trace_id.map_or_else(made, |id| Ok(id.into_string()))?,
            name: clean(input.name),
            status: input.status.map(|status| ctx.redactor.redact(status.get()).into_owned()),
            duration_ms: input.duration_ms.map(Bounded::get),
            lines: Vec::new(),
            metadata: pairs(input.metadata, &ctx.redactor)?,
            expires_at: end(ctx.now, input.retention_days),
        }))
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Trace { trace_id, expires_at } => Some(Done { uri: uri::trace(&trace_id), trace_id, expires_at: expires_at.rfc3339() }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("trace {} is kept until {}", shown(&done.trace_id), done.expires_at)
    }
}
