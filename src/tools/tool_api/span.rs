//! `trace.span.create`: a span more in a trace (decision 72).
//!
//! Promises: a span is one line of the trace, JSON with these members and no others; secrets are replaced before it is kept.
//! Does not: change a line that is there, or keep a trace longer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    store::workspace::{Act, Acted},
    tools::{
        Ctx, ToolError, Toolset,
        arguments::{Bounded, Text},
        workspace::{
            authoring::shown,
            traces_create::{DURATION_MS_MAX, METADATA_BYTES_MAX, checked, redacted},
        },
        write::{
            Does, Intent, Write,
            fields::{Name, Pairs, Reviewed},
        },
    },
};

/// The tool.
pub enum TraceSpanCreate {}

/// The span.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The trace's id.
    trace_id: Name<200>,
    /// The span's id.
    #[serde(default)]
    span_id: Option<Name<200>>,
    /// The id of the span that it is in.
    #[serde(default)]
    parent_span_id: Option<Name<200>>,
    /// What people call it.
    name: Name<200>,
    /// What it is, in a word, such as llm or tool.
    #[serde(default)]
    r#type: Option<Name<64>>,
    /// How it ended, in a word.
    #[serde(default)]
    status: Option<Name<64>>,
    /// When it began.
    #[serde(default)]
    start_time: Option<Text<40>>,
    /// When it ended.
    #[serde(default)]
    end_time: Option<Text<40>>,
    /// Wall time.
    #[serde(default)]
    duration_ms: Option<Bounded<0, DURATION_MS_MAX, 0>>,
    /// What went in.
    #[serde(default)]
    input: Option<Value>,
    /// What came out.
    #[serde(default)]
    output: Option<Value>,
    /// Free pairs.
    #[serde(default)]
    metadata: Option<Pairs<METADATA_BYTES_MAX>>,
    /// That somebody has looked for personal data in it, and that it may be kept.
    pii_reviewed: Reviewed,
}

/// The trace that has it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its id.
    trace_id: String,
    /// When it is deleted.
    expires_at: String,
}

/// The members of a line that are the call's and not the span's.
const NOT_THE_SPANS: [&str; 2] = ["traceId", "piiReviewed"];

fn line(input: &Input) -> Result<String, ToolError> {
    let whole = serde_json::to_value(input).map_err(|error| ToolError::Internal(error.to_string()))?;
    let members = whole.as_object().into_iter().flatten();
    let mut span: Map<String, Value> = members
        .filter(|(name, value)| !value.is_null() && !NOT_THE_SPANS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    span.insert("event".to_owned(), "span".into());
    Ok(Value::Object(span).to_string())
}

impl Write for TraceSpanCreate {
    const NAME: &'static str = "trace.span.create";
    const TITLE: &'static str = "Add a span";
    const DOC: &'static str = "Adds a span to a trace that is kept; somebody must have reviewed it for personal data.";
    const TOOLSETS: &'static [Toolset] = &[];
    const SCOPES: &'static [&'static [&'static str]] = &[&["traces:write"]];
    const DOES: Does = Does::AddLines;

    type Input = Input;
    type Done = Done;

    fn intent(_: &Ctx, input: &Input) -> Result<Intent, ToolError> {
        Ok(Intent { summary: format!("Add a span to the trace {}.", shown(input.trace_id.get())), effects: Vec::new() })
    }

    fn act(ctx: &Ctx, input: Input) -> Result<Act, ToolError> {
        let lines = vec![line(&input)?];
        checked(&lines)?;
        Ok(Act::AddLines { trace_id: input.trace_id.into_string(), lines: redacted(lines, &ctx.redactor) })
    }

    fn done(acted: Acted) -> Option<Done> {
        match acted {
            Acted::Trace { trace_id, expires_at } => Some(Done { trace_id, expires_at: expires_at.rfc3339() }),
            _ => None,
        }
    }

    fn text(done: &Done) -> String {
        format!("trace {} has a span more", shown(&done.trace_id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_span_is_one_line_with_what_is_its_own() {
        let input = json!({"traceId": "t", "spanId": "s", "name": "ask", "type": "llm", "input": {"a": "two\nlines"}, "piiReviewed": true});
        let line = line(&serde_json::from_value(input).unwrap()).unwrap();
        assert!(!line.contains('\n'), "{line}");
        let kept: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(kept, json!({"event": "span", "spanId": "s", "name": "ask", "type": "llm", "input": {"a": "two\nlines"}}));
    }
}
